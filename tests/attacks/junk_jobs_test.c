/*
 * Goal: jobs that nobody means exhaust no panel for others, and take nothing of who sits in one.
 * Method: a client opens jobs with the best of terms that would hold bonds for years, by their
 * deadline, clock or seal period: the node enlists in none. Then it opens one job after the other
 * with terms as good, which no solver will take, until the node that asks its policy locks nothing
 * more for it. An honest client comes, and finds the node. Then another party helps, and they fill
 * all that the node locks: the next dear job waits until junk ends, with its deadline at the
 * latest. Nobody has lost anything but the gas of who made the junk. The node is the real one, with
 * the policy of its defaults.
 */
#include "tests/support/test.h"

#include <unistd.h>

#include "tests/support/dispute/cheat.h"
#include "tests/support/game/market.h"
#include "verifier/dispute/dispute_child.h"

#define ETH WEI_PER_ETHER

enum {
    STEPS = 12,
    SEGMENT = 4,
    JUNK = 3, /* jobs of a party */
    ROUNDS_MAX = 10000,
    ROUNDS_MORE = 40,
    YEAR_S = 365 * 86400,
};

/* Two are a party's share of a purse, a hundredth, and four all that a node locks. */
static wei large_bond;

static void dear(struct game_terms *terms)
{
    terms->bond = large_bond;
    terms->fee = large_bond / 5; /* a good one */
    terms->stake = 4 * large_bond;
    terms->reward = 4 * large_bond;
    terms->segment_period_s = 86400;
}

static void junk(struct game_terms *terms)
{
    dear(terms);
    terms->panel_least = 200; /* that many will not come: so no solver can accept */
}

static void far_deadline(struct game_terms *terms)
{
    dear(terms);
    terms->deadline_s += 3 * YEAR_S;
}

static void long_clock(struct game_terms *terms)
{
    dear(terms);
    terms->clock_s = GAME_PERIOD_MAX;
}

static void long_seal(struct game_terms *terms)
{
    dear(terms);
    terms->seal_period_s = GAME_PERIOD_MAX;
}

static void (*const for_years[JUNK])(struct game_terms *terms) = {far_deadline, long_clock,
                                                                  long_seal};

/* No time passes for a child that runs: a busy machine is no failure. */
static void play_round(struct market_node *node)
{
    struct error error;
    bool busy = false;

    error_init(&error);
    do {
        if (node_round(&node->node, &busy, &error) != STATUS_OK) {
            fail_msg("%s", error.text);
        }
        (void)usleep(2000);
    } while (node->node.running_count > 0);
    market_pass_time(node->market, 1);
}

static uint32_t of_the_node(struct market_node *node, enum game_event_kind kind)
{
    return market_count(node->market, kind, signer_address(node->market->signers[MARKET_VERIFIER]));
}

/* Rounds until so many events are about the node's account; and then there are no more. A node with
 * something refused for now is never quiet. */
static void see(struct market_node *node, enum game_event_kind kind, uint32_t wanted)
{
    for (int i = 0; i < ROUNDS_MAX && of_the_node(node, kind) < wanted; i++) {
        play_round(node);
    }
    for (int i = 0; i < ROUNDS_MORE; i++) {
        play_round(node);
    }
    assert_int_equal(of_the_node(node, kind), wanted);
}

static void see_none_for_years(struct market_node *node, const struct job *job)
{
    struct market *market = node->market;
    struct hash32 jobs[JUNK];

    for (int i = 0; i < JUNK; i++) {
        market->retouch = for_years[i];
        jobs[i] = market_open_job(market, job);
    }
    see(node, GAME_ENLISTED, 0);
    assert_int_equal(market_node_number(node, "SELECT count(*) FROM wishes WHERE reason LIKE"
                                              " 'the policy: %(--lock-time-max)'"),
                     JUNK);
    for (int i = 0; i < JUNK; i++) {
        market_close_job(market, &jobs[i]);
    }
}

static void open_junk(struct market *market, struct hash32 jobs[JUNK], const struct job *job,
                      enum market_player client)
{
    market->client = client;
    market->retouch = junk;
    for (int i = 0; i < JUNK; i++) {
        jobs[i] = market_open_job(market, job);
    }
    market->client = MARKET_CLIENT;
    market->retouch = dear;
}

static void cancel_junk(struct market *market, const struct hash32 jobs[JUNK],
                        enum market_player client)
{
    market->client = client;
    for (int i = 0; i < JUNK; i++) {
        market_close_job(market, &jobs[i]);
    }
    market->client = MARKET_CLIENT;
}

/* Within the gas of what it did. */
static void see_as_before(struct market *market, enum market_player player, wei before)
{
    wei gas = market->anvil == NULL ? 0 : ETH / 10;
    wei now = market_money(market, player);

    assert_true(now <= before && now + gas >= before);
}

/* A node tries a job before it enlists: here is where it finds it. */
static const char *mirror_of_the_job(const char *name)
{
    const char *path = small_path(name);
    uint64_t random = 1;

    cheat_bundle_new(path, small_job_of_steps(STEPS, SEGMENT), CHEAT_NOT, 0, &random);
    return path;
}

static void play(bool embedded, const char *name)
{
    const char *mirror = mirror_of_the_job(embedded ? "junk-run" : "junk-run-evm");
    struct job *job = small_job_of_steps(STEPS, SEGMENT);
    struct market_node node;
    struct market market;
    struct hash32 one[JUNK];
    struct hash32 other[JUNK];
    struct hash32 honest[2];
    wei before[MARKET_PLAYERS];

    market_open(&market, embedded, name);
    for (int i = 0; i < MARKET_PLAYERS; i++) {
        before[i] = market_money(&market, i);
    }
    large_bond = before[MARKET_VERIFIER] / 202; /* gas makes the purse smaller */
    market_node_defaults(&node, &market, mirror);
    node.options.entries = 1;
    node.options.policy = policy_default();
    market_node_open(&node);

    see_none_for_years(&node, job);
    open_junk(&market, one, job, MARKET_RIVAL);
    see(&node, GAME_ENLISTED, 2);
    honest[0] = market_open_job(&market, job);
    see(&node, GAME_ENLISTED, 3);

    open_junk(&market, other, job, MARKET_SOLVER);
    see(&node, GAME_ENLISTED, 4);
    honest[1] = market_open_job(&market, job);
    see(&node, GAME_ENLISTED, 4);
    assert_true(market_money(&market, MARKET_VERIFIER) >=
                before[MARKET_VERIFIER] - before[MARKET_VERIFIER] / 50);

    cancel_junk(&market, one, MARKET_RIVAL);
    see(&node, GAME_ENLISTED, 6); /* for the dear job, and for junk of the other party */

    cancel_junk(&market, other, MARKET_SOLVER);
    market_close_job(&market, &honest[0]);
    market_close_job(&market, &honest[1]);
    see(&node, GAME_GONE, 6);
    for (int i = 0; i < MARKET_PLAYERS; i++) {
        see_as_before(&market, i, before[i]);
    }
    market_node_close(&node);
    market_close(&market);
    job_free(job);
}

static void test_junk_jobs_exhaust_no_panel(void **state)
{
    (void)state;
    play(true, "junk");
}

static void test_junk_jobs_exhaust_no_panel_on_a_chain(void **state)
{
    (void)state;
    play(false, "junk-evm");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_junk_jobs_exhaust_no_panel),
        cmocka_unit_test(test_junk_jobs_exhaust_no_panel_on_a_chain),
    };

    if (workers_asked(argc, argv)) {
        return workers_serve(argv, &dispute_child);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
