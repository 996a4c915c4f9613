# lint.mk - the rules that a program can check. Checks leave stamps, so only changed files are
# checked again; a tool that is missing is named and its check skipped aloud.

# Formatting and findings differ between versions: 14 is the one this house is written with.
lint_version := 14
lint_sources := $(room_sources) $(test_sources) $(bench_sources) $(wildcard lockstep.c)
lint_headers := $(sort $(shell find $(rooms) tests bench -name '*.h' -not -path '*/node_modules/*'))

lint: lint-format lint-tidy lint-source lint-globals lint-scripts ## format, clang-tidy, arrows between folders, sizes, names

lint-format: $(BUILD)/lint/format.ok
lint-tidy: $(addprefix $(BUILD)/lint/,$(addsuffix .tidy,$(lint_sources)))

# clang-tidy is the dearest of all checks. .ci/run affords the whole product, and of the tests and
# benches a quarter, by the number of the commit.
tidy_turns := 4
tidy_turn = $(shell git rev-list --count HEAD 2>/dev/null || echo 0)
tidy_turn_sources = $(room_sources) $(wildcard lockstep.c) \
    $(shell printf '%s\n' $(test_sources) $(bench_sources) | \
    awk -v turn=$(tidy_turn) -v turns=$(tidy_turns) 'NR % turns == turn % turns')
lint-turn: lint-format lint-source lint-globals lint-scripts ## lint, but clang-tidy on a quarter of the tests
	$(Q)$(MAKE) --no-print-directory $(patsubst %,$(BUILD)/lint/%.tidy,$(tidy_turn_sources))

# Many files at once: to start the tool takes longer than to look at a file. A new layout or tool
# concerns all files, else only those that changed since all passed.
format_files = $(filter %.c %.h,$(if $(filter .clang-format scripts/lint-tool,$?),$^,$?))
$(BUILD)/lint/format.ok: $(lint_sources) $(lint_headers) .clang-format scripts/lint-tool | $(BUILD)/setup/lint.ok
	@mkdir -p $(@D)
	$(Q)printf '%s\n' $(format_files) | \
	    xargs -n 64 -P $(JOBS) scripts/lint-tool $(lint_version) clang-format --dry-run -Werror
	@touch $@

# The object file stands for the headers: it is newer than all of them.
$(BUILD)/lint/%.c.tidy: %.c $(BUILD)/%.o .clang-tidy scripts/lint-tool | $(BUILD)/setup/lint.ok
	@mkdir -p $(@D)
	$(call say,TIDY,$<)
	$(Q)scripts/lint-tool $(lint_version) clang-tidy --quiet $< -- -std=c17 -D_GNU_SOURCE -I. \
	    -fopenmp $(NUMERICS) $(if $(filter bench/%,$<),$(openblas_cflags)) $(call isa,$<)
	@touch $@

lint-source:
	$(Q)scripts/kinds --check
	$(Q)scripts/kinds --sizes
	$(Q)scripts/check-layers $(rooms)
	$(Q)scripts/check-house $(rooms)
	$(Q)scripts/arrows --check
	$(Q)scripts/check-repeats $(rooms)
	$(Q)scripts/check-source $(lint_sources) $(lint_headers) $(cuda_sources)

lint-globals: $(BUILD)/liblockstep.a $(BUILD)/lockstep.o
	$(Q)scripts/check-globals $<
	$(Q)scripts/check-reached $^ $(rooms)
	$(Q)$(if $(filter x86_64 amd64,$(MACHINE)),scripts/check-trust $(BUILD) $(rooms), \
	    echo "lint: skipped: docs/TRUST.md counts the kernels of x86-64")
	$(Q)scripts/check-walks $(BUILD) $(rooms)

lint-scripts: | $(BUILD)/setup/lint.ok
	$(Q)if command -v shellcheck >/dev/null; then shellcheck $(shell grep -l '^.!/bin/sh' scripts/*) packaging/slurm/*.sh .ci/run; \
	    else echo "lint: skipped: shellcheck is not installed"; fi

.PHONY: lint lint-turn lint-format lint-tidy lint-source lint-globals lint-scripts

count: ## lines of product and tests by room, bytecode and tables apart, and the share of comments
	$(Q)scripts/count $(rooms)

.PHONY: count
