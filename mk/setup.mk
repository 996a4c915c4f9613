# setup.mk - what must be on the machine before something is built. scripts/setup finds it and,
# for the targets that a newcomer types first, installs it; the stamps keep later runs quick.

installing := $(filter arm demo test judges check asan asan-turn soak fuzz bench lint lint-turn,$(MAKECMDGOALS))
setup_mode := $(if $(installing),--install,--check)

# All that the goals will want is told and installed at once and first, not in the midst of the build.
wanted_all := build
wanted_judges := build test judges node
wanted_demo := build $(if $(filter anvil,$(LEDGER)),node)
wanted_test := build test
wanted_check := build test
wanted_asan := $(wanted_test)
wanted_asan-turn := $(wanted_test)
wanted_soak := $(wanted_test) deb arm
wanted_bench := build test bench $(if $(TORCH),torch)
wanted_fuzz := build fuzz
wanted_lint := build test bench lint
wanted_lint-turn := $(wanted_lint)
wanted_install := build
wanted_deb := build deb
wanted_arm := build test deb arm
wanted := $(foreach goal,$(or $(MAKECMDGOALS),all),$(wanted_$(goal)))

# The compiler first: on a fresh machine "make -j" would otherwise install everything at once.
$(filter-out $(ready),$(patsubst %,$(BUILD)/setup/%.ok,test bench fuzz lint torch judges deb evm arm)): | $(ready)

$(BUILD)/setup/%.ok: scripts/setup
	@mkdir -p $(@D)
	$(Q)CC="$(CC)" scripts/setup $(setup_mode) $* $(sort $(filter-out $*,$(wanted)))
	@touch $@

$(BUILD)/setup/judges.ok: tests/judges/package.json tests/judges/package-lock.json
# The chain node and the Solidity compiler of the EVM tests, exactly as the lock file says.
$(BUILD)/setup/evm.ok: tests/evm/package.json tests/evm/package-lock.json

# Programs and libraries that judge our results and are too heavy for every newcomer. "make test"
# asks those that are here and says which it skipped.
judges: $(BUILD)/setup/judges.ok $(BUILD)/setup/evm.ok ## install the independent judges: PyTorch, numpy, ONNX, promtool, Chromium, EVM nodes, zsh, fish, lintian, Open MPI, MPICH
	@echo "judges: all are here; make test asks them"

.PHONY: judges
