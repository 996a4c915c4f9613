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

/* What launches a kind. */
enum launch_family {
    LAUNCH_RULES,    /* its rules, output after output */
    LAUNCH_ELEMENTS, /* each element depends on inputs of one index, or few */
    LAUNCH_ROWS,
    LAUNCH_QUANTIZE,
    LAUNCH_CONTRACT,
    LAUNCH_ONES,
    LAUNCH_ONEHOT,
    LAUNCH_CHOSEN,
};

#define OP_PLAN(cut, launch, ...)                            LAUNCH_##launch
#define OP_PLAN_ROWS(tensors, launch, ...)                   LAUNCH_##launch
#define LAUNCH(NAME, text, spec, rules, gradient, plan, ...) [OP_##NAME] = plan,

static enum launch_family family_of(enum op_kind kind)
{
    static const enum launch_family families[OP_KIND_COUNT] = {OP_LIST(LAUNCH)};

    return families[kind];
}

enum device_result launch_op(const struct launcher *launcher, uint32_t at)
{
    const struct op *op = &launcher->tape->ops[at];

    switch (launcher->rules_only ? LAUNCH_RULES : family_of(op->kind)) {
    case LAUNCH_RULES:
        break;
    case LAUNCH_ELEMENTS:
        return launch_elements(launcher, at);
    case LAUNCH_ROWS:
        return launch_rows(launcher, op);
    case LAUNCH_QUANTIZE:
        return launch_quantize(launcher, op);
    case LAUNCH_CONTRACT:
        return launch_contract(launcher, op, output_memory(launcher, op, 0), NULL);
    case LAUNCH_ONES:
        return launch_ones(launcher, op);
    case LAUNCH_ONEHOT:
        return launch_onehot(launcher, op);
    case LAUNCH_CHOSEN:
        return launch_chosen(launcher, op);
    }
    return launch_rules(launcher, at);
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
    struct op along;

    if (packed && output == TILES_ALONG + 2 && launch_tiles_along(&along, op)) {
        return launch_output_size(&along, 2, tensors, packed);
    }
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

bool launch_in_place(const struct op *op, uint32_t output, uint32_t input)
{
    const enum launch_family family = family_of(op->kind);

    if (family == LAUNCH_ONEHOT) {
        return input == ONEHOT_ADDEND;
    }
    return (family == LAUNCH_ELEMENTS || family == LAUNCH_ROWS) && op_in_place(op, output, input);
}

bool launch_may_omit(enum op_kind kind)
{
    return kind == OP_QUANTIZE || kind == OP_CROSS_ENTROPY_GRAD || family_of(kind) == LAUNCH_ROWS;
}
