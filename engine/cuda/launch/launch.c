/* launch.c - see launch.h. */
#include "engine/cuda/launch/launch.h"

#include "engine/cuda/launch/launch_contract.h"
#include "engine/cuda/launch/launch_elements.h"
#include "engine/cuda/launch/launch_quantize.h"
#include "engine/cuda/launch/launch_rows.h"
#include "engine/ops/kernel.h"

/* Kernels count the elements of a row in 32 bits. */
#define ROW_MAX UINT64_C(0xffffff00)

bool launch_takes(const struct op *op)
{
    return !launch_is_contraction(op->kind) || (uint64_t)contraction_shape_of(op).k <= ROW_MAX;
}

enum device_result launch_op(const struct launcher *launcher, uint32_t at)
{
    const struct op *op = &launcher->tape->ops[at];

    if (launcher->rules_only) {
        return launch_rules(launcher, at);
    }
    if (launch_is_elementwise(op->kind)) {
        return launch_elements(launcher, at);
    }
    if (launch_is_rows(op->kind)) {
        return launch_rows(launcher, op);
    }
    switch ((int)op->kind) {
    case OP_QUANTIZE:
        return launch_quantize(launcher, op);
    case OP_CONTRACT:
        return launch_contract(launcher, op, output_memory(launcher, op, 0), NULL);
    case OP_CONTRACT_ONES:
        return launch_ones(launcher, op);
    case OP_CONTRACT_ONEHOT:
        return launch_onehot(launcher, op);
    default:
        return launch_rules(launcher, at);
    }
}

uint64_t launch_scratch_size(const struct op *op, const struct tensor *tensors, bool packed)
{
    if (op->kind == OP_QUANTIZE) {
        return launch_quantize_scratch(op, tensors);
    }
    return launch_is_contraction(op->kind) ? launch_contract_scratch(op, packed) : 0;
}

uint64_t launch_output_size(const struct op *op, uint32_t output, const struct tensor *tensors,
                            bool packed)
{
    const struct tensor *tensor = &tensors[op->outputs[output]];

    if (packed && op->kind == OP_QUANTIZE && output == 2) {
        const struct contraction_shape shape = contraction_shape_of(op);

        return packed_for(&shape, (uint64_t)quantize_rows(op)).size;
    }
    if (packed && op->kind == OP_CROSS_ENTROPY_GRAD && output == ENTROPY_Q) {
        const struct contraction_shape shape = contraction_shape(
            op->attributes[COLUMNS], op->attributes[ENTROPY_BITS], op->attributes[ENTROPY_BLOCK]);

        return packed_for(&shape, (uint64_t)op->attributes[ROWS]).size;
    }
    return tensor->count * dtype_size(tensor->dtype);
}

bool launch_in_place(enum op_kind kind, uint32_t output, uint32_t input)
{
    return (launch_is_elementwise(kind) || launch_is_rows(kind)) &&
           op_in_place(kind, output, input);
}

bool launch_may_omit(enum op_kind kind)
{
    return kind == OP_QUANTIZE || kind == OP_CROSS_ENTROPY_GRAD || launch_is_rows(kind);
}
