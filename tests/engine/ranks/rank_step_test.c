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
        const uint8_t *value = rank->start->values[id];
        struct rank_holding holding;

        rank_step_holding(&holding, &rank->step, id);
        if (value == NULL || holding.id == TENSOR_NONE) {
            continue;
        }
        value += holding.in_parts ? rank_step_first(&rank->step, id, rank->link->rank) : 0;
        TRY((tape->tensors[id].role == ROLE_DATA
                 ? machine->backend->bind
                 : machine->backend->write)(machine, holding.id, value, &rank->error));
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
    start_must(status, &rank->error); /* the others would wait for it */
    return NULL;
}

/* Compares what the rank has of the tensor with one machine's bytes; returns how many. */
static uint64_t compare_tensor(const struct one_rank *rank, struct machine *whole, uint32_t id)
{
    const uint8_t *wanted = whole->backend->peek(whole, id);
    uint64_t size = start_size(rank->start->tape, id);
    struct rank_holding holding;
    struct error error;
    void *own;

    error_init(&error);
    rank_step_holding(&holding, &rank->step, id);
    if (holding.in_parts) {
        const uint64_t first = rank_step_first(&rank->step, id, rank->link->rank);

        size = rank_step_first(&rank->step, id, rank->link->rank + 1) - first;
        wanted += first;
        assert_int_equal(holding.id == TENSOR_NONE, size == 0);
    }
    if (holding.id == TENSOR_NONE) {
        return 0;
    }
    own = malloc(size + 1);
    start_must(rank->step.machine->backend->read(rank->step.machine, holding.id, own, &error),
               &error);
    if (memcmp(own, wanted, size) != 0) {
        fail_msg("rank %u of %u differs in '%s'", rank->link->rank, rank->link->rank_count,
                 rank->start->tape->tensors[id].name);
    }
    free(own);
    return size;
}

/* Together the ranks have every byte of a state that lies in parts once, else each has all. */
static void compare_all(const struct one_rank *all, uint32_t ranks, struct machine *whole)
{
    const struct tape *tape = all->start->tape;

    for (uint32_t i = 0; i < ranks; i++) {
        start_must(all[i].status, &all[i].error);
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const uint32_t id = tape->states[i].before;
        struct rank_holding holding;
        uint64_t size = 0;

        rank_step_holding(&holding, &all->step, id);
        for (uint32_t rank = 0; rank < ranks; rank++) {
            size += compare_tensor(&all[rank], whole, id);
        }
        assert_int_equal(size, start_size(tape, id) * (holding.in_parts ? 1 : ranks));
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        const struct machine *own = all[rank].step.machine;

        assert_memory_equal(own->backend->peek(all[rank].step.machine, own->tape->loss),
                            whole->backend->peek(whole, tape->loss), sizeof(float));
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
    compare_all(all, ranks, whole);
    for (uint32_t i = 0; i < ranks; i++) {
        rank_step_close(&all[i].step);
    }
    start_must(rank_step_wire(&wire, start->tape, ranks, &error), &error);
    assert_int_equal(memory_links_sent(links), STEPS * wire.bytes);
    free(all);
    free(threads);
    memory_links_free(links);
}

static void check_model(const struct model_options *wanted, uint32_t groups, uint32_t group)
{
    struct machine_options options = {.isa = isa_best(), .thread_count = 1};
    struct model_options model = *wanted;
    struct small_model small;
    struct machine *whole;
    struct start start;
    struct error error;

    error_init(&error);
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
    check_ranks(&start, &options, groups + 2, whole); /* two are spare */
    options.recompute = true;
    check_ranks(&start, &options, 2, whole);
    options.hoist = true;
    check_ranks(&start, &options, 3, whole);
    whole->backend->close(whole);
    start_release(&start);
    small_model_close(&small);
}

static void check_kind(enum model_kind kind, uint32_t groups, uint32_t group)
{
    struct model_options model;

    small_model_options(&model, kind);
    check_model(&model, groups, group);
}

static void test_every_model_is_that_of_one_machine(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        check_kind((enum model_kind)kind, 4, 1);
        check_kind((enum model_kind)kind, 4, 3);
    }
}

static void test_seven_ranks_of_eight_groups(void **state)
{
    (void)state;
    check_kind(MODEL_MLP, 8, 2);
    check_kind(MODEL_LLAMA, 8, 1);
}

/* Matrices that are cut, in pieces of a row and a leaf. */
static void wide_options(struct model_options *options, enum optimizer optimizer)
{
    small_model_options(options, MODEL_GPT2);
    options->width = 128;
    options->layers = 1;
    options->batch = 1;
    options->length = 4;
    options->dropout = 0.0;
    options->optimizer = optimizer;
}

/* Behind the loops of two ranks stand sums of their groups, which are as large as what the loops
 * keep: nothing of a turn is made again there. */
static void test_what_a_loop_forgets_is_made_again_in_its_turn(void **state)
{
    struct model_options model;

    (void)state;
    wide_options(&model, OPTIMIZER_ADAMW);
    model.width = 32;
    model.heads = 1;
    check_model(&model, 8, 3); /* the plan would not take it */
    small_model_options(&model, MODEL_LLAMA);
    model.width = 24;
    model.heads = model.kv_heads = 4;
    model.layers = 2;
    model.length = 96;
    model.batch = 1;
    model.hidden = 64;
    model.vocabulary = 256;
    check_model(&model, 8, 3); /* bits would differ */
}

static void test_every_optimizer_is_that_of_one_machine(void **state)
{
    (void)state;
    for (int optimizer = 0; optimizer < OPTIMIZER_COUNT; optimizer++) {
        struct model_options model;

        wide_options(&model, (enum optimizer)optimizer);
        model.clip = optimizer % 2 == 0 ? 1.0 : 0.0;
        check_model(&model, 4, 1);
    }
}

static void test_held_out_batches_are_those_of_one_machine(void **state)
{
    struct model_options model;

    (void)state;
    wide_options(&model, OPTIMIZER_ADAMW);
    model.held_out = (struct held_out_options){.every = 2, .batches = 2};
    check_model(&model, 4, 1);
    small_model_options(&model, MODEL_MLP);
    model.held_out = (struct held_out_options){.every = 1, .batches = 1};
    check_model(&model, 4, 2);
}

/* ---- the plan --------------------------------------------------------------------------- */

/* The sums of squares of rows: what clipping gathers. */
static uint64_t rows_of(const struct model *model)
{
    uint64_t rows = 0;

    for (uint32_t i = 0; i < model->parameter_count; i++) {
        const struct tensor *tensor = &model->tape->tensors[model->parameters[i]];

        rows += tensor->count / tensor->dims[tensor->rank - 1];
    }
    return rows;
}

static uint64_t elements_of(const struct model *model)
{
    uint64_t elements = 0;

    for (uint32_t i = 0; i < model->parameter_count; i++) {
        elements += model->tape->tensors[model->parameters[i]].count;
    }
    return elements;
}

/* Of 2, 4, 8 ranks with a subtree each: 4 bytes of a parameter to its owner and 4 back, times
 * N - 1 of N, for N ranks; likewise the loss; and 4 bytes for a row that is clipped. */
static void test_bytes_on_the_wire_are_those_of_the_formula(void **state)
{
    (void)state;
    for (uint32_t ranks = 2; ranks <= 8; ranks *= 2) {
        for (int clips = 0; clips < 2; clips++) {
            struct model_options model;
            struct small_model small;
            struct rank_wire wire;
            struct error error;

            error_init(&error);
            wide_options(&model, OPTIMIZER_ADAMW);
            model.clip = clips ? 1.0 : 0.0;
            model.accumulate = 8;
            model.group = 1;
            small_model_open(&small, &model);
            start_must(rank_step_wire(&wire, small.model.tape, ranks, &error), &error);
            assert_int_equal(wire.subtrees, ranks);
            assert_int_equal(wire.elements, elements_of(&small.model) + 1);
            assert_int_equal(wire.bytes, (ranks - 1) * (8 * (elements_of(&small.model) + 1) +
                                                        (clips ? 4 * rows_of(&small.model) : 0)));
            assert_int_equal(wire.cut, 8 * elements_of(&small.model)); /* both moments */
            small_model_close(&small);
        }
    }
}

/* The share of each rank of the moments is about the Nth part. */
static void test_shards_are_cut_and_dealt(void **state)
{
    struct model_options model;
    struct small_model small;
    struct rank_places places;
    struct error error;
    uint64_t most = 0;
    uint64_t all = 0;

    (void)state;
    error_init(&error);
    wide_options(&model, OPTIMIZER_ADAMW);
    model.accumulate = 4;
    model.group = 1;
    small_model_open(&small, &model);
    start_must(rank_places_build(&places, small.model.tape, 3, &error), &error);
    for (uint32_t rank = 0; rank < 3; rank++) {
        uint64_t own = 0;

        for (uint32_t k = 0; k < places.sum_count; k++) {
            const uint32_t id = places.sums[k];
            const struct tensor *tensor = &small.model.tape->tensors[id];
            const uint64_t first = rank_places_first(&places, id, rank);

            own += rank_places_first(&places, id, rank + 1) - first;
            assert_int_equal(first % 256 == 0 || first == tensor->count, true);
            assert_int_equal(first % tensor->dims[tensor->rank - 1], 0);
        }
        most = own > most ? own : most;
        all += own;
    }
    assert_true(most * 3 < all + all / 10);
    rank_places_release(&places);
    small_model_close(&small);
}

static uint32_t count_products(const struct rank_places *places, enum rank_where where)
{
    uint32_t count = 0;

    for (uint32_t at = 0; at < places->whole->op_count; at++) {
        count += places->whole->ops[at].kind == OP_CONTRACT && places->ops[at].where == where;
    }
    return count;
}

/* Products behind the micro-batches, which take time, are made once: never on every rank. */
static void test_no_two_ranks_make_a_product(void **state)
{
    (void)state;
    for (int held_out = 0; held_out < 2; held_out++) {
        struct model_options model;
        struct small_model small;
        struct rank_places places;
        struct error error;

        error_init(&error);
        wide_options(&model, OPTIMIZER_MUON);
        model.clip = 1.0;
        model.accumulate = 4;
        model.group = 1;
        model.held_out = (struct held_out_options){.every = 2, .batches = (uint32_t)held_out};
        small_model_open(&small, &model);
        start_must(rank_places_build(&places, small.model.tape, 2, &error), &error);
        assert_int_equal(count_products(&places, RANK_ALL), 0);
        assert_true(count_products(&places, RANK_ONE) > 12); /* Muon's five steps of 4 matrices */
        assert_true(count_products(&places, RANK_CUT) > 0);  /* the embedding's rows, clipped */
        rank_places_release(&places);
        small_model_close(&small);
    }
}

/* ---- refusals --------------------------------------------------------------------------- */

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
        cmocka_unit_test(test_what_a_loop_forgets_is_made_again_in_its_turn),
        cmocka_unit_test(test_every_optimizer_is_that_of_one_machine),
        cmocka_unit_test(test_held_out_batches_are_those_of_one_machine),
        cmocka_unit_test(test_bytes_on_the_wire_are_those_of_the_formula),
        cmocka_unit_test(test_shards_are_cut_and_dealt),
        cmocka_unit_test(test_no_two_ranks_make_a_product),
        cmocka_unit_test(test_a_job_without_groups_is_refused),
        cmocka_unit_test(test_a_carry_that_is_no_sum_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
