# race.mk - racecheck: the emulated device's kernels with every access to memory looked at
# (tests/race/race.h). Kernels, rules, emulator and fake device are compiled again for it; all else
# is what `make test` links. The compiler's calls are answered by tests/race/race_hooks.c, not by
# its own library: nothing is linked with -fsanitize=thread.

race_sources := $(filter tests/race/race%.c,$(filter-out %_test.c,$(test_sources)))
race_watched := tests/support/device/fake_device.c $(filter engine/rules/%.c,$(room_sources)) \
    engine/ops/scalar.c engine/ops/philox.c engine/ops/contraction.c tests/race/planted.c
race_objects := $(addprefix $(BUILD)/race/,$(race_sources:.c=.o) $(race_watched:.c=.o) \
    tests/support/device/emulator.o tests/support/device/emulator_halves.o tests/support/device/emulator_hopper.o)
race_others := $(addprefix $(BUILD)/,$(filter-out %/emulator.o %/emulator_halves.o %/emulator_hopper.o \
    %/fake_device.o,$(test_support)))
# What runs kernels; of the others no call reaches one.
race_names := $(filter-out %/limbs_test %/loader_test %/rewrite_test,$(filter \
    tests/engine/cuda/%_test,$(test_names)))
race_tests := $(addprefix $(BUILD)/race/,$(race_names))
RACE_SECONDS ?= 1800

$(BUILD)/race/%.o: variant := -DRACECHECK
# Little is optimized: an access is one that the source has.
$(race_watched:%.c=$(BUILD)/race/%.o): variant := -O1 -DRACECHECK $(gcc_only) -fsanitize=thread
$(BUILD)/race/%.o: %.c mk/compile.mk | $(ready)
	$(compile)
$(BUILD)/race/tests/%_test: $(BUILD)/tests/%_test.o $(race_objects) $(race_others) \
    $(BUILD)/liblockstep.a
	$(link)
$(BUILD)/race/tests/%_test: extra_libs := -lcmocka
# A test of the detector itself is one of all tests.
$(BUILD)/tests/race/race_test: $(race_objects) $(BUILD)/race/tests/race/race_test.o $(race_others) \
    $(BUILD)/liblockstep.a
	$(link)

$(race_objects) $(BUILD)/race/tests/race/race_test.o: | $(BUILD)/setup/test.ok

racecheck: $(race_tests) $(BUILD)/tests/race/race_test ## the CUDA kernels' races, unwritten reads and steps outside, emulated
	$(Q)$(call run_tests,$(BUILD)/race,$(RACE_SECONDS)) $^

.PHONY: racecheck

-include $(wildcard $(race_objects:.o=.d) $(BUILD)/race/tests/race/race_test.d)
