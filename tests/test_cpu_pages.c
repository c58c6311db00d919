/*
 * Guards are whole pages at every page size that an aarch64 kernel may be built with. What lies
 * behind them at run time, test_cpu_faults shows at the machine's own size.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <unistd.h>

#include "device/cpu/cpu_worker.h"

static void guards_are_whole_pages_and_stacks_an_odd_number_apart(void **state)
{
    static const size_t page[] = {4096, 16384, 65536};

    (void)state;
    print_message("  this machine has pages of %ld bytes\n", sysconf(_SC_PAGESIZE));
    for (size_t i = 0; i < sizeof page / sizeof *page; i++) {
        size_t guard = cpu_guard_bytes(page[i]);

        assert_int_equal(guard % page[i], 0);
        assert_int_equal(CPU_STACK_BYTES % page[i], 0);
        assert_int_equal((guard + CPU_STACK_BYTES) / page[i] % 2, 1);
        assert_in_range(guard, 65536, 65536 + page[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guards_are_whole_pages_and_stacks_an_odd_number_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
