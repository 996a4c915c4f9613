/*
 * Goal: where a solver makes its moves no more and money of ours waits for them, the node plans
 * them, in order, late enough that a living solver comes first, and no others.
 * Method: the ledger's events are told to a store as a test wants them, a clock is set, and what is
 * planned is looked at. That it is then sent and pays is solver_timeout_paid_test.c's.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "verifier/node/node_seats.h"
#include "verifier/node/solver_timeout.h"

#define OK(call) assert_int_equal((call), STATUS_OK)

enum {
    COMMIT_S = 1000000,
    PERIOD_S = 1000,
    GRACE_S = 500,
    SPREAD_S = GRACE_S / 5,
    DEADLINE_S = COMMIT_S + 100000,
    CLAIM_END_S = COMMIT_S + 3 * PERIOD_S,
    REVEAL_END_S = COMMIT_S + 2 * PERIOD_S,
    LATER_S = GRACE_S + SPREAD_S + 1, /* for every node */
    SEGMENTS = 5,
};

static const struct address own = {{1}};
static const struct address other = {{2}};
static const struct address solver = {{3}};
static const struct address keeper = {{5}};
static const struct hash32 job = {{4}};

struct scene {
    struct node node;
    struct store store;
    struct verdict_db *verdicts;
    uint64_t number;    /* of the last event */
    uint16_t seats;     /* that must find a segment right */
    struct hash32 draw; /* of its first round */
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
    scene->seats = 1;
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

/* A job with two entries in its panel, one of them ours, and drawn segments. */
static void commit(struct scene *scene, uint32_t count)
{
    struct game_event event = {.kind = GAME_OPENED};

    event.terms = (struct game_terms){.steps = SEGMENTS * 10,
                                      .segment_steps = 10,
                                      .reward = 1,
                                      .keeper = keeper,
                                      .seats = scene->seats,
                                      .coverage_ppm = GAME_PPM,
                                      .segment_period_s = PERIOD_S,
                                      .seal_period_s = PERIOD_S,
                                      .reveal_period_s = PERIOD_S,
                                      .claim_period_s = PERIOD_S,
                                      .clock_s = PERIOD_S,
                                      .deadline_s = DEADLINE_S};
    tell(scene, &event, COMMIT_S);
    tell(scene, &(struct game_event){.kind = GAME_ENLISTED, .account = own, .count = 1}, COMMIT_S);
    tell(scene,
         &(struct game_event){.kind = GAME_ENLISTED, .account = other, .entry = 1, .count = 1},
         COMMIT_S);
    tell(scene,
         &(struct game_event){
             .kind = GAME_ACCEPTED, .account = solver, .time_s = COMMIT_S + PERIOD_S},
         COMMIT_S);
    for (uint32_t i = 0; i < count; i++) {
        static const struct digest states[10];

        event = (struct game_event){.kind = GAME_COMMITTED, .states = {states, 10}};
        event.segment = (struct game_segment){
            .index = i, .steps = 10, .time_s = COMMIT_S, .solver = solver, .panel = 2};
        event.segment.root.bytes[0] = (uint8_t)(i + 1);
        tell(scene, &event, COMMIT_S);
        tell(scene,
             &(struct game_event){.kind = GAME_DRAWN, .index = i, .seal = {{7}}, .flag = true},
             COMMIT_S);
        tell(scene,
             &(struct game_event){
                 .kind = GAME_ROUND, .index = i, .seal = scene->draw, .to = 1, .time_s = COMMIT_S},
             COMMIT_S);
    }
}

static void reveal(struct scene *scene, uint32_t index, enum game_verdict verdict)
{
    tell(scene, &(struct game_event){.kind = GAME_REVEALED, .index = index, .verdict = verdict},
         REVEAL_END_S);
}

static void make_final(struct scene *scene, uint32_t index, uint64_t time_s)
{
    tell(scene, &(struct game_event){.kind = GAME_FINALIZED, .index = index, .count = 1}, time_s);
}

static void claim(struct scene *scene, uint32_t index, uint8_t key, uint64_t deadline_s)
{
    tell(scene,
         &(struct game_event){
             .kind = GAME_CLAIMED, .claim = {{key}}, .index = index, .account = other},
         COMMIT_S);
    tell(scene,
         &(struct game_event){.kind = GAME_TURN_PASSED,
                              .claim = {{key}},
                              .phase = GAME_CLAIM_CALLED,
                              .turn = GAME_TURN_ACCUSED,
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

static void test_the_first_leg_is_settled_after_the_grace(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "final");
    commit(&scene, 3);
    for (uint32_t i = 0; i < 3; i++) {
        reveal(&scene, i, GAME_VERDICT_RIGHT);
    }
    play_round(&scene, CLAIM_END_S + GRACE_S);
    assert_int_equal(planned_in_all(&scene), 0);
    play_round(&scene, CLAIM_END_S + LATER_S);
    see_planned(&scene, ACTION_SETTLE, 0);
    play_round(&scene, CLAIM_END_S + LATER_S);
    see_planned(&scene, ACTION_SETTLE, 0);
    answer(&scene, ACTION_DONE);
    /* The next has waited for the one before, and the grace begins with it. */
    make_final(&scene, 0, CLAIM_END_S + LATER_S);
    play_round(&scene, CLAIM_END_S + LATER_S + GRACE_S);
    assert_int_equal(planned_in_all(&scene), 0);
    play_round(&scene, CLAIM_END_S + 2 * LATER_S);
    see_planned(&scene, ACTION_SETTLE, 1);
    scene_close(&scene);
}

/* A solver that comes back makes the planned move: it is forgotten. */
static void test_what_is_final_meanwhile_is_forgotten(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "meanwhile");
    commit(&scene, 1);
    reveal(&scene, 0, GAME_VERDICT_RIGHT);
    play_round(&scene, CLAIM_END_S + LATER_S);
    see_planned(&scene, ACTION_SETTLE, 0);
    make_final(&scene, 0, CLAIM_END_S + LATER_S);
    play_round(&scene, CLAIM_END_S + LATER_S + 1);
    assert_int_equal(planned(&scene, ACTION_SETTLE), 0);
    scene_close(&scene);
}

/* Nobody said anything of segment 0, and both of the panel are drawn for it. */
static void no_round_is_left(struct scene *scene)
{
    tell(scene,
         &(struct game_event){.kind = GAME_ROUND,
                              .index = 0,
                              .round = 1,
                              .from = 1,
                              .to = GAME_PLACES_MAX,
                              .time_s = REVEAL_END_S + LATER_S},
         REVEAL_END_S + LATER_S);
}

/* What a node settles is a move of its own for each round, and for its end: where nobody came, that
 * is four claim times later. */
static void test_rounds_are_opened_and_the_end_is_settled(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "rounds");
    commit(&scene, 2);
    reveal(&scene, 1, GAME_VERDICT_RIGHT);
    play_round(&scene, REVEAL_END_S + GRACE_S);
    assert_int_equal(planned_in_all(&scene), 0);
    play_round(&scene, REVEAL_END_S + LATER_S);
    see_planned(&scene, ACTION_SETTLE, 0);
    answer(&scene, ACTION_DONE);
    no_round_is_left(&scene);
    play_round(&scene, REVEAL_END_S + LATER_S + 6 * PERIOD_S);
    assert_int_equal(planned_in_all(&scene), 0);
    play_round(&scene, REVEAL_END_S + 2 * LATER_S + 6 * PERIOD_S);
    see_planned(&scene, ACTION_SETTLE, 0);
    scene_close(&scene);
}

static void look_at_seats(struct scene *scene, uint64_t now_s, uint64_t height)
{
    struct error error;

    error_init(&error);
    scene->node.clock = (struct ledger_clock){.time_s = now_s, .height = height, .seed_delay = 16};
    OK(store_begin(&scene->store, &error));
    OK(store_end(&scene->store, node_seats_round(&scene->node, &error), &error));
}

/* The solver is gone: a round that somebody closed is drawn by the panel, when the block of its
 * seed is there. Who is first makes the draws of the others needless. */
static void test_a_closed_round_is_drawn_by_the_panel(void **state)
{
    const uint64_t height = 500;
    struct scene scene;

    (void)state;
    scene_open(&scene, "again");
    commit(&scene, 1);
    for (uint32_t round = 1; round < 3; round++) {
        const uint64_t over_s = round * (REVEAL_END_S + LATER_S);

        look_at_seats(&scene, over_s, height + 100);
        assert_int_equal(planned(&scene, ACTION_DRAW), 0);
        tell(&scene,
             &(struct game_event){
                 .kind = GAME_ROUND_OVER, .index = 0, .height = height, .time_s = over_s},
             over_s);
        look_at_seats(&scene, over_s, height + 15);
        assert_int_equal(planned(&scene, ACTION_DRAW), 0);
        look_at_seats(&scene, over_s, height + 16);
        look_at_seats(&scene, over_s, height + 17);
        assert_int_equal(planned(&scene, ACTION_DRAW), 1);
        play_round(&scene, over_s + LATER_S);
        assert_int_equal(planned(&scene, ACTION_SETTLE), 0);
        tell(&scene,
             &(struct game_event){.kind = GAME_ROUND,
                                  .index = 0,
                                  .round = round,
                                  .from = round,
                                  .to = round + 1,
                                  .time_s = over_s},
             over_s);
        look_at_seats(&scene, over_s, height + 18);
        assert_int_equal(planned(&scene, ACTION_DRAW), 0);
    }
    scene_close(&scene);
}

/* Its own right is worth a fee, which another round brings nearer: no grace is given. */
static void test_a_round_is_hurried_where_we_have_a_right(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "hurry");
    scene.seats = 2;
    while (game_place_entry(&scene.draw, 0, 2) != 0) { /* ours is the first entry */
        scene.draw.bytes[0]++;
    }
    commit(&scene, 1);
    assert_int_equal(number_of(&scene, "SELECT count(*) FROM seats WHERE ours = 1"), 1);
    reveal(&scene, 0, GAME_VERDICT_RIGHT);
    play_round(&scene, REVEAL_END_S + PERIOD_S / 5 + 1);
    see_planned(&scene, ACTION_SETTLE, 0);
    scene_close(&scene);
}

/* Client or keeper refused, and the keeper's word is there: it is brought at once. */
static void test_a_vouch_is_brought_to_a_refused_job(void **state)
{
    uint8_t bytes[VOUCH_SIZE] = {0};
    struct scene scene;
    struct store_segment segment;
    struct vouch vouch;
    struct error error;

    (void)state;
    error_init(&error);
    scene_open(&scene, "vouch");
    commit(&scene, 1);
    tell(&scene,
         &(struct game_event){
             .kind = GAME_REFUSED, .account = keeper, .time_s = COMMIT_S + 3 * PERIOD_S},
         COMMIT_S);
    play_round(&scene, COMMIT_S + 1);
    assert_int_equal(planned_in_all(&scene), 0);
    OK(store_segment(&scene.store, &segment, &job, 0, &error));
    memcpy(bytes, segment.hash.bytes, HASH32_SIZE);
    tell(&scene,
         &(struct game_event){
             .kind = GAME_ANNOUNCED, .account = other, .contact = {bytes, sizeof(bytes)}},
         COMMIT_S);
    play_round(&scene, COMMIT_S + 1); /* others announce what they like */
    assert_int_equal(planned_in_all(&scene), 0);
    bytes[VOUCH_SIZE - 1] = 27;
    tell(&scene,
         &(struct game_event){
             .kind = GAME_ANNOUNCED, .account = keeper, .contact = {bytes, sizeof(bytes)}},
         COMMIT_S);
    OK(store_vouch(&scene.store, &vouch, &segment.hash, &error));
    assert_int_equal(vouch.size, GAME_VOUCH_SIZE);
    assert_int_equal(vouch.signature[GAME_VOUCH_SIZE - 1], 27);
    tell(&scene, /* of a keeper that is a contract */
         &(struct game_event){
             .kind = GAME_ANNOUNCED, .account = keeper, .contact = {bytes, HASH32_SIZE + 1}},
         COMMIT_S);
    OK(store_vouch(&scene.store, &vouch, &segment.hash, &error));
    assert_int_equal(vouch.size, 1);
    play_round(&scene, COMMIT_S + PERIOD_S);
    see_planned(&scene, ACTION_SETTLE, 0);
    scene_close(&scene);
}

/* A refusal that nobody's vouch lifts: when claims have had their time, settle makes it void. */
static void test_what_was_refused_is_settled_when_claims_have_had_their_time(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "refused");
    commit(&scene, 1);
    reveal(&scene, 0, GAME_VERDICT_RIGHT);
    tell(&scene,
         &(struct game_event){
             .kind = GAME_REFUSED, .account = keeper, .time_s = CLAIM_END_S + PERIOD_S},
         COMMIT_S);
    play_round(&scene, CLAIM_END_S + LATER_S);
    assert_int_equal(planned_in_all(&scene), 0);
    play_round(&scene, CLAIM_END_S + PERIOD_S + LATER_S);
    see_planned(&scene, ACTION_SETTLE, 0);
    scene_close(&scene);
}

static void test_claims_that_nobody_ends_are_ended(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "claims");
    commit(&scene, 1);
    reveal(&scene, 0, GAME_VERDICT_RIGHT);
    claim(&scene, 0, 9, CLAIM_END_S + 200);
    play_round(&scene, CLAIM_END_S + LATER_S);
    assert_int_equal(planned_in_all(&scene), 0); /* the claim holds it up */
    play_round(&scene, CLAIM_END_S + 200 + LATER_S);
    assert_int_equal(planned(&scene, ACTION_TIMEOUT), 1);
    assert_int_equal(planned_in_all(&scene), 1);
    scene_close(&scene);
}

/* A solver that commits no more would hold our bonds for ever. */
static void test_a_late_solver_is_released_when_nothing_is_left(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "release");
    commit(&scene, 1);
    reveal(&scene, 0, GAME_VERDICT_RIGHT);
    play_round(&scene, CLAIM_END_S + LATER_S);
    see_planned(&scene, ACTION_SETTLE, 0); /* what was committed in time comes first */
    make_final(&scene, 0, CLAIM_END_S);
    play_round(&scene, COMMIT_S + PERIOD_S + GRACE_S);
    assert_int_equal(planned(&scene, ACTION_RELEASE), 0);
    play_round(&scene, COMMIT_S + PERIOD_S + LATER_S);
    assert_int_equal(planned(&scene, ACTION_RELEASE), 1);
    scene_close(&scene);
}

/* Nothing of ours waits: others pay the gas. */
static void test_a_job_without_our_money_is_left_alone(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "others");
    commit(&scene, 1);
    reveal(&scene, 0, GAME_VERDICT_RIGHT);
    tell(&scene, &(struct game_event){.kind = GAME_GONE, .entry = 0, .account = own}, COMMIT_S);
    play_round(&scene, CLAIM_END_S + LATER_S);
    play_round(&scene, DEADLINE_S + LATER_S);
    assert_int_equal(planned_in_all(&scene), 0);
    scene_close(&scene);
}

static void test_refusals_of_anybodys_moves(void **state)
{
    static const enum game_refusal_kind overtaken[] = {
        GAME_WRONG_INDEX, GAME_WRONG_PHASE,   GAME_WRONG_SEGMENT, GAME_NOT_NEEDED,
        GAME_TOO_EARLY,   GAME_ALREADY_DRAWN, GAME_ENGAGED,       GAME_STANDS_REFUSED};
    struct scene scene;
    uint64_t due_s;

    (void)state;
    scene_open(&scene, "refusals");
    for (size_t i = 0; i < sizeof(overtaken) / sizeof(overtaken[0]); i++) {
        assert_int_equal(solver_timeout_refused(&due_s, &scene.node, overtaken[i]),
                         ACTION_OVERTAKEN);
    }
    assert_int_equal(solver_timeout_refused(&due_s, &scene.node, GAME_REFUSED_NOT), ACTION_REFUSED);
    assert_true(solver_timeout_is_anybodys(ACTION_SETTLE));
    assert_true(solver_timeout_is_anybodys(ACTION_PAY));
    assert_false(solver_timeout_is_anybodys(ACTION_SEAL));
    assert_false(solver_timeout_is_anybodys(ACTION_WITHDRAW));
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_leg_is_settled_after_the_grace),
        cmocka_unit_test(test_what_is_final_meanwhile_is_forgotten),
        cmocka_unit_test(test_rounds_are_opened_and_the_end_is_settled),
        cmocka_unit_test(test_a_closed_round_is_drawn_by_the_panel),
        cmocka_unit_test(test_a_round_is_hurried_where_we_have_a_right),
        cmocka_unit_test(test_a_vouch_is_brought_to_a_refused_job),
        cmocka_unit_test(test_what_was_refused_is_settled_when_claims_have_had_their_time),
        cmocka_unit_test(test_claims_that_nobody_ends_are_ended),
        cmocka_unit_test(test_a_late_solver_is_released_when_nothing_is_left),
        cmocka_unit_test(test_a_job_without_our_money_is_left_alone),
        cmocka_unit_test(test_refusals_of_anybodys_moves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
