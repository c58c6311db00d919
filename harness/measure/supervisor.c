#include "measure/supervisor.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/number.h"
#include "measure/golden_cache.h"

#define CLOSE_PATIENCE_S 10.0 /* a driver tears a context down in well under a second */

enum worker_state { WORKER_NONE, WORKER_OPENING, WORKER_IDLE, WORKER_BUSY };

struct worker {
    enum worker_state state;
    pid_t pid;
    int socket;
    size_t index;                       /* WORKER_BUSY: the case it has */
    double deadline;                    /* WORKER_OPENING and WORKER_BUSY: when its patience ends */
    char phase[SUPERVISOR_PHASE_BYTES]; /* what it said it is doing; "" when it did not */
    char *rx;                           /* the frame that is coming in */
    size_t have;
};

struct supervisor {
    const struct supervisor_job *job;
    struct worker worker[SUPERVISOR_MAX_JOBS];
    unsigned jobs;   /* workers allowed; 1 until the device is known */
    bool opened;     /* some worker said hello */
    struct err dead; /* why no further worker can be had; ERR_NONE while they can */
    size_t next;     /* first index not yet given out */
    size_t left;     /* indices without a result */
    void *result;    /* scratch for lost() */
};

static size_t rx_size(const struct supervisor_job *job)
{
    size_t payload = job->result_size;
    payload = payload > sizeof(struct device_info) ? payload : sizeof(struct device_info);
    payload = payload > sizeof(struct err) ? payload : sizeof(struct err);
    payload = payload > SUPERVISOR_WARNING_BYTES ? payload : SUPERVISOR_WARNING_BYTES;
    return sizeof(struct supervisor_frame) + payload;
}

static bool skipped(const struct supervisor_job *job, size_t i)
{
    return job->skip != NULL && job->skip[i];
}

static void skip_ahead(struct supervisor *s)
{
    while (s->next < s->job->count && skipped(s->job, s->next))
        s->next++;
}

/* --- one worker's life ------------------------------------------------------------------------ */

static int start(struct supervisor *s, struct worker *w, struct err *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_set(err, ERR_SYSTEM, "socketpair: %s", strerror(errno));
    fflush(NULL); /* else the worker's exit() would print the parent's pending output again */
    pid_t pid = fork();
    if (pid < 0) {
        close(pair[0]);
        close(pair[1]);
        return err_set(err, ERR_SYSTEM, "fork: %s", strerror(errno));
    }
    if (pid == 0) {
        close(pair[0]);
        for (unsigned i = 0; i < SUPERVISOR_MAX_JOBS; i++)
            if (s->worker[i].state != WORKER_NONE)
                close(s->worker[i].socket);
        supervisor_worker(s->job, pair[1]);
    }
    close(pair[1]);
    w->state = WORKER_OPENING;
    w->pid = pid;
    w->socket = pair[0];
    w->have = 0;
    w->phase[0] = '\0';
    w->deadline = wall_seconds() + s->job->watchdog_s;
    if (w->rx == NULL)
        w->rx = xcalloc(1, rx_size(s->job));
    return 0;
}

/* Closes its socket, which ends a healthy worker, and waits for it, not for ever: a device may hang
   on closing. `why` gets how it ended. */
static void reap(struct worker *w, char *why, size_t n)
{
    const struct timespec nap = {.tv_nsec = 2000000};
    double deadline = wall_seconds() + CLOSE_PATIENCE_S;
    int status = 0;
    pid_t done;
    close(w->socket);
    while ((done = waitpid(w->pid, &status, WNOHANG)) == 0 || (done < 0 && errno == EINTR)) {
        if (wall_seconds() > deadline)
            kill(w->pid, SIGKILL);
        nanosleep(&nap, NULL);
    }
    if (WIFSIGNALED(status))
        snprintf(why, n, "the worker died of signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(why, n, "the worker ended with exit status %d", WEXITSTATUS(status));
    w->state = WORKER_NONE;
}

static int report(struct supervisor *s, size_t index, const void *result, struct err *err)
{
    s->left--;
    return s->job->done(s->job->parent, index, result, err);
}

static int report_lost(struct supervisor *s, size_t index, const char *why, struct err *err)
{
    memset(s->result, 0, s->job->result_size);
    s->job->lost(s->job->parent, index, why, s->result);
    return report(s, index, s->result, err);
}

/* A worker that could not open its device: fatal for the first one; later the cases that are left
 * are lost. */
static int no_worker(struct supervisor *s, const struct err *why, struct err *err)
{
    if (!s->opened) {
        *err = *why;
        return -1;
    }
    s->dead = *why;
    err_context(&s->dead, "no worker can be started any more");
    return 0;
}

/* The worker is gone, or is to go: replaced on the next dispatch. */
static int bury(struct supervisor *s, struct worker *w, const char *said, struct err *err)
{
    enum worker_state was = w->state;
    char ended[256], why[512];
    if (said != NULL)
        kill(w->pid, SIGKILL);
    reap(w, ended, sizeof(ended));
    snprintf(why, sizeof(why), "%s%s%s", said != NULL ? said : ended,
             w->phase[0] != '\0' ? ", in phase: " : "", w->phase);
    if (was == WORKER_BUSY)
        return report_lost(s, w->index, why, err);
    if (was != WORKER_OPENING)
        return 0;
    struct err open_err = ERR_INIT;
    err_set(&open_err, ERR_SYSTEM, "while opening the device %s", why);
    return no_worker(s, &open_err, err);
}

/* --- frames ----------------------------------------------------------------------------------- */

static int hello(struct supervisor *s, struct worker *w, const struct device_info *info,
                 struct err *err)
{
    w->state = WORKER_IDLE;
    if (s->opened)
        return 0;
    s->opened = true;
    const unsigned most = info->kind == DEVICE_CPU ? SUPERVISOR_MAX_JOBS : SUPERVISOR_GPU_JOBS;
    s->jobs = s->job->jobs < most ? s->job->jobs : most;
    return s->job->opened(s->job->parent, info, err);
}

static int open_failed(struct supervisor *s, struct worker *w, const struct err *why,
                       struct err *err)
{
    char ended[256];
    reap(w, ended, sizeof(ended));
    return no_worker(s, why, err);
}

static void pass_warning(const struct supervisor *s, const void *payload)
{
    char text[SUPERVISOR_WARNING_BYTES];
    memcpy(text, payload, sizeof(text));
    text[sizeof(text) - 1] = '\0';
    if (s->job->warned != NULL)
        s->job->warned(s->job->parent, text);
}

static int handle(struct supervisor *s, struct worker *w, const struct supervisor_frame *f,
                  const void *payload, struct err *err)
{
    if (f->kind == FRAME_HELLO)
        return hello(s, w, payload, err);
    if (f->kind == FRAME_OPEN_FAILED)
        return open_failed(s, w, payload, err);
    if (f->kind == FRAME_PHASE) {
        memcpy(w->phase, payload, sizeof(w->phase));
        w->phase[sizeof(w->phase) - 1] = '\0';
        return 0;
    }
    if (f->kind == FRAME_WARNING) {
        pass_warning(s, payload);
        return 0;
    }
    w->state = WORKER_IDLE;
    char ended[256];
    if (f->retire)
        reap(w, ended, sizeof(ended));
    return report(s, f->index, payload, err);
}

/* False for what no sound worker sends in its state. */
static bool acceptable(const struct supervisor *s, const struct worker *w,
                       const struct supervisor_frame *f)
{
    switch (f->kind) {
    case FRAME_HELLO:
        return w->state == WORKER_OPENING && f->size == sizeof(struct device_info);
    case FRAME_OPEN_FAILED:
        return w->state == WORKER_OPENING && f->size == sizeof(struct err);
    case FRAME_PHASE:
        return w->state == WORKER_BUSY && f->size == sizeof(w->phase);
    case FRAME_WARNING:
        return w->state == WORKER_BUSY && f->size == SUPERVISOR_WARNING_BYTES;
    case FRAME_RESULT:
        return w->state == WORKER_BUSY && f->index == w->index && f->size == s->job->result_size;
    }
    return false;
}

static int receive(struct supervisor *s, struct worker *w, struct err *err)
{
    struct supervisor_frame f = {.size = 0};
    if (w->have >= sizeof(f))
        memcpy(&f, w->rx, sizeof(f));
    size_t want = sizeof(f) + f.size - w->have;
    ssize_t n = recv(w->socket, w->rx + w->have, want, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n <= 0)
        return bury(s, w, NULL, err);
    w->have += (size_t)n;
    if (w->have < sizeof(f))
        return 0;
    memcpy(&f, w->rx, sizeof(f));
    if (!acceptable(s, w, &f))
        return bury(s, w, "the worker sent garbage: its memory is damaged", err);
    if (w->have < sizeof(f) + f.size)
        return 0;
    w->have = 0;
    return handle(s, w, &f, w->rx + sizeof(f), err);
}

/* --- the loop --------------------------------------------------------------------------------- */

static void give(struct supervisor *s, struct worker *w)
{
    size_t index = s->next;
    w->state = WORKER_BUSY;
    w->index = index;
    w->phase[0] = '\0';
    w->deadline = wall_seconds() + s->job->watchdog_s;
    s->next++;
    skip_ahead(s);
    /* Eight bytes fit into an empty socket. If it fails the worker has just died: that is noticed
       when its socket is read, and this case is lost there. */
    ssize_t sent = send(w->socket, &index, sizeof(index), MSG_NOSIGNAL);
    (void)sent;
}

/* Gives every idle worker a case, and starts workers while there are more cases than workers. */
static int dispatch(struct supervisor *s, struct err *err)
{
    size_t waiting = s->job->count - s->next; /* an upper limit: some may be skipped */
    for (unsigned i = 0; i < s->jobs; i++) {
        struct worker *w = &s->worker[i];
        if (w->state == WORKER_IDLE && s->next < s->job->count)
            give(s, w);
        if (w->state == WORKER_OPENING && waiting > 0)
            waiting--;
    }
    for (unsigned i = 0; i < s->jobs && s->next < s->job->count && s->dead.kind == ERR_NONE; i++) {
        struct err why = ERR_INIT;
        if (s->worker[i].state != WORKER_NONE || waiting == 0)
            continue;
        waiting--;
        if (start(s, &s->worker[i], &why) < 0 && no_worker(s, &why, err) < 0)
            return -1;
    }
    return 0;
}

/* Cases that nobody can work on any more. */
static int give_up(struct supervisor *s, struct err *err)
{
    if (s->dead.kind == ERR_NONE)
        return 0;
    for (unsigned i = 0; i < SUPERVISOR_MAX_JOBS; i++)
        if (s->worker[i].state != WORKER_NONE)
            return 0;
    while (s->next < s->job->count) {
        size_t index = s->next++;
        skip_ahead(s);
        if (report_lost(s, index, s->dead.text, err) < 0)
            return -1;
    }
    return 0;
}

static int patience_ms(const struct supervisor *s)
{
    double first = INF64, now = wall_seconds();
    for (unsigned i = 0; i < SUPERVISOR_MAX_JOBS; i++) {
        const struct worker *w = &s->worker[i];
        if (w->state == WORKER_OPENING || w->state == WORKER_BUSY)
            first = fmin(first, w->deadline);
    }
    double ms = 1e3 * (first - now) + 1.0;
    return ms < 0.0 ? 0 : ms < 60e3 ? (int)ms : 60000;
}

static int check_watchdogs(struct supervisor *s, struct err *err)
{
    char why[128];
    double now = wall_seconds();
    snprintf(why, sizeof(why), "no answer for %g s: the worker was killed by the watchdog",
             s->job->watchdog_s);
    for (unsigned i = 0; i < SUPERVISOR_MAX_JOBS; i++) {
        struct worker *w = &s->worker[i];
        if ((w->state == WORKER_OPENING || w->state == WORKER_BUSY) && now > w->deadline &&
            bury(s, w, why, err) < 0)
            return -1;
    }
    return 0;
}

static int wait_for_workers(struct supervisor *s, struct err *err)
{
    struct pollfd fds[SUPERVISOR_MAX_JOBS];
    struct worker *of[SUPERVISOR_MAX_JOBS];
    nfds_t n = 0;
    for (unsigned i = 0; i < SUPERVISOR_MAX_JOBS; i++) {
        struct worker *w = &s->worker[i];
        if (w->state == WORKER_NONE)
            continue;
        of[n] = w;
        fds[n++] = (struct pollfd){.fd = w->socket, .events = POLLIN};
    }
    if (poll(fds, n, patience_ms(s)) < 0 && errno != EINTR)
        return err_set(err, ERR_SYSTEM, "poll: %s", strerror(errno));
    for (nfds_t i = 0; i < n; i++)
        if (fds[i].revents != 0 && of[i]->state != WORKER_NONE && receive(s, of[i], err) < 0)
            return -1;
    return check_watchdogs(s, err);
}

static int supervise(struct supervisor *s, struct err *err)
{
    while (s->left > 0) {
        if (dispatch(s, err) < 0)
            return -1;
        if (give_up(s, err) < 0)
            return -1;
        if (s->left > 0 && wait_for_workers(s, err) < 0)
            return -1;
    }
    return 0;
}

static int run_here(const struct supervisor_job *job, struct err *err)
{
    struct device_info info;
    struct supervisor_link link = {.socket = -1, .job = job};
    memset(&info, 0, sizeof(info));
    if (job->open(job->worker, &info, err) < 0)
        return -1;
    int rc = job->opened(job->parent, &info, err);
    void *result = xcalloc(1, job->result_size);
    for (size_t i = 0; i < job->count && rc == 0; i++) {
        if (skipped(job, i))
            continue;
        memset(result, 0, job->result_size);
        job->run(job->worker, i, result, &link);
        rc = job->done(job->parent, i, result, err);
    }
    free(result);
    job->close(job->worker);
    return rc;
}

int supervisor_run(const struct supervisor_job *job, struct err *err)
{
    if (job->in_process)
        return run_here(job, err);
    struct supervisor *s = xcalloc(1, sizeof(*s));
    s->job = job;
    s->jobs = 1;
    s->result = xcalloc(1, job->result_size);
    for (size_t i = 0; i < job->count; i++)
        s->left += !skipped(job, i);
    skip_ahead(s);
    int rc = supervise(s, err);
    for (unsigned i = 0; i < SUPERVISOR_MAX_JOBS; i++) {
        struct worker *w = &s->worker[i];
        char ended[256];
        if (w->state != WORKER_NONE && w->state != WORKER_IDLE)
            kill(w->pid, SIGKILL);
        if (w->state != WORKER_NONE)
            reap(w, ended, sizeof(ended));
        free(w->rx);
    }
    free(s->result);
    free(s);
    return rc;
}
