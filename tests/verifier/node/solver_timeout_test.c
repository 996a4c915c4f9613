/*
 * Goal: where a solver makes its moves no more and money of ours waits for them, the node plans
 * them, in order, late enough that a living solver comes first, and no others.
 * Method: the ledger's events are told to a store as a test wants them, a clock is set, and what is
 * planned is looked at. That it is then sent and pays is solver_timeout_paid_test.c's.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "verifier/node/solver_timeout.h"

#define OK(call) assert_int_equal((call), STATUS_OK)

enum {
    COMMIT_S = 1000000,
    PERIOD_S = 1000,
    GRACE_S = 500,
    SPREAD_S = GRACE_S / 5,
    DEADLINE_S = COMMIT_S + 100000,
    DUE_S = COMMIT_S + 3 * PERIOD_S + GRACE_S + SPREAD_S + 1,   /* for every node */
    END_S = DEADLINE_S + 3 * PERIOD_S + GRACE_S + SPREAD_S + 1, /* likewise */
    PATIENT_S = COMMIT_S + 3 * PERIOD_S + GRACE_S,              /* for none */
    SEGMENTS = 70,
};

static const struct address own = {{1}};
static const struct address other = {{2}};
static const struct address solver = {{3}};
static const struct hash32 job = {{4}};

struct scene {
    struct node node;
    struct store store;
    struct verdict_db *verdicts;
    uint64_t number; /* of the last event */
};

static void scene_open(struct scene *scene, const char *name)
{
    char path[300];
    struct error error;

    error_init(&error);
    memset(scene, 0, sizeof(*scene));
    (void)snprintf(path, sizeof(path), "%.200s/%s.db", test_temp_dir(), name);
    OK(store_open(&scene->store, path, STORE_WRITE, &error));
    (void)snprintf(path, sizeof(path), "%.200s/%s.book", test_temp_dir(), name);
    OK(verdict_db_open(&scene->verdicts, path, &error));
    scene->node.ports.store = &scene->store;
    scene->node.ports.verdicts = scene->verdicts;
    scene->node.options.grace_s = GRACE_S;
}

static void scene_close(struct scene *scene)
{
    store_close(&scene->store);
    verdict_db_close(scene->verdicts);
}

/* ---- what the ledger tells ---------------------------------------------------------- */

static void tell(struct scene *scene, const struct game_event *event, uint64_t time_s)
{
    struct ledger_entry entry = {.kind = LEDGER_EVENT,
                                 .number = ++scene->number,
                                 .height = scene->number,
                                 .time_s = time_s,
                                 .event = *event};
    struct error error;

    error_init(&error);
    entry.event.job = job;
    OK(store_take(&scene->store, &entry, &own, &error));
}

static void tell_kind(struct scene *scene, enum game_event_kind kind, uint32_t index,
                      const struct address *account)
{
    tell(scene, &(struct game_event){.kind = kind, .index = index, .account = *account}, COMMIT_S);
}

static void commit(struct scene *scene, uint32_t count, uint32_t attestors, uint32_t coverage_ppm)
{
    struct game_event event = {.kind = GAME_OPENED};

    event.terms = (struct game_terms){.steps = SEGMENTS * 10,
                                      .segment_steps = 10,
                                      .segment_reward = 1,
                                      .attestors = attestors,
                                      .coverage_ppm = coverage_ppm,
                                      .segment_period_s = PERIOD_S,
                                      .attest_period_s = PERIOD_S,
                                      .reveal_period_s = PERIOD_S,
                                      .claim_period_s = PERIOD_S,
                                      .response_period_s = PERIOD_S,
                                      .deadline_s = DEADLINE_S};
    tell(scene, &event, COMMIT_S);
    tell_kind(scene, GAME_ACCEPTED, 0, &solver);
    for (uint32_t i = 0; i < count; i++) {
        event = (struct game_event){.kind = GAME_COMMITTED, .index = i};
        event.segment =
            (struct game_segment){.index = i, .steps = 10, .time_s = COMMIT_S, .solver = solver};
        event.segment.root.bytes[0] = (uint8_t)(i + 1);
        tell(scene, &event, COMMIT_S);
    }
}

static void attest(struct scene *scene, uint32_t index, const struct address *who)
{
    tell_kind(scene, GAME_ATTESTED, index, who);
    tell_kind(scene, GAME_REVEALED, index, who);
}

static void make_final(struct scene *scene, uint32_t index, uint64_t time_s)
{
    tell(scene, &(struct game_event){.kind = GAME_FINALIZED, .index = index}, time_s);
}

static void draw(struct scene *scene, uint32_t index, bool mandatory)
{
    tell(scene,
         &(struct game_event){.kind = GAME_DRAWN, .index = index, .seal = {{7}}, .flag = mandatory},
         COMMIT_S);
}

static void claim(struct scene *scene, uint32_t index, uint8_t key, uint64_t deadline_s)
{
    tell(scene,
         &(struct game_event){.kind = GAME_CLAIMED,
                              .claim = {{key}},
                              .index = index,
                              .account = other,
                              .time_s = deadline_s},
         COMMIT_S);
}

/* ---- what the node plans ------------------------------------------------------------- */

static void play_round(struct scene *scene, uint64_t now_s)
{
    struct error error;

    error_init(&error);
    scene->node.clock = (struct ledger_clock){.time_s = now_s, .height = scene->number + 2};
    OK(store_begin(&scene->store, &error));
    OK(store_end(&scene->store, solver_timeout_round(&scene->node, &error), &error));
}

static int64_t number_of(struct scene *scene, const char *query)
{
    int64_t number = 0;
    struct error error;

    error_init(&error);
    OK(database_number(&scene->store.sql, &number, 0, &error, query, ""));
    return number;
}

static int64_t planned(struct scene *scene, enum action_kind kind)
{
    char query[128];

    (void)snprintf(query, sizeof(query),
                   "SELECT count(*) FROM actions WHERE kind = %d AND state = 0", kind);
    return number_of(scene, query);
}

static int64_t planned_in_all(struct scene *scene)
{
    return number_of(scene, "SELECT count(*) FROM actions WHERE state = 0");
}

/* Exactly one move is planned, of this kind and about this segment. */
static void see_planned(struct scene *scene, enum action_kind kind, uint32_t index)
{
    char query[200];

    assert_int_equal(planned_in_all(scene), 1);
    assert_int_equal(planned(scene, kind), 1);
    (void)snprintf(query, sizeof(query),
                   "SELECT s.idx FROM actions a JOIN segments s ON s.hash = a.segment WHERE"
                   " a.state = 0 AND a.kind = %d",
                   kind);
    assert_int_equal(number_of(scene, query), index);
}

/* What became of the planned move. */
static void answer(struct scene *scene, enum action_state state)
{
    char query[128];
    struct error error;

    error_init(&error);
    (void)snprintf(query, sizeof(query), "UPDATE actions SET state = %d WHERE state = 0", state);
    OK(database_run(&scene->store.sql, &error, query, ""));
}

/* ---- tests --------------------------------------------------------------------------- */

static void test_nothing_is_planned_before_the_grace_is_over(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "grace");
    commit(&scene, 2, 1, GAME_PPM);
    attest(&scene, 0, &own);
    attest(&scene, 1, &own);
    play_round(&scene, PATIENT_S);
    assert_int_equal(planned_in_all(&scene), 0);
    play_round(&scene, DUE_S);
    see_planned(&scene, ACTION_FINALIZE, 0);
    scene_close(&scene);
}

/* Each node has another time, and has the same one whenever it is asked. */
static void test_nodes_are_spread_over_a_fifth_of_the_grace(void **state)
{
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;

    (void)state;
    for (int i = 0; i < 8; i++) {
        struct scene scene;
        char name[24];
        uint64_t now_s = PATIENT_S;

        (void)snprintf(name, sizeof(name), "place-%d", i);
        scene_open(&scene, name);
        commit(&scene, 1, 1, GAME_PPM);
        attest(&scene, 0, &own);
        while (planned_in_all(&scene) == 0) {
            assert_true(now_s <= DUE_S);
            play_round(&scene, now_s++);
        }
        first = now_s < first ? now_s : first;
        last = now_s > last ? now_s : last;
        scene_close(&scene);
    }
    /* Eight of a hundred seconds by secrets that the books have drawn: all of one would be one in
     * a hundred to the seventh. */
    assert_true(last > first);
}

static void test_segments_are_made_final_in_order(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "order");
    commit(&scene, 3, 1, GAME_PPM);
    attest(&scene, 0, &other);
    attest(&scene, 1, &own);
    attest(&scene, 2, &own);
    play_round(&scene, DUE_S);
    see_planned(&scene, ACTION_FINALIZE, 0);
    answer(&scene, ACTION_DONE);
    /* Done, but not told yet: nothing is planned twice. */
    play_round(&scene, DUE_S + 1000);
    assert_int_equal(planned_in_all(&scene), 0);
    make_final(&scene, 0, DUE_S + 1000);
    /* The others have their chance at the next as well. */
    play_round(&scene, DUE_S + 1000);
    assert_int_equal(planned_in_all(&scene), 0);
    play_round(&scene, DUE_S + 1001 + SPREAD_S);
    see_planned(&scene, ACTION_FINALIZE, 1);
    scene_close(&scene);
}

static void test_what_holds_none_of_our_money_is_left_alone(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "none");
    commit(&scene, 3, 1, GAME_PPM);
    for (uint32_t i = 0; i < 3; i++) {
        attest(&scene, i, &other);
    }
    play_round(&scene, END_S);
    assert_int_equal(planned_in_all(&scene), 0);
    scene_close(&scene);
}

/* Also what is behind the last of ours, and what was settled. */
static void test_nothing_behind_the_last_of_ours_is_made_final(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "behind");
    commit(&scene, 3, 1, GAME_PPM);
    attest(&scene, 0, &own);
    attest(&scene, 1, &other);
    make_final(&scene, 0, DUE_S);
    play_round(&scene, END_S);
    assert_int_equal(planned_in_all(&scene), 0);
    scene_close(&scene);
}

/* Too many strangers' segments before ours: the bond comes back when the job expires. */
static void test_ours_behind_too_many_others_waits_for_expiry(void **state)
{
    struct scene scene;

    (void)state;
    for (uint32_t ours = SOLVER_TIMEOUT_REACH; ours <= SOLVER_TIMEOUT_REACH + 1; ours++) {
        bool in_reach = ours <= SOLVER_TIMEOUT_REACH;

        scene_open(&scene, in_reach ? "near" : "far");
        commit(&scene, SEGMENTS, 1, GAME_PPM);
        for (uint32_t i = 0; i < SEGMENTS; i++) {
            attest(&scene, i, i == ours ? &own : &other);
        }
        play_round(&scene, DUE_S);
        if (in_reach) {
            see_planned(&scene, ACTION_FINALIZE, 0);
        } else {
            assert_int_equal(planned_in_all(&scene), 0);
            play_round(&scene, END_S);
            see_planned(&scene, ACTION_EXPIRE, 0);
        }
        scene_close(&scene);
    }
}

static void test_another_round_is_begun_for_an_uncovered_segment(void **state)
{
    struct scene scene;
    uint64_t now_s = DUE_S;

    (void)state;
    scene_open(&scene, "renew");
    commit(&scene, 2, 2, GAME_PPM);
    attest(&scene, 0, &own);
    for (int i = 0; i < SOLVER_TIMEOUT_RENEWALS; i++) {
        play_round(&scene, now_s);
        see_planned(&scene, ACTION_RENEW, 0);
        answer(&scene, ACTION_DONE);
        tell(&scene, &(struct game_event){.kind = GAME_RENEWED, .index = 0, .time_s = now_s},
             now_s);
        now_s += DUE_S - COMMIT_S;
    }
    /* Nobody came in any of them. */
    play_round(&scene, now_s);
    assert_int_equal(planned_in_all(&scene), 0);
    attest(&scene, 0, &other);
    play_round(&scene, now_s);
    see_planned(&scene, ACTION_FINALIZE, 0);
    scene_close(&scene);
}

static void test_a_job_expires_where_nothing_can_be_final(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "expire");
    commit(&scene, 2, 2, GAME_PPM);
    attest(&scene, 0, &own);
    play_round(&scene, DEADLINE_S + 1);
    assert_int_equal(planned_in_all(&scene), 0);
    play_round(&scene, END_S - SPREAD_S - 1);
    assert_int_equal(planned_in_all(&scene), 0);
    play_round(&scene, END_S);
    see_planned(&scene, ACTION_EXPIRE, 0);
    scene_close(&scene);
}

/* Expiry would take fee and reward: what can be final is made final, however late it is. */
static void test_a_job_does_not_expire_where_something_can_be_final(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "late");
    commit(&scene, 2, 1, GAME_PPM);
    attest(&scene, 0, &other);
    attest(&scene, 1, &own);
    play_round(&scene, END_S);
    see_planned(&scene, ACTION_FINALIZE, 0);
    scene_close(&scene);
}

/* It is lost to the solver when the segment is final, and comes back when the job expires. */
static void test_a_seal_that_was_not_revealed_waits_for_expiry(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "sealed");
    commit(&scene, 1, 1, 0);
    tell_kind(&scene, GAME_ATTESTED, 0, &own);
    play_round(&scene, DUE_S);
    assert_int_equal(planned_in_all(&scene), 0);
    play_round(&scene, END_S);
    see_planned(&scene, ACTION_EXPIRE, 0);
    scene_close(&scene);
}

static void test_what_may_have_to_be_covered_is_drawn_first(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "draw");
    commit(&scene, 2, 2, GAME_PPM / 2);
    attest(&scene, 0, &own);
    attest(&scene, 1, &own);
    play_round(&scene, DUE_S);
    see_planned(&scene, ACTION_DRAW, 0);
    answer(&scene, ACTION_DONE);
    draw(&scene, 0, false);
    draw(&scene, 1, true);
    play_round(&scene, DUE_S);
    see_planned(&scene, ACTION_FINALIZE, 0);
    answer(&scene, ACTION_DONE);
    make_final(&scene, 0, DUE_S);
    play_round(&scene, DUE_S + SPREAD_S + 1);
    see_planned(&scene, ACTION_RENEW, 1);
    scene_close(&scene);
}

static void test_a_claim_that_nobody_ends_is_ended(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "claim");
    commit(&scene, 2, 1, GAME_PPM);
    attest(&scene, 0, &own);
    attest(&scene, 1, &own);
    claim(&scene, 0, 50, DUE_S);
    claim(&scene, 1, 51, DUE_S); /* which holds nothing up yet */
    play_round(&scene, DUE_S + GRACE_S);
    assert_int_equal(planned_in_all(&scene), 0);
    play_round(&scene, DUE_S + GRACE_S + SPREAD_S + 1);
    assert_int_equal(planned_in_all(&scene), 1);
    assert_int_equal(number_of(&scene, "SELECT count(*) FROM actions WHERE kind = 6 AND"
                                       " hex(substr(claim, 1, 1)) = '32'"),
                     1);
    answer(&scene, ACTION_DONE);
    tell(&scene, &(struct game_event){.kind = GAME_RULED, .claim = {{50}}}, DUE_S);
    play_round(&scene, DUE_S + GRACE_S + SPREAD_S + 1);
    see_planned(&scene, ACTION_FINALIZE, 0);
    scene_close(&scene);
}

/* Our own that we have lost, as the claimant and as who is accused: who won may be gone. */
static void test_a_claim_that_we_have_lost_is_ended_too(void **state)
{
    struct game_event event = {.claim = {{50}}, .time_s = DUE_S};

    (void)state;
    for (int accused = 0; accused < 2; accused++) {
        struct scene scene;

        scene_open(&scene, accused ? "accused" : "lost");
        commit(&scene, 2, 1, GAME_PPM);
        attest(&scene, 0, &own);
        attest(&scene, 1, &own);
        event.kind = accused ? GAME_ACCUSED : GAME_CLAIMED;
        event.account = accused ? other : own;
        event.other = accused ? own : solver;
        tell(&scene, &event, COMMIT_S);
        event.kind = accused ? GAME_TURN_PASSED : GAME_ANSWERED;
        event.turn = GAME_TURN_ACCUSED;
        tell(&scene, &event, COMMIT_S);
        assert_int_equal(number_of(&scene, "SELECT count(*) FROM claims"), 1);
        play_round(&scene, DUE_S + GRACE_S);
        assert_int_equal(planned_in_all(&scene), 0); /* who has won comes first */
        play_round(&scene, DUE_S + GRACE_S + SPREAD_S + 1);
        assert_int_equal(planned_in_all(&scene), 1);
        assert_int_equal(planned(&scene, ACTION_TIMEOUT), 1);
        scene_close(&scene);
    }
}

/* A turn that goes on is not over. */
static void test_a_claim_that_goes_on_is_left_alone(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "turns");
    commit(&scene, 1, 1, GAME_PPM);
    attest(&scene, 0, &own);
    claim(&scene, 0, 50, DUE_S);
    tell(&scene,
         &(struct game_event){.kind = GAME_ANSWERED, .claim = {{50}}, .time_s = DUE_S + 10000},
         DUE_S);
    play_round(&scene, DUE_S + 10000);
    assert_int_equal(planned_in_all(&scene), 0);
    scene_close(&scene);
}

static void test_before_a_job_expires_all_its_claims_are_ended(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "claims");
    commit(&scene, 2, 2, GAME_PPM);
    attest(&scene, 0, &own);
    claim(&scene, 1, 51, DUE_S);
    play_round(&scene, DUE_S + GRACE_S + SPREAD_S + 1);
    assert_int_equal(planned(&scene, ACTION_TIMEOUT), 0);
    answer(&scene, ACTION_DONE); /* a round that was begun */
    play_round(&scene, END_S);
    assert_int_equal(planned(&scene, ACTION_TIMEOUT), 1);
    assert_int_equal(planned(&scene, ACTION_EXPIRE), 0);
    answer(&scene, ACTION_DONE);
    tell(&scene, &(struct game_event){.kind = GAME_RULED, .claim = {{51}}}, END_S);
    play_round(&scene, END_S);
    see_planned(&scene, ACTION_EXPIRE, 0);
    scene_close(&scene);
}

/* Of an attestor that another claim has convicted nothing is left to be accused of. */
static void test_a_claim_whose_accused_is_gone_is_lapsed(void **state)
{
    struct game_event event = {.kind = GAME_ACCUSED, .account = {{8}}, .time_s = DUE_S};
    struct scene scene;

    (void)state;
    scene_open(&scene, "lapse");
    commit(&scene, 1, 2, 0);
    attest(&scene, 0, &own);
    attest(&scene, 0, &other);
    event.other = other;
    event.claim = (struct hash32){{60}};
    tell(&scene, &event, COMMIT_S);
    event.claim = (struct hash32){{61}};
    tell(&scene, &event, COMMIT_S);
    tell(&scene, &(struct game_event){.kind = GAME_RULED, .claim = {{60}}, .flag = true}, COMMIT_S);
    play_round(&scene, DUE_S + GRACE_S + SPREAD_S + 1);
    assert_int_equal(planned_in_all(&scene), 1);
    assert_int_equal(planned(&scene, ACTION_LAPSE), 1);
    scene_close(&scene);
}

/* Somebody else was first, or a reorganization took the segment away: it is not sent any more. */
static void test_what_is_not_wanted_any_more_is_forgotten(void **state)
{
    struct ledger_entry rewind = {.kind = LEDGER_REWIND};
    struct scene scene;
    struct error error;

    (void)state;
    error_init(&error);
    scene_open(&scene, "forgotten");
    commit(&scene, 2, 1, GAME_PPM);
    attest(&scene, 0, &own);
    play_round(&scene, DUE_S);
    see_planned(&scene, ACTION_FINALIZE, 0);
    make_final(&scene, 0, DUE_S);
    play_round(&scene, DUE_S);
    assert_int_equal(planned_in_all(&scene), 0);
    /* The block in which it was final is gone, with all that the store knew. */
    rewind.number = ++scene.number;
    OK(store_take(&scene.store, &rewind, &own, &error));
    play_round(&scene, DUE_S);
    assert_int_equal(planned_in_all(&scene), 0);
    commit(&scene, 2, 1, GAME_PPM);
    attest(&scene, 0, &own);
    play_round(&scene, DUE_S);
    see_planned(&scene, ACTION_FINALIZE, 0);
    scene_close(&scene);
}

static void test_who_comes_second_is_overtaken_and_tries_again_where_it_is_needed(void **state)
{
    static const enum game_refusal_kind normal[] = {
        GAME_WRONG_INDEX, GAME_WRONG_PHASE, GAME_WRONG_SEGMENT, GAME_NOT_NEEDED, GAME_TOO_EARLY};
    struct scene scene;
    uint64_t due_s = 0;

    (void)state;
    scene_open(&scene, "second");
    scene.node.clock.time_s = 77;
    for (size_t i = 0; i < sizeof(normal) / sizeof(normal[0]); i++) {
        assert_int_equal(solver_timeout_refused(&due_s, &scene.node, normal[i]), ACTION_OVERTAKEN);
        assert_int_equal(due_s, 77);
    }
    assert_int_equal(solver_timeout_refused(&due_s, &scene.node, GAME_CLAIMS_OPEN), ACTION_REFUSED);
    assert_int_equal(solver_timeout_refused(&due_s, &scene.node, GAME_REFUSED_NOT), ACTION_REFUSED);
    commit(&scene, 1, 1, GAME_PPM);
    attest(&scene, 0, &own);
    play_round(&scene, DUE_S);
    answer(&scene, ACTION_OVERTAKEN);
    play_round(&scene, DUE_S + 30);
    assert_int_equal(planned_in_all(&scene), 0);
    /* A reorganization took it back: nobody has made it after all. */
    play_round(&scene, DUE_S + 120);
    see_planned(&scene, ACTION_FINALIZE, 0);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_planned_before_the_grace_is_over),
        cmocka_unit_test(test_nodes_are_spread_over_a_fifth_of_the_grace),
        cmocka_unit_test(test_segments_are_made_final_in_order),
        cmocka_unit_test(test_what_holds_none_of_our_money_is_left_alone),
        cmocka_unit_test(test_nothing_behind_the_last_of_ours_is_made_final),
        cmocka_unit_test(test_ours_behind_too_many_others_waits_for_expiry),
        cmocka_unit_test(test_another_round_is_begun_for_an_uncovered_segment),
        cmocka_unit_test(test_a_job_expires_where_nothing_can_be_final),
        cmocka_unit_test(test_a_job_does_not_expire_where_something_can_be_final),
        cmocka_unit_test(test_a_seal_that_was_not_revealed_waits_for_expiry),
        cmocka_unit_test(test_what_may_have_to_be_covered_is_drawn_first),
        cmocka_unit_test(test_a_claim_that_nobody_ends_is_ended),
        cmocka_unit_test(test_a_claim_that_we_have_lost_is_ended_too),
        cmocka_unit_test(test_a_claim_that_goes_on_is_left_alone),
        cmocka_unit_test(test_before_a_job_expires_all_its_claims_are_ended),
        cmocka_unit_test(test_a_claim_whose_accused_is_gone_is_lapsed),
        cmocka_unit_test(test_what_is_not_wanted_any_more_is_forgotten),
        cmocka_unit_test(test_who_comes_second_is_overtaken_and_tries_again_where_it_is_needed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
