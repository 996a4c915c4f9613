/*
 * Goal: a step with loops is the step without them, bit for bit, however a machine runs or rewrites
 * it.
 *
 * Method: random bodies with accumulators of any kind (random_repeat.h): looped by the rules in
 * trace mode, also where nobody wants to see anything, fast, hoisted, with recomputation and with
 * both, each against the step with all turns apart. What an observer is shown of each turn is what
 * the step without loops makes.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/plan/expand.h"
#include "engine/plan/hoist.h"
#include "engine/plan/recompute.h"
#include "tests/support/loops/random_repeat.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/test.h"

#define STEPS 3

enum way { RULES, UNSEEN, FAST, HOISTED, RECOMPUTED, BOTH, WAYS };

static const char *const names[WAYS] = {"the rules", "unseen",     "fast",
                                        "hoisted",   "recomputed", "both"};

/* NULL: the tape itself. */
static struct tape *rewrite_of(const struct tape *tape, enum way way)
{
    struct tape *first = NULL;
    struct tape *second = NULL;

    if (way == RECOMPUTED || way == BOTH) {
        assert_int_equal(recompute_build(&first, tape, NULL, 3, NULL), STATUS_OK);
    }
    if (way == HOISTED || way == BOTH) {
        assert_int_equal(hoist_build(&second, first != NULL ? first : tape, NULL), STATUS_OK);
        tape_free(first);
        return second;
    }
    return first;
}

static bool wants_nothing(const void *context, struct op_turn maker, uint32_t output)
{
    (void)context;
    (void)maker;
    (void)output;
    return false;
}

static void compare(const struct random_machine *wanted, const struct tape *tape, enum way way,
                    uint64_t seed)
{
    const struct machine_options options = {.isa = way == RULES ? ISA_SCALAR : isa_best(),
                                            .thread_count = 1,
                                            .trace = way == RULES || way == UNSEEN,
                                            .hoist = way == HOISTED || way == BOTH};
    struct tape *rewrite = rewrite_of(tape, way);
    const struct observer nobody = {.wants = wants_nothing};
    struct random_machine found;
    const char *name = NULL;

    random_machine_open(&found, rewrite != NULL ? rewrite : tape, &options, seed);
    for (int step = 0; step < STEPS; step++) {
        random_machine_step(&found, way == UNSEEN ? &nobody : NULL);
    }
    if (!random_machine_equal(&name, wanted, &found)) {
        fail_msg("seed %llu, %s: '%s' differs", (unsigned long long)seed, names[way], name);
    }
    random_machine_close(&found);
    tape_free(rewrite);
}

static void test_loops_are_the_step_without_them_on_every_machine(void **state)
{
    const struct machine_options options = {.isa = isa_best(), .thread_count = 1};
    uint64_t loops = 0;

    (void)state;
    for (uint64_t seed = 0; seed < test_share(100000, 1000); seed++) {
        struct tape *tape = random_repeat(seed);
        struct tape *expanded = NULL;
        struct random_machine wanted;

        if (tape == NULL) {
            continue;
        }
        assert_int_equal(expand_build(&expanded, tape, NULL), STATUS_OK);
        random_machine_open(&wanted, expanded != NULL ? expanded : tape, &options, seed);
        for (int step = 0; step < STEPS; step++) {
            random_machine_step(&wanted, NULL);
        }
        for (int way = 0; way < WAYS; way++) {
            compare(&wanted, tape, (enum way)way, seed);
        }
        loops += tape->loop_count;
        random_machine_close(&wanted);
        tape_free(expanded);
        tape_free(tape);
    }
    print_message("%llu loops\n", (unsigned long long)loops);
    assert_true(loops > test_share(100000, 1000) / 4);
}

/* ---- what is shown ------------------------------------------------------------ */

/* What each operation makes in each turn: a sum of the bytes, which depends on their order. */
struct shown {
    const struct tape *tape; /* with loops */
    uint64_t *sums;
    bool compares;
    uint64_t count;
};

static enum status note(void *context, struct op_turn maker, uint32_t output, const void *bytes,
                        uint64_t size, struct error *error)
{
    struct shown *shown = context;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    uint64_t *known =
        &shown->sums[((size_t)maker.turn * shown->tape->op_count + maker.op) * OP_OUTPUTS_MAX +
                     output];

    (void)error;
    for (uint64_t i = 0; i < size; i++) {
        sum = (sum ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    }
    if (shown->compares) {
        assert_true(*known == sum);
    }
    *known = sum;
    shown->count++;
    return STATUS_OK;
}

static void test_each_turn_is_shown_as_it_is_made(void **state)
{
    const struct machine_options options = {.isa = isa_best(), .thread_count = 1, .trace = true};

    (void)state;
    for (uint64_t seed = 0; seed < test_share(20000, 600); seed++) {
        struct tape *tape = random_repeat(seed);
        struct tape *expanded = NULL;
        struct shown shown = {.tape = tape};
        struct observer observer = {.made = note, .context = &shown};
        struct expand_observer turns = {&observer, NULL};
        struct observer of_turns;
        struct random_machine machine;
        uint64_t count;

        if (tape == NULL || tape->loop_count == 0) {
            tape_free(tape);
            continue;
        }
        shown.sums = calloc((size_t)tape->brief->repeat.times * tape->op_count * OP_OUTPUTS_MAX,
                            sizeof(*shown.sums));
        assert_non_null(shown.sums);
        assert_int_equal(expand_build(&expanded, tape, NULL), STATUS_OK);
        turns.expanded = expanded;
        of_turns = expand_observer(&turns);
        random_machine_open(&machine, expanded, &options, seed);
        random_machine_step(&machine, &of_turns);
        random_machine_close(&machine);
        count = shown.count;
        shown.compares = true;
        random_machine_open(&machine, tape, &options, seed);
        random_machine_step(&machine, &observer);
        random_machine_close(&machine);
        assert_int_equal(shown.count, 2 * count);
        free(shown.sums);
        tape_free(expanded);
        tape_free(tape);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loops_are_the_step_without_them_on_every_machine),
        cmocka_unit_test(test_each_turn_is_shown_as_it_is_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
