/*
 * training_test.c - whole training runs, to the bit: SHA-256 of the state after 1, 10, 100 steps.
 *
 * The values were computed by this program. They pin the arithmetic: any change to a rule, to the
 * order of a tape, to a model or to a first state shows here, and is a new version of the protocol.
 * Optimizers and schedules go wrong late, so the smallest model runs 300 steps. The looped rules,
 * which are the definition, run the whole course; every instruction set, both modes and one and two
 * threads must end at the same bits.
 *
 * "training_test print" prints the digests instead of comparing them.
 */
#include <stdio.h>
#include <string.h>

#include "tests/support/small_model.h"
#include "tests/support/test.h"

#define MARKS_MAX 4

struct run {
    enum model_kind kind;
    uint32_t steps[MARKS_MAX]; /* ends at 0 */
    const char *digests[MARKS_MAX];
};

static const struct run runs[MODEL_COUNT] = {
    {MODEL_MLP,
     {1, 10, 100, 300},
     {"dd60dd9c6c5405844fa32bb3934e5ee0207603af6343c73c259a2a6a65c4def6",
      "1fc41c472a37fb70decbe8b025dadec97f06c0ce482f06a75a5e834f15175d01",
      "8959411d2e10247f52397e58729d5dc56c222a767de13a709ec54c46a3026f84",
      "4522c1dca068fef9e76bdc71dcd2d06f88fcbade9a1c631b3ddc99438eb74052"}},
    {MODEL_CONVNET,
     {1, 10, 100},
     {"e6e821eabae13862aa310794c8068d960549ce22c4dd82585e4097cd43785b34",
      "db30b3ce46b826263e0b0c4c8fde482008fa160a263ddee68f52b239af416490",
      "f336afa2575a93cd708f090ce9621366045856d9838898387e9b4de28042c00c"}},
    {MODEL_GPT2,
     {1, 10, 100},
     {"40bb5df16b15ee828dd1a991b4473c70dd74d27864e21c230d027c6b1aa5d12d",
      "1d50d226bbafa2385b9b444695a44f0a18369f8777725e661c221a88da6b4b6c",
      "2a690614ba63b89d8b176e56d5ac2597720fea994880561ec053dc5081a6a39e"}},
    {MODEL_LLAMA,
     {1, 10, 100},
     {"eedd1ad764178a71e34718d7d9ba09d84cbf9716137e9a487f6b8e5e8a16e380",
      "c9796b504faadd98f57cae09955d6188a70751581e6325df0eda2b07bb114514",
      "f5f432d5c2be5813b876399f91fdc927f217b1352d598d2b7409458cfd8b5e8e"}},
};

struct way {
    enum isa isa;
    int thread_count;
    bool trace;
};

static void fail_run(const struct run *run, const struct way *way, uint32_t steps,
                     const char *digest)
{
    fail_msg("%s, %s, %d threads, %s mode: after %u steps the state is %s",
             model_kind_name(run->kind), isa_name(way->isa), way->thread_count,
             way->trace ? "trace" : "fast", steps, digest);
}

/* Runs one way and compares at every mark; prints the digests instead where print is set. */
static void follow(const struct run *run, const struct way *way, bool print)
{
    struct model_options options;
    struct small_model small;
    struct machine *machine;
    uint32_t done = 0;

    small_model_options(&options, run->kind);
    small_model_open(&small, &options);
    machine = small_machine_open(&small, way->isa, way->thread_count, way->trace);
    for (int i = 0; i < MARKS_MAX && run->steps[i] != 0; i++) {
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

    follow(&runs[kind], &rules, false);
    for (int isa = ISA_SCALAR + 1; isa < ISA_COUNT; isa++) {
        for (int way = 0; way < 4 && isa_available((enum isa)isa); way++) {
            struct way fast = {(enum isa)isa, 1 + way % 2, way / 2 == 1};

            follow(&runs[kind], &fast, false);
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
            follow(&runs[kind], &rules, true);
        }
        return 0;
    }
    return cmocka_run_group_tests_name("training", tests, NULL, NULL);
}
