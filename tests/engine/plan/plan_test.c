/*
 * plan_test.c - plans of random tapes and of whole models keep the promises of plan.h.
 *
 * An independent judge, written from plan.h, finds for every tensor when it is made and when it is
 * last read, and compares every two that share bytes. Sharing is allowed only where an output takes
 * the place of an input at its last reader, the hook agrees, and the operation reads that input
 * once. The hooks answer in all ways, from "never" to "always". Plans of loops are played, turn
 * after turn: what is read must be there as it was written.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/ops/kernel.h"
#include "engine/plan/plan.h"
#include "tests/support/loops/random_repeat.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/test.h"

#define NEVER UINT32_MAX

/* The answers of the hooks, which the judge knows too. */
struct temper {
    bool keep_all;
    bool in_place_always;
    bool in_place_never;
    bool may_omit;
    bool large_q;
    bool held; /* some tensors lie inside of others */
};

static const struct temper tempers[] = {
    {.keep_all = true, .in_place_never = true},
    {.in_place_never = true},
    {.may_omit = true},
    {.may_omit = true, .in_place_always = true},
    {.may_omit = true, .large_q = true},
    {.keep_all = true, .in_place_always = true, .large_q = true},
    {.may_omit = true, .in_place_always = true, .held = true},
    {.may_omit = true, .large_q = true, .held = true},
};
#define TEMPER_COUNT (sizeof(tempers) / sizeof(tempers[0]))

/* The context of the hooks. */
struct setting {
    const struct temper *temper;
    uint32_t *holders;
    uint64_t *offsets;
};

static uint64_t plain_size(const struct tensor *tensor)
{
    return tensor->count * dtype_size(tensor->dtype);
}

static uint64_t hook_size(const void *context, const struct op *op, uint32_t output,
                          const struct tensor *tensors)
{
    const struct temper *temper = ((const struct setting *)context)->temper;
    uint64_t size = plain_size(&tensors[op->outputs[output]]);

    return temper->large_q && op->kind == OP_QUANTIZE && output == 2 ? 3 * size + 64 : size;
}

static bool hook_in_place(const void *context, const struct op *op, uint32_t output, uint32_t input)
{
    const struct temper *temper = ((const struct setting *)context)->temper;

    return temper->in_place_always || op_in_place(op, output, input);
}

static bool hook_may_omit(const void *context, enum op_kind kind)
{
    (void)kind;
    return ((const struct setting *)context)->temper->may_omit;
}

static uint32_t hook_holder(const void *context, uint64_t *offset, uint32_t tensor)
{
    const struct setting *setting = context;

    *offset = setting->offsets[tensor];
    return setting->holders[tensor];
}

/* ---- the judge ---------------------------------------------------------- */

struct judge {
    const struct tape *tape;
    const struct temper *temper;
    struct setting setting;
    struct plan plan;
    uint32_t
        *holder_made;    /* per tensor: as `made` was before those that lie together were joined */
    uint32_t *made;      /* per tensor: the operation that makes it, or NEVER */
    uint32_t *last_read; /* per tensor: the last running operation that reads it, or NEVER */
    bool *to_the_end;    /* per tensor: a next state, an output or the loss */
    uint64_t *sizes;
};

/* Is it a temporary that nobody reads after the step? */
static bool may_be_held(const struct judge *judge, uint32_t id)
{
    return judge->tape->tensors[id].role == ROLE_TEMPORARY && !judge->to_the_end[id];
}

/* Puts some tensors inside of others that are large enough, wherever those are made and read. */
static void choose_holders(struct judge *judge, uint64_t seed)
{
    const uint32_t count = judge->tape->tensor_count;
    bool *holds = calloc((size_t)count + 1, sizeof(*holds));

    for (uint32_t id = 0; id < count; id++) {
        judge->setting.holders[id] = id;
    }
    for (uint32_t id = 0; judge->temper->held && id < count; id++) {
        const uint32_t holder = (uint32_t)test_random_below(&seed, count);

        if (holder != id && !holds[id] && judge->setting.holders[holder] == holder &&
            may_be_held(judge, id) && may_be_held(judge, holder) &&
            judge->sizes[id] <= judge->sizes[holder]) {
            judge->setting.holders[id] = holder;
            judge->setting.offsets[id] =
                test_random_below(&seed, judge->sizes[holder] - judge->sizes[id] + 1) /
                PLAN_ALIGNMENT * PLAN_ALIGNMENT;
            holds[holder] = true;
        }
    }
    free(holds);
}

/* Is the tensor, or another of the same holder, read after an operation? */
static bool is_read(const struct judge *judge, uint32_t id, uint32_t at)
{
    for (uint32_t other = 0; other < judge->tape->tensor_count; other++) {
        if (judge->setting.holders[other] == judge->setting.holders[id] &&
            judge->last_read[other] != NEVER && judge->last_read[other] > at) {
            return true;
        }
    }
    return false;
}

/*
 * The tensors of a holder live from when the first of them is made to when the last is made or
 * read. The judge then uses that for the holder.
 */
static void judge_together(struct judge *judge)
{
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t id = 0; id < judge->tape->tensor_count; id++) {
            const uint32_t holder = judge->setting.holders[id];
            const uint32_t made = judge->made[id];
            uint32_t *last = &judge->last_read[holder];

            if (holder == id || !judge->plan.runs[made]) {
                continue;
            }
            if (pass == 0 && !judge->plan.runs[judge->made[holder]]) {
                judge->made[holder] = made;
            }
            judge->made[holder] = made < judge->made[holder] ? made : judge->made[holder];
            for (uint32_t i = 0; i < 3; i++) {
                const uint32_t at = i == 0   ? judge->last_read[id]
                                    : i == 1 ? made
                                             : judge->holder_made[holder];

                if (at != NEVER && judge->plan.runs[at] && (*last == NEVER || *last < at)) {
                    *last = at;
                }
            }
            assert_true(judge->plan.places[id] == PLAN_ABSENT ||
                        judge->plan.places[id] ==
                            judge->plan.places[holder] + judge->setting.offsets[id]);
        }
    }
}

static void judge_open(struct judge *judge, const struct tape *tape, const struct temper *temper)
{
    size_t count = (size_t)tape->tensor_count + 1;
    struct plan_hooks hooks = {.context = &judge->setting,
                               .keep_all = temper->keep_all,
                               .output_size = hook_size,
                               .in_place = temper->in_place_never ? NULL : hook_in_place,
                               .may_omit = hook_may_omit,
                               .holder = temper->held ? hook_holder : NULL};
    struct error error;

    *judge = (struct judge){.tape = tape, .temper = temper, .setting = {.temper = temper}};
    error_init(&error);
    judge->setting.holders = calloc(count, sizeof(*judge->setting.holders));
    judge->setting.offsets = calloc(count, sizeof(*judge->setting.offsets));
    judge->made = calloc(count, sizeof(*judge->made));
    judge->holder_made = calloc(count, sizeof(*judge->holder_made));
    judge->last_read = calloc(count, sizeof(*judge->last_read));
    judge->to_the_end = calloc(count, sizeof(*judge->to_the_end));
    judge->sizes = calloc(count, sizeof(*judge->sizes));
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        judge->made[id] = judge->last_read[id] = NEVER;
        judge->sizes[id] = plain_size(&tape->tensors[id]);
        judge->to_the_end[id] = tape->tensors[id].role == ROLE_OUTPUT || id == tape->loss;
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        judge->to_the_end[tape->states[i].after] = true;
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];

        for (uint32_t i = 0; i < op->output_count; i++) {
            judge->made[op->outputs[i]] = at;
            judge->sizes[op->outputs[i]] = hook_size(&judge->setting, op, i, tape->tensors);
        }
    }
    choose_holders(judge, tape->op_count);
    assert_int_equal(plan_build(&judge->plan, tape, &hooks, &error), STATUS_OK);
    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];

        for (uint32_t i = 0; judge->plan.runs[at] && i < op->input_count; i++) {
            judge->last_read[op->inputs[i]] = at;
        }
    }
    memcpy(judge->holder_made, judge->made, count * sizeof(*judge->made));
}

static void judge_close(struct judge *judge)
{
    plan_release(&judge->plan);
    free(judge->setting.holders);
    free(judge->setting.offsets);
    free(judge->made);
    free(judge->holder_made);
    free(judge->last_read);
    free(judge->to_the_end);
    free(judge->sizes);
}

/* Only operations that nobody needs are left out; a running one has its inputs and outputs. */
static void judge_presence(const struct judge *judge)
{
    for (uint32_t at = 0; at < judge->tape->op_count; at++) {
        const struct op *op = &judge->tape->ops[at];
        bool needed = judge->temper->keep_all;

        for (uint32_t i = 0; i < op->output_count; i++) {
            uint32_t id = op->outputs[i];
            bool read = is_read(judge, id, at) || judge->to_the_end[id];

            needed = needed || read;
            if (judge->plan.runs[at] && (read || !judge->temper->may_omit)) {
                assert_true(judge->plan.places[id] != PLAN_ABSENT);
            }
        }
        assert_int_equal(judge->plan.runs[at], needed);
        for (uint32_t i = 0; judge->plan.runs[at] && i < op->input_count; i++) {
            uint32_t id = op->inputs[i];

            assert_true(judge->plan.places[id] != PLAN_ABSENT ||
                        judge->tape->tensors[id].role == ROLE_DATA);
        }
    }
}

static void judge_bounds(const struct judge *judge)
{
    for (uint32_t id = 0; id < judge->tape->tensor_count; id++) {
        uint64_t place = judge->plan.places[id];
        uint64_t room =
            judge->plan.in_state[id] ? judge->plan.state_size : judge->plan.temporary_size;

        if (place != PLAN_ABSENT) {
            assert_int_equal(place % PLAN_ALIGNMENT, 0);
            assert_true(judge->sizes[id] <= room && place <= room - judge->sizes[id]);
        }
    }
}

/* The last operation during which a tensor's bytes matter; op_count is the end of the step. */
static uint32_t end_of(const struct judge *judge, uint32_t id)
{
    bool lasts = !role_is_made(judge->tape->tensors[id].role);

    if (judge->to_the_end[id]) {
        return judge->tape->op_count;
    }
    if (judge->last_read[id] != NEVER) {
        return judge->last_read[id];
    }
    return lasts ? 0 : judge->made[id];
}

static bool is_before(const struct judge *judge, uint32_t a, uint32_t b)
{
    /* A tensor that no operation makes is there first. */
    return judge->made[a] == NEVER || (judge->made[b] != NEVER && judge->made[a] <= judge->made[b]);
}

/* May `later`, made at operation `at`, take the place of `earlier`? */
static bool takes_over(const struct judge *judge, uint32_t at, uint32_t earlier, uint32_t later)
{
    const struct op *op = &judge->tape->ops[at];
    uint32_t slot = NEVER;
    uint32_t output = NEVER;

    for (uint32_t i = 0; i < op->input_count; i++) {
        if (op->inputs[i] == earlier) {
            if (slot != NEVER) {
                return false; /* read twice: once as an operand that must keep still */
            }
            slot = i;
        } else if (judge->setting.holders[op->inputs[i]] == earlier) {
            return false; /* so is a part of it */
        }
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        output = op->outputs[i] == later ? i : output;
    }
    return slot != NEVER && output != NEVER && !judge->temper->in_place_never &&
           judge->plan.places[earlier] == judge->plan.places[later] &&
           hook_in_place(&judge->setting, op, output, slot);
}

static bool share_bytes(const struct judge *judge, uint32_t a, uint32_t b)
{
    const struct plan *plan = &judge->plan;

    return plan->in_state[a] == plan->in_state[b] && plan->places[a] != PLAN_ABSENT &&
           plan->places[b] != PLAN_ABSENT && plan->places[a] < plan->places[b] + judge->sizes[b] &&
           plan->places[b] < plan->places[a] + judge->sizes[a];
}

/* A state lives to the end, unless its own next value overwrites it. */
static uint32_t state_end(const struct judge *judge, uint32_t state, uint32_t other)
{
    for (uint32_t i = 0; i < judge->tape->state_count; i++) {
        if (judge->tape->states[i].before == state && judge->tape->states[i].after == other) {
            return end_of(judge, state);
        }
    }
    return judge->tape->op_count;
}

static void judge_pair(const struct judge *judge, uint32_t a, uint32_t b)
{
    uint32_t earlier = is_before(judge, a, b) ? a : b;
    uint32_t later = earlier == a ? b : a;
    uint32_t from = judge->made[later];
    uint32_t to = role_is_made(judge->tape->tensors[earlier].role)
                      ? end_of(judge, earlier)
                      : state_end(judge, earlier, later);

    if (!role_is_made(judge->tape->tensors[later].role) || from < to ||
        (from == to && !takes_over(judge, from, earlier, later))) {
        fail_msg("'%s' (%u) and '%s' (%u) share bytes while both live",
                 judge->tape->tensors[a].name, a, judge->tape->tensors[b].name, b);
    }
}

static void judge_copies(const struct judge *judge)
{
    for (uint32_t i = 0; i < judge->tape->state_count; i++) {
        const struct state_pair *pair = &judge->tape->states[i];
        bool over = judge->plan.in_state[pair->after] &&
                    judge->plan.places[pair->after] == judge->plan.places[pair->before];

        assert_int_equal(judge->plan.copied[i], pair->after != pair->before && !over);
    }
}

static uint64_t judge_tape(const struct tape *tape, const struct temper *temper)
{
    struct judge judge;
    uint64_t size;

    judge_open(&judge, tape, temper);
    judge_presence(&judge);
    judge_bounds(&judge);
    judge_copies(&judge);
    judge_together(&judge);
    for (uint32_t a = 0; a < tape->tensor_count; a++) {
        for (uint32_t b = 0; b < a; b++) {
            if (judge.setting.holders[a] == a && judge.setting.holders[b] == b &&
                share_bytes(&judge, a, b)) {
                judge_pair(&judge, a, b);
            }
        }
    }
    size = judge.plan.temporary_size;
    judge_close(&judge);
    return size;
}

/* ---- playing a plan ------------------------------------------------------- */

/* When each tensor was written last; 0: before the step, or never. */
struct play {
    const struct judge *judge;
    uint64_t *written;
    uint64_t now;
};

/* Has nobody written over the tensor? */
static void play_read(const struct play *play, uint32_t id)
{
    const struct judge *judge = play->judge;

    for (uint32_t other = 0; other < judge->tape->tensor_count; other++) {
        if (other != id && play->written[other] > play->written[id] &&
            share_bytes(judge, other, id)) {
            fail_msg("'%s' (%u) is read when %u has been written over it",
                     judge->tape->tensors[id].name, id, other);
        }
    }
}

static void play_op(struct play *play, uint32_t at)
{
    const struct judge *judge = play->judge;
    const struct op *op = &judge->tape->ops[at];

    if (!judge->plan.runs[at]) {
        return;
    }
    play->now++;
    for (uint32_t i = 0; i < op->input_count; i++) {
        play_read(play, op->inputs[i]);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        for (uint32_t j = 0; j < op->input_count; j++) {
            if (share_bytes(judge, op->outputs[i], op->inputs[j])) {
                assert_true(takes_over(judge, at, op->inputs[j], op->outputs[i]));
            }
        }
        play->written[op->outputs[i]] = play->now;
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        play_read(play, op->outputs[i]); /* of two outputs, neither is over the other */
        for (uint32_t j = 0; j < i; j++) {
            assert_false(share_bytes(judge, op->outputs[i], op->outputs[j]));
        }
    }
}

static bool is_read_in(const struct judge *judge, const struct loop *loop, uint32_t id)
{
    for (uint32_t at = loop->first; at < loop->last; at++) {
        for (uint32_t i = 0; judge->plan.runs[at] && i < judge->tape->ops[at].input_count; i++) {
            if (judge->tape->ops[at].inputs[i] == id) {
                return true;
            }
        }
    }
    return false;
}

/* What a turn leaves is there; then the next one has it, copied or in place. */
static void play_hand_on(struct play *play, const struct loop *loop)
{
    const struct judge *judge = play->judge;
    const struct plan *plan = &judge->plan;

    for (uint32_t k = loop->carry_first; k < loop->carry_first + loop->carry_count; k++) {
        const struct loop_carry *carry = &judge->tape->loop_carries[k];

        if (!is_read_in(judge, loop, carry->in)) {
            assert_false(plan->handed[k]);
            continue;
        }
        play_read(play, carry->out);
        if (plan->handed[k]) {
            play->written[carry->in] = ++play->now;
        } else {
            assert_true(plan->places[carry->in] == plan->places[carry->out] &&
                        plan->in_state[carry->in] == plan->in_state[carry->out]);
            play->written[carry->in] = play->written[carry->out];
        }
    }
}

static void play_tape(const struct tape *tape, const struct temper *temper)
{
    struct judge judge;
    struct play play = {.judge = &judge};

    judge_open(&judge, tape, temper);
    play.written = calloc((size_t)tape->tensor_count + 1, sizeof(*play.written));
    assert_non_null(play.written);
    for (uint32_t at = 0; at < tape->op_count;) {
        const struct loop *loop = tape_loop_of(tape, at);

        for (uint32_t turn = 0; loop != NULL && turn < loop->turns; turn++) {
            if (turn > 0) {
                play_hand_on(&play, loop);
            }
            for (uint32_t inside = loop->first; inside < loop->last; inside++) {
                play_op(&play, inside);
            }
        }
        if (loop == NULL) {
            play_op(&play, at);
        }
        at = loop != NULL ? loop->last : at + 1;
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (judge.to_the_end[id]) {
            play_read(&play, id);
        }
    }
    free(play.written);
    judge_close(&judge);
}

/* ---- tests -------------------------------------------------------------- */

static void test_every_turn_of_a_loop_reads_what_was_written(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < test_share(100000, 3000); seed++) {
        struct tape *tape = random_repeat(seed);

        for (size_t i = 0; tape != NULL && i < TEMPER_COUNT; i++) {
            if (!tempers[i].held) {
                play_tape(tape, &tempers[i]);
            }
        }
        tape_free(tape);
    }
}

/* What a loop kept is free behind it, and what a turn is given is summed in place. */
static void test_loops_take_the_memory_of_one_turn(void **state)
{
    static const uint32_t shapes[][2] = {{2, 2}, {3, 3}, {50, 50}};
    uint64_t sizes[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct model_options options;
        struct small_model small;
        struct judge judge;

        small_model_options(&options, MODEL_GPT2);
        options.accumulate = shapes[i][0];
        options.group = shapes[i][1];
        small_model_open(&small, &options);
        judge_open(&judge, small.model.tape, &tempers[2]);
        sizes[i] = judge.plan.temporary_size;
        for (uint32_t k = 0; k < small.model.tape->loop_carry_count; k++) {
            const struct loop_carry *carry = &small.model.tape->loop_carries[k];

            assert_true(!judge.plan.handed[k] || small.model.tape->tensors[carry->in].count == 1);
        }
        judge_close(&judge);
        small_model_close(&small);
    }
    assert_int_equal(sizes[1], sizes[2]);
    assert_true(sizes[1] <= sizes[0] + sizes[0] / 20);
}

/* Where no kernel works in place, a loop keeps a copy of each sum, and no longer than it runs: only
 * the levels of the tree grow with the groups. */
static void test_groups_do_not_add_what_their_loops_kept(void **state)
{
    uint64_t sizes[2];
    uint64_t sums = 0;

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct model_options options;
        struct small_model small;
        struct judge judge;

        small_model_options(&options, MODEL_MLP);
        options.accumulate = i == 0 ? 6 : 192;
        options.group = 3;
        small_model_open(&small, &options);
        judge_open(&judge, small.model.tape, &tempers[1]);
        sizes[i] = judge.plan.temporary_size;
        sums = 0;
        for (uint32_t k = 0; k < small.model.tape->loops[0].carry_count; k++) {
            sums += judge.sizes[small.model.tape->loop_carries[k].out] + 2048;
        }
        judge_close(&judge);
        small_model_close(&small);
    }
    assert_true(sizes[1] <= sizes[0] + 7 * sums);
}

static void test_random_tapes_never_share_live_bytes(void **state)
{
    uint64_t count = test_share(100000, 3000);

    (void)state;
    for (uint64_t seed = 0; seed < count; seed++) {
        struct tape *tape = random_tape(seed, 4 + (uint32_t)(seed % 40));

        for (size_t i = 0; i < TEMPER_COUNT; i++) {
            (void)judge_tape(tape, &tempers[i]);
        }
        tape_free(tape);
    }
}

static void test_models_never_share_live_bytes_and_save_memory(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct model_options options;
        struct small_model small;
        uint64_t all;
        uint64_t planned;

        small_model_options(&options, (enum model_kind)kind);
        small_model_open(&small, &options);
        all = tape_footprint(small.model.tape).trace;
        planned = judge_tape(small.model.tape, &tempers[2]);
        assert_true(planned < all / 2);
        (void)judge_tape(small.model.tape, &tempers[0]);
        (void)judge_tape(small.model.tape, &tempers[3]);
        small_model_close(&small);
        options.accumulate = 4;
        options.group = 2;
        small_model_open(&small, &options);
        (void)judge_tape(small.model.tape, &tempers[2]);
        small_model_close(&small);
    }
}

/* The update overwrites each parameter and moment: there is no second copy of the state. */
static void test_states_are_updated_in_place(void **state)
{
    struct model_options options;
    struct small_model small;
    struct judge judge;
    uint32_t copied = 0;

    (void)state;
    small_model_options(&options, MODEL_GPT2);
    small_model_open(&small, &options);
    judge_open(&judge, small.model.tape, &tempers[2]);
    for (uint32_t i = 0; i < small.model.tape->state_count; i++) {
        copied += judge.plan.copied[i];
    }
    assert_int_equal(copied, 1); /* the step number, which is no kernel's to overwrite */
    judge_close(&judge);
    small_model_close(&small);
}

static void test_operation_that_nobody_needs_is_left_out(void **state)
{
    static const struct temper temper = {.may_omit = true};
    static const uint64_t dims[1] = {4};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    uint32_t x = build_tensor(builder, "x", DTYPE_F32, ROLE_STATE, 1, dims);
    uint32_t used = build_scale(builder, x, 2.0f);
    uint32_t unused = build_scale(builder, build_scale(builder, x, 3.0f), 4.0f);
    struct tape *tape = NULL;
    struct judge judge;

    (void)state;
    (void)unused;
    build_output(builder, "y", build_scale(builder, used, 5.0f));
    assert_int_equal(builder_finish(&tape, builder, NULL), STATUS_OK);
    builder_free(builder);
    judge_open(&judge, tape, &temper);
    assert_true(judge.plan.runs[0] && judge.plan.runs[3]);
    assert_false(judge.plan.runs[1] || judge.plan.runs[2]);
    judge_close(&judge);
    tape_free(tape);
}

static void test_empty_tape_needs_nothing(void **state)
{
    struct tape tape = {.loss = TENSOR_NONE};

    (void)state;
    assert_int_equal(judge_tape(&tape, &tempers[2]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_tapes_never_share_live_bytes),
        cmocka_unit_test(test_models_never_share_live_bytes_and_save_memory),
        cmocka_unit_test(test_states_are_updated_in_place),
        cmocka_unit_test(test_every_turn_of_a_loop_reads_what_was_written),
        cmocka_unit_test(test_loops_take_the_memory_of_one_turn),
        cmocka_unit_test(test_groups_do_not_add_what_their_loops_kept),
        cmocka_unit_test(test_operation_that_nobody_needs_is_left_out),
        cmocka_unit_test(test_empty_tape_needs_nothing),
    };

    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
