/* plan.c - see plan.h. */
#include "engine/plan/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NEVER UINT32_MAX

/* A hole in the block of temporaries. */
struct hole {
    uint64_t offset;
    uint64_t size;
};

struct planner {
    struct plan *plan;
    const struct tape *tape;
    const struct plan_hooks *hooks;
    uint64_t *sizes;    /* per tensor, rounded up to the alignment */
    uint32_t *last_use; /* per tensor: the last operation that reads it, or NEVER */
    bool *needed;       /* per tensor: an input, a next state, an output of the tape or the loss */
    bool *pinned;       /* per tensor: lives to the end of the step */
    uint32_t *holders;  /* per tensor: its holder, or itself */
    bool *holds;        /* per tensor: is it a holder? */
    uint32_t *makers;   /* per tensor: the first operation that makes it or a part, or NEVER */
    uint32_t *into;     /* per tensor: the one that a turn gave, whose place it takes, or NEVER */
    bool *settled;      /* per tensor: a loop decides who takes its place */
    struct hole *holes; /* sorted by offset, never touching */
    uint32_t hole_count;
};

/*
 * Large tensors tend to be a whole number of pages long. End to end, all would begin at the same
 * offset in a page and compete for the same cache lines in a kernel that reads several of them. So
 * each large tensor gets some lines more.
 */
#define SKEW_FROM 16384
#define SKEW      (17 * (uint64_t)PLAN_ALIGNMENT)

static uint64_t round_up(uint64_t size)
{
    uint64_t rounded = (size + PLAN_ALIGNMENT - 1) / PLAN_ALIGNMENT * PLAN_ALIGNMENT;

    return size < SKEW_FROM ? rounded : rounded + SKEW;
}

/* ---- the block of temporaries ------------------------------------------- */

static void remove_hole(struct planner *planner, uint32_t at)
{
    planner->hole_count--;
    memmove(&planner->holes[at], &planner->holes[at + 1],
            (planner->hole_count - at) * sizeof(*planner->holes));
}

/* Takes the smallest hole that fits. Without one the block grows, using a hole at its end. */
static uint64_t take_place(struct planner *planner, uint64_t size)
{
    uint32_t best = NEVER;
    uint64_t offset;

    for (uint32_t i = 0; i < planner->hole_count; i++) {
        if (planner->holes[i].size >= size &&
            (best == NEVER || planner->holes[i].size < planner->holes[best].size)) {
            best = i;
        }
    }
    if (best == NEVER) {
        uint64_t *end = &planner->plan->temporary_size;
        uint32_t last = planner->hole_count - 1;

        offset = *end;
        if (planner->hole_count > 0 &&
            planner->holes[last].offset + planner->holes[last].size == *end) {
            offset = planner->holes[last].offset;
            remove_hole(planner, last);
        }
        *end = offset + size;
        return offset;
    }
    offset = planner->holes[best].offset;
    planner->holes[best].offset += size;
    planner->holes[best].size -= size;
    if (planner->holes[best].size == 0) {
        remove_hole(planner, best);
    }
    return offset;
}

static void give_place(struct planner *planner, uint64_t offset, uint64_t size)
{
    struct hole *holes = planner->holes;
    uint32_t at = 0;
    bool joins_left;
    bool joins_right;

    while (at < planner->hole_count && holes[at].offset < offset) {
        at++;
    }
    joins_left = at > 0 && holes[at - 1].offset + holes[at - 1].size == offset;
    joins_right = at < planner->hole_count && offset + size == holes[at].offset;
    if (joins_left) {
        holes[at - 1].size += size;
        if (joins_right) {
            holes[at - 1].size += holes[at].size;
            remove_hole(planner, at);
        }
    } else if (joins_right) {
        holes[at].offset = offset;
        holes[at].size += size;
    } else {
        memmove(&holes[at + 1], &holes[at], (planner->hole_count - at) * sizeof(*holes));
        holes[at] = (struct hole){offset, size};
        planner->hole_count++;
    }
}

/* ---- which tensors are needed, and until when --------------------------- */

/* The functions below work on holders. */
static void find_holders(struct planner *planner)
{
    const struct plan_hooks *hooks = planner->hooks;

    for (uint32_t id = 0; id < planner->tape->tensor_count; id++) {
        uint64_t offset = 0;

        planner->holders[id] =
            hooks->holder == NULL ? id : hooks->holder(hooks->context, &offset, id);
        if (planner->holders[id] != id) {
            assert(planner->tape->tensors[id].role == ROLE_TEMPORARY);
            assert(planner->tape->tensors[planner->holders[id]].role == ROLE_TEMPORARY);
            assert(!planner->holds[id]);
            planner->holds[planner->holders[id]] = true;
        }
    }
}

static uint32_t holder_of_input(const struct planner *planner, const struct op *op, uint32_t slot)
{
    return planner->holders[op->inputs[slot]];
}

static uint32_t holder_of_output(const struct planner *planner, const struct op *op,
                                 uint32_t output)
{
    return planner->holders[op->outputs[output]];
}

static bool is_temporary(const struct planner *planner, uint32_t id)
{
    return role_is_made(planner->tape->tensors[id].role);
}

static void mark_needed(struct planner *planner)
{
    const struct tape *tape = planner->tape;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        planner->needed[tape->states[i].after] = true;
        planner->pinned[tape->states[i].after] = true;
    }
    if (tape->loss != TENSOR_NONE) {
        planner->needed[tape->loss] = true;
        planner->pinned[tape->loss] = true;
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_OUTPUT) {
            planner->needed[id] = true;
            planner->pinned[id] = true;
        }
    }
    for (uint32_t i = 0; i < tape->loop_carry_count; i++) {
        /* The next turn reads it, even where nothing behind the loop does. */
        planner->needed[planner->holders[tape->loop_carries[i].out]] = true;
    }
    for (uint32_t at = tape->op_count; at > 0; at--) {
        const struct op *op = &tape->ops[at - 1];
        bool runs = planner->hooks->keep_all;

        for (uint32_t i = 0; i < op->output_count; i++) {
            runs = runs || planner->needed[holder_of_output(planner, op, i)];
        }
        planner->plan->runs[at - 1] = runs;
        /* A holder lives at least until the last tensor inside of it is made. */
        for (uint32_t i = 0; runs && i < op->output_count; i++) {
            const uint32_t id = holder_of_output(planner, op, i);

            if (planner->holds[id] && planner->last_use[id] == NEVER) {
                planner->last_use[id] = at - 1;
            }
        }
        for (uint32_t i = 0; runs && i < op->input_count; i++) {
            const uint32_t id = holder_of_input(planner, op, i);

            planner->needed[id] = true;
            if (planner->last_use[id] == NEVER) {
                planner->last_use[id] = at - 1;
            }
        }
    }
}

static void measure_tensors(struct planner *planner)
{
    const struct tape *tape = planner->tape;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        planner->sizes[id] = round_up(tensor_size(&tape->tensors[id]));
        planner->last_use[id] = NEVER;
        planner->plan->places[id] = PLAN_ABSENT;
    }
    if (planner->hooks->output_size == NULL) {
        return;
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];

        for (uint32_t i = 0; i < op->output_count; i++) {
            planner->sizes[op->outputs[i]] = round_up(
                planner->hooks->output_size(planner->hooks->context, op, i, tape->tensors));
        }
    }
}

/* ---- placing ------------------------------------------------------------ */

/* The inputs of such an operation, without room between them, and its output on them. */
static void place_joined(struct planner *planner, uint32_t at)
{
    const struct op *op = &planner->tape->ops[at];
    const uint32_t out = op->outputs[0];
    struct plan *plan = planner->plan;

    plan->places[out] = plan->state_size;
    plan->in_state[out] = true;
    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint32_t id = op->inputs[i];

        assert(planner->holders[out] == out && plan->places[id] == PLAN_ABSENT);
        plan->places[id] = plan->state_size;
        plan->in_state[id] = true;
        plan->state_size += tensor_size(&planner->tape->tensors[id]);
        if (planner->last_use[out] != NEVER && planner->last_use[out] > planner->last_use[id]) {
            planner->last_use[id] = planner->last_use[out];
        }
    }
    plan->state_size = round_up(plan->state_size);
}

/* States, constants and inputs lie one after another; the data stays in the caller's memory. */
static void place_lasting(struct planner *planner)
{
    struct plan *plan = planner->plan;

    for (uint32_t at = 0; planner->hooks->joins != NULL && at < planner->tape->op_count; at++) {
        if (planner->hooks->joins[at] && plan->runs[at]) {
            place_joined(planner, at);
        }
    }
    for (uint32_t id = 0; id < planner->tape->tensor_count; id++) {
        enum role role = planner->tape->tensors[id].role;

        if (!role_is_made(role) && role != ROLE_DATA && plan->places[id] == PLAN_ABSENT) {
            plan->places[id] = plan->state_size;
            plan->in_state[id] = true;
            plan->state_size += planner->sizes[id];
        }
    }
}

static uint32_t state_of(const struct planner *planner, uint32_t after)
{
    for (uint32_t i = 0; i < planner->tape->state_count; i++) {
        if (planner->tape->states[i].after == after) {
            return i;
        }
    }
    return NEVER;
}

static bool read_once(const struct op *op, uint32_t slot)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (i != slot && op->inputs[i] == op->inputs[slot]) {
            return false;
        }
    }
    return true;
}

/*
 * Can output take the place of the input in slot? Nobody may read the input after operation at, and
 * neither tensor may have or be a holder.
 */
static bool can_take_over(const struct planner *planner, uint32_t at, uint32_t output,
                          uint32_t slot)
{
    const struct op *op = &planner->tape->ops[at];
    uint32_t input = op->inputs[slot];

    return planner->hooks->in_place != NULL && planner->last_use[input] == at &&
           !planner->settled[input] && planner->holders[input] == input && !planner->holds[input] &&
           holder_of_output(planner, op, output) == op->outputs[output] && read_once(op, slot) &&
           planner->sizes[input] == planner->sizes[op->outputs[output]] &&
           planner->hooks->in_place(planner->hooks->context, op, output, slot);
}

/* ---- loops ---------------------------------------------------------------- */

/* The place is the tensor's until the last turn has ended. */
static void keep_for(struct planner *planner, const struct loop *loop, uint32_t id)
{
    if (planner->last_use[id] == NEVER || planner->last_use[id] < loop->last) {
        planner->last_use[id] = loop->last - 1;
        planner->settled[id] = true;
    }
}

/* Does the last reader of what a turn was given make what it hands on, in place? */
static bool goes_into(struct planner *planner, const struct loop_carry *carry)
{
    const uint32_t at = planner->last_use[carry->in];
    const struct op *op = &planner->tape->ops[at];

    for (uint32_t i = 0; i < op->output_count; i++) {
        for (uint32_t slot = 0; op->outputs[i] == carry->out && slot < op->input_count; slot++) {
            if (op->inputs[slot] == carry->in && is_temporary(planner, carry->in) &&
                !planner->pinned[carry->in] && can_take_over(planner, at, i, slot)) {
                return true;
            }
        }
    }
    return false;
}

static void settle_carry(struct planner *planner, const struct loop *loop, uint32_t number)
{
    const struct loop_carry *carry = &planner->tape->loop_carries[number];
    const uint32_t out = planner->holders[carry->out];
    const uint32_t in = planner->holders[carry->in];
    const uint32_t last = planner->last_use[in];

    assert(last == NEVER || last < loop->last);
    if (last == NEVER || last < loop->first) {
        return; /* no turn reads it */
    }
    if (goes_into(planner, carry)) {
        planner->into[out] = in;
        planner->settled[in] = true;
    } else {
        planner->plan->handed[number] = true; /* every turn reads it: settle_loop() */
    }
    keep_for(planner, loop, out);
}

/* What is there before a loop and is read in it, every turn reads. */
static void settle_loop(struct planner *planner, const struct loop *loop)
{
    const struct tape *tape = planner->tape;

    for (uint32_t k = 0; k < loop->carry_count; k++) {
        settle_carry(planner, loop, loop->carry_first + k);
    }
    for (uint32_t at = loop->first; at < loop->last; at++) {
        for (uint32_t i = 0; planner->plan->runs[at] && i < tape->ops[at].input_count; i++) {
            const uint32_t id = holder_of_input(planner, &tape->ops[at], i);
            const uint32_t maker = planner->makers[id];

            if ((maker == NEVER || maker < loop->first) && !planner->settled[id]) {
                keep_for(planner, loop, id);
            }
        }
    }
}

static void settle_loops(struct planner *planner)
{
    const struct tape *tape = planner->tape;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        planner->makers[id] = planner->into[id] = NEVER;
    }
    for (uint32_t at = tape->op_count; at > 0; at--) {
        for (uint32_t i = 0; i < tape->ops[at - 1].output_count; i++) {
            planner->makers[holder_of_output(planner, &tape->ops[at - 1], i)] = at - 1;
        }
    }
    for (uint32_t i = 0; i < tape->loop_count; i++) {
        settle_loop(planner, &tape->loops[i]);
    }
}

/* ---- operations ------------------------------------------------------------ */

static bool outlasts_step(const struct planner *planner, uint32_t at)
{
    return planner->hooks->lasting != NULL && planner->hooks->lasting[at];
}

/* Places the next value of a state over the state. */
static bool place_over_state(struct planner *planner, uint32_t at, uint32_t output)
{
    const struct op *op = &planner->tape->ops[at];
    uint32_t id = op->outputs[output];
    uint32_t pair = planner->pinned[id] ? state_of(planner, id) : NEVER;

    if (pair == NEVER) {
        return false;
    }
    for (uint32_t slot = 0; slot < op->input_count; slot++) {
        if (op->inputs[slot] == planner->tape->states[pair].before &&
            can_take_over(planner, at, output, slot)) {
            planner->plan->places[id] = planner->plan->places[op->inputs[slot]];
            planner->plan->in_state[id] = true;
            planner->plan->copied[pair] = false;
            return true;
        }
    }
    return false;
}

static bool place_over_input(struct planner *planner, uint32_t at, uint32_t output)
{
    const struct op *op = &planner->tape->ops[at];

    for (uint32_t slot = 0; slot < op->input_count; slot++) {
        uint32_t input = op->inputs[slot];

        if (is_temporary(planner, input) && !planner->pinned[input] &&
            !planner->plan->in_state[input] && planner->plan->places[input] != PLAN_ABSENT &&
            can_take_over(planner, at, output, slot)) {
            planner->plan->places[op->outputs[output]] = planner->plan->places[input];
            planner->last_use[input] = NEVER; /* the output owns the place now */
            return true;
        }
    }
    return false;
}

static void place_outputs(struct planner *planner, uint32_t at)
{
    const struct op *op = &planner->tape->ops[at];
    bool may_omit = !planner->hooks->keep_all && planner->hooks->may_omit != NULL &&
                    planner->hooks->may_omit(planner->hooks->context, op->kind);

    for (uint32_t i = 0; i < op->output_count; i++) {
        uint32_t id = holder_of_output(planner, op, i);

        if (may_omit && !planner->needed[id]) {
            continue;
        }
        if (planner->plan->places[id] != PLAN_ABSENT) {
            continue; /* another tensor of the same holder came first */
        }
        if (outlasts_step(planner, at)) {
            planner->plan->places[id] = planner->plan->state_size;
            planner->plan->in_state[id] = true;
            planner->plan->state_size += planner->sizes[id];
        } else if (planner->into[id] != NEVER) {
            planner->plan->places[id] = planner->plan->places[planner->into[id]];
            planner->last_use[planner->into[id]] = NEVER; /* as place_over_input() does */
        } else if (!place_over_state(planner, at, i) && !place_over_input(planner, at, i)) {
            planner->plan->places[id] = take_place(planner, planner->sizes[id]);
        }
    }
}

static void free_dead(struct planner *planner, uint32_t at, uint32_t id)
{
    if (is_temporary(planner, id) && !planner->pinned[id] && !planner->plan->in_state[id] &&
        planner->last_use[id] == at && planner->plan->places[id] != PLAN_ABSENT) {
        give_place(planner, planner->plan->places[id], planner->sizes[id]);
        planner->last_use[id] = NEVER; /* an operation may read a tensor twice */
    }
}

/* Frees the places of the tensors whose last use is this operation. */
static void free_all_dead(struct planner *planner, uint32_t at)
{
    const struct op *op = &planner->tape->ops[at];

    for (uint32_t i = 0; i < op->input_count; i++) {
        free_dead(planner, at, holder_of_input(planner, op, i));
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        const uint32_t id = holder_of_output(planner, op, i);

        if (planner->last_use[id] == NEVER && !planner->needed[id] && !planner->holds[id]) {
            planner->last_use[id] = at;
        }
        if (planner->holds[id] || !planner->needed[id]) {
            free_dead(planner, at, id);
        }
    }
}

/* Frees what was kept for the turns of a loop that ends here. */
static void free_loop(struct planner *planner, uint32_t end)
{
    const struct tape *tape = planner->tape;
    const struct loop *loop = tape_loop_of(tape, end - 1);

    if (loop == NULL || loop->last != end) {
        return;
    }
    for (uint32_t at = loop->first; at < end; at++) {
        for (uint32_t i = 0; i < tape->ops[at].input_count; i++) {
            free_dead(planner, end - 1, holder_of_input(planner, &tape->ops[at], i));
        }
    }
    for (uint32_t k = loop->carry_first; k < loop->carry_first + loop->carry_count; k++) {
        free_dead(planner, end - 1, planner->holders[tape->loop_carries[k].out]);
    }
}

static void place_temporaries(struct planner *planner)
{
    const struct plan_hooks *hooks = planner->hooks;
    const uint32_t count = planner->tape->op_count;
    uint32_t end;

    for (uint32_t first = 0; first < count; first = end) {
        end = hooks->unit_end == NULL ? first + 1 : hooks->unit_end(hooks->context, first);
        for (uint32_t at = first; at < end; at++) {
            if (planner->plan->runs[at]) {
                place_outputs(planner, at);
            }
        }
        for (uint32_t at = first; at < end; at++) {
            if (planner->plan->runs[at]) {
                free_all_dead(planner, at);
            }
        }
        free_loop(planner, end);
    }
}

static void place_held(struct planner *planner)
{
    const struct plan_hooks *hooks = planner->hooks;
    struct plan *plan = planner->plan;

    for (uint32_t id = 0; hooks->holder != NULL && id < planner->tape->tensor_count; id++) {
        uint64_t offset = 0;
        const uint32_t holder = hooks->holder(hooks->context, &offset, id);

        assert(holder == id || (!planner->pinned[id] && !planner->pinned[holder]));
        if (holder != id && plan->places[holder] != PLAN_ABSENT) {
            plan->places[id] = plan->places[holder] + offset;
            plan->in_state[id] = plan->in_state[holder];
        }
    }
}

/* ---- building ----------------------------------------------------------- */

static bool allocate_tables(struct planner *planner)
{
    size_t tensors = (size_t)planner->tape->tensor_count + 1;
    struct plan *plan = planner->plan;

    plan->places = malloc(tensors * sizeof(*plan->places));
    plan->in_state = calloc(tensors, sizeof(*plan->in_state));
    plan->runs = calloc((size_t)planner->tape->op_count + 1, sizeof(*plan->runs));
    plan->copied = calloc((size_t)planner->tape->state_count + 1, sizeof(*plan->copied));
    plan->handed = calloc((size_t)planner->tape->loop_carry_count + 1, sizeof(*plan->handed));
    planner->sizes = malloc(tensors * sizeof(*planner->sizes));
    planner->last_use = malloc(tensors * sizeof(*planner->last_use));
    planner->needed = calloc(tensors, sizeof(*planner->needed));
    planner->pinned = calloc(tensors, sizeof(*planner->pinned));
    planner->holders = malloc(tensors * sizeof(*planner->holders));
    planner->holds = calloc(tensors, sizeof(*planner->holds));
    planner->makers = malloc(tensors * sizeof(*planner->makers));
    planner->into = malloc(tensors * sizeof(*planner->into));
    planner->settled = calloc(tensors, sizeof(*planner->settled));
    planner->holes = malloc(tensors * sizeof(*planner->holes));
    return plan->places != NULL && plan->in_state != NULL && plan->runs != NULL &&
           plan->copied != NULL && plan->handed != NULL && planner->makers != NULL &&
           planner->into != NULL && planner->settled != NULL && planner->sizes != NULL &&
           planner->last_use != NULL && planner->needed != NULL && planner->pinned != NULL &&
           planner->holders != NULL && planner->holds != NULL && planner->holes != NULL;
}

enum status plan_build(struct plan *plan, const struct tape *tape, const struct plan_hooks *hooks,
                       struct error *error)
{
    struct planner planner = {.plan = plan, .tape = tape, .hooks = hooks};
    enum status status = STATUS_OK;

    memset(plan, 0, sizeof(*plan));
    if (!allocate_tables(&planner)) {
        status =
            error_set(error, STATUS_NO_MEMORY, "no memory to plan %u tensors", tape->tensor_count);
        plan_release(plan);
        goto out;
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        plan->copied[i] = tape->states[i].after != tape->states[i].before;
    }
    measure_tensors(&planner);
    find_holders(&planner);
    mark_needed(&planner);
    place_lasting(&planner);
    settle_loops(&planner);
    place_temporaries(&planner);
    place_held(&planner);
out:
    free(planner.sizes);
    free(planner.last_use);
    free(planner.needed);
    free(planner.pinned);
    free(planner.holders);
    free(planner.holds);
    free(planner.makers);
    free(planner.into);
    free(planner.settled);
    free(planner.holes);
    return status;
}

void plan_release(struct plan *plan)
{
    free(plan->places);
    free(plan->in_state);
    free(plan->runs);
    free(plan->copied);
    free(plan->handed);
    memset(plan, 0, sizeof(*plan));
}
