# Build rules; included by the Makefile.

$(B)/obj/%.c.o: %.c scripts/rules.mk Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/obj/%.S.o: %.S scripts/rules.mk Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -g -MMD -MP -c $< -o $@

.PHONY: all
all: $(B)/deltarig

-include $(patsubst %.o,%.d,$(LIB_O) $(MAIN_O))
