/* outbox.c - see outbox.h. */
#include "chain/evm/outbox.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/io/database.h"
#include "base/io/file.h"
#include "chain/codec/hex_data.h"
#include "chain/evm/evm.h"
#include "chain/evm/outbox_fees.h"
#include "chain/keys/transaction.h"

enum {
    POOL_CHECK_MS = 3000, /* how often a pending transaction is looked for in the pool */
    LOST_DEPTH = 12,      /* blocks, at least, until a nonce used by others counts as lost */
    BATCH_MAX = 256,
    TRANSFER_GAS = 21000,
};

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value BLOB NOT NULL);"
    "CREATE TABLE IF NOT EXISTS intents (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " receiver BLOB NOT NULL, value TEXT NOT NULL, data BLOB NOT NULL, gas INTEGER NOT NULL,"
    " state INTEGER NOT NULL, nonce INTEGER, reverted INTEGER NOT NULL DEFAULT 0, hash BLOB,"
    " height INTEGER, block BLOB, revert BLOB, trouble TEXT NOT NULL DEFAULT '',"
    " looked_ms INTEGER NOT NULL DEFAULT 0, sent_ms INTEGER NOT NULL DEFAULT 0, lost INTEGER);"
    "CREATE INDEX IF NOT EXISTS intents_by_state ON intents (state, nonce, id);"
    "CREATE TABLE IF NOT EXISTS attempts (hash BLOB PRIMARY KEY, intent INTEGER NOT NULL,"
    " serial INTEGER NOT NULL, tip BLOB NOT NULL, fee BLOB NOT NULL, raw BLOB NOT NULL);"
    "CREATE INDEX IF NOT EXISTS attempts_by_intent ON attempts (intent, "
    "serial);" OUTBOX_FEES_SCHEMA;

struct outbox {
    struct database sql;
    struct file_lock lock;
    struct outbox_options options;
    const struct signer *signer;
    struct rpc *rpc;
    /* Of the current round: */
    uint64_t head;
    uint64_t account_nonce;
};

struct intent {
    int64_t id;
    struct address to;
    wei value;
    uint8_t *data; /* owned */
    size_t data_size;
    uint64_t gas;
    uint64_t nonce;
    int64_t looked_ms;
    int64_t sent_ms;
    int64_t lost; /* -1: not */
    struct hash32 hash;
};

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- opening ---------------------------------------------------------------- */

/* A file belongs to one key and one chain: another would sign its nonces for nothing. */
static enum status claim_file(struct outbox *outbox, struct error *error)
{
    const struct address *address = signer_address(outbox->signer);
    uint8_t owner[ADDRESS_SIZE + 8];
    uint8_t found[sizeof(owner)];
    struct database_blob blob = {owner, sizeof(owner)};
    sqlite3_stmt *statement;
    enum status status;

    memcpy(owner, address->bytes, ADDRESS_SIZE);
    for (int i = 0; i < 8; i++) {
        owner[ADDRESS_SIZE + i] = (uint8_t)(outbox->options.chain_id >> (8 * (7 - i)));
    }
    status = database_run(&outbox->sql, error, "INSERT OR IGNORE INTO meta VALUES ('owner', ?)",
                          "b", &blob);
    if (status != STATUS_OK) {
        return status;
    }
    statement =
        database_query(&outbox->sql, error, "SELECT value FROM meta WHERE name = 'owner'", "");
    if (statement == NULL) {
        return error->status;
    }
    status = database_step(&outbox->sql, statement, error);
    if (status == STATUS_OK && (!database_blob_column(statement, 0, found, sizeof(found)) ||
                                memcmp(found, owner, sizeof(owner)) != 0)) {
        status = error_set(error, STATUS_REFUSED, "%s belongs to another key or chain",
                           outbox->options.path);
    }
    database_done(&outbox->sql, statement);
    return status;
}

enum status outbox_open(struct outbox **outbox, const struct outbox_options *options,
                        const struct signer *signer, struct rpc *rpc, struct error *error)
{
    struct outbox *made = calloc(1, sizeof(*made));
    char lock[FILE_PATH_MAX];
    enum status status;

    *outbox = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for an outbox");
    }
    made->lock.descriptor = -1;
    made->options = *options;
    made->signer = signer;
    made->rpc = rpc;
    if (snprintf(lock, sizeof(lock), "%s.lock", options->path) >= (int)sizeof(lock)) {
        TRY_OUT(error_set(error, STATUS_OVER_LIMIT, "the outbox's path is too long"));
    }
    TRY_OUT(file_lock_open(&made->lock, error, lock, "use another key (--account)"));
    TRY_OUT(database_open(&made->sql, options->path, schema, error));
    TRY_OUT(claim_file(made, error));
out:
    if (status != STATUS_OK) {
        outbox_close(made);
        return status;
    }
    *outbox = made;
    return STATUS_OK;
}

void outbox_close(struct outbox *outbox)
{
    if (outbox != NULL) {
        database_close(&outbox->sql);
        file_lock_close(&outbox->lock);
        free(outbox);
    }
}

/* ---- rows ------------------------------------------------------------------- */

#define INTENT_COLUMNS "id, receiver, value, data, gas, nonce, looked_ms, sent_ms, lost, hash"

static enum status read_intent(struct intent *intent, sqlite3_stmt *row, struct error *error)
{
    size_t size = (size_t)sqlite3_column_bytes(row, 3);

    memset(intent, 0, sizeof(*intent));
    intent->id = sqlite3_column_int64(row, 0);
    intent->gas = (uint64_t)sqlite3_column_int64(row, 4);
    intent->nonce = (uint64_t)sqlite3_column_int64(row, 5);
    intent->looked_ms = sqlite3_column_int64(row, 6);
    intent->sent_ms = sqlite3_column_int64(row, 7);
    intent->lost = sqlite3_column_type(row, 8) == SQLITE_NULL ? -1 : sqlite3_column_int64(row, 8);
    if (!database_blob_column(row, 1, intent->to.bytes, ADDRESS_SIZE) ||
        wei_parse(&intent->value, (const char *)sqlite3_column_text(row, 2)) != STATUS_OK ||
        (sqlite3_column_type(row, 9) != SQLITE_NULL &&
         !database_blob_column(row, 9, intent->hash.bytes, HASH32_SIZE))) {
        return error_set(error, STATUS_BAD_FORMAT, "the outbox's file is damaged");
    }
    intent->data = malloc(size + 1);
    if (intent->data == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a transaction");
    }
    intent->data_size = size;
    return database_blob_column(row, 3, intent->data, size) ? STATUS_OK : STATUS_BAD_FORMAT;
}

/* Calls work for the rows of a state, oldest first; rows are read before any is worked on. */
static enum status for_each(struct outbox *outbox, enum outbox_state state, size_t most,
                            enum status (*work)(struct outbox *, struct intent *, struct error *),
                            struct error *error)
{
    struct intent *intents = calloc(BATCH_MAX, sizeof(*intents));
    sqlite3_stmt *rows = database_query(&outbox->sql, error,
                                        "SELECT " INTENT_COLUMNS
                                        " FROM intents WHERE state = ? ORDER BY nonce, id LIMIT ?",
                                        "ii", (int64_t)state, (int64_t)most);
    enum status status = rows == NULL      ? error->status
                         : intents == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory")
                                           : STATUS_OK;
    size_t count = 0;

    assert(most <= BATCH_MAX);
    while (status == STATUS_OK) {
        status = database_step(&outbox->sql, rows, error);
        if (status == STATUS_OK) {
            status = read_intent(&intents[count++], rows, error);
        }
    }
    database_done(&outbox->sql, rows);
    status = status == STATUS_NOT_FOUND ? STATUS_OK : status;
    for (size_t i = 0; i < count; i++) {
        if (status == STATUS_OK) {
            status = work(outbox, &intents[i], error);
        }
        free(intents[i].data);
    }
    free(intents);
    return status;
}

static enum status note_trouble(struct outbox *outbox, const struct intent *intent,
                                const struct error *trouble, struct error *error)
{
    return database_run(&outbox->sql, error, "UPDATE intents SET trouble = ? WHERE id = ?", "ti",
                        trouble->text, intent->id);
}

#define IN_VAIN "name = ? AND (state = ? OR (state = ? AND reverted = 1))"

/* The name of an intent that was refused or has reverted for good is free. */
static enum status free_name(struct outbox *outbox, const char *name, struct error *error)
{
    TRY(database_run(&outbox->sql, error,
                     "DELETE FROM attempts WHERE intent IN (SELECT id FROM intents WHERE " IN_VAIN
                     ")",
                     "tii", name, (int64_t)OUTBOX_REFUSED, (int64_t)OUTBOX_FINAL));
    return database_run(&outbox->sql, error, "DELETE FROM intents WHERE " IN_VAIN, "tii", name,
                        (int64_t)OUTBOX_REFUSED, (int64_t)OUTBOX_FINAL);
}

static enum status add_row(struct outbox *outbox, const char *name, const struct address *to,
                           wei value, const void *data, size_t data_size, uint64_t gas,
                           struct error *error)
{
    struct database_blob receiver = {to->bytes, ADDRESS_SIZE};
    struct database_blob content = {data, data_size};
    char amount[WEI_TEXT_SIZE];
    int64_t same = 0;

    wei_print_plain(amount, value);
    TRY(free_name(outbox, name, error));
    TRY(database_run(&outbox->sql, error,
                     "INSERT OR IGNORE INTO intents (name, receiver, value, data, gas, state)"
                     " VALUES (?, ?, ?, ?, ?, ?)",
                     "tbtbii", name, &receiver, amount, &content, (int64_t)gas,
                     (int64_t)OUTBOX_WAITING));
    TRY(database_number(&outbox->sql, &same, 0, error,
                        "SELECT count(*) FROM intents WHERE name = ? AND receiver = ?"
                        " AND value = ? AND data = ?",
                        "tbtb", name, &receiver, amount, &content));
    if (same == 0) {
        return error_set(error, STATUS_REFUSED,
                         "there is another transaction of the name '%s' in the outbox", name);
    }
    return STATUS_OK;
}

enum status outbox_add(struct outbox *outbox, const char *name, const struct address *to, wei value,
                       const void *data, size_t data_size, uint64_t gas, struct error *error)
{
    enum status status;

    if (name[0] == '\0' || strlen(name) > OUTBOX_NAME_MAX || data_size > TRANSACTION_DATA_MAX ||
        value > WEI_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "a transaction's name or data are too long");
    }
    TRY(database_begin(&outbox->sql, error));
    status = add_row(outbox, name, to, value, data, data_size, gas, error);
    return database_end(&outbox->sql, status, error);
}

/* ---- signing and sending ------------------------------------------------------ */

/* Looks for the receipt of any attempt. *found: one of ours is in a block, and is marked as mined.
 * *certain: the endpoints agreed about every attempt. */
static enum status find_receipt(struct outbox *outbox, struct intent *intent, bool *found,
                                bool *certain, struct error *error);

/* A block may come between our look at the nonce and the sending: then "nonce too low" is about our
 * own bytes. */
static enum status send_raw(struct outbox *outbox, struct intent *intent, const uint8_t *raw,
                            size_t size, struct error *error)
{
    struct error trouble;
    bool nonce_used = false;
    bool found = false;
    bool certain = false;
    enum status status;

    error_init(&trouble);
    status = evm_send(outbox->rpc, raw, size, &nonce_used, &trouble);
    if (status == STATUS_STOPPED) {
        return error_set(error, STATUS_STOPPED, "stopped while sending");
    }
    if (nonce_used) {
        TRY(find_receipt(outbox, intent, &found, &certain, error));
    }
    return database_run(&outbox->sql, error,
                        "UPDATE intents SET looked_ms = ?, trouble = ? WHERE id = ?", "iti",
                        now_ms(), status == STATUS_OK || found ? "" : trouble.text, intent->id);
}

static enum status choose_fees(struct outbox *outbox, struct transaction *transaction,
                               struct error *error)
{
    struct evm_fees fees;

    TRY(evm_fees_now(outbox->rpc, &fees, error));
    return outbox_fees_within(transaction, &fees, &outbox->options.fee_most, error);
}

static enum status store_attempt(struct outbox *outbox, const struct intent *intent,
                                 const struct transaction *transaction, const uint8_t *raw,
                                 size_t size, const struct hash32 *hash, struct error *error)
{
    uint8_t tip[UINT256_SIZE];
    uint8_t fee[UINT256_SIZE];
    struct database_blob blobs[] = {
        {hash->bytes, HASH32_SIZE}, {tip, sizeof(tip)}, {fee, sizeof(fee)}, {raw, size}};
    enum status status = database_begin(&outbox->sql, error);

    if (status != STATUS_OK) {
        return status;
    }
    uint256_to_bytes(tip, &transaction->tip_wei_max);
    uint256_to_bytes(fee, &transaction->fee_wei_max);
    TRY_OUT(
        database_run(&outbox->sql, error,
                     "INSERT OR IGNORE INTO attempts VALUES (?, ?, (SELECT count(*) FROM attempts),"
                     " ?, ?, ?)",
                     "bibbb", &blobs[0], intent->id, &blobs[1], &blobs[2], &blobs[3]));
    TRY_OUT(database_run(&outbox->sql, error,
                         "UPDATE intents SET state = ?, nonce = ?, hash = ?, sent_ms = ?,"
                         " lost = NULL WHERE id = ?",
                         "iibii", (int64_t)OUTBOX_SENT, (int64_t)transaction->nonce, &blobs[0],
                         now_ms(), intent->id));
out:
    return database_end(&outbox->sql, status, error);
}

/* Signs, stores, and only then sends. */
static enum status sign_and_send(struct outbox *outbox, struct intent *intent,
                                 struct transaction *transaction, struct error *error)
{
    static const struct address nobody;
    uint8_t *raw = malloc(TRANSACTION_SIZE_MAX);
    struct hash32 hash;
    size_t size = 0;
    enum status status;

    if (raw == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a transaction");
    }
    transaction->chain_id = outbox->options.chain_id;
    transaction->gas_limit = intent->gas;
    transaction->creates = address_equal(&intent->to, &nobody);
    transaction->to = intent->to;
    transaction->value_wei = wei_to_uint256(intent->value);
    transaction->data = intent->data;
    transaction->data_size = intent->data_size;
    TRY_OUT(transaction_sign(transaction, raw, &size, &hash, outbox->signer, error));
    TRY_OUT(store_attempt(outbox, intent, transaction, raw, size, &hash, error));
    TRY_OUT(send_raw(outbox, intent, raw, size, error));
out:
    free(raw);
    return status;
}

enum status outbox_check_purse(struct outbox *outbox, wei value, uint64_t gas, uint64_t later_gas,
                               struct error *error)
{
    const struct address *account = signer_address(outbox->signer);
    struct transaction transaction = {0};
    struct evm_fees fees;
    struct error unknown;
    char account_text[ADDRESS_TEXT_SIZE];
    char balance_text[WEI_TEXT_SIZE];
    char need_text[WEI_TEXT_SIZE];
    wei balance = 0;
    wei need = 0;

    error_init(&unknown);
    if (evm_fees_now(outbox->rpc, &fees, &unknown) != STATUS_OK ||
        outbox_fees_within(&transaction, &fees, &outbox->options.fee_most, &unknown) != STATUS_OK ||
        evm_balance(outbox->rpc, &balance, account, &unknown) != STATUS_OK ||
        !outbox_fees_need(&need, value, gas, later_gas, &transaction, &fees) || balance >= need) {
        return STATUS_OK;
    }
    address_print(account_text, account);
    currency_print(balance_text, &currency_coin, balance);
    currency_print(need_text, &currency_coin, need);
    (void)error_set(error, STATUS_REFUSED, "%s has %s, and this needs up to %s%s", account_text,
                    balance_text, need_text, value > 0 ? " with the gas" : " of gas");
    error_advise(error, "send money to this account first");
    return STATUS_REFUSED;
}

/* Would the contract refuse it now? Checked only while nothing of ours is in the pool or waits
 * before it, since that could change the answer. A majority of the endpoints must agree. */
static enum status check_refused(struct outbox *outbox, const struct intent *intent, bool *refused,
                                 struct error *error)
{
    static const struct address nobody;
    uint8_t revert[OUTBOX_REVERT_MAX];
    struct database_blob blob = {revert, 0};
    struct error trouble;
    int64_t before;
    enum status status =
        database_number(&outbox->sql, &before, 0, error,
                        "SELECT count(*) FROM intents WHERE state = ? OR (state = ? AND id < ?)",
                        "iii", (int64_t)OUTBOX_SENT, (int64_t)OUTBOX_WAITING, intent->id);

    *refused = false;
    if (status != STATUS_OK || before > 0 || address_equal(&intent->to, &nobody)) {
        return status;
    }
    error_init(&trouble);
    *refused = evm_call(outbox->rpc, revert, sizeof(revert), &blob.size,
                        signer_address(outbox->signer), &intent->to, intent->value, intent->data,
                        intent->data_size, &trouble) == STATUS_REFUSED;
    if (!*refused) {
        return STATUS_OK;
    }
    return database_run(&outbox->sql, error,
                        "UPDATE intents SET state = ?, revert = ? WHERE id = ?", "ibi",
                        (int64_t)OUTBOX_REFUSED, &blob, intent->id);
}

static enum status start(struct outbox *outbox, struct intent *intent, struct error *error)
{
    struct transaction transaction;
    struct error trouble;
    bool refused;
    enum status status = check_refused(outbox, intent, &refused, error);

    if (status != STATUS_OK || refused) {
        return status;
    }
    memset(&transaction, 0, sizeof(transaction));
    error_init(&trouble);
    status = choose_fees(outbox, &transaction, &trouble);
    if (status != STATUS_OK) {
        return note_trouble(outbox, intent, &trouble, error);
    }
    TRY(outbox_depth_nonce(&outbox->sql, &transaction.nonce, outbox->account_nonce, error));
    return sign_and_send(outbox, intent, &transaction, error);
}

/* ---- what is in the pool ------------------------------------------------------ */

/* The newest attempt's bytes and fees. raw is the caller's to free. */
static enum status load_attempt(struct outbox *outbox, const struct intent *intent, uint8_t **raw,
                                size_t *size, struct uint256 *tip, struct uint256 *fee,
                                struct error *error)
{
    sqlite3_stmt *row =
        database_query(&outbox->sql, error, "SELECT raw, tip, fee FROM attempts WHERE hash = ?",
                       "b", &(struct database_blob){intent->hash.bytes, HASH32_SIZE});
    uint8_t tip_bytes[UINT256_SIZE];
    uint8_t fee_bytes[UINT256_SIZE];
    enum status status;

    *raw = NULL;
    if (row == NULL) {
        return error->status;
    }
    status = database_step(&outbox->sql, row, error);
    if (status == STATUS_OK) {
        *size = (size_t)sqlite3_column_bytes(row, 0);
        *raw = malloc(*size + 1);
        if (*raw == NULL || !database_blob_column(row, 0, *raw, *size) ||
            !database_blob_column(row, 1, tip_bytes, sizeof(tip_bytes)) ||
            !database_blob_column(row, 2, fee_bytes, sizeof(fee_bytes))) {
            status = error_set(error, STATUS_BAD_FORMAT, "the outbox's file is damaged");
        } else {
            *tip = uint256_from_bytes(tip_bytes);
            *fee = uint256_from_bytes(fee_bytes);
        }
    }
    database_done(&outbox->sql, row);
    return status;
}

/* Sends a dearer transaction in place of one that stays in the pool. Both have the same nonce,
 * so at most one of them counts. */
static enum status replace(struct outbox *outbox, struct intent *intent, struct uint256 tip,
                           struct uint256 fee, struct error *error)
{
    struct transaction transaction;
    struct error trouble;
    struct uint256 wanted_tip;
    enum status status;

    memset(&transaction, 0, sizeof(transaction));
    error_init(&trouble);
    status = choose_fees(outbox, &transaction, &trouble);
    if (status == STATUS_OK && (!outbox_fees_raise(&tip, &outbox->options.fee_most) ||
                                !outbox_fees_raise(&fee, &outbox->options.fee_most))) {
        status = error_set(&trouble, STATUS_REFUSED,
                           "in the pool, and the ceiling allows no dearer replacement");
    }
    if (status != STATUS_OK) {
        return note_trouble(outbox, intent, &trouble, error);
    }
    wanted_tip = transaction.tip_wei_max;
    transaction.tip_wei_max = uint256_compare(&wanted_tip, &tip) > 0 ? wanted_tip : tip;
    if (uint256_compare(&transaction.fee_wei_max, &fee) < 0) {
        transaction.fee_wei_max = fee;
    }
    transaction.nonce = intent->nonce;
    return sign_and_send(outbox, intent, &transaction, error);
}

static enum status check_pending(struct outbox *outbox, struct intent *intent, struct error *error)
{
    int64_t now = now_ms();
    struct uint256 tip;
    struct uint256 fee;
    uint8_t *raw;
    size_t size = 0;
    enum status status;

    if (now - intent->looked_ms < POOL_CHECK_MS && now >= intent->looked_ms) {
        return STATUS_OK;
    }
    TRY_OUT(load_attempt(outbox, intent, &raw, &size, &tip, &fee, error));
    /* Sending the same bytes again is harmless, and a pool that lost them gets them back. */
    status = now - intent->sent_ms >= (int64_t)outbox->options.replace_after_s * 1000
                 ? replace(outbox, intent, tip, fee, error)
                 : send_raw(outbox, intent, raw, size, error);
out:
    free(raw);
    return status;
}

/* ---- what is in a block ------------------------------------------------------- */

static enum status mark_mined(struct outbox *outbox, const struct intent *intent,
                              const struct hash32 *hash, const struct evm_receipt *receipt,
                              struct error *error)
{
    bool deep =
        outbox->head >= receipt->height && outbox->head - receipt->height >= outbox->options.depth;

    TRY(outbox_fees_note(&outbox->sql, intent->id, hash, (uint64_t)intent->sent_ms / 1000,
                         receipt->cost, error));
    return database_run(
        &outbox->sql, error,
        "UPDATE intents SET state = ?, hash = ?, reverted = ?, height = ?, block = ?,"
        " trouble = '', lost = NULL WHERE id = ?",
        "ibiibi", (int64_t)(deep ? OUTBOX_FINAL : OUTBOX_MINED),
        &(struct database_blob){hash->bytes, HASH32_SIZE}, (int64_t)receipt->reverted,
        (int64_t)receipt->height, &(struct database_blob){receipt->block.bytes, HASH32_SIZE},
        intent->id);
}

/* Finds why it reverted: the node runs it again on the newest state. If that does not revert, the
 * reason stays unknown. */
static enum status explain_revert(struct outbox *outbox, const struct intent *intent,
                                  struct error *error)
{
    uint8_t revert[OUTBOX_REVERT_MAX];
    struct database_blob blob = {revert, 0};
    struct error trouble;

    error_init(&trouble);
    if (evm_call(outbox->rpc, revert, sizeof(revert), &blob.size, signer_address(outbox->signer),
                 &intent->to, intent->value, intent->data, intent->data_size,
                 &trouble) != STATUS_REFUSED) {
        return STATUS_OK;
    }
    return database_run(&outbox->sql, error, "UPDATE intents SET revert = ? WHERE id = ?", "bi",
                        &blob, intent->id);
}

static enum status find_receipt(struct outbox *outbox, struct intent *intent, bool *found,
                                bool *certain, struct error *error)
{
    sqlite3_stmt *rows = database_query(&outbox->sql, error,
                                        "SELECT hash FROM attempts WHERE intent = ?"
                                        " ORDER BY serial DESC",
                                        "i", intent->id);
    enum status status = rows == NULL ? error->status : STATUS_OK;

    *found = false;
    *certain = true;
    while (status == STATUS_OK && !*found) {
        struct evm_receipt receipt;
        struct hash32 hash;
        struct error trouble;
        enum status seen;

        status = database_step(&outbox->sql, rows, error);
        if (status != STATUS_OK || !database_blob_column(rows, 0, hash.bytes, HASH32_SIZE)) {
            break;
        }
        error_init(&trouble);
        seen = evm_receipt_of(outbox->rpc, &receipt, &hash, &trouble);
        if (seen == STATUS_OK) {
            *found = true;
            database_done(&outbox->sql, rows);
            rows = NULL;
            status = mark_mined(outbox, intent, &hash, &receipt, error);
            if (status == STATUS_OK && receipt.reverted) {
                status = explain_revert(outbox, intent, error);
            }
        } else if (seen != STATUS_NOT_FOUND) {
            *certain = false;
        }
    }
    database_done(&outbox->sql, rows);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Another transaction of this account used the nonce: from a wallet, or by a thief of the key. Once
 * no reorganization can undo that, the intent starts again with a new nonce. */
static enum status check_lost(struct outbox *outbox, struct intent *intent, struct error *error)
{
    uint64_t wait = outbox->options.depth > LOST_DEPTH ? outbox->options.depth : LOST_DEPTH;

    if (intent->lost < 0) {
        return database_run(&outbox->sql, error,
                            "UPDATE intents SET lost = ?, trouble = 'its nonce was used by another"
                            " transaction of this account' WHERE id = ?",
                            "ii", (int64_t)outbox->head, intent->id);
    }
    if (outbox->head < (uint64_t)intent->lost || outbox->head - (uint64_t)intent->lost < wait) {
        return STATUS_OK;
    }
    return database_run(&outbox->sql, error,
                        "UPDATE intents SET state = ?, nonce = NULL, hash = NULL, lost = NULL"
                        " WHERE id = ?",
                        "ii", (int64_t)OUTBOX_WAITING, intent->id);
}

static enum status check_sent(struct outbox *outbox, struct intent *intent, struct error *error)
{
    bool found = false;
    bool certain = false;

    if (intent->nonce >= outbox->account_nonce) {
        return check_pending(outbox, intent, error);
    }
    TRY(find_receipt(outbox, intent, &found, &certain, error));
    return !found && certain ? check_lost(outbox, intent, error) : STATUS_OK;
}

static enum status check_mined(struct outbox *outbox, struct intent *intent, struct error *error)
{
    bool found = false;
    bool certain = false;
    enum status status = find_receipt(outbox, intent, &found, &certain, error);

    if (status != STATUS_OK || found || !certain) {
        return status;
    }
    /* Reorganized away. The next look sends the same bytes again. */
    TRY(outbox_fees_note(&outbox->sql, intent->id, NULL, 0, 0, error));
    return database_run(&outbox->sql, error,
                        "UPDATE intents SET state = ?, height = NULL, block = NULL, looked_ms = 0,"
                        " sent_ms = ?, trouble = 'reorganized out of its block' WHERE id = ?",
                        "iii", (int64_t)OUTBOX_SENT, now_ms(), intent->id);
}

/* ---- one round ---------------------------------------------------------------- */

static enum status start_waiting(struct outbox *outbox, struct error *error)
{
    int64_t in_flight = 0;
    enum status status =
        database_number(&outbox->sql, &in_flight, 0, error,
                        "SELECT count(*) FROM intents WHERE state = ?", "i", (int64_t)OUTBOX_SENT);

    if (status != STATUS_OK || in_flight >= OUTBOX_FLIGHT_MAX) {
        return status;
    }
    return for_each(outbox, OUTBOX_WAITING, (size_t)(OUTBOX_FLIGHT_MAX - in_flight), start, error);
}

enum status outbox_send(struct outbox *outbox, struct error *error)
{
    enum status status =
        evm_nonce(outbox->rpc, &outbox->account_nonce, signer_address(outbox->signer), error);

    return status == STATUS_OK ? start_waiting(outbox, error) : status;
}

/* Looks for a reorganization that took back what counted as final. */
static enum status look_back(struct outbox *outbox, struct error *error)
{
    uint64_t count;

    TRY(outbox_depth_reopen(&outbox->sql, outbox->rpc, &count, error));
    if (count > 0) {
        log_warn(outbox->options.log, "ledger",
                 "a reorganization deeper than --depth %u took back %llu moves of ours that "
                 "counted as final: those that are gone are sent again",
                 (unsigned)outbox->options.depth, (unsigned long long)count);
    }
    return STATUS_OK;
}

/* A transaction to ourselves, of nothing, where a nonce is left without one. */
static enum status fill_gap(struct outbox *outbox, struct error *error)
{
    const struct address *own = signer_address(outbox->signer);
    char name[OUTBOX_NAME_MAX + 1];
    bool gap;

    TRY(outbox_depth_gap(&outbox->sql, outbox->rpc, &gap, outbox->account_nonce, own, error));
    if (!gap) {
        return STATUS_OK;
    }
    (void)snprintf(name, sizeof(name), "nothing at nonce %llu of height %llu",
                   (unsigned long long)outbox->account_nonce, (unsigned long long)outbox->head);
    log_warn(outbox->options.log, "ledger",
             "no transaction has nonce %llu, and later ones wait for it: one to ourselves takes "
             "its place",
             (unsigned long long)outbox->account_nonce);
    TRY(outbox_add(outbox, name, own, 0, "", 0, TRANSFER_GAS, error));
    return start_waiting(outbox, error);
}

enum status outbox_reopened(struct outbox *outbox, uint64_t *count, struct error *error)
{
    return outbox_depth_count(&outbox->sql, count, error);
}

enum status outbox_work(struct outbox *outbox, struct error *error)
{
    TRY(evm_head(outbox->rpc, &outbox->head, error));
    TRY(evm_nonce(outbox->rpc, &outbox->account_nonce, signer_address(outbox->signer), error));
    TRY(look_back(outbox, error));
    TRY(for_each(outbox, OUTBOX_MINED, BATCH_MAX, check_mined, error));
    TRY(for_each(outbox, OUTBOX_SENT, BATCH_MAX, check_sent, error));
    TRY(start_waiting(outbox, error));
    return fill_gap(outbox, error);
}

enum status outbox_look(struct outbox *outbox, struct outbox_status *found, const char *name,
                        struct error *error)
{
    sqlite3_stmt *row =
        database_query(&outbox->sql, error,
                       "SELECT state, reverted, hash, height, nonce, revert, trouble,"
                       " (SELECT count(*) FROM attempts WHERE intent = id) FROM intents"
                       " WHERE name = ?",
                       "t", name);
    enum status status;
    int64_t attempts;

    memset(found, 0, sizeof(*found));
    if (row == NULL) {
        return error->status;
    }
    status = database_step(&outbox->sql, row, error);
    if (status == STATUS_OK) {
        found->state = (enum outbox_state)sqlite3_column_int(row, 0);
        found->reverted = sqlite3_column_int(row, 1) != 0;
        if (!database_blob_column(row, 2, found->hash.bytes, HASH32_SIZE)) {
            memset(&found->hash, 0, sizeof(found->hash)); /* not signed yet */
        }
        found->height = (uint64_t)sqlite3_column_int64(row, 3);
        found->nonce = (uint64_t)sqlite3_column_int64(row, 4);
        found->revert_size = (size_t)sqlite3_column_bytes(row, 5);
        if (found->revert_size > sizeof(found->revert) ||
            !database_blob_column(row, 5, found->revert, found->revert_size)) {
            found->revert_size = 0;
        }
        (void)snprintf(found->trouble, sizeof(found->trouble), "%s",
                       (const char *)sqlite3_column_text(row, 6));
        attempts = sqlite3_column_int64(row, 7);
        found->replacements = attempts > 1 ? (uint32_t)attempts - 1 : 0;
    } else if (status == STATUS_NOT_FOUND) {
        status = error_set(error, STATUS_NOT_FOUND, "the outbox has nothing named '%s'", name);
    }
    database_done(&outbox->sql, row);
    return status;
}
