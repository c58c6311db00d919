/*
 * An NVTX tool that writes what it is told to a file: NVTX loads the library that
 * NVTX_INJECTION64_PATH names and asks it for its callbacks. One line an event: "domain NAME",
 * "string ID NAME", "category ID NAME", "push STRING-ID CATEGORY PAYLOAD", "pop". The file is
 * named by DELTARIG_NVTX_LOG.
 */
#include <stdio.h>
#include <stdlib.h>

#if defined(__has_include)
#if __has_include(<nvtx3/nvToolsExt.h>)
#define HAVE_NVTX 1
#include <nvtx3/nvToolsExt.h>
#endif
#endif

#ifdef HAVE_NVTX

static FILE *log_file;
static uintptr_t strings;

static void say(const char *what, unsigned long long a, unsigned long long b, const char *text)
{
    fprintf(log_file, "%s %llu %llu %s\n", what, a, b, text);
    fflush(log_file);
}

static nvtxDomainHandle_t NVTX_API on_domain(const char *name)
{
    say("domain", 1, 0, name);
    return (nvtxDomainHandle_t)(uintptr_t)1;
}

static nvtxStringHandle_t NVTX_API on_string(nvtxDomainHandle_t domain, const char *text)
{
    say("string", ++strings, (uintptr_t)domain, text);
    return (nvtxStringHandle_t)strings;
}

static void NVTX_API on_category(nvtxDomainHandle_t domain, uint32_t id, const char *name)
{
    say("category", id, (uintptr_t)domain, name);
}

static int NVTX_API on_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    char text[64];

    (void)domain;
    snprintf(text, sizeof text, "%llu",
             a->payloadType == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64
                 ? (unsigned long long)a->payload.ullValue
                 : 999999999ull);
    say("push",
        a->messageType == NVTX_MESSAGE_TYPE_REGISTERED ? (uintptr_t)a->message.registered : 0,
        a->category, text);
    return 0;
}

static int NVTX_API on_pop(nvtxDomainHandle_t domain)
{
    say("pop", (uintptr_t)domain, 0, "");
    return 0;
}

/* One slot of NVTX's table; an older NVTX has fewer. */
static void set(NvtxFunctionTable table, unsigned size, unsigned id, NvtxFunctionPointer function)
{
    if (id < size)
        *table[id] = function;
}

/* Called by NVTX, by this name. */
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned size = 0;
    const char *path = getenv("DELTARIG_NVTX_LOG");

    if (!path || !callbacks)
        return 0;
    log_file = fopen(path, "we");
    if (!log_file || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size))
        return 0;
    set(table, size, NVTX_CBID_CORE2_DomainCreateA, (NvtxFunctionPointer)on_domain);
    set(table, size, NVTX_CBID_CORE2_DomainRegisterStringA, (NvtxFunctionPointer)on_string);
    set(table, size, NVTX_CBID_CORE2_DomainNameCategoryA, (NvtxFunctionPointer)on_category);
    set(table, size, NVTX_CBID_CORE2_DomainRangePushEx, (NvtxFunctionPointer)on_push);
    set(table, size, NVTX_CBID_CORE2_DomainRangePop, (NvtxFunctionPointer)on_pop);
    return 1;
}

#else

/* Without NVTX's header there is nothing to inject into. */
int nvtx_inject_absent(void);
int nvtx_inject_absent(void)
{
    return 0;
}

#endif
