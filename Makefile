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
# All cores, unless -j says otherwise, or a make above this one shares its own.
ifeq ($(filter -j%,$(MAKEFLAGS))$(filter-out 0,$(MAKELEVEL)),)
MAKEFLAGS += -j$(JOBS)
endif
# Quiet by default: one line per file. V=1 shows the commands.
Q := $(if $(V),,@)

# ---- what is here -------------------------------------------------------------------------

rooms := base engine proofs chain client prover verifier
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

# ---- how it is compiled -------------------------------------------------------------------

# Numerics are protocol: no contraction, no fast math, whatever CFLAGS says.
NUMERICS := -ffp-contract=off -fno-fast-math
WARNINGS = -Wall -Wextra -Wswitch-enum -Wstrict-prototypes -Wvla $(if $(WERROR),-Werror)
# A warning is an error where we know the compiler. What a later one has learnt to say is shown, and
# stops nobody from building. WERROR=1 or WERROR= decides for any.
known_gcc := 11 12 13 14
known_clang := 14 15 16 17 18 19
major = $(firstword $(subst ., ,$(shell $1 -dumpversion 2>/dev/null)))
known = $(filter $(known_$(if $(findstring clang,$1),clang,gcc)),$(call major,$1))
WERROR ?= $(call known,$(CC))
ISA_avx2 := -mavx2 -mfma -mf16c -mbmi2
ISA_avx512 := $(ISA_avx2) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni
ISA_i8mm := -march=armv8.2-a+dotprod+i8mm
ISA_armsha := -march=armv8-a+crypto
# What benchmarks are measured against; never for anything of ours.
ISA_fastmath := -O3 -march=native -ffast-math -ffp-contract=fast \
    $(if $(filter x86_64 amd64,$(MACHINE)),-mprefer-vector-width=512)
isa = $(foreach set,avx2 avx512 i8mm armsha fastmath,$(if $(filter %_$(set).c,$1),$(ISA_$(set))))
# A function without a prototype should be static; fuzz entry points are the exception.
prototypes = $(if $(filter tests/%,$<),,-Wmissing-prototypes)
ALL_CFLAGS = -std=c17 -D_GNU_SOURCE -I. $(WARNINGS) $(prototypes) -fopenmp $(CFLAGS) $(variant) \
    $(NUMERICS)
# Debian 13's libscrypt does not say its own version. What was linked by the plain name would want the
# link of the development package wherever it runs.
scrypt = $(if $(findstring /,$(shell $(CC) -print-file-name=libscrypt.so.0)),-l:libscrypt.so.0,-lscrypt)
LDLIBS = -lcrypto -lcurl -lsqlite3 -ljansson -lsecp256k1 $(scrypt) -lmicrohttpd -lzstd -ldl -lm

# A variant is a folder below build/ and the flags that make it different.
variant := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all)
# At -O1 loops stay loops, whatever a pragma asks for: clang need not say so.
sanitized := -O1 -fno-omit-frame-pointer -fno-sanitize-recover=all -Wno-pass-failed
# Sanitized code is too twisted for these warnings of gcc, of which clang does not know the first.
gcc_only := $(if $(findstring clang,$(CC)),,-Wno-maybe-uninitialized -Wno-format-truncation)
$(BUILD)/asan/%: variant := $(sanitized) $(gcc_only) -fsanitize=address,undefined
$(BUILD)/fuzz/%: variant := $(sanitized) -fsanitize=fuzzer-no-link,address,undefined
$(BUILD)/fuzz/%: CC := clang

say = $(if $(V),,@printf '  %-7s %s\n' $1 $2)
define compile
@mkdir -p $(@D)
$(call say,CC,$@)
$(Q)$(CC) $(ALL_CFLAGS) $(library_cflags) $(call isa,$<) -MMD -MP -c -o $@ $<
endef
define archive
@mkdir -p $(@D)
$(call say,AR,$@)
@rm -f $@
$(Q)$(AR) rcs $@ $^
endef
define link
@mkdir -p $(@D)
$(call say,LINK,$@)
$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) $(extra_libs) $(LDLIBS)
endef

program := $(if $(wildcard lockstep.c),$(BUILD)/lockstep)
ready := $(BUILD)/setup/build.ok
include mk/setup.mk mk/cuda.mk mk/test.mk mk/race.mk mk/ptx.mk mk/bench.mk mk/lint.mk mk/install.mk

# ---- the program --------------------------------------------------------------------------

all: $(program) $(cuda_here) ## build the program; with it the CUDA plugin, where there is a GPU and nvcc

$(BUILD)/%.o: %.c | $(ready)
	$(compile)
$(BUILD)/asan/%.o: %.c | $(ready)
	$(compile)
$(BUILD)/fuzz/%.o: %.c | $(ready) $(BUILD)/setup/fuzz.ok
	$(compile)
$(BUILD)/liblockstep.a: $(addprefix $(BUILD)/,$(objects))
	$(archive)
$(BUILD)/asan/liblockstep.a: $(addprefix $(BUILD)/asan/,$(objects))
	$(archive)
$(BUILD)/fuzz/liblockstep.a: $(addprefix $(BUILD)/fuzz/,$(objects))
	$(archive)
$(BUILD)/lockstep $(BUILD)/asan/lockstep: %/lockstep: %/lockstep.o %/liblockstep.a
	$(link)

# LEDGER=anvil plays on an EVM node of the tests' packages, GPU=1 trains on CUDA.
demo: $(program) $(if $(filter anvil,$(LEDGER)),$(BUILD)/setup/evm.ok) ## a whole game with money: client, honest solver, cheat, verifier, auditor
	$(Q)LEDGER=$(LEDGER) GPU=$(GPU) PLAY=$(PLAY) EVM=$(abspath tests/evm) scripts/demo $(abspath $(BUILD)/lockstep) $(abspath fixtures) $(abspath $(BUILD)/demo)

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
