/*
 * Goal: ranks that check each other find a rank whose sums are wrong, name it and the one that
 * found it, and end the run before that step is noted; honest ranks never differ; only every K-th
 * step is checked; what could not be made again is refused before the first step.
 *
 * Method: each rank is a thread with the machine of all ranks, as the program has it; messages go
 * through memory. A planted fault flips one bit of one sum that a rank sends, in every step. What
 * is drawn in 600 steps is counted.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prover/ranks/ranks_cross.h"
#include "prover/ranks/ranks_machine.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/numeric/start.h"
#include "tests/support/ranks/memory_link.h"
#include "tests/support/test.h"

#define RANKS_MOST 4
#define GROUPS     8
#define STEPS      100 /* a fault hides from all of them once in 10^12 */
#define DRAWS      600
#define NONE       UINT32_MAX

struct one_rank {
    const struct start *start;
    const struct ranks_link *through;
    struct ranks_team team;
    struct ranks_machine_plan plan;
    uint32_t faulty; /* rank */
    uint32_t steps;  /* of rank 0: wanted, then made */
    enum status status;
    struct error error;
};

/* One bit of what a rank has made is another when it sends it. */
static enum status exchange(void *context, const struct ranks_transfer *transfers, uint32_t count,
                            struct error *error)
{
    struct one_rank *rank = context;

    for (uint32_t i = 0; i < count && rank->faulty == rank->team.link.rank; i++) {
        if (transfers[i].sends && transfers[i].tag == RANK_TAG_PARTS) {
            *(uint8_t *)transfers[i].bytes ^= 1;
            break;
        }
    }
    return rank->through->exchange(rank->through->context, transfers, count, error);
}

static enum status play(struct one_rank *rank, struct machine *machine)
{
    uint32_t wanted = rank->steps;

    TRY(start_give(machine, rank->start, &rank->error));
    if (rank->team.link.rank != 0) {
        return ranks_machine_follow(machine, &rank->error);
    }
    for (rank->steps = 0; rank->steps < wanted; rank->steps++) {
        TRY(machine->backend->step(machine, NULL, &rank->error));
    }
    return STATUS_OK;
}

static void *run_rank(void *context)
{
    struct one_rank *rank = context;
    struct machine_options options;
    struct machine *machine = NULL;

    rank->status =
        ranks_team_open(&rank->team, rank->through->rank, rank->through->rank_count, &rank->error);
    rank->team.link.exchange = exchange;
    rank->team.link.context = rank;
    rank->plan.team = &rank->team;
    options = ranks_machine_options(&rank->plan);
    if (rank->status == STATUS_OK) {
        rank->status = machine_open(&machine, rank->start->tape, &options, &rank->error);
    }
    if (rank->status == STATUS_OK) {
        rank->status = play(rank, machine);
        machine->backend->close(machine);
    }
    ranks_team_close(&rank->team);
    return NULL;
}

static void run_all(struct one_rank *all, const struct start *start, uint32_t ranks, uint64_t every,
                    uint32_t faulty, uint32_t steps)
{
    struct memory_links *links = memory_links_new(ranks);
    pthread_t threads[RANKS_MOST];

    for (uint32_t i = 0; i < ranks; i++) {
        all[i] = (struct one_rank){
            .start = start,
            .through = memory_links_of(links, i),
            .plan = {.cross_check = every, .own = {.isa = isa_best(), .thread_count = 1}},
            .faulty = faulty,
            .steps = steps};
        error_init(&all[i].error);
        assert_int_equal(pthread_create(&threads[i], NULL, run_rank, &all[i]), 0);
    }
    for (uint32_t i = 0; i < ranks; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    memory_links_free(links);
}

static void open_start(struct small_model *small, struct start *start, enum model_kind kind,
                       uint32_t groups)
{
    struct model_options model;

    small_model_options(&model, kind);
    model.accumulate = groups;
    model.group = 1;
    small_model_open(small, &model);
    start_model(start, small);
}

static void test_honest_ranks_never_differ(void **state)
{
    struct one_rank all[RANKS_MOST];
    struct small_model small;
    struct start start;

    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        open_start(&small, &start, (enum model_kind)kind, GROUPS);
        for (uint32_t ranks = 2; ranks <= RANKS_MOST; ranks++) {
            run_all(all, &start, ranks, 1, NONE, 12);
            for (uint32_t i = 0; i < ranks; i++) {
                start_must(all[i].status, &all[i].error);
            }
            assert_int_equal(all[0].steps, 12);
        }
        start_release(&start);
        small_model_close(&small);
    }
}

static void check_found(const struct one_rank *all, uint32_t ranks, uint32_t faulty)
{
    char wanted[32];

    assert_int_equal(all[0].status, STATUS_REFUSED);
    assert_true(all[0].steps < STEPS);
    (void)snprintf(wanted, sizeof(wanted), "rank %u (", faulty);
    if (strstr(all[0].error.text, wanted) == NULL ||
        strstr(all[0].error.text, "made other sums of the same micro-batches") == NULL) {
        fail_msg("'%s' does not name rank %u", all[0].error.text, faulty);
    }
    for (uint32_t i = 1; i < ranks; i++) { /* the others end in order */
        start_must(all[i].status, &all[i].error);
    }
}

/* A rank without a group makes those of others again, and has sums of its own to hide nothing in.
 * */
static void test_spare_ranks_check_too(void **state)
{
    struct one_rank all[RANKS_MOST];
    struct small_model small;
    struct start start;

    (void)state;
    open_start(&small, &start, MODEL_MLP, 2);
    run_all(all, &start, RANKS_MOST, 1, NONE, 12);
    for (uint32_t i = 0; i < RANKS_MOST; i++) {
        start_must(all[i].status, &all[i].error);
    }
    run_all(all, &start, RANKS_MOST, 1, 1, STEPS); /* rank 1 of 4 has the first group */
    check_found(all, RANKS_MOST, 1);
    start_release(&start);
    small_model_close(&small);
}

static void test_parts_too_small_are_refused(void **state)
{
    struct ranks_plan plan;
    struct error error;

    (void)state;
    error_init(&error);
    start_must(ranks_plan_build(&plan, 3, 2 * RANKS_MAX, &error), &error);
    assert_int_equal(ranks_cross_check(&plan, 0, &error), STATUS_OK);
    assert_int_equal(ranks_cross_check(&plan, 5, &error), STATUS_REFUSED);
    ranks_plan_release(&plan);
    error_init(&error);
    start_must(ranks_plan_build(&plan, 3, RANKS_MAX, &error), &error);
    assert_int_equal(ranks_cross_check(&plan, 5, &error), STATUS_OK);
    ranks_plan_release(&plan);
    start_must(ranks_plan_build(&plan, 4, 4 * RANKS_MAX, &error), &error);
    assert_int_equal(ranks_cross_check(&plan, 5, &error), STATUS_OK);
    ranks_plan_release(&plan);
}

static void test_a_faulty_rank_is_found_and_named(void **state)
{
    struct one_rank all[RANKS_MOST];
    struct small_model small;
    struct start start;

    (void)state;
    open_start(&small, &start, MODEL_MLP, GROUPS);
    for (uint32_t ranks = 2; ranks <= RANKS_MOST; ranks++) {
        for (uint32_t faulty = 0; faulty < ranks; faulty++) {
            run_all(all, &start, ranks, 1, faulty, STEPS);
            check_found(all, ranks, faulty);
        }
    }
    start_release(&start);
    small_model_close(&small);
}

static void test_other_steps_are_not_checked(void **state)
{
    struct one_rank all[RANKS_MOST];
    struct small_model small;
    struct start start;

    (void)state;
    open_start(&small, &start, MODEL_MLP, GROUPS);
    run_all(all, &start, 2, 7, 1, 6);
    start_must(all[0].status, &all[0].error);
    run_all(all, &start, 2, 0, 1, 20);
    start_must(all[0].status, &all[0].error);
    run_all(all, &start, 2, 2, 1, STEPS);
    assert_int_equal(all[0].status, STATUS_REFUSED);
    assert_int_equal(all[0].steps % 2, 1);
    start_release(&start);
    small_model_close(&small);
}

static void test_every_subtree_and_every_other_rank_are_drawn(void **state)
{
    uint32_t seen[GROUPS][RANKS_MOST] = {{0}};
    struct ranks_team team = {.step = 0};
    struct ranks_drawn drawn;
    struct ranks_plan plan;
    struct error error;

    (void)state;
    error_init(&error);
    start_must(ranks_plan_build(&plan, 3, GROUPS, &error), &error);
    for (team.step = 0; team.step < DRAWS; team.step++) {
        start_must(ranks_cross_draw(&drawn, &team, &plan, 3, &error), &error);
        assert_true(ranks_cross_is_sound(&drawn, &plan));
        assert_int_equal(drawn.subtree == RANKS_NOBODY, team.step % 3 != 2);
        if (drawn.subtree != RANKS_NOBODY) {
            seen[drawn.subtree][drawn.second]++;
        }
    }
    for (uint32_t i = 0; i < plan.subtree_count; i++) {
        for (uint32_t rank = 0; rank < 3; rank++) {
            assert_int_equal(seen[i][rank] > 0, rank != plan.subtrees[i].rank);
        }
    }
    drawn = (struct ranks_drawn){plan.subtree_count, 0};
    assert_false(ranks_cross_is_sound(&drawn, &plan));
    drawn = (struct ranks_drawn){0, plan.subtrees[0].rank};
    assert_false(ranks_cross_is_sound(&drawn, &plan));
    drawn = (struct ranks_drawn){0, 3};
    assert_false(ranks_cross_is_sound(&drawn, &plan));
    ranks_plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_honest_ranks_never_differ),
        cmocka_unit_test(test_spare_ranks_check_too),
        cmocka_unit_test(test_parts_too_small_are_refused),
        cmocka_unit_test(test_a_faulty_rank_is_found_and_named),
        cmocka_unit_test(test_other_steps_are_not_checked),
        cmocka_unit_test(test_every_subtree_and_every_other_rank_are_drawn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
