/*
 * Goal: a tape that forgets activations and makes them again ends every step in the same states,
 * makes the same tensors, and needs less memory.
 *
 * Method: each model, with and without micro-batches and shifted tokens, cut into several numbers
 * of parts; random tapes. Steps of the rewrite and of the tape are compared state for state; in
 * trace mode, each tensor of the rewrite is compared with that of the operation that it repeats.
 * The memory of a GPT is compared with that of its rewrites.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/plan/recompute.h"
#include "tests/support/device/rewrite_check.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/test.h"

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

/* ---- models ----------------------------------------------------------------- */

static void test_models_end_alike_and_make_the_same_tensors(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2 * MODEL_COUNT; turn++) {
        struct model_options options;
        struct small_model small;
        uint32_t repeated = 0;

        small_model_options(&options, (enum model_kind)(turn / 2));
        options.accumulate = turn % 2 == 0 ? 1 : 4;
        options.group = turn % 2 == 0 ? 1 : 2;
        options.equilibrate = turn % 2 == 1;
        small_model_open(&small, &options);
        for (uint32_t parts = 2; parts <= 8; parts *= 4) {
            struct tape *rewrite = NULL;
            struct error error;

            error_init(&error);
            check(recompute_build(&rewrite, small.model.tape, NULL, parts, &error), &error);
            rewrite_compare_states(&small, rewrite);
            repeated += rewrite_compare_traces(&small, rewrite);
            tape_free(rewrite);
        }
        print_message("%s, %u micro-batches: %u tensors made again\n",
                      model_kind_name(options.kind), options.accumulate, repeated);
        assert_true(repeated > 0 || options.kind == MODEL_MLP); /* whose turn is at its start */
        small_model_close(&small);
    }
}

static void test_random_tapes_end_alike(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < test_share(20000, 150); seed++) {
        struct tape *tape = random_tape(seed, 4 + (uint32_t)(seed % 50));
        struct tape *rewrite = NULL;
        struct error error;

        error_init(&error);
        check(recompute_build(&rewrite, tape, NULL, 2 + (uint32_t)(seed % 7), &error), &error);
        rewrite_compare_random(tape, rewrite, seed);
        tape_free(rewrite);
        tape_free(tape);
    }
}

/* ---- what it saves ---------------------------------------------------------- */

static void test_a_gpt_needs_less_memory(void **state)
{
    struct machine_options options = {.isa = isa_best(), .thread_count = 1};
    struct model_options model_options;
    struct machine *machine = NULL;
    struct model model;
    struct error error;
    uint64_t plain = 0;
    uint64_t least = UINT64_MAX;
    uint64_t opened = 0;

    (void)state;
    error_init(&error);
    model_options_default(&model_options, MODEL_GPT2);
    model_options.layers = 12;
    model_options.length = 128;
    model_options.positions = 128;
    model_options.data_count = 100000;
    assert_int_equal(model_build(&model, &model_options, &error), STATUS_OK);
    check(backend_cpu.size(&plain, model.tape, &options, &error), &error);
    for (uint32_t parts = 2; parts <= RECOMPUTE_PARTS_MAX; parts *= 2) {
        struct tape *rewrite = NULL;
        uint64_t size = 0;

        check(recompute_build(&rewrite, model.tape, NULL, parts, &error), &error);
        check(backend_cpu.size(&size, rewrite, &options, &error), &error);
        print_message("%u parts: %u operations for %u, %llu KiB for %llu\n", parts,
                      rewrite->op_count, model.tape->op_count, (unsigned long long)(size >> 10),
                      (unsigned long long)(plain >> 10));
        least = size < least ? size : least;
        tape_free(rewrite);
    }
    assert_true(least < plain / 2);

    /* The option takes the best of them, and never a machine that traces. */
    options.recompute = true;
    check(machine_open(&machine, model.tape, &options, &error), &error);
    assert_ptr_not_equal(machine->tape, model.tape);
    assert_int_equal(machine->tape->state_count, model.tape->state_count);
    options.recompute = false;
    check(backend_cpu.size(&opened, machine->tape, &options, &error), &error);
    assert_int_equal(opened, least);
    backend_cpu.close(machine);
    options.recompute = true;
    options.trace = true;
    check(machine_open(&machine, model.tape, &options, &error), &error);
    assert_ptr_equal(machine->tape, model.tape);
    backend_cpu.close(machine);
    model_release(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models_end_alike_and_make_the_same_tensors),
        cmocka_unit_test(test_random_tapes_end_alike),
        cmocka_unit_test(test_a_gpt_needs_less_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
