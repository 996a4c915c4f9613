# Lockstep: see "make help".
.DELETE_ON_ERROR:
.SUFFIXES:
all:

BUILD ?= build
CC ?= gcc
CFLAGS ?= -O2 -g
# Numerics are protocol: no contraction, no fast math, whatever CFLAGS says.
NUMERICS := -ffp-contract=off -fno-fast-math
ISA_avx2 := -mavx2 -mfma -mf16c -mbmi2
ISA_avx512 := $(ISA_avx2) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni
isa = $(if $(filter %_avx512.c,$1),$(ISA_avx512),$(if $(filter %_avx2.c,$1),$(ISA_avx2)))
ALL_CFLAGS = -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -fopenmp $(CFLAGS) $(NUMERICS) -I.
LDLIBS = -lm

rooms := base engine proofs chain prover verifier
sources := $(shell find $(rooms) -name '*.c')
objects := $(sources:%.c=$(BUILD)/%.o)
tests := $(patsubst %.c,$(BUILD)/%,$(shell find tests -name '*_test.c'))
benches := $(patsubst %.c,$(BUILD)/%,$(shell find bench -name '*_bench.c'))

all: $(objects)
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(call isa,$<) -MMD -MP -c -o $@ $<
$(BUILD)/liblockstep.a: $(objects)
	@rm -f $@; ar rcs $@ $^
$(BUILD)/tests/%: $(BUILD)/tests/%.o $(BUILD)/liblockstep.a
	$(CC) $(ALL_CFLAGS) -o $@ $^ -lcmocka $(LDLIBS)
$(BUILD)/bench/%: $(BUILD)/bench/%.o $(BUILD)/liblockstep.a
	$(CC) $(ALL_CFLAGS) -o $@ $^ -lopenblas $(LDLIBS)
test: $(tests)
	@for t in $^; do $$t || exit 1; done
clean:
	rm -rf $(BUILD)
-include $(objects:.o=.d)
