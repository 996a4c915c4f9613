/* virtual_chain.c - see virtual_chain.h. */
#include "tests/support/node/virtual_chain.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "chain/local/local_game.h"
#include "tests/support/test.h"

enum {
    BLOCK_HASHES = 256,
    LOST_PERCENT = 10, /* of others' moves in blocks that are taken back */
};

const struct game_place virtual_place = {.registry = {"the virtual place"}};

static const struct address referee = {"the virtual referee"};

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

static bool case_is_shown(const struct local_game *game, const struct local_dispute *dispute,
                          const struct game_case *shown)
{
    const struct local_claim *claim = &dispute->claim;
    struct digest job_id = dispute->job.terms.job_id;
    struct hash32 job = game_job_key(&virtual_place, &shown->client, &job_id, shown->salt);
    struct hash32 segment = game_segment_hash(&claim->job, &shown->segment);
    struct hash32 key = game_claim_key(&claim->claimant, &segment, shown->step, &shown->pre_state,
                                       &shown->post_state);
    struct hash32 standing;
    struct hash32 previous;

    if (!hash32_equal(&job, &claim->job) || !hash32_equal(&segment, &claim->segment) ||
        (address_is_zero(&claim->attestor) && !hash32_equal(&key, dispute->key))) {
        return false;
    }
    if (shown->step > 0 || shown->segment.index == 0) {
        return true;
    }
    previous = game_segment_hash(&claim->job, &shown->previous);
    return local_get_segment(game->store, &standing, &claim->job, shown->segment.index - 1) ==
               STATUS_OK &&
           hash32_equal(&standing, &previous);
}

static enum status judge(struct virtual_chain *chain, struct local_game *game,
                         struct local_dispute *dispute, const struct game_move *move)
{
    struct virtual_evidence evidence;

    if (!case_is_shown(game, dispute, &move->shown)) {
        return local_refuse(game, GAME_WRONG_CASE, GAME_CASE_SUBJECT);
    }
    if (move->payload.size != sizeof(evidence)) {
        return local_refuse(game, GAME_BAD_EVIDENCE, 0);
    }
    memcpy(&evidence, move->payload.bytes, sizeof(evidence));
    if (move->kind == GAME_QUERY) {
        local_dispute_event(game, GAME_QUERIED, dispute)->payload = move->payload;
        return local_give_turn(game, dispute, GAME_TURN_ACCUSED);
    }
    if (!chain->guilty(chain->context, &move->shown, &dispute->claim)) {
        return local_refuse(game, GAME_NOT_GUILTY, 0);
    }
    return local_end_claim(game, dispute, true);
}

static enum status play_before_referee(struct virtual_chain *chain, struct local_game *game,
                                       const struct game_move *move)
{
    struct local_dispute dispute = {0};
    bool tells = move->kind == GAME_REPLY;
    const struct address *mover;

    game->event_count = 0;
    TRY(local_require_tried(game, &dispute, &move->key));
    mover = !tells                                     ? &dispute.claim.claimant
            : address_is_zero(&dispute.claim.attestor) ? &dispute.job.solver
                                                       : &dispute.claim.attestor;
    if (dispute.claim.turn != (tells ? GAME_TURN_ACCUSED : GAME_TURN_CLAIMANT)) {
        return local_refuse(game, GAME_WRONG_TURN, dispute.claim.turn);
    }
    if (!address_equal(&game->sender, mover)) {
        return local_refuse_other(game, mover);
    }
    if (tells) {
        local_dispute_event(game, GAME_REPLIED, &dispute)->payload = move->payload;
        return local_give_turn(game, &dispute, GAME_TURN_CLAIMANT);
    }
    return judge(chain, game, &dispute, move);
}

/* ---- one move ------------------------------------------------------------------ */

static enum status block_hash(void *context, struct hash32 *hash, uint64_t height)
{
    const struct virtual_chain *chain = context;

    memset(hash, 0, sizeof(*hash));
    if (height <= chain->height && height + BLOCK_HASHES >= chain->height) {
        *hash = chain->blocks[height].hash;
    }
    return STATUS_OK;
}

static enum status pay(struct virtual_chain *chain, const struct address *sender, wei value)
{
    struct local_account account;
    enum status status = local_get_account(&chain->store, &account, sender);

    if (status != STATUS_OK || account.purse < value) {
        return status != STATUS_OK ? status : STATUS_REFUSED;
    }
    account.purse -= value;
    return local_put_account(&chain->store, &account, sender);
}

/* In a savepoint of its own; what was refused leaves nothing. */
static bool play(struct virtual_chain *chain, struct local_game *game, const struct game_move *move,
                 uint64_t time_s)
{
    enum status status;

    game->store = &chain->store;
    game->place = virtual_place;
    game->referee = referee;
    game->now_s = time_s;
    game->height = chain->height + 1;
    game->block_hash = block_hash;
    game->context = chain;
    game->event_count = 0;
    run(chain, "SAVEPOINT move");
    status = pay(chain, &game->sender, move->value);
    if (status == STATUS_OK) {
        status = game_move_is_of_referee(move->kind) ? play_before_referee(chain, game, move)
                                                     : local_game_play(game, move);
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
    struct local_game game = {.sender = move->sender};

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
    struct local_game game = {.sender = *sender};
    bool refused;

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
    return move->height == 0 && !move->lost;
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
        const struct local_account account = {.purse = 100000 * WEI_PER_ETHER};

        must(chain, local_put_account(&chain->store, &account, &chain->rich[i]));
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
                    struct local_game game = {.sender = move->sender};
                    struct game_move decoded;

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
            move->lost = !address_equal(&move->sender, &chain->keeps) &&
                         test_random_below(&chain->random, 100) < LOST_PERCENT;
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
