# How things are built; included by the Makefile. A changed header, flag, script or source rebuilds what
# depends on it and nothing else.

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
        -Wcast-qual -Wwrite-strings -Wvla -Wformat=2 -Wundef -Wdouble-promotion -Werror

# -ffp-contract=off: the reference and the generators promise the same bits on every machine.
CFLAGS   := -std=c11 $(OPT) -g -ffp-contract=off -fno-strict-aliasing -pthread -D_GNU_SOURCE \
            -ffile-prefix-map="$(CURDIR)"=. $(WARN)
# The CUDA toolkit is searched last and only for NVTX's header; deltarig itself needs none of it.
NVTX_INC := $(firstword $(wildcard $(B)/third_party/nvtx/include) \
              $(patsubst %/bin/nvcc,%/include,$(if $(NVCC),$(realpath $(NVCC)))))
CPPFLAGS := -I. -Iharness -I$(B)/gen $(if $(NVTX_INC),-idirafter $(NVTX_INC))
# -rdynamic: CPU kernel modules call back into the runtime inside the executable.
LDFLAGS  := -rdynamic -pthread
LDLIBS   := -ljansson -lxxhash -ldl -lm

HARNESS_C := $(sort $(wildcard harness/*/*.c harness/device/cpu/*.c))
HARNESS_S := $(sort $(wildcard harness/device/cpu/*.S))
REF_C     := $(sort $(wildcard reference/*.c))
OPS_C     := $(sort $(wildcard kernels/ops/*.c))
CU        := $(sort $(wildcard kernels/gb10/*.cu kernels/bench/*.cu))
OPERATORS := $(filter-out %_launch %_common,$(basename $(notdir $(OPS_C))))

LIB_C  := $(filter-out harness/cli/main.c,$(HARNESS_C)) $(REF_C) $(OPS_C)
LIB_O  := $(patsubst %,$(B)/obj/%.o,$(LIB_C) $(HARNESS_S)) $(B)/obj/gen/registry.o
MAIN_O := $(B)/obj/harness/cli/main.c.o

# --- objects --------------------------------------------------------------------------------------------

FLAGS_STAMP := $(B)/flags
$(FLAGS_STAMP): always
	@mkdir -p $(@D)
	@echo '$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS)' | cmp -s - $@ || \
	 echo '$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS)' > $@
.PHONY: always

# Which files there are. One that was removed is newer than nothing: without this, what it left in the build would go on being
# listed, launched and passed. The registry, which all programs link, is made again and names what is missing.
SOURCES_STAMP := $(B)/sources
$(SOURCES_STAMP): always
	@mkdir -p $(@D)
	@echo '$(LIB_C) $(HARNESS_S) $(CU)' | cmp -s - $@ || \
	 echo '$(LIB_C) $(HARNESS_S) $(CU)' > $@
	@scripts/remove-stale $(B) $(basename $(notdir $(CU)))

$(B)/obj/harness/record/provenance.c.o: CPPFLAGS += -DBUILD_FLAGS='"$(CC) -std=c11 $(OPT) -ffp-contract=off"'

$(B)/obj/%.c.o: %.c $(FLAGS_STAMP)
	@mkdir -p $(@D)
	@echo "  CC      $<"
	@$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/obj/%.S.o: %.S $(FLAGS_STAMP)
	@mkdir -p $(@D)
	@echo "  AS      $<"
	@$(CC) $(CPPFLAGS) -g -MMD -MP -c $< -o $@

$(B)/gen/registry.c: scripts/make-registry $(OPS_C) $(OPERATORS:%=cases/%.case) $(REF_C) \
                     $(wildcard reference/*.h kernels/ops/*.h) $(SOURCES_STAMP)
	@mkdir -p $(@D)
	@echo "  GEN     $@"
	@scripts/make-registry $(OPERATORS) > $@

# A missing case file is named here, not by make's "no rule" message.
cases/%.case:
	@echo "error: operator $* (kernels/ops/$*.c) has no cases: write $@" >&2; exit 1

$(B)/obj/gen/registry.o: $(B)/gen/registry.c $(FLAGS_STAMP)
	@mkdir -p $(@D)
	@$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/deltarig: $(MAIN_O) $(LIB_O)
	@echo "  LINK    $@"
	@$(CC) $(LDFLAGS) $^ -o $@ $(LDLIBS)

# --- kernel modules -------------------------------------------------------------------------------------

CPU_SHIM := $(wildcard harness/device/cpu/*.h harness/device/cpu/include/*)
CPU_SO   := $(patsubst %.cu,$(B)/kernels/cpu/%.so,$(notdir $(CU)))
FATBIN   := $(if $(NVCC),$(patsubst %.cu,$(B)/kernels/cuda/%.fatbin,$(notdir $(CU))))
PREPASS  := $(B)/tools/cuda-prepass
vpath %.cu kernels/gb10 kernels/bench

# HOSTCC: it runs while building; the rest may be built for another machine (scripts/check-aarch64).
PREPASS_C := $(sort $(wildcard scripts/cuda-*.c))
$(PREPASS): $(PREPASS_C) scripts/cuda-prepass.h
	@mkdir -p $(@D)
	@echo "  CC      $@"
	@$(HOSTCC) $(CFLAGS) $(PREPASS_C) -o $@

$(B)/kernels/cpu/%.so: %.cu $(PREPASS) scripts/build-cpu-module $(CPU_SHIM)
	@mkdir -p $(@D)
	@echo "  CPU     $<"
	@PREPASS="$(PREPASS)" scripts/build-cpu-module $< $@

$(B)/kernels/cuda/%.fatbin: %.cu scripts/build-cuda-module
	@mkdir -p $(@D)
	@echo "  NVCC    $<"
	@scripts/build-cuda-module $< $@

# The same kernels with multiply and add kept apart: only for comparing bits with the CPU device.
$(B)/kernels/cuda-nofma/%.fatbin: %.cu scripts/build-cuda-module
	@mkdir -p $(@D)
	@echo "  NVCC    $< (no fma)"
	@NOFMA=1 scripts/build-cuda-module $< $@

# --- sanitizer builds -----------------------------------------------------------------------------------

# The kernels are what is checked: their modules are instrumented, and the CPU device's runtime is told to
# present each fiber as a thread (harness/device/cpu/cpu_sanitizer.h). All other objects are the ordinary
# build's, so that the references stay as fast.
RUNTIME_C := $(sort $(wildcard harness/device/cpu/*.c) $(addprefix harness/device/, cpu.c fence.c kernel_build.c))
SHARED_O   = $(MAIN_O) $(filter-out $(RUNTIME_C:%=$(B)/obj/%.o),$(LIB_O))

define sanitizer_build # NAME (asan), GCC's name (address), macro
$(B)/$(1)/obj/%.c.o: %.c $(FLAGS_STAMP)
	@mkdir -p $$(@D)
	@echo "  CC      $$< ($(1))"
	@$(CC) $(CPPFLAGS) $(CFLAGS) -D$(3) -fno-omit-frame-pointer -MMD -MP -c $$< -o $$@

$(B)/$(1)/deltarig: $(RUNTIME_C:%=$(B)/$(1)/obj/%.o) $$(SHARED_O)
	@echo "  LINK    $$@"
	@$(CC) $(LDFLAGS) -fsanitize=$(2) $$^ -o $$@ $(LDLIBS)

$(B)/$(1)/kernels/cpu/%.so: %.cu $(PREPASS) scripts/build-cpu-module $(CPU_SHIM)
	@mkdir -p $$(@D)
	@echo "  CPU     $$< ($(1))"
	@PREPASS="$(PREPASS)" scripts/build-cpu-module $$< $$@ --sanitize $(2)

.PHONY: $(B)/$(1)/all
$(B)/$(1)/all: $(B)/$(1)/deltarig $(CPU_SO:$(B)/%.so=$(B)/$(1)/%.so)

SANITIZER_DEPS += $(RUNTIME_C:%=$(B)/$(1)/obj/%.d) $(CPU_SO:$(B)/%.so=$(B)/$(1)/%.d)
endef
$(eval $(call sanitizer_build,asan,address,CPU_ASAN))
$(eval $(call sanitizer_build,tsan,thread,CPU_TSAN))

# --- tests ----------------------------------------------------------------------------------------------

TEST_C    := $(sort $(wildcard tests/test_*.c))
TEST_BIN  := $(patsubst tests/%.c,$(B)/tests/%,$(TEST_C))
# Each tests/<folder>/*.c is a shared object for one test (an NVTX recorder, a driver that fails).
TEST_SO   := $(patsubst tests/%.c,$(B)/tests/%.so,$(sort $(wildcard tests/*/*.c)))
TEST_CPU  := $(patsubst tests/cpu/%.cu,$(B)/tests/cpu/%.so,$(sort $(wildcard tests/cpu/*.cu)))
# Our own kernels again, for the test that counts the bytes they touch.
TEST_CPU  += $(patsubst %.cu,$(B)/kernels/cpu-counting/%.so,$(notdir $(CU)))

$(B)/tests/test_%: $(B)/obj/tests/test_%.c.o $(LIB_O)
	@mkdir -p $(@D)
	@echo "  LINK    $@"
	@$(CC) $(LDFLAGS) $^ -o $@ -lcmocka $(LDLIBS)

$(B)/tests/%.so: tests/%.c $(FLAGS_STAMP)
	@mkdir -p $(@D)
	@echo "  SO      $<"
	@$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -shared -MMD -MP -MF $(@:.so=.d) $< -o $@

$(B)/tests/cpu/%.so: tests/cpu/%.cu $(PREPASS) scripts/build-cpu-module $(CPU_SHIM)
	@mkdir -p $(@D)
	@echo "  CPU     $<"
	@PREPASS="$(PREPASS)" scripts/build-cpu-module $< $@

$(B)/kernels/cpu-counting/%.so: %.cu $(PREPASS) scripts/build-cpu-module scripts/counting-c++ $(CPU_SHIM)
	@mkdir -p $(@D)
	@echo "  COUNT   $<"
	@PREPASS="$(PREPASS)" CXX=scripts/counting-c++ scripts/build-cpu-module $< $@

DEPS := $(patsubst %.o,%.d,$(LIB_O) $(MAIN_O)) $(TEST_SO:.so=.d) $(CPU_SO:.so=.d) $(FATBIN:.fatbin=.d) \
        $(TEST_CPU:.so=.d) $(patsubst tests/%.c,$(B)/obj/tests/%.c.d,$(TEST_C)) $(SANITIZER_DEPS)
-include $(wildcard $(DEPS))

# --- a second opinion on warnings -----------------------------------------------------------------------

CLANG_OK := $(patsubst %,$(B)/clang/%.ok,$(LIB_C) harness/cli/main.c $(TEST_C))
$(B)/clang/%.c.ok: %.c $(FLAGS_STAMP)
	@mkdir -p $(@D)
	@clang $(CPPFLAGS) $(CFLAGS) -MMD -MP -MF $(@:.ok=.d) -MT $@ -fsyntax-only $<
	@touch $@
-include $(wildcard $(CLANG_OK:.ok=.d))
