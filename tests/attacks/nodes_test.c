/*
 * Goal: where the honest are real programs with the policies of their defaults, an attack takes
 * nothing of them but gas and what this test states.
 * Method: verifier's nodes and solvers as tests/support/node/crowd.h has them, by the ledger's
 * clock: they enlist when they have tried the job, fetch, replay, seal, reveal, deny, challenge,
 * settle and depart by themselves. Who attacks is moved by hand, and so is a client, which only
 * opens and closes. Everybody's money is counted, in thousandths of an ether. A node that is sent
 * to its own machine fetches as it does anywhere, while what listens there counts calls.
 * One alone: its name, with * for any letters, as in build/tests/attacks/nodes_test '*gwei*chain'.
 */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <fnmatch.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chain/game/allow_list.h"
#include "tests/support/game/attack.h"
#include "tests/support/node/crowd.h"
#include "verifier/check/check.h"

/* Where moves cost little, each time; on a chain, where it takes some seconds, in a soak. */
#define EMBEDDED(name) cmocka_unit_test(test_##name##_on_the_embedded_ledger)
#define CHAIN(name)    cmocka_unit_test(test_##name##_on_a_chain)

enum {
    HOUR_S = 3600,
    DAY_S = 24 * HOUR_S,
    DEAD = 16, /* entries in one move, at most */
    NOBODY = 0,
    LONG_REPLAY_S = 12 * HOUR_S, /* more than all rounds take */
    LINES = 2,                   /* nodes, each on one */
    FARMED_ROUNDS = 3,           /* 1, 2 and 4 seats that deny, so that eight are right */
};

#define MEGABYTE ((uint64_t)1 << 20)

/* All entries of a player go. */
static void depart_all(struct scene *scene, int player)
{
    const struct address *owner = signer_address(scene->stage.signers[player]);

    scene_read(scene);
    for (uint32_t i = 0; i < scene->record.state.entries;) {
        if (address_equal(&scene->record.entries[i].owner, owner)) {
            STAGE_PLAY(&scene->stage, player, ledger_depart, &scene->job,
                       scene->record.state.generation, i);
            scene_read(scene);
        } else {
            i++;
        }
    }
}

/* ---- puppets ------------------------------------------------------------------------- */

/* The panel of nodes is there, and a solver who is moved by hand has the job. */
static void take_job(struct crowd *crowd)
{
    scene_open_job(crowd->scene);
    crowd_until(crowd, crowd_has_panel, HOUR_S);
    scene_accept(crowd->scene, STAGE_SOLVER);
}

static void commit(struct crowd *crowd, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        scene_commit(crowd->scene, STAGE_SOLVER, SCENE_STEPS);
    }
}

static void close_job(struct crowd *crowd)
{
    STAGE_PLAY(&crowd->scene->stage, STAGE_CLIENT, ledger_close_job, &crowd->scene->job);
    crowd_part(crowd);
}

/* ---- attacks --------------------------------------------------------------------------- */

/* Entries that came and went before the job began leave no number behind: the two nodes are the
 * panel, one of them is drawn for each segment, and solver and nodes have all that the job
 * pays. */
ATTACK(dead_entries)
{
    struct crowd crowd;

    crowd_open(&crowd, scene, 2);
    scene->terms.panel_least = 2;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, DEAD);
    crowd_live(&crowd, 600);
    scene_enlist(scene, STAGE_FRIEND, DEAD);
    depart_all(scene, STAGE_FRIEND);
    crowd_solve(&crowd, STAGE_SOLVER);
    crowd_until(&crowd, crowd_is_closed, 3 * DAY_S);
    crowd_part(&crowd);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 3000);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), 0);
    scene_see(scene, crowd_gains(&crowd), 400);
    crowd_close(&crowd);
}

/* A job that nobody shows gets no bond. Once it was shown, its client and solver hide it again:
 * the seats stay empty, and the bonds come back whole. */
ATTACK(blind_enlistment)
{
    static const int party[] = {STAGE_CLIENT, STAGE_SOLVER};
    struct crowd crowd;

    crowd_open(&crowd, scene, 2);
    scene->terms.panel_least = 2;
    scene_open_job(scene);
    crowd.serving.hides_job = true;
    crowd_live(&crowd, 6 * HOUR_S);
    scene_read(scene);
    assert_int_equal(scene->record.state.entries, 0);
    crowd.serving.hides_job = false;
    crowd_until(&crowd, crowd_has_panel, DAY_S);
    scene_accept(scene, STAGE_SOLVER);
    crowd.serving.hides_job = true;
    commit(&crowd, SCENE_SEGMENTS);
    crowd_until(&crowd, crowd_is_closed, 5 * DAY_S);
    crowd_part(&crowd);
    scene_see(scene, crowd_gains(&crowd), 0);
    scene_see(scene, scene_party_gain(scene, party, 2), 0);
    crowd_close(&crowd);
}

/* All is served but the last state. The client loses what PROTOCOL states: the price of what is
 * void, and of one segment more, which burns of the pool as far as it goes. The solver burns as
 * much, and no node loses anything. */
ATTACK(ransom_of_the_last_state)
{
    struct crowd crowd;

    crowd_open(&crowd, scene, 3);
    scene->terms.panel_least = 3;
    take_job(&crowd);
    crowd.serving.hides_from = SCENE_SEGMENTS - 1;
    commit(&crowd, SCENE_SEGMENTS);
    crowd_until(&crowd, crowd_is_open, 5 * DAY_S);
    assert_int_equal(scene->record.state.finalized, SCENE_SEGMENTS - 1);
    assert_true(scene->record.state.barred);
    close_job(&crowd);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 2000 - 2000);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -2200 - 1000 - 700);
    scene_see(scene, crowd_gains(&crowd), 200);
    crowd_close(&crowd);
}

/* Chance looks at nothing, and the solver stops before the segment that would be looked at. The
 * nodes release the job: an eighth of the stake burns, and the client has its money back. */
ATTACK(the_last_segment_never_comes)
{
    struct crowd crowd;

    crowd_open(&crowd, scene, 2);
    scene->terms.coverage_ppm = 0;
    scene->terms.panel_least = 2;
    take_job(&crowd);
    commit(&crowd, SCENE_SEGMENTS - 1);
    crowd_until(&crowd, crowd_is_open, 3 * DAY_S);
    assert_int_equal(scene->record.state.finalized, 0);
    close_job(&crowd);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -10000 / 8);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), 0);
    scene_see(scene, crowd_gains(&crowd), 0);
    crowd_close(&crowd);
}

/* The client names its panel, and nobody in it wakes. The solver has its whole reward. */
ATTACK(a_panel_of_the_client_asleep)
{
    static const int party[] = {STAGE_CLIENT, STAGE_FRIEND};
    struct crowd crowd;

    crowd_open(&crowd, scene, 1);
    allow_list_root(&scene->terms.verifiers, signer_address(scene->stage.signers[STAGE_FRIEND]), 1);
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, 2);
    crowd_solve(&crowd, STAGE_SOLVER);
    crowd_until(&crowd, crowd_is_closed, 5 * DAY_S);
    crowd_part(&crowd);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 3000);
    scene_see(scene, scene_party_gain(scene, party, 2), -3000);
    scene_see(scene, crowd_gains(&crowd), 0);
    crowd_close(&crowd);
}

static void friend_is_right(struct crowd *crowd)
{
    static const struct scene_verdicts verdicts = {.of = {[STAGE_FRIEND] = GAME_VERDICT_RIGHT}};
    struct scene *scene = crowd->scene;

    for (uint32_t i = scene->record.state.finalized; i < scene->record.state.drawn; i++) {
        scene_say(scene, i, &verdicts);
    }
}

/* The "-10 cannot be reached": two of twelve entries are the solver's, and only they have
 * the states. What they say counts for nothing beside ten nodes that saw nothing. */
ATTACK(two_partners_in_a_panel_of_twelve)
{
    static const int party[] = {STAGE_SOLVER, STAGE_FRIEND};
    struct crowd crowd;

    crowd_open(&crowd, scene, 10);
    scene->terms.steps = SCENE_STEPS;
    scene->terms.panel_least = 12;
    scene->terms.seats = 2;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, 2);
    crowd_until(&crowd, crowd_has_panel, HOUR_S);
    scene_accept(scene, STAGE_SOLVER);
    crowd.serving.hides_from = NOBODY;
    crowd.play = friend_is_right;
    commit(&crowd, 1);
    crowd_until(&crowd, crowd_is_open, 3 * DAY_S);
    close_job(&crowd);
    scene_see(scene, scene_party_gain(scene, party, 2), -2000);
    assert_true(scene_gain(scene, STAGE_CLIENT) >= -2 * (1000 + 2 * 100));
    assert_true(crowd_gains(&crowd) >= (scene->stage.anvil == NULL ? 0 : -20 * 10));
    crowd_close(&crowd);
}

static void friend_denies(struct crowd *crowd)
{
    static const struct scene_verdicts verdicts = {.unseen = {[STAGE_FRIEND] = true}};
    struct scene *scene = crowd->scene;

    for (uint32_t i = scene->record.state.finalized; i < scene->record.state.drawn; i++) {
        scene_say(scene, i, &verdicts);
    }
}

/* Twelve of fourteen entries are a rival's, who says of all that it cannot be had. The keeper had
 * it, and says so: the solver is paid whole, the nodes for what they saw. */
ATTACK(a_panel_that_denies_what_the_keeper_has)
{
    struct crowd crowd;
    int64_t paid;

    crowd_open(&crowd, scene, 2);
    crowd_keep(&crowd, STAGE_OTHER);
    scene->terms.panel_least = 14;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, 12);
    crowd_solve(&crowd, STAGE_SOLVER);
    crowd.play = friend_denies;
    crowd_until(&crowd, crowd_is_closed, 5 * DAY_S);
    crowd_part(&crowd);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 3000);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), 0);
    scene_see(scene, scene_gain(scene, STAGE_OTHER), 0);
    /* A fee of a later round has half a thousandth, and nodes pay gas on a chain. */
    paid = scene_gain(scene, STAGE_CLIENT) + crowd_gains(&crowd);
    assert_true(paid <= -3000 + 3 && paid >= -3000 - (scene->stage.anvil == NULL ? 3 : 60));
    assert_true(crowd_gains(&crowd) >= (scene->stage.anvil == NULL ? 0 : -40));
    crowd_close(&crowd);
}

/* States come so late that each replay ends after the seal. The seats are silent three times, and
 * lose nothing but the fees. */
ATTACK(a_solver_that_serves_too_late)
{
    struct crowd crowd;

    crowd_open(&crowd, scene, 2);
    scene->terms.panel_least = 2;
    take_job(&crowd);
    crowd.serving.takes_s = LONG_REPLAY_S;
    commit(&crowd, SCENE_SEGMENTS);
    crowd_until(&crowd, crowd_is_closed, 5 * DAY_S);
    crowd_part(&crowd);
    scene_see(scene, crowd_gains(&crowd), 0);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -3000);
    crowd_close(&crowd);
}

/* Nobody drew while the seed's block could be shown, so the solver would have its lie uncovered: a
 * draw that comes late covers. The nodes convict it. */
ATTACK(a_lie_that_waits_for_a_late_draw)
{
    struct crowd crowd;

    crowd_open(&crowd, scene, 2);
    scene->terms.coverage_ppm = 0;
    scene->terms.panel_least = 2;
    take_job(&crowd);
    scene_commit(scene, STAGE_SOLVER, 1);
    scene_pass_blocks(scene, 300);
    crowd_until(&crowd, crowd_is_open, 3 * DAY_S);
    assert_true(scene->record.convicted);
    close_job(&crowd);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -10000);
    scene_see(scene, crowd_gains(&crowd), 2500);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), 2500);
    crowd_close(&crowd);
}

/* A friend of the guesser shows the wrong leaf at once, before anybody can: it has sealed nothing.
 * The node that replayed has half of the bond. */
static void guess_and_copy(struct crowd *crowd)
{
    static const struct scene_verdicts verdicts = {.of = {[STAGE_FRIEND] = GAME_VERDICT_RIGHT},
                                                   .made_up = {[STAGE_FRIEND] = true}};
    struct scene *scene = crowd->scene;
    uint32_t place = 0;
    int player = 0;

    if (scene->record.state.drawn == 0 || scene->record.state.finalized > 0) {
        return;
    }
    scene_say(scene, 0, &verdicts);
    scene_read(scene);
    for (uint32_t n = 0; player >= 0 && player != STAGE_FRIEND; n++) {
        player = scene_seat(scene, 0, n, &place);
    }
    for (uint32_t i = 0; i < scene->record.seat_count && player == STAGE_FRIEND; i++) {
        if (scene->record.seats[i].place == place &&
            scene->record.seats[i].state.phase == GAME_SEAT_REVEALED) {
            assert_int_equal(scene_challenge_unsealed(scene, STAGE_SECOND, 0, STAGE_FRIEND, 7),
                             GAME_NOT_SEALED);
            crowd->play = NULL;
        }
    }
}

ATTACK(a_challenge_that_is_copied)
{
    struct crowd crowd;

    crowd_open(&crowd, scene, 4);
    scene->terms.steps = SCENE_STEPS;
    scene->terms.stake = 4 * WEI_PER_ETHER;
    scene->terms.seats = 5;
    scene->terms.panel_least = 5;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, 1);
    crowd_solve(&crowd, STAGE_SOLVER);
    crowd.play = guess_and_copy;
    crowd_until(&crowd, crowd_is_closed, 3 * DAY_S);
    assert_null(crowd.play);
    crowd_part(&crowd);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 1000);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), -2000);
    scene_see(scene, scene_gain(scene, STAGE_SECOND), 0);
    scene_see(scene, crowd_gains(&crowd), 4 * 100 + 1000);
    crowd_close(&crowd);
}

/* A fee of a gwei for ten minutes of work: a step is tried, and then no bond is locked. */
ATTACK(one_gwei)
{
    struct crowd crowd;

    crowd_open(&crowd, scene, 2);
    scene->terms.fee = WEI_PER_GWEI;
    scene->terms.bond = 20 * WEI_PER_GWEI;
    crowd.serving.step_s = 600 / SCENE_STEPS;
    scene_open_job(scene);
    crowd_live(&crowd, 6 * HOUR_S);
    scene_read(scene);
    assert_int_equal(scene->record.state.entries, 0);
    close_job(&crowd);
    scene_see(scene, crowd_gains(&crowd), 0);
    crowd_close(&crowd);
}

/* States of eight gigabytes, over lines of so many megabytes a second: the first segment measures
 * them. Of the others nothing comes in time, though somebody answers. */
static void open_lines(struct crowd *crowd, struct scene *scene, const uint64_t megabytes_s[LINES])
{
    static const char *const mirrors[] = {"http://mirror.example"};

    crowd_open(crowd, scene, LINES);
    scene->terms.seats = LINES;
    scene->terms.panel_least = LINES;
    for (uint32_t i = 0; i < LINES; i++) {
        crowd->nodes[i].node.options.mirrors = mirrors;
        crowd->nodes[i].node.options.mirror_count = 1;
        crowd->nodes[i].checks.state_bytes = 8192 * MEGABYTE;
        crowd->nodes[i].checks.line_bytes_s = megabytes_s[i] * MEGABYTE;
    }
    take_job(crowd);
    commit(crowd, 1);
    crowd_live(crowd, HOUR_S);
    crowd->serving.hides_from = 1;
    commit(crowd, SCENE_SEGMENTS - 1);
}

static uint32_t count_denials(struct crowd *crowd, uint32_t node)
{
    const struct address *owner = signer_address(crowd->nodes[node].signer);
    uint32_t count = 0;

    scene_read(crowd->scene);
    for (uint32_t i = 0; i < crowd->scene->record.seat_count; i++) {
        const struct job_record_seat *seat = &crowd->scene->record.seats[i];

        count += seat->state.phase == GAME_SEAT_UNSEEN && address_equal(&seat->owner, owner);
    }
    return count;
}

/* A line that takes more than half of the seal period says nothing about the solver. */
ATTACK(a_line_that_is_too_slow)
{
    static const uint64_t megabytes_s[LINES] = {2, 100};
    struct crowd crowd;

    open_lines(&crowd, scene, megabytes_s);
    crowd_live(&crowd, 2 * HOUR_S);
    assert_int_equal(count_denials(&crowd, 0), 0);
    assert_int_equal(count_denials(&crowd, 1), SCENE_SEGMENTS - 1);
    crowd_close(&crowd);
}

/* So a panel whose lines are all too slow takes nothing of an honest solver. */
ATTACK(a_panel_with_slow_lines)
{
    static const uint64_t megabytes_s[LINES] = {1, 2};
    struct crowd crowd;

    open_lines(&crowd, scene, megabytes_s);
    crowd_until(&crowd, crowd_is_closed, 5 * DAY_S);
    crowd_part(&crowd);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 3000);
    scene_see(scene, crowd_gains(&crowd), 2 * 100);
    scene_see(scene, scene_gain(scene, STAGE_CLIENT), -3000 - 2 * 100);
    crowd_close(&crowd);
}

static uint32_t replays;

static void count_replays(const struct check_request *request)
{
    replays += !request->trial && !request->states;
}

/* It denies until many rights are wanted, and is right then: paying them empties the pool. */
static void farm_pool(struct scene *scene)
{
    static const struct scene_verdicts farms = {.unseen = {[STAGE_FRIEND] = true}};
    static const struct scene_verdicts reaps = {.of = {[STAGE_FRIEND] = GAME_VERDICT_RIGHT}};

    scene_draw(scene, 0);
    for (int i = 0; i < FARMED_ROUNDS; i++) {
        scene_round(scene, 0, &farms, NULL);
        scene_next_round(scene, STAGE_FRIEND, 0);
    }
    scene_round(scene, 0, &reaps, NULL);
    scene_pass(scene, GAME_WAITS_MAX * scene->terms.claim_period_s);
    scene_settle(scene, STAGE_FRIEND, 0);
    assert_int_equal(scene->record.state.finalized, 1);
}

static int64_t count_passed_seats(struct crowd_node *node)
{
    int64_t count = 0;
    struct error error;

    error_init(&error);
    stage_check(database_number(&node->store.sql, &count, 0, &error,
                                "SELECT count(*) FROM seats p JOIN notes n ON n.segment = p.segment"
                                " AND n.place = p.place WHERE p.ours AND n.reason LIKE"
                                " 'it is not replayed: the fees%'",
                                ""),
                &error);
    return count;
}

/* A farmer has had all fees before the node was there. The node sits, and replays nothing: nobody
 * would pay for it. */
ATTACK(a_pool_that_pays_no_more)
{
    static const int party[] = {STAGE_CLIENT, STAGE_FRIEND};
    struct crowd crowd;

    crowd_open(&crowd, scene, 1);
    crowd.fetch = count_replays;
    crowd.nodes[0].node.options.entries = 4;
    crowd.nodes[0].node.options.extra = 0;
    crowd.serving.hides_job = true;
    replays = 0;
    scene->terms.steps = 2 * (uint64_t)SCENE_STEPS;
    scene->terms.segment_period_s = 2 * DAY_S;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, DEAD);
    scene_accept(scene, STAGE_SOLVER);
    commit(&crowd, 1);
    farm_pool(scene);
    crowd.serving.hides_job = false;
    crowd_live(&crowd, HOUR_S);
    commit(&crowd, 1);
    crowd_until(&crowd, crowd_is_closed, 5 * DAY_S);
    assert_true(count_passed_seats(&crowd.nodes[0]) > 0);
    assert_int_equal(replays, 0);
    crowd_part(&crowd);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 2000);
    scene_see(scene, crowd_gains(&crowd), 0);
    scene_see(scene, scene_party_gain(scene, party, 2), -2000);
    assert_true(scene_gain(scene, STAGE_FRIEND) > (2 * 3 - 1) * 100);
    crowd_close(&crowd);
}

/* ---- a node that is sent to its own machine ------------------------------------------------ */

enum {
    CALLS_MAX = 16,
};

/* Where this machine alone can call; nobody answers there. */
static int listen_here(char url[64])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, CALLS_MAX), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(url, 64, "http://localhost:%u/own", ntohs(address.sin_port));
    return listener;
}

static uint32_t count_calls(int listener)
{
    uint32_t count = 0;

    for (int caller = accept(listener, NULL, NULL); caller >= 0;
         caller = accept(listener, NULL, NULL)) {
        (void)close(caller);
        count++;
    }
    return count;
}

/* As a child does it: whom the request names is called, and nobody answers. */
static void fetch_in_vain(const struct check_request *request)
{
    struct check_result *result = calloc(1, sizeof(*result));

    assert_non_null(result);
    check_run(result, request, NULL, NULL);
    assert_int_equal(result->outcome, CHECK_CANNOT_TELL);
    free(result);
}

/* The "SSRF": the client names an address of the node's own machine. It is called on the
 * word of the node's user alone. */
ATTACK(a_node_sent_to_its_own_loopback)
{
    struct game_bytes contact;
    struct crowd crowd;
    char url[64];
    const int listener = listen_here(url);

    crowd_open(&crowd, scene, 2);
    crowd.fetch = fetch_in_vain;
    crowd.serving.hides_job = true;
    for (uint32_t i = 0; i < crowd.node_count; i++) {
        crowd.nodes[i].node.options.mirror_timeout_s = 1;
    }
    scene_open_job(scene);
    contact = (struct game_bytes){(const uint8_t *)url, strlen(url)};
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_announce, &scene->job, &contact);
    crowd_live(&crowd, HOUR_S);
    assert_int_equal(count_calls(listener), 0);
    scene_read(scene);
    assert_int_equal(scene->record.state.entries, 0);
    crowd.nodes[0].node.options.contact_reach = HTTP_REACH_ANY;
    crowd_live(&crowd, HOUR_S);
    assert_true(count_calls(listener) > 0);
    (void)close(listener);
    crowd_close(&crowd);
}

/* ---- which of them ------------------------------------------------------------------------ */

enum {
    TESTS = 15,
};

static bool is_any_named(const struct CMUnitTest tests[TESTS], const char *pattern)
{
    for (size_t i = 0; i < TESTS; i++) {
        if (fnmatch(pattern, tests[i].name, 0) == 0) {
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[TESTS] = {
        EMBEDDED(dead_entries),
        EMBEDDED(blind_enlistment),
        EMBEDDED(ransom_of_the_last_state),
        EMBEDDED(the_last_segment_never_comes),
        EMBEDDED(a_panel_of_the_client_asleep),
        EMBEDDED(two_partners_in_a_panel_of_twelve),
        EMBEDDED(a_panel_that_denies_what_the_keeper_has),
        EMBEDDED(a_solver_that_serves_too_late),
        EMBEDDED(a_lie_that_waits_for_a_late_draw),
        EMBEDDED(a_challenge_that_is_copied),
        EMBEDDED(one_gwei),
        EMBEDDED(a_node_sent_to_its_own_loopback),
        EMBEDDED(a_line_that_is_too_slow),
        EMBEDDED(a_panel_with_slow_lines),
        EMBEDDED(a_pool_that_pays_no_more),
    };
    const struct CMUnitTest soak[TESTS] = {
        CHAIN(dead_entries),
        CHAIN(blind_enlistment),
        CHAIN(ransom_of_the_last_state),
        CHAIN(the_last_segment_never_comes),
        CHAIN(a_panel_of_the_client_asleep),
        CHAIN(two_partners_in_a_panel_of_twelve),
        CHAIN(a_panel_that_denies_what_the_keeper_has),
        CHAIN(a_solver_that_serves_too_late),
        CHAIN(a_lie_that_waits_for_a_late_draw),
        CHAIN(a_challenge_that_is_copied),
        CHAIN(one_gwei),
        CHAIN(a_node_sent_to_its_own_loopback),
        CHAIN(a_line_that_is_too_slow),
        CHAIN(a_panel_with_slow_lines),
        CHAIN(a_pool_that_pays_no_more),
    };
    int failed;

    if (argc > 1) {
        if (!is_any_named(tests, argv[1]) && !is_any_named(soak, argv[1])) {
            (void)fprintf(stderr, "nodes_test: no test has a name like '%s'\n", argv[1]);
            return 2;
        }
        cmocka_set_test_filter(argv[1]);
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    return argc == 1 && test_soak_minutes() == 0
               ? failed
               : failed + cmocka_run_group_tests(soak, NULL, NULL);
}
