/* deltarig devices: what this machine can run kernels on. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "device/device.h"
#include "report/table.h"

#define MAX_DEVICES 64

struct args {
    bool json;
};

static const struct option_spec specs[] = {
    {"--json", OPTION_FLAG, offsetof(struct args, json), NULL, "one JSON object a line"},
    {0},
};

static const struct usage usage = {
    .synopsis = "deltarig devices [options]",
    .about = "Lists the devices that --device takes.\n"
             "Exit codes: 0 there is one, 2 bad input, 3 there is none.\n",
    .specs = specs,
    .max_words = 0,
};

static int print_json(const struct device_info *d)
{
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:I, s:I, s:b}", "spec", d->spec,
                          "name", d->name, "driver", d->driver, "uuid", d->uuid, "cc_major",
                          d->cc_major, "cc_minor", d->cc_minor, "sm_count", (int)d->sm_count,
                          "memory_bytes", (json_int_t)d->memory_bytes, "l2_bytes",
                          (json_int_t)d->l2_bytes, "emulated", d->kind == DEVICE_CPU);
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;

    json_decref(o);
    if (!text) {
        fprintf(stderr, "deltarig: devices: %s: a name that is not UTF-8\n", d->spec);
        return -1;
    }
    puts(text);
    free(text);
    return 0;
}

static void print_table_of(const struct device_info *d, unsigned n)
{
    static const struct column columns[] = {
        {"device", 'l'}, {"name", 'l'}, {"cc", 'r'},     {"SMs", 'r'},
        {"memory", 'r'}, {"L2", 'r'},   {"driver", 'l'},
    };
    struct table t;
    struct text text;

    table_init(&t, columns, sizeof columns / sizeof columns[0]);
    for (unsigned i = 0; i < n; i++) {
        table_cell(&t, "%s", d[i].spec);
        table_cell(&t, "%s", d[i].name);
        if (d[i].kind == DEVICE_CPU)
            table_cell(&t, "-");
        else
            table_cell(&t, "%d.%d", d[i].cc_major, d[i].cc_minor);
        table_cell(&t, "%u", d[i].sm_count);
        table_cell(&t, "%.1f GiB", (double)d[i].memory_bytes / 0x1p30);
        table_cell(&t, "%.1f MiB", (double)d[i].l2_bytes / 0x1p20);
        table_cell(&t, "%s", d[i].driver[0] ? d[i].driver : "-");
    }
    text_init(&text);
    table_text(&t, &text);
    fputs(text.data, stdout);
    text_release(&text);
    table_release(&t);
}

int cmd_devices(int argc, char **argv)
{
    struct device_info infos[MAX_DEVICES];
    char why[1024] = "";
    struct words words = {0};
    struct args a = {0};
    enum options_outcome parsed = options_parse(&usage, argc, argv, &a, &words);
    unsigned n;
    int code = EXIT_PASS;

    free(words.at);
    if (parsed != OPTIONS_OK)
        return parsed == OPTIONS_HELP ? EXIT_PASS : EXIT_INPUT;
    n = device_enumerate(infos, MAX_DEVICES, why, sizeof why);
    if (a.json) {
        for (unsigned i = 0; i < n; i++)
            if (print_json(&infos[i]) < 0)
                code = EXIT_FAIL;
    } else {
        print_table_of(infos, n);
    }
    if (why[0])
        fprintf(stderr, "deltarig: no CUDA device: %s\n", why);
    return n ? code : EXIT_NOTHING;
}
