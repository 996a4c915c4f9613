# cuda.mk - the CUDA backend: one shared object that the program looks for at run time. "make"
# builds it for the GPUs of this machine, where there are some and nvcc; "make cuda" builds it
# anywhere, for CUDA_ARCHS. Nothing requires it.

comma := ,
NVCC ?= $(firstword $(wildcard $(addsuffix /nvcc,$(subst :, ,$(PATH))) /usr/local/cuda/bin/nvcc))
cuda_sources := $(sort $(shell find $(rooms) -name '*.cu'))
cuda_plugin := $(BUILD)/lockstep_cuda.so
# Compute capabilities of the GPUs that this machine has, as "90": nothing where it has none.
gpu_archs := $(if $(wildcard /dev/nvidia0),$(sort $(subst .,,$(shell nvidia-smi \
    --query-gpu=compute_cap --format=csv$(comma)noheader 2>/dev/null))))
# What "make" builds beside the program.
cuda_here := $(if $(and $(NVCC),$(gpu_archs)),$(cuda_plugin))
CUDA_ARCHS ?= $(if $(filter cuda deb,$(MAKECMDGOALS)),,$(gpu_archs))
ifeq ($(strip $(CUDA_ARCHS)),)
CUDA_ARCHS := 75 80 86 89 90
endif

# The same numerics as everywhere: no fused multiply-add that is not written, no flush to zero.
NVCC_NUMERICS := -fmad=false -ftz=false -prec-div=true -prec-sqrt=true
cuda_newest := $(lastword $(CUDA_ARCHS))
cuda_codes := $(foreach arch,$(CUDA_ARCHS),-gencode arch=compute_$(arch),code=sm_$(arch)) \
    -gencode arch=compute_$(cuda_newest),code=compute_$(cuda_newest)
# The kernels of wgmma are for sm_90a alone, and empty where 9.0 was not asked for.
$(BUILD)/engine/cuda/device/hopper.cu.o: cuda_codes := $(if $(filter 90,$(CUDA_ARCHS)),-gencode \
    arch=compute_90a$(comma)code=sm_90a,$(cuda_codes))
# C++20 for designated initializers, which the rules' C has.
NVCCFLAGS ?= -O3 -std=c++20

$(BUILD)/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(call say,NVCC,$@)
	$(Q)$(NVCC) $(NVCCFLAGS) $(NVCC_NUMERICS) $(cuda_codes) -I. -Werror all-warnings \
	    -Xcompiler -fPIC,-Wall,-fvisibility=hidden,-fstack-protector-strong,$(anywhere)$(branches:%=$(comma)%) -t $(JOBS) -MMD -MF $@.d -c -o $@ $<

$(BUILD)/lockstep_cuda.so: $(cuda_sources:%=$(BUILD)/%.o)
	$(call say,LINK,$@)
	$(Q)$(NVCC) $(cuda_codes) -shared -cudart static -Xlinker --exclude-libs=ALL,-z,relro,-z,now -o $@ $^

cuda: $(cuda_plugin) ## the CUDA plugin on any machine with nvcc, for CUDA_ARCHS="75 80 86 89 90"
ifeq ($(NVCC),)
$(cuda_sources:%=$(BUILD)/%.o): no-nvcc
no-nvcc:
	@echo "cuda: there is no nvcc here: install the CUDA toolkit, or say where it is: make cuda NVCC=/path/nvcc"
	@exit 1
.PHONY: no-nvcc
endif
.PHONY: cuda

-include $(wildcard $(cuda_sources:%=$(BUILD)/%.o.d))

# gpu-check: one program that is built where there is gcc and nvcc and nothing else. So it has
# objects of its own, which wait for no setup there, and links only what is listed here.
gpu_check_sources := $(filter engine/% tests/gpu/%,$(room_sources) $(test_sources)) \
    tests/support/numeric/random_tape.c tests/support/numeric/small_model.c \
    tests/support/numeric/model_state.c tests/support/numeric/division_bytes.c \
    tests/support/device/training_runs.c tests/support/device/traffic.c \
    $(filter tests/support/reference/reference%,$(test_sources)) \
    base/buffer.c base/error.c base/host.c base/io/log.c base/io/file.c base/io/whole_file.c base/reader.c \
    $(filter proofs/hash/sha256%,$(room_sources)) proofs/hash/merkle.c proofs/hash/merkle_proof.c proofs/commit/commit.c \
    proofs/commit/trace.c proofs/commit/state_root.c proofs/commit/state_pieces.c proofs/commit/element.c prover/train/nvml.c
gpu_check := $(BUILD)/gpu-check
gpu_python ?= python3
# Where the tables of runs are kept; each has a name of its own.
gpu_results ?= bench/results
# A bound for the whole, such as 8m; empty: none.
gpu_budget ?=

$(BUILD)/gpu/%.o: %.c mk/compile.mk | $(if $(filter gpu-check,$(MAKECMDGOALS)),,$(ready))
	$(compile)
# It is carried to machines that have a driver and the C library, and not gcc's library of threads.
gpu_check_static = $(wildcard $(shell $(CC) -print-file-name=libgomp.a 2>/dev/null))
$(gpu_check): $(gpu_check_sources:%.c=$(BUILD)/gpu/%.o)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(gpu_check_static) -ldl -lm

# What that takes: the program, the plugin, the data whose final states are known, and the script that runs all.
gpu_kit := $(BUILD)/gpu-kit.tar.gz
gpu_kit_data := fixtures/text/village.u8 $(wildcard fixtures/images/shapes*.npy)
gpu_kit_scripts := tests/gpu/run.sh bench/peer_gpu.py
$(gpu_kit): $(gpu_check) $(cuda_plugin) $(gpu_kit_data) $(gpu_kit_scripts)
	$(call say,TAR,$@)
	$(Q)tar -czf $@ --transform 's|^tests/gpu/||;s|^bench/||;s|^|gpu-kit/|' $(gpu_kit_data) $(gpu_kit_scripts) \
	    -C $(BUILD) $(notdir $(gpu_check) $(cuda_plugin))
gpu-kit: $(gpu_kit) ## gpu-check to carry to a machine with a driver and nothing else: ./run.sh there, in ten minutes

gpu-check: $(if $(NVCC),$(cuda_plugin)) $(gpu_check) ## on a GPU: the same bits, then how fast; and PyTorch where it is
ifeq ($(NVCC),)
	@echo "gpu-check: without nvcc there is no plugin to check, unless LOCKSTEP_CUDA names one"
endif
	@mkdir -p $(gpu_results)
	$(Q)GPU_CHECK_PROGRAM=$(gpu_check) GPU_CHECK_PEER=bench/peer_gpu.py GPU_CHECK_PYTHON=$(gpu_python) \
	    GPU_CHECK_BUDGET=$(gpu_budget) tests/gpu/run.sh $(gpu_results)

# The emulated device as a plugin, for tests of the programs.
emulated_plugin := $(BUILD)/tests/emulated_cuda.so
emulated_sources := tests/support/device/emulated_plugin.c tests/support/device/fake_device.c \
    tests/support/device/emulator.c tests/support/device/emulator_halves.c \
    tests/support/device/emulator_hopper.c tests/support/device/coroutine.c \
    $(filter-out %/evidence_bound.c,$(filter engine/rules/%,$(room_sources))) \
    engine/ops/scalar.c engine/ops/philox.c engine/ops/contraction.c

$(BUILD)/pic/%.o: variant := -fPIC
$(BUILD)/pic/%.o: %.c mk/compile.mk | $(ready)
	$(compile)
$(emulated_plugin): $(emulated_sources:%.c=$(BUILD)/pic/%.o)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -shared -Wl,-z,defs -o $@ $^ -lm

test-needs check asan soak: $(emulated_plugin)

-include $(wildcard $(emulated_sources:%.c=$(BUILD)/pic/%.d))

# Without a device it says so: tests/gpu/gpu_check_test.sh.
test-needs: $(gpu_check)

.PHONY: gpu-check gpu-kit

-include $(wildcard $(gpu_check_sources:%.c=$(BUILD)/gpu/%.d))

# A management library that tells what a test wants.
fake_nvml := $(BUILD)/tests/fake_nvml.so
$(fake_nvml): $(BUILD)/pic/tests/support/device/fake_nvml.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -shared -o $@ $^

test-needs check asan soak: $(fake_nvml)
