/* launch_elements.c - see launch_elements.h. */
#include "engine/cuda/launch/launch_elements.h"

#include "engine/cuda/launch/epilogue_step.h"
#include "engine/ops/view.h"

/* ---- by the rules --------------------------------------------------------- */

static struct operand operand_of(const struct launcher *launcher, uint32_t id)
{
    const struct tensor *tensor = &launcher->tape->tensors[id];

    return (struct operand){.memory = launcher->memory[id],
                            .dtype = tensor->dtype,
                            .count = tensor->count,
                            .tensor = id};
}

enum device_result launch_rules(const struct launcher *launcher, uint32_t at)
{
    const struct op *op = &launcher->tape->ops[at];
    struct rule_args args = {.call = {.op = &launcher->ops[at]}};

    for (uint32_t i = 0; i < op->input_count; i++) {
        args.call.inputs[i] = operand_of(launcher, op->inputs[i]);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        args.call.outputs[i] = operand_of(launcher, op->outputs[i]);
        assert(args.call.outputs[i].memory != NULL);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        args.output = i;
        args.count = launcher->tape->tensors[op->outputs[i]].count;
        DEVICE_TRY(LAUNCH_WORK(launcher, KERNEL_RULE, args.count, BLOCK_THREADS, args));
    }
    return DEVICE_OK;
}

/* ---- one number a lane ---------------------------------------------------------------- */

static bool all_words(const struct op *op, const struct tensor *tensors)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (dtype_size(tensors[op->inputs[i]].dtype) != 4) {
            return false;
        }
    }
    return true;
}

static enum device_result launch_singly(const struct launcher *launcher, uint32_t at)
{
    const struct op *op = &launcher->tape->ops[at];
    struct elements_args args = {.op = &launcher->ops[at],
                                 .count = launcher->tape->tensors[op->outputs[0]].count};

    for (uint32_t i = 0; i < op->input_count; i++) {
        args.inputs[i] = input_memory(launcher, op, i);
        args.input_counts[i] = launcher->tape->tensors[op->inputs[i]].count;
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        args.outputs[i] = output_memory(launcher, op, i);
        assert(args.outputs[i] != NULL);
    }
    if (op->kind == OP_BINARY) {
        args.alike = binary_lies_alike(op, 0) | (uint32_t)binary_lies_alike(op, 1) << 1;
    }
    return LAUNCH_WORK(launcher, KERNEL_ELEMENTS, args.count, BLOCK_THREADS, args);
}

/* ---- four numbers a lane -------------------------------------------------------------- */

/* Which input is the number that the step changes? */
static uint32_t value_of(const struct op *op)
{
    return binary_is_gradient(op);
}

static bool takes_quads(struct epilogue_form *form, const struct launcher *launcher,
                        const struct op *op)
{
    bool aligned = launch_is_aligned(launcher->memory[op->outputs[0]]);

    for (uint32_t i = 0; i < op->input_count; i++) {
        aligned = aligned && launch_is_aligned(input_memory(launcher, op, i));
    }
    return aligned && launch_allows(launcher, VARIANT_EPILOGUE) &&
           epilogue_takes(form, op, launcher->tape->tensors, value_of(op)) &&
           launcher->tape->tensors[op->outputs[0]].count % 4 == 0 && form->row <= UINT32_MAX;
}

static enum device_result launch_quads(const struct launcher *launcher, const struct op *op,
                                       const struct epilogue_form *form)
{
    struct quads_args args = {.x = input_memory(launcher, op, value_of(op)),
                              .count = launcher->tape->tensors[op->outputs[0]].count,
                              .row = (uint32_t)form->row};

    epilogue_add(&args.epilogue, launcher, op, form, output_memory(launcher, op, 0));
    if (args.epilogue.ahead != NULL) {
        args.epilogue.steps[0].source = EPILOGUE_WHOLE; /* nothing is prefetched */
        args.epilogue.ahead = NULL;
    }
    return LAUNCH_WORK(launcher, KERNEL_QUADS, args.count / 4, BLOCK_THREADS, args);
}

enum device_result launch_elements(const struct launcher *launcher, uint32_t at)
{
    const struct op *op = &launcher->tape->ops[at];
    struct epilogue_form form;

    if (!all_words(op, launcher->tape->tensors)) {
        return launch_rules(launcher, at);
    }
    if (takes_quads(&form, launcher, op)) {
        return launch_quads(launcher, op, &form);
    }
    return launch_singly(launcher, at);
}
