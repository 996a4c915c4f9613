/*
 * Goal: the ranks of a step have the states, loss and outputs of one machine, bit by bit, for every
 * number of them; what they cannot share is refused by name.
 *
 * Method: each rank is a thread with its own machine; messages go through memory. Small models of
 * every kind with 4 and 8 groups of one, two and three micro-batches run three steps on 1 and on 2
 * to 8 ranks, also with forgotten activations and with what is made once. Every state of every rank
 * is compared, and the bytes that were sent are those that the plan foretells.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ranks/rank_step.h"
#include "engine/tape/builder.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/numeric/start.h"
#include "tests/support/ranks/memory_link.h"
#include "tests/support/test.h"

#define STEPS 3

struct one_rank {
    const struct start *start;
    const struct ranks_link *link;
    struct machine_options options;
    struct rank_step step;
    enum status status;
    struct error error;
};

static enum status give(struct one_rank *rank)
{
    const struct tape *tape = rank->start->tape;
    struct machine *machine = rank->step.machine;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const uint32_t own = rank->step.own.ids[id];

        if (rank->start->values[id] == NULL) {
            continue;
        }
        TRY((tape->tensors[id].role == ROLE_DATA
                 ? machine->backend->bind
                 : machine->backend->write)(machine, own, rank->start->values[id], &rank->error));
    }
    return STATUS_OK;
}

static void *run_rank(void *context)
{
    struct one_rank *rank = context;
    enum status status;

    TRY_OUT(
        rank_step_open(&rank->step, rank->start->tape, &rank->options, rank->link, &rank->error));
    TRY_OUT(give(rank));
    for (uint32_t i = 0; i < STEPS; i++) {
        TRY_OUT(rank_step_run(&rank->step, &rank->error));
    }
out:
    rank->status = status;
    return NULL;
}

static void compare(const struct one_rank *rank, struct machine *whole)
{
    const struct tape *tape = rank->start->tape;

    start_must(rank->status, &rank->error);
    for (uint32_t i = 0; i <= tape->state_count; i++) {
        const uint32_t id = i < tape->state_count ? tape->states[i].before : tape->loss;
        const size_t size = start_size(tape, id);
        void *own = malloc(size);
        struct error error;

        error_init(&error);
        start_must(rank->step.machine->backend->read(rank->step.machine, rank->step.own.ids[id],
                                                     own, &error),
                   &error);
        if (memcmp(own, whole->backend->peek(whole, id), size) != 0) {
            fail_msg("rank %u of %u differs in '%s'", rank->link->rank, rank->link->rank_count,
                     tape->tensors[id].name);
        }
        free(own);
    }
}

static void check_ranks(const struct start *start, const struct machine_options *options,
                        uint32_t ranks, struct machine *whole)
{
    struct memory_links *links = memory_links_new(ranks);
    struct one_rank *all = calloc(ranks, sizeof(*all));
    pthread_t *threads = calloc(ranks, sizeof(*threads));
    struct rank_wire wire;
    struct error error;

    error_init(&error);
    for (uint32_t i = 0; i < ranks; i++) {
        all[i] = (struct one_rank){
            .start = start, .link = memory_links_of(links, i), .options = *options};
        error_init(&all[i].error);
        assert_int_equal(pthread_create(&threads[i], NULL, run_rank, &all[i]), 0);
    }
    for (uint32_t i = 0; i < ranks; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    for (uint32_t i = 0; i < ranks; i++) {
        compare(&all[i], whole);
        rank_step_close(&all[i].step);
    }
    start_must(rank_step_wire(&wire, start->tape, ranks, &error), &error);
    assert_int_equal(memory_links_sent(links), STEPS * wire.bytes);
    free(all);
    free(threads);
    memory_links_free(links);
}

static void check_model(enum model_kind kind, uint32_t groups, uint32_t group)
{
    struct machine_options options = {.isa = isa_best(), .thread_count = 1};
    struct model_options model;
    struct small_model small;
    struct machine *whole;
    struct start start;
    struct error error;

    error_init(&error);
    small_model_options(&model, kind);
    model.accumulate = groups * group;
    model.group = group;
    small_model_open(&small, &model);
    start_model(&start, &small);
    start_must(machine_open(&whole, start.tape, &options, &error), &error);
    start_must(start_give(whole, &start, &error), &error);
    start_steps(whole, &start, STEPS);
    for (uint32_t ranks = 2; ranks <= groups; ranks += ranks < 4 ? 1 : 3) {
        check_ranks(&start, &options, ranks, whole);
    }
    options.recompute = options.hoist = true;
    check_ranks(&start, &options, 3, whole);
    whole->backend->close(whole);
    start_release(&start);
    small_model_close(&small);
}

static void test_every_model_is_that_of_one_machine(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        check_model((enum model_kind)kind, 4, 1);
        check_model((enum model_kind)kind, 4, 3);
    }
}

static void test_seven_ranks_of_eight_groups(void **state)
{
    (void)state;
    check_model(MODEL_MLP, 8, 2);
    check_model(MODEL_LLAMA, 8, 1);
}

/* ---- refusals ---------------------------------------------------------------------------- */

static void check_refused(const struct tape *tape, uint32_t ranks, const char *text)
{
    const struct ranks_link link = {.rank = 0, .rank_count = ranks};
    const struct machine_options options = {.isa = isa_best(), .thread_count = 1};
    struct rank_step step;
    struct error error;

    error_init(&error);
    assert_int_equal(rank_step_open(&step, tape, &options, &link, &error), STATUS_REFUSED);
    if (strstr(error.text, text) == NULL) {
        fail_msg("'%s' does not say '%s'", error.text, text);
    }
}

static void test_a_job_without_groups_is_refused(void **state)
{
    struct model_options model;
    struct small_model small;

    (void)state;
    small_model_options(&model, MODEL_MLP);
    small_model_open(&small, &model);
    check_refused(small.model.tape, 2, "the job has no groups of micro-batches");
    small_model_close(&small);
    model.accumulate = 4;
    small_model_open(&small, &model);
    check_refused(small.model.tape, 2, "the job has no groups of micro-batches");
    small_model_close(&small);
    model.group = 2;
    small_model_open(&small, &model);
    check_refused(small.model.tape, 3, "2 groups of micro-batches, fewer than 3 ranks");
    small_model_close(&small);
}

/* A running mean that each micro-batch changes: no rank can know where another's begins. */
static void test_a_carry_that_is_no_sum_is_refused(void **state)
{
    static const uint64_t sizes[] = {4};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    struct tape *tape = NULL;
    uint32_t mean;
    uint32_t data;
    struct error error;

    (void)state;
    error_init(&error);
    mean = build_tensor(builder, "running", DTYPE_F32, ROLE_STATE, 1, sizes);
    data = build_tensor(builder, "data", DTYPE_F32, ROLE_DATA, 1, sizes);
    build_repeat(builder, 4, 1);
    const uint32_t next = build_add(builder, mean, data, 1);

    build_carry(builder, mean, next);
    build_repeat_end(builder);
    build_after(builder, mean, next);
    start_must(builder_finish(&tape, builder, &error), &error);
    builder_free(builder);
    check_refused(tape, 2, "'running', which is neither a sum nor a counter");
    tape_free(tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_model_is_that_of_one_machine),
        cmocka_unit_test(test_seven_ranks_of_eight_groups),
        cmocka_unit_test(test_a_job_without_groups_is_refused),
        cmocka_unit_test(test_a_carry_that_is_no_sum_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
