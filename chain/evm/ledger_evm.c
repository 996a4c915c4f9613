/* ledger_evm.c - the ledger on an EVM chain: contract calls, outbox and index. See ledger.h. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/steady.h"
#include "chain/codec/abi.h"
#include "chain/evm/evm.h"
#include "chain/evm/evm_index.h"
#include "chain/evm/evm_open.h"
#include "chain/evm/evm_registry.h"
#include "chain/evm/evm_seeds.h"
#include "chain/evm/evm_token.h"
#include "chain/evm/ledger_evm.h"
#include "chain/evm/outbox.h"
#include "chain/evm/outbox_fees.h"
#include "chain/game/event_log.h"
#include "chain/game/ledger_backend.h"

enum {
    WORDS_MAX = 20,
    JOB_WORDS = 19,
    CLAIM_WORDS = 15,
    CHAIN_CHECK_MS = 45000,
};

/* More than each move can cost, beside its bytes (docs/GAS.md has the costs): a claim must not fail
 * because a node that lies or lags estimates too little. Unused gas is not paid. */
static const uint32_t gas_of[GAME_MOVE_KINDS] = {
    [GAME_OPEN] = 600000,       [GAME_CLOSE] = 150000,    [GAME_RESUME] = 150000,
    [GAME_STOP] = 150000,       [GAME_REFUSE] = 150000,   [GAME_ACCEPT] = 250000,
    [GAME_COMMIT] = 250000,     [GAME_ENLIST] = 700000,   [GAME_DEPART] = 200000,
    [GAME_ANNOUNCE] = 80000,    [GAME_DRAW] = 700000,     [GAME_SEAL] = 200000,
    [GAME_REVEAL] = 200000,     [GAME_UNSEEN] = 200000,   [GAME_SETTLE] = 2200000,
    [GAME_RELEASE] = 200000,    [GAME_WITHDRAW] = 150000, [GAME_SEAL_CLAIM] = 80000,
    [GAME_CLAIM] = 900000,      [GAME_ALARM] = 900000,    [GAME_ANSWER] = 200000,
    [GAME_QUERY] = 600000,      [GAME_REPLY] = 500000,    [GAME_CONVICT] = 6000000,
    [GAME_TIMEOUT] = 1500000,   [GAME_LAPSE] = 1000000,   [GAME_PAY] = 250000,
    [GAME_CHALLENGE] = 1000000, [GAME_FIX] = 150000,
};

/* For each byte of a move: its calldata, and what is computed from it. */
#define GAS_OF_A_BYTE  64
/* What a token may use of it, where the registry plays for one. */
#define GAS_OF_A_TOKEN 150000

struct evm {
    struct rpc *rpc;
    struct outbox *outbox; /* NULL without a key */
    bool check_purse;
    struct database sql; /* the event log */
    struct evm_index index;
    uint64_t chain_id;
    uint64_t chain_checked_ms; /* when the endpoints were asked for it, on the steady clock */
    struct address account;
    char state_dir[FILE_PATH_MAX];
    struct address registry;
    struct address referee;
    const struct address *token; /* of the ledger; zero: the chain's coin */
    const struct currency *currency;
    struct evm_seeds seeds;
    uint8_t data[GAME_LOG_SIZE_MAX]; /* of the entry that was read last */
};

/* ---- moves -------------------------------------------------------------------- */

/* Moves of a dispute do not wait for the next round. */
static bool is_urgent(enum game_move_kind kind)
{
    return game_move_contract(kind) == GAME_REFEREE;
}

/* The outbox is the account's on the whole chain: an equal move on another registry is another. */
static void name_here(char full[OUTBOX_NAME_MAX + 1], const struct evm *evm, const char *name)
{
    char registry[ADDRESS_TEXT_SIZE];

    static_assert(ADDRESS_TEXT_SIZE + LEDGER_NAME_MAX <= OUTBOX_NAME_MAX, "room for both");
    address_print(registry, &evm->registry);
    (void)snprintf(full, OUTBOX_NAME_MAX + 1, "%s %.*s", registry, LEDGER_NAME_MAX, name);
}

static bool has_token(const struct evm *evm)
{
    return !address_is_zero(evm->token);
}

static uint64_t gas_of_kind(const struct evm *evm, enum game_move_kind kind)
{
    return gas_of[kind] + (has_token(evm) ? GAS_OF_A_TOKEN : 0);
}

static uint64_t gas_of_move(const struct evm *evm, const struct game_move *move)
{
    return gas_of_kind(evm, move->kind) + (uint64_t)GAS_OF_A_BYTE * game_move_size(move);
}

static enum status get_account(void *self, wei *purse, wei *owed, const struct address *account,
                               struct error *error);

/* Of a token a move is also paid with what the account is owed. */
static enum status check_tokens(struct evm *evm, wei value, struct error *error)
{
    char account[ADDRESS_TEXT_SIZE];
    char token[ADDRESS_TEXT_SIZE];
    char purse_text[WEI_TEXT_SIZE];
    char value_text[WEI_TEXT_SIZE];
    struct error unknown;
    wei purse = 0;
    wei owed = 0;

    error_init(&unknown);
    if (get_account(evm, &purse, &owed, &evm->account, &unknown) != STATUS_OK || purse >= value ||
        owed >= value) {
        return STATUS_OK;
    }
    address_print(account, &evm->account);
    address_print(token, evm->token);
    currency_print(purse_text, evm->currency, purse);
    currency_print(value_text, evm->currency, value);
    (void)error_set(error, STATUS_REFUSED, "%s has %s, and this needs %s, of the token %s", account,
                    purse_text, value_text, token);
    error_advise(error, "send tokens to this account first");
    return STATUS_REFUSED;
}

static enum status afford(struct evm *evm, wei value, uint64_t gas, struct error *error)
{
    if (!has_token(evm)) {
        return outbox_check_purse(evm->outbox, value, gas, 0, error);
    }
    TRY(outbox_check_purse(evm->outbox, 0, gas, 0, error));
    return check_tokens(evm, value, error);
}

static enum status evm_afford(void *self, enum game_move_kind kind, wei value, struct error *error)
{
    struct evm *evm = self;

    return afford(evm, value, gas_of_kind(evm, kind), error);
}

/* What a transaction pays that is sent now: the base fee and the usual tip. */
static enum status get_gas_price(void *self, wei *price, struct error *error)
{
    struct evm *evm = self;
    struct evm_fees fees;
    wei base = 0;
    wei tip = 0;

    TRY(evm_fees_now(evm->rpc, &fees, error));
    if (!wei_from_uint256(&base, &fees.base_wei) || !wei_from_uint256(&tip, &fees.tip_wei) ||
        tip > ~(wei)0 - base) {
        return error_set(error, STATUS_BAD_FORMAT, "the price of gas makes no sense");
    }
    *price = base + tip;
    return STATUS_OK;
}

/* Is a move of this name on its way, or done? */
static bool is_under_way(struct evm *evm, const char *full)
{
    struct outbox_status found;
    struct error unknown;

    error_init(&unknown);
    return outbox_look(evm->outbox, &found, full, &unknown) == STATUS_OK &&
           found.state != OUTBOX_REFUSED && !(found.state == OUTBOX_FINAL && found.reverted);
}

/* Before a move that is not on its way: can it be paid, and may the registry take the payment? */
static enum status prepare(struct evm *evm, const char *full, const struct game_move *move,
                           struct error *error)
{
    if (is_under_way(evm, full)) {
        return STATUS_OK;
    }
    if (evm->check_purse) {
        TRY(afford(evm, move->value, gas_of_move(evm, move), error));
    }
    return has_token(evm) && move->value > 0
               ? evm_token_approve(evm->outbox, evm->rpc, evm->token, &evm->account, &evm->registry,
                                   move->value, error)
               : STATUS_OK;
}

static enum status submit(struct evm *evm, const char *name, const struct game_move *move,
                          struct error *error)
{
    const struct address *const contracts[] = {
        [GAME_REGISTRY] = &evm->registry,
        [GAME_REFEREE] = &evm->referee,
        [GAME_SEEDS] = &evm->seeds.contract,
    };
    char full[OUTBOX_NAME_MAX + 1];
    uint8_t *data;
    size_t size;
    enum status status;

    name_here(full, evm, name);
    TRY(prepare(evm, full, move, error));
    data = malloc(game_move_size(move));
    if (data == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a move");
    }
    game_move_encode(data, &size, move);
    status =
        outbox_add(evm->outbox, full, contracts[game_move_contract(move->kind)],
                   has_token(evm) ? 0 : move->value, data, size, gas_of_move(evm, move), error);
    free(data);
    if (status == STATUS_OK && is_urgent(move->kind)) {
        struct error weather; /* the move is on disk: after a failure ledger_work sends it */

        error_init(&weather);
        status = outbox_send(evm->outbox, &weather);
        status = status == STATUS_UNREACHABLE || status == STATUS_STOPPED ? STATUS_OK : status;
        if (status != STATUS_OK) {
            *error = weather;
        }
    }
    return status;
}

static enum status evm_submit(void *self, const char *name, const struct game_move *move,
                              struct error *error)
{
    struct evm *evm = self;
    uint8_t proof[GAME_HEADER_MAX];
    char full[OUTBOX_NAME_MAX + 1];
    struct game_move drawn;

    if (move->kind != GAME_DRAW || move->segment.panel == 0) {
        return submit(evm, name, move, error);
    }
    name_here(full, evm, name);
    if (is_under_way(evm, full)) { /* another draw may have another header */
        return STATUS_OK;
    }
    drawn = *move;
    drawn.proof.bytes = proof;
    TRY(evm_seeds_prove(&evm->seeds, evm->rpc, proof, &drawn.proof.size, &move->commits, error));
    return submit(evm, name, &drawn, error);
}

/* It failed, and the block may still go: what will be a refusal says so already. */
static void wait_for_failure(struct ledger_outcome *outcome)
{
    outcome->state = LEDGER_MOVE_WAITING;
    (void)snprintf(
        outcome->trouble, sizeof(outcome->trouble),
        "it failed in block %llu, which is not final yet: %s", (unsigned long long)outcome->height,
        outcome->refusal.kind == GAME_REFUSED_NOT ? "for no known reason"
                                                  : game_refusal_text(outcome->refusal.kind));
}

static enum status evm_look(void *self, struct ledger_outcome *outcome, const char *name,
                            struct error *error)
{
    struct evm *evm = self;
    struct outbox_status found;
    char full[OUTBOX_NAME_MAX + 1];
    enum status status;

    name_here(full, evm, name);
    status = outbox_look(evm->outbox, &found, full, error);
    memset(outcome, 0, sizeof(*outcome));
    if (status != STATUS_OK) {
        return status;
    }
    switch (found.state) {
    case OUTBOX_WAITING:
    case OUTBOX_SENT:
        outcome->state = LEDGER_MOVE_WAITING;
        break;
    case OUTBOX_MINED:
        outcome->state = LEDGER_MOVE_DONE;
        break;
    case OUTBOX_FINAL:
        outcome->state = found.reverted ? LEDGER_MOVE_REFUSED : LEDGER_MOVE_FINAL;
        break;
    case OUTBOX_REFUSED:
        outcome->state = LEDGER_MOVE_REFUSED;
        break;
    }
    game_refusal_decode(&outcome->refusal, found.revert, found.revert_size);
    outcome->transaction = found.hash;
    outcome->height = found.height;
    (void)snprintf(outcome->trouble, sizeof(outcome->trouble), "%s", found.trouble);
    if (found.state == OUTBOX_MINED && found.reverted) {
        wait_for_failure(outcome);
    }
    return STATUS_OK;
}

/* An endpoint may become one of another chain, or have been away when the ledger was opened. */
static void check_chain(struct evm *evm)
{
    uint64_t now_ms = steady_ms();

    if (evm->chain_checked_ms == 0 || now_ms - evm->chain_checked_ms >= CHAIN_CHECK_MS) {
        evm_check_chain(evm->rpc, evm->chain_id);
        evm->chain_checked_ms = now_ms;
    }
}

static size_t list_endpoints(const void *self, struct ledger_endpoint list[LEDGER_ENDPOINTS_MAX])
{
    const struct evm *evm = self;
    size_t count = rpc_endpoint_count(evm->rpc);

    static_assert(RPC_ENDPOINTS_MAX <= LEDGER_ENDPOINTS_MAX, "room for all");
    for (size_t i = 0; i < count; i++) {
        struct rpc_endpoint_state state;

        rpc_endpoint_look(evm->rpc, &state, i);
        list[i] = (struct ledger_endpoint){.since_s = state.since_s};
        (void)snprintf(list[i].label, sizeof(list[i].label), "%s", state.label);
        (void)snprintf(list[i].reason, sizeof(list[i].reason), "%s", state.reason);
    }
    return count;
}

static enum status count_reopened(void *self, uint64_t *count, struct error *error)
{
    struct evm *evm = self;

    return evm->outbox == NULL ? STATUS_OK : outbox_reopened(evm->outbox, count, error);
}

static enum status work(struct evm *evm, struct error *error)
{
    enum status sent = evm->outbox == NULL ? STATUS_OK : outbox_work(evm->outbox, error);
    enum status indexed;

    if (sent != STATUS_OK && sent != STATUS_UNREACHABLE) {
        return sent;
    }
    indexed = evm_index_work(&evm->index, error);
    return indexed != STATUS_OK ? indexed : sent;
}

static enum status evm_work(void *self, struct error *error)
{
    struct evm *evm = self;

    check_chain(evm);
    return work(evm, error);
}

static enum status is_behind(void *self, bool *behind, struct error *error)
{
    struct evm *evm = self;
    struct event_log_block top = {0};
    enum status status = event_log_top(&evm->sql, &top, error);

    *behind = top.height < evm->index.head && evm->index.head >= evm->index.first_height;
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- reading ------------------------------------------------------------------ */

static enum status evm_next(void *self, struct ledger_entry *entry, uint64_t after, uint32_t depth,
                            const struct hash32 *topic, struct error *error)
{
    struct evm *evm = self;
    struct event_log_block top;
    enum status status = event_log_top(&evm->sql, &top, error);

    if (status != STATUS_OK) {
        top.height = 0;
    }
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        return status;
    }
    return event_log_next(&evm->sql, entry, evm->data, after,
                          top.height < depth ? 0 : top.height - depth, topic, error);
}

/* Calls a getter of the contract with one word; the answer must have that many words. */
static enum status read_words(struct evm *evm, uint8_t *words, size_t word_count,
                              const struct address *contract, const char *signature,
                              const struct hash32 *key, struct error *error)
{
    uint8_t data[ABI_SELECTOR_SIZE + ABI_WORD_SIZE];
    struct byte_writer writer;
    size_t size;

    byte_writer_init(&writer, data, sizeof(data));
    abi_put_selector(&writer, signature);
    abi_put_hash(&writer, key);
    TRY(evm_call(evm->rpc, words, WORDS_MAX * ABI_WORD_SIZE, &size, &evm->account, contract, 0,
                 data, writer.used, error));
    if (size != word_count * ABI_WORD_SIZE) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the contract does not answer %s as a registry does: is the address "
                         "right?",
                         signature);
    }
    return STATUS_OK;
}

/* Reads numbers that the contract keeps below 128 bits. */
static wei take_number(struct abi_reader *reader, bool *good)
{
    struct uint256 wide = uint256_of(0);
    wei value = 0;

    if (abi_get_uint256(reader, &wide) != STATUS_OK || !wei_from_uint256(&value, &wide)) {
        *good = false;
    }
    return value;
}

static struct address take_address(struct abi_reader *reader, bool *good)
{
    struct address address = {{0}};

    if (abi_get_address(reader, &address) != STATUS_OK) {
        *good = false;
    }
    return address;
}

static struct hash32 take_hash(struct abi_reader *reader, bool *good)
{
    struct hash32 hash = {{0}};

    if (abi_get_hash(reader, &hash) != STATUS_OK) {
        *good = false;
    }
    return hash;
}

/* The order is that of jobs() in Registry.sol. */
static bool read_job(struct ledger_job *job, struct abi_reader *reader)
{
    bool good = true;

    memset(job, 0, sizeof(*job));
    job->phase = (enum game_phase)take_number(reader, &good);
    job->client = take_address(reader, &good);
    job->solver = take_address(reader, &good);
    job->generation = (uint32_t)take_number(reader, &good);
    job->segments = (uint32_t)take_number(reader, &good);
    job->committed = (uint32_t)take_number(reader, &good);
    job->drawn = (uint32_t)take_number(reader, &good);
    job->leg_start = (uint32_t)take_number(reader, &good);
    job->finalized = (uint32_t)take_number(reader, &good);
    job->open_claims = (uint32_t)take_number(reader, &good);
    job->panel = (uint32_t)take_number(reader, &good);
    job->opened_at_s = (uint64_t)take_number(reader, &good);
    job->due_s = (uint64_t)take_number(reader, &good);
    job->refused_until_s = (uint64_t)take_number(reader, &good);
    job->pool = take_number(reader, &good);
    job->missing_escrow = take_number(reader, &good);
    job->missing_pool = take_number(reader, &good);
    job->ended = take_number(reader, &good) != 0;
    job->barred = take_number(reader, &good) != 0;
    return good && job->phase <= GAME_PHASE_CLOSED;
}

static enum status get_job(void *self, struct ledger_job *job, const struct hash32 *key,
                           struct error *error)
{
    struct evm *evm = self;
    uint8_t words[WORDS_MAX * ABI_WORD_SIZE];
    struct abi_reader reader;

    TRY(read_words(evm, words, JOB_WORDS, &evm->registry, "jobs(bytes32)", key, error));
    abi_reader_init(&reader, words, JOB_WORDS * ABI_WORD_SIZE);
    if (!read_job(job, &reader)) {
        return error_set(error, STATUS_BAD_FORMAT, "the contract's answer is no job");
    }
    return job->phase != GAME_PHASE_NONE
               ? STATUS_OK
               : error_set(error, STATUS_NOT_FOUND, "there is no such job on this ledger");
}

/* The order is that of struct Trial in Referee.sol. */
static bool read_claim(struct ledger_claim *claim, struct abi_reader *reader)
{
    struct hash32 root;
    bool good = true;

    memset(claim, 0, sizeof(*claim));
    claim->phase = (enum game_claim_phase)take_number(reader, &good);
    claim->turn = (enum game_turn)take_number(reader, &good);
    claim->outcome = (enum game_outcome)take_number(reader, &good);
    claim->job = take_hash(reader, &good);
    claim->segment = take_hash(reader, &good);
    claim->subject = take_hash(reader, &good);
    claim->generation = (uint32_t)take_number(reader, &good);
    claim->rank = (uint64_t)take_number(reader, &good);
    claim->solver = take_address(reader, &good);
    claim->lead = take_address(reader, &good);
    claim->claimants = (uint32_t)take_number(reader, &good);
    claim->since_s = (uint64_t)take_number(reader, &good);
    claim->solver_left_s = (uint32_t)take_number(reader, &good);
    claim->lead_left_s = (uint32_t)take_number(reader, &good);
    root = take_hash(reader, &good);
    memcpy(claim->trace_root.bytes, root.bytes, DIGEST_SIZE);
    return good && claim->phase <= GAME_CLAIM_CLOSED && claim->turn <= GAME_TURN_ACCUSED &&
           claim->outcome <= GAME_LAPSED;
}

static enum status get_claim(void *self, struct ledger_claim *claim, const struct hash32 *key,
                             struct error *error)
{
    struct evm *evm = self;
    uint8_t words[WORDS_MAX * ABI_WORD_SIZE];
    struct abi_reader reader;

    TRY(read_words(evm, words, CLAIM_WORDS, &evm->referee, "claims(bytes32)", key, error));
    abi_reader_init(&reader, words, CLAIM_WORDS * ABI_WORD_SIZE);
    if (!read_claim(claim, &reader)) {
        return error_set(error, STATUS_BAD_FORMAT, "the contract's answer is no claim");
    }
    return claim->phase != GAME_CLAIM_NONE
               ? STATUS_OK
               : error_set(error, STATUS_NOT_FOUND, "there is no such claim on this ledger");
}

static enum status get_account(void *self, wei *purse, wei *owed, const struct address *account,
                               struct error *error)
{
    struct evm *evm = self;
    uint8_t words[WORDS_MAX * ABI_WORD_SIZE];
    struct abi_reader reader;
    struct hash32 key = {{0}};
    bool good = true;

    memcpy(key.bytes + HASH32_SIZE - ADDRESS_SIZE, account->bytes, ADDRESS_SIZE);
    TRY(read_words(evm, words, 1, &evm->registry, "owed(address)", &key, error));
    abi_reader_init(&reader, words, ABI_WORD_SIZE);
    *owed = take_number(&reader, &good);
    if (!good) {
        return error_set(error, STATUS_BAD_FORMAT, "the contract owes more money than there is");
    }
    return has_token(evm) ? evm_token_balance(evm->rpc, purse, evm->token, account, error)
                          : evm_balance(evm->rpc, purse, account, error);
}

static enum status each_gas(void *self, const struct address *account,
                            void (*take)(void *context, wei amount, uint64_t time_s), void *context,
                            struct error *error)
{
    const struct evm *evm = self;
    char path[FILE_PATH_MAX];

    TRY(evm_open_path(path, evm->state_dir, evm->chain_id, account, error));
    return outbox_fees_each(path, take, context, error);
}

static enum status get_clock(void *self, struct ledger_clock *clock, struct error *error)
{
    struct evm *evm = self;
    struct evm_block block;
    uint64_t height;

    TRY(evm_head(evm->rpc, &height, error));
    TRY(evm_block_at(evm->rpc, &block, height, error));
    clock->height = block.height;
    clock->time_s = block.time_s;
    clock->seed_delay = evm->seeds.delay + 1; /* endpoints try a move in the newest block */
    return STATUS_OK;
}

static enum status get_fixed(void *self, uint64_t *source, uint64_t height, uint64_t time_s,
                             struct error *error)
{
    struct evm *evm = self;

    return evm_seeds_fixed(&evm->seeds, evm->rpc, source, height, time_s, error);
}

/* Anything else that the contract does is no approval. */
static enum status get_signed(void *self, const struct address *contract, const struct hash32 *hash,
                              const struct game_bytes *signature, struct error *error)
{
    uint8_t call[ABI_SELECTOR_SIZE + 3 * ABI_WORD_SIZE + GAME_VOUCH_MAX];
    struct evm *evm = self;
    struct hash32 approval = {{0}}; /* the selector itself */
    struct hash32 word;
    struct byte_writer writer;
    enum status status;

    assert(signature->size <= GAME_VOUCH_MAX);
    byte_writer_init(&writer, call, sizeof(call));
    abi_put_selector(&writer, "isValidSignature(bytes32,bytes)");
    abi_put_hash(&writer, hash);
    abi_set_offset(&writer, abi_put_offset(&writer), ABI_SELECTOR_SIZE);
    abi_put_blob(&writer, signature->bytes, signature->size);
    memcpy(approval.bytes, call, ABI_SELECTOR_SIZE);
    status = evm_word(evm->rpc, &word, contract, call, writer.used, error);
    if (status != STATUS_OK && status != STATUS_REFUSED && status != STATUS_BAD_FORMAT &&
        status != STATUS_OVER_LIMIT) {
        return status;
    }
    return status == STATUS_OK && hash32_equal(&word, &approval)
               ? STATUS_OK
               : error_set(error, STATUS_REFUSED, "the contract has not signed that");
}

/* The registry's own notary is asked as the registry asks it: no other answer counts in settle. */
static enum status ask_vouch(void *self, const struct ledger_vouch *vouch, struct error *error)
{
    uint8_t call[ABI_SELECTOR_SIZE + 5 * ABI_WORD_SIZE + GAME_VOUCH_MAX + ABI_WORD_SIZE];
    struct evm *evm = self;
    struct address notary = evm_registry_notary(&evm->registry);
    struct byte_writer writer;
    struct hash32 word = {{0}};
    size_t offset;
    size_t size;

    assert(vouch->signature.size <= GAME_VOUCH_MAX);
    byte_writer_init(&writer, call, sizeof(call));
    abi_put_selector(&writer, "isVouch(address,bytes32,bytes32,bytes)");
    abi_put_address(&writer, &vouch->keeper);
    abi_put_hash(&writer, &vouch->job);
    abi_put_hash(&writer, &vouch->segment);
    offset = abi_put_offset(&writer);
    abi_set_offset(&writer, offset, ABI_SELECTOR_SIZE);
    abi_put_blob(&writer, vouch->signature.bytes, vouch->signature.size);
    TRY(evm_call(evm->rpc, word.bytes, sizeof(word.bytes), &size, &evm->registry, &notary, 0, call,
                 writer.used, error));
    if (size != sizeof(word.bytes)) {
        return error_set(error, STATUS_BAD_FORMAT, "the registry has no notary that answers");
    }
    return word.bytes[sizeof(word.bytes) - 1] == 1
               ? STATUS_OK
               : error_set(error, STATUS_REFUSED, "the keeper has not signed that");
}

/* ---- opening ------------------------------------------------------------------ */

static void close_evm(void *self)
{
    struct evm *evm = self;

    outbox_close(evm->outbox);
    database_close(&evm->sql);
    rpc_free(evm->rpc);
    free(evm);
}

static const struct ledger_backend backend = {
    .close = close_evm,
    .submit = evm_submit,
    .look = evm_look,
    .work = evm_work,
    .behind = is_behind,
    .next = evm_next,
    .get_job = get_job,
    .get_claim = get_claim,
    .get_account = get_account,
    .each_gas = each_gas,
    .afford = evm_afford,
    .get_gas_price = get_gas_price,
    .get_clock = get_clock,
    .get_fixed = get_fixed,
    .get_signed = get_signed,
    .ask_vouch = ask_vouch,
    .reopened = count_reopened,
    .endpoints = list_endpoints,
};

/* A registry that answers nothing: is the endpoint not that far yet, or the address wrong? */
static enum status explain_silence(struct evm *evm, uint64_t first_height, struct error *error)
{
    struct error wrong = *error;
    struct ledger_clock clock;

    TRY(get_clock(evm, &clock, error));
    if (clock.height < first_height || ledger_is_stale(&clock)) {
        (void)error_set(error, STATUS_UNREACHABLE,
                        "the registry is not there at block %llu, which is %llu s old: the "
                        "endpoint is still behind, or the address is wrong",
                        (unsigned long long)clock.height, (unsigned long long)ledger_age_s(&clock));
        error_advise(error, "wait until the endpoint has caught up, or name another one");
        return STATUS_UNREACHABLE;
    }
    *error = wrong;
    return STATUS_BAD_FORMAT;
}

/* An older edition has no TOKEN(). */
static enum status find_contracts(struct evm *evm, struct address *token, struct error *error)
{
    TRY(evm_seeds_delay(&evm->seeds.delay, evm->chain_id, error));
    TRY(evm_registry_part(evm->rpc, token, &evm->registry, "TOKEN()", error));
    TRY(evm_seeds_find(&evm->seeds, evm->rpc, &evm->registry, evm->chain_id, error));
    return evm_registry_part(evm->rpc, &evm->referee, &evm->registry, "REFEREE()", error);
}

static enum status find_currency(struct currency *currency, struct evm *evm, struct error *error)
{
    struct evm_token about;

    if (!has_token(evm)) {
        return STATUS_OK;
    }
    TRY(evm_token_name(evm->rpc, &about, evm->token, error));
    *currency = currency_of_token(about.symbol, about.decimals);
    return STATUS_OK;
}

/* state_dir/events-CHAIN-REGISTRY.db: one for each chain and contract. */
static enum status open_event_log(struct evm *evm, const struct ledger_options *options,
                                  uint64_t chain_id, struct error *error)
{
    static const char schema[] = EVENT_LOG_SCHEMA EVENT_LOG_TOPICS;
    char registry[ADDRESS_TEXT_SIZE];
    char path[FILE_PATH_MAX];

    address_print(registry, &options->registry);
    if (snprintf(path, sizeof(path), "%s/events-%llu-%s.db", options->state_dir,
                 (unsigned long long)chain_id, registry) >= (int)sizeof(path)) {
        return error_set(error, STATUS_OVER_LIMIT, "the state folder's path is too long");
    }
    evm->index = (struct evm_index){.sql = &evm->sql,
                                    .rpc = evm->rpc,
                                    .contracts = {evm->registry, evm->referee, evm->seeds.contract},
                                    .contract_count = 3,
                                    .first_height = options->first_height};
    return database_open(&evm->sql, path, schema, error);
}

enum status ledger_evm_attach(struct ledger *ledger, const struct ledger_options *options,
                              struct error *error)
{
    struct evm *evm;
    uint64_t chain_id = 0;
    enum status status;

    if (address_is_zero(&options->registry)) {
        (void)error_set(error, STATUS_USAGE, "a chain needs the address of its registry contract");
        error_advise(error, "give --registry, or make one: lockstep ledger deploy");
        return STATUS_USAGE;
    }
    evm = calloc(1, sizeof(*evm));
    if (evm == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a ledger");
    }
    evm->account = ledger->account;
    evm->registry = options->registry;
    evm->check_purse = options->check_purse;
    (void)snprintf(evm->state_dir, sizeof(evm->state_dir), "%s", options->state_dir);
    TRY_OUT(evm_open_rpc(&evm->rpc, options, error));
    TRY_OUT(evm_chain_id(evm->rpc, &chain_id, error));
    evm->chain_id = chain_id;
    TRY_OUT(file_private_folder(options->state_dir, error));
    evm->token = &ledger->token;
    evm->currency = &ledger->currency;
    status = find_contracts(evm, &ledger->token, error);
    TRY_OUT(status == STATUS_BAD_FORMAT ? explain_silence(evm, options->first_height, error)
                                        : status);
    TRY_OUT(find_currency(&ledger->currency, evm, error));
    TRY_OUT(open_event_log(evm, options, chain_id, error));
    TRY_OUT(evm_open_outbox(&evm->outbox, evm->rpc, options, chain_id, error));
out:
    if (status != STATUS_OK) {
        close_evm(evm);
        return status;
    }
    ledger->backend = &backend;
    ledger->self = evm;
    ledger->place.registry = options->registry;
    ledger->game = (struct game_place){uint256_of(chain_id), options->registry};
    (void)snprintf(ledger->place.chain, sizeof(ledger->place.chain), "eip155:%llu",
                   (unsigned long long)chain_id);
    ledger->event_log = sqlite3_db_filename(evm->sql.database, "main");
    return STATUS_OK;
}
