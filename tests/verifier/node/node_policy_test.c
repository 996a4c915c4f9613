/*
 * Goal: what a node's bonds lock is counted once: entries that are sent and on the ledger, claims,
 * also where the limit is a share of what the account has; and a bond that has come back makes room
 * for another. What its children fetch at once is together no more than its bandwidth.
 * Method: the real node on an embedded ledger, with room for two bonds of an entry, or for one of a
 * claim, and with jobs that want more. tests/attacks/honeypot_test.c has what is lost.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/dispute/cheat.h"
#include "tests/support/game/market.h"
#include "verifier/dispute/dispute_child.h"
#include "verifier/node/node_children.h"

enum {
    STEPS = 12,
    SEGMENT = 4,
    SEGMENTS = 3,
    FALSE_STEP = 1,
    ROUNDS = 40,
    ENTRIES = 16,
};

#define BOND (WEI_PER_ETHER / 10)

static int some_jobs;

static const char *make_run(const char *name, uint64_t seed, enum cheat cheat)
{
    const char *path = small_path(name);
    struct small_job_options options;
    uint64_t random = seed;

    small_job_of_kind(&options, MODEL_MLP);
    options.steps = STEPS;
    options.segment_length = SEGMENT;
    options.model.seed = seed;
    cheat_bundle_new(path, small_job_new(&options), cheat, FALSE_STEP, &random);
    return path;
}

static const struct address *verifier(const struct market *market)
{
    return signer_address(market->signers[MARKET_VERIFIER]);
}

static struct policy_cap amount(wei amount)
{
    return (struct policy_cap){.set = true, .amount = amount};
}

/* A node with something refused for now is never quiet. */
static void some_rounds(struct market_node *node)
{
    for (int i = 0; i < ROUNDS;) {
        struct error error;
        bool busy = false;

        error_init(&error);
        if (node_round(&node->node, &busy, &error) != STATUS_OK) {
            fail_msg("%s", error.text);
        }
        if (node->node.running_count > 0) {
            (void)usleep(2000);
        } else {
            i++;
            market_pass_time(node->market, 1);
        }
    }
}

static int64_t without_room(struct market_node *node)
{
    return market_node_number(node,
                              "SELECT count(*) FROM wishes WHERE reason LIKE 'no room for its bond:"
                              " %'");
}

/* ---- entries --------------------------------------------------------------------- */

/* A node tries a job before it enlists: where it finds it is written to `mirror`. */
static struct job *some_job(const char **mirror, uint64_t seed)
{
    struct small_job_options options;
    char name[32];

    (void)snprintf(name, sizeof(name), "some-job-%llu-%d", (unsigned long long)seed, some_jobs++);
    *mirror = make_run(name, seed, CHEAT_NOT);
    small_job_of_kind(&options, MODEL_MLP);
    options.steps = STEPS;
    options.segment_length = SEGMENT;
    options.model.seed = seed;
    return small_job_new(&options);
}

static void see_two_at_a_time(const char *name, const struct policy *policy)
{
    const char *mirror;
    struct job *job = some_job(&mirror, 3);
    struct market_node node;
    struct market market;
    struct hash32 first;

    market_open(&market, true, name);
    first = market_open_job(&market, job);
    market_node_defaults(&node, &market, mirror);
    node.options.entries = 4;
    node.options.policy = *policy;
    market_node_open(&node);
    some_rounds(&node);
    assert_int_equal(market_count(&market, GAME_ENLISTED, verifier(&market)), 2);
    assert_int_equal(without_room(&node), 1);
    market_close_job(&market, &first);
    some_rounds(&node);
    assert_int_equal(market_count(&market, GAME_GONE, verifier(&market)), 2);
    (void)market_open_job(&market, job); /* there is room again */
    some_rounds(&node);
    assert_int_equal(market_count(&market, GAME_ENLISTED, verifier(&market)), 4);
    market_node_close(&node);
    market_close(&market);
    job_free(job);
}

static void test_bonds_that_come_back_make_room(void **state)
{
    const struct policy all = {.lock_all = amount(2 * BOND)};
    const struct policy job = {.lock_job = amount(3 * BOND - 1)};
    const struct policy party = {.lock_party = amount(2 * BOND)};

    (void)state;
    see_two_at_a_time("all", &all);
    see_two_at_a_time("job", &job);
    see_two_at_a_time("party", &party);
}

/* A limit of one job leaves another alone, one for a party does not. */
static void see_entries_of_two_jobs(const char *name, const struct policy *policy, uint32_t wanted)
{
    const char *mirror;
    struct job *job = some_job(&mirror, 5);
    struct market_node node;
    struct market market;

    market_open(&market, true, name);
    (void)market_open_job(&market, job);
    (void)market_open_job(&market, job);
    market_node_defaults(&node, &market, mirror);
    node.options.entries = 3;
    node.options.policy = *policy;
    market_node_open(&node);
    some_rounds(&node);
    assert_int_equal(market_count(&market, GAME_ENLISTED, verifier(&market)), wanted);
    market_node_close(&node);
    market_close(&market);
    job_free(job);
}

static void test_jobs_of_one_party_share_its_limit(void **state)
{
    const struct policy job = {.lock_job = amount(2 * BOND)};
    const struct policy party = {.lock_party = amount(2 * BOND)};

    (void)state;
    see_entries_of_two_jobs("two-jobs", &job, 4);
    see_entries_of_two_jobs("one-party", &party, 2);
}

static wei quarter; /* of all that the node has */

static void dear(struct game_terms *terms)
{
    terms->bond = quarter;
    terms->fee = quarter / 10;
    terms->stake = 2 * quarter;
}

/* A share of what the account has is exactly enough for two bonds, while they are sent and when the
 * ledger has them: neither is in the account twice, and a third finds no room. */
static void test_bonds_that_are_sent_make_nobody_richer(void **state)
{
    const struct policy half = {
        .lock_all = {.set = true, .is_share = true, .share_ppm = POLICY_WHOLE_PPM / 2}};
    const char *mirror;
    struct job *job = some_job(&mirror, 6);
    struct market_node node;
    struct market market;

    (void)state;
    market_open(&market, true, "half");
    quarter = market_money(&market, MARKET_VERIFIER) / 4;
    market.retouch = dear;
    for (int i = 0; i < 4; i++) {
        (void)market_open_job(&market, job);
    }
    market_node_defaults(&node, &market, mirror);
    node.options.entries = 1;
    node.options.policy = half;
    market_node_open(&node);
    some_rounds(&node);
    assert_int_equal(market_count(&market, GAME_ENLISTED, verifier(&market)), 2);
    market_node_close(&node);
    market_close(&market);
    job_free(job);
}

/* ---- claims -------------------------------------------------------------------------- */

/* Two false steps, and room for the bond of one claim: the second is claimed when the first has
 * won, while there is time. */
static void test_a_claim_that_finds_no_room_is_made_later(void **state)
{
    const char *path = make_run("first-lie", 7, CHEAT_ULP);
    const char *second = make_run("second-lie", 8, CHEAT_ULP);
    struct market_node node;
    struct market market;

    (void)state;
    market_open(&market, true, "claims");
    market.seats = 0;
    (void)market_commit(&market, path);
    (void)market_commit(&market, second);
    market_node_defaults(&node, &market, path);
    node.mirrors[1] = second;
    node.options.mirror_count = 2;
    node.options.mode = NODE_DEFEND;
    node.options.policy = (struct policy){.lock_all = amount(2 * BOND - 1)};
    market_node_open(&node);
    some_rounds(&node);
    assert_int_equal(market_count(&market, GAME_CLAIMED, verifier(&market)), 1);
    assert_true(market_node_number(&node, "SELECT count(*) FROM actions WHERE trouble LIKE"
                                          " 'the policy: the bond %--lock-max%'") > 0);
    market_pass_time(&market, MARKET_CLOCK_S);
    some_rounds(&node);
    market_pass_time(&market, 120);
    some_rounds(&node);
    assert_int_equal(market_count(&market, GAME_CONVICTED, NULL), 1);
    assert_int_equal(market_count(&market, GAME_CLAIMED, verifier(&market)), 2);
    market_node_close(&node);
    market_close(&market);
}

/* ---- the time of a check ----------------------------------------------------------------- */

/* A node that checked a job slowly finds its periods too short, and departs from its panel as soon
 * as no solver has it. The log says so once, with the option. */
static void test_a_node_departs_where_it_is_too_slow(void **state)
{
    const char *path = make_run("slow", 9, CHEAT_NOT);
    struct market_node node;
    struct market market;
    struct error error;
    struct log log;
    char *said = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&said, &size);
    const char *line;

    (void)state;
    market_open(&market, true, "slow");
    market.entries[MARKET_RIVAL] = 1;          /* a panel has one at least */
    market.entries[MARKET_VERIFIER] = ENTRIES; /* or chance may give it no seat */
    (void)market_commit(&market, path);
    market_node_defaults(&node, &market, path);
    node.options.policy = (struct policy){.clock_factor = 3 * POLICY_ONE};
    market_node_open(&node);
    assert_non_null(stream);
    log_init(&log, stream, LOG_LEVEL_INFO, LOG_FORMAT_PLAIN);
    node.node.ports.log = &log;
    for (int i = 0; i < 10 && market_count(&market, GAME_SEALED_VERDICT, verifier(&market)) == 0;
         i++) {
        some_rounds(&node);
    }
    if (market_count(&market, GAME_SEALED_VERDICT, verifier(&market)) == 0) {
        (void)fflush(stream);
        fail_msg("no verdict was sealed: %s", said);
    }
    error_init(&error);
    assert_int_equal(
        database_run(&node.store.sql, &error, "UPDATE tasks SET ended_ms = begun_ms + 1201000", ""),
        STATUS_OK);
    some_rounds(&node);
    assert_int_equal(market_count(&market, GAME_GONE, verifier(&market)), 0);
    assert_int_equal(market_node_number(&node, "SELECT count(*) FROM wishes WHERE wish = 3 AND"
                                               " reason LIKE '%--clock-factor%'"),
                     1);
    node.node.ports.log = NULL;
    (void)fclose(stream);
    line = strstr(said, "departing from its panel: ");
    assert_non_null(line);
    assert_non_null(strstr(line, "--clock-factor"));
    assert_null(strstr(line + 1, "departing from its panel: "));
    free(said);
    market_node_close(&node);
    market_close(&market);
}

/* ---- bandwidth --------------------------------------------------------------------------- */

struct started {
    uint64_t bandwidth; /* of all together */
    uint32_t count;
};

static enum status count_start(void *context, uint64_t number, const struct check_request *request,
                               struct error *error)
{
    struct started *started = context;

    (void)number;
    (void)error;
    assert_true(request->bandwidth_max > 0); /* no limit */
    started->bandwidth += request->bandwidth_max;
    started->count++;
    return STATUS_OK;
}

/* Starts children of one kind until none is free. */
static void start_all(struct market_node *node, const struct store_segment *segment, bool states,
                      const struct hash32 *claim)
{
    static int64_t number = 1000;
    struct check_request *request;
    struct error error;
    enum status status = STATUS_OK;

    error_init(&error);
    while (status == STATUS_OK) {
        assert_int_equal(node_request(&node->node, &request, segment, &error), STATUS_OK);
        request->states = states;
        status = node_start(&node->node, number++, claim, request, &error);
    }
    assert_int_equal(status, STATUS_NOT_FOUND);
}

static void see_shares(struct market_node *node, const struct hash32 *job, uint32_t checks,
                       uint64_t bandwidth)
{
    struct started started = {0};
    struct store_segment segment;
    struct store_job found;
    struct check_request *trial;
    struct error error;

    error_init(&error);
    node->node.options.checks_max = checks;
    node->node.options.bandwidth_max = bandwidth;
    node->node.ports.checks.context = &started;
    node->node.ports.checks.start = count_start;
    memset(node->node.running, 0, sizeof(node->node.running));
    node->node.running_count = 0;
    assert_int_equal(store_segment(&node->store, &segment, job, 0, &error), STATUS_OK);
    start_all(node, &segment, false, NULL);
    start_all(node, &segment, true, NULL);
    start_all(node, &segment, false, job);
    assert_true(started.count > checks);
    assert_true(started.bandwidth <= bandwidth);
    assert_true(started.bandwidth + started.count > bandwidth); /* and nothing is left unused */
    assert_int_equal(store_job(&node->store, &found, job, &error), STATUS_OK);
    assert_int_equal(node_trial_request(&node->node, &trial, &found, &error), STATUS_OK);
    assert_true(trial->bandwidth_max * started.count <= bandwidth);
    free(trial);
}

/* What the most children that run at once may fetch is together no more than the node may. */
static void test_all_children_share_the_bandwidth(void **state)
{
    const char *path = make_run("bandwidth", 11, CHEAT_NOT);
    struct market_node node;
    struct market market;
    struct hash32 job;

    (void)state;
    market_open(&market, true, "bandwidth");
    job = market_commit(&market, path);
    market_node_defaults(&node, &market, path);
    node.options.mode = NODE_OBSERVE;
    market_node_open(&node);
    market_node_settle(&node);
    see_shares(&node, &job, 1, 1 << 20);
    see_shares(&node, &job, 3, (1 << 20) + 4);
    see_shares(&node, &job, 5, 7);
    memset(node.node.running, 0, sizeof(node.node.running));
    node.node.running_count = 0;
    market_node_close(&node);
    market_close(&market);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bonds_that_come_back_make_room),
        cmocka_unit_test(test_jobs_of_one_party_share_its_limit),
        cmocka_unit_test(test_bonds_that_are_sent_make_nobody_richer),
        cmocka_unit_test(test_a_claim_that_finds_no_room_is_made_later),
        cmocka_unit_test(test_a_node_departs_where_it_is_too_slow),
        cmocka_unit_test(test_all_children_share_the_bandwidth),
    };

    if (workers_asked(argc, argv)) {
        return workers_serve(argv, &dispute_child);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
