/*
 * Goal: a loss in slices ends in the same states and makes the same tensors as one that has all
 * logits at once, in slices of any size.
 *
 * Method: random losses (tokens, ids, widths, bits, blocks; with and without a mask, ignored and
 * wrong targets, words that learn, tokens that learn) in slices of one line to nearly all of them,
 * under hoist.h, on one and two threads; random tapes; in trace mode every tensor that is left, by
 * the rules against kernels. Two losses whose chains cross, and whose slopes are each other. Models
 * with micro-batches under recompute.h. Losses that must stay whole. What GPT-2's plan takes with
 * its words in slices.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tape/builder.h"
#include "tests/support/device/memory_plan.h"
#include "tests/support/device/rewrite_check.h"
#include "tests/support/numeric/random_op.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/numeric/start.h"
#include "tests/support/test.h"

enum odd { ODD_NONE, ODD_LOGITS_KEPT, ODD_SLOPE_OF_LOSS, ODD_COUNT };

struct loss {
    struct precision precision;
    uint64_t tokens;
    uint64_t ids;
    uint64_t width;
    bool masked;
    bool shifted;     /* equilibrated */
    bool words_learn; /* else there is no chain by ids */
    bool tokens_learn;
    bool tied; /* the words are what the tokens are made of, too */
    enum odd odd;
};

struct loss_tape {
    struct tape *tape;
    uint32_t targets;
};

static struct loss random_loss(uint64_t seed)
{
    static const struct precision precisions[4] = {{14, 16}, {14, 128}, {16, 0}, {22, 32}};
    uint64_t random = seed;
    struct loss one = {.precision = precisions[random_op_below(&random, 4)]};

    one.width = 2 + random_op_below(&random, 5);
    one.tokens = 2 * one.width + 3 + random_op_below(&random, 60);
    one.ids = 2 * one.width + 3 + random_op_below(&random, 200);
    one.masked = random_op_below(&random, 3) == 0;
    one.shifted = random_op_below(&random, 3) != 0;
    one.words_learn = random_op_below(&random, 4) != 0;
    one.tokens_learn = !one.words_learn || random_op_below(&random, 4) != 0;
    one.tied = one.words_learn && one.tokens_learn && random_op_below(&random, 2) == 0;
    return one;
}

static uint32_t loss_of(struct builder *builder, const struct loss *one, uint32_t logits,
                        uint32_t targets)
{
    if (one->masked) {
        const uint64_t dims[1] = {one->tokens};
        const uint32_t mask = build_tensor(builder, "mask", DTYPE_U32, ROLE_CONSTANT, 1, dims);

        return build_cross_entropy_masked(builder, logits, targets, mask,
                                          build_share(builder, mask));
    }
    if (one->odd == ODD_SLOPE_OF_LOSS) {
        const uint32_t rows = build_cross_entropy_rows(builder, logits, targets);

        return build_mean(builder, build_mul(builder, rows, rows, 1));
    }
    return build_cross_entropy(builder, logits, targets);
}

static struct loss_tape loss_tape(const struct loss *one)
{
    const uint64_t x_dims[2] = {one->tokens, one->width};
    const uint64_t w_dims[2] = {one->ids, one->width};
    const uint64_t t_dims[1] = {one->tokens};
    struct builder *builder = builder_new(one->precision);
    struct loss_tape made = {NULL, 0};
    uint32_t learned[2];
    uint32_t gradients[2];
    uint32_t count = 0;
    struct error error;

    error_init(&error);
    (void)build_step(builder);
    if (one->shifted) {
        builder_equilibrate(builder);
    }
    const uint32_t w = build_tensor(builder, "w", DTYPE_F32,
                                    one->words_learn ? ROLE_STATE : ROLE_CONSTANT, 2, w_dims);
    const uint32_t at = build_tensor(builder, "x", DTYPE_F32,
                                     one->tokens_learn ? ROLE_STATE : ROLE_CONSTANT, 2, x_dims);
    const uint32_t words = build_tensor(builder, "words", DTYPE_U32, ROLE_CONSTANT, 1, t_dims);

    made.targets = build_tensor(builder, "targets", DTYPE_U32, ROLE_CONSTANT, 1, t_dims);
    uint32_t x = one->tied ? build_add(builder, at, build_gather(builder, w, words), 1) : at;
    uint32_t logits;

    x = build_map(builder, MAP_TANH, x);
    logits = build_linear(builder, x, w);
    if (one->odd == ODD_LOGITS_KEPT) {
        build_output(builder, "logits", logits);
    }
    x = loss_of(builder, one, logits, made.targets);
    build_loss(builder, x);
    if (one->words_learn) {
        learned[count++] = w;
    }
    if (one->tokens_learn) {
        learned[count++] = at;
    }
    build_gradients(builder, gradients, x, learned, count);
    for (uint32_t i = 0; i < count; i++) {
        build_after(builder, learned[i], build_add(builder, learned[i], gradients[i], 1));
    }
    start_must(builder_finish(&made.tape, builder, &error), &error);
    builder_free(builder);
    return made;
}

/* A room of lines of logits; ids: of columns. */
static struct tape *in_slices(const struct loss *one, const struct tape *tape, uint64_t elements)
{
    const uint64_t all = one->tokens * one->ids;
    const struct chain_limits limits = {
        .room = (elements < all ? elements : all - 1) * sizeof(float), .losses = true};

    return rewrite_in_slices(tape, &limits, 0);
}

static void give_targets(struct start *start, const struct loss_tape *made, const struct loss *one,
                         uint64_t seed)
{
    uint32_t *targets = start->values[made->targets];
    uint64_t random = seed;

    for (uint64_t i = 0; i < one->tokens; i++) {
        targets[i] = (uint32_t)random_op_below(&random, one->ids);
        if (random_op_below(&random, 5) == 0) {
            targets[i] = TARGET_IGNORED;
        }
    }
    if (seed % 16 == 15) {
        targets[one->tokens / 2] = (uint32_t)one->ids; /* none: all numbers become NaN */
    }
}

static void compare_steps(const struct loss_tape *made, const struct tape *rewrite,
                          const struct loss *one, uint64_t seed)
{
    struct machine *machines[2] = {NULL, NULL};
    struct start start;
    struct error error;

    error_init(&error);
    start_random(&start, made->tape, seed);
    give_targets(&start, made, one, seed);
    for (int i = 0; i < 2; i++) {
        const struct machine_options options = {.isa = isa_best(),
                                                .thread_count = i == 0 ? 1 : 1 + (int)(seed % 2)};

        start_must(backend_cpu.open(&machines[i], i == 0 ? made->tape : rewrite, &options, &error),
                   &error);
        start_steps(machines[i], &start, 2);
    }
    start_compare(machines[0], machines[1], "a loss in slices");
    for (int i = 0; i < 2; i++) {
        machines[i]->backend->close(machines[i]);
    }
    start_release(&start);
}

/* How many logits, or gradients of them, a tape makes, whole or in slices. */
static uint64_t count_made(const struct tape *tape, const struct loss *one, enum op_kind kind,
                           bool whole)
{
    uint64_t count = 0;

    for (uint32_t at = 0; tape != NULL && at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];
        const uint64_t made = tape->tensors[op->outputs[0]].count;

        if (op->kind == kind && whole == (made == one->tokens * one->ids) &&
            (kind != OP_CONTRACT || op->attributes[CONTRACT_K] == (int64_t)one->width)) {
            count += made;
        }
    }
    return count;
}

/* Each is made in slices: once for the tokens, and once for the words. */
static void check_slices(const struct tape *tape, const struct tape *rewrite,
                         const struct loss *one)
{
    const uint64_t all = one->tokens * one->ids;

    assert_int_equal(count_made(tape, one, OP_CONTRACT, true), all);
    assert_int_equal(count_made(rewrite, one, OP_CONTRACT, true), 0);
    assert_int_equal(count_made(rewrite, one, OP_CONTRACT, false),
                     one->words_learn ? 2 * all : all);
    assert_int_equal(count_made(rewrite, one, OP_CROSS_ENTROPY_GRAD, true), 0);
    assert_int_equal(count_made(rewrite, one, OP_CROSS_ENTROPY_GRAD, false),
                     (one->words_learn + one->tokens_learn) * all);
}

static void test_random_losses_end_alike(void **state)
{
    uint32_t by_ids = 0;

    (void)state;
    for (uint64_t seed = 0; seed < test_share(1000, 120); seed++) {
        const struct loss one = random_loss(seed);
        const struct loss_tape made = loss_tape(&one);
        const uint64_t all = one.tokens * one.ids;
        uint64_t random = seed + 5;
        /* From a part of a line to all but one element. */
        const uint64_t room = seed % 4 == 0   ? 1
                              : seed % 4 == 1 ? all - 1
                                              : 1 + random_op_below(&random, all - 1);
        struct tape *rewrite = in_slices(&one, made.tape, room);

        if (rewrite == NULL) {
            fail_msg("seed %llu: no chain", (unsigned long long)seed);
        }
        check_slices(made.tape, rewrite, &one);
        by_ids += one.words_learn;
        rewrite = seed % 2 == 0 ? rewrite : rewrite_hoisted(rewrite);
        compare_steps(&made, rewrite, &one, seed);
        assert_true(rewrite_compare_tensors(made.tape, rewrite, seed) > 4);
        tape_free(rewrite);
        tape_free(made.tape);
    }
    assert_true(by_ids > 0);
}

/* The gradient of such a loss reads what the cross-entropy has made of all rows. */
static void test_what_must_stay_whole_stays(void **state)
{
    (void)state;
    for (int odd = 0; odd < ODD_COUNT; odd++) {
        struct loss one = random_loss(3);
        struct tape *rewrite;

        one.words_learn = one.tokens_learn = true;
        one.masked = false;
        one.odd = (enum odd)odd;
        const struct loss_tape made = loss_tape(&one);

        rewrite = in_slices(&one, made.tape, one.ids);
        if ((odd == ODD_NONE) != (rewrite != NULL)) {
            fail_msg("odd %d: a chain is %s", odd, rewrite != NULL ? "there" : "missing");
        }
        const struct chain_limits fits = {.room = one.ids * one.tokens * sizeof(float),
                                          .losses = true};
        const struct chain_limits unasked = {.room = 1};

        tape_free(rewrite);
        assert_null(rewrite_in_slices(made.tape, &fits, 0));
        assert_null(rewrite_in_slices(made.tape, &unasked, 0));
        tape_free(made.tape);
    }
}

/* ---- two losses ---------------------------------------------------------------- */

enum joint { JOINT_SUM, JOINT_PRODUCT, JOINT_ONE_WAY, JOINT_COUNT };

struct two_losses {
    enum joint joint;
    bool in_turns; /* both logits, then both losses */
    bool one_x;
    bool one_w;
};

#define TWO_TOKENS 21
#define TWO_IDS    70
#define TWO_WIDTH  4

/* What two losses learn: tokens and words, which they may share. */
struct two_learned {
    uint32_t all[4];
    uint32_t count;
    uint32_t logits[2];
    uint32_t targets[2];
};

static uint32_t learn(struct two_learned *learned, struct builder *builder, const char *name,
                      uint64_t rows)
{
    const uint64_t dims[2] = {rows, TWO_WIDTH};
    const uint32_t id = build_tensor(builder, name, DTYPE_F32, ROLE_STATE, 2, dims);

    learned->all[learned->count++] = id;
    return id;
}

static void build_two_logits(struct two_learned *learned, struct builder *builder,
                             const struct two_losses *two)
{
    const uint64_t dims[1] = {TWO_TOKENS};
    const uint32_t x = learn(learned, builder, "x", TWO_TOKENS);
    const uint32_t w = learn(learned, builder, "w", TWO_IDS);
    const uint32_t y = two->one_x ? x : learn(learned, builder, "y", TWO_TOKENS);
    const uint32_t v = two->one_w ? w : learn(learned, builder, "v", TWO_IDS);

    learned->targets[0] = build_tensor(builder, "targets", DTYPE_U32, ROLE_CONSTANT, 1, dims);
    learned->targets[1] = build_tensor(builder, "others", DTYPE_U32, ROLE_CONSTANT, 1, dims);
    learned->logits[0] = build_linear(builder, build_map(builder, MAP_TANH, x), w);
    learned->logits[1] = build_linear(builder, build_map(builder, MAP_TANH, y), v);
}

static struct tape *two_losses_tape(const struct two_losses *two)
{
    struct builder *builder = builder_new((struct precision){14, 16});
    struct two_learned learned = {.count = 0};
    struct tape *tape = NULL;
    uint32_t gradients[4];
    uint32_t losses[2];
    struct error error;

    error_init(&error);
    (void)build_step(builder);
    build_two_logits(&learned, builder, two);
    for (int i = 0; i < 2; i++) {
        const int at = two->in_turns ? 1 - i : i;

        losses[at] = build_cross_entropy(builder, learned.logits[at], learned.targets[at]);
    }
    /* The slope of a product's factor is the other one. One way: of the first alone. */
    const uint32_t loss = two->joint == JOINT_SUM ? build_add(builder, losses[0], losses[1], 1)
                                                  : build_mul(builder, losses[0], losses[1], 1);
    const uint32_t first = two->joint == JOINT_ONE_WAY ? 2 : learned.count;

    build_loss(builder, loss);
    build_gradients(builder, gradients, loss, learned.all, first);
    if (first < learned.count) {
        build_gradients(builder, gradients + first, losses[1], learned.all + first,
                        learned.count - first);
    }
    for (uint32_t i = 0; i < learned.count; i++) {
        build_after(builder, learned.all[i], build_add(builder, learned.all[i], gradients[i], 1));
    }
    start_must(builder_finish(&tape, builder, &error), &error);
    builder_free(builder);
    return tape;
}

/* How many gradients of logits a tape makes as a whole. */
static uint32_t count_whole(const struct tape *tape)
{
    uint32_t count = 0;

    for (uint32_t at = 0; tape != NULL && at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];

        count += op->kind == OP_CROSS_ENTROPY_GRAD &&
                 tape->tensors[op->outputs[0]].count == TWO_TOKENS * TWO_IDS;
    }
    return count;
}

/* Chains cross each other, and what waits for one is read by the other. */
static void test_two_losses_end_alike(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 24; seed++) {
        const enum joint joint = (enum joint)(seed % JOINT_COUNT);
        const bool alone = joint == JOINT_ONE_WAY;
        const struct two_losses two = {joint, seed / 3 % 2 == 1, !alone && seed / 6 % 2 == 1,
                                       !alone && seed / 12 == 1};
        struct tape *tape = two_losses_tape(&two);
        const struct chain_limits limits = {.room = TWO_IDS * sizeof(float) * (1 + seed % 5),
                                            .losses = true};
        struct tape *rewrite = rewrite_in_slices(tape, &limits, seed % 3 == 2 ? 2 : 0);

        if (rewrite == NULL) {
            fail_msg("seed %u: no chain", seed);
        }
        assert_true(count_whole(rewrite) < count_whole(tape));
        rewrite_compare_random(tape, rewrite, seed);
        tape_free(rewrite);
        tape_free(tape);
    }
}

static void test_random_tapes_end_alike(void **state)
{
    const struct chain_limits limits = {.room = 1, .losses = true};

    (void)state;
    for (uint64_t seed = 0; seed < test_share(4000, 100); seed++) {
        struct tape *tape = random_tape(seed, 4 + (uint32_t)(seed % 50));
        struct tape *rewrite = rewrite_in_slices(tape, &limits, 0);

        if (rewrite != NULL) {
            rewrite_compare_random(tape, rewrite, seed);
        }
        tape_free(rewrite);
        tape_free(tape);
    }
}

static void test_models_end_alike(void **state)
{
    (void)state;
    for (int turn = 0; turn < 16; turn++) {
        const struct chain_limits limits = {.room = (turn % 3 == 0 ? 5000 : 9000), .losses = true};
        struct model_options options;
        struct small_model small;
        struct tape *rewrite;

        small_model_options(&options, turn % 2 == 0 ? MODEL_GPT2 : MODEL_LLAMA);
        options.vocabulary = 150;
        options.length = options.positions = 45;
        options.layers = 2;
        options.accumulate = turn % 4 < 2 ? 1 : 4;
        options.group = turn % 4 < 2 ? 1 : 2;
        options.equilibrate = turn % 3 != 0;
        options.dropout = 0.0;
        options.recipe.smoothing = turn % 5 == 4 ? 0.1 : 0.0;
        options.recipe.z_loss = turn % 7 == 4 ? 0.001 : 0.0;
        small_model_open(&small, &options);
        rewrite = rewrite_in_slices(small.model.tape, &limits, turn < 6 ? 0 : 3);
        assert_non_null(rewrite);
        rewrite = turn % 8 < 4 ? rewrite : rewrite_hoisted(rewrite);
        print_message("%s, %u micro-batches: %u operations for %u\n", model_kind_name(options.kind),
                      options.accumulate, rewrite->op_count, small.model.tape->op_count);
        rewrite_compare_states(&small, rewrite);
        tape_free(rewrite);
        small_model_close(&small);
    }
}

/* The logits of 8,192 tokens and 50,257 ids are 1,571 MiB. */
static void test_words_no_longer_fill_a_recomputing_step(void **state)
{
    struct model model;

    (void)state;
    memory_plan_model(&model, 1, 8192);
    const struct memory_plan plan = memory_plan_of(model.tape, &backend_cpu, isa_best());

    print_message("8,192 tokens: %llu MiB, recomputing %llu\n", (unsigned long long)plan.kept,
                  (unsigned long long)plan.again);
    assert_true(plan.again < 4000 && plan.again * 100 < plan.kept * 45);
    model_release(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_losses_end_alike),
        cmocka_unit_test(test_what_must_stay_whole_stays),
        cmocka_unit_test(test_two_losses_end_alike),
        cmocka_unit_test(test_random_tapes_end_alike),
        cmocka_unit_test(test_models_end_alike),
        cmocka_unit_test(test_words_no_longer_fill_a_recomputing_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
