#include "measure/nvtx.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#if defined(__has_include)
#if __has_include(<nvtx3/nvToolsExt.h>)
#define HAVE_NVTX 1
#include <nvtx3/nvToolsExt.h>
#endif
#endif

static const char *const phase_names[NVTX_PHASES] = {
    [NVTX_REFERENCE] = "reference", [NVTX_UPLOAD] = "upload",     [NVTX_VERIFY] = "verify",
    [NVTX_WARM_UP] = "warm-up",     [NVTX_RESTORE] = "restore",   [NVTX_TIMED] = "timed",
    [NVTX_COMPARE] = "compare",     [NVTX_CEILINGS] = "ceilings", [NVTX_SENTINEL] = "sentinel",
};

const char *nvtx_phase_name(enum nvtx_phase phase)
{
    return phase_names[phase];
}

#ifdef HAVE_NVTX

enum category { CATEGORY_SUITE = 1, CATEGORY_CASE, CATEGORY_PHASE };

/* A registered name. NVTX keeps registrations until its domain ends, so each name is
   registered once. */
struct name {
    char *text;
    nvtxStringHandle_t handle;
};

struct nvtx {
    nvtxDomainHandle_t domain;
    nvtxStringHandle_t phase[NVTX_PHASES];
    struct name *name; /* suites and cases */
    size_t nnames;
};

bool nvtx_available(void)
{
    return true;
}

struct nvtx *nvtx_open(void)
{
    struct nvtx *n = xcalloc(1, sizeof *n);

    n->domain = nvtxDomainCreateA("deltarig");
    nvtxDomainNameCategoryA(n->domain, CATEGORY_SUITE, "suite");
    nvtxDomainNameCategoryA(n->domain, CATEGORY_CASE, "case");
    nvtxDomainNameCategoryA(n->domain, CATEGORY_PHASE, "phase");
    for (int i = 0; i < NVTX_PHASES; i++)
        n->phase[i] = nvtxDomainRegisterStringA(n->domain, phase_names[i]);
    return n;
}

void nvtx_close(struct nvtx *n)
{
    if (!n)
        return;
    nvtxDomainDestroy(n->domain);
    for (size_t i = 0; i < n->nnames; i++)
        free(n->name[i].text);
    free(n->name);
    free(n);
}

static nvtxStringHandle_t registered(struct nvtx *n, const char *text)
{
    for (size_t i = 0; i < n->nnames; i++)
        if (!strcmp(n->name[i].text, text))
            return n->name[i].handle;
    n->name = xrealloc(n->name, n->nnames + 1, sizeof *n->name);
    n->name[n->nnames] = (struct name){
        .text = xstrdup(text),
        .handle = nvtxDomainRegisterStringA(n->domain, text),
    };
    return n->name[n->nnames++].handle;
}

static void push(struct nvtx *n, nvtxStringHandle_t name, enum category category, uint64_t payload)
{
    nvtxEventAttributes_t a;

    memset(&a, 0, sizeof a);
    a.version = NVTX_VERSION;
    a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    a.category = category;
    a.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    a.payload.ullValue = payload;
    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = name;
    nvtxDomainRangePushEx(n->domain, &a);
}

void nvtx_suite_begin(struct nvtx *n, const char *name, uint64_t cases)
{
    if (n)
        push(n, registered(n, name), CATEGORY_SUITE, cases);
}

void nvtx_case_begin(struct nvtx *n, const char *text, uint64_t hash)
{
    if (n)
        push(n, registered(n, text), CATEGORY_CASE, hash);
}

void nvtx_phase_begin(struct nvtx *n, enum nvtx_phase phase, uint64_t bytes)
{
    if (n)
        push(n, n->phase[phase], CATEGORY_PHASE, bytes);
}

void nvtx_end(struct nvtx *n)
{
    if (n)
        nvtxDomainRangePop(n->domain);
}

#else

bool nvtx_available(void)
{
    return false;
}

struct nvtx *nvtx_open(void)
{
    return NULL;
}

void nvtx_close(struct nvtx *n)
{
    (void)n;
}

void nvtx_suite_begin(struct nvtx *n, const char *name, uint64_t cases)
{
    (void)n;
    (void)name;
    (void)cases;
}

void nvtx_case_begin(struct nvtx *n, const char *text, uint64_t hash)
{
    (void)n;
    (void)text;
    (void)hash;
}

void nvtx_phase_begin(struct nvtx *n, enum nvtx_phase phase, uint64_t bytes)
{
    (void)n;
    (void)phase;
    (void)bytes;
}

void nvtx_end(struct nvtx *n)
{
    (void)n;
}

#endif
