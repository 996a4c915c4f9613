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
#include "tests/support/gas/gas_bill.h"

enum {
    CLIENT = 1,
    SOLVER = 2,
    ALICE = 3, /* honest verifiers */
    BOB = 4,
    EVE = 5, /* attacks */
    REFEREE = 6,
    ACCOUNTS = 7,
    STEPS = 50, /* of a segment */
    SEAL_S = 100,
    REVEAL_S = 100,
    CLAIM_S = 100,
    COVERED_GAS_MOST = 510000, /* of a draw whose places fit its slot */
    UNCOVERED_GAS_MOST = 200000,
    REGISTRY_SIZE_MOST = 23500,
    FAR_GAS_MOST = 25000,
    NEAR_PLACES = 12,
    CALL_MAX = 1024,
};

struct world {
    struct anvil *anvil;
    struct rpc *rpc;
    struct address registry;
    struct game_place place; /* of the registry */
    struct address accounts[ACCOUNTS];
    struct game_terms terms;
    struct hash32 job;
    uint32_t coverage_ppm;         /* of the next job with seats */
    uint32_t panel;                /* entries of the job: Alice has the even ones, Bob the others */
    uint32_t generation;           /* of the job */
    struct hash32 seed;            /* of the last draw */
    struct hash32 later_seed;      /* of its second round, */
    uint32_t later;                /* ... and its first place; 0: there is none */
    uint64_t gas[GAME_MOVE_KINDS]; /* the most that each move has cost */
    uint64_t sum;                  /* of all moves so far */
    bool far;                      /* the last draw went beyond the places that fit its slot */
};

/* A registry; token: zero for the coin. */
static void deploy(struct world *world, const struct address *token)
{
    const struct address partners[] = {world->accounts[REFEREE], anvil_deploy_seeds(world->rpc, 0),
                                       *token};

    world->registry = anvil_deploy_with(world->rpc, 0, REGISTRY_CODE, partners, 3, "0x0");
    world->place = anvil_place(world->rpc, &world->registry);
}

static void set_up(struct world *world)
{
    static const struct address nobody;

    memset(world, 0, sizeof(*world));
    world->coverage_ppm = GAME_PPM;
    world->anvil = anvil_start(NULL);
    world->rpc = anvil_rpc(world->anvil);
    for (uint32_t i = 0; i < ACCOUNTS; i++) {
        struct secret_key key = anvil_key(i);
        struct signer *signer = signer_new(&key, NULL);

        assert_non_null(signer);
        world->accounts[i] = *signer_address(signer);
        signer_free(signer);
    }
    deploy(world, &nobody);
}

static void tear_down(struct world *world)
{
    rpc_free(world->rpc);
    anvil_stop(world->anvil);
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
    world->sum += gas;
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

/* The next entries are Alice's and Bob's by turns. */
static void enlist(struct world *world, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct game_move move = about(GAME_ENLIST, &world->job);

        move.count = 1;
        move.value = world->terms.bond;
        done(world, ALICE + world->panel % 2, &move);
        world->panel++;
    }
}

/* A job of so many segments that asks for two seats on each, and Alice and Bob are its panel. */
static void open_job(struct world *world, uint64_t salt, uint32_t segments, uint32_t seats)
{
    struct game_move move = about(GAME_OPEN, NULL);

    world->terms = (struct game_terms){
        .salt = salt,
        .steps = (uint64_t)segments * STEPS,
        .segment_steps = STEPS,
        .reward = WEI_PER_ETHER,
        .fee = WEI_PER_ETHER / 100,
        .stake = 10 * WEI_PER_ETHER,
        .bond = WEI_PER_ETHER,
        .query_fee = WEI_PER_ETHER / 100,
        .seats = seats,
        .coverage_ppm = seats == 0 ? 0 : world->coverage_ppm,
        .panel_least = seats,
        .segment_period_s = 1000,
        .seal_period_s = SEAL_S,
        .reveal_period_s = REVEAL_S,
        .claim_period_s = CLAIM_S,
        .clock_s = 100,
        .deadline_s = anvil_time_s(world->rpc) + 20000,
    };
    memset(world->terms.job_id.bytes, 0x5a, DIGEST_SIZE);
    memset(world->terms.data_root.bytes, 0xa5, DIGEST_SIZE);
    move.terms = world->terms;
    move.value = game_escrow(&world->terms);
    done(world, CLIENT, &move);
    world->job = game_job_key(&world->place, &world->accounts[CLIENT], &world->terms.job_id, salt);
    world->generation = 0;
    world->panel = 0;
    enlist(world, seats);
}

static void accept(struct world *world)
{
    struct game_move move = about(GAME_ACCEPT, &world->job);

    move.value = world->terms.stake;
    if (world->terms.seats > 0) {
        assert_int_equal(refused_to(world, SOLVER, &move), GAME_TOO_EARLY);
        anvil_pass_time(world->rpc, SEAL_S + 1);
    }
    done(world, SOLVER, &move);
}

static void open_and_accept(struct world *world, uint64_t salt)
{
    open_job(world, salt, 2, 2);
    accept(world);
}

static struct game_segment commit(struct world *world, uint32_t index)
{
    struct game_move move = about(GAME_COMMIT, &world->job);
    struct digest states[STEPS];
    struct game_segment segment;
    json_t *receipt;

    for (uint32_t i = 0; i < STEPS; i++) {
        memset(states[i].bytes, (int)(0x10 + i), DIGEST_SIZE);
        states[i].bytes[0] = (uint8_t)index;
    }
    move.index = index;
    move.states = (struct game_hashes){states, STEPS};
    receipt = play(world, SOLVER, &move);
    segment = (struct game_segment){.index = index,
                                    .root = game_segment_root(&move.states, index * STEPS),
                                    .steps = STEPS,
                                    .time_s = anvil_time_s(world->rpc),
                                    .solver = world->accounts[SOLVER],
                                    .panel = world->panel};
    assert_int_equal(rpc_field_u64(&segment.height, receipt, "blockNumber", NULL), STATUS_OK);
    json_decref(receipt);
    segment.generation = world->generation;
    return segment;
}

static struct game_move with_segment(struct world *world, enum game_move_kind kind,
                                     const struct game_segment *segment)
{
    struct game_move move = about(kind, &world->job);

    move.segment = *segment;
    return move;
}

/* height: of the commit, or of the end of a round; words: of the first event. */
static void draw_words(struct world *world, const struct game_segment *segment, uint64_t height,
                       uint8_t *words, size_t words_size)
{
    struct game_move move = with_segment(world, GAME_DRAW, segment);
    uint8_t header[GAME_HEADER_MAX];
    struct error error;
    json_t *receipt;
    const char *data;
    size_t size = 0;

    error_init(&error);
    anvil_pass_time(world->rpc, 1);
    anvil_pass_time(world->rpc, 1);
    assert_int_equal(evm_header_at(world->rpc, header, &size, height + 1, &error), STATUS_OK);
    move.proof = (struct game_bytes){header, size};
    header[size - 1] ^= 1;
    assert_int_equal(refused_to(world, EVE, &move), GAME_WRONG_HEADER);
    header[size - 1] ^= 1;
    receipt = play(world, EVE, &move);
    data = json_string_value(
        json_object_get(json_array_get(json_object_get(receipt, "logs"), 0), "data"));
    assert_non_null(data);
    assert_int_equal(hex_data_read_exactly(words, words_size, data), STATUS_OK);
    json_decref(receipt);
}

static void draw(struct world *world, const struct game_segment *segment)
{
    uint8_t words[2 * ABI_WORD_SIZE]; /* seed, covered */

    draw_words(world, segment, segment->height, words, sizeof(words));
    memcpy(world->seed.bytes, words, HASH32_SIZE);
    world->later = 0;
}

/* The round that settle closed in the newest block is followed by another one. */
static void draw_again(struct world *world, const struct game_segment *segment)
{
    uint8_t words[5 * ABI_WORD_SIZE]; /* round, from, to, start, seed */
    uint64_t height = 0;
    struct error error;

    error_init(&error);
    assert_int_equal(evm_head(world->rpc, &height, &error), STATUS_OK);
    draw_words(world, segment, height, words, sizeof(words));
    memcpy(world->later_seed.bytes, words + 4 * ABI_WORD_SIZE, HASH32_SIZE);
    world->later = words[2 * ABI_WORD_SIZE - 1];
    assert_int_equal(words[ABI_WORD_SIZE - 1], 1); /* round */
}

/* The n-th seat of the draw: its place, and whose it is. */
static uint32_t seat_of(const struct world *world, uint32_t n, uint32_t *account)
{
    bool taken[4] = {false};
    uint32_t found = 0;

    assert_true(world->panel <= 4);
    for (uint32_t place = 0; place < GAME_PLACES_MAX; place++) {
        bool is_later = world->later > 0 && place >= world->later;
        uint32_t entry =
            game_place_entry(is_later ? &world->later_seed : &world->seed, place, world->panel);

        if (!taken[entry] && found++ == n) {
            *account = ALICE + entry % 2;
            return place;
        }
        taken[entry] = true;
    }
    fail_msg("there is no seat %u", n);
    return 0;
}

/* The first place of an account's only entry. */
static uint32_t place_of(const struct world *world, uint32_t account)
{
    uint32_t owner = 0;
    uint32_t place = seat_of(world, 0, &owner);

    return owner == account ? place : seat_of(world, 1, &owner);
}

/* The verdict right, of leaves that nobody looks at here. */
static struct game_move verdict(struct world *world, uint32_t account,
                                const struct game_segment *segment, enum game_move_kind kind)
{
    struct game_move move = about(kind, &world->job);

    move.index = segment->index;
    move.about = game_segment_hash(&world->job, segment);
    move.place = place_of(world, account);
    memset(&move.leaves, 0x77, sizeof(move.leaves));
    memset(move.salt.bytes, (int)account, HASH32_SIZE);
    move.seal = game_verdict_seal(&world->accounts[account], &move.about, GAME_VERDICT_RIGHT, 0,
                                  &move.leaves, &move.salt);
    return move;
}

static void seal_all(struct world *world, const struct game_segment *segment)
{
    for (uint32_t account = ALICE; account <= BOB; account++) {
        struct game_move move = verdict(world, account, segment, GAME_SEAL);

        done(world, account, &move);
    }
}

static void reveal_all(struct world *world, const struct game_segment *segment)
{
    anvil_pass_time(world->rpc, SEAL_S + 1);
    for (uint32_t account = ALICE; account <= BOB; account++) {
        struct game_move move = verdict(world, account, segment, GAME_REVEAL);

        done(world, account, &move);
    }
}

static wei held(struct world *world)
{
    struct error error;
    wei balance = 0;

    assert_int_equal(evm_balance(world->rpc, &balance, &world->registry, &error), STATUS_OK);
    return balance;
}

/* ---- attacks ------------------------------------------------------------------ */

static void test_a_verdict_cannot_be_copied(void **state)
{
    struct world world;
    struct game_segment segment;
    struct game_move alice;
    struct game_move bob;

    (void)state;
    set_up(&world);
    open_and_accept(&world, 1);
    segment = commit(&world, 0);
    draw(&world, &segment);
    alice = verdict(&world, ALICE, &segment, GAME_SEAL);
    assert_int_equal(refused_to(&world, EVE, &alice), GAME_NOT_YOURS);
    done(&world, ALICE, &alice);
    assert_int_equal(refused_to(&world, ALICE, &alice), GAME_ALREADY_SEALED);
    bob = alice; /* the same seal at his own place */
    bob.place = place_of(&world, BOB);
    done(&world, BOB, &bob);
    alice.kind = bob.kind = GAME_REVEAL;
    assert_int_equal(refused_to(&world, ALICE, &alice), GAME_TOO_EARLY);
    anvil_pass_time(world.rpc, SEAL_S + 1);
    done(&world, ALICE, &alice);
    assert_int_equal(refused_to(&world, BOB, &bob), GAME_WRONG_REVEAL);
    tear_down(&world);
}

/* What only the referee may do. */
static void test_strangers_judge_nothing(void **state)
{
    static const char *const signatures[] = {
        "credit(address,uint256)", "burn(uint256)",         "hold(bytes32)",
        "convict(bytes32)",        "take(address,uint256)", "takeBond(address,uint256)",
        "free(bytes32,uint256)",
    };
    struct world world;

    (void)state;
    set_up(&world);
    open_and_accept(&world, 1);
    for (size_t i = 0; i < sizeof(signatures) / sizeof(signatures[0]); i++) {
        uint8_t data[ABI_SELECTOR_SIZE + 3 * ABI_WORD_SIZE] = {0};
        uint8_t result[RPC_DATA_MAX];
        struct game_refusal refused;
        struct byte_writer writer;
        struct error error;
        size_t size;

        byte_writer_init(&writer, data, sizeof(data));
        abi_put_selector(&writer, signatures[i]);
        assert_int_equal(evm_call(world.rpc, result, sizeof(result), &size, &world.accounts[EVE],
                                  &world.registry, 0, data, sizeof(data), &error),
                         STATUS_REFUSED);
        game_refusal_decode(&refused, result, size);
        assert_int_equal(refused.kind, GAME_NOT_YOURS);
    }
    tear_down(&world);
}

/* A call of act() of a contract of the test, which makes the move. */
static size_t write_act(uint8_t *outer, size_t room, const struct game_move *move)
{
    uint8_t inner[GAME_MOVE_SIZE_MAX];
    struct byte_writer writer;
    size_t size;
    size_t place;

    game_move_encode(inner, &size, move);
    byte_writer_init(&writer, outer, room);
    abi_put_selector(&writer, "act(bytes)");
    place = abi_put_offset(&writer);
    abi_set_offset(&writer, place, ABI_SELECTOR_SIZE);
    abi_put_blob(&writer, inner, size);
    assert_int_equal(byte_writer_finish(&writer), STATUS_OK);
    return writer.used;
}

static void act(struct world *world, const struct address *contract, const struct game_move *move)
{
    uint8_t outer[GAME_MOVE_SIZE_MAX + 128];
    char data[2 * sizeof(outer) + 3];
    char value[UINT256_HEX_SIZE];
    struct uint256 wide = wei_to_uint256(move->value);

    hex_write(data, outer, write_act(outer, sizeof(outer), move), true);
    uint256_print_quantity(value, &wide);
    json_decref(anvil_send(world->rpc, EVE, contract, data, value));
}

/* What the contract says to a move of a contract of the test. */
static enum game_refusal_kind refused_through(struct world *world, const struct address *contract,
                                              const struct game_move *move)
{
    uint8_t data[GAME_MOVE_SIZE_MAX + 128];
    uint8_t result[RPC_DATA_MAX];
    struct game_refusal refused;
    struct error error;
    size_t data_size = write_act(data, sizeof(data), move);
    size_t size;

    assert_int_equal(evm_call(world->rpc, result, sizeof(result), &size, &world->accounts[EVE],
                              contract, 0, data, data_size, &error),
                     STATUS_REFUSED);
    game_refusal_decode(&refused, result, size);
    return refused.kind;
}

/* What a function without arguments returns. */
static void ask_word(uint8_t word[ABI_WORD_SIZE], struct world *world,
                     const struct address *contract, const char *function)
{
    uint8_t data[ABI_SELECTOR_SIZE];
    struct byte_writer writer;
    struct error error;
    size_t size;

    byte_writer_init(&writer, data, sizeof(data));
    abi_put_selector(&writer, function);
    assert_int_equal(evm_call(world->rpc, word, ABI_WORD_SIZE, &size, &world->accounts[0], contract,
                              0, data, writer.used, &error),
                     STATUS_OK);
}

static bool stole(struct world *world, const struct address *thief)
{
    uint8_t word[ABI_WORD_SIZE];

    ask_word(word, world, thief, "stole()");
    return word[ABI_WORD_SIZE - 1] != 0;
}

/* The thief is a client that closes its job, and withdraws again from inside its payment. */
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
    move = about(GAME_CLOSE, NULL);
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

static void tell_coin(struct world *world, const struct address *coin, struct byte_writer *writer)
{
    char data[2 * CALL_MAX + 3];

    hex_write(data, writer->bytes, writer->used, true);
    json_decref(anvil_send(world->rpc, EVE, coin, data, "0x0"));
}

/* The coin has a balance for the thief, and lets the registry take it. */
static void give_coins(struct world *world, const struct address *coin, const struct address *thief)
{
    const struct uint256 coins = wei_to_uint256(1000 * WEI_PER_ETHER);
    uint8_t call[CALL_MAX];
    char data[2 * CALL_MAX + 3];
    char from[ADDRESS_TEXT_SIZE];
    char to[ADDRESS_TEXT_SIZE];
    struct byte_writer writer;

    byte_writer_init(&writer, call, sizeof(call));
    abi_put_selector(&writer, "mint(address,uint256)");
    abi_put_address(&writer, thief);
    abi_put_uint256(&writer, &coins);
    tell_coin(world, coin, &writer);

    byte_writer_init(&writer, call, sizeof(call));
    abi_put_selector(&writer, "approve(address,uint256)");
    abi_put_address(&writer, &world->registry);
    abi_put_uint256(&writer, &coins);
    hex_write(data, call, writer.used, true);
    address_print(from, thief);
    address_print(to, coin);
    json_decref(anvil_call(world->rpc, "anvil_impersonateAccount", json_pack("[s]", from)));
    json_decref(anvil_call(world->rpc, "anvil_setBalance",
                           json_pack("[s, s]", from, "0xde0b6b3a7640000"))); /* its gas */
    json_decref(anvil_call(world->rpc, "eth_sendTransaction",
                           json_pack("[{s:s, s:s, s:s}]", "from", from, "to", to, "data", data)));
}

/* The coin calls the payer back before it moves, and the payer makes that move. */
static void call_back(struct world *world, const struct address *coin, const struct game_move *move)
{
    uint8_t call[CALL_MAX];
    uint8_t inner[GAME_MOVE_SIZE_MAX + 128];
    struct byte_writer writer;
    size_t place;

    byte_writer_init(&writer, call, sizeof(call));
    abi_put_selector(&writer, "behave(bool,bool,uint256,bytes)");
    abi_put_u64(&writer, false);
    abi_put_u64(&writer, false);
    abi_put_u64(&writer, 0);
    place = abi_put_offset(&writer);
    abi_set_offset(&writer, place, ABI_SELECTOR_SIZE);
    abi_put_blob(&writer, inner, write_act(inner, sizeof(inner), move));
    tell_coin(world, coin, &writer);
}

/* Client and solver in one, the thief closes its job while the token takes the stake for it. */
static void test_a_token_that_calls_back_robs_nobody(void **state)
{
    struct address coin;
    struct address thief;
    struct game_move move;
    struct world world;

    (void)state;
    set_up(&world);
    open_and_accept(&world, 1); /* for its terms */
    coin = anvil_deploy(world.rpc, 0, COIN_CODE, NULL, "0x0");
    deploy(&world, &coin);
    thief = anvil_deploy(world.rpc, 0, THIEF_CODE, &world.registry, "0x0");
    give_coins(&world, &coin, &thief);

    move = about(GAME_OPEN, NULL);
    move.terms = world.terms;
    move.terms.seats = 0; /* so nobody has to wait for a panel */
    move.terms.coverage_ppm = 0;
    move.terms.panel_least = 0;
    act(&world, &thief, &move);
    world.job = game_job_key(&world.place, &thief, &world.terms.job_id, move.terms.salt);
    move = about(GAME_CLOSE, &world.job);
    call_back(&world, &coin, &move);
    move = about(GAME_ACCEPT, &world.job);
    assert_int_equal(refused_through(&world, &thief, &move), GAME_WRONG_PHASE);
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
    move = about(GAME_CLOSE, NULL);
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
    move.terms.reward = 0;
    assert_int_equal(refused_to(&world, CLIENT, &move), GAME_BAD_TERMS);
    move = good;
    move.terms.bond = 0;
    assert_int_equal(refused_to(&world, CLIENT, &move), GAME_BAD_TERMS);
    move = good;
    move.terms.bond = 3 * move.terms.fee; /* fewer than four */
    assert_int_equal(refused_to(&world, CLIENT, &move), GAME_BAD_TERMS);
    move = good;
    move.terms.steps = GAME_TIME_MAX;
    move.terms.segment_steps = 1; /* more segments than there may be */
    assert_int_equal(refused_to(&world, CLIENT, &move), GAME_BAD_TERMS);
    move = good;
    move.terms.steps = GAME_SEGMENTS_MAX;
    move.terms.segment_steps = 1;
    move.terms.reward = WEI_MAX; /* the escrow would overflow what a slot holds */
    assert_int_equal(refused_to(&world, CLIENT, &move), GAME_BAD_TERMS);
    move = good;
    move.value--;
    assert_int_equal(refused_to(&world, CLIENT, &move), GAME_WRONG_VALUE);
    move.value += 2;
    assert_int_equal(refused_to(&world, CLIENT, &move), GAME_WRONG_VALUE);
    move = about(GAME_CLOSE, &world.job); /* money to a move that takes none */
    move.value = 1;
    assert_int_equal(refused_to(&world, CLIENT, &move), GAME_REFUSED_NOT);
    tear_down(&world);
}

/* ---- gas ---------------------------------------------------------------------- */

static void settle(struct world *world, const struct game_segment *segment, uint32_t seconds)
{
    struct game_move move = with_segment(world, GAME_SETTLE, segment);

    assert_int_equal(refused_to(world, EVE, &move), GAME_TOO_EARLY);
    anvil_pass_time(world->rpc, seconds);
    done(world, EVE, &move);
}

/* From commit to final, with two seats. */
static struct game_segment cover(struct world *world, uint32_t index)
{
    struct game_segment segment = commit(world, index);

    draw(world, &segment);
    world->far = place_of(world, ALICE) >= NEAR_PLACES || place_of(world, BOB) >= NEAR_PLACES;
    seal_all(world, &segment);
    reveal_all(world, &segment);
    settle(world, &segment, REVEAL_S + CLAIM_S + 1);
    return segment;
}

static void depart_all(struct world *world, uint32_t generation, uint32_t count)
{
    for (uint32_t i = count; i-- > 0;) {
        struct game_move move = about(GAME_DEPART, &world->job);

        move.generation = generation;
        move.entry = i;
        done(world, ALICE + i % 2, &move);
    }
}

/* A whole job. Returns what its second segment cost, and whether it was drawn far. */
static uint64_t play_everything(struct world *world, bool *far)
{
    struct game_move move;
    uint64_t gas;

    open_job(world, 1, 3, 2);
    move = about(GAME_ANNOUNCE, &world->job);
    move.contact = (struct game_bytes){(const uint8_t *)"https://example.org", 19};
    done(world, ALICE, &move);
    accept(world);
    (void)cover(world, 0);
    move = about(GAME_DEPART, &world->job); /* bonds stay while a solver is at work */
    assert_int_equal(refused_to(world, ALICE, &move), GAME_ENGAGED);
    gas = world->sum;
    (void)cover(world, 1);
    gas = world->sum - gas;
    *far = world->far;
    (void)cover(world, 2);
    depart_all(world, 0, 2);
    return gas;
}

/* The seats of a round say that they could not get the states. */
static void say_unseen(struct world *world, const struct game_segment *segment, uint32_t first)
{
    for (uint32_t n = first; n < first + 2; n++) {
        struct game_move move = about(GAME_UNSEEN, &world->job);
        uint32_t account;

        move.index = segment->index;
        move.about = game_segment_hash(&world->job, segment);
        move.place = seat_of(world, n, &account);
        done(world, account, &move);
        assert_int_equal(refused_to(world, account, &move), GAME_ALREADY_SEALED);
    }
}

/* Nobody on the panel gets the states: all is void, and nobody accepts until the client resumes. */
static void play_void(struct world *world)
{
    struct game_segment segment;
    struct game_move move;

    open_job(world, 2, 3, 2);
    enlist(world, 2);
    accept(world);
    segment = commit(world, 0);
    draw(world, &segment);
    say_unseen(world, &segment, 0);
    settle(world, &segment, SEAL_S + REVEAL_S + 1); /* the round is over */
    draw_again(world, &segment);
    say_unseen(world, &segment, 2);
    settle(world, &segment, SEAL_S + REVEAL_S + GAME_WAITS_MAX * CLAIM_S + 1);
    move = about(GAME_ACCEPT, &world->job);
    move.value = world->terms.stake;
    assert_int_equal(refused_to(world, SOLVER, &move), GAME_BARRED);
    move = about(GAME_RESUME, &world->job);
    move.value = 4 * WEI_PER_ETHER; /* two segments on each side, of which one in the pool's name */
    assert_int_equal(refused_to(world, CLIENT, &move), GAME_WRONG_VALUE);
    move.value = game_void_price(&world->terms, 1) + 2 * 2 * world->terms.fee;
    done(world, CLIENT, &move);
    depart_all(world, 0, 4);
}

/* The next tenure of that job: its client wants no more, and its solver is late. */
static void play_late(struct world *world)
{
    struct game_move move;

    world->generation = 1;
    world->panel = 0;
    enlist(world, 2);
    accept(world);
    move = about(GAME_STOP, &world->job);
    done(world, CLIENT, &move);
    move = about(GAME_RELEASE, &world->job);
    assert_int_equal(refused_to(world, BOB, &move), GAME_TOO_EARLY);
    anvil_pass_time(world->rpc, 1001);
    done(world, BOB, &move);
    move = about(GAME_CLOSE, &world->job);
    assert_int_equal(refused_to(world, BOB, &move), GAME_NOT_YOURS);
    done(world, CLIENT, &move);
    depart_all(world, 1, 2);
}

/* The client refuses what is not final. */
static void play_refusal(struct world *world)
{
    struct game_segment segment;
    struct game_move move;

    open_and_accept(world, 3);
    segment = commit(world, 0);
    draw(world, &segment);
    seal_all(world, &segment);
    reveal_all(world, &segment);
    move = about(GAME_REFUSE, &world->job);
    assert_int_equal(refused_to(world, EVE, &move), GAME_NOT_YOURS);
    done(world, CLIENT, &move);
    settle(world, &segment, SEAL_S + REVEAL_S + CLAIM_S + 1);
    move = about(GAME_CLOSE, &world->job);
    done(world, CLIENT, &move);
    depart_all(world, 0, 2);
}

/* A job that no panel checks. */
static void play_unchecked(struct world *world)
{
    struct game_segment segment;
    struct game_move move;

    open_job(world, 4, 1, 0);
    accept(world);
    segment = commit(world, 0);
    move = with_segment(world, GAME_DRAW, &segment);
    done(world, EVE, &move);
    settle(world, &segment, SEAL_S + REVEAL_S + CLAIM_S + 1);
}

/* A segment that chance does not cover. Returns what it cost. */
static uint64_t play_uncovered(struct world *world)
{
    struct game_segment segment;
    struct game_move move;
    uint64_t gas;

    world->coverage_ppm = 1;
    open_job(world, 5, 4, 2);
    accept(world);
    segment = commit(world, 0);
    draw(world, &segment);
    gas = world->sum;
    segment = commit(world, 1);
    draw(world, &segment);
    gas = world->sum - gas;
    move = with_segment(world, GAME_SETTLE, &segment);
    assert_int_equal(refused_to(world, EVE, &move), GAME_NOT_NEEDED);
    anvil_pass_time(world->rpc, 1001);
    move = about(GAME_RELEASE, &world->job);
    done(world, EVE, &move);
    move = about(GAME_CLOSE, &world->job);
    done(world, CLIENT, &move);
    depart_all(world, 0, 2);
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

static wei burned(struct world *world)
{
    uint8_t word[ABI_WORD_SIZE];
    struct uint256 wide;
    wei amount = 0;

    ask_word(word, world, &world->registry, "burned()");
    wide = uint256_from_bytes(word);
    assert_true(wei_from_uint256(&amount, &wide));
    return amount;
}

static void check_gas(const char *name, uint64_t gas)
{
    uint64_t documented;

    gas_bill_documented(&documented, 1, name);
    if (getenv("LOCKSTEP_WRITE_GAS") != NULL) {
        print_message("| %s | %llu |\n", name, (unsigned long long)gas);
    } else if (10 * gas > 11 * documented) {
        fail_msg("%s costs %llu gas, docs/GAS.md says %llu", name, (unsigned long long)gas,
                 (unsigned long long)documented);
    }
}

static void test_every_move_costs_what_is_documented_and_no_money_stays(void **state)
{
    static uint8_t code[2 * REGISTRY_SIZE_MOST];
    struct world world;
    struct error error;
    uint64_t covered;
    uint64_t uncovered;
    size_t size;
    bool far = false;

    (void)state;
    set_up(&world);
    covered = play_everything(&world, &far);
    play_void(&world);
    play_late(&world);
    play_refusal(&world);
    play_unchecked(&world);
    uncovered = play_uncovered(&world);
    withdraw_all(&world);
    assert_true(held(&world) == burned(&world));
    for (int kind = 0; kind < GAME_SEAL_CLAIM; kind++) {
        assert_true(world.gas[kind] > 0);
        check_gas(game_move_name((enum game_move_kind)kind), world.gas[kind]);
    }
    check_gas("a covered segment of 50 steps with two seats", covered);
    assert_true(covered <= COVERED_GAS_MOST + (far ? FAR_GAS_MOST : 0));
    check_gas("an uncovered segment of 50 steps", uncovered);
    assert_true(uncovered <= UNCOVERED_GAS_MOST);
    assert_int_equal(evm_code_at(world.rpc, code, sizeof(code), &size, &world.registry, &error),
                     STATUS_OK);
    assert_true(size <= REGISTRY_SIZE_MOST);
    tear_down(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_verdict_cannot_be_copied),
        cmocka_unit_test(test_strangers_judge_nothing),
        cmocka_unit_test(test_reentrancy_pays_once),
        cmocka_unit_test(test_a_token_that_calls_back_robs_nobody),
        cmocka_unit_test(test_a_target_that_takes_no_money_loses_none),
        cmocka_unit_test(test_dust_and_absurd_terms_are_refused),
        cmocka_unit_test(test_every_move_costs_what_is_documented_and_no_money_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
