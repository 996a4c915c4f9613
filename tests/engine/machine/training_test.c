/*
 * training_test.c - whole training runs, to the bit: SHA-256 of the state after 1, 10, 100 steps.
 *
 * The values (training_runs.c) were computed by this program. They pin the arithmetic: any change
 * to a rule, to the order of a tape, to a model or to a first state changes them, and is a new
 * version of the protocol. Errors of optimizers and schedules show late, so the smallest model runs
 * 300 steps. The looped rules run to the end; every instruction set, both modes and one and two
 * threads must give the same bits.
 *
 * "training_test print" prints the digests instead of comparing them.
 */
#include <stdio.h>
#include <string.h>

#include "tests/support/device/training_runs.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/test.h"

struct variant {
    enum isa isa;
    int thread_count;
    bool trace;
};

static void fail_run(const struct training_run *run, const struct variant *variant, uint32_t steps,
                     const char *digest)
{
    fail_msg("%s, %s, %d threads, %s mode: after %u steps the state is %s",
             model_kind_name(run->kind), isa_name(variant->isa), variant->thread_count,
             variant->trace ? "trace" : "fast", steps, digest);
}

/* Runs one machine and compares at every mark, or prints the digests. */
static void follow(const struct training_run *run, const struct variant *variant, bool print)
{
    struct model_options options;
    struct small_model small;
    struct machine *machine;
    uint32_t done = 0;

    small_model_options(&options, run->kind);
    small_model_open(&small, &options);
    machine = small_machine_open(&small, variant->isa, variant->thread_count, variant->trace);
    for (int i = 0; i < TRAINING_MARKS_MAX && run->steps[i] != 0; i++) {
        char digest[SMALL_DIGEST_TEXT];

        small_machine_steps(machine, run->steps[i] - done);
        done = run->steps[i];
        small_machine_digest(digest, machine);
        if (print) {
            printf("%s %u %s loss %.6f\n", model_kind_name(run->kind), done, digest,
                   (double)small_machine_loss(machine));
        } else if (strcmp(digest, run->digests[i]) != 0) {
            fail_run(run, variant, done, digest);
        }
    }
    assert_false(small_machine_diverged(machine));
    backend_cpu.close(machine);
    small_model_close(&small);
}

/* The looped rules on two threads; then each instruction set, mode and number of threads. */
static void check_run(enum model_kind kind)
{
    struct variant rules = {ISA_SCALAR, 2, false};

    follow(&training_runs[kind], &rules, false);
    for (int isa = ISA_SCALAR + 1; isa < ISA_COUNT; isa++) {
        for (int i = 0; i < 4 && isa_available((enum isa)isa); i++) {
            struct variant fast = {(enum isa)isa, 1 + i % 2, i / 2 == 1};

            follow(&training_runs[kind], &fast, false);
        }
    }
}

/* With shifted tokens in the gradients of weights: all machines end where the rules end. */
static void test_equilibrated_models_end_alike_everywhere(void **state)
{
    const struct variant rules = {ISA_SCALAR, 2, false};

    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct training_run run = {(enum model_kind)kind, {6}, {NULL}};
        char digest[SMALL_DIGEST_TEXT];
        struct model_options options;
        struct small_model small;
        struct machine *machine;

        small_model_options(&options, run.kind);
        options.equilibrate = true;
        small_model_open(&small, &options);
        machine = small_machine_open(&small, rules.isa, rules.thread_count, rules.trace);
        small_machine_steps(machine, run.steps[0]);
        small_machine_digest(digest, machine);
        backend_cpu.close(machine);
        for (int i = 0; i < 4 * ISA_COUNT; i++) {
            const struct variant fast = {(enum isa)(i / 4), 1 + i % 2, i / 2 % 2 == 1};
            char other[SMALL_DIGEST_TEXT];

            if (!isa_available(fast.isa)) {
                continue;
            }
            machine = small_machine_open(&small, fast.isa, fast.thread_count, fast.trace);
            small_machine_steps(machine, run.steps[0]);
            small_machine_digest(other, machine);
            backend_cpu.close(machine);
            assert_string_equal(other, digest);
        }
        small_model_close(&small);
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
        cmocka_unit_test(test_equilibrated_models_end_alike_everywhere),
        cmocka_unit_test(test_mlp_ends_at_the_pinned_states),
        cmocka_unit_test(test_convnet_ends_at_the_pinned_states),
        cmocka_unit_test(test_gpt2_ends_at_the_pinned_states),
        cmocka_unit_test(test_llama_ends_at_the_pinned_states),
    };

    if (argc == 2 && strcmp(argv[1], "print") == 0) {
        struct variant rules = {ISA_SCALAR, 2, false};

        for (int kind = 0; kind < MODEL_COUNT; kind++) {
            follow(&training_runs[kind], &rules, true);
        }
        return 0;
    }
    return cmocka_run_group_tests_name("training", tests, NULL, NULL);
}
