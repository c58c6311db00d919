# What can be asked for; included by the Makefile. Goals that set up the machine run make again, so that
# what was just installed is seen.

.PHONY: all tests lint-clang setup verify check aarch64 asan tsan nofma bench baseline clean help
.SECONDARY:

all: $(B)/deltarig $(CPU_SO) $(FATBIN)

tests: all $(TEST_BIN) $(TEST_SO) $(TEST_CPU)

lint-clang: $(CLANG_OK)

setup:
	@scripts/setup build

verify:
	@scripts/setup build
	@$(MAKE) -j$(JOBS) all
	@scripts/verify $(B) $(DEVICE)

check:
	@scripts/setup check
	@$(MAKE) -j$(JOBS) tests
	@scripts/check $(B)

# The smoke cases with kernels that AddressSanitizer or ThreadSanitizer watches, on the CPU device.
asan tsan:
	@scripts/setup build
	@$(MAKE) -j$(JOBS) $(B)/$@/all
	@$(B)/$@/deltarig verify --device cpu --tier smoke --out $(B)/$@/smoke.jsonl

aarch64:
	@scripts/setup build
	@$(MAKE) -j$(JOBS) all
	@scripts/check-aarch64 $(B)

# Needs nvcc: the modules whose bits `deltarig compare --bits` holds against the CPU device's.
nofma: $(FATBIN:$(B)/kernels/cuda/%=$(B)/kernels/cuda-nofma/%)

bench: all
	@$(B)/deltarig bench --tier perf --device $(DEVICE)

baseline: all
	@scripts/baseline $(B) $(DEVICE)

clean:
	rm -rf $(B)

help:
	@sed -n 's/^# \{0,1\}//p' Makefile | sed -n '1,13p'
