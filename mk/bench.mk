# bench.mk - benchmarks: ours against a peer, interleaved, medians. Each writes
# build/bench/NAME.json and prints a table. One alone: make bench NAME=contraction. TORCH=1 first
# installs PyTorch, a peer of whole steps.

NAME ?=
bench_chosen := $(if $(NAME),bench/$(NAME)_bench,$(bench_names))

# OpenBLAS's own header: cblas.h of the include path may be another library's. Asked for when the
# first benchmark is compiled, since the package may be installed just before.
openblas_cflags = $(shell pkg-config --cflags openblas 2>/dev/null)
openblas_libs = $(or $(shell pkg-config --libs openblas 2>/dev/null),-lopenblas)
$(bench_sources:%.c=$(BUILD)/%.o): | $(BUILD)/setup/bench.ok
$(BUILD)/bench/%.o: library_cflags = $(openblas_cflags)
$(BUILD)/bench/%_bench: extra_libs = $(openblas_libs)
# Its market of a ledger with a client, a solver and a node is the tests'.
$(BUILD)/bench/node_bench: extra_libs = $(openblas_libs) -lcmocka
$(BUILD)/bench/node_bench $(BUILD)/bench/lora_bench $(BUILD)/bench/curves_bench $(BUILD)/bench/ranks_bench: | $(BUILD)/lockstep
$(BUILD)/bench/%_bench: $(BUILD)/bench/%_bench.o $(addprefix $(BUILD)/,$(bench_support)) \
    $(BUILD)/tests/libsupport.a $(BUILD)/liblockstep.a
	$(link)

# The curves of models with channels that are much larger need PyTorch.
rescaled_curves = if /usr/bin/python3 -c "import torch" 2>/dev/null; then \
    TEST_LOCKSTEP=$(BUILD)/lockstep /usr/bin/python3 bench/rescaled_curves.py $(CURVES_STEPS); \
    else echo "bench: skipped: rescaled curves, for PyTorch is not installed (make bench TORCH=1)"; fi

# One after the other, under any -j: two benchmarks at once measure each other.
bench: $(if $(TORCH),$(BUILD)/setup/torch.ok) $(addprefix $(BUILD)/,$(bench_chosen)) $(cuda_here) ## run all benchmarks, or one: NAME=contraction
	$(Q)for name in $(patsubst bench/%_bench,%,$(bench_chosen)); do \
	    $(BUILD)/bench/$${name}_bench $(BUILD)/bench/$$name.json || exit 1; \
	    [ $$name != curves ] || $(rescaled_curves) || exit 1; done

.PHONY: bench
