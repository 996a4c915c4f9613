/* virtual_chain.c - see virtual_chain.h. */
#include "tests/support/node/virtual_chain.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "chain/local/local_game.h"
#include "tests/support/chain/move_reader.h"
#include "tests/support/test.h"

const struct game_place virtual_place = {.registry = {"the virtual place"}};

static void must(const struct virtual_chain *chain, enum status status)
{
    if (status != STATUS_OK) {
        fail_msg("the virtual chain: %s", chain->error.text);
    }
}

static void run(struct virtual_chain *chain, const char *text)
{
    must(chain, database_run(&chain->sql, &chain->error, text, ""));
}

/* ---- the referee ------------------------------------------------------------- */

static enum status require_subject(struct local_game *game, const struct local_dispute *dispute,
                                   const struct game_subject *shown)
{
    struct hash32 subject =
        game_subject_hash(&dispute->segment, shown->step, &shown->pre_state, &shown->post_state);

    return hash32_equal(&subject, &dispute->subject)
               ? STATUS_OK
               : local_refuse(game, GAME_WRONG_CASE, GAME_CASE_SUBJECT);
}

static enum status query(struct local_game *game, const struct game_move *move)
{
    struct local_trial trial = {0};

    TRY(local_require_tried(game, &trial, &move->key, GAME_TURN_CLAIMANT));
    if (trial.dispute.queries == GAME_QUERIES_MAX) {
        return local_refuse(game, GAME_FULL, GAME_QUERIES_MAX);
    }
    TRY(require_subject(game, &trial.dispute, &move->subject));
    TRY(local_require_value(game, move, trial.dispute.query_fee));
    trial.dispute.said = keccak256(move->payload.bytes, move->payload.size);
    trial.dispute.queries++;
    local_claim_event(game, GAME_QUERIED, trial.key)->payload = move->payload;
    return local_pass_turn(game, &trial);
}

static enum status reply(struct local_game *game, const struct game_move *move)
{
    struct hash32 hash = keccak256(move->queried.bytes, move->queried.size);
    struct local_trial trial = {0};

    TRY(local_require_tried(game, &trial, &move->key, GAME_TURN_ACCUSED));
    if (!hash32_equal(&hash, &trial.dispute.said)) {
        return local_refuse(game, GAME_NOT_QUERIED, 0);
    }
    TRY(local_credit(game, &trial.dispute.solver, trial.dispute.query_fee));
    local_claim_event(game, GAME_REPLIED, trial.key)->payload = move->payload;
    return local_pass_turn(game, &trial);
}

static enum status convict(const struct virtual_chain *chain, struct local_game *game,
                           const struct game_move *move)
{
    struct local_trial trial = {0};

    TRY(local_require_tried(game, &trial, &move->key, GAME_TURN_CLAIMANT));
    TRY(require_subject(game, &trial.dispute, &move->subject));
    return chain->is_false(&move->subject.pre_state, &move->subject.post_state,
                           trial.dispute.diverged)
               ? local_uphold(game, &trial)
               : local_refuse(game, GAME_NOT_GUILTY, 0);
}

static enum status play_any(const struct virtual_chain *chain, struct local_game *game,
                            const struct game_move *move)
{
    game->event_count = 0;
    memset(&game->refusal, 0, sizeof(game->refusal));
    switch ((int)move->kind) {
    case GAME_QUERY:
        return query(game, move);
    case GAME_REPLY:
        return reply(game, move);
    case GAME_CONVICT:
        return convict(chain, game, move);
    default:
        return local_game_play(game, move);
    }
}

/* ---- one move ------------------------------------------------------------------ */

static enum status random_of(void *context, struct hash32 *random, uint64_t height)
{
    const struct virtual_chain *chain = context;

    assert(height <= chain->height);
    *random = chain->blocks[height].hash;
    return STATUS_OK;
}

static enum status pay(struct virtual_chain *chain, const struct address *sender, wei value)
{
    const struct hash32 key = local_key_of_account(sender);
    struct local_account account;

    TRY(local_get(&chain->store, &account, LOCAL_ACCOUNT, &key, 0));
    if (account.purse < value) {
        return STATUS_REFUSED;
    }
    account.purse -= value;
    return local_put(&chain->store, &account, LOCAL_ACCOUNT, &key, 0);
}

/* In a savepoint of its own; what was refused leaves nothing. */
static bool play(struct virtual_chain *chain, struct local_game *game, const struct game_move *move,
                 uint64_t time_s)
{
    enum status status;

    game->store = &chain->store;
    game->place = virtual_place;
    game->now_s = time_s;
    game->height = chain->height + 1;
    game->random = random_of;
    game->context = chain;
    game->event_count = 0;
    run(chain, "SAVEPOINT move");
    status = pay(chain, &game->sender, move->value);
    if (status == STATUS_OK) {
        status = play_any(chain, game, move);
    }
    if (status == STATUS_REFUSED) {
        run(chain, "ROLLBACK TO move");
        game->event_count = 0;
    } else {
        must(chain, status);
    }
    run(chain, "RELEASE move");
    return status == STATUS_OK;
}

static void decode(struct game_move *move, const struct virtual_move *from)
{
    enum status status = game_move_decode(move, from->bytes, from->size);

    assert(status == STATUS_OK);
    move->value = from->value;
}

static void keep_events(struct virtual_block *block, const struct local_game *game)
{
    for (uint32_t i = 0; i < game->event_count; i++) {
        struct virtual_log *log;
        uint8_t bytes[GAME_LOG_SIZE_MAX];

        block->logs = realloc(block->logs, (block->log_count + 1) * sizeof(*block->logs));
        assert(block->logs != NULL);
        log = &block->logs[block->log_count++];
        game_event_encode(&log->log, bytes, &game->events[i]);
        log->data = malloc(log->log.data.size + 1);
        assert(log->data != NULL);
        memcpy(log->data, log->log.data.bytes, log->log.data.size);
        log->log.data.bytes = log->data;
    }
}

static void include(struct virtual_chain *chain, struct virtual_block *block,
                    struct virtual_move *move, uint32_t place)
{
    struct game_move decoded;
    static struct local_game game;

    game.sender = move->sender;
    decode(&decoded, move);
    move->refused = !play(chain, &game, &decoded, block->time_s);
    move->refusal = game.refusal;
    move->height = chain->height + 1;
    move->place = place;
    keep_events(block, &game);
}

bool virtual_chain_refuses(struct virtual_chain *chain, const struct address *sender,
                           const struct game_move *move, uint64_t time_s,
                           struct game_refusal *refusal)
{
    static struct local_game game;
    bool refused;

    game.sender = *sender;
    run(chain, "SAVEPOINT look");
    refused = !play(chain, &game, move, time_s);
    run(chain, "ROLLBACK TO look");
    run(chain, "RELEASE look");
    *refusal = game.refusal;
    return refused;
}

/* ---- blocks --------------------------------------------------------------------- */

static void name_block(struct virtual_chain *chain, struct virtual_block *block)
{
    uint64_t words[3] = {chain->height + 1, chain->forks, test_random(&chain->random)};

    block->hash = keccak256(words, sizeof(words));
}

static void release_block(struct virtual_block *block)
{
    for (uint32_t i = 0; i < block->log_count; i++) {
        free(block->logs[i].data);
    }
    free(block->logs);
    memset(block, 0, sizeof(*block));
}

static bool waits(const struct virtual_move *move)
{
    return move->height == 0;
}

/* Has a move of the same sender that was sent before it been left waiting? */
static bool stands_behind(const struct virtual_chain *chain, uint32_t number, const bool *left)
{
    for (uint32_t i = 0; i < number; i++) {
        if (left[i] && address_equal(&chain->moves[i].sender, &chain->moves[number].sender)) {
            return true;
        }
    }
    return false;
}

static struct virtual_block *next_block(struct virtual_chain *chain, uint64_t now_s)
{
    struct virtual_block *block = &chain->blocks[chain->height + 1];

    assert(chain->height + 1 < VIRTUAL_BLOCKS_MAX);
    memset(block, 0, sizeof(*block));
    block->time_s = now_s > virtual_chain_time(chain) ? now_s : virtual_chain_time(chain);
    name_block(chain, block);
    return block;
}

void virtual_chain_mine(struct virtual_chain *chain, uint64_t now_s, uint32_t percent)
{
    bool left[VIRTUAL_MOVES_MAX];
    struct virtual_block *block = next_block(chain, now_s);
    uint32_t place = 0;
    bool turned = test_random_below(&chain->random, 2) != 0;

    memset(left, 0, sizeof(left));
    for (uint32_t i = 0; i < chain->move_count; i++) {
        left[i] = waits(&chain->moves[i]) && (test_random_below(&chain->random, 100) >= percent ||
                                              stands_behind(chain, i, left));
    }
    run(chain, "BEGIN");
    /* Some blocks order the senders the other way round: two passes over two halves of them. */
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < chain->move_count; i++) {
            struct virtual_move *move = &chain->moves[i];
            bool first = ((move->sender.bytes[0] & 1) != 0) == turned;

            if (waits(move) && !left[i] && first == (pass == 0)) {
                include(chain, block, move, place++);
            }
        }
    }
    run(chain, "COMMIT");
    chain->height++;
}

static void put_riches(struct virtual_chain *chain)
{
    for (uint32_t i = 0; i < chain->rich_count; i++) {
        const struct local_account account = {.purse = VIRTUAL_PURSE};
        const struct hash32 key = local_key_of_account(&chain->rich[i]);

        must(chain, local_put(&chain->store, &account, LOCAL_ACCOUNT, &key, 0));
    }
}

/* The state after the first blocks, from the beginning: with the same outcomes as before. */
static void rebuild(struct virtual_chain *chain, uint64_t height)
{
    uint64_t top = chain->height;

    run(chain, "BEGIN");
    run(chain, "DELETE FROM records");
    put_riches(chain);
    for (chain->height = 0; chain->height < height; chain->height++) {
        const struct virtual_block *block = &chain->blocks[chain->height + 1];
        bool more = true;

        for (uint32_t place = 0; more; place++) {
            more = false;
            for (uint32_t i = 0; i < chain->move_count; i++) {
                const struct virtual_move *move = &chain->moves[i];

                if (move->height == chain->height + 1 && move->place == place) {
                    static struct local_game game;
                    struct game_move decoded;

                    game.sender = move->sender;
                    decode(&decoded, move);
                    assert(play(chain, &game, &decoded, block->time_s) == !move->refused);
                    more = true;
                }
            }
        }
    }
    run(chain, "COMMIT");
    assert(chain->height <= top);
}

void virtual_chain_reorganize(struct virtual_chain *chain, uint64_t depth)
{
    uint64_t bottom = depth < chain->height ? chain->height - depth : 0;
    uint64_t top = chain->height;
    uint64_t times[VIRTUAL_BLOCKS_MAX];

    chain->forks++;
    for (uint64_t i = bottom + 1; i <= top; i++) {
        times[i] = chain->blocks[i].time_s;
        release_block(&chain->blocks[i]);
    }
    for (uint32_t i = 0; i < chain->move_count; i++) {
        struct virtual_move *move = &chain->moves[i];

        if (move->height > bottom) {
            move->height = 0;
            move->refused = false;
        }
    }
    rebuild(chain, bottom);
    for (uint64_t i = bottom + 1; i <= top; i++) {
        virtual_chain_mine(chain, times[i], 50);
    }
}

/* ---- making ----------------------------------------------------------------------- */

struct virtual_chain *virtual_chain_new(uint64_t seed, uint64_t start_s)
{
    struct virtual_chain *chain = calloc(1, sizeof(*chain));

    assert(chain != NULL);
    error_init(&chain->error);
    chain->random = seed;
    must(chain, database_open(&chain->sql, ":memory:", "", &chain->error));
    must(chain, local_store_open(&chain->store, &chain->sql, &chain->error));
    chain->blocks[0].time_s = start_s;
    return chain;
}

void virtual_chain_free(struct virtual_chain *chain)
{
    for (uint64_t i = 0; i <= chain->height; i++) {
        release_block(&chain->blocks[i]);
    }
    for (uint32_t i = 0; i < chain->move_count; i++) {
        free(chain->moves[i].bytes);
    }
    database_close(&chain->sql);
    free(chain);
}

void virtual_chain_enrich(struct virtual_chain *chain, const struct address *account)
{
    assert(chain->rich_count < 16);
    chain->rich[chain->rich_count++] = *account;
    put_riches(chain);
}

uint32_t virtual_chain_send(struct virtual_chain *chain, const struct address *sender,
                            const struct game_move *move)
{
    struct virtual_move *kept = &chain->moves[chain->move_count];

    assert(chain->move_count < VIRTUAL_MOVES_MAX);
    memset(kept, 0, sizeof(*kept));
    kept->sender = *sender;
    kept->value = move->value;
    kept->bytes = malloc(game_move_size(move));
    assert(kept->bytes != NULL);
    game_move_encode(kept->bytes, &kept->size, move);
    return chain->move_count++;
}

uint64_t virtual_chain_time(const struct virtual_chain *chain)
{
    return chain->blocks[chain->height].time_s;
}
