# deltarig.
#
#   make verify    set up, build, run every smoke and full case on the default device, report
#   make check     set up, build, run every check and test of the project itself
#   make aarch64   the CPU device's cases and the tests under an emulated aarch64, against this machine's bits
#   make           build only: build/deltarig and the kernel modules
#   make bench     time the perf cases           make baseline   rewrite results/baseline
#   make asan, make tsan    the smoke cases under AddressSanitizer, under ThreadSanitizer (CPU device)
#   make clean     remove build/
#
# Everything that is built lies under build/. Variables: CC, OPT, JOBS, DEVICE (cpu, cuda:N, default).

MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:

ifeq ($(origin CC),default)
CC := gcc
endif
HOSTCC ?= $(CC)
B      ?= build
OPT    ?= -O2
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
DEVICE ?= default
NVCC   := $(shell command -v nvcc 2>/dev/null)

include scripts/rules.mk
include scripts/goals.mk
