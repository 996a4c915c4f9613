/* rank_tape.c - see rank_tape.h. */
#include "engine/ranks/rank_tape.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tape_cutter {
    const struct tape *whole;
    const struct ranks_plan *plan;
    uint32_t rank;
    struct rank_tape *own;
    uint32_t *kept;  /* per operation of the whole tape: its place here, or TENSOR_NONE */
    uint32_t *stand; /* per tensor of the whole tape: the id here that stands for it */
};

/* ---- what a tape has --------------------------------------------------------------------- */

uint32_t rank_tape_groups(const struct tape *whole)
{
    return whole->brief == NULL ? 1 : whole->brief->repeat.times / whole->brief->repeat.group;
}

/* Does the body make the carry by counting on from its start? */
static bool is_counter(const struct tape *brief, const struct carry *carry)
{
    const struct repeat *repeat = &brief->repeat;

    for (uint32_t at = repeat->first; at < repeat->first + repeat->op_count; at++) {
        const struct op *op = &brief->ops[at];

        if (op->kind == OP_STEP_NEXT && op->outputs[0] == carry->after) {
            return op->inputs[0] == carry->start && brief->tensors[carry->start].role == ROLE_STATE;
        }
    }
    return false;
}

enum status rank_tape_check(const struct tape *whole, struct error *error)
{
    const struct repeat *repeat;

    if (rank_tape_groups(whole) < 2) {
        (void)error_set(error, STATUS_REFUSED,
                        "the job has no groups of micro-batches, which are "
                        "what ranks share");
        error_advise(
            error,
            "'job new --accumulate N --accumulate-group M' makes N / M groups: 2, 4, 8, ...");
        return STATUS_REFUSED;
    }
    repeat = &whole->brief->repeat;
    for (uint32_t k = 0; k < repeat->carry_count; k++) {
        const struct carry *carry = &repeat->carries[k];

        if (!carry->joined && !is_counter(whole->brief, carry)) {
            return error_set(error, STATUS_REFUSED,
                             "the micro-batches hand on '%s', which is neither a sum nor a "
                             "counter: ranks cannot share them",
                             whole->brief->tensors[carry->start].name);
        }
    }
    return STATUS_OK;
}

enum status rank_tape_sums(struct tensor **sums, uint32_t *count, const struct tape *whole,
                           struct error *error)
{
    const struct tape *brief = whole->brief;

    *count = 0;
    *sums = calloc((size_t)brief->repeat.carry_count + 1, sizeof(**sums));
    if (*sums == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of sums");
    }
    for (uint32_t k = 0; k < brief->repeat.carry_count; k++) {
        if (brief->repeat.carries[k].joined) {
            (*sums)[(*count)++] = brief->tensors[brief->repeat.carries[k].after];
        }
    }
    return STATUS_OK;
}

/* ---- which operations -------------------------------------------------------------------- */

/* The groups below a node of the tree. */
static void groups_of_node(uint32_t *first, uint32_t *end, uint32_t node, uint32_t groups)
{
    const uint32_t depth = 31 - (uint32_t)__builtin_clz(node);
    const uint32_t level = 31 - (uint32_t)__builtin_clz(groups) - depth;

    *first = (node - (UINT32_C(1) << depth)) << level;
    *end = *first + (UINT32_C(1) << level);
}

/* Of an operation of micro-batches or a join: the groups that it takes in. */
static bool takes_groups(uint32_t *first, uint32_t *end, const struct tape *whole, uint32_t at)
{
    const struct tape *brief = whole->brief;
    const struct op_origin *origin = &whole->origins[at];

    if (origin->item >= brief->op_count) {
        groups_of_node(first, end, origin->instance, rank_tape_groups(whole));
        return true;
    }
    *first = origin->instance / brief->repeat.group;
    *end = *first + 1;
    return origin->item >= brief->repeat.first &&
           origin->item < brief->repeat.first + brief->repeat.op_count;
}

static bool is_own(const struct tape_cutter *cutter, uint32_t at)
{
    const struct ranks_plan *plan = cutter->plan;
    uint32_t first;
    uint32_t end;

    return !takes_groups(&first, &end, cutter->whole, at) ||
           (first >= ranks_first_group(cutter->rank, plan->rank_count, plan->group_count) &&
            end <= ranks_first_group(cutter->rank + 1, plan->rank_count, plan->group_count));
}

/* ---- tensors ----------------------------------------------------------------------------- */

static uint32_t add_tensor(struct tape_cutter *cutter, uint32_t like, enum role role)
{
    struct tape *tape = cutter->own->tape;
    struct tensor *tensor = &tape->tensors[tape->tensor_count];

    *tensor = cutter->whole->tensors[like];
    tensor->role = role;
    return tape->tensor_count++;
}

/* Inputs and outputs have names of their own; only people who look for a fault read them. */
static uint32_t add_named(struct tape_cutter *cutter, uint32_t like, enum role role,
                          const char *what)
{
    const uint32_t id = add_tensor(cutter, like, role);

    (void)snprintf(cutter->own->tape->tensors[id].name, TENSOR_NAME_MAX + 1, "rank.%s.%u", what,
                   id);
    return id;
}

static void add_lasting(struct tape_cutter *cutter)
{
    for (uint32_t id = 0; id < cutter->whole->tensor_count; id++) {
        const enum role role = cutter->whole->tensors[id].role;

        cutter->stand[id] = role_is_made(role) ? TENSOR_NONE : add_tensor(cutter, id, role);
    }
}

/* ---- operations -------------------------------------------------------------------------- */

static void put_op(struct tape_cutter *cutter, const struct op *op)
{
    cutter->own->tape->ops[cutter->own->tape->op_count++] = *op;
}

static void copy_op(struct tape_cutter *cutter, uint32_t at)
{
    struct op op = cutter->whole->ops[at];

    for (uint32_t i = 0; i < op.input_count; i++) {
        op.inputs[i] = cutter->stand[op.inputs[i]];
        assert(op.inputs[i] != TENSOR_NONE);
    }
    for (uint32_t i = 0; i < op.output_count; i++) {
        const uint32_t id = op.outputs[i];

        op.outputs[i] = cutter->stand[id] = add_tensor(cutter, id, cutter->whole->tensors[id].role);
    }
    cutter->kept[at] = cutter->own->tape->op_count;
    put_op(cutter, &op);
}

/* Is it the operation that makes a carry's value after the last micro-batch of a group, or a join?
 * Then *k is the carry and *node the node of the tree. */
static bool ends_node(uint32_t *k, uint32_t *node, const struct tape *whole, uint32_t at,
                      uint32_t output)
{
    const struct tape *brief = whole->brief;
    const struct repeat *repeat = &brief->repeat;
    const struct op_origin *origin = &whole->origins[at];
    const uint32_t turns = tape_turns(whole, at);
    uint32_t sum = 0;

    for (*k = 0; *k < repeat->carry_count; ++*k) {
        if (origin->item >= brief->op_count) {
            *node = origin->instance;
            if (repeat->carries[*k].joined && sum++ == origin->item - brief->op_count) {
                return true;
            }
        } else if (origin->item >= repeat->first &&
                   origin->item < repeat->first + repeat->op_count &&
                   brief->ops[origin->item].outputs[output] == repeat->carries[*k].after) {
            *node = rank_tape_groups(whole) + origin->instance / repeat->group;
            return origin->instance % repeat->group + turns == repeat->group;
        }
    }
    return false;
}

/* The sums of the rank's subtrees become outputs. */
static void mark_outputs(struct tape_cutter *cutter, uint32_t at)
{
    const struct ranks_plan *plan = cutter->plan;
    const uint32_t first = ranks_first_subtree(plan, cutter->rank);
    const uint32_t end = ranks_first_subtree(plan, cutter->rank + 1);
    const struct carry *carries = cutter->whole->brief->repeat.carries;

    for (uint32_t i = 0; i < cutter->whole->ops[at].output_count; i++) {
        const uint32_t id = cutter->stand[cutter->whole->ops[at].outputs[i]];
        uint32_t sum = 0;
        uint32_t node;
        uint32_t k;

        if (!ends_node(&k, &node, cutter->whole, at, i) || !carries[k].joined) {
            continue;
        }
        for (uint32_t j = 0; j < k; j++) {
            sum += carries[j].joined;
        }
        for (uint32_t j = first; j < end; j++) {
            if (plan->subtrees[j].node == node) {
                cutter->own->outputs[(size_t)(j - first) * cutter->own->sum_count + sum] = id;
                cutter->own->tape->tensors[id].role = ROLE_OUTPUT;
                (void)snprintf(cutter->own->tape->tensors[id].name, TENSOR_NAME_MAX + 1,
                               "rank.part.%u", id);
            }
        }
    }
}

/* What stands for the value that the groups before this rank's have left in each counter. */
static void begin_counters(struct tape_cutter *cutter)
{
    const struct tape *whole = cutter->whole;
    const struct repeat *repeat = &whole->brief->repeat;
    const uint32_t before =
        ranks_first_group(cutter->rank, cutter->plan->rank_count, cutter->plan->group_count);

    for (uint32_t k = 0; k < repeat->carry_count; k++) {
        const uint32_t start = repeat->carries[k].start;
        struct rank_counter *counter = &cutter->own->counters[cutter->own->counter_count];

        if (repeat->carries[k].joined) {
            continue;
        }
        cutter->own->counter_count++;
        *counter = (struct rank_counter){cutter->stand[start], TENSOR_NONE, 0, TENSOR_NONE, 0};
        if (before > 0) {
            counter->begin = add_named(cutter, start, ROLE_INPUT, "begin");
            counter->begin_plus = before * repeat->group;
        }
    }
}

/* The operations of the rank's first group read the counters where the group before left them. */
static void hand_counters(struct tape_cutter *cutter, uint32_t at)
{
    const struct tape *whole = cutter->whole;
    const struct repeat *repeat = &whole->brief->repeat;
    uint32_t counter = 0;

    for (uint32_t k = 0; k < repeat->carry_count; k++) {
        uint32_t maker;
        uint32_t node;

        if (repeat->carries[k].joined) {
            continue;
        }
        for (uint32_t i = 0; i < whole->ops[at].output_count; i++) {
            if (ends_node(&maker, &node, whole, at, i) && maker == k &&
                cutter->own->counters[counter].begin != TENSOR_NONE) {
                cutter->stand[whole->ops[at].outputs[i]] = cutter->own->counters[counter].begin;
            }
        }
        counter++;
    }
}

/* The whole sums, and where the counters end, stand for what other ranks make. */
static void add_ends(struct tape_cutter *cutter, uint32_t at)
{
    const struct tape *whole = cutter->whole;
    const struct repeat *repeat = &whole->brief->repeat;
    struct rank_tape *own = cutter->own;
    uint32_t counter = 0;

    for (uint32_t i = 0; i < whole->ops[at].output_count; i++) {
        const uint32_t id = whole->ops[at].outputs[i];
        uint32_t sum = 0;
        uint32_t node;
        uint32_t k;

        if (!ends_node(&k, &node, whole, at, i)) {
            continue;
        }
        for (uint32_t j = 0; j < k; j++) {
            *(repeat->carries[j].joined ? &sum : &counter) += 1;
        }
        if (repeat->carries[k].joined && node == 1) {
            own->sums[sum] = cutter->stand[id] = add_named(cutter, id, ROLE_INPUT, "sum");
        } else if (!repeat->carries[k].joined && node == 2 * cutter->plan->group_count - 1) {
            own->counters[counter].end = add_named(cutter, id, ROLE_INPUT, "end");
            own->counters[counter].end_plus = repeat->times - 1;
            cutter->stand[id] = add_tensor(cutter, id, ROLE_TEMPORARY);
        }
        counter = 0;
    }
}

/* On a rank without the last group, an operation of its own makes the last value of a counter. */
static void put_counter_ends(struct tape_cutter *cutter)
{
    const struct tape *whole = cutter->whole;

    for (uint32_t i = 0; i < whole->state_count; i++) {
        for (uint32_t k = 0; k < cutter->own->counter_count; k++) {
            const struct rank_counter *counter = &cutter->own->counters[k];
            struct op op = {.kind = OP_STEP_NEXT, .input_count = 1, .output_count = 1};

            if (counter->end != TENSOR_NONE &&
                counter->state == cutter->stand[whole->states[i].before]) {
                op.inputs[0] = counter->end;
                op.outputs[0] = cutter->stand[whole->states[i].after];
                put_op(cutter, &op);
            }
        }
    }
}

static void put_ops(struct tape_cutter *cutter)
{
    const struct tape *whole = cutter->whole;
    const struct repeat *repeat = &whole->brief->repeat;
    bool behind = false;

    for (uint32_t at = 0; at < whole->op_count; at++) {
        const uint32_t item = whole->origins[at].item;

        if (!behind && item >= repeat->first + repeat->op_count && item < whole->brief->op_count) {
            put_counter_ends(cutter);
            behind = true;
        }
        if (is_own(cutter, at)) {
            copy_op(cutter, at);
            mark_outputs(cutter, at);
        } else {
            hand_counters(cutter, at);
            add_ends(cutter, at);
        }
    }
    if (!behind) {
        put_counter_ends(cutter);
    }
}

static void take_loops(struct tape_cutter *cutter)
{
    const struct tape *whole = cutter->whole;
    struct tape *tape = cutter->own->tape;

    for (uint32_t i = 0; i < whole->loop_count; i++) {
        struct loop loop = whole->loops[i];

        if (cutter->kept[loop.first] == TENSOR_NONE) {
            continue;
        }
        loop.last = cutter->kept[loop.last - 1] + 1;
        loop.first = cutter->kept[loop.first];
        for (uint32_t k = 0; k < loop.carry_count; k++) {
            const struct loop_carry *carry = &whole->loop_carries[loop.carry_first + k];

            tape->loop_carries[tape->loop_carry_count + k] =
                (struct loop_carry){cutter->stand[carry->in], cutter->stand[carry->out]};
        }
        loop.carry_first = tape->loop_carry_count;
        tape->loop_carry_count += loop.carry_count;
        tape->loops[tape->loop_count++] = loop;
    }
}

static void take_states(struct tape_cutter *cutter)
{
    const struct tape *whole = cutter->whole;
    struct tape *tape = cutter->own->tape;

    for (uint32_t i = 0; i < whole->state_count; i++) {
        tape->states[i] = whole->states[i];
        tape->states[i].before = cutter->stand[whole->states[i].before];
        tape->states[i].after = cutter->stand[whole->states[i].after];
        assert(tape->states[i].after != TENSOR_NONE);
    }
    tape->state_count = whole->state_count;
    tape->loss = whole->loss == TENSOR_NONE ? TENSOR_NONE : cutter->stand[whole->loss];
}

/* ---- all of it --------------------------------------------------------------------------- */

static bool make_room(struct tape_cutter *cutter)
{
    const struct tape *whole = cutter->whole;
    const size_t carries = whole->brief->repeat.carry_count;
    const uint32_t subtrees = ranks_first_subtree(cutter->plan, cutter->rank + 1) -
                              ranks_first_subtree(cutter->plan, cutter->rank);
    struct tape *tape = calloc(1, sizeof(*tape));
    struct rank_tape *own = cutter->own;

    own->tape = tape;
    own->subtree_count = subtrees;
    own->sums = calloc(carries + 1, sizeof(*own->sums));
    own->outputs = calloc(carries * subtrees + 1, sizeof(*own->outputs));
    own->counters = calloc(carries + 1, sizeof(*own->counters));
    own->ids = malloc(((size_t)whole->tensor_count + 1) * sizeof(*own->ids));
    cutter->kept = malloc(((size_t)whole->op_count + 1) * sizeof(*cutter->kept));
    cutter->stand = own->ids;
    if (tape == NULL || own->sums == NULL || own->outputs == NULL || own->counters == NULL ||
        own->ids == NULL || cutter->kept == NULL) {
        return false;
    }
    tape->tensors = malloc((whole->tensor_count + 3 * carries + 1) * sizeof(*tape->tensors));
    tape->ops = malloc((whole->op_count + carries + 1) * sizeof(*tape->ops));
    tape->states = malloc(((size_t)whole->state_count + 1) * sizeof(*tape->states));
    tape->loops = malloc(((size_t)whole->loop_count + 1) * sizeof(*tape->loops));
    tape->loop_carries = malloc(((size_t)whole->loop_carry_count + 1) * sizeof(struct loop_carry));
    for (uint32_t at = 0; at < whole->op_count; at++) {
        cutter->kept[at] = TENSOR_NONE;
    }
    return tape->tensors != NULL && tape->ops != NULL && tape->states != NULL &&
           tape->loops != NULL && tape->loop_carries != NULL;
}

enum status rank_tape_build(struct rank_tape *own, const struct tape *whole,
                            const struct ranks_plan *plan, uint32_t rank, struct error *error)
{
    struct tape_cutter cutter = {.whole = whole, .plan = plan, .rank = rank, .own = own};
    enum status status = STATUS_OK;

    *own = (struct rank_tape){.tape = NULL};
    for (uint32_t k = 0; k < whole->brief->repeat.carry_count; k++) {
        own->sum_count += whole->brief->repeat.carries[k].joined;
    }
    if (!make_room(&cutter)) {
        rank_tape_release(own);
        status = error_set(error, STATUS_NO_MEMORY, "no memory for the tape of rank %u", rank);
    } else {
        add_lasting(&cutter);
        begin_counters(&cutter);
        put_ops(&cutter);
        take_loops(&cutter);
        take_states(&cutter);
    }
    free(cutter.kept);
    return status;
}

void rank_tape_release(struct rank_tape *own)
{
    tape_free(own->tape);
    free(own->ids);
    free(own->sums);
    free(own->outputs);
    free(own->counters);
    *own = (struct rank_tape){.tape = NULL};
}

/* ---- the legs ---------------------------------------------------------------------------- */

static bool reads_sum(const struct rank_tape *own, const struct op *op)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        for (uint32_t k = 0; k < own->sum_count; k++) {
            if (op->inputs[i] == own->sums[k]) {
                return true;
            }
        }
    }
    return false;
}

static bool is_part(const struct rank_tape *own, uint32_t id)
{
    for (uint32_t i = 0; i < own->subtree_count * own->sum_count; i++) {
        if (own->outputs[i] == id) {
            return true;
        }
    }
    return false;
}

enum status rank_tape_cut(uint32_t *cut, const struct rank_tape *own, const struct tape *run,
                          struct error *error)
{
    *cut = 0;
    while (*cut < run->op_count && !reads_sum(own, &run->ops[*cut])) {
        ++*cut;
    }
    for (uint32_t at = *cut; at < run->op_count; at++) {
        for (uint32_t i = 0; i < run->ops[at].output_count; i++) {
            if (is_part(own, run->ops[at].outputs[i])) {
                return error_set(error, STATUS_REFUSED,
                                 "this way to run a step mixes what ranks add with what follows "
                                 "from the sums: leave --recompute and --hoist out");
            }
        }
    }
    return STATUS_OK;
}
