/*
 * kernel.h - what a CPU kernel is given, and the tables of kernels by instruction set.
 *
 * A kernel computes whole outputs of one operation and gives the rules' bits. It may use threads;
 * no bit may depend on how many. It does not allocate: scratch is given, of the size that the
 * kernel's own function asked for when the machine was planned.
 *
 * In fast mode outputs that nobody reads are NULL and are not written; in trace mode every output
 * is there. All are in canonical layout but for the quantized operands of contractions, which stay
 * in the kernels' own packed layout (contraction.h); a table unpacks them for whoever is to see
 * them. The rules read and write the canonical layout only.
 */
#ifndef ENGINE_OPS_KERNEL_H
#define ENGINE_OPS_KERNEL_H

#include "engine/ops/op.h"

struct kernel_call {
    const struct op *op;
    const struct tensor *tensors; /* the tape's table, for element types */
    const void *inputs[OP_INPUTS_MAX];
    void *outputs[OP_OUTPUTS_MAX]; /* NULL: not wanted */
    void *scratch;                 /* aligned to 64 bytes */
    int thread_count;              /* at least 1 */
};

struct kernel {
    void (*run)(const struct kernel_call *call);
    /* Bytes of scratch for op; NULL where none is needed. */
    size_t (*scratch_size)(const struct op *op, int thread_count);
};

/* An instruction set's kernels; a kind without run falls back to the looped rules. */
struct kernel_table {
    const char *name;
    struct kernel kernels[OP_KIND_COUNT];
    /* The canonical q of a quantize operation from the packed one; NULL: there is none packed. */
    void (*unpack)(void *q, const void *packed, const struct op *quantize, int thread_count);
};

/*
 * May this output of a kernel be the very memory of this input? True where the kernel reads the
 * input's element for the last time before it writes the output's element of the same index, and
 * nowhere else. The caller must see to equal element counts, and may give an input to one output
 * only. It holds for the kernels of cpu.h, never for the looped rules, which compute one output
 * after the other and need all memory apart.
 */
bool op_in_place(enum op_kind kind, uint32_t output, uint32_t input);

/* The looped rules themselves: the definition, slow and always there. */
void kernel_run_rules(const struct kernel_call *call);

#endif /* ENGINE_OPS_KERNEL_H */
