#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "measure/supervisor.h"

/* A parent that is gone ends the worker: there is nobody to tell. exit() and not _exit(), so that
   profilers and sanitizers attached to the worker write what they have. */
static void send_bytes(int socket, const void *bytes, size_t n)
{
    const char *at = bytes;
    while (n > 0) {
        ssize_t done = send(socket, at, n, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            exit(1);
        at += done;
        n -= (size_t)done;
    }
}

static void send_frame(int socket, struct supervisor_frame frame, const void *payload)
{
    send_bytes(socket, &frame, sizeof(frame));
    send_bytes(socket, payload, frame.size);
}

void supervisor_phase(const struct supervisor_link *link, const char *what)
{
    char text[SUPERVISOR_PHASE_BYTES] = "";
    snprintf(text, sizeof(text), "%s", what);
    if (link->socket >= 0)
        send_frame(link->socket,
                   (struct supervisor_frame){.kind = FRAME_PHASE, .size = sizeof(text)}, text);
}

void supervisor_warn(const struct supervisor_link *link, const char *text)
{
    char cut[SUPERVISOR_WARNING_BYTES] = "";
    snprintf(cut, sizeof(cut), "%s", text);
    if (link->socket >= 0)
        send_frame(link->socket,
                   (struct supervisor_frame){.kind = FRAME_WARNING, .size = sizeof(cut)}, cut);
    else if (link->job->warned != NULL)
        link->job->warned(link->job->parent, cut);
}

static bool receive_index(int socket, size_t *index)
{
    char *at = (char *)index;
    size_t have = 0;
    while (have < sizeof(*index)) {
        ssize_t n = recv(socket, at + have, sizeof(*index) - have, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        have += (size_t)n;
    }
    return true;
}

/* Handlers that a debugger or a test framework installed in the parent would hide a crash here. */
static void reset_signals(void)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
        signal(fatal[i], SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static int open_worker(const struct supervisor_job *job, int socket)
{
    struct device_info info;
    struct err err = ERR_INIT;
    memset(&info, 0, sizeof(info));
    if (job->open(job->worker, &info, &err) == 0) {
        send_frame(socket, (struct supervisor_frame){.kind = FRAME_HELLO, .size = sizeof(info)},
                   &info);
        return 0;
    }
    send_frame(
        socket,
        (struct supervisor_frame){.kind = FRAME_OPEN_FAILED, .retire = true, .size = sizeof(err)},
        &err);
    return -1;
}

_Noreturn void supervisor_worker(const struct supervisor_job *job, int socket)
{
    reset_signals();
    if (open_worker(job, socket) < 0)
        exit(0);
    void *result = xcalloc(1, job->result_size);
    struct supervisor_link link = {.socket = socket, .job = job};
    size_t index;
    bool retire = false;
    while (!retire && receive_index(socket, &index)) {
        memset(result, 0, job->result_size);
        retire = job->run(job->worker, index, result, &link);
        send_frame(
            socket,
            (struct supervisor_frame){
                .kind = FRAME_RESULT, .retire = retire, .index = index, .size = job->result_size},
            result);
    }
    free(result);
    job->close(job->worker);
    close(socket);
    exit(0);
}
