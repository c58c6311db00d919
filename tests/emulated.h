/*
 * Whether the tests run under an emulator of processes: scripts/check-aarch64 sets EMULATED. What
 * QEMU's does otherwise than Linux, each found by a test that failed:
 *
 *     posix_spawn   its vfork is a fork, so nobody learns that exec failed: a program that is
 *                   absent seems to start and to exit with 127
 *     signals       on aarch64 the frame lacks the processor's report of the access (ESR; 7.2 does,
 *                   11.1 has it): read or write stays open; an address that the host cannot have
 *                   is reported as 0
 *     time          code takes ten times as long, system calls do not
 */
#ifndef TESTS_EMULATED_H
#define TESTS_EMULATED_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool emulated(void)
{
    return getenv("EMULATED") != NULL;
}

#endif
