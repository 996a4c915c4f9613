/*
 * kernel.h - the arguments of a CPU kernel, and the table of an instruction set's kernels.
 *
 * A kernel computes whole outputs of one operation, with the bits of the rules. It may use threads,
 * but no bit depends on how many. It does not allocate: the machine gives it scratch memory of the
 * size that scratch_size() returned when the machine was planned.
 *
 * In fast mode an output that nobody reads is NULL, and the kernel does not write it; in trace mode
 * every output is there. Tensors have the canonical layout, except the quantized operands of
 * contractions: kernels keep those in a packed layout (contraction.h), and unpack() makes the
 * canonical one. The rules read and write the canonical layout only.
 */
#ifndef ENGINE_OPS_KERNEL_H
#define ENGINE_OPS_KERNEL_H

#include "engine/ops/op.h"

struct kernel_call {
    const struct op *op;
    const struct tensor *tensors; /* the tape's table, for element types */
    const void *inputs[OP_INPUTS_MAX];
    void *outputs[OP_OUTPUTS_MAX]; /* NULL: nobody reads it */
    void *scratch;                 /* aligned to 64 bytes */
    int thread_count;              /* at least 1 */
};

struct kernel {
    void (*run)(const struct kernel_call *call);
    /* Bytes of scratch for op; NULL where none is needed. */
    size_t (*scratch_size)(const struct op *op, int thread_count);
};

/* A kind without run() falls back to the looped rules. */
struct kernel_table {
    const char *name;
    struct kernel kernels[OP_KIND_COUNT];
    /* Makes the canonical q of a quantize operation; NULL: these kernels have no packed layout. */
    void (*unpack)(void *q, const void *packed, const struct op *quantize, int thread_count);
};

/*
 * May this output of a kernel share the memory of this input? True where the kernel reads every
 * element of the input for the last time before it writes the output's element of the same index.
 * The caller sees to equal element counts, and gives an input to one output only. Holds for kernels
 * and never for the looped rules, which compute one output after the other.
 */
bool op_in_place(const struct op *op, uint32_t output, uint32_t input);

/* The looped rules: the definition itself, slow, for every kind. Every output must be there. */
void kernel_run_rules(const struct kernel_call *call);

#endif /* ENGINE_OPS_KERNEL_H */
