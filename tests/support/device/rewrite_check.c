/* rewrite_check.c - see rewrite_check.h. */
#include "tests/support/device/rewrite_check.h"

#include <stdlib.h>

#include "engine/plan/hoist.h"
#include "engine/plan/recompute.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/test.h"

#define STEPS 3

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

/* ---- rewriting --------------------------------------------------------------- */

struct tape *rewrite_in_slices(const struct tape *tape, const struct chain_limits *limits,
                               uint32_t parts)
{
    struct recompute_hints hints = {.source = tape};
    struct tape *chained = NULL;
    struct tape *kept = NULL;
    struct tape *sliced = NULL;
    bool *inside;
    struct error error;

    error_init(&error);
    check(chain_remake(&chained, tape, limits, &error), &error);
    if (chained == NULL) {
        return NULL;
    }
    inside = calloc((size_t)chained->tensor_count + 1, sizeof(*inside));
    assert_non_null(inside);
    check(chain_mark_inside(inside, chained, limits, &error), &error);
    hints.inside = inside;
    if (parts != 0) {
        check(recompute_build(&kept, chained, &hints, parts, &error), &error);
    }
    check(chain_slice(&sliced, kept != NULL ? kept : chained, limits, &error), &error);
    free(inside);
    tape_free(kept);
    tape_free(chained);
    return sliced;
}

struct tape *rewrite_hoisted(struct tape *tape)
{
    struct tape *rewrite = NULL;
    struct error error;

    error_init(&error);
    check(hoist_build(&rewrite, tape, &error), &error);
    tape_free(tape);
    return rewrite;
}

/* ---- every tensor ----------------------------------------------------------- */

/* What the operations of a tape made: a sum of the bytes, which depends on their order. */
struct made {
    const struct tape *tape; /* of the machine that runs */
    uint32_t op_count;       /* of the job's */
    uint64_t *sums;          /* by turn, operation and output of the job's tape */
    bool compares;
    uint32_t repeated;
};

static enum status note(void *context, struct op_turn maker, uint32_t output, const void *bytes,
                        uint64_t size, struct error *error)
{
    struct made *made = context;
    const struct op_origin *origins = made->compares ? made->tape->origins : NULL;
    uint32_t item = origins == NULL ? maker.op : origins[maker.op].item;
    uint64_t *sum =
        &made->sums[((size_t)maker.turn * made->op_count + item) * OP_OUTPUTS_MAX + output];
    uint64_t found = UINT64_C(0xcbf29ce484222325);

    (void)error;
    for (uint64_t i = 0; i < size; i++) {
        found = (found ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    }
    made->repeated += origins != NULL && origins[maker.op].instance == 1;
    if (made->compares && found != *sum) {
        fail_msg("operation %u makes another output %u", item, output);
    }
    *sum = found;
    return STATUS_OK;
}

/* ---- states ------------------------------------------------------------------ */

static struct machine *open_small(const struct small_model *small, const struct tape *tape,
                                  bool trace)
{
    const struct machine_options options = {.isa = isa_best(), .thread_count = 2, .trace = trace};
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    check(backend_cpu.open(&machine, tape, &options, &error), &error);
    small_machine_give(machine, small);
    return machine;
}

void rewrite_compare_states(const struct small_model *small, const struct tape *rewrite)
{
    struct machine *plain = open_small(small, small->model.tape, false);
    struct machine *other = open_small(small, rewrite, false);

    for (int step = 0; step < STEPS; step++) {
        char one[SMALL_DIGEST_TEXT];
        char two[SMALL_DIGEST_TEXT];

        small_machine_steps(plain, 1);
        small_machine_steps(other, 1);
        small_machine_digest(one, plain);
        small_machine_digest(two, other);
        assert_string_equal(one, two);
        assert_true(small_machine_loss(plain) == small_machine_loss(other));
    }
    backend_cpu.close(plain);
    backend_cpu.close(other);
}

uint32_t rewrite_compare_traces(const struct small_model *small, const struct tape *rewrite)
{
    const struct tape *tape = small->model.tape;
    struct machine *plain = open_small(small, tape, true);
    struct machine *other = open_small(small, rewrite, true);
    struct made made = {.tape = tape, .op_count = tape->op_count};
    size_t turns = 1;
    const struct observer observer = {.made = note, .context = &made};

    for (uint32_t i = 0; i < tape->loop_count; i++) {
        turns = tape->loops[i].turns > turns ? tape->loops[i].turns : turns;
    }
    made.sums = calloc(turns * tape->op_count * OP_OUTPUTS_MAX, sizeof(*made.sums));
    assert_non_null(made.sums);
    assert_int_equal(backend_cpu.step(plain, &observer, NULL), STATUS_OK);
    made.tape = rewrite;
    made.compares = true;
    assert_int_equal(backend_cpu.step(other, &observer, NULL), STATUS_OK);
    free(made.sums);
    backend_cpu.close(plain);
    backend_cpu.close(other);
    return made.repeated;
}

/* ---- random tapes --------------------------------------------------------------- */

void rewrite_compare_random(const struct tape *tape, const struct tape *rewrite, uint64_t seed)
{
    const struct machine_options options = {.isa = isa_best(), .thread_count = 1};
    struct random_machine plain;
    struct random_machine other;
    const char *name = NULL;

    random_machine_open(&plain, tape, &options, seed);
    random_machine_open(&other, rewrite, &options, seed);
    for (int step = 0; step < STEPS; step++) {
        random_machine_step(&plain, NULL);
        random_machine_step(&other, NULL);
        if (!random_machine_equal(&name, &plain, &other)) {
            fail_msg("seed %llu, step %d: '%s' differs", (unsigned long long)seed, step, name);
        }
    }
    random_machine_close(&other);
    random_machine_close(&plain);
}

/* A sum of the bytes of each tensor of the job's tape, where it is made. */
struct sums {
    const struct tape *tape; /* that runs */
    uint32_t tensor_count;   /* of the job's */
    uint64_t *sums;
    uint32_t compared;
    bool compares;
};

static enum status sum_made(void *context, struct op_turn maker, uint32_t output, const void *bytes,
                            uint64_t size, struct error *error)
{
    struct sums *all = context;
    const uint32_t id = all->tape->ops[maker.op].outputs[output];
    uint64_t sum = UINT64_C(0xcbf29ce484222325);

    (void)error;
    if (id >= all->tensor_count) {
        return STATUS_OK;
    }
    for (uint64_t i = 0; i < size; i++) {
        sum = (sum ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    }
    if (all->compares && sum != all->sums[id]) {
        fail_msg("tensor %u differs", id);
    }
    all->sums[id] = sum;
    all->compared += all->compares;
    return STATUS_OK;
}

uint32_t rewrite_compare_tensors(const struct tape *tape, const struct tape *rewrite, uint64_t seed)
{
    struct sums all = {.tensor_count = tape->tensor_count,
                       .sums = calloc(tape->tensor_count, sizeof(*all.sums))};
    const struct observer observer = {.made = sum_made, .context = &all};

    assert_non_null(all.sums);
    for (int turn = 0; turn < 2; turn++) {
        const struct machine_options options = {
            .isa = turn == 0 ? ISA_SCALAR : isa_best(), .thread_count = 2, .trace = true};
        struct random_machine machine;

        all.tape = turn == 0 ? tape : rewrite;
        all.compares = turn == 1;
        random_machine_open(&machine, all.tape, &options, seed);
        random_machine_step(&machine, &observer);
        random_machine_close(&machine);
    }
    free(all.sums);
    return all.compared;
}
