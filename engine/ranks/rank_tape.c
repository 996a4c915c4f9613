/* rank_tape.c - see rank_tape.h. */
#include "engine/ranks/rank_tape.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a tape has -------------------------------------------------------------------- */

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

/* ---- which operations ------------------------------------------------------------------- */

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

/* ---- tensors ---------------------------------------------------------------------------- */

/* What lasts is whole here, but the states of which each rank has its shard. */
static void add_lasting(struct tape_cutter *cutter)
{
    const struct tape *whole = cutter->whole;
    uint32_t state = 0;

    for (uint32_t id = 0; id < whole->tensor_count; id++) {
        enum role role = whole->tensors[id].role;
        enum rank_state kind = RANK_STATE_ALL;

        cutter->stand[id] = cutter->own->parts[id] = TENSOR_NONE;
        if (role == ROLE_STATE) {
            while (whole->states[state].before != id) {
                state = (state + 1) % whole->state_count;
            }
            kind = cutter->places->states[state];
        }
        if (role_is_made(role)) {
            continue;
        }
        if (kind == RANK_STATE_CUT) {
            tape_cutter_add_part(cutter, id, role);
        } else {
            /* A state whose next value arrives is written like an input. */
            role = kind == RANK_STATE_GATHERED ? ROLE_INPUT : role;
            cutter->stand[id] = tape_cutter_add(cutter, id, role);
        }
    }
}

/* ---- operations ------------------------------------------------------------------------- */

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
            counter->begin = tape_cutter_name(cutter, start, ROLE_INPUT, "begin");
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

/* The shards of the sums, and where the counters end, stand for what other ranks make. */
static void add_ends(struct tape_cutter *cutter, uint32_t at)
{
    const struct tape *whole = cutter->whole;
    const struct repeat *repeat = &whole->brief->repeat;
    struct rank_tape *own = cutter->own;
    uint32_t counter = 0;

    for (uint32_t i = 0; i < whole->ops[at].output_count; i++) {
        const uint32_t id = whole->ops[at].outputs[i];
        uint32_t node;
        uint32_t k;

        if (!ends_node(&k, &node, whole, at, i)) {
            continue;
        }
        for (uint32_t j = 0; j < k; j++) {
            counter += !repeat->carries[j].joined;
        }
        if (repeat->carries[k].joined && node == 1) {
            tape_cutter_add_part(cutter, id, ROLE_INPUT);
        } else if (!repeat->carries[k].joined && node == 2 * cutter->plan->group_count - 1) {
            own->counters[counter].end = tape_cutter_name(cutter, id, ROLE_INPUT, "end");
            own->counters[counter].end_plus = repeat->times - 1;
            cutter->stand[id] = tape_cutter_add(cutter, id, ROLE_TEMPORARY);
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
                tape_cutter_put(cutter, &op);
            }
        }
    }
}

static void put_ops(struct tape_cutter *cutter)
{
    const struct tape *whole = cutter->whole;

    for (uint32_t at = 0; at < whole->op_count; at++) {
        if (cutter->places->ops[at].where != RANK_BODY) {
            continue;
        }
        if (is_own(cutter, at)) {
            tape_cutter_copy(cutter, at);
            mark_outputs(cutter, at);
        } else {
            hand_counters(cutter, at);
            add_ends(cutter, at);
        }
    }
    put_counter_ends(cutter);
    for (uint32_t stage = 1; stage < cutter->places->stage_count; stage++) {
        cutter->own->legs[stage] = cutter->own->tape->op_count;
        tape_cutter_put_stage(cutter, stage);
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
        const bool in_parts = cutter->places->states[i] == RANK_STATE_CUT;
        const uint32_t *ids = in_parts ? cutter->own->parts : cutter->stand;
        struct state_pair pair = whole->states[i];

        if (cutter->places->states[i] == RANK_STATE_GATHERED || ids[pair.before] == TENSOR_NONE) {
            continue;
        }
        pair.before = ids[pair.before];
        pair.after = ids[pair.after];
        assert(pair.after != TENSOR_NONE);
        tape->states[tape->state_count++] = pair;
    }
    tape->loss = whole->loss == TENSOR_NONE ? TENSOR_NONE : tape_cutter_whole(cutter, whole->loss);
}

/* ---- all of it -------------------------------------------------------------------------- */

static bool make_tables(struct tape_cutter *cutter)
{
    const struct tape *whole = cutter->whole;
    const size_t carries = whole->brief->repeat.carry_count;
    struct rank_tape *own = cutter->own;

    own->outputs = calloc(carries * own->subtree_count + 1, sizeof(*own->outputs));
    own->counters = calloc(carries + 1, sizeof(*own->counters));
    own->ids = malloc(((size_t)whole->tensor_count + 1) * sizeof(*own->ids));
    own->parts = malloc(((size_t)whole->tensor_count + 1) * sizeof(*own->parts));
    own->legs = calloc((size_t)own->leg_count + 1, sizeof(*own->legs));
    own->arrivals = malloc(((size_t)cutter->places->arrival_count + 1) * sizeof(*own->arrivals));
    cutter->kept = malloc(((size_t)whole->op_count + 1) * sizeof(*cutter->kept));
    cutter->arrivals = malloc(((size_t)whole->tensor_count + 1) * sizeof(*cutter->arrivals));
    cutter->stand = own->ids;
    return own->outputs != NULL && own->counters != NULL && own->ids != NULL &&
           own->parts != NULL && own->legs != NULL && own->arrivals != NULL &&
           cutter->kept != NULL && cutter->arrivals != NULL;
}

/* A part of each tensor, a copy of it, and what arrives. */
static bool make_room(struct tape_cutter *cutter)
{
    const struct tape *whole = cutter->whole;
    const size_t carries = whole->brief->repeat.carry_count;
    struct tape *tape = calloc(1, sizeof(*tape));

    cutter->own->tape = tape;
    if (tape == NULL || !make_tables(cutter)) {
        return false;
    }
    tape->tensors =
        malloc((3 * (size_t)whole->tensor_count + 3 * carries + 1) * sizeof(*tape->tensors));
    tape->ops =
        malloc((whole->op_count + (size_t)whole->tensor_count + carries + 1) * sizeof(*tape->ops));
    tape->states = malloc(((size_t)whole->state_count + 1) * sizeof(*tape->states));
    tape->loops = malloc(((size_t)whole->loop_count + 1) * sizeof(*tape->loops));
    tape->loop_carries = malloc(((size_t)whole->loop_carry_count + 1) * sizeof(struct loop_carry));
    for (uint32_t at = 0; at < whole->op_count; at++) {
        cutter->kept[at] = TENSOR_NONE;
    }
    for (uint32_t id = 0; id < whole->tensor_count; id++) {
        cutter->arrivals[id] = TENSOR_NONE;
    }
    for (uint32_t i = 0; i < cutter->places->arrival_count; i++) {
        cutter->arrivals[cutter->places->arrivals[i].tensor] = i;
        cutter->own->arrivals[i] = TENSOR_NONE;
    }
    return tape->tensors != NULL && tape->ops != NULL && tape->states != NULL &&
           tape->loops != NULL && tape->loop_carries != NULL;
}

/* A job's graph may be anything: what was cut is checked as what is read is. */
static enum status check_cut_ops(const struct rank_tape *own, struct error *error)
{
    const uint32_t first = own->leg_count > 1 ? own->legs[1] : own->tape->op_count;

    for (uint32_t at = first; at < own->tape->op_count; at++) {
        TRY(op_check(&own->tape->ops[at], own->tape->tensors, own->tape->tensor_count, error));
    }
    return STATUS_OK;
}

enum status rank_tape_build(struct rank_tape *own, const struct rank_places *places,
                            const struct ranks_plan *plan, uint32_t rank, struct error *error)
{
    struct tape_cutter cutter = {
        .whole = places->whole, .places = places, .plan = plan, .rank = rank, .own = own};
    enum status status;

    *own = (struct rank_tape){.sum_count = places->sum_count,
                              .subtree_count = ranks_first_subtree(plan, rank + 1) -
                                               ranks_first_subtree(plan, rank),
                              .leg_count = places->stage_count};
    if (!make_room(&cutter)) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for the tape of rank %u", rank);
    } else {
        add_lasting(&cutter);
        begin_counters(&cutter);
        put_ops(&cutter);
        take_loops(&cutter);
        take_states(&cutter);
        status = check_cut_ops(own, error);
    }
    free(cutter.kept);
    free(cutter.arrivals);
    if (status != STATUS_OK) {
        rank_tape_release(own);
    }
    return status;
}

void rank_tape_release(struct rank_tape *own)
{
    tape_free(own->tape);
    free(own->ids);
    free(own->parts);
    free(own->arrivals);
    free(own->legs);
    free(own->outputs);
    free(own->counters);
    *own = (struct rank_tape){.tape = NULL};
}

/* ---- the legs --------------------------------------------------------------------------- */

/* Of each tensor of the rank's tape the leg that makes it, or before which it arrives. */
static uint32_t *find_legs(const struct rank_tape *own, const struct rank_places *places)
{
    const struct tape *tape = own->tape;
    uint32_t *legs = calloc((size_t)tape->tensor_count + 1, sizeof(*legs));
    uint32_t leg = 0;

    for (uint32_t at = 0; legs != NULL && at < tape->op_count; at++) {
        while (leg + 1 < own->leg_count && at >= own->legs[leg + 1]) {
            leg++;
        }
        for (uint32_t i = 0; i < tape->ops[at].output_count; i++) {
            legs[tape->ops[at].outputs[i]] = leg;
        }
    }
    for (uint32_t k = 0; legs != NULL && k < places->sum_count; k++) {
        if (own->parts[places->sums[k]] != TENSOR_NONE) {
            legs[own->parts[places->sums[k]]] = 1;
        }
    }
    for (uint32_t i = 0; legs != NULL && i < places->arrival_count; i++) {
        if (own->arrivals[i] != TENSOR_NONE) {
            legs[own->arrivals[i]] = places->arrivals[i].stage;
        }
    }
    return legs;
}

/* The leg that an operation of a rewrite belongs to; 0 where it is new and reads what is older. */
static uint32_t leg_of(const struct op *op, const uint32_t *legs, uint32_t tensor_count)
{
    uint32_t leg = 0;

    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        const uint32_t id = i < op->input_count ? op->inputs[i] : op->outputs[i - op->input_count];

        leg = id < tensor_count && legs[id] > leg ? legs[id] : leg;
    }
    return leg;
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

/* Is it sent before this leg runs? */
static bool is_sent_before(const struct rank_tape *own, const struct rank_places *places,
                           uint32_t leg, uint32_t id)
{
    for (uint32_t i = 0; i < places->arrival_count; i++) {
        if (own->parts[places->arrivals[i].tensor] == id && places->arrivals[i].stage <= leg) {
            return true;
        }
    }
    return is_part(own, id);
}

static enum status check_legs(const uint32_t *legs, const struct rank_tape *own,
                              const struct rank_places *places, const struct tape *run,
                              struct error *error)
{
    for (uint32_t leg = 1; leg < own->leg_count; leg++) {
        for (uint32_t at = legs[leg]; at < run->op_count; at++) {
            for (uint32_t i = 0; i < run->ops[at].output_count; i++) {
                if (is_sent_before(own, places, leg, run->ops[at].outputs[i])) {
                    return error_set(error, STATUS_REFUSED,
                                     "this way to run a step mixes what ranks add with what "
                                     "follows from the sums: leave --recompute and --hoist out");
                }
            }
        }
    }
    return STATUS_OK;
}

enum status rank_tape_cut(uint32_t *legs, const struct rank_tape *own,
                          const struct rank_places *places, const struct tape *run,
                          struct error *error)
{
    uint32_t *known = find_legs(own, places);

    if (known == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the legs of a step");
    }
    legs[0] = 0;
    for (uint32_t leg = 1; leg < own->leg_count; leg++) {
        legs[leg] = legs[leg - 1];
        while (legs[leg] < run->op_count &&
               leg_of(&run->ops[legs[leg]], known, own->tape->tensor_count) < leg) {
            ++legs[leg];
        }
    }
    free(known);
    return check_legs(legs, own, places, run, error);
}
