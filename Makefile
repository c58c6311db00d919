# deltarig. `make verify` runs the main job, `make check` all tests; both set up what is missing.
# See README.md. Everything that is built lies under build/.

MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:

CC       ?= gcc
ifeq ($(origin CC),default)
CC       := gcc
endif
B        := build
WARN     := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
            -Wcast-qual -Wwrite-strings -Wvla -Wformat=2 -Wundef -Wdouble-promotion
OPT      ?= -O2
CFLAGS   := -std=c11 $(OPT) -g -ffp-contract=off -fno-strict-aliasing -pthread -D_GNU_SOURCE \
            -ffile-prefix-map=$(CURDIR)=. $(WARN) $(if $(DEVELOPER),-Werror)
CPPFLAGS := -I. -Iharness -I$(B)/gen
LDLIBS   := -ljansson -lxxhash -ldl -lpthread -lm
NVCC     := $(shell command -v nvcc 2>/dev/null)

HARNESS_C := $(sort $(wildcard harness/*/*.c harness/device/*/*.c))
HARNESS_S := $(sort $(wildcard harness/device/*/*.S))
REF_C     := $(sort $(wildcard reference/*.c))
OPS_C     := $(sort $(wildcard kernels/ops/*.c))
CU        := $(sort $(wildcard kernels/gb10/*.cu))
LIB_O     := $(patsubst %,$(B)/obj/%.o,$(filter-out harness/cli/main.c,$(HARNESS_C)) $(HARNESS_S) $(REF_C) $(OPS_C)) \
             $(B)/obj/gen/registry.c.o
MAIN_O    := $(B)/obj/harness/cli/main.c.o

include scripts/rules.mk
