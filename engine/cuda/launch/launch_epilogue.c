/* launch_epilogue.c - see epilogue.h. */
#include "engine/cuda/launch/epilogue.h"

#include "engine/cuda/launch/launch_core.h"

/* ---- operations as steps -------------------------------------------------------------- */

static bool takes_two(struct epilogue_form *form, const struct op *op, uint64_t count,
                      uint32_t value)
{
    const uint64_t turn = (uint64_t)op->attributes[BROADCAST_MOD];
    const bool whole = turn == count;

    form->other = 1 - value;
    form->source = whole ? EPILOGUE_WHOLE : EPILOGUE_ROW;
    form->row = whole ? 0 : turn;
    /* What is read in turns is the second operand. */
    return op->attributes[BROADCAST_DIV] == 1 && (whole || (value == 0 && turn % 4 == 0));
}

bool epilogue_takes(struct epilogue_form *form, const struct op *op, const struct tensor *tensors,
                    uint32_t value)
{
    *form = (struct epilogue_form){.other = OP_INPUTS_MAX, .source = EPILOGUE_NONE};
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (tensors[op->inputs[i]].dtype != DTYPE_F32) {
            return false;
        }
    }
    switch ((int)op->kind) {
    case OP_ADD:
    case OP_MUL:
        return op->input_count == 2 && value < 2 &&
               takes_two(form, op, tensors[op->outputs[0]].count, value);
    case OP_SCALE:
        form->constant = (uint32_t)op->attributes[SCALE_FACTOR_BITS];
        return value == 0;
    case OP_RELU:
    case OP_GELU:
    case OP_SILU:
        return value == 0;
    case OP_RELU_GRAD:
    case OP_GELU_GRAD:
    case OP_SILU_GRAD:
        form->other = 0;
        form->source = EPILOGUE_WHOLE;
        return value == 1;
    default:
        return false;
    }
}

bool epilogue_follows(const struct op *contract)
{
    const int64_t *dims = &contract->attributes[CONTRACT_DIMS];
    const int64_t *strides = &contract->attributes[CONTRACT_STRIDES];
    const int64_t n = dims[4] * dims[5];

    return contract->kind == OP_CONTRACT && contract->attributes[CONTRACT_CAUSAL] == 0 &&
           dims[0] * dims[1] == 1 && n % 4 == 0 && (dims[5] == 1 || strides[5] == 1) &&
           (dims[4] == 1 || strides[4] == dims[5]) && (dims[3] == 1 || strides[3] == n) &&
           (dims[2] == 1 || strides[2] == n * dims[3]);
}

static bool reads_any(const struct op *op, uint32_t input, const struct op *const *ops,
                      uint32_t count)
{
    for (uint32_t i = 0; i < count && input < op->input_count; i++) {
        if (op->inputs[input] == ops[i]->outputs[0]) {
            return true;
        }
    }
    return false;
}

bool epilogue_joins(struct epilogue_link *link, const struct op *const *ops, uint32_t count,
                    const struct op *op, const struct tensor *tensors)
{
    const int64_t *dims = &ops[0]->attributes[CONTRACT_DIMS];
    bool found = false;

    for (uint32_t value = 0; value < op->input_count && !found; value++) {
        link->value = value;
        for (link->from = 0; link->from < count; link->from++) {
            if (ops[link->from]->outputs[0] == op->inputs[value]) {
                break;
            }
        }
        found = link->from < count && epilogue_takes(&link->form, op, tensors, value) &&
                !reads_any(op, link->form.other, ops, count);
    }
    for (uint32_t i = 1; found && i < count && link->from != 0; i++) {
        found = i == link->from || !reads_any(ops[i], 0, &ops[link->from], 1);
        found = found && (i == link->from || !reads_any(ops[i], 1, &ops[link->from], 1));
    }
    return found &&
           (link->form.source != EPILOGUE_ROW || link->form.row == (uint64_t)(dims[4] * dims[5]));
}

/* ---- a contraction and its epilogue ------------------------------------------------------ */

/* Where a tensor is written: nowhere, if the maker does not make it. */
static void *wanted(const struct launcher *launcher, const struct op *maker, uint32_t id)
{
    for (uint32_t i = 0; i < maker->output_count; i++) {
        if (maker->outputs[i] == id) {
            return launcher->memory[id];
        }
    }
    return NULL;
}

static void add_step(struct epilogue *epilogue, const struct launcher *launcher,
                     const struct op *maker, const struct op *op, const struct epilogue_form *form)
{
    struct epilogue_step *step = &epilogue->steps[epilogue->count++];

    assert(epilogue->count <= EPILOGUE_STEPS_MAX);
    step->kind = (uint32_t)op->kind;
    step->source = form->source;
    step->constant = form->constant;
    step->out = wanted(launcher, maker, op->outputs[0]);
    if (form->other < OP_INPUTS_MAX) {
        step->other = input_memory(launcher, op, form->other);
    }
    if (form->source == EPILOGUE_WHOLE &&
        (epilogue->ahead == NULL || epilogue->ahead == step->other)) {
        epilogue->ahead = step->other;
        step->source = EPILOGUE_AHEAD;
    }
}

enum device_result launch_epilogue(const struct launcher *launcher, const struct chain *chain)
{
    const struct op *maker = &launcher->tape->ops[chain->ats[chain->count - 1]];
    const struct op *ops[CHAIN_OPS_MAX];
    struct epilogue_link links[CHAIN_OPS_MAX];
    struct epilogue epilogue = {.count = 0};

    ops[0] = &chain->ops[0];
    for (uint32_t i = 1; i < chain->count; i++) {
        const bool joins =
            epilogue_joins(&links[i], ops, i, &chain->ops[i], launcher->tape->tensors);

        assert(joins);
        (void)joins;
        ops[i] = &chain->ops[i];
    }
    /* What goes on from the results begins anew; behind it comes all that goes on from that. */
    for (uint32_t i = 1; i < chain->count; i++) {
        uint32_t last = i;

        if (links[i].from != 0) {
            continue;
        }
        epilogue.steps[epilogue.count].anew = 1;
        add_step(&epilogue, launcher, maker, ops[i], &links[i].form);
        for (uint32_t next = i + 1; next < chain->count; next++) {
            if (links[next].from == last) {
                add_step(&epilogue, launcher, maker, ops[next], &links[next].form);
                last = next;
            }
        }
    }
    assert(epilogue.count + 1 == chain->count);
    return launch_contract(launcher, maker, wanted(launcher, maker, ops[0]->outputs[0]), &epilogue);
}

enum device_result launch_row_sum(const struct launcher *launcher, const struct chain *chain)
{
    const struct op *maker = &launcher->tape->ops[chain->ats[chain->count - 1]];
    const struct rows_args rows = launch_rows_args(launcher, maker);

    return launch_held(launcher, &rows, NULL);
}

/* ---- one operation over tensors ------------------------------------------------------------ */

static uint32_t value_of(const struct op *op)
{
    return op->kind == OP_RELU_GRAD || op->kind == OP_GELU_GRAD || op->kind == OP_SILU_GRAD;
}

static bool is_aligned(const void *memory)
{
    return (uintptr_t)memory % 16 == 0;
}

bool launch_quads_takes(const struct launcher *launcher, const struct op *op)
{
    struct epilogue_form form;
    bool aligned = is_aligned(launcher->memory[op->outputs[0]]);

    for (uint32_t i = 0; i < op->input_count; i++) {
        aligned = aligned && is_aligned(input_memory(launcher, op, i));
    }
    return aligned && launch_way_free(launcher, WAY_EPILOGUE) &&
           epilogue_takes(&form, op, launcher->tape->tensors, value_of(op)) &&
           launcher->tape->tensors[op->outputs[0]].count % 4 == 0 && form.row <= UINT32_MAX;
}

enum device_result launch_quads(const struct launcher *launcher, const struct op *op)
{
    struct quads_args args = {.x = input_memory(launcher, op, value_of(op)),
                              .count = launcher->tape->tensors[op->outputs[0]].count};
    struct epilogue_form form;
    const bool takes = epilogue_takes(&form, op, launcher->tape->tensors, value_of(op));

    assert(takes);
    (void)takes;
    args.row = (uint32_t)form.row;
    add_step(&args.epilogue, launcher, op, op, &form);
    if (args.epilogue.ahead != NULL) {
        args.epilogue.steps[0].source = EPILOGUE_WHOLE; /* at once, for nothing is waited for */
        args.epilogue.ahead = NULL;
    }
    return LAUNCH_WORK(launcher, KERNEL_QUADS, args.count / 4, BLOCK_THREADS, args);
}
