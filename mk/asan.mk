# asan.mk - a share of `make asan` that .ci/run affords: the compiled tests of some folders, with the
# code of these folders sanitized and all else as it is. The number of the commit chooses which: ten
# commits one after the other have them all.

turns := 10
asan_turn ?= $(shell echo $$(($$(git rev-list --count HEAD 2>/dev/null || echo 0) % $(turns))))
asan_turn := $(asan_turn)
# Every tenth of the folders that tests mirror; a new folder has its turn by itself.
turn_folders := $(shell printf '%s\n' $(sort $(dir $(filter-out tests/race/% tests/ptx/% \
    tests/contracts/%,$(host_names)))) | awk -v turn=$(asan_turn) -v turns=$(turns) 'NR % turns == turn')
turn_names := $(foreach name,$(host_names),$(if $(filter $(dir $(name)),$(turn_folders)),$(name)))
turn_sources := $(foreach file,$(room_sources),$(if $(filter tests/$(dir $(file)) \
    tests/fuzz/$(firstword $(subst /, ,$(file)))/,$(turn_folders)),$(file)))
# What asks whether it is sanitized speaks for the whole program.
turn_sources := $(sort $(turn_sources) $(shell grep -rl --include='*.c' __SANITIZE_ADDRESS__ $(rooms)))
turn := $(BUILD)/turn/$(asan_turn)
turn_tests := $(turn_names:%=$(turn)/%)
# A test that takes longer is skipped by name; make asan has it.
TURN_SECONDS ?= 40

# Private: what a test is linked with is compiled as ever.
$(turn)/%: private variant := $(sanitized) $(gcc_only) -fsanitize=address,undefined
$(turn)/%: LDFLAGS += $(quick_ld)
# An archive: what a test has of its own takes the place of a member.
$(turn)/libturn.a: $(turn_sources:%.c=$(BUILD)/asan/%.o)
	$(archive)
$(filter %_test,$(turn_tests)): extra_libs := -lcmocka
$(turn)/tests/proofs/bundle/fault_test: extra_libs := -lcmocka $(addprefix -Wl$(comma)--wrap=,$(faults))
$(turn_tests): $(turn)/%: $(BUILD)/asan/%.o $(turn)/libturn.a $(BUILD)/tests/libsupport.a $(BUILD)/liblockstep.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -pie $(LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) \
	    -Wl,--end-group $(extra_libs) $(LDLIBS)
$(filter %_fuzz,$(turn_tests)): $(BUILD)/tests/support/fuzz_replay.o

turn_needs := $(emulated_plugin) $(fake_nvml) $(preloads) $(liars)
asan-turn: $(turn_tests) $(program) $(turn_needs) ## a tenth of asan's compiled tests, by turns: asan_turn=0 to 9
	@echo "asan-turn $(asan_turn): $(turn_folders)"
	$(Q)ln -sfn $(abspath $(program)) $(turn)/lockstep
	$(Q)mkdir -p $(turn)/tests && ln -sfn $(abspath $(turn_needs)) $(turn)/tests/
	$(Q)$(call run_tests,$(turn),$(TURN_SECONDS)) -s $(turn_tests)

.PHONY: asan-turn
