# ptx.mk - ptxcheck: the PTX that nvcc makes of the kernels runs on the emulated device, in place of
# their C, under the same tests. tests/ptx/translate.py makes C of it, a file for each kernel. Fake
# device and emulator are compiled again for it; all else is what `make test` links.

ptx_code := $(BUILD)/ptx/made
ptx_kernels := $(shell grep -o 'kernel_[a-z_]*, struct' engine/cuda/kernels/args.h | cut -d, -f1)
ptx_hopper := $(filter kernel_hopper%,$(ptx_kernels)) functions_hopper
ptx_usual := $(filter-out kernel_hopper%,$(ptx_kernels)) functions_kernels
ptx_made := $(addprefix $(ptx_code)/,$(addsuffix .c,$(ptx_usual) $(ptx_hopper)))
ptx_objects := $(ptx_made:.c=.o) $(addprefix $(BUILD)/ptx/tests/,ptx/ptx.o support/device/fake_device.o \
    support/device/emulator.o support/device/emulator_halves.o support/device/emulator_hopper.o)
ptx_tests := $(race_names:%=$(BUILD)/ptx/%)
PTX_SECONDS ?= 1800

$(BUILD)/ptx/kernels.ptx: ptx_arch := 80
$(BUILD)/ptx/hopper.ptx: ptx_arch := 90a
$(BUILD)/ptx/%.ptx: engine/cuda/device/%.cu
	@mkdir -p $(@D)
	$(call say,PTX,$@)
	$(Q)$(NVCC) $(NVCCFLAGS) $(NVCC_NUMERICS) -arch=compute_$(ptx_arch) -I. -MMD -MF $@.d -ptx -o $@ $<

.SECONDARY: $(BUILD)/ptx/kernels.ptx $(BUILD)/ptx/hopper.ptx
$(BUILD)/ptx/%.made: $(BUILD)/ptx/%.ptx tests/ptx/translate.py
	@mkdir -p $(ptx_code)
	$(call say,MAKE C,$@)
	$(Q)python3 tests/ptx/translate.py $< $(ptx_code) $*
	@touch $@
$(ptx_usual:%=$(ptx_code)/%.c): $(BUILD)/ptx/kernels.made ;
$(ptx_hopper:%=$(ptx_code)/%.c): $(BUILD)/ptx/hopper.made ;

# What the tensor cores' loops consist of, beside what they consisted of: bench/kernel_loops.py.
$(BUILD)/ptx/kernels.cubin: ptx_arch := 80
$(BUILD)/ptx/hopper.cubin: ptx_arch := 90a
$(BUILD)/ptx/%.cubin: $(BUILD)/ptx/%.ptx
	$(call say,PTXAS,$@)
	$(Q)$(dir $(NVCC))ptxas -arch=sm_$(ptx_arch) -O3 -o $@ $<
kernel-loops: $(BUILD)/ptx/kernels.cubin $(BUILD)/ptx/hopper.cubin ## counts the kernels' loops in machine code; fails where they grew
	$(Q)python3 bench/kernel_loops.py --against bench/results/kernel-loops.md $^

# Registers are variables: without optimization they would not fit a stack. No warning is ours.
ptx_flags := -std=c17 -D_GNU_SOURCE -DPTXCHECK -I. -O1 -w $(NUMERICS)
$(ptx_code)/%.o: $(ptx_code)/%.c tests/ptx/ptx.h
	$(call say,CC,$@)
	$(Q)$(CC) $(ptx_flags) -c -o $@ $<

$(BUILD)/ptx/tests/%.o: variant := -DPTXCHECK
$(BUILD)/ptx/tests/%.o: tests/%.c mk/compile.mk | $(ready)
	$(compile)
$(BUILD)/ptx/tests/%_test: $(BUILD)/tests/%_test.o $(ptx_objects) $(race_others) $(BUILD)/liblockstep.a
	$(link)
$(BUILD)/ptx/tests/%_test: extra_libs := -lcmocka

# One variant by itself, and with faults planted: each kernel is a member of an archive, so that one
# that is given before it takes its place.
ptx_archive := $(BUILD)/ptx/libptx.a
$(ptx_archive): $(ptx_objects)
	$(archive)
ptx_proof_parts := $(BUILD)/ptx/tests/ptx/ptx_proof.o $(ptx_archive) \
    $(BUILD)/tests/support/device/coroutine.o $(BUILD)/liblockstep.a
$(BUILD)/ptx/ptx-proof: $(ptx_proof_parts)
	$(link)

planted := $(BUILD)/ptx/planted.txt
$(planted): $(BUILD)/ptx/ptx-proof tests/ptx/planted.py $(BUILD)/ptx/kernels.ptx $(BUILD)/ptx/hopper.ptx
	$(Q)python3 tests/ptx/planted.py $(BUILD) $(CC) $(ptx_flags) -O0 -- $(ptx_proof_parts) \
	    $(ALL_CFLAGS) $(LDFLAGS) $(LDLIBS) && touch $@

ptxcheck: $(if $(NVCC),$(ptx_tests) $(planted)) ## the kernels as nvcc made them, in place of their C, under the same tests
ifeq ($(NVCC),)
	@echo "ptxcheck: skipped: there is no nvcc here"
else
	$(Q)$(call run_tests,$(BUILD)/ptx,$(PTX_SECONDS)) $(ptx_tests)
endif
soak: $(if $(NVCC),ptxcheck)

# A share for `make test`, where nvcc is: the kernels that are made in seconds, for the variants that
# need no others. In place of the others stands what ends the program.
ptx_left_out := $(filter kernel_hopper% kernel_contract_narrow kernel_contract_wide kernel_contract_three kernel_halves% \
    kernel_strip_halves% kernel_atten% kernel_hash% kernel_elements kernel_rows kernel_rule,$(ptx_kernels))
ptx_shared := $(filter-out $(ptx_left_out),$(ptx_kernels))
$(ptx_code)/left_out.c: mk/ptx.mk engine/cuda/kernels/args.h
	@mkdir -p $(@D)
	$(Q)printf 'void abort(void);\n' >$@; for name in $(ptx_left_out); do \
	    printf 'void %s(const void *given)\n{\n    abort();\n}\n' $$name >>$@; done
$(BUILD)/ptx/ptx-share: $(BUILD)/ptx/tests/ptx/ptx_proof.o $(addprefix $(ptx_code)/,$(addsuffix .o,$(ptx_shared) left_out)) \
    $(filter $(BUILD)/ptx/tests/%,$(ptx_objects)) $(BUILD)/tests/support/device/coroutine.o $(BUILD)/liblockstep.a
	$(link)
test-needs: $(if $(NVCC),$(BUILD)/ptx/ptx-share)

.PHONY: ptxcheck kernel-loops

-include $(wildcard $(BUILD)/ptx/*.ptx.d $(filter %.d,$(ptx_objects:.o=.d)))
