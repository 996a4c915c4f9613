/*
 * fuse_epilogue.c - element-wise operations that are made where their operand is: behind the
 * product, before it is written; and the sum that a gradient along rows is added to.
 */
#include "engine/cuda/launch/epilogue.h"
#include "engine/cuda/fusions/fuse_core.h"

/*
 * Operations are looked for so far behind: the operands of a product must be there until it is
 * made, and those of a vocabulary's gradient are not to wait for the end of the step.
 */
#define WINDOW 24

/* A maker, and what it makes for others. */
struct group {
    uint32_t ats[CHAIN_OPS_MAX];
    uint32_t count;
    uint32_t made[CHAIN_OPS_MAX * OP_OUTPUTS_MAX];
    uint32_t made_count;
};

static bool is_read_in(const struct fusion *fusion, const struct group *group, uint32_t at,
                       uint32_t id)
{
    const struct op *op = &fusion->ops[group->ats[at]];

    for (uint32_t i = 0; i < op->input_count; i++) {
        if (op->inputs[i] == id) {
            return true;
        }
    }
    return false;
}

/* What others than the group read, or is kept; and can all be made where the last one is? */
static bool group_closes(struct group *group, const struct fusion *fusion,
                         const struct readers *readers)
{
    group->made_count = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        const struct op *op = &fusion->ops[group->ats[i]];

        for (uint32_t output = 0; output < op->output_count; output++) {
            const uint32_t id = op->outputs[output];
            uint32_t own = 0;

            for (uint32_t j = 0; j < group->count; j++) {
                own += is_read_in(fusion, group, j, id);
            }
            if (readers->kept[id] || own != readers->count[id]) {
                group->made[group->made_count++] = id;
            }
        }
    }
    return group->made_count > 0 &&
           chain_closed(fusion, readers, group->ats, group->count, group->made, group->made_count);
}

/* ---- behind a product ---------------------------------------------------------------------- */

/* The most that can be made with the contraction at `at`. */
static void find_behind(struct group *best, const struct fusion *fusion, const struct tape *tape,
                        const struct readers *readers, uint32_t at)
{
    const struct op *ops[CHAIN_OPS_MAX] = {&fusion->ops[at]};
    struct group group = {.ats = {at}, .count = 1};
    struct epilogue_link link;

    for (uint32_t next = at + 1; next < fusion->op_count && next - at <= WINDOW; next++) {
        if (group.count > EPILOGUE_STEPS_MAX) {
            break;
        }
        if (fusion->ops[next].output_count != 1 || !chain_may_take(fusion, next) ||
            !epilogue_joins(&link, ops, group.count, &fusion->ops[next], tape->tensors)) {
            continue;
        }
        ops[group.count] = &fusion->ops[next];
        group.ats[group.count++] = next;
        if (group_closes(&group, fusion, readers)) {
            *best = group;
        }
    }
}

/* The contraction, reading what its steps read too. False: those are too many. */
static bool maker_of(struct op *maker, const struct group *group, const struct fusion *fusion)
{
    *maker = fusion->ops[group->ats[0]];
    for (uint32_t i = 1; i < group->count; i++) {
        const struct op *op = &fusion->ops[group->ats[i]];

        for (uint32_t input = 0; input < op->input_count; input++) {
            bool inside = false;

            for (uint32_t j = 0; j < group->count; j++) {
                inside = inside || fusion->ops[group->ats[j]].outputs[0] == op->inputs[input];
            }
            for (uint32_t j = 0; j < maker->input_count; j++) {
                inside = inside || maker->inputs[j] == op->inputs[input];
            }
            if (!inside && maker->input_count == OP_INPUTS_MAX) {
                return false;
            }
            if (!inside) {
                maker->inputs[maker->input_count++] = op->inputs[input];
            }
        }
    }
    maker->output_count = group->made_count;
    for (uint32_t i = 0; i < group->made_count; i++) {
        maker->outputs[i] = group->made[i];
    }
    return true;
}

/* ---- behind a gradient along rows ------------------------------------------------------------ */

/* The sum is written where the gradient would be, and what it is added to is read last. */
static bool find_sum(struct group *group, struct op *maker, const struct fusion *fusion,
                     const struct tape *tape, const struct readers *readers, uint32_t at)
{
    const struct op *op = &fusion->ops[at];
    const uint32_t main = op->kind == OP_LAYER_NORM_GRAD ? 4 : 2;
    struct epilogue_form form;

    for (uint32_t next = at + 1; next < fusion->op_count && next - at <= WINDOW; next++) {
        const struct op *sum = &fusion->ops[next];

        if (sum->kind != OP_ADD || sum->input_count != 2 || !chain_may_take(fusion, next) ||
            (sum->inputs[0] != op->outputs[main] && sum->inputs[1] != op->outputs[main])) {
            continue;
        }
        *group = (struct group){.ats = {at, next}, .count = 2};
        *maker = *op;
        maker->outputs[main] = sum->outputs[0];
        const uint32_t value = sum->inputs[1] == op->outputs[main];

        maker->inputs[maker->input_count++] = sum->inputs[1 - value];
        if (sum->inputs[0] == sum->inputs[1] || !epilogue_takes(&form, sum, tape->tensors, value) ||
            form.source != EPILOGUE_WHOLE || !group_closes(group, fusion, readers)) {
            return false;
        }
        for (uint32_t i = 0; i < group->made_count; i++) {
            if (group->made[i] == op->outputs[main]) {
                return false; /* the gradient itself is read, too */
            }
        }
        return true;
    }
    return false;
}

/* ---- all of them -------------------------------------------------------------------------- */

static bool find_at(bool *found, struct fusion *fusion, const struct tape *tape,
                    const struct readers *readers, uint32_t at)
{
    const struct op *op = &fusion->ops[at];
    const bool held = (fusion->facts.barred >> WAY_HELD & 1) == 0;
    struct group group = {.count = 0};
    struct op maker;

    *found = false;
    if (!chain_may_take(fusion, at) || op->output_count == 0) {
        return true;
    }
    if (epilogue_follows(op)) {
        find_behind(&group, fusion, tape, readers, at);
        *found = group.count > 1 && maker_of(&maker, &group, fusion);
        return !*found || chain_add(fusion, group.ats, group.count, &maker, launch_epilogue);
    }
    if ((op->kind == OP_LAYER_NORM_GRAD || op->kind == OP_RMS_NORM_GRAD) && held &&
        fuse_holds_rows(op)) {
        *found = find_sum(&group, &maker, fusion, tape, readers, at);
        return !*found || chain_add(fusion, group.ats, group.count, &maker, launch_row_sum);
    }
    return true;
}

bool fuse_find_epilogues(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    /* From the last on: of two products that are added, the later one is nearer to the sum. */
    for (uint32_t at = fusion->op_count; at > 0; at--) {
        bool found;

        if (!find_at(&found, fusion, tape, readers, at - 1)) {
            return false;
        }
        if (found) {
            readers_release(readers);
            if (!readers_find(readers, fusion, tape)) {
                return false;
            }
        }
    }
    return true;
}
