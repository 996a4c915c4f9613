/* ledger_local.c - see ledger_local.h. */
#include "chain/local/ledger_local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/io/database.h"
#include "base/io/file.h"
#include "base/secret.h"
#include "chain/game/event_log.h"
#include "chain/game/ledger_backend.h"
#include "chain/local/local_game.h"
#include "chain/local/local_marks.h"

enum {
    FIRST_HEIGHT = 1,
    NAME_BYTES = 16,
};

static const char schema[] =
    EVENT_LOG_SCHEMA "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value NOT NULL);"
                     "CREATE TABLE IF NOT EXISTS moves (account BLOB NOT NULL, name TEXT NOT NULL,"
                     " content BLOB NOT NULL, done INTEGER NOT NULL, revert BLOB NOT NULL,"
                     " height INTEGER NOT NULL, PRIMARY KEY (account, name));";

struct local {
    struct database sql;
    struct local_store store;
    struct game_place place;
    struct address account;
    uint8_t salt[HASH32_SIZE]; /* of the block hashes */
    struct error store_error;
    struct local_game game;          /* the move that is played */
    uint8_t data[GAME_LOG_SIZE_MAX]; /* of the entry that was read last */
};

/* ---- the clock and the blocks --------------------------------------------------- */

/* The clock never goes back behind the last block. */
static enum status read_clock(struct local *local, struct ledger_clock *clock, bool *manual,
                              struct error *error)
{
    struct event_log_block top = {0};
    int64_t fixed = 0;
    int64_t genesis = 0;
    enum status status;

    TRY(database_number(&local->sql, &fixed, -1, error,
                        "SELECT value FROM meta WHERE name = 'clock'", ""));
    TRY(database_number(&local->sql, &genesis, 0, error,
                        "SELECT value FROM meta WHERE name = 'genesis'", ""));
    status = event_log_top(&local->sql, &top, error);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        return status;
    }
    *manual = fixed >= 0;
    clock->time_s = *manual ? (uint64_t)fixed : (uint64_t)time(NULL);
    clock->time_s = clock->time_s > top.time_s ? clock->time_s : top.time_s;
    clock->height = top.height;
    clock->seed_delay = GAME_SEED_DELAY;
    if (clock->time_s > (uint64_t)genesis &&
        FIRST_HEIGHT + (clock->time_s - (uint64_t)genesis) > clock->height) {
        clock->height = FIRST_HEIGHT + (clock->time_s - (uint64_t)genesis);
    }
    return STATUS_OK;
}

static struct hash32 hash_of_block(const struct local *local, uint64_t height, bool manual)
{
    struct uint256 number = uint256_of(height);
    uint8_t bytes[HASH32_SIZE + UINT256_SIZE];

    memcpy(bytes, local->salt, HASH32_SIZE);
    uint256_to_bytes(bytes + HASH32_SIZE, &number);
    return manual ? keccak256(bytes + HASH32_SIZE, UINT256_SIZE) : keccak256(bytes, sizeof(bytes));
}

struct playing {
    struct local *local;
    bool manual;
};

static enum status random_of_block(void *context, struct hash32 *random, uint64_t height)
{
    const struct playing *playing = context;

    *random = hash_of_block(playing->local, height, playing->manual);
    return STATUS_OK;
}

/* ---- moves -------------------------------------------------------------------- */

static enum status check_purse(const struct local_account *account, const struct address *owner,
                               wei value, struct error *error)
{
    char address[ADDRESS_TEXT_SIZE];
    char has[WEI_TEXT_SIZE];
    char needs[WEI_TEXT_SIZE];

    if (account->purse >= value) {
        return STATUS_OK;
    }
    address_print(address, owner);
    currency_print(has, &currency_coin, account->purse);
    currency_print(needs, &currency_coin, value);
    (void)error_set(error, STATUS_REFUSED, "%s has %s, and this needs %s", address, has, needs);
    error_advise(error, "an embedded ledger has free money: lockstep ledger faucet %s AMOUNT",
                 address);
    return STATUS_REFUSED;
}

static enum status local_afford(void *self, enum game_move_kind kind, wei value,
                                struct error *error)
{
    struct local *local = self;
    const struct hash32 key = local_key_of_account(&local->account);
    struct local_account account;

    (void)kind; /* a move costs nothing here but its value */
    if (local_get(&local->store, &account, LOCAL_ACCOUNT, &key, 0) != STATUS_OK) {
        return STATUS_OK;
    }
    return check_purse(&account, &local->account, value, error);
}

/* A move's money leaves the purse before the rules see the move. */
static enum status pay(struct local *local, wei value, struct error *error)
{
    const struct hash32 key = local_key_of_account(&local->account);
    struct local_account account;

    TRY(local_get(&local->store, &account, LOCAL_ACCOUNT, &key, 0));
    TRY(check_purse(&account, &local->account, value, error));
    account.purse -= value;
    return local_put(&local->store, &account, LOCAL_ACCOUNT, &key, 0);
}

static enum status keep_events(struct local *local, const struct local_game *game,
                               const struct event_log_block *block, struct error *error)
{
    enum status status = event_log_add_block(&local->sql, block, error);

    for (uint32_t i = 0; i < game->event_count && status == STATUS_OK; i++) {
        uint8_t bytes[GAME_LOG_SIZE_MAX];
        struct game_log log;

        game_event_encode(&log, bytes, &game->events[i]);
        status = event_log_add_log(&local->sql, block, i, &log, error);
    }
    return status;
}

static enum status keep_move(struct local *local, const char *name,
                             const struct database_blob *content,
                             const struct game_refusal *refusal, uint64_t height,
                             struct error *error)
{
    uint8_t revert[GAME_REVERT_SIZE];
    struct database_blob why = {revert, 0};

    if (refusal != NULL && refusal->kind != GAME_REFUSED_NOT) {
        game_refusal_encode(revert, &why.size, refusal);
    }
    return database_run(&local->sql, error,
                        "INSERT OR REPLACE INTO moves VALUES (?, ?, ?, ?, ?, ?)", "btbibi",
                        &(struct database_blob){local->account.bytes, ADDRESS_SIZE}, name, content,
                        (int64_t)(refusal == NULL), &why, (int64_t)height);
}

/* Inside a transaction. A refused move leaves only its outcome. */
static enum status play(struct local *local, const char *name, const struct game_move *move,
                        const struct database_blob *content, struct error *error)
{
    struct playing playing = {.local = local};
    struct local_game *game = &local->game;
    struct event_log_block block;
    struct ledger_clock clock;
    enum status status = read_clock(local, &clock, &playing.manual, error);

    if (status != STATUS_OK) {
        return status;
    }
    block.height = clock.height + 1;
    block.time_s = clock.time_s;
    block.hash = hash_of_block(local, block.height, playing.manual);
    game->store = &local->store;
    game->place = local->place;
    game->sender = local->account;
    game->random = random_of_block;
    game->context = &playing;
    game->height = block.height;
    game->now_s = block.time_s;
    TRY(database_run(&local->sql, error, "SAVEPOINT move", ""));
    TRY(pay(local, move->value, error));
    status = local_game_play(game, move);
    if (status == STATUS_REFUSED) {
        TRY(database_run(&local->sql, error, "ROLLBACK TO move", ""));
        return keep_move(local, name, content, &game->refusal, block.height, error);
    }
    if (status != STATUS_OK) {
        *error = local->store_error;
        return status;
    }
    TRY(keep_events(local, game, &block, error));
    return keep_move(local, name, content, NULL, block.height, error);
}

/* STATUS_NOT_FOUND: the name is free. STATUS_OK: it was used for the same move. */
static enum status find_move(struct local *local, const char *name,
                             const struct database_blob *content, struct error *error)
{
    sqlite3_stmt *row = database_query(
        &local->sql, error, "SELECT content = ?, done FROM moves WHERE account = ? AND name = ?",
        "bbt", content, &(struct database_blob){local->account.bytes, ADDRESS_SIZE}, name);
    enum status status;

    if (row == NULL) {
        return error->status;
    }
    status = database_step(&local->sql, row, error);
    if (status == STATUS_OK && sqlite3_column_int(row, 1) == 0) {
        status = STATUS_NOT_FOUND; /* it was refused: the name is free */
    } else if (status == STATUS_OK && sqlite3_column_int(row, 0) == 0) {
        status = error_set(error, STATUS_REFUSED, "there is another move of the name '%s'", name);
    }
    database_done(&local->sql, row);
    return status;
}

static enum status local_submit(void *self, const char *name, const struct game_move *move,
                                struct error *error)
{
    struct local *local = self;
    uint8_t *bytes = malloc(game_move_size(move) + sizeof(move->value));
    struct database_blob content = {bytes, 0};
    enum status status;

    if (bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a move");
    }
    game_move_encode(bytes, &content.size, move);
    for (size_t i = 0; i < sizeof(move->value); i++) {
        bytes[content.size++] = (uint8_t)(move->value >> (8 * i));
    }
    TRY_OUT(database_begin(&local->sql, error));
    status = find_move(local, name, &content, error);
    if (status == STATUS_NOT_FOUND) {
        status = play(local, name, move, &content, error);
    }
    status = database_end(&local->sql, status, error);
out:
    free(bytes);
    return status;
}

static enum status local_look(void *self, struct ledger_outcome *outcome, const char *name,
                              struct error *error)
{
    struct local *local = self;
    sqlite3_stmt *row =
        database_query(&local->sql, error,
                       "SELECT done, revert, height FROM moves WHERE account = ?"
                       " AND name = ?",
                       "bt", &(struct database_blob){local->account.bytes, ADDRESS_SIZE}, name);
    enum status status;

    memset(outcome, 0, sizeof(*outcome));
    if (row == NULL) {
        return error->status;
    }
    status = database_step(&local->sql, row, error);
    if (status == STATUS_OK) {
        outcome->state = sqlite3_column_int(row, 0) != 0 ? LEDGER_MOVE_FINAL : LEDGER_MOVE_REFUSED;
        game_refusal_decode(&outcome->refusal, sqlite3_column_blob(row, 1),
                            (size_t)sqlite3_column_bytes(row, 1));
        outcome->height = (uint64_t)sqlite3_column_int64(row, 2);
    } else if (status == STATUS_NOT_FOUND) {
        status = error_set(error, STATUS_NOT_FOUND, "there is no move named '%s'", name);
    }
    database_done(&local->sql, row);
    return status;
}

static enum status local_work(void *self, struct error *error)
{
    (void)self;
    (void)error;
    return STATUS_OK;
}

static enum status is_behind(void *self, bool *behind, struct error *error)
{
    (void)self;
    (void)error;
    *behind = false;
    return STATUS_OK;
}

/* ---- reading ------------------------------------------------------------------ */

static enum status get_clock(void *self, struct ledger_clock *clock, struct error *error)
{
    bool manual;

    return read_clock(self, clock, &manual, error);
}

static enum status next_entry(void *self, struct ledger_entry *entry, uint64_t after,
                              uint32_t depth, const struct hash32 *topic, struct error *error)
{
    struct local *local = self;

    (void)depth; /* nothing is ever reorganized away */
    return event_log_next(&local->sql, entry, local->data, after, UINT64_MAX, topic, error);
}

static enum status get_record(struct local *local, void *record, enum local_kind kind,
                              const struct hash32 *key, struct error *error)
{
    enum status status = local_get(&local->store, record, kind, key, 0);

    if (status != STATUS_OK) {
        *error = local->store_error;
    }
    return status;
}

static enum status get_fixed(void *self, uint64_t *source, uint64_t height, uint64_t time_s,
                             struct error *error)
{
    const struct hash32 key = local_key_of_commits(height, time_s);

    return get_record(self, source, LOCAL_FIXED, &key, error);
}

void ledger_local_job(struct ledger_job *job, const struct local_job *found)
{
    *job = (struct ledger_job){.phase = (enum game_phase)found->phase,
                               .client = found->client,
                               .solver = found->solver,
                               .generation = found->generation,
                               .segments = found->segments,
                               .committed = found->committed,
                               .finalized = found->finalized,
                               .open_claims = found->open_claims,
                               .drawn = found->drawn,
                               .leg_start = found->leg_start,
                               .panel = found->entries,
                               .opened_at_s = found->opened_at_s,
                               .due_s = found->due_s,
                               .refused_until_s = found->refused_until_s,
                               .pool = found->pool,
                               .missing_escrow = found->missing_escrow,
                               .missing_pool = found->missing_pool,
                               .ended = found->ended,
                               .barred = found->barred};
}

static enum status get_job(void *self, struct ledger_job *job, const struct hash32 *key,
                           struct error *error)
{
    struct local_job found;

    TRY(get_record(self, &found, LOCAL_JOB, key, error));
    if (found.phase == GAME_PHASE_NONE) {
        return error_set(error, STATUS_NOT_FOUND, "there is no such job on this ledger");
    }
    ledger_local_job(job, &found);
    return STATUS_OK;
}

static enum status get_claim(void *self, struct ledger_claim *claim, const struct hash32 *key,
                             struct error *error)
{
    struct local *local = self;
    struct local_dispute found;
    struct local_claimant lead = {0};

    TRY(get_record(local, &found, LOCAL_DISPUTE, key, error));
    if (found.phase == GAME_CLAIM_NONE) {
        return error_set(error, STATUS_NOT_FOUND, "there is no such claim on this ledger");
    }
    if (found.first < found.count &&
        local_get(&local->store, &lead, LOCAL_CLAIMANT, key, found.first) != STATUS_OK) {
        *error = local->store_error;
        return STATUS_IO;
    }
    *claim = (struct ledger_claim){.phase = (enum game_claim_phase)found.phase,
                                   .turn = (enum game_turn)found.turn,
                                   .outcome = (enum game_outcome)found.outcome,
                                   .job = found.job,
                                   .segment = found.segment,
                                   .subject = found.subject,
                                   .generation = found.generation,
                                   .rank = found.rank,
                                   .solver = found.solver,
                                   .lead = lead.owner,
                                   .claimants = found.count - found.first,
                                   .since_s = found.since_s,
                                   .solver_left_s = found.solver_left_s,
                                   .lead_left_s = found.lead_left_s,
                                   .trace_root = found.trace_root};
    return STATUS_OK;
}

static enum status get_account(void *self, wei *purse, wei *owed, const struct address *account,
                               struct error *error)
{
    const struct hash32 key = local_key_of_account(account);
    struct local_account found;

    TRY(get_record(self, &found, LOCAL_ACCOUNT, &key, error));
    *purse = found.purse;
    *owed = found.owed;
    return STATUS_OK;
}

/* ---- opening and making --------------------------------------------------------- */

static void close_local(void *self)
{
    struct local *local = self;

    database_close(&local->sql);
    free(local);
}

static const struct ledger_backend backend = {
    .close = close_local,
    .submit = local_submit,
    .look = local_look,
    .work = local_work,
    .behind = is_behind,
    .next = next_entry,
    .get_job = get_job,
    .get_claim = get_claim,
    .get_account = get_account,
    .afford = local_afford,
    .get_clock = get_clock,
    .get_fixed = get_fixed,
};

static enum status read_meta(struct local *local, const char *name, void *bytes, size_t size,
                             struct error *error)
{
    sqlite3_stmt *row =
        database_query(&local->sql, error, "SELECT value FROM meta WHERE name = ?", "t", name);
    enum status status;

    if (row == NULL) {
        return error->status;
    }
    status = database_step(&local->sql, row, error);
    if (status == STATUS_NOT_FOUND ||
        (status == STATUS_OK && !database_blob_column(row, 0, bytes, size))) {
        status = error_set(error, STATUS_BAD_FORMAT, "not an embedded ledger, or a damaged one");
    }
    database_done(&local->sql, row);
    return status;
}

/* Each value stands twice, the second time as NAME-again. */
static enum status check_meta(struct local *local, struct error *error)
{
    int64_t other = 0;

    TRY(database_number(&local->sql, &other, 0, error,
                        "SELECT count(*) FROM meta AS one WHERE NOT EXISTS (SELECT 1 FROM meta AS"
                        " two WHERE two.value IS one.value AND (two.name = one.name || '-again'"
                        " OR one.name = two.name || '-again'))",
                        ""));
    return other == 0
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "table meta of the ledger's file is damaged");
}

static enum status open_file(struct local *local, const char *path, struct error *error)
{
    enum status status;

    TRY(database_open(&local->sql, path, schema, error));
    status = local_store_open(&local->store, &local->sql, &local->store_error);
    if (status != STATUS_OK) {
        *error = local->store_error;
        return status;
    }
    return local_marks_open(&local->sql, error);
}

/* What SQLite finds wrong with a file is damage, too. */
static enum status explain_damage(const char *path, enum status status, struct error *error)
{
    static const char *const signs[] = {"malformed",    "not a database",
                                        "no such ",     "unsupported file format",
                                        "syntax error", "damaged"};
    bool found = status == STATUS_BAD_FORMAT;

    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        found = found || (status == STATUS_IO && strstr(error->text, signs[i]) != NULL);
    }
    if (found) {
        if (strstr(error->text, path) == NULL) {
            (void)error_wrap(error, "%s", path);
        }
        error->status = STATUS_BAD_FORMAT;
        error_advise(error, LOCAL_DAMAGE_ADVICE);
        return STATUS_BAD_FORMAT;
    }
    return status;
}

/* By a hash of the salt: the salt itself would reveal the hashes of later blocks. */
static void name_chain(char chain[LEDGER_CHAIN_MAX], struct local *local)
{
    struct hash32 hash = keccak256(local->salt, sizeof(local->salt));
    uint8_t number[UINT256_SIZE] = {0};
    char text[HEX_SIZE(NAME_BYTES)];

    hex_encode(text, hash.bytes, NAME_BYTES);
    (void)snprintf(chain, LEDGER_CHAIN_MAX, "local:%s", text);
    memcpy(number + UINT256_SIZE - NAME_BYTES, hash.bytes, NAME_BYTES);
    local->place.chain = uint256_from_bytes(number);
}

enum status ledger_local_attach(struct ledger *ledger, const struct ledger_options *options,
                                struct error *error)
{
    const char *path = options->url + strlen("local:");
    struct local *local;
    enum status status;

    if (!file_exists(path)) {
        (void)error_set(error, STATUS_NOT_FOUND, "there is no embedded ledger at %s", path);
        error_advise(error, "lockstep ledger init %s", path);
        return STATUS_NOT_FOUND;
    }
    local = calloc(1, sizeof(*local));
    if (local == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a ledger");
    }
    local->account = ledger->account;
    error_init(&local->store_error);
    TRY_OUT(open_file(local, path, error));
    TRY_OUT(read_meta(local, "salt", local->salt, sizeof(local->salt), error));
    TRY_OUT(check_meta(local, error));
out:
    if (status != STATUS_OK) {
        close_local(local);
        return explain_damage(path, status, error);
    }
    ledger->backend = &backend;
    ledger->self = local;
    name_chain(ledger->place.chain, local);
    ledger->game = local->place;
    ledger->event_log = sqlite3_db_filename(local->sql.database, "main");
    return STATUS_OK;
}

static enum status write_meta(struct local *local, struct error *error)
{
    TRY(secret_random(local->salt, sizeof(local->salt), error));
    return database_run(&local->sql, error,
                        "INSERT INTO meta VALUES ('salt', ?1), ('salt-again', ?1), ('genesis', ?2),"
                        " ('genesis-again', ?2)",
                        "bi", &(struct database_blob){local->salt, sizeof(local->salt)},
                        (int64_t)time(NULL));
}

/* An empty file that nobody else makes at the same time: what fails from here on may remove it. */
static enum status make_file(const char *path, struct error *error)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    if (file < 0) {
        return errno == EEXIST
                   ? error_set(error, STATUS_REFUSED, "there is already something at %s", path)
                   : error_set_errno(error, "cannot make %s", path);
    }
    (void)close(file);
    return STATUS_OK;
}

static void remove_file(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    char name[FILE_PATH_MAX + sizeof("-wal")];

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        (void)snprintf(name, sizeof(name), "%.*s%s", FILE_PATH_MAX - 1, path, suffixes[i]);
        (void)unlink(name);
    }
}

enum status ledger_local_init(const char *path, struct error *error)
{
    struct local *local = calloc(1, sizeof(*local));
    enum status status;

    if (local == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a ledger");
    }
    error_init(&local->store_error);
    status = make_file(path, error);
    if (status != STATUS_OK) {
        free(local);
        return status;
    }
    TRY_OUT(open_file(local, path, error));
    TRY_OUT(write_meta(local, error));
out:
    close_local(local);
    if (status != STATUS_OK) {
        remove_file(path);
    }
    return status;
}

static enum status require_local(const struct ledger *ledger, struct error *error)
{
    return ledger->backend == &backend
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "only an embedded ledger (local:PATH) has this");
}

enum status ledger_local_faucet(struct ledger *ledger, const struct address *account, wei amount,
                                struct error *error)
{
    const struct hash32 key = local_key_of_account(account);
    struct local *local = ledger->self;
    struct local_account found;
    enum status status;

    TRY(require_local(ledger, error));
    TRY(database_begin(&local->sql, error));
    status = local_get(&local->store, &found, LOCAL_ACCOUNT, &key, 0);
    if (status == STATUS_OK && (amount > WEI_MAX || found.purse + amount > WEI_MAX)) {
        status = error_set(error, STATUS_OVER_LIMIT, "an account holds at most 2^96 - 1 wei");
    } else if (status == STATUS_OK) {
        found.purse += amount;
        status = local_put(&local->store, &found, LOCAL_ACCOUNT, &key, 0);
    }
    return database_end(&local->sql, status, error);
}

enum status ledger_local_set_clock(struct ledger *ledger, uint64_t time_s, struct error *error)
{
    struct local *local = ledger->self;

    TRY(require_local(ledger, error));
    return database_run(&local->sql, error,
                        "INSERT OR REPLACE INTO meta VALUES ('clock', ?1), ('clock-again', ?1)",
                        "i", (int64_t)time_s);
}
