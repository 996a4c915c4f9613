/*
 * training_test.c - whole training runs, to the bit: SHA-256 of the state after 1, 10, 100 steps.
 *
 * The values (training_runs.c) were computed by this program. They pin the arithmetic: any change
 * to a rule, to the order of a tape, to a model or to a first state shows here, and is a new
 * version of the protocol. Optimizers and schedules go wrong late, so the smallest model runs 300
 * steps. The looped rules, which are the definition, run the whole course; every instruction set,
 * both modes and one and two threads must end at the same bits.
 *
 * "training_test print" prints the digests instead of comparing them.
 */
#include <stdio.h>
#include <string.h>

#include "tests/support/device/training_runs.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/test.h"

struct way {
    enum isa isa;
    int thread_count;
    bool trace;
};

static void fail_run(const struct training_run *run, const struct way *way, uint32_t steps,
                     const char *digest)
{
    fail_msg("%s, %s, %d threads, %s mode: after %u steps the state is %s",
             model_kind_name(run->kind), isa_name(way->isa), way->thread_count,
             way->trace ? "trace" : "fast", steps, digest);
}

/* Runs one way and compares at every mark; prints the digests instead where print is set. */
static void follow(const struct training_run *run, const struct way *way, bool print)
{
    struct model_options options;
    struct small_model small;
    struct machine *machine;
    uint32_t done = 0;

    small_model_options(&options, run->kind);
    small_model_open(&small, &options);
    machine = small_machine_open(&small, way->isa, way->thread_count, way->trace);
    for (int i = 0; i < TRAINING_MARKS_MAX && run->steps[i] != 0; i++) {
        char digest[SMALL_DIGEST_TEXT];

        small_machine_steps(machine, run->steps[i] - done);
        done = run->steps[i];
        small_machine_digest(digest, machine);
        if (print) {
            printf("%s %u %s loss %.6f\n", model_kind_name(run->kind), done, digest,
                   (double)small_machine_loss(machine));
        } else if (strcmp(digest, run->digests[i]) != 0) {
            fail_run(run, way, done, digest);
        }
    }
    assert_false(small_machine_diverged(machine));
    backend_cpu.close(machine);
    small_model_close(&small);
}

/* The looped rules, on all threads of two; then each instruction set in every way there is. */
static void check_run(enum model_kind kind)
{
    struct way rules = {ISA_SCALAR, 2, false};

    follow(&training_runs[kind], &rules, false);
    for (int isa = ISA_SCALAR + 1; isa < ISA_COUNT; isa++) {
        for (int way = 0; way < 4 && isa_available((enum isa)isa); way++) {
            struct way fast = {(enum isa)isa, 1 + way % 2, way / 2 == 1};

            follow(&training_runs[kind], &fast, false);
        }
    }
}

static void test_mlp_ends_at_the_pinned_states(void **state)
{
    (void)state;
    check_run(MODEL_MLP);
}

static void test_convnet_ends_at_the_pinned_states(void **state)
{
    (void)state;
    check_run(MODEL_CONVNET);
}

static void test_gpt2_ends_at_the_pinned_states(void **state)
{
    (void)state;
    check_run(MODEL_GPT2);
}

static void test_llama_ends_at_the_pinned_states(void **state)
{
    (void)state;
    check_run(MODEL_LLAMA);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mlp_ends_at_the_pinned_states),
        cmocka_unit_test(test_convnet_ends_at_the_pinned_states),
        cmocka_unit_test(test_gpt2_ends_at_the_pinned_states),
        cmocka_unit_test(test_llama_ends_at_the_pinned_states),
    };

    if (argc == 2 && strcmp(argv[1], "print") == 0) {
        struct way rules = {ISA_SCALAR, 2, false};

        for (int kind = 0; kind < MODEL_COUNT; kind++) {
            follow(&training_runs[kind], &rules, true);
        }
        return 0;
    }
    return cmocka_run_group_tests_name("training", tests, NULL, NULL);
}
