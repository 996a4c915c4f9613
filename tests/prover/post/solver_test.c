/*
 * Goal: a solver makes each of its moves once, and no other move. Method: rounds on an embedded
 * ledger with a clock of the test's, against a client that refuses, a keeper that vouches, and
 * verifiers that say right, see nothing, keep silent, claim and convict. One test replaces the
 * solver before every round, as a crash would. Money is counted to the wei.
 */
#include "tests/support/chain/standing_segment.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "chain/game/terms.h"
#include "chain/job/vouch_box.h"
#include "chain/local/ledger_local.h"
#include "prover/post/solver.h"
#include "tests/support/game/anvil.h"
#include "tests/support/game/made_states.h"
#include "tests/support/numeric/small_job.h"

enum {
    CLIENT = 0,
    SOLVER = 1,
    VERIFIER = 2,
    SECOND = 3,
    PLAYERS = 4,
    SEGMENTS = 3,
    STEPS = 5,
    SEAL_S = 100,
    REVEAL_S = 50,
    CLAIM_S = 200,
    CLOCK_S = 60,
    SEGMENT_S = 1000,
    DEADLINE_S = 100000,
};

/* Of the terms that set_up() makes. */
static uint32_t segments = SEGMENTS;
static uint32_t segment_s = SEGMENT_S;
static struct address keeper;

struct world {
    struct ledger_options options;
    struct signer *signers[PLAYERS];
    struct ledger *ledgers[PLAYERS];
    wei before[PLAYERS];
    char url[600];
    char vouches[600];
    uint64_t now_s;
    struct game_terms terms;
    uint8_t header[GAME_JOB_HEADER_SIZE];
    struct hash32 job;
    uint32_t moves;
    struct solver *solver;
    struct solver_options solver_options;
};

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

static wei money(struct world *world, int player)
{
    struct error error;
    wei purse;
    wei owed;

    error_init(&error);
    check(ledger_get_account(world->ledgers[player], &purse, &owed,
                             signer_address(world->signers[player]), &error),
          &error);
    return purse + owed;
}

static void assert_gained(struct world *world, int player, wei gain, wei loss)
{
    char is_now[WEI_TEXT_SIZE];
    char wanted[WEI_TEXT_SIZE];

    wei_print_plain(is_now, money(world, player));
    wei_print_plain(wanted, world->before[player] + gain - loss);
    assert_string_equal(is_now, wanted);
}

static void pass(struct world *world, uint64_t seconds)
{
    struct error error;

    error_init(&error);
    world->now_s += seconds;
    check(ledger_local_set_clock(world->ledgers[CLIENT], world->now_s, &error), &error);
}

static const char *move_name(struct world *world, const char *what)
{
    static char name[64];

    (void)snprintf(name, sizeof(name), "%s %u", what, world->moves++);
    return name;
}

/* The states of a segment. */
static struct game_hashes states_of(struct digest room[STEPS], uint32_t index)
{
    for (uint32_t i = 0; i < STEPS; i++) {
        room[i] = made_state_root(1 + index * STEPS + i);
    }
    return (struct game_hashes){room, STEPS};
}

static void new_solver(struct world *world, uint32_t trained)
{
    struct error error;

    error_init(&error);
    solver_free(world->solver);
    check(solver_new(&world->solver, &world->solver_options, segments, &error), &error);
    for (uint32_t i = 0; i < trained; i++) {
        struct digest room[STEPS];
        struct game_hashes states = states_of(room, i);

        check(solver_add(world->solver, &states, false, &error), &error);
    }
}

static struct job_record read_record(struct world *world)
{
    struct job_record record;
    struct error error;

    error_init(&error);
    job_record_init(&record, &world->job, signer_address(world->signers[SOLVER]));
    check(ledger_catch_up(world->ledgers[CLIENT], &error), &error);
    check(job_record_follow(&record, world->ledgers[CLIENT], &error), &error);
    return record;
}

static struct solver_view do_round(struct world *world)
{
    struct solver_view view;
    struct error error;

    error_init(&error);
    check(solver_round(world->solver, &view, &error), &error);
    return view;
}

static void set_up(struct world *world, const char *name, uint32_t seats, uint32_t coverage)
{
    static const struct game_bytes no_contact;
    struct error error;

    error_init(&error);
    memset(world, 0, sizeof(*world));
    (void)snprintf(world->url, sizeof(world->url), "local:%s/%s.ledger", test_temp_dir(), name);
    check(ledger_local_init(world->url + 6, &error), &error);
    ledger_options_init(&world->options);
    world->options.url = world->url;
    world->now_s = (uint64_t)time(NULL) + 1000;
    for (int i = 0; i < PLAYERS; i++) {
        struct secret_key key = anvil_key((uint32_t)i);
        struct ledger_options options = world->options;

        world->signers[i] = signer_new(&key, &error);
        assert_non_null(world->signers[i]);
        options.signer = world->signers[i];
        check(ledger_open(&world->ledgers[i], &options, &error), &error);
        check(ledger_local_faucet(world->ledgers[i], signer_address(world->signers[i]), 100000,
                                  &error),
              &error);
        world->before[i] = money(world, i);
    }
    pass(world, 0);
    world->terms = (struct game_terms){.steps = segments * STEPS,
                                       .segment_steps = STEPS,
                                       .reward = 100,
                                       .fee = seats == 0 ? 0 : 10,
                                       .stake = 800,
                                       .bond = 60,
                                       .query_fee = 1,
                                       .seats = seats,
                                       .coverage_ppm = coverage,
                                       .keeper = keeper,
                                       .segment_period_s = segment_s,
                                       .seal_period_s = SEAL_S,
                                       .reveal_period_s = REVEAL_S,
                                       .claim_period_s = CLAIM_S,
                                       .clock_s = CLOCK_S,
                                       .deadline_s = world->now_s + DEADLINE_S};
    world->terms.panel_least = seats;
    made_job(world->header, &world->terms.job_id, 0);
    check(ledger_open_job(world->ledgers[CLIENT], "open", &world->job, &world->terms, &no_contact,
                          &error),
          &error);
    world->solver_options =
        (struct solver_options){.ledger = world->options,
                                .job = world->job,
                                .account = *signer_address(world->signers[SOLVER]),
                                .accept = true,
                                .collect = true,
                                .contact = "http://127.0.0.1:1",
                                .vouches = world->vouches,
                                .segment_steps = STEPS};
    (void)snprintf(world->vouches, sizeof(world->vouches), "%s/%s.vouches", test_temp_dir(), name);
    world->solver_options.ledger.signer = world->signers[SOLVER];
}

static void tear_down(struct world *world)
{
    solver_free(world->solver);
    for (int i = 0; i < PLAYERS; i++) {
        ledger_close(world->ledgers[i]);
        signer_free(world->signers[i]);
    }
}

static struct game_segment segment_at(struct world *world, uint32_t index)
{
    struct game_segment segment;
    struct error error;

    error_init(&error);
    check(standing_segment(world->ledgers[CLIENT], &segment, &world->job, index, &error), &error);
    return segment;
}

static void assert_done(struct world *world, int player, const char *name)
{
    struct ledger_outcome outcome;

    assert_int_equal(ledger_look(world->ledgers[player], &outcome, name, NULL), STATUS_OK);
    if (outcome.state != LEDGER_MOVE_FINAL) {
        fail_msg("%s: %s", name, game_refusal_text(outcome.refusal.kind));
    }
}

static void enlist(struct world *world, int player)
{
    static const struct game_hashes no_path;
    static const struct game_bytes no_contact;
    const char *name = move_name(world, "enlist");
    struct error error;

    error_init(&error);
    check(ledger_enlist(world->ledgers[player], name, &world->job, &world->terms, 1, &no_path,
                        &no_contact, &error),
          &error);
    assert_done(world, player, name);
}

/* Until a stake can come. */
static void gather(struct world *world)
{
    pass(world, SEAL_S + 1);
}

/* The verdict of the newest seat of a segment. *player: who holds it, where VERIFIER and SECOND
 * enlisted in this order. */
static struct ledger_verdict seat_of(struct world *world, int *player, uint32_t index)
{
    struct ledger_verdict verdict = {.job = world->job,
                                     .segment = segment_at(world, index),
                                     .verdict = GAME_VERDICT_RIGHT,
                                     .salt = {{(uint8_t)(index + 1)}}};
    struct job_record record = read_record(world);
    bool found = false;

    for (uint32_t i = 0; i < record.seat_count; i++) {
        if (record.seats[i].index == index) {
            found = true;
            verdict.place = record.seats[i].place;
            *player = record.seats[i].state.entry == 0 ? VERIFIER : SECOND;
        }
    }
    assert_true(found);
    job_record_free(&record);
    return verdict;
}

static void seal(struct world *world, uint32_t index)
{
    const char *name = move_name(world, "seal");
    struct ledger_verdict verdict;
    struct error error;
    int player = VERIFIER;

    error_init(&error);
    verdict = seat_of(world, &player, index);
    check(ledger_seal(world->ledgers[player], name, &verdict, &error), &error);
    assert_done(world, player, name);
}

static void reveal(struct world *world, uint32_t index)
{
    const char *name = move_name(world, "reveal");
    struct ledger_verdict verdict;
    struct error error;
    int player = VERIFIER;

    error_init(&error);
    verdict = seat_of(world, &player, index);
    check(ledger_reveal(world->ledgers[player], name, &verdict, &error), &error);
    assert_done(world, player, name);
}

/* The claim that step 2 of a segment is false. */
static struct hash32 claim(struct world *world, int player, uint32_t index)
{
    struct game_segment segment = segment_at(world, index);
    struct hash32 hash = game_segment_hash(&world->job, &segment);
    struct hash32 salt = {{3}};
    struct digest room[STEPS];
    struct game_hashes states = states_of(room, index);
    struct game_case shown;
    struct hash32 subject;
    struct error error;
    const char *name;

    error_init(&error);
    made_states_case(&shown, world->header, &segment, &states, NULL, NULL, 2);
    shown.client = *signer_address(world->signers[CLIENT]);
    shown.salt = world->terms.salt;
    subject = game_subject_hash(&hash, shown.step, &shown.pre_state, &shown.post_state);
    check(ledger_seal_claim(world->ledgers[player], move_name(world, "seal"), &subject, &salt,
                            &error),
          &error);
    pass(world, 1);
    name = move_name(world, "claim");
    check(ledger_claim(world->ledgers[player], name, &world->job, &shown, &salt,
                       game_claim_bond(&world->terms, 0), &error),
          &error);
    assert_done(world, player, name);
    return game_claim_key(&subject, 0);
}

static uint32_t count_events(struct world *world, enum game_event_kind kind)
{
    struct ledger_entry entry = {0};
    uint32_t count = 0;

    while (ledger_next(world->ledgers[CLIENT], &entry, entry.number, 0, NULL) == STATUS_OK) {
        count += entry.event.kind == kind;
    }
    return count;
}

/* ---- the plain way ------------------------------------------------------------------ */

static void test_solver_restarted_before_every_round_moves_once(void **state)
{
    struct world world;
    struct solver_view view = {0};

    (void)state;
    set_up(&world, "restarted", 0, 0);
    for (uint32_t i = 0; i <= SEGMENTS; i++) {
        new_solver(&world, i);
        view = do_round(&world);
        assert_true(view.ours && !view.lost && !view.late);
        assert_int_equal(view.committed, i);
        pass(&world, 5);
    }
    /* Within the time for claims nothing more happens; a second after it, everything. */
    pass(&world, SEAL_S + REVEAL_S + CLAIM_S - 3 * 5 - 4);
    new_solver(&world, SEGMENTS);
    assert_int_equal(do_round(&world).finalized, 0);
    pass(&world, 20);
    for (int i = 0; i < 3; i++) {
        new_solver(&world, SEGMENTS);
        view = do_round(&world);
        assert_true(view.collected);
    }
    assert_int_equal(view.finalized, SEGMENTS);
    assert_int_equal(count_events(&world, GAME_ACCEPTED), 1);
    assert_int_equal(count_events(&world, GAME_COMMITTED), SEGMENTS);
    assert_int_equal(count_events(&world, GAME_FINALIZED), SEGMENTS);
    assert_int_equal(count_events(&world, GAME_WITHDRAWN), 1);
    assert_gained(&world, SOLVER, 300, 0);
    assert_gained(&world, CLIENT, 0, 300);
    tear_down(&world);
}

static void test_purse_too_small_is_told_and_tried_again(void **state)
{
    struct world world;
    struct solver_view view;

    (void)state;
    set_up(&world, "poor", 0, 0);
    struct secret_key key = anvil_key(9);
    struct signer *poor = signer_new(&key, NULL);

    assert_non_null(poor);
    world.solver_options.ledger.signer = poor;
    world.solver_options.account = *signer_address(poor);
    new_solver(&world, 1);
    view = do_round(&world);
    assert_true(view.pending == 1 && !view.ours);
    assert_non_null(strstr(view.trouble, "accept"));
    assert_int_equal(ledger_local_faucet(world.ledgers[CLIENT], signer_address(poor), 800, NULL),
                     STATUS_OK);
    view = do_round(&world);
    assert_true(view.ours && view.committed == 1 && view.trouble[0] == '\0');
    signer_free(poor);
    tear_down(&world);
}

/* ---- verifiers ------------------------------------------------------------------------ */

static void test_silent_seat_loses_nothing_and_another_round_covers(void **state)
{
    struct job_record record;
    struct world world;
    struct solver_view view;

    (void)state;
    set_up(&world, "silent", 1, GAME_PPM);
    enlist(&world, VERIFIER);
    enlist(&world, SECOND);
    gather(&world);
    new_solver(&world, SEGMENTS);
    (void)do_round(&world);
    pass(&world, 5);
    (void)do_round(&world);
    assert_int_equal(count_events(&world, GAME_DRAWN), SEGMENTS);
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        seal(&world, i);
    }
    pass(&world, SEAL_S + 1);
    reveal(&world, 1); /* and not 0 */
    reveal(&world, 2);
    record = read_record(&world);
    assert_int_equal(job_record_waits_for(&record, 0, world.now_s), JOB_SEGMENT_REVEALING);
    job_record_free(&record);
    pass(&world, REVEAL_S);
    (void)do_round(&world);
    assert_int_equal(count_events(&world, GAME_ROUND_OVER), 1);
    pass(&world, 5);
    view = do_round(&world);
    assert_int_equal(count_events(&world, GAME_ROUND), SEGMENTS + 1);
    assert_int_equal(view.finalized, 0);
    seal(&world, 0);
    pass(&world, SEAL_S + 1);
    reveal(&world, 0);
    pass(&world, REVEAL_S + CLAIM_S - 2);
    assert_int_equal(do_round(&world).finalized, 0);
    pass(&world, 2);
    view = do_round(&world);
    assert_true(view.finalized == SEGMENTS && view.collected);
    assert_gained(&world, SOLVER, 300, 0);
    tear_down(&world);
}

static void test_seed_is_drawn_in_time_where_some_segments_are_covered(void **state)
{
    struct world world;

    (void)state;
    set_up(&world, "drawn", 1, 1);
    enlist(&world, VERIFIER);
    gather(&world);
    new_solver(&world, SEGMENTS);
    (void)do_round(&world);
    pass(&world, 3);
    (void)do_round(&world);
    assert_int_equal(count_events(&world, GAME_DRAWN), SEGMENTS);
    seal(&world, 2); /* the last one is always covered */
    pass(&world, SEAL_S + 1);
    reveal(&world, 2);
    pass(&world, REVEAL_S + CLAIM_S);
    assert_true(do_round(&world).collected);
    assert_int_equal(count_events(&world, GAME_FINALIZED), 1); /* a leg */
    assert_gained(&world, SOLVER, 300, 0);
    tear_down(&world);
}

/* ---- before the stake ----------------------------------------------------------------- */

static void test_stake_waits_until_the_panel_has_gathered(void **state)
{
    struct world world;
    struct solver_view view;

    (void)state;
    set_up(&world, "gathers", 1, GAME_PPM);
    new_solver(&world, SEGMENTS);
    view = do_round(&world);
    assert_true(view.early && !view.lost && !view.ours);
    assert_non_null(strstr(view.trouble, "the panel has 0 entries, and the job waits for 1"));
    enlist(&world, VERIFIER);
    pass(&world, SEAL_S);
    view = do_round(&world);
    assert_true(view.early && !view.lost);
    assert_non_null(strstr(view.trouble, "the panel gathers until"));
    pass(&world, 1);
    view = do_round(&world);
    assert_true(view.ours && !view.early && view.committed == SEGMENTS);
    tear_down(&world);
}

static void test_nothing_is_staked_where_nobody_could_fetch(void **state)
{
    struct world world;
    struct solver_view view;

    (void)state;
    set_up(&world, "unserved", 1, GAME_PPM);
    enlist(&world, VERIFIER);
    gather(&world);
    world.solver_options.contact = NULL;
    new_solver(&world, SEGMENTS);
    view = do_round(&world);
    assert_true(view.lost && !view.ours);
    assert_non_null(strstr(view.trouble, "could not fetch"));
    assert_gained(&world, SOLVER, 0, 0);
    tear_down(&world);
}

/* Three entries are one owner's and one another's. */
static void test_panel_of_one_stranger_is_refused_by_who_knows_somebody(void **state)
{
    char name[ADDRESS_TEXT_SIZE];
    char known[2 * ADDRESS_TEXT_SIZE];
    char path[700];
    struct world world;
    struct solver_view view;
    FILE *file;

    (void)state;
    set_up(&world, "stranger", 1, GAME_PPM);
    for (int i = 0; i < 3; i++) {
        enlist(&world, VERIFIER);
    }
    enlist(&world, SECOND);
    gather(&world);
    address_print(name, signer_address(world.signers[CLIENT]));
    world.solver_options.known = name;
    new_solver(&world, 0);
    view = do_round(&world);
    assert_true(view.early && !view.ours);
    assert_non_null(strstr(view.trouble, "has 3 of the panel's 4 entries"));
    world.solver_options.known = "nobody";
    new_solver(&world, 0);
    view = do_round(&world);
    assert_true(view.early && strstr(view.trouble, "neither a file nor an address") != NULL);
    (void)snprintf(path, sizeof(path), "%s/known", test_temp_dir());
    file = fopen(path, "w");
    assert_non_null(file);
    address_print(known, signer_address(world.signers[SECOND]));
    fprintf(file, "%s # a friend\n%s\n", name, known);
    assert_int_equal(fclose(file), 0);
    world.solver_options.known = path;
    new_solver(&world, 0);
    assert_true(do_round(&world).ours);
    tear_down(&world);
}

/* ---- what is open ----------------------------------------------------------------------- */

static void test_no_more_is_open_than_a_leg_but_what_is_due(void **state)
{
    struct world world;

    (void)state;
    segments = 40;
    segment_s = 200; /* nothing is final within it */
    set_up(&world, "ahead", 0, 0);
    world.solver_options.ahead = 24; /* the stake is worth less: 7 */
    new_solver(&world, 40);
    assert_int_equal(do_round(&world).committed, GAME_LEG_MAX);
    pass(&world, 200 - 200 / 8 - 2);
    assert_int_equal(do_round(&world).committed, GAME_LEG_MAX);
    pass(&world, 1);
    assert_int_equal(do_round(&world).committed, GAME_LEG_MAX + 1);
    pass(&world, 200 - 200 / 8 - 1);
    assert_int_equal(do_round(&world).committed, GAME_LEG_MAX + 2);
    pass(&world, 3); /* the first 16 are final: two are open, and 14 more may be */
    assert_int_equal(do_round(&world).committed, 2 * GAME_LEG_MAX);
    segments = SEGMENTS;
    segment_s = SEGMENT_S;
    tear_down(&world);
}

/* ---- the client and its keeper ------------------------------------------------------------ */

static void test_refusal_is_told_and_nothing_more_is_committed(void **state)
{
    struct world world;
    struct solver_view view;
    struct error error;

    (void)state;
    error_init(&error);
    set_up(&world, "client", 0, 0);
    new_solver(&world, 2);
    (void)do_round(&world);
    check(ledger_refuse(world.ledgers[CLIENT], "refuse", &world.job, &error), &error);
    assert_done(&world, CLIENT, "refuse");
    new_solver(&world, SEGMENTS);
    view = do_round(&world);
    assert_int_equal(view.committed, 2);
    assert_int_equal(view.held, 2);
    assert_int_equal(view.refused_until_s, world.now_s + SEAL_S + REVEAL_S + CLAIM_S);
    assert_non_null(strstr(view.trouble, "the client refuses: it holds 2 segments, from 0 on"));
    pass(&world, SEAL_S + REVEAL_S + CLAIM_S);
    assert_int_equal(do_round(&world).finalized, 0);
    assert_int_equal(count_events(&world, GAME_VOIDED), 0);
    pass(&world, 1); /* the client sleeps: the solver itself has the rest of its stake back */
    view = do_round(&world);
    assert_int_equal(count_events(&world, GAME_VOIDED), 1);
    assert_true(view.lost && !view.ours);
    assert_non_null(strstr(view.trouble, "our segments are void"));
    assert_gained(&world, SOLVER, 0, 300);
    world.solver_options.again = true;
    new_solver(&world, SEGMENTS);
    view = do_round(&world);
    assert_true(view.early && strstr(view.trouble, "puts back what burned") != NULL);
    tear_down(&world);
}

/* The only seat says that it has seen nothing, which makes the leg void: the keeper has. */
static void test_vouch_that_was_handed_over_is_brought_after_a_restart(void **state)
{
    struct game_segment last;
    struct hash32 hash;
    struct vouch vouch;
    struct solver_view view;
    struct world world;
    struct error error;

    (void)state;
    error_init(&error);
    set_up(&world, "kept", 0, 0); /* for its signers */
    keeper = *signer_address(world.signers[SECOND]);
    tear_down(&world);
    set_up(&world, "vouched", 1, 1);
    keeper = (struct address){{0}};
    enlist(&world, VERIFIER);
    gather(&world);
    new_solver(&world, SEGMENTS);
    (void)do_round(&world);
    pass(&world, 3);
    (void)do_round(&world);
    last = segment_at(&world, SEGMENTS - 1);
    hash = game_segment_hash(&world.job, &last);
    check(ledger_unseen(world.ledgers[VERIFIER], "unseen", &world.job, &last,
                        seat_of(&world, &(int){0}, SEGMENTS - 1).place, &error),
          &error);
    assert_done(&world, VERIFIER, "unseen");
    check(vouch_sign(&vouch, ledger_get_game(world.ledgers[CLIENT]), &world.job, &hash,
                     world.signers[SECOND], &error),
          &error);
    check(vouch_box_put(world.vouches, &vouch, &error), &error);
    new_solver(&world, SEGMENTS);
    pass(&world, SEAL_S + REVEAL_S + CLAIM_S + 1);
    view = do_round(&world);
    assert_true(view.collected && view.finalized == SEGMENTS);
    assert_int_equal(count_events(&world, GAME_VOUCHED), 1);
    assert_gained(&world, SOLVER, 300, 0);
    assert_int_equal(vouch_box_get(&vouch, world.vouches, &hash, &error), STATUS_NOT_FOUND);
    tear_down(&world);
}

/* Trouble before it costs anything; and what the void was for. */
static void test_states_that_nobody_could_get_are_told(void **state)
{
    struct game_segment last;
    struct solver_view view;
    struct world world;
    struct error error;

    (void)state;
    error_init(&error);
    set_up(&world, "unseen", 1, 1);
    enlist(&world, VERIFIER);
    gather(&world);
    new_solver(&world, SEGMENTS);
    (void)do_round(&world);
    pass(&world, 3);
    view = do_round(&world);
    assert_int_equal(view.unseen, 0);
    last = segment_at(&world, SEGMENTS - 1);
    check(ledger_unseen(world.ledgers[VERIFIER], "unseen", &world.job, &last,
                        seat_of(&world, &(int){0}, SEGMENTS - 1).place, &error),
          &error);
    assert_done(&world, VERIFIER, "unseen");
    view = do_round(&world);
    assert_int_equal(view.unseen, 1);
    assert_non_null(strstr(view.trouble, "verifiers could not get the states of 1 segments"));
    pass(&world, SEAL_S + REVEAL_S + 3 * CLAIM_S + 1);
    check(ledger_settle(world.ledgers[VERIFIER], "settle", &world.job, &last, NULL, &error),
          &error); /* the solver does not make its own loss */
    assert_done(&world, VERIFIER, "settle");
    view = do_round(&world);
    assert_int_equal(count_events(&world, GAME_VOIDED), 1);
    assert_true(view.lost && view.unseen == 0);
    assert_non_null(strstr(view.trouble, "since verifiers could not get their states"));
    tear_down(&world);
}

/* ---- disputes ------------------------------------------------------------------------- */

static void test_claimant_that_falls_silent_is_timed_out(void **state)
{
    struct world world;
    struct solver_view view;
    struct hash32 key;
    struct digest trace = {{5}};
    struct error error;

    (void)state;
    error_init(&error);
    set_up(&world, "claim", 0, 0);
    new_solver(&world, SEGMENTS);
    (void)do_round(&world);
    key = claim(&world, VERIFIER, 0);
    view = do_round(&world);
    assert_int_equal(view.disputed, 1);
    assert_non_null(strstr(view.trouble, "waits for the solver's answer"));
    check(ledger_answer(world.ledgers[SOLVER], "answer", &key, &trace, &error), &error);
    pass(&world, CLOCK_S);
    assert_int_equal(do_round(&world).disputed, 1); /* its time includes the last second */
    pass(&world, 1);
    assert_int_equal(do_round(&world).disputed, 0);
    pass(&world, SEAL_S + REVEAL_S + CLAIM_S);
    assert_true(do_round(&world).collected);
    assert_gained(&world, SOLVER, 300 + 30, 0); /* half of a bond is burned */
    assert_gained(&world, VERIFIER, 0, 60);
    tear_down(&world);
}

/* ---- refusals ----------------------------------------------------------------------- */

/* Answers claims in place of prover/post/respond.c; the ledger refuses its first answers. */
struct respond {
    uint32_t taken;   /* how often the solver took an answer */
    bool gives_truth; /* else a root of zero, which is against the rules */
};

void respond_want(struct respond *respond, const struct respond_request *requests, uint32_t count)
{
    (void)respond;
    (void)requests;
    (void)count;
}

double respond_forecast(struct respond *respond, uint64_t step)
{
    (void)respond;
    (void)step;
    return 0;
}

enum status respond_get(struct respond *respond, uint8_t *bytes, size_t *size,
                        const struct respond_request *request, struct error *error)
{
    (void)request;
    (void)error;
    respond->taken++;
    memset(bytes, respond->gives_truth ? 5 : 0, DIGEST_SIZE);
    *size = DIGEST_SIZE;
    return STATUS_OK;
}

static void test_refused_answer_is_sent_again_with_pauses(void **state)
{
    struct respond respond = {0};
    struct solver_view view = {0};
    char before[SOLVER_VIEW_TROUBLE_MAX] = "";
    uint32_t words = 0;
    struct world world;

    (void)state;
    set_up(&world, "refused", 0, 0);
    world.solver_options.respond = &respond;
    new_solver(&world, SEGMENTS);
    (void)do_round(&world);
    (void)claim(&world, VERIFIER, 0);
    for (uint64_t second = 0; second <= CLOCK_S - 2; second++) {
        for (int i = 0; i < 3; i++) { /* rounds come faster than any clock */
            view = do_round(&world);
            assert_int_equal(view.awaited, 1);
            assert_true(view.pending > 0);
        }
        assert_non_null(strstr(view.trouble, "a root is never zero"));
        assert_non_null(strstr(view.trouble, "it is sent again at"));
        words += strcmp(before, view.trouble) != 0;
        (void)snprintf(before, sizeof(before), "%s", view.trouble);
        pass(&world, 1);
    }
    /* 2, 4, 8 and 11 s, then a quarter of what is left: some for each halving of it. */
    assert_in_range(respond.taken, 6, 20);
    assert_true(words <= 2 * respond.taken);
    respond.gives_truth = true;
    (void)do_round(&world);
    assert_int_equal(do_round(&world).awaited, 0); /* in its last second, and in time */
    assert_int_equal(count_events(&world, GAME_ANSWERED), 1);
    tear_down(&world);
}

static void test_convicted_solver_comes_back_only_when_told(void **state)
{
    struct job_record record;
    struct world world;
    struct solver_view view;
    struct hash32 key;
    struct error error;

    (void)state;
    error_init(&error);
    set_up(&world, "convicted", 0, 0);
    new_solver(&world, SEGMENTS);
    (void)do_round(&world);
    key = claim(&world, VERIFIER, 1);
    pass(&world, CLOCK_S + 1);
    check(ledger_timeout(world.ledgers[VERIFIER], "timeout", &key, &error), &error);
    view = do_round(&world);
    assert_true(view.lost && !view.ours && view.committed == 0 && view.disputed == 0);
    assert_true(view.lost_for_good); /* an embedded ledger has no reorganizations */
    assert_non_null(strstr(view.trouble, "convicted"));
    assert_gained(&world, SOLVER, 0, 800);
    world.solver_options.again = true;
    new_solver(&world, SEGMENTS);
    view = do_round(&world);
    assert_true(view.ours && view.committed == SEGMENTS);
    record = read_record(&world);
    assert_int_equal(record.state.generation, 1);
    job_record_free(&record);
    pass(&world, SEAL_S + REVEAL_S + CLAIM_S + 1);
    assert_true(do_round(&world).collected);
    assert_gained(&world, SOLVER, 300, 800);
    tear_down(&world);
}

/* Another solver goes on from the first segment that is not final, when its run has the others. */
static void test_other_solver_goes_on_where_the_last_was_final(void **state)
{
    struct world world;
    struct solver_view view;

    (void)state;
    set_up(&world, "other", 0, 0);
    new_solver(&world, 1);
    (void)do_round(&world);
    pass(&world, SEGMENT_S + 1);
    view = do_round(&world);
    assert_true(view.late && view.finalized == 1);
    world.solver_options.again = true; /* gives it up, and would take it again */
    world.solver_options.accept = false;
    new_solver(&world, 1);
    (void)do_round(&world);
    assert_int_equal(count_events(&world, GAME_RELEASED), 1);
    assert_gained(&world, SOLVER, 100, 100);
    world.solver_options.accept = true;
    world.solver_options.account = *signer_address(world.signers[SECOND]);
    world.solver_options.ledger.signer = world.signers[SECOND];
    new_solver(&world, SEGMENTS);
    assert_int_equal(do_round(&world).committed, SEGMENTS);
    pass(&world, SEAL_S + REVEAL_S + CLAIM_S + 1);
    assert_true(do_round(&world).collected);
    assert_gained(&world, SECOND, 200, 0);
    tear_down(&world);
}

static void test_run_that_contradicts_the_ledger_posts_nothing(void **state)
{
    struct world world;
    struct solver_view view;
    struct digest other[STEPS] = {{{200}}};
    const struct game_hashes states = {other, STEPS};

    (void)state;
    set_up(&world, "contradicted", 0, 0);
    new_solver(&world, 1);
    (void)do_round(&world);
    new_solver(&world, 0);
    assert_int_equal(solver_add(world.solver, &states, false, NULL), STATUS_OK);
    assert_int_equal(solver_add(world.solver, &states, false, NULL), STATUS_OK);
    view = do_round(&world);
    assert_true(view.contradicted && view.committed == 1);
    assert_non_null(strstr(view.trouble, "has another root"));
    tear_down(&world);
}

static void test_stake_comes_back_whole_when_all_time_is_over(void **state)
{
    struct world world;

    (void)state;
    set_up(&world, "expired", 0, 0);
    new_solver(&world, 1);
    (void)do_round(&world);
    pass(&world, DEADLINE_S + 1);
    assert_true(do_round(&world).collected);
    assert_gained(&world, SOLVER, 100, 0);
    tear_down(&world);
}

/* ---- terms ------------------------------------------------------------------------------ */

static void test_terms_that_differ_anywhere_are_refused(void **state)
{
    struct small_job_options options;
    struct game_terms good = {0};
    struct job *job;
    struct error error;

    (void)state;
    error_init(&error);
    small_job_defaults(&options);
    job = small_job_new(&options);
    check(terms_of_job(&good, job, &error), &error);
    check(terms_check(&good, job, &error), &error);
    for (int i = 0; i < 6; i++) {
        struct game_terms bad = good;

        bad.job_id.bytes[31] ^= i == 0;
        bad.program_root.bytes[0] ^= i == 1;
        bad.data_root.bytes[5] ^= i == 2;
        bad.first_state_root.bytes[7] ^= i == 3;
        bad.steps += i == 4;
        bad.segment_steps += i == 5;
        assert_int_equal(terms_check(&bad, job, &error), STATUS_REFUSED);
    }
    job_free(job);
}

static void test_times_are_short(void **state)
{
    char text[TERMS_TIME_SIZE];

    (void)state;
    terms_period(text, 7 * 86400);
    assert_string_equal(text, "7d");
    terms_period(text, 5400);
    assert_string_equal(text, "90m");
    terms_period(text, 0);
    assert_string_equal(text, "0s");
    terms_time(text, 1795262936);
    assert_string_equal(text, "2026-11-21 12:08 UTC");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_solver_restarted_before_every_round_moves_once),
        cmocka_unit_test(test_purse_too_small_is_told_and_tried_again),
        cmocka_unit_test(test_silent_seat_loses_nothing_and_another_round_covers),
        cmocka_unit_test(test_seed_is_drawn_in_time_where_some_segments_are_covered),
        cmocka_unit_test(test_stake_waits_until_the_panel_has_gathered),
        cmocka_unit_test(test_nothing_is_staked_where_nobody_could_fetch),
        cmocka_unit_test(test_panel_of_one_stranger_is_refused_by_who_knows_somebody),
        cmocka_unit_test(test_no_more_is_open_than_a_leg_but_what_is_due),
        cmocka_unit_test(test_refusal_is_told_and_nothing_more_is_committed),
        cmocka_unit_test(test_vouch_that_was_handed_over_is_brought_after_a_restart),
        cmocka_unit_test(test_states_that_nobody_could_get_are_told),
        cmocka_unit_test(test_claimant_that_falls_silent_is_timed_out),
        cmocka_unit_test(test_refused_answer_is_sent_again_with_pauses),
        cmocka_unit_test(test_convicted_solver_comes_back_only_when_told),
        cmocka_unit_test(test_other_solver_goes_on_where_the_last_was_final),
        cmocka_unit_test(test_run_that_contradicts_the_ledger_posts_nothing),
        cmocka_unit_test(test_stake_comes_back_whole_when_all_time_is_over),
        cmocka_unit_test(test_terms_that_differ_anywhere_are_refused),
        cmocka_unit_test(test_times_are_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
