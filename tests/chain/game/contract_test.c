/*
 * Goal: the contract as deployed resists the known attacks, and costs no more gas than documented.
 * Method: on anvil, with real accounts and with contracts that attack. The gas of every move is
 * compared with docs/GAS.md: more than a tenth above what stands there fails.
 * LOCKSTEP_WRITE_GAS=1 prints the table that should stand there.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/codec/abi.h"
#include "chain/codec/hex_data.h"
#include "chain/contracts/compiled/registry_code.h"
#include "chain/evm/evm.h"
#include "chain/game/game.h"
#include "chain/keys/signer.h"
#include "tests/contracts/harness_code.h"
#include "tests/support/game/anvil.h"

enum {
    CLIENT = 1,
    SOLVER = 2,
    ALICE = 3, /* honest verifiers */
    BOB = 4,
    EVE = 5, /* attacks */
    REFEREE = 6,
    ACCOUNTS = 7,
    COMMIT_GAS_MOST = 60000,
    CLAIM_GAS_MOST = 150000,
};

struct world {
    struct anvil *anvil;
    struct rpc *rpc;
    struct address registry;
    struct game_place place; /* of the registry */
    struct address accounts[ACCOUNTS];
    struct game_terms terms;
    struct hash32 job;
    uint64_t gas[GAME_MOVE_KINDS]; /* the most that each move has cost */
};

static void set_up(struct world *world)
{
    memset(world, 0, sizeof(*world));
    world->anvil = anvil_start(NULL);
    world->rpc = anvil_rpc(world->anvil);
    for (uint32_t i = 0; i < ACCOUNTS; i++) {
        struct secret_key key = anvil_key(i);
        struct signer *signer = signer_new(&key, NULL);

        assert_non_null(signer);
        world->accounts[i] = *signer_address(signer);
        signer_free(signer);
    }
    world->registry = anvil_deploy(world->rpc, 0, REGISTRY_CODE, &world->accounts[REFEREE], "0x0");
    world->place = anvil_place(world->rpc, &world->registry);
}

static void tear_down(struct world *world)
{
    rpc_free(world->rpc);
    anvil_stop(world->anvil);
}

static uint64_t now_s(struct world *world)
{
    json_t *block =
        anvil_call(world->rpc, "eth_getBlockByNumber", json_pack("[s, b]", "latest", 0));
    uint64_t time_s = 0;

    assert_int_equal(rpc_field_u64(&time_s, block, "timestamp", NULL), STATUS_OK);
    json_decref(block);
    return time_s;
}

static void pass_time(struct world *world, uint32_t seconds)
{
    json_decref(anvil_call(world->rpc, "evm_increaseTime", json_pack("[i]", (int)seconds)));
    json_decref(anvil_call(world->rpc, "evm_mine", NULL));
}

static void to_text(char data[2 * GAME_MOVE_SIZE_MAX + 3], char value[UINT256_HEX_SIZE],
                    const struct game_move *move)
{
    struct uint256 wide = wei_to_uint256(move->value);
    uint8_t bytes[GAME_MOVE_SIZE_MAX];
    size_t size;

    game_move_encode(bytes, &size, move);
    hex_write(data, bytes, size, true);
    uint256_print_quantity(value, &wide);
}

/* Plays a move that must work; notes its gas. The receipt is the caller's. */
static json_t *play(struct world *world, uint32_t account, const struct game_move *move)
{
    char data[2 * GAME_MOVE_SIZE_MAX + 3];
    char value[UINT256_HEX_SIZE];
    json_t *receipt;
    uint64_t gas = 0;

    to_text(data, value, move);
    receipt = anvil_send(world->rpc, account, &world->registry, data, value);
    assert_int_equal(rpc_field_u64(&gas, receipt, "gasUsed", NULL), STATUS_OK);
    if (gas > world->gas[move->kind]) {
        world->gas[move->kind] = gas;
    }
    return receipt;
}

static void done(struct world *world, uint32_t account, const struct game_move *move)
{
    json_decref(play(world, account, move));
}

/* What the contract says to a move, without making it. */
static enum game_refusal_kind refusal(struct world *world, const struct address *from,
                                      const struct game_move *move)
{
    uint8_t data[GAME_MOVE_SIZE_MAX];
    uint8_t result[RPC_DATA_MAX];
    struct game_refusal refused;
    struct error error;
    size_t size;
    size_t data_size;

    game_move_encode(data, &data_size, move);
    assert_int_equal(evm_call(world->rpc, result, sizeof(result), &size, from, &world->registry,
                              move->value, data, data_size, &error),
                     STATUS_REFUSED);
    game_refusal_decode(&refused, result, size);
    return refused.kind;
}

static enum game_refusal_kind refused_to(struct world *world, uint32_t account,
                                         const struct game_move *move)
{
    return refusal(world, &world->accounts[account], move);
}

static struct game_move about(enum game_move_kind kind, const struct hash32 *key)
{
    struct game_move move;

    memset(&move, 0, sizeof(move));
    move.kind = kind;
    if (key != NULL) {
        move.key = *key;
    }
    return move;
}

static void open_and_accept(struct world *world, uint64_t salt)
{
    struct game_move move = about(GAME_OPEN, NULL);

    world->terms = (struct game_terms){
        .salt = salt,
        .steps = 20,
        .segment_steps = 10,
        .segment_reward = WEI_PER_ETHER,
        .attest_fee = WEI_PER_ETHER / 100,
        .stake = 10 * WEI_PER_ETHER,
        .claim_bond = WEI_PER_ETHER,
        .attest_bond = WEI_PER_ETHER / 2,
        .attestors = 2,
        .coverage_ppm = GAME_PPM - 1, /* the draw decides, and says yes: the dearer answer */
        .segment_period_s = 1000,
        .attest_period_s = 100,
        .reveal_period_s = 100,
        .claim_period_s = 100,
        .response_period_s = 100,
        .deadline_s = now_s(world) + 10000,
    };
    memset(world->terms.job_id.bytes, 0x5a, DIGEST_SIZE);
    memset(world->terms.data_root.bytes, 0xa5, DIGEST_SIZE);
    move.terms = world->terms;
    move.value = game_escrow(&world->terms);
    done(world, CLIENT, &move);
    world->job = game_job_key(&world->place, &world->accounts[CLIENT], &world->terms.job_id, salt);
    move = about(GAME_ACCEPT, &world->job);
    move.value = world->terms.stake;
    done(world, SOLVER, &move);
}

static struct game_segment commit_steps(struct world *world, uint32_t index, uint32_t steps)
{
    const bool whole = steps == world->terms.segment_steps;
    struct game_move move = about(whole ? GAME_COMMIT : GAME_COMMIT_DIVERGED, &world->job);
    json_t *receipt;
    struct game_segment segment;

    move.index = index;
    move.steps = whole ? 0 : steps;
    memset(move.root.bytes, (int)(0x10 + index), DIGEST_SIZE);
    receipt = play(world, SOLVER, &move);
    segment = (struct game_segment){.index = index,
                                    .root = move.root,
                                    .steps = steps,
                                    .time_s = now_s(world),
                                    .solver = world->accounts[SOLVER]};
    assert_int_equal(rpc_field_u64(&segment.height, receipt, "blockNumber", NULL), STATUS_OK);
    json_decref(receipt);
    return segment;
}

static struct game_segment commit(struct world *world, uint32_t index)
{
    return commit_steps(world, index, world->terms.segment_steps);
}

static struct game_move attesting(struct world *world, uint32_t account,
                                  const struct game_segment *segment, uint8_t trace)
{
    struct game_move move = about(GAME_ATTEST, &world->job);
    struct hash32 hash = game_segment_hash(&world->job, segment);

    move.segment = *segment;
    move.value = world->terms.attest_bond;
    memset(move.root.bytes, trace, DIGEST_SIZE);
    move.seal = game_attest_seal(&world->accounts[account], &hash, &move.root);
    return move;
}

static struct game_move with_segment(struct world *world, enum game_move_kind kind,
                                     const struct game_segment *segment)
{
    struct game_move move = about(kind, &world->job);

    move.segment = *segment;
    return move;
}

static struct game_move whistle(struct world *world, const struct game_segment *segment,
                                uint32_t account, struct game_move *seal, struct hash32 *key)
{
    struct game_move move = with_segment(world, GAME_CLAIM, segment);
    struct hash32 hash = game_segment_hash(&world->job, segment);

    move.value = world->terms.claim_bond;
    move.steps = 3;
    memset(move.pre_state.bytes, 1, DIGEST_SIZE);
    memset(move.post_state.bytes, 2, DIGEST_SIZE);
    memset(move.salt.bytes, (int)account, HASH32_SIZE);
    *key = game_claim_key(&world->accounts[account], &hash, 3, &move.pre_state, &move.post_state);
    *seal = about(GAME_SEAL_CLAIM, NULL);
    seal->seal = game_claim_seal(key, &move.salt);
    return move;
}

static wei held(struct world *world)
{
    struct error error;
    wei balance = 0;

    assert_int_equal(evm_balance(world->rpc, &balance, &world->registry, &error), STATUS_OK);
    return balance;
}

/* ---- attacks ------------------------------------------------------------------ */

static void test_a_claim_cannot_be_run_in_front_of(void **state)
{
    struct world world;
    struct game_segment segment;
    struct game_move alice_seal;
    struct game_move eve_seal;
    struct game_move alice;
    struct game_move eve;
    struct hash32 alice_key;
    struct hash32 eve_key;

    (void)state;
    set_up(&world);
    open_and_accept(&world, 1);
    segment = commit(&world, 0);
    alice = whistle(&world, &segment, ALICE, &alice_seal, &alice_key);
    eve = whistle(&world, &segment, EVE, &eve_seal, &eve_key);
    /* Eve sees the seal in the pool and is first with the same one: it stays good for Alice. */
    done(&world, EVE, &alice_seal);
    assert_int_equal(refused_to(&world, ALICE, &alice_seal), GAME_CLAIM_EXISTS);
    /* Eve sees the claim in the pool: as it is, it is not hers; her own was never sealed. */
    assert_int_equal(refused_to(&world, EVE, &alice), GAME_NOT_SEALED);
    assert_int_equal(refused_to(&world, EVE, &eve), GAME_NOT_SEALED);
    /* Sealing now helps only in a later block. */
    json_decref(anvil_call(world.rpc, "evm_setAutomine", json_pack("[b]", 0)));
    json_decref(anvil_call(world.rpc, "evm_mine", NULL));
    json_decref(anvil_call(world.rpc, "evm_setAutomine", json_pack("[b]", 1)));
    done(&world, ALICE, &alice);
    assert_int_equal(refused_to(&world, ALICE, &alice), GAME_NOT_SEALED); /* not twice */
    tear_down(&world);
}

static void test_an_attestation_cannot_be_copied(void **state)
{
    struct world world;
    struct game_segment segment;
    struct game_move move;

    (void)state;
    set_up(&world);
    open_and_accept(&world, 1);
    segment = commit(&world, 0);
    pass_time(&world, 1);
    pass_time(&world, 1);
    move = attesting(&world, ALICE, &segment, 0x77);
    done(&world, ALICE, &move);
    done(&world, EVE, &move); /* the same seal, bond and all */
    assert_int_equal(refused_to(&world, BOB, &move), GAME_FULL);
    assert_int_equal(refused_to(&world, SOLVER, &move), GAME_SELF_DEALING);
    pass_time(&world, 101);
    move.kind = GAME_REVEAL;
    move.value = 0;
    done(&world, ALICE, &move);
    assert_int_equal(refused_to(&world, EVE, &move), GAME_WRONG_REVEAL);
    tear_down(&world);
}

static void act(struct world *world, const struct address *contract, const struct game_move *move)
{
    uint8_t inner[GAME_MOVE_SIZE_MAX];
    uint8_t outer[GAME_MOVE_SIZE_MAX + 128];
    char data[2 * sizeof(outer) + 3];
    char value[UINT256_HEX_SIZE];
    struct uint256 wide = wei_to_uint256(move->value);
    struct abi_writer writer;
    size_t size;
    size_t place;

    game_move_encode(inner, &size, move);
    abi_writer_init(&writer, outer, sizeof(outer));
    abi_put_selector(&writer, "act(bytes)");
    place = abi_put_offset(&writer);
    abi_set_offset(&writer, place, ABI_SELECTOR_SIZE);
    abi_put_blob(&writer, inner, size);
    assert_int_equal(abi_writer_finish(&writer), STATUS_OK);
    hex_write(data, outer, writer.used, true);
    uint256_print_quantity(value, &wide);
    json_decref(anvil_send(world->rpc, EVE, contract, data, value));
}

static bool stole(struct world *world, const struct address *thief)
{
    uint8_t data[ABI_SELECTOR_SIZE];
    uint8_t word[ABI_WORD_SIZE];
    struct abi_writer writer;
    struct error error;
    size_t size;

    abi_writer_init(&writer, data, sizeof(data));
    abi_put_selector(&writer, "stole()");
    assert_int_equal(evm_call(world->rpc, word, sizeof(word), &size, &world->accounts[0], thief, 0,
                              data, writer.used, &error),
                     STATUS_OK);
    return word[ABI_WORD_SIZE - 1] != 0;
}

/* The thief is a solver that is released, and withdraws again from inside its payment. */
static void test_reentrancy_pays_once(void **state)
{
    struct world world;
    struct address thief;
    struct game_move move;
    struct error error;
    wei before;
    wei balance = 0;

    (void)state;
    set_up(&world);
    thief = anvil_deploy(world.rpc, 0, THIEF_CODE, &world.registry, "0x0");
    open_and_accept(&world, 1); /* somebody else's money lies there too */
    before = held(&world);
    move = about(GAME_OPEN, NULL);
    move.terms = world.terms;
    move.terms.salt = 2;
    move.value = game_escrow(&move.terms);
    act(&world, &thief, &move);
    move = about(GAME_CANCEL, NULL);
    move.key = game_job_key(&world.place, &thief, &world.terms.job_id, 2);
    act(&world, &thief, &move);
    move = about(GAME_WITHDRAW, NULL);
    move.account = thief;
    act(&world, &thief, &move);
    assert_false(stole(&world, &thief));
    assert_true(held(&world) == before);
    assert_int_equal(evm_balance(world.rpc, &balance, &thief, &error), STATUS_OK);
    assert_true(balance == game_escrow(&world.terms));
    assert_int_equal(refusal(&world, &thief, &move), GAME_NOTHING_OWED);
    tear_down(&world);
}

static void test_a_target_that_takes_no_money_loses_none(void **state)
{
    struct world world;
    struct address miser;
    struct game_move move = about(GAME_OPEN, NULL);

    (void)state;
    set_up(&world);
    miser = anvil_deploy(world.rpc, 0, MISER_CODE, NULL, "0x0");
    open_and_accept(&world, 1);
    move.terms = world.terms;
    move.terms.salt = 2;
    move.value = game_escrow(&move.terms);
    done(&world, EVE, &move);
    move = about(GAME_CANCEL, NULL);
    move.key = game_job_key(&world.place, &world.accounts[EVE], &world.terms.job_id, 2);
    assert_int_equal(refused_to(&world, BOB, &move), GAME_NOT_YOURS);
    done(&world, EVE, &move);
    move = about(GAME_WITHDRAW, NULL);
    assert_int_equal(refused_to(&world, EVE, &move), GAME_ZERO_ADDRESS);
    move.account = miser;
    assert_int_equal(refused_to(&world, EVE, &move), GAME_WITHDRAW_FAILED);
    move.account = world.accounts[BOB];
    done(&world, EVE, &move);
    assert_int_equal(refused_to(&world, EVE, &move), GAME_NOTHING_OWED);
    tear_down(&world);
}

static void test_dust_and_absurd_terms_are_refused(void **state)
{
    struct world world;
    struct game_move good = about(GAME_OPEN, NULL);
    struct game_move move;

    (void)state;
    set_up(&world);
    open_and_accept(&world, 1);
    good.terms = world.terms;
    good.terms.salt = 9;
    good.value = game_escrow(&good.terms);
    move = good;
    move.terms.segment_reward = 0;
    assert_int_equal(refused_to(&world, CLIENT, &move), GAME_BAD_TERMS);
    move = good;
    move.terms.claim_bond = 0;
    assert_int_equal(refused_to(&world, CLIENT, &move), GAME_BAD_TERMS);
    move = good;
    move.terms.attest_bond = 0;
    assert_int_equal(refused_to(&world, CLIENT, &move), GAME_BAD_TERMS);
    move = good;
    move.terms.steps = GAME_TIME_MAX;
    move.terms.segment_steps = 1; /* more segments than there may be */
    assert_int_equal(refused_to(&world, CLIENT, &move), GAME_BAD_TERMS);
    move = good;
    move.terms.steps = GAME_SEGMENTS_MAX;
    move.terms.segment_steps = 1;
    move.terms.segment_reward = WEI_MAX; /* the escrow would overflow what a slot holds */
    assert_int_equal(refused_to(&world, CLIENT, &move), GAME_BAD_TERMS);
    move = good;
    move.value--;
    assert_int_equal(refused_to(&world, CLIENT, &move), GAME_WRONG_VALUE);
    move.value += 2;
    assert_int_equal(refused_to(&world, CLIENT, &move), GAME_WRONG_VALUE);
    move = about(GAME_CANCEL, &world.job); /* money to a move that takes none */
    move.value = 1;
    assert_int_equal(refused_to(&world, CLIENT, &move), GAME_REFUSED_NOT);
    tear_down(&world);
}

/* ---- gas ---------------------------------------------------------------------- */

static void lose_claim(struct world *world, const struct game_segment *segment, uint32_t account,
                       bool by_referee)
{
    struct game_move seal;
    struct game_move move;
    struct hash32 key;
    struct game_move claim = whistle(world, segment, account, &seal, &key);

    done(world, account, &seal);
    done(world, account, &claim);
    move = about(GAME_ANSWER, &key);
    memset(move.root.bytes, 0x66, DIGEST_SIZE);
    assert_int_equal(refused_to(world, EVE, &move), GAME_NOT_YOURS);
    done(world, SOLVER, &move);
    move = about(GAME_PASS_TURN, &key);
    move.turn = GAME_TURN_CLAIMANT;
    assert_int_equal(refused_to(world, EVE, &move), GAME_NOT_YOURS);
    done(world, REFEREE, &move);
    move = about(by_referee ? GAME_RULE : GAME_TIMEOUT, &key);
    if (!by_referee) {
        assert_int_equal(refused_to(world, EVE, &move), GAME_TOO_EARLY);
        pass_time(world, 101);
    }
    done(world, by_referee ? REFEREE : EVE, &move);
}

static void attest_and_reveal(struct world *world, const struct game_segment *segment)
{
    struct game_move alice = attesting(world, ALICE, segment, 0x31);
    struct game_move bob = attesting(world, BOB, segment, 0x32);

    done(world, ALICE, &alice);
    done(world, BOB, &bob);
    pass_time(world, 101);
    alice.kind = bob.kind = GAME_REVEAL;
    alice.value = bob.value = 0;
    done(world, ALICE, &alice);
    done(world, BOB, &bob);
}

/* A whole job with everything that can happen to it; at its end nothing is left in the contract. */
static void play_everything(struct world *world)
{
    struct game_segment segments[2];
    struct game_move move;
    struct game_move seal;
    struct hash32 hash;
    struct hash32 key;

    open_and_accept(world, 1);
    segments[0] = commit(world, 0);
    segments[1] = commit(world, 1);
    pass_time(world, 1);
    pass_time(world, 1);
    move = with_segment(world, GAME_DRAW, &segments[1]);
    done(world, EVE, &move);
    attest_and_reveal(world, &segments[0]);
    lose_claim(world, &segments[0], ALICE, true);
    /* Eve accuses Bob, and loses her bond to him. */
    hash = game_segment_hash(&world->job, &segments[0]);
    move = with_segment(world, GAME_ACCUSE, &segments[0]);
    move.account = world->accounts[BOB];
    move.value = world->terms.claim_bond;
    key = game_accusation_key(&world->accounts[EVE], &hash, &world->accounts[BOB]);
    seal = about(GAME_SEAL_CLAIM, NULL);
    seal.seal = game_claim_seal(&key, &move.salt);
    done(world, EVE, &seal);
    done(world, EVE, &move);
    pass_time(world, 250);
    move = about(GAME_TIMEOUT, &key);
    done(world, BOB, &move);
    move = with_segment(world, GAME_FINALIZE, &segments[0]);
    done(world, SOLVER, &move);
    move = with_segment(world, GAME_SETTLE, &segments[0]);
    for (uint32_t i = ALICE; i <= BOB; i++) {
        move.account = world->accounts[i];
        done(world, EVE, &move);
    }
}

/* A job that ends in a conviction, is taken again, and is left until it expires. */
static void play_the_end(struct world *world)
{
    struct game_segment segment;
    struct game_move move;
    struct game_move seals[2];
    struct game_move claims[2];
    struct hash32 keys[2];

    open_and_accept(world, 2);
    segment = commit(world, 0);
    for (uint32_t i = 0; i < 2; i++) {
        claims[i] = whistle(world, &segment, ALICE + i, &seals[i], &keys[i]);
        done(world, ALICE + i, &seals[i]);
        done(world, ALICE + i, &claims[i]);
    }
    pass_time(world, 101);
    move = about(GAME_TIMEOUT, &keys[0]);
    done(world, EVE, &move);
    move = about(GAME_TIMEOUT, &keys[1]);
    assert_int_equal(refused_to(world, EVE, &move), GAME_WRONG_PHASE);
    move = about(GAME_LAPSE, &keys[1]);
    done(world, EVE, &move);
    move = about(GAME_ACCEPT, &world->job);
    move.value = world->terms.stake;
    done(world, BOB, &move);
    pass_time(world, 1001);
    move = about(GAME_RELEASE, &world->job);
    done(world, EVE, &move);
    move = about(GAME_ACCEPT, &world->job);
    move.value = world->terms.stake;
    done(world, SOLVER, &move);
    segment = commit(world, 0);
    segment.generation = 1;
    pass_time(world, 400);
    move = with_segment(world, GAME_DRAW, &segment);
    done(world, EVE, &move);
    segment = commit_steps(world, 1, 4);
    segment.generation = 1;
    move = with_segment(world, GAME_RENEW, &segment);
    pass_time(world, 1);
    assert_int_equal(refused_to(world, EVE, &move), GAME_TOO_EARLY);
    pass_time(world, 200);
    done(world, EVE, &move); /* draws, too: the dearest that it can be */
    pass_time(world, 12000);
    move = about(GAME_EXPIRE, &world->job);
    done(world, EVE, &move);
    /* And one that nobody takes. */
    move = about(GAME_OPEN, NULL);
    move.terms = world->terms;
    move.terms.salt = 3;
    move.terms.deadline_s = now_s(world) + 100;
    move.value = game_escrow(&move.terms);
    done(world, CLIENT, &move);
    move = about(GAME_CANCEL, NULL);
    move.key = game_job_key(&world->place, &world->accounts[CLIENT], &world->terms.job_id, 3);
    done(world, CLIENT, &move);
}

static uint64_t documented(const char *name)
{
    FILE *file = fopen("docs/GAS.md", "r");
    char wanted[64];
    char line[256];
    uint64_t gas = 0;

    assert_non_null(file);
    (void)snprintf(wanted, sizeof(wanted), "| %s | ", name);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (gas == 0 && strncmp(line, wanted, strlen(wanted)) == 0) {
            gas = strtoull(line + strlen(wanted), NULL, 10);
        }
    }
    (void)fclose(file);
    return gas;
}

static void withdraw_all(struct world *world)
{
    for (uint32_t i = CLIENT; i < ACCOUNTS; i++) {
        struct game_move move = about(GAME_WITHDRAW, NULL);
        uint8_t data[GAME_MOVE_SIZE_MAX];
        uint8_t result[RPC_DATA_MAX];
        struct error error;
        size_t size;
        size_t data_size;

        move.account = world->accounts[i];
        game_move_encode(data, &data_size, &move);
        if (evm_call(world->rpc, result, sizeof(result), &size, &world->accounts[i],
                     &world->registry, 0, data, data_size, &error) == STATUS_OK) {
            done(world, i, &move);
        }
    }
}

static void test_every_move_costs_what_is_documented_and_no_money_stays(void **state)
{
    const bool writing = getenv("LOCKSTEP_WRITE_GAS") != NULL;
    struct world world;

    (void)state;
    set_up(&world);
    play_everything(&world);
    pass_time(&world, 20000);
    done(&world, EVE, &(struct game_move){.kind = GAME_EXPIRE, .key = world.job});
    play_the_end(&world);
    withdraw_all(&world);
    assert_true(held(&world) == 0);
    for (int kind = 0; kind < GAME_MOVE_KINDS; kind++) {
        const char *name = game_move_name((enum game_move_kind)kind);

        if (writing) {
            print_message("| %s | %llu |\n", name, (unsigned long long)world.gas[kind]);
        } else if (10 * world.gas[kind] > 11 * documented(name)) {
            fail_msg("%s costs %llu gas, docs/GAS.md says %llu", name,
                     (unsigned long long)world.gas[kind], (unsigned long long)documented(name));
        }
    }
    assert_true(world.gas[GAME_COMMIT] < COMMIT_GAS_MOST);
    assert_true(world.gas[GAME_CLAIM] < CLAIM_GAS_MOST);
    tear_down(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_claim_cannot_be_run_in_front_of),
        cmocka_unit_test(test_an_attestation_cannot_be_copied),
        cmocka_unit_test(test_reentrancy_pays_once),
        cmocka_unit_test(test_a_target_that_takes_no_money_loses_none),
        cmocka_unit_test(test_dust_and_absurd_terms_are_refused),
        cmocka_unit_test(test_every_move_costs_what_is_documented_and_no_money_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
