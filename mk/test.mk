# test.mk - unit tests, fuzz targets and their sanitized twins. scripts/run-tests runs what it is
# given in parallel, each with a time limit, and ends with "N passed, N failed[, N skipped]".

# Most take seconds. A machine that is slow, or busy, is no failure.
TEST_SECONDS ?= 900
FUZZ_SECONDS ?= 60
SOAK_MINUTES ?= 10
scripted := $(sort $(shell find tests -not -path '*/node_modules/*' \
    \( -name '*_test.sh' -o -name '*_test.py' -o -name '*_test.mjs' \)))
host_names := $(test_names) $(fuzz_names)
host_tests := $(addprefix $(BUILD)/,$(host_names)) $(scripted)
# The race detector has the place of a sanitizer: mk/race.mk.
asan_tests := $(addprefix $(BUILD)/asan/,$(filter-out tests/race/%,$(host_names))) $(scripted)
run_tests = scripts/run-tests -b $1 -j $(JOBS) -t $2

$(test_sources:%.c=$(BUILD)/%.o) $(test_sources:%.c=$(BUILD)/asan/%.o): | $(BUILD)/setup/test.ok

# More than two hundred links with one archive: a linker that is quicker than the usual one makes
# them where it is. Not with -flto, which wants the compiler's own.
quick_ld := $(if $(findstring -flto,$(CFLAGS) $(LDFLAGS)),,$(firstword $(foreach name,gold lld, \
    $(if $(shell command -v ld.$(name)),-fuse-ld=$(name)))))
$(BUILD)/tests/% $(BUILD)/asan/tests/%: LDFLAGS += $(quick_ld)

test_link = $(BUILD)$1/tests/%_test: $(BUILD)$1/tests/%_test.o $(addprefix $(BUILD)$1/,$(test_support)) \
    $(BUILD)$1/liblockstep.a
$(BUILD)/tests/%_test $(BUILD)/asan/tests/%_test: extra_libs := -lcmocka
# fault_test makes these fail in turn.
comma := ,
faults := malloc calloc realloc free open read pread write close fsync fchmod fstat lstat rename \
    renameat2 link mkdir realpath __realpath_chk flock opendir ZSTD_createCCtx ZSTD_createDCtx \
    EVP_CIPHER_CTX_new
$(BUILD)/tests/proofs/bundle/fault_test $(BUILD)/asan/tests/proofs/bundle/fault_test: extra_libs := -lcmocka \
    $(addprefix -Wl$(comma)--wrap=,$(faults))
$(call test_link,)
	$(link)
$(call test_link,/asan)
	$(link)

# What the tests share, for programs that take only some of it: fuzz targets and benchmarks.
support_archive = $(BUILD)$1/tests/libsupport.a: $(addprefix $(BUILD)$1/,$(test_support))
$(call support_archive,)
	$(archive)
$(call support_archive,/asan)
	$(archive)
$(call support_archive,/fuzz)
	$(archive)

# Without libFuzzer a fuzz target is a test that replays its corpus, and mutations of it.
replay_link = $(BUILD)$1/tests/fuzz/%_fuzz: $(BUILD)$1/tests/fuzz/%_fuzz.o \
    $(BUILD)$1/tests/support/fuzz_replay.o $(BUILD)$1/tests/libsupport.a $(BUILD)$1/liblockstep.a
$(call replay_link,)
	$(link)
$(call replay_link,/asan)
	$(link)
$(BUILD)/fuzz/tests/fuzz/%_fuzz: variant := $(sanitized) -fsanitize=fuzzer,address,undefined
$(BUILD)/fuzz/tests/fuzz/%_fuzz: $(BUILD)/fuzz/tests/fuzz/%_fuzz.o \
    $(BUILD)/fuzz/tests/libsupport.a $(BUILD)/fuzz/liblockstep.a
	$(link)

# For LD_PRELOAD, in tests/whole: kills a program at a chosen call to the system; hurries its clock.
preloads := $(BUILD)/tests/sudden_death.so $(BUILD)/tests/fast_clock.so
$(preloads): $(BUILD)/tests/%.so: $(BUILD)/pic/tests/whole/%.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -shared -o $@ $^
test-needs check asan soak: $(preloads)

# The whole program, but a solver in it that lies about a sum, or a judge who says the opposite; and
# the program of a long sum.
liars := $(BUILD)/tests/lying_solver $(BUILD)/tests/long_sum_tape $(BUILD)/tests/flipped_judge
$(BUILD)/tests/lying_solver: LDFLAGS += -Wl,--wrap=fraud_proof_reply
$(BUILD)/tests/flipped_judge: LDFLAGS += -Wl,--wrap=verdict_of_step
$(BUILD)/tests/lying_solver $(BUILD)/tests/flipped_judge: $(BUILD)/lockstep.o
$(liars): $(BUILD)/tests/%: $(BUILD)/tests/whole/%.o $(BUILD)/tests/libsupport.a $(BUILD)/liblockstep.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS)
test-needs check asan soak: $(liars)

# An example of a kind is linked with it: tests/house.
test-needs check soak: $(BUILD)/tests/libsupport.a
asan: $(BUILD)/asan/tests/libsupport.a

# npm alone is some 400 packages of Debian: where it is not, its packages belong to the judges.
evm_ready := $(if $(shell command -v npm),$(BUILD)/setup/evm.ok,no-npm)
no-npm:
	@echo "test: skipped: tests with an EVM node or a Solidity compiler; make judges installs them"

# Benchmarks are tried where their peer is: tests/bench/bench_test.sh.
test-needs soak: $(if $(shell pkg-config --exists openblas 2>/dev/null && echo yes),$(addprefix $(BUILD)/,$(bench_names)))

# Each test runs as soon as it is built. A few light ones come first, so that results are seen while
# most is not yet compiled; then the dearest, which take minutes by themselves, so that at the end all
# cores have something to do; beside the first of them the others are compiled. BUILD/results/times
# shows what belongs here.
light := $(filter tests/base/hex_test tests/base/reader_test tests/proofs/hash/% tests/chain/codec/%, \
    $(test_names))
dearest := $(filter tests/contracts/current_test.sh,$(scripted))
dear := $(filter %/cuda/kernels/kernels_test,$(test_names)) \
    $(filter tests/prover/commands/probe_test.py,$(scripted))
# Tests that mostly wait, as tests/times.txt says, for a disk, a clock or another process: two of them
# have the place of one. The longest come first.
waiting_jobs := 2
waits := $(shell sort -k2,2rn tests/times.txt | awk '!/^\#/ && $$2 > 2 * $$1 + 3 { print $$3 }')
waiting := $(foreach name,$(waits),$(filter $(name),$(filter-out $(light) $(dearest) $(dear), \
    $(scripted) $(host_names))))
others := $(filter-out $(light) $(dearest) $(dear) $(waiting),$(scripted) $(host_names))
runs := $(foreach name,$(light) $(dearest) $(dear) $(waiting) $(others),$(if \
    $(filter $(scripted),$(name)),,$(BUILD)/)$(name))
run_part = scripts/run-tests -a -m $1 -b $(BUILD) -j $(JOBS) -t $(TEST_SECONDS)
waiting_programs := $(foreach name,$(waiting),$(if $(filter $(scripted),$(name)),,$(BUILD)/)$(name))
# No file is made by this name, so each runs each time.
ran := $(BUILD)/ran
$(host_names:%=$(ran)/%): $(ran)/%: $(BUILD)/%
	$(Q)$(call run_part,one) $<
$(scripted:%=$(ran)/%): $(ran)/%: %
	$(Q)$(call run_part,one) $<
$(addprefix $(ran)/,$(dear) $(others)): | test-needs
$(addprefix $(ran)/,$(light)): | test-begins
test-begins:
	$(Q)$(call run_part,begin) $(runs)

# All that is missing is installed before. Make starts all that it can before it looks at what has
# become possible: so the light ones are a make of their own.
test: | $(BUILD)/setup/test.ok $(evm_ready) ## run all tests; installs what is missing first
	+$(Q)$(MAKE) --no-print-directory test-light
	+$(Q)$(MAKE) --no-print-directory test-rest
test-light: $(addprefix $(ran)/,$(light))
test-needs: $(program)
test-waiting: $(waiting_programs) | test-needs
	$(Q)scripts/run-tests -m some -b $(BUILD) -j $(waiting_jobs) -t $(TEST_SECONDS) $(waiting_programs)
test-rest: $(addprefix $(ran)/,$(dearest)) test-waiting $(host_names:%=$(BUILD)/%) $(addprefix $(ran)/,$(dear) $(others))
	$(Q)$(call run_part,end) $(runs)

quick_tests := $(filter-out %_slow_test %_slow_test.sh %_slow_test.py %_slow_test.mjs,$(host_tests))
check: $(quick_tests) $(program) ## run the fast tests only, for the inner loop
	$(Q)TEST_QUICK=1 $(call run_tests,$(BUILD),60) $(quick_tests)

asan: $(asan_tests) $(program:$(BUILD)/%=$(BUILD)/asan/%) $(evm_ready) ## the tests under address and undefined-behaviour sanitizers
	$(Q)$(call run_tests,$(BUILD)/asan,$(TEST_SECONDS)0) $(asan_tests)

soak: $(host_tests) $(program) $(evm_ready) ## the long version of the tests (SOAK_MINUTES=10)
	$(Q)SOAK_MINUTES=$(SOAK_MINUTES) $(call run_tests,$(BUILD),$(SOAK_MINUTES)000) $(host_tests)

fuzz: $(addprefix fuzz/,$(notdir $(fuzz_names))) ## fuzz every target (FUZZ_SECONDS=60 each; one: make fuzz/NAME_fuzz)
$(foreach name,$(fuzz_names),$(eval fuzz/$(notdir $(name)): $(BUILD)/fuzz/$(name)))
fuzz/%:
	@mkdir -p $(BUILD)/fuzz/corpus/$* fixtures/corpus/$(*:_fuzz=)
	$(Q)cd $(BUILD)/fuzz && $(abspath $<) -max_total_time=$(FUZZ_SECONDS) -timeout=10 \
	    -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 corpus/$* \
	    $(CURDIR)/fixtures/corpus/$(*:_fuzz=)

# What a newcomer does, on systems with nothing but make and a shell: root and a network are needed.
RELEASES ?= bookworm trixie jammy noble
FRESH_GOALS ?= demo test
fresh: ## the two commands in bare systems of RELEASES (as root, by debootstrap)
	$(Q)for release in $(RELEASES); do scripts/fresh $(BUILD)/fresh $$release $(FRESH_GOALS) || exit 1; done

.PHONY: test test-begins test-light test-needs test-waiting test-rest no-npm check asan soak fuzz fresh
