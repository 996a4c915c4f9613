/* repeat.c - see repeat.h. */
#include "engine/tape/repeat.h"

#include "engine/ops/view.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS_MAX 32

/* ---- places ------------------------------------------------------------- */

/* Joins that the first `groups` groups complete. */
static uint64_t joins_of(uint32_t groups)
{
    return groups - (uint32_t)__builtin_popcount(groups);
}

uint64_t repeat_block_place(const struct repeat_layout *layout, uint32_t i)
{
    return layout->base + (uint64_t)i * layout->block + layout->sums * joins_of(i / layout->group);
}

bool repeat_holds(uint32_t *i, const struct repeat_layout *layout, uint32_t item)
{
    uint32_t low = 0;
    uint32_t high = layout->times;

    *i = TENSOR_NONE;
    if (layout->times > 0 && item >= layout->list) {
        *i = (item - layout->list) / layout->inner;
        return true;
    }
    if (layout->times == 0 || item < layout->base || item >= repeat_block_place(layout, high)) {
        return false;
    }
    while (high - low > 1) { /* the last micro-batch that begins at the item or before it */
        uint32_t middle = low + (high - low) / 2;

        if (repeat_block_place(layout, middle) <= item) {
            low = middle;
        } else {
            high = middle;
        }
    }
    if (item - repeat_block_place(layout, low) < layout->block) {
        *i = low;
    }
    return true;
}

uint64_t repeat_join_place(const struct repeat_layout *layout, uint32_t node)
{
    uint32_t depth = 31 - (uint32_t)__builtin_clz(node);
    uint32_t groups = layout->times / layout->group;
    uint32_t level = 31 - (uint32_t)__builtin_clz(groups) - depth;
    uint32_t end = (node - (UINT32_C(1) << depth) + 1) << level; /* groups until it is complete */

    return layout->base + (uint64_t)end * layout->group * layout->block +
           layout->sums * (joins_of(end - 1) + level - 1);
}

uint32_t repeat_turn_item(const struct repeat_layout *layout, uint32_t item, uint32_t turn)
{
    bool inner = layout->times > 0 && item >= layout->list;

    /* No join comes between the micro-batches of a group. */
    return item + turn * (inner ? layout->inner : layout->block);
}

static uint32_t sum_count(const struct repeat *repeat)
{
    uint32_t sums = 0;

    for (uint32_t i = 0; i < repeat->carry_count; i++) {
        sums += repeat->carries[i].joined;
    }
    return sums;
}

/* Every carry is left in an output of the body, and in one of its own. */
static void layout_of(struct repeat_layout *layout, const struct tape *brief)
{
    const struct repeat *repeat = &brief->repeat;
    uint32_t behind = 0;

    *layout = (struct repeat_layout){.base = brief->state_count,
                                     .times = repeat->times,
                                     .group = repeat->group,
                                     .block = repeat->carry_count,
                                     .sums = sum_count(repeat)};
    for (uint32_t at = 0; at < brief->op_count; at++) {
        *(at < repeat->first                      ? &layout->base
          : at - repeat->first < repeat->op_count ? &layout->inner
                                                  : &behind) += brief->ops[at].output_count;
    }
    layout->inner -= repeat->carry_count;
    layout->list = (uint32_t)repeat_block_place(layout, layout->times) + behind;
}

void repeat_layout_of(struct repeat_layout *layout, const struct tape *tape)
{
    *layout = (struct repeat_layout){.times = 0};
    if (tape->brief != NULL) {
        layout_of(layout, tape->brief);
    }
}

/* ---- checks ------------------------------------------------------------- */

/* What a tensor is to a repeat. */
enum part {
    PART_BEFORE = 0, /* there before the body, or made before it */
    PART_BODY,
    PART_BEHIND,
    PART_START, /* of a carry */
    PART_AFTER, /* of a carry */
};

/* The micro-batches of a group that the unrolled tape has. */
static uint32_t standing_of(const struct repeat *repeat)
{
    return repeat->group < 2 ? repeat->group : 2;
}

static enum status check_terms(const struct tape *tape, struct error *error)
{
    const struct repeat *repeat = &tape->repeat;
    uint32_t groups = repeat->group == 0 ? 0 : repeat->times / repeat->group;
    uint64_t standing = (uint64_t)groups * standing_of(repeat);
    uint64_t joins = groups == 0 ? 0 : (uint64_t)(groups - 1) * sum_count(repeat);
    uint64_t made = 0;
    uint64_t ops;
    uint64_t tensors;
    uint64_t items;

    /* A balanced tree over the groups needs a power of two: a group over would have no partner. */
    if (repeat->times < 2 || groups == 0 || repeat->times % repeat->group != 0 ||
        (groups & (groups - 1)) != 0) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "a repeat of %u micro-batches in groups of %u: there must be two or more, "
                         "in 1, 2, 4, 8, ... whole groups",
                         repeat->times, repeat->group);
    }
    if (repeat->op_count == 0 || repeat->first > tape->op_count ||
        repeat->op_count > tape->op_count - repeat->first) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "a repeat of %u operations from %u on, in a tape of %u", repeat->op_count,
                         repeat->first, tape->op_count);
    }
    if (repeat->carry_count == 0 || repeat->carry_count > tape->tensor_count) {
        return error_set(error, STATUS_BAD_FORMAT, "a repeat with %u accumulators",
                         repeat->carry_count);
    }
    for (uint32_t at = 0; at < repeat->op_count; at++) {
        made += tape->ops[repeat->first + at].output_count;
    }
    /* Before anything is made of them: few bytes can ask for more than memory. */
    ops = tape->op_count + repeat->op_count * (standing - 1) + joins;
    tensors = tape->tensor_count + made * (standing - 1) + joins;
    items = tape->tensor_count + made * (repeat->times - 1) + joins;
    if (repeat->times > REPEAT_TIMES_MAX || ops > REPEAT_OPS_MAX || tensors > REPEAT_TENSORS_MAX ||
        items > REPEAT_ITEMS_MAX) {
        return error_set(error, STATUS_OVER_LIMIT,
                         "%u micro-batches in %u groups make %llu tensors, and run as %llu "
                         "operations on %llu tensors; at most %u make %u and run as %u on %u",
                         repeat->times, groups, (unsigned long long)items, (unsigned long long)ops,
                         (unsigned long long)tensors, REPEAT_TIMES_MAX, REPEAT_ITEMS_MAX,
                         REPEAT_OPS_MAX, REPEAT_TENSORS_MAX);
    }
    return STATUS_OK;
}

static enum status mark_parts(uint8_t *parts, const struct tape *tape, struct error *error)
{
    const struct repeat *repeat = &tape->repeat;

    for (uint32_t at = repeat->first; at < tape->op_count; at++) {
        bool inside = at - repeat->first < repeat->op_count;

        for (uint32_t i = 0; i < tape->ops[at].output_count; i++) {
            uint32_t id = tape->ops[at].outputs[i];

            parts[id] = inside ? PART_BODY : PART_BEHIND;
            if (inside && tape->tensors[id].role != ROLE_TEMPORARY) {
                return error_set(error, STATUS_BAD_FORMAT,
                                 "operation %u (%s): '%s' is made by every micro-batch and must be "
                                 "a temporary, not of role %s",
                                 at, op_kind_name(tape->ops[at].kind), tape->tensors[id].name,
                                 role_name(tape->tensors[id].role));
            }
        }
    }
    return STATUS_OK;
}

/* The name is in the root: the parts of a carry must have one root when they are equal. */
static bool same_kind(const struct tensor *a, const struct tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, sizeof(a->dims[0]) * a->rank) == 0 &&
           strcmp(a->name, b->name) == 0;
}

static enum status check_carry(uint8_t *parts, const struct tape *tape, const struct carry *carry,
                               struct error *error)
{
    const struct tensor *start;
    const struct tensor *after;

    if (carry->start >= tape->tensor_count || carry->after >= tape->tensor_count) {
        return error_set(error, STATUS_BAD_FORMAT, "an accumulator of tensors %u and %u of %u",
                         carry->start, carry->after, tape->tensor_count);
    }
    start = &tape->tensors[carry->start];
    after = &tape->tensors[carry->after];
    if (parts[carry->start] != PART_BEFORE ||
        (start->role != ROLE_STATE && !role_is_made(start->role))) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the accumulator '%s' must begin as one state, or one tensor that is made "
                         "before the micro-batches",
                         start->name);
    }
    if (parts[carry->after] != PART_BODY) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "no operation of the micro-batch makes the accumulator '%s'", after->name);
    }
    if (!same_kind(start, after) || (carry->joined && after->dtype != DTYPE_F32)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the accumulator '%s' has another name, type or shape than its start '%s'",
                         after->name, start->name);
    }
    parts[carry->start] = PART_START;
    parts[carry->after] = PART_AFTER;
    return STATUS_OK;
}

/* What quantize makes has no canonical layout, and must be read as one operand. */
static enum status check_quantized(const uint8_t *parts, const struct tape *tape,
                                   struct error *error)
{
    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];

        for (uint32_t i = 0; op->kind == OP_QUANTIZE && i < op->output_count; i++) {
            if (parts[op->outputs[i]] >= PART_START) {
                return error_set(error, STATUS_BAD_FORMAT,
                                 "operation %u (quantize) makes the accumulator '%s'", at,
                                 tape->tensors[op->outputs[i]].name);
            }
        }
    }
    return STATUS_OK;
}

/* Only carries leave the body. */
static enum status check_leaving(const uint8_t *parts, const struct tape *tape, struct error *error)
{
    for (uint32_t at = tape->repeat.first + tape->repeat.op_count; at < tape->op_count; at++) {
        for (uint32_t i = 0; i < tape->ops[at].input_count; i++) {
            uint32_t id = tape->ops[at].inputs[i];

            if (parts[id] == PART_BODY) {
                return error_set(error, STATUS_BAD_FORMAT,
                                 "operation %u (%s) reads '%s' of a micro-batch, which is no "
                                 "accumulator",
                                 at, op_kind_name(tape->ops[at].kind), tape->tensors[id].name);
            }
        }
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (parts[tape->states[i].after] == PART_BODY) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "the next value of state '%s' is made by a micro-batch and is no "
                             "accumulator",
                             tape->tensors[tape->states[i].before].name);
        }
    }
    if (tape->loss != TENSOR_NONE && parts[tape->loss] == PART_BODY) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the loss is made by a micro-batch and is no accumulator");
    }
    return STATUS_OK;
}

static enum status check_repeat(const struct tape *tape, struct error *error)
{
    enum status status;
    uint8_t *parts;

    TRY(check_terms(tape, error));
    parts = calloc((size_t)tape->tensor_count + 1, sizeof(*parts));
    if (parts == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to check a tape");
    }
    TRY_OUT(mark_parts(parts, tape, error));
    for (uint32_t i = 0; i < tape->repeat.carry_count; i++) {
        TRY_OUT(check_carry(parts, tape, &tape->repeat.carries[i], error));
    }
    TRY_OUT(check_quantized(parts, tape, error));
    status = check_leaving(parts, tape, error);
out:
    free(parts);
    return status;
}

/* ---- unrolling ---------------------------------------------------------- */

struct unroller {
    struct tape *brief;
    struct tape *tape;
    struct repeat_layout layout;
    bool *hands_on;    /* for each tensor of the brief tape: is a carry left in it? */
    uint32_t *now;     /* for each tensor of the brief tape, the one that stands for it */
    uint32_t *last;    /* for each carry, what the micro-batch before left */
    uint32_t *pending; /* for each level of the tree and each carry, a subtree that waits */
};

static void add_op(struct unroller *unroller, const struct op *op, uint32_t item, uint32_t instance)
{
    struct tape *tape = unroller->tape;

    tape->origins[tape->op_count] = (struct op_origin){item, instance};
    tape->ops[tape->op_count++] = *op;
}

static uint32_t add_tensor_like(struct unroller *unroller, uint32_t id)
{
    struct tape *tape = unroller->tape;

    tape->tensors[tape->tensor_count] = tape->tensors[id];
    return tape->tensor_count++;
}

/* `listed` is the item of the first output that is in the trace's list, `inner` that of the first
 * one in a micro-batch's own; 0 where all are in the trace's. */
static void add_ops(struct unroller *unroller, uint32_t first, uint32_t end, uint32_t instance,
                    uint64_t listed, uint64_t inner)
{
    for (uint32_t at = first; at < end; at++) {
        struct op op = unroller->brief->ops[at];

        for (uint32_t i = 0; i < op.input_count; i++) {
            op.inputs[i] = unroller->now[op.inputs[i]];
        }
        for (uint32_t i = 0; i < op.output_count; i++) {
            uint32_t id = op.outputs[i];
            bool own = inner != 0 && !unroller->hands_on[id];

            op.outputs[i] = instance == 0 ? id : add_tensor_like(unroller, id);
            unroller->now[id] = op.outputs[i];
            unroller->tape->items[op.outputs[i]] = (uint32_t)(own ? inner++ : listed++);
        }
        add_op(unroller, &op, at, instance);
    }
}

static uint32_t add_join(struct unroller *unroller, uint32_t left, uint32_t right, uint32_t item,
                         uint32_t node)
{
    const uint64_t count = unroller->tape->tensors[left].count;
    struct op op = {.input_count = 2, .output_count = 1, .inputs = {left, right}};

    binary_set(&op, BINARY_ADD, count, 1, count);
    op.outputs[0] = add_tensor_like(unroller, left);
    unroller->tape->items[op.outputs[0]] =
        (uint32_t)repeat_join_place(&unroller->layout, node) + item - unroller->brief->op_count;
    add_op(unroller, &op, item, node);
    return op.outputs[0];
}

/* After `done` whole groups: joins every subtree that they complete, all carries at each level. */
static void join_groups(struct unroller *unroller, uint32_t done)
{
    const struct repeat *repeat = &unroller->brief->repeat;
    uint32_t groups = repeat->times / repeat->group;
    uint32_t level = 0;

    for (; (done >> level & 1) == 0 && groups >> (level + 1) != 0; level++) {
        uint32_t node = (groups >> (level + 1)) + (done >> (level + 1)) - 1;
        uint32_t item = unroller->brief->op_count;

        for (uint32_t i = 0; i < repeat->carry_count; i++) {
            if (repeat->carries[i].joined) {
                unroller->last[i] =
                    add_join(unroller, unroller->pending[(size_t)level * repeat->carry_count + i],
                             unroller->last[i], item++, node);
            }
        }
    }
    memcpy(unroller->pending + (size_t)level * repeat->carry_count, unroller->last,
           repeat->carry_count * sizeof(*unroller->last));
}

static void add_micro_batch(struct unroller *unroller, uint32_t instance)
{
    const struct repeat_layout *layout = &unroller->layout;
    const struct repeat *repeat = &unroller->brief->repeat;

    for (uint32_t k = 0; k < repeat->carry_count; k++) {
        const struct carry *carry = &repeat->carries[k];
        bool begins = instance == 0 || (carry->joined && instance % repeat->group == 0);

        unroller->now[carry->start] = begins ? carry->start : unroller->last[k];
    }
    add_ops(unroller, repeat->first, repeat->first + repeat->op_count, instance,
            repeat_block_place(layout, instance),
            layout->list + (uint64_t)instance * layout->inner);
}

/* The micro-batch that was just added becomes a loop. `last` is what the one before it left. */
static void add_loop(struct unroller *unroller, uint32_t first)
{
    const struct repeat *repeat = &unroller->brief->repeat;
    struct tape *tape = unroller->tape;

    tape->loops[tape->loop_count++] = (struct loop){.first = first,
                                                    .last = tape->op_count,
                                                    .turns = repeat->group - 1,
                                                    .carry_first = tape->loop_carry_count,
                                                    .carry_count = repeat->carry_count};
    for (uint32_t k = 0; k < repeat->carry_count; k++) {
        tape->loop_carries[tape->loop_carry_count++] =
            (struct loop_carry){unroller->last[k], unroller->now[repeat->carries[k].after]};
    }
}

static void add_group(struct unroller *unroller, uint32_t number)
{
    const struct repeat *repeat = &unroller->brief->repeat;

    for (uint32_t i = 0; i < standing_of(repeat); i++) {
        uint32_t first = unroller->tape->op_count;

        add_micro_batch(unroller, number * repeat->group + i);
        if (i == 1 && repeat->group > 2) {
            add_loop(unroller, first);
        }
        for (uint32_t k = 0; k < repeat->carry_count; k++) {
            unroller->last[k] = unroller->now[repeat->carries[k].after];
        }
    }
    join_groups(unroller, number + 1);
}

static void unroll_tape(struct unroller *unroller)
{
    const struct tape *brief = unroller->brief;
    const struct repeat *repeat = &brief->repeat;
    uint32_t behind = repeat->first + repeat->op_count;

    add_ops(unroller, 0, repeat->first, 0, brief->state_count, 0);
    for (uint32_t i = 0; i < repeat->times / repeat->group; i++) {
        add_group(unroller, i);
    }
    for (uint32_t k = 0; k < repeat->carry_count; k++) {
        unroller->now[repeat->carries[k].start] = repeat->carries[k].start;
        unroller->now[repeat->carries[k].after] = unroller->last[k];
    }
    add_ops(unroller, behind, brief->op_count, 0,
            repeat_block_place(&unroller->layout, repeat->times), 0);
    for (uint32_t i = 0; i < brief->state_count; i++) {
        unroller->tape->states[i].after = unroller->now[brief->states[i].after];
    }
    if (brief->loss != TENSOR_NONE) {
        unroller->tape->loss = unroller->now[brief->loss];
    }
}

/* The sizes are below the limits that check_terms() holds them to. */
static bool make_room(struct unroller *unroller)
{
    const struct tape *brief = unroller->brief;
    const struct repeat *repeat = &brief->repeat;
    struct tape *tape = unroller->tape;
    size_t groups = repeat->times / repeat->group;
    size_t more = groups * standing_of(repeat) - 1; /* micro-batches behind the first */
    size_t joins = (groups - 1) * sum_count(repeat);
    size_t ops = brief->op_count + repeat->op_count * more + joins;
    size_t tensors = brief->tensor_count + joins;

    for (uint32_t at = 0; at < repeat->op_count; at++) {
        tensors += brief->ops[repeat->first + at].output_count * more;
    }
    tape->tensors = malloc((tensors + 1) * sizeof(*tape->tensors));
    tape->ops = malloc((ops + 1) * sizeof(*tape->ops));
    tape->origins = malloc((ops + 1) * sizeof(*tape->origins));
    tape->items = malloc((tensors + 1) * sizeof(*tape->items));
    tape->states = malloc(((size_t)brief->state_count + 1) * sizeof(*tape->states));
    tape->loops = malloc(groups * sizeof(*tape->loops));
    tape->loop_carries = malloc(groups * repeat->carry_count * sizeof(*tape->loop_carries));
    unroller->hands_on = calloc((size_t)brief->tensor_count + 1, sizeof(*unroller->hands_on));
    unroller->now = malloc(((size_t)brief->tensor_count + 1) * sizeof(*unroller->now));
    unroller->last = calloc((size_t)repeat->carry_count + 1, sizeof(*unroller->last));
    unroller->pending =
        calloc(LEVELS_MAX * ((size_t)repeat->carry_count + 1), sizeof(*unroller->pending));
    return tape->tensors != NULL && tape->ops != NULL && tape->origins != NULL &&
           tape->items != NULL && tape->states != NULL && tape->loops != NULL &&
           tape->loop_carries != NULL && unroller->hands_on != NULL && unroller->now != NULL &&
           unroller->last != NULL && unroller->pending != NULL;
}

static void fill_tape(struct unroller *unroller)
{
    const struct tape *brief = unroller->brief;
    struct tape *tape = unroller->tape;

    memcpy(tape->tensors, brief->tensors, brief->tensor_count * sizeof(*brief->tensors));
    memcpy(tape->states, brief->states, brief->state_count * sizeof(*brief->states));
    for (uint32_t id = 0; id < brief->tensor_count; id++) {
        unroller->now[id] = id;
    }
    for (uint32_t k = 0; k < brief->repeat.carry_count; k++) {
        unroller->hands_on[brief->repeat.carries[k].after] = true;
    }
    tape->tensor_count = brief->tensor_count;
    tape->state_count = brief->state_count;
    tape->loss = TENSOR_NONE;
    layout_of(&unroller->layout, brief);
    unroll_tape(unroller);
    tape->brief = unroller->brief;
    tape->join_count = brief->repeat.times == brief->repeat.group ? 0 : sum_count(&brief->repeat);
}

enum status repeat_unroll(struct tape **unrolled, struct tape *brief, struct error *error)
{
    struct unroller unroller = {.brief = brief};
    enum status status = STATUS_OK;

    if (brief->repeat.times == 0) {
        *unrolled = brief;
        return STATUS_OK;
    }
    TRY_OUT(check_repeat(brief, error));
    unroller.tape = calloc(1, sizeof(*unroller.tape));
    if (unroller.tape == NULL || !make_room(&unroller)) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for %u micro-batches",
                           brief->repeat.times);
        goto out;
    }
    fill_tape(&unroller);
    *unrolled = unroller.tape;
out:
    free(unroller.hands_on);
    free(unroller.now);
    free(unroller.last);
    free(unroller.pending);
    if (status != STATUS_OK) {
        tape_free(unroller.tape);
        tape_free(brief);
    }
    return status;
}
