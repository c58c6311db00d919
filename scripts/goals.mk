# What can be asked for; included by the Makefile. Goals that set up the machine run make again, so that
# what was just installed is seen.

.PHONY: all tests setup verify check bench baseline clean help
.SECONDARY:

all: $(B)/deltarig $(CPU_SO) $(FATBIN)

tests: all $(TEST_BIN) $(TEST_SO) $(TEST_CPU)

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

bench: all
	@$(B)/deltarig bench --tier perf --device $(DEVICE)

baseline: all
	@scripts/baseline $(B) $(DEVICE)

clean:
	rm -rf $(B)

help:
	@sed -n 's/^# \{0,1\}//p' Makefile | sed -n '1,12p'
