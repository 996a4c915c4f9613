/*
 * Goal: a node finds every cheat that it looks at and raises the alarm or claims at the very step,
 * never against an honest solver, and is paid for what is right, on both ledgers.
 * Method: whole jobs of every model with random lies at random steps, with the real node, which
 * samples at random, and its children; every event on the ledger and the exact money are looked at.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/hex.h"
#include "base/host.h"
#include "proofs/mirror/kept.h"
#include "tests/support/dispute/cheat.h"
#include "tests/support/game/market.h"
#include "verifier/check/check.h"
#include "verifier/node/node_children.h"
#include "verifier/store/keep.h"

enum {
    STEPS = 12,
    SEGMENT = 4,
    SEGMENTS = 3,
    RUNS_SOAK = 280,
    RUNS = 14,
    JOBS_SOAK = 200,
    JOBS = 24,
    TWO_WEEKS_S = 14 * 86400 - 3600, /* but for what passes meanwhile */
};

static struct job *small_mlp(uint64_t seed)
{
    struct small_job_options options;

    small_job_of_kind(&options, MODEL_MLP);
    options.steps = STEPS;
    options.segment_length = SEGMENT;
    options.model.seed = seed;
    return small_job_new(&options);
}

static const char *run_path(uint64_t number)
{
    char name[64];

    (void)snprintf(name, sizeof(name), "run-%llu", (unsigned long long)number);
    return small_path(name);
}

static const struct address *verifier(const struct market *market)
{
    return signer_address(market->signers[MARKET_VERIFIER]);
}

/* ---- endings -------------------------------------------------------------- */

/* Every segment has our verdict, is final and paid. */
static void see_honest_job_paid(struct market *market, struct market_node *node,
                                const struct hash32 *job)
{
    uint32_t before = market_count(market, GAME_FEE_PAID, verifier(market));

    market_node_settle(node);
    market_pass_time(market, MARKET_SEAL_S + 1);
    market_node_settle(node);
    market_pass_time(market, MARKET_REVEAL_S + MARKET_CLAIM_S);
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        market_settle(market, job, i);
    }
    market_node_settle(node);
    assert_int_equal(market_job(market, job).phase, GAME_PHASE_CLOSED);
    assert_int_equal(market_count(market, GAME_FEE_PAID, verifier(market)) - before, SEGMENTS);
    assert_int_equal(market_node_number(node, "SELECT count(*) FROM entries WHERE NOT gone"), 0);
    assert_int_equal(market_node_number(node, "SELECT count(*) FROM facts WHERE name ="
                                              " 'verdict_s' AND value > 0"),
                     1);
}

/* The claim names the step that was lied about; the solver says nothing and is convicted. */
static void see_cheat_convicted(struct market *market, struct market_node *node,
                                const struct hash32 *job, uint64_t step)
{
    struct ledger_entry entry = {0};
    struct error error;
    uint32_t claims = 0;

    market_node_settle(node);
    market_pass_time(market, MARKET_SEAL_S + 1);
    market_node_settle(node);
    error_init(&error);
    (void)!ledger_catch_up(market->ledgers[MARKET_CLIENT], &error);
    while (ledger_next(market->ledgers[MARKET_CLIENT], &entry, entry.number, 0, &error) ==
           STATUS_OK) {
        if (entry.event.kind == GAME_CLAIMED && hash32_equal(&entry.event.job, job)) {
            assert_int_equal(entry.event.index, step / SEGMENT);
            assert_int_equal(entry.event.step, step % SEGMENT);
            assert_true(address_equal(&entry.event.account, verifier(market)));
            claims++;
        }
    }
    assert_int_equal(claims, 1);
    market_pass_time(market, MARKET_CLOCK_S + 1);
    market_node_settle(node);
    assert_int_equal(market_job(market, job).phase, GAME_PHASE_OPEN);
    assert_int_equal(market_job(market, job).generation, 1);
}

static void play(struct market *market, uint64_t number, enum cheat cheat, uint64_t step,
                 uint64_t *random)
{
    const char *path = run_path(number);
    struct market_node node;
    struct hash32 job;
    uint32_t claims = market_count(market, GAME_CLAIMED, NULL);

    cheat_bundle_new(path, small_mlp(1000 + number), cheat, step, random);
    job = market_commit(market, path);
    market_node_defaults(&node, market, path);
    market_node_open(&node);
    if (cheat == CHEAT_NOT) {
        see_honest_job_paid(market, &node, &job);
        assert_int_equal(market_count(market, GAME_CLAIMED, NULL), claims);
    } else {
        see_cheat_convicted(market, &node, &job, step);
    }
    assert_int_equal(market_node_number(&node, "SELECT count(*) FROM facts WHERE name = 'fault'"),
                     0);
    market_node_close(&node);
}

/* ---- random runs ------------------------------------------------------------ */

struct tally {
    uint32_t made;
    uint32_t sampled;
    uint32_t claimed;
};

static uint32_t claims_about(struct market *market, const struct hash32 *job, uint32_t index,
                             uint32_t step)
{
    struct ledger_entry entry = {0};
    struct error error;
    uint32_t claims = 0;

    error_init(&error);
    while (ledger_next(market->ledgers[MARKET_CLIENT], &entry, entry.number, 0, &error) ==
           STATUS_OK) {
        if (entry.event.kind == GAME_CLAIMED && hash32_equal(&entry.event.job, job)) {
            assert_int_equal(entry.event.index, index);
            assert_int_equal(entry.event.step, step);
            claims++;
        }
    }
    return claims;
}

/* Did the node choose to look at this segment? */
static bool is_sampled(struct market_node *node, const struct hash32 *job, uint32_t index)
{
    char text[HEX_SIZE(HASH32_SIZE)];
    char query[256];

    hex_encode(text, job->bytes, HASH32_SIZE);
    (void)snprintf(query, sizeof(query),
                   "SELECT count(*) FROM tasks WHERE job = x'%s' AND idx = %u AND state = %d", text,
                   index, TASK_DONE);
    return market_node_number(node, query) > 0;
}

/* One job, and a node that samples what it likes. What it saw it must judge right. */
static void play_random(struct market *market, uint64_t number, struct tally *tally,
                        enum cheat cheat, uint64_t *random)
{
    struct small_job_options options;
    const char *path = run_path(number);
    uint64_t step = cheat == CHEAT_SEED ? 0 : test_random_below(random, STEPS);
    struct market_node node;
    struct hash32 job;
    uint32_t claims;
    bool sampled;

    small_job_of_kind(&options, (enum model_kind)test_random_below(random, MODEL_COUNT));
    options.steps = STEPS;
    options.segment_length = SEGMENT;
    options.model.seed = 1000 + number;
    cheat_bundle_new(path, small_job_new(&options), cheat, step, random);
    job = market_commit(market, path);
    market_node_defaults(&node, market, path);
    node.options.extra = (double)test_random_below(random, 5) / 4;
    node.options.mode = test_random_below(random, 4) == 0 ? NODE_DEFEND : NODE_ACT;
    market_node_open(&node);
    market_node_settle(&node);
    sampled = is_sampled(&node, &job, (uint32_t)(step / SEGMENT));
    claims = claims_about(market, &job, (uint32_t)(step / SEGMENT), (uint32_t)(step % SEGMENT));
    assert_int_equal(claims, cheat != CHEAT_NOT && sampled);
    if (claims > 0) {
        market_pass_time(market, MARKET_CLOCK_S + 1);
        market_node_settle(&node);
        assert_int_equal(market_job(market, &job).generation, 1);
    }
    assert_int_equal(market_node_number(&node, "SELECT count(*) FROM facts WHERE name = 'fault'"),
                     0);
    assert_int_equal(
        market_node_number(&node, "SELECT count(*) FROM tasks WHERE state = 2 AND outcome = 0"), 0);
    market_node_close(&node);
    tally->made++;
    tally->sampled += sampled;
    tally->claimed += claims;
}

/* ---- tests ---------------------------------------------------------------- */

static void test_each_cheat_that_is_sampled_is_claimed_and_no_honest_solver_is(void **state)
{
    uint64_t random = 2026;
    uint64_t runs = test_share(RUNS_SOAK, RUNS);
    struct tally tallies[CHEAT_KINDS] = {{0}};
    struct market market;

    (void)state;
    market_open(&market, true, "many");
    market.seats = 0; /* nobody has a place: what it samples is its own choice */
    /* Past the ledger's birth, blocks come with time and not with moves alone: a draw waits for
     * one, and a node that samples little may be all that moves. */
    market_pass_time(&market, (uint32_t)time(NULL));
    for (uint64_t i = 0; i < runs; i++) {
        enum cheat cheat = (enum cheat)(i % CHEAT_KINDS);

        play_random(&market, i, &tallies[cheat], cheat, &random);
    }
    market_close(&market);
    for (int i = 0; i < CHEAT_KINDS; i++) {
        print_message("# %s: %u made, %u sampled, %u claimed\n", cheat_name((enum cheat)i),
                      tallies[i].made, tallies[i].sampled, tallies[i].claimed);
    }
}

/* A node that looks at everything: each kind of cheat at a random step, and an honest job. */
static void test_each_cheat_is_convicted(void **state)
{
    uint64_t random = 2027;
    struct market market;

    (void)state;
    market_open(&market, true, "each");
    for (int i = 0; i < CHEAT_KINDS; i++) {
        uint64_t step = i == CHEAT_SEED ? 0 : test_random_below(&random, STEPS);

        play(&market, 4000 + (uint64_t)i, (enum cheat)i, step, &random);
    }
    market_close(&market);
}

static void test_a_cheat_and_an_honest_solver_on_a_chain(void **state)
{
    uint64_t random = 7;
    struct market market;

    (void)state;
    market_open(&market, false, "chain");
    play(&market, 5001, CHEAT_NOT, 0, &random);
    play(&market, 5002, CHEAT_ULP, 6, &random);
    market_close(&market);
}

/* The fee of each verdict; of a convicted solver's stake a quarter; and the bonds come back. */
static void test_what_the_node_earns_is_exact(void **state)
{
    uint64_t random = 9;
    struct market market;
    wei before;

    (void)state;
    market_open(&market, true, "money");
    before = market_money(&market, MARKET_VERIFIER);
    play(&market, 6001, CHEAT_NOT, 0, &random);
    assert_true(market_money(&market, MARKET_VERIFIER) ==
                before + SEGMENTS * (WEI_PER_ETHER / 100));
    before = market_money(&market, MARKET_VERIFIER);
    play(&market, 6002, CHEAT_SKIP, 5, &random);
    /* The entry became the bond of the alarm; the node enlisted once more since. */
    assert_true(market_money(&market, MARKET_VERIFIER) ==
                before + 2 * WEI_PER_ETHER / GAME_POT_SHARE - WEI_PER_ETHER / 10);
    market_close(&market);
}

static void test_an_observer_signs_nothing(void **state)
{
    uint64_t random = 11;
    const char *path = run_path(7001);
    struct market_node node;
    struct market market;
    struct hash32 job;

    (void)state;
    market_open(&market, true, "observer");
    cheat_bundle_new(path, small_mlp(3), CHEAT_ULP, 9, &random);
    job = market_commit(&market, path);
    market_mine(&market, &job, 4); /* somebody could have drawn */
    market_node_defaults(&node, &market, path);
    node.options.mode = NODE_OBSERVE;
    market_node_open(&node);
    market_node_settle(&node);
    assert_int_equal(market_node_number(&node, "SELECT count(*) FROM tasks WHERE outcome = 2"), 1);
    assert_int_equal(
        market_node_number(&node, "SELECT count(*) FROM tasks WHERE outcome = 1 AND kind = 0"), 2);
    assert_int_equal(market_node_number(&node, "SELECT count(*) FROM actions"), 0);
    assert_int_equal(market_count(&market, GAME_SEALED, NULL), 0);
    assert_int_equal(market_count(&market, GAME_SEALED_VERDICT, NULL), 0);
    market_node_close(&node);
    market_close(&market);
}

/* A defender claims and enlists nowhere; a segment whose state is withheld is no fraud. */
static void test_a_defender_only_claims_and_what_is_withheld_is_not_claimed(void **state)
{
    uint64_t random = 12;
    const char *path = run_path(7101);
    char lost[700];
    struct market_node node;
    struct market market;

    (void)state;
    market_open(&market, true, "defender");
    market.seats = 0;
    cheat_bundle_new(path, small_mlp(4), CHEAT_STALE_DATA, 9, &random);
    (void)market_commit(&market, path);
    market_node_defaults(&node, &market, path);
    node.options.mode = NODE_DEFEND;
    node.options.reach = 0;
    (void)snprintf(lost, sizeof(lost), "%s/checkpoints/000000000004.safetensors", path);
    assert_int_equal(remove(lost), 0);
    market_node_open(&node);
    market_node_settle(&node);
    assert_int_equal(market_count(&market, GAME_CLAIMED, NULL), 1); /* segment 2 */
    assert_int_equal(market_count(&market, GAME_ENLISTED, NULL), 0);
    assert_int_equal(
        market_node_number(&node, "SELECT count(*) FROM tasks WHERE idx = 1 AND outcome = 0 AND"
                                  " reason LIKE '%no mirror gives the checkpoint%'"),
        1);
    market_pass_time(&market, MARKET_SEAL_S + MARKET_REVEAL_S + MARKET_CLAIM_S + 1);
    market_node_settle(&node);
    assert_int_equal(
        market_node_number(&node, "SELECT count(*) FROM tasks WHERE idx = 1 AND state = 3"), 1);
    market_node_close(&node);
    market_close(&market);
}

/* Where the checkpoint before a segment is gone, the node comes from an older one. */
static void test_an_older_checkpoint_replaces_a_lost_one(void **state)
{
    uint64_t random = 13;
    const char *path = run_path(7201);
    char lost[700];
    struct market_node node;
    struct market market;

    (void)state;
    market_open(&market, true, "lost");
    cheat_bundle_new(path, small_mlp(5), CHEAT_ULP, 10, &random);
    for (int step = 4; step <= 8; step += 4) {
        (void)snprintf(lost, sizeof(lost), "%s/checkpoints/%012d.safetensors", path, step);
        assert_int_equal(remove(lost), 0);
    }
    (void)market_commit(&market, path);
    market_node_defaults(&node, &market, path);
    market_node_open(&node);
    market_node_settle(&node);
    market_pass_time(&market, MARKET_SEAL_S + 1);
    market_node_settle(&node);
    assert_int_equal(market_count(&market, GAME_CLAIMED, NULL), 1);
    assert_int_equal(
        market_node_number(&node, "SELECT count(*) FROM tasks WHERE outcome = 1 AND kind = 0"), 2);
    market_node_close(&node);
    market_close(&market);
}

/* One job gives nothing but trouble; the others are finished all the same. */
static void test_many_jobs_and_a_poisoned_one(void **state)
{
    uint64_t random = 14;
    uint64_t jobs = test_share(JOBS_SOAK, JOBS);
    const char *path = run_path(8001);
    const char *poison = run_path(8002);
    struct market_node node;
    struct market market;

    (void)state;
    market_open(&market, true, "crowd");
    cheat_bundle_new(path, small_mlp(6), CHEAT_NOT, 0, &random);
    cheat_bundle_new(poison, small_mlp(7), CHEAT_NOT, 0, &random);
    (void)market_commit(&market, poison); /* its files are on no mirror; its deadlines come first */
    for (uint64_t i = 0; i < jobs; i++) {
        (void)market_commit(&market, path);
    }
    market_node_defaults(&node, &market, path);
    market_node_open(&node);
    market_node_settle(&node);
    assert_int_equal(
        market_node_number(&node, "SELECT count(*) FROM tasks WHERE outcome = 1 AND kind = 0"),
        jobs * SEGMENTS);
    assert_int_equal(market_count(&market, GAME_SEALED_VERDICT, verifier(&market)),
                     jobs * SEGMENTS);
    assert_true(market_node_number(&node, "SELECT min(attempts) FROM tasks WHERE outcome = 0") > 0);
    market_node_close(&node);
    market_close(&market);
}

/* Nothing can be fetched of a segment, though a mirror answers: late in the seal period that is
 * what the node says, and the solver is not convicted for it. Where nobody answers, the node's own
 * line may be broken: it says nothing, and notes why. */
static void see_what_cannot_be_had(bool is_reached)
{
    uint64_t random = 15;
    const char *path = run_path(is_reached ? 9001 : 9002);
    struct market_node node;
    struct market market;
    struct kept *empty = NULL;
    struct hash32 job;
    struct error error;

    error_init(&error);
    market_open(&market, true, is_reached ? "unseen" : "alone");
    cheat_bundle_new(path, small_mlp(8), CHEAT_NOT, 0, &random);
    job = market_commit(&market, path);
    assert_int_equal(
        kept_open(&empty, small_path(is_reached ? "empty" : "unasked"), "127.0.0.1:0", &error),
        STATUS_OK);
    market_node_defaults(&node, &market, is_reached ? kept_url(empty) : NULL);
    market_node_open(&node);
    market_node_settle(&node);
    assert_int_equal(market_count(&market, GAME_SAID_UNSEEN, NULL), 0); /* not yet */
    market_pass_time(&market, MARKET_SEAL_S - MARKET_SEAL_S / 10);
    market_node_settle(&node);
    assert_int_equal(market_count(&market, GAME_SAID_UNSEEN, verifier(&market)),
                     is_reached ? SEGMENTS : 0);
    assert_int_equal(market_count(&market, GAME_SEALED_VERDICT, NULL), 0);
    market_pass_time(&market, MARKET_SEAL_S / 10);
    market_node_settle(&node);
    assert_int_equal(market_node_number(&node, is_reached
                                                   ? "SELECT count(*) FROM seats JOIN notes USING"
                                                     " (segment, place) WHERE phase ="
                                                     " :seat_unseen AND reason LIKE '%not to be"
                                                     " had%'"
                                                   : "SELECT count(*) FROM seats JOIN notes USING"
                                                     " (segment, place) WHERE phase ="
                                                     " :seat_drawn AND reason LIKE 'no verdict in"
                                                     " time%'"),
                     SEGMENTS);
    assert_int_equal(market_node_number(&node, "SELECT count(*) FROM facts WHERE name ="
                                               " 'missed_s' AND value > 0"),
                     !is_reached);
    assert_int_equal(market_count(&market, GAME_CLAIMED, NULL), 0);
    assert_int_equal(market_job(&market, &job).phase, GAME_PHASE_RUNNING);
    market_node_close(&node);
    kept_close(empty);
    market_close(&market);
}

static void test_what_cannot_be_had_is_unseen(void **state)
{
    (void)state;
    see_what_cannot_be_had(true);
}

static void test_who_reaches_nobody_says_nothing(void **state)
{
    (void)state;
    see_what_cannot_be_had(false);
}

/* A rival says "right" without looking. The node has replayed the segment anyway. Behind the
 * reveals it waits for its turn, also over a restart, seals, shows one leaf, and gets half of the
 * bond. */
static void test_a_false_right_is_challenged(void **state)
{
    uint64_t random = 16;
    const char *path = run_path(9101);
    struct market_node node;
    struct market market;
    struct hash32 job;
    uint32_t place;

    (void)state;
    market_open(&market, true, "right");
    market.seats = 2;
    market.entries[MARKET_RIVAL] = 1;
    cheat_bundle_new(path, small_mlp(9), CHEAT_NOT, 0, &random);
    job = market_accept(&market, path);
    market_commit_some(&market, &job, path, 0, 1);
    place = market_draw(&market, MARKET_RIVAL, &job, 0);
    assert_int_not_equal(place, GAME_PLACES_MAX);
    market_seal(&market, MARKET_RIVAL, &job, 0, place, GAME_VERDICT_RIGHT, 7);
    market_node_defaults(&node, &market, path);
    market_node_open(&node);
    market_node_settle(&node);
    market_pass_time(&market, MARKET_SEAL_S + 1);
    market_reveal(&market, MARKET_RIVAL, &job, 0, place, GAME_VERDICT_RIGHT, 7);
    market_node_settle(&node);
    assert_int_equal(market_count(&market, GAME_SEALED, NULL), 0);
    market_pass_time(&market, MARKET_REVEAL_S);
    market_node_close(&node);
    market_node_open(&node);
    market_pass_time(&market, MARKET_CLAIM_S / 4 + 1);
    market_node_settle(&node);
    assert_int_equal(market_count(&market, GAME_SEALED, NULL), 1);
    assert_int_equal(market_count(&market, GAME_DISPROVED, verifier(&market)), 1);
    assert_int_equal(market_node_number(&node, "SELECT rights FROM segments WHERE idx = 0"), 1);
    assert_true(market_owed(&market, MARKET_VERIFIER) >= WEI_PER_ETHER / 20);
    market_node_close(&node);
    market_close(&market);
}

/* ---- what is kept ------------------------------------------------------------ */

/* Everything that a seat of this segment fetches comes from one mirror. */
static void see_served(struct market_node *node, const struct hash32 *job, uint32_t index,
                       const char *mirror)
{
    const struct game_segment about = market_segment(node->market, job, index);
    const struct hash32 hash = game_segment_hash(job, &about);
    struct check_result *result = calloc(1, sizeof(*result));
    struct check_request *request = NULL;
    struct store_segment segment;
    struct error error;

    assert_non_null(result);
    error_init(&error);
    assert_int_equal(store_segment_by_hash(&node->store, &segment, &hash, &error), STATUS_OK);
    assert_int_equal(node_request(&node->node, &request, &segment, &error), STATUS_OK);
    request->states = true;
    request->mirror_count = 1;
    (void)snprintf(request->mirrors[0], sizeof(request->mirrors[0]), "%s", mirror);
    (void)snprintf(request->cache, sizeof(request->cache), "%s", small_path("other-cache"));
    check_run(result, request, NULL, NULL);
    if (result->outcome != CHECK_PROVEN || result->mirrors[0].good == 0) {
        fail_msg("segment %u from %s: %s", index, mirror, result->reason);
    }
    free(request);
    free(result);
}

/* Of all states between segments, those from one step to another. */
static void see_kept(const struct keep *keep, const struct digest *id, uint64_t from, uint64_t to)
{
    for (uint64_t step = 0; step <= STEPS; step += SEGMENT) {
        if (kept_has(keep->folder, id, step) != (step >= from && step <= to)) {
            fail_msg("the state before step %llu is%s kept", (unsigned long long)step,
                     step >= from && step <= to ? " not" : "");
        }
    }
}

static uint64_t size_of_state(const struct keep *keep, const struct digest *id, uint64_t step)
{
    uint64_t size = 0;

    for (enum kept_part part = KEPT_JOB; part <= KEPT_PIECES; part++) {
        char path[FILE_PATH_MAX];
        struct stat about;
        struct error error;

        error_init(&error);
        assert_int_equal(kept_path(path, keep->folder, id, step, part, &error), STATUS_OK);
        assert_int_equal(stat(path, &about), 0);
        size += (uint64_t)about.st_size;
    }
    return size;
}

/* Of what is worth as much, it would be the first to go. */
static void make_old(const struct keep *keep, const struct digest *id, uint64_t step)
{
    const struct timespec times[2] = {{1, 0}, {1, 0}};
    char path[FILE_PATH_MAX];
    struct error error;

    error_init(&error);
    for (enum kept_part part = KEPT_STATE; part <= KEPT_PIECES; part++) {
        assert_int_equal(kept_path(path, keep->folder, id, step, part, &error), STATUS_OK);
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    }
}

/* Nobody said anything about the first segment. */
static void see_last_two_final(struct market *market, struct market_node *node,
                               const struct hash32 *job)
{
    market_node_settle(node);
    market_pass_time(market, MARKET_SEAL_S + 1);
    market_node_settle(node);
    market_pass_time(market, MARKET_REVEAL_S + GAME_WAITS_MAX * MARKET_CLAIM_S);
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        market_settle(market, job, i);
    }
    market_node_settle(node);
    assert_int_equal(market_job(market, job).phase, GAME_PHASE_CLOSED);
    assert_int_equal(market_count(market, GAME_FEE_PAID, verifier(market)), 2);
}

/* A seat's start and end are here until the leg is final, also when the solver has gone; of a job
 * that is closed the last state stays for two weeks, though there is room for no other. */
static void test_both_states_of_a_seat_are_kept_and_served(void **state)
{
    uint64_t random = 17;
    const char *path = run_path(9201);
    const char *gone = run_path(9202);
    struct job *made = small_mlp(10);
    const struct digest id = made->id;
    struct keep keep = {0};
    struct keep tight = {0};
    struct market_node node;
    struct market market;
    struct hash32 job;
    struct error error;

    (void)state;
    error_init(&error);
    market_open(&market, true, "keep");
    cheat_bundle_new(path, made, CHEAT_NOT, 0, &random);
    job = market_accept(&market, path);
    market_commit_some(&market, &job, path, 0, 1);
    (void)market_draw(&market, MARKET_VERIFIER, &job, 0);
    market_pass_time(&market, MARKET_SEAL_S + 1); /* the node was away */
    assert_int_equal(keep_open(&keep, small_path("kept"), "127.0.0.1:0", 1 << 20, &error),
                     STATUS_OK);
    market_node_defaults(&node, &market, path);
    node.options.extra = 0;
    node.keep = &keep;
    market_node_open(&node);
    market_commit_some(&market, &job, path, 1, 2);
    (void)market_draw(&market, MARKET_CLIENT, &job, 1);
    market_node_settle(&node);
    assert_int_equal(rename(path, gone), 0);
    see_kept(&keep, &id, SEGMENT, 2 * SEGMENT);
    see_served(&node, &job, 1, kept_url(keep.folder));
    assert_int_equal(rename(gone, path), 0);
    market_commit_some(&market, &job, path, 2, SEGMENTS);
    (void)market_draw(&market, MARKET_CLIENT, &job, 2);
    see_last_two_final(&market, &node, &job);
    see_kept(&keep, &id, SEGMENT, STEPS);
    make_old(&keep, &id, STEPS);
    tight.folder = keep.folder;
    tight.bytes_max = size_of_state(&keep, &id, STEPS);
    assert_int_equal(keep_sweep(&tight, &node.store, node.node.clock.time_s + TWO_WEEKS_S, &error),
                     STATUS_OK);
    see_kept(&keep, &id, STEPS, STEPS);
    market_node_close(&node);
    keep_close(&keep);
    market_close(&market);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_cheat_that_is_sampled_is_claimed_and_no_honest_solver_is),
        cmocka_unit_test(test_each_cheat_is_convicted),
        cmocka_unit_test(test_a_cheat_and_an_honest_solver_on_a_chain),
        cmocka_unit_test(test_what_the_node_earns_is_exact),
        cmocka_unit_test(test_an_observer_signs_nothing),
        cmocka_unit_test(test_a_defender_only_claims_and_what_is_withheld_is_not_claimed),
        cmocka_unit_test(test_an_older_checkpoint_replaces_a_lost_one),
        cmocka_unit_test(test_many_jobs_and_a_poisoned_one),
        cmocka_unit_test(test_what_cannot_be_had_is_unseen),
        cmocka_unit_test(test_who_reaches_nobody_says_nothing),
        cmocka_unit_test(test_a_false_right_is_challenged),
        cmocka_unit_test(test_both_states_of_a_seat_are_kept_and_served),
    };

    /* As the product's main(): else OpenMP's workers spin while they wait, in children too. */
    host_wait_quietly(argv);
    if (workers_asked(argc, argv)) {
        return workers_serve(argv, &dispute_child);
    }
    test_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
