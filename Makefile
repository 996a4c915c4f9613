# Lockstep. "make help" lists the targets, docs/TESTING.md says what each proves.
#
# Sources are found, not listed: every .c file of a room goes into build/liblockstep.a, every
# tests/**/*_test.c becomes a test, every bench/*_bench.c a benchmark, every tests/fuzz/**/*_fuzz.c
# a fuzz target. "make" alone builds the program; what only tests, benchmarks or a GPU need is built
# by their own targets. Your settings (CC, CFLAGS, NVCC, ...) go on the command line or in config.mk.

.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
all:

-include config.mk

ifeq ($(origin CC),default)
CC := gcc
endif
CFLAGS ?= -O2 -g
BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
SANITIZE ?=
MACHINE ?= $(shell uname -m)
JOBS ?= $(shell nproc)
MACHINE := $(MACHINE)
JOBS := $(JOBS)
# Many tests wait for the clocks of real programs: two more at once than there are cores.
lanes := $(if $(filter test%,$(MAKECMDGOALS)),$(shell expr $(JOBS) + 2),$(JOBS))
# All cores, unless -j says otherwise, or a make above this one shares its own.
ifeq ($(filter -j%,$(MAKEFLAGS))$(filter-out 0,$(MAKELEVEL)),)
MAKEFLAGS += -j$(lanes)
endif
# Quiet by default: one line per file. V=1 shows the commands.
Q := $(if $(V),,@)

# ---- what is here -------------------------------------------------------------------------

rooms := base engine proofs data chain client prover verifier
# Files for instruction sets that this machine cannot even compile stay out.
foreign := $(if $(filter x86_64 amd64,$(MACHINE)),,%_avx2.c %_avx512.c %_shani.c)
foreign += $(if $(filter aarch64 arm64,$(MACHINE)),,%_neon.c %_i8mm.c %_armsha.c)
find_c = $(sort $(filter-out $(foreign),$(shell find $1 -name '*.c' -not -path '*/node_modules/*')))
room_sources := $(call find_c,$(rooms))
test_sources := $(call find_c,tests)
bench_sources := $(call find_c,bench)
objects := $(room_sources:.c=.o)
fuzz_names := $(patsubst %.c,%,$(filter %_fuzz.c,$(test_sources)))
test_names := $(patsubst %.c,%,$(filter %_test.c,$(test_sources)))
test_support := $(patsubst %.c,%.o,$(filter-out %/fuzz_replay.c,$(filter tests/support/%,$(test_sources))))
bench_names := $(patsubst %.c,%,$(filter %_bench.c,$(bench_sources)))
bench_support := $(patsubst %.c,%.o,$(filter bench/support/%,$(bench_sources)))

program := $(if $(wildcard lockstep.c),$(BUILD)/lockstep)
ready := $(BUILD)/setup/build.ok
include mk/compile.mk mk/setup.mk mk/cuda.mk mk/test.mk mk/asan.mk mk/race.mk mk/ptx.mk mk/bench.mk mk/lint.mk mk/install.mk mk/arm.mk

# ---- the program --------------------------------------------------------------------------

all: $(program) $(cuda_here) ## build the program; with it the CUDA plugin, where there is a GPU and nvcc

$(BUILD)/%.o: %.c mk/compile.mk | $(ready)
	$(compile)
$(BUILD)/asan/%.o: %.c mk/compile.mk | $(ready)
	$(compile)
$(BUILD)/fuzz/%.o: %.c mk/compile.mk | $(ready) $(BUILD)/setup/fuzz.ok
	$(compile)
$(BUILD)/liblockstep.a: $(addprefix $(BUILD)/,$(objects))
	$(archive)
$(BUILD)/asan/liblockstep.a: $(addprefix $(BUILD)/asan/,$(objects))
	$(archive)
$(BUILD)/fuzz/liblockstep.a: $(addprefix $(BUILD)/fuzz/,$(objects))
	$(archive)
$(BUILD)/lockstep $(BUILD)/asan/lockstep: %/lockstep: %/lockstep.o %/liblockstep.a
	$(link)

# LEDGER=anvil plays on an EVM node of the tests' packages, GPU=1 trains on CUDA, RANKS=2 on two processes.
demo: $(program) $(if $(filter anvil,$(LEDGER)),$(BUILD)/setup/evm.ok) ## a whole game with money: client, honest solver, cheat, verifier, auditor
	$(Q)LEDGER=$(LEDGER) GPU=$(GPU) PLAY=$(PLAY) RANKS=$(RANKS) EVM=$(abspath tests/evm) scripts/demo $(abspath $(BUILD)/lockstep) $(abspath fixtures) $(abspath $(BUILD)/demo)

clean: ## remove everything that was built
	rm -rf $(BUILD)

help: ## this list
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "Variables: CC CFLAGS LDFLAGS BUILD PREFIX DESTDIR SANITIZE NVCC CUDA_ARCHS JOBS NAME TORCH V=1"
	@echo "           FUZZ_SECONDS SOAK_MINUTES TEST_SECONDS WERROR LOCKSTEP_NO_INSTALL=1"

.PHONY: all demo clean help

-include $(wildcard $(addprefix $(BUILD)/,$(objects:.o=.d) lockstep.d $(test_sources:.c=.d) \
    $(bench_sources:.c=.d)))
-include $(wildcard $(addprefix $(BUILD)/asan/,$(objects:.o=.d) lockstep.d $(test_sources:.c=.d)))
-include $(wildcard $(addprefix $(BUILD)/fuzz/,$(objects:.o=.d) $(test_sources:.c=.d)))
