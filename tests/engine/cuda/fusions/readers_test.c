/*
 * readers_test.c - who reads what is known after every pattern as if it were found again.
 *
 * Goal: what a pattern has the readers see while it looks on equals what is found in the operations
 * that it leaves.
 * Method: the patterns one after the other over steps of decoders, of one micro-batch and of three,
 * with joined and with separate queries, keys and values.
 */
#include "engine/cuda/fusions/pattern.h"
#include "engine/models/model.h"
#include "tests/support/test.h"

/* Patterns that look on after a change, and those that others stand on. */
static const struct fusion_pattern *const patterns[] = {
    &pattern_repeated, &pattern_views, &pattern_entropy, &pattern_attention, &pattern_epilogue};

#define PATTERNS (sizeof(patterns) / sizeof(patterns[0]))

static void build(struct model *model, enum model_kind kind, uint32_t batches)
{
    struct model_options options;
    struct error error;

    error_init(&error);
    model_options_default(&options, kind);
    options.data_count = 1000;
    options.layers = 2;
    options.accumulate = batches;
    assert_int_equal(model_build(model, &options, &error), STATUS_OK);
}

static void compare(const struct readers *seen, const struct readers *found, uint32_t tensors)
{
    for (uint32_t id = 0; id < tensors; id++) {
        assert_int_equal(seen->first[id], found->first[id]);
        assert_int_equal(seen->last[id], found->last[id]);
        assert_int_equal(seen->count[id], found->count[id]);
        assert_int_equal(seen->states[id], found->states[id]);
        assert_int_equal(seen->maker[id], found->maker[id]);
    }
}

static void test_what_is_seen_is_what_would_be_found(void **state)
{
    static const enum model_kind kinds[] = {MODEL_GPT2, MODEL_LLAMA};
    const struct fusion_facts facts = {0};

    (void)state;
    for (int turn = 0; turn < 4; turn++) {
        struct readers found = {.first = NULL};
        struct readers seen = {.first = NULL};
        struct fusion fusion;
        struct model model;
        uint32_t views = 0;

        build(&model, kinds[turn % 2], turn < 2 ? 1 : 3);
        assert_true(fusion_init(&fusion, model.tape, &facts));
        for (size_t i = 0; i < PATTERNS; i++) {
            const uint32_t before = fusion.group_count;

            assert_true(readers_find(&seen, &fusion, model.tape));
            assert_true(patterns[i]->match(&fusion, model.tape, &seen));
            assert_true(readers_find(&found, &fusion, model.tape));
            if (i >= 2) { /* the first two look on at nothing that they change */
                assert_true(fusion.group_count > before);
                compare(&seen, &found, model.tape->tensor_count);
            }
        }
        for (uint32_t id = 0; id < model.tape->tensor_count; id++) {
            views += fusion.holders[id] != id;
        }
        assert_true(views > 0 || kinds[turn % 2] == MODEL_LLAMA);
        readers_release(&found);
        readers_release(&seen);
        fusion_release(&fusion);
        model_release(&model);
    }
}

/* An operation that is forgotten and seen again changes nothing, with any operands. */
static void test_forgetting_and_seeing_again_changes_nothing(void **state)
{
    const struct fusion_facts facts = {0};
    struct readers found = {.first = NULL};
    struct readers seen = {.first = NULL};
    struct fusion fusion;
    struct model model;

    (void)state;
    build(&model, MODEL_GPT2, 2);
    assert_true(fusion_init(&fusion, model.tape, &facts));
    assert_true(readers_find(&seen, &fusion, model.tape));
    assert_true(pattern_views.match(&fusion, model.tape, &seen));
    assert_true(readers_find(&seen, &fusion, model.tape));
    assert_true(readers_find(&found, &fusion, model.tape));
    for (uint32_t at = 0; at < fusion.op_count; at++) {
        readers_forget(&seen, &fusion, &fusion.ops[at], at);
        readers_see(&seen, &fusion, at);
    }
    compare(&seen, &found, model.tape->tensor_count);
    for (uint32_t at = 0; at < fusion.op_count; at++) {
        readers_forget(&seen, &fusion, &fusion.ops[at], at);
    }
    for (uint32_t id = 0; id < model.tape->tensor_count; id++) {
        assert_int_equal(seen.count[id], 0);
        assert_int_equal(seen.first[id], NEVER);
        assert_int_equal(seen.states[id], NEVER);
        assert_int_equal(seen.maker[id], NEVER);
    }
    for (uint32_t at = fusion.op_count; at > 0; at--) {
        readers_see(&seen, &fusion, at - 1);
    }
    compare(&seen, &found, model.tape->tensor_count);
    readers_release(&found);
    readers_release(&seen);
    fusion_release(&fusion);
    model_release(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_seen_is_what_would_be_found),
        cmocka_unit_test(test_forgetting_and_seeing_again_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
