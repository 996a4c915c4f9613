/* stage.c - see stage.h. */
#include "tests/support/game/stage.h"
#include "tests/support/chain/standing_segment.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chain/contracts/compiled/registry_code.h"
#include "chain/evm/ledger_evm.h"
#include "chain/local/ledger_local.h"
#include "tests/support/test.h"

enum {
    SEGMENTS = 3,
    DEPLOYER = 9,
    DEPLOY_S = 600, /* a busy machine is no failure */
    WAIT_MS = 600000,
    LOOKS_MAX = 30000,
    LOCAL_START_S = 1000000,
};

void stage_check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

void stage_work(struct ledger *ledger)
{
    struct error error;
    enum status status = ledger_work(ledger, &error);

    assert_true(status == STATUS_OK || status == STATUS_UNREACHABLE);
}

static void open_player(struct stage *stage, int player)
{
    struct ledger_options options = stage->options;
    struct error error;

    error_init(&error);
    options.signer = stage->signers[player];
    options.state_dir = stage->state_dirs[player];
    stage_check(ledger_open(&stage->ledgers[player], &options, &error), &error);
}

/* The registry alone, without a referee. */
static void put_up_registry(struct stage *stage)
{
    static const struct address nobody;

    stage->options.registry = anvil_deploy(stage->rpc, DEPLOYER, REGISTRY_CODE, &nobody, "0x0");
}

/* Everything, as `lockstep ledger deploy` does it. */
static void put_up_all(struct stage *stage, const char *name)
{
    struct secret_key key = anvil_key(DEPLOYER);
    struct ledger_options options = stage->options;
    struct signer *signer;
    char state_dir[600];
    struct error error;

    error_init(&error);
    (void)snprintf(state_dir, sizeof(state_dir), "%s/%s-deployer", test_temp_dir(), name);
    options.state_dir = state_dir;
    signer = signer_new(&key, &error);
    assert_non_null(signer);
    options.signer = signer;
    stage_check(ledger_evm_deploy(&options, "deploy", &stage->options.registry,
                                  &stage->options.first_height, DEPLOY_S, &error),
                &error);
    signer_free(signer);
}

static void open_with(struct stage *stage, enum stage_ledger ledger, bool judged, const char *name)
{
    static const struct address nobody;
    const bool embedded = ledger == STAGE_EMBEDDED;
    struct error error;

    error_init(&error);
    memset(stage, 0, sizeof(*stage));
    ledger_options_init(&stage->options);
    stage->options.depth = 2;
    stage->options.url = stage->url;
    if (embedded) {
        (void)snprintf(stage->url, sizeof(stage->url), "local:%s/%s.ledger", test_temp_dir(), name);
        stage_check(ledger_local_init(stage->url + 6, &error), &error);
        stage->now_s = LOCAL_START_S;
    } else {
        stage->anvil = ledger == STAGE_ANVIL ? anvil_start(NULL) : anvil_start_hardhat();
        stage->rpc = anvil_rpc(stage->anvil);
        (void)snprintf(stage->url, sizeof(stage->url), "%s", anvil_url(stage->anvil));
    }
    if (!embedded && judged) {
        put_up_all(stage, name);
    } else if (!embedded) {
        put_up_registry(stage);
    }
    for (int i = 0; i < STAGE_PLAYERS; i++) {
        struct secret_key key = anvil_key((uint32_t)i);

        stage->signers[i] = signer_new(&key, &error);
        assert_non_null(stage->signers[i]);
        (void)snprintf(stage->state_dirs[i], sizeof(stage->state_dirs[i]), "%s/%s-%d",
                       test_temp_dir(), name, i);
        open_player(stage, i);
        if (embedded) {
            stage_check(ledger_local_set_clock(stage->ledgers[i], stage->now_s, &error), &error);
            stage_check(ledger_local_faucet(stage->ledgers[i], signer_address(stage->signers[i]),
                                            1000 * WEI_PER_ETHER, &error),
                        &error);
        }
    }
}

void stage_open(struct stage *stage, enum stage_ledger ledger, const char *name)
{
    open_with(stage, ledger, ledger == STAGE_HARDHAT, name);
}

void stage_open_judged(struct stage *stage, enum stage_ledger ledger, const char *name)
{
    open_with(stage, ledger, true, name);
}

void stage_close(struct stage *stage)
{
    for (int i = 0; i < STAGE_PLAYERS; i++) {
        ledger_close(stage->ledgers[i]);
        signer_free(stage->signers[i]);
    }
    rpc_free(stage->rpc);
    anvil_stop(stage->anvil);
}

void stage_pass_time(struct stage *stage, uint32_t seconds)
{
    struct error error;

    if (stage->anvil == NULL) {
        stage->now_s += seconds;
        stage_check(ledger_local_set_clock(stage->ledgers[0], stage->now_s, &error), &error);
        return;
    }
    json_decref(anvil_call(stage->rpc, "evm_increaseTime", json_pack("[i]", (int)seconds)));
    json_decref(anvil_call(stage->rpc, "evm_mine", NULL));
}

static uint64_t clock_s(struct stage *stage)
{
    struct ledger_clock clock;
    struct error error;

    stage_check(ledger_get_clock(stage->ledgers[0], &clock, &error), &error);
    return clock.time_s;
}

const char *stage_next_name(struct stage *stage, char *name, size_t size)
{
    (void)snprintf(name, size, "move %u", stage->moves++);
    return name;
}

void stage_settle_down(struct stage *stage, int player, const char *name)
{
    struct ledger_outcome outcome;
    struct error error;

    error_init(&error);
    stage_check(ledger_wait(stage->ledgers[player], &outcome, name, false, WAIT_MS, &error),
                &error);
    if (outcome.state == LEDGER_MOVE_REFUSED) {
        fail_msg("%s: refused: %s (%llu)", name, game_refusal_text(outcome.refusal.kind),
                 (unsigned long long)outcome.refusal.number);
    }
}

static enum game_refusal_kind refused(struct stage *stage, int player, const char *name)
{
    struct ledger_outcome outcome;
    struct error error;

    stage_check(ledger_wait(stage->ledgers[player], &outcome, name, false, WAIT_MS, &error),
                &error);
    assert_int_equal(outcome.state, LEDGER_MOVE_REFUSED);
    return outcome.refusal.kind;
}

struct game_terms stage_terms(struct stage *stage)
{
    struct game_terms terms = {
        .salt = 1,
        .steps = 25,
        .segment_steps = 10,
        .segment_reward = 3 * WEI_PER_ETHER,
        .attest_fee = WEI_PER_ETHER / 10,
        .stake = 20 * WEI_PER_ETHER,
        .claim_bond = WEI_PER_ETHER,
        .attest_bond = WEI_PER_ETHER / 2,
        .attestors = 1,
        .coverage_ppm = GAME_PPM,
        .segment_period_s = 3600,
        .attest_period_s = 600,
        .reveal_period_s = 600,
        .claim_period_s = 600,
        .response_period_s = 600,
        .deadline_s = clock_s(stage) + 100000,
    };

    memset(terms.job_id.bytes, 0xab, DIGEST_SIZE);
    return terms;
}

struct digest stage_root(uint8_t number)
{
    struct digest digest;

    memset(digest.bytes, number, DIGEST_SIZE);
    return digest;
}

struct game_segment stage_segment(struct stage *stage, int player, const struct hash32 *job,
                                  uint32_t index)
{
    struct game_segment segment;
    struct error error;

    for (int i = 0; i < LOOKS_MAX; i++) {
        enum status status;

        stage_work(stage->ledgers[player]);
        status = standing_segment(stage->ledgers[player], &segment, job, index, &error);
        if (status == STATUS_OK) {
            return segment;
        }
        usleep(10000);
    }
    fail_msg("segment %u is not in the journal", index);
    return segment;
}

wei stage_owed(struct stage *stage, int player)
{
    struct error error;
    wei purse;
    wei owed;

    stage_check(ledger_get_account(stage->ledgers[0], &purse, &owed,
                                   signer_address(stage->signers[player]), &error),
                &error);
    return owed;
}

void stage_restart(struct stage *stage, int player)
{
    ledger_close(stage->ledgers[player]);
    open_player(stage, player);
}

static void do_job(struct stage *stage)
{
    struct game_terms terms = stage_terms(stage);
    struct game_segment segments[SEGMENTS];
    struct ledger_job seen;
    struct hash32 job;
    struct error error;
    struct digest root;

    STAGE_PLAY(stage, STAGE_CLIENT, ledger_open_job, &job, &terms);
    STAGE_PLAY(stage, STAGE_SOLVER, ledger_accept, &job, &terms);
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        root = stage_root((uint8_t)(1 + i));
        STAGE_PLAY(stage, STAGE_SOLVER, ledger_commit, &job, i, &root);
        stage_restart(stage, STAGE_SOLVER);
    }
    stage_pass_time(stage, 2);
    stage_pass_time(stage, 2);
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        segments[i] = stage_segment(stage, STAGE_VERIFIER, &job, i);
        assert_int_equal(segments[i].steps, i == 2 ? 5 : 10);
        root = stage_root((uint8_t)(100 + i));
        STAGE_PLAY(stage, STAGE_VERIFIER, ledger_attest, &job, &terms, &segments[i], &root);
    }
    stage_pass_time(stage, 601);
    stage_restart(stage, STAGE_VERIFIER);
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        root = stage_root((uint8_t)(100 + i));
        STAGE_PLAY(stage, STAGE_VERIFIER, ledger_reveal, &job, &segments[i], &root);
    }
    stage_check(ledger_finalize(stage->ledgers[STAGE_SOLVER], "early", &job, &segments[0], &error),
                &error);
    assert_int_equal(refused(stage, STAGE_SOLVER, "early"), GAME_TOO_EARLY);
    stage_pass_time(stage, 1200);
    stage_check(ledger_finalize(stage->ledgers[STAGE_SOLVER], "early", &job, &segments[0], &error),
                &error);
    stage_settle_down(stage, STAGE_SOLVER, "early"); /* the same name, tried again */
    for (uint32_t i = 1; i < SEGMENTS; i++) {
        STAGE_PLAY(stage, STAGE_SOLVER, ledger_finalize, &job, &segments[i]);
    }
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        STAGE_PLAY(stage, STAGE_CLIENT, ledger_settle, &job, &segments[i],
                   signer_address(stage->signers[STAGE_VERIFIER]));
    }
    stage_check(ledger_get_job(stage->ledgers[STAGE_VERIFIER], &seen, &job, &error), &error);
    assert_int_equal(seen.phase, GAME_PHASE_CLOSED);
    assert_int_equal(seen.finalized, SEGMENTS);
    assert_true(seen.terms.stake == terms.stake);
    assert_true(stage_owed(stage, STAGE_SOLVER) == 29 * WEI_PER_ETHER);
    assert_true(stage_owed(stage, STAGE_CLIENT) == 0);
    assert_true(stage_owed(stage, STAGE_VERIFIER) == 3 * (WEI_PER_ETHER / 2 + WEI_PER_ETHER / 10));
    STAGE_PLAY(stage, STAGE_SOLVER, ledger_withdraw, signer_address(stage->signers[STAGE_SOLVER]));
    STAGE_PLAY(stage, STAGE_VERIFIER, ledger_withdraw,
               signer_address(stage->signers[STAGE_VERIFIER]));
    assert_true(stage_owed(stage, STAGE_SOLVER) == 0);
}

static void convict_silence(struct stage *stage)
{
    struct game_terms terms = stage_terms(stage);
    struct ledger_whistle whistle;
    struct ledger_claim seen_claim;
    struct ledger_job seen;
    struct hash32 claim;
    struct hash32 job;
    struct error error;
    struct digest root = stage_root(9);

    STAGE_PLAY(stage, STAGE_CLIENT, ledger_open_job, &job, &terms);
    STAGE_PLAY(stage, STAGE_SOLVER, ledger_accept, &job, &terms);
    STAGE_PLAY(stage, STAGE_SOLVER, ledger_commit, &job, 0, &root);
    memset(&whistle, 0, sizeof(whistle));
    whistle.job = job;
    whistle.segment = stage_segment(stage, STAGE_VERIFIER, &job, 0);
    whistle.step = 7;
    whistle.pre_state = stage_root(3);
    whistle.post_state = stage_root(4);
    memset(whistle.salt.bytes, 0x77, HASH32_SIZE);
    STAGE_PLAY(stage, STAGE_VERIFIER, ledger_seal_claim, &claim, &whistle);
    stage_pass_time(stage, 2);
    STAGE_PLAY(stage, STAGE_VERIFIER, ledger_claim, &terms, &whistle);
    stage_check(ledger_get_claim(stage->ledgers[STAGE_SOLVER], &seen_claim, &claim, &error),
                &error);
    assert_int_equal(seen_claim.phase, GAME_CLAIM_CALLED);
    assert_int_equal(seen_claim.turn, GAME_TURN_ACCUSED);
    assert_true(
        address_equal(&seen_claim.claimant, signer_address(stage->signers[STAGE_VERIFIER])));
    stage_pass_time(stage, 601);
    STAGE_PLAY(stage, STAGE_CLIENT, ledger_timeout, &claim);
    stage_check(ledger_get_job(stage->ledgers[STAGE_SOLVER], &seen, &job, &error), &error);
    assert_int_equal(seen.phase, GAME_PHASE_OPEN);
    assert_int_equal(seen.generation, 1);
    assert_int_equal(seen.committed, 0);
    assert_true(stage_owed(stage, STAGE_VERIFIER) == 11 * WEI_PER_ETHER);
    assert_true(stage_owed(stage, STAGE_CLIENT) == 10 * WEI_PER_ETHER);
    assert_true(stage_owed(stage, STAGE_SOLVER) == 0);
}

/* The events must add up to the play. */
static void count_events(struct stage *stage, uint32_t counts[GAME_EVENT_KINDS])
{
    struct ledger_entry entry = {0};
    struct error error;

    memset(counts, 0, GAME_EVENT_KINDS * sizeof(counts[0]));
    stage_work(stage->ledgers[STAGE_CLIENT]);
    while (ledger_next(stage->ledgers[STAGE_CLIENT], &entry, entry.number, 0, &error) ==
           STATUS_OK) {
        assert_int_equal(entry.kind, LEDGER_EVENT);
        counts[entry.event.kind]++;
    }
}

void stage_play_jobs(enum stage_ledger ledger)
{
    uint32_t counts[GAME_EVENT_KINDS];
    struct stage stage;

    stage_open(&stage, ledger, ledger == STAGE_EMBEDDED ? "job" : "job-evm");
    do_job(&stage);
    count_events(&stage, counts);
    assert_int_equal(counts[GAME_COMMITTED], SEGMENTS);
    assert_int_equal(counts[GAME_REVEALED], SEGMENTS);
    assert_int_equal(counts[GAME_FINALIZED], SEGMENTS);
    assert_int_equal(counts[GAME_CLOSED], 1);
    assert_int_equal(counts[GAME_WITHDRAWN], 2);
    stage_close(&stage);
    stage_open(&stage, ledger, ledger == STAGE_EMBEDDED ? "silence" : "silence-evm");
    convict_silence(&stage);
    count_events(&stage, counts);
    assert_int_equal(counts[GAME_CONVICTED], 1);
    stage_close(&stage);
}
