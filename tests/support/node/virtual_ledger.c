/* virtual_ledger.c - see virtual_ledger.h. */
#include "tests/support/node/virtual_ledger.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/game/event_log.h"
#include "chain/local/ledger_local.h"
#include "tests/support/chain/move_reader.h"
#include "tests/support/test.h"

static const char schema[] = EVENT_LOG_SCHEMA;

static void must(struct virtual_ledger *ledger, enum status status)
{
    if (status != STATUS_OK) {
        fail_msg("the virtual ledger: %s", ledger->error.text);
    }
}

/* What becomes of a call: STATUS_OK, or why it fails. *last: it is done all the same. */
static enum status begin_call(struct virtual_ledger *ledger, bool *last, bool over_net,
                              struct error *error)
{
    enum fate_says says = fate_ask(ledger->fate);

    *last = says == FATE_LAST;
    if (says == FATE_DEAD) {
        return error_set(error, STATUS_IO, "the process is dead");
    }
    if (over_net &&
        (ledger->unreachable || test_random_below(&ledger->random, 100) < ledger->bad_percent)) {
        return error_set(error, STATUS_UNREACHABLE, "no endpoint answers");
    }
    return STATUS_OK;
}

static enum status end_call(bool last, enum status status, struct error *error)
{
    return last ? error_set(error, STATUS_IO, "the process is dead") : status;
}

/* ---- the outbox ---------------------------------------------------------------- */

static struct virtual_intent *find(struct virtual_ledger *ledger, const char *name)
{
    for (uint32_t i = 0; i < ledger->outbox_count; i++) {
        if (strcmp(ledger->outbox[i].name, name) == 0) {
            return &ledger->outbox[i];
        }
    }
    return NULL;
}

static bool is_final(const struct virtual_ledger *ledger, const struct virtual_move *move)
{
    return move->height != 0 && move->height + ledger->depth <= ledger->chain->height;
}

static bool was_refused(const struct virtual_ledger *ledger, const struct virtual_intent *intent)
{
    const struct virtual_move *move = &ledger->chain->moves[intent->number];

    return intent->refused || (intent->sent && move->refused && is_final(ledger, move));
}

/* Of the block that a move would be in, as an endpoint tells it. */
static uint64_t time_of(const struct virtual_ledger *ledger)
{
    uint64_t top_s = virtual_chain_time(ledger->chain);

    return ledger->depth == 0 && ledger->now_s > top_s ? ledger->now_s : top_s;
}

static void send(struct virtual_ledger *ledger, struct virtual_intent *intent)
{
    bool asks = test_random_below(&ledger->random, 2) == 0 || ledger->depth == 0;
    const struct address *own = &ledger->ledger.account;
    struct game_move move;
    enum status status = game_move_decode(&move, intent->bytes, intent->size);

    assert(status == STATUS_OK);
    move.value = intent->value;
    if (asks &&
        virtual_chain_refuses(ledger->chain, own, &move, time_of(ledger), &intent->refusal)) {
        intent->refused = true;
        return;
    }
    intent->number = virtual_chain_send(ledger->chain, own, &move);
    intent->sent = true;
    if (ledger->depth == 0) {
        virtual_chain_mine(ledger->chain, ledger->now_s, 100);
    }
}

static void write_down(struct virtual_ledger *ledger, const char *name,
                       const struct game_move *move, uint8_t *bytes, size_t size)
{
    struct virtual_intent *intent = &ledger->outbox[ledger->outbox_count++];

    assert(ledger->outbox_count < VIRTUAL_OUTBOX_MAX);
    memset(intent, 0, sizeof(*intent));
    (void)snprintf(intent->name, sizeof(intent->name), "%s", name);
    intent->value = move->value;
    intent->bytes = bytes;
    intent->size = size;
}

static enum status submit(void *self, const char *name, const struct game_move *move,
                          struct error *error)
{
    struct virtual_ledger *ledger = self;
    struct virtual_intent *intent = find(ledger, name);
    uint8_t *bytes;
    size_t size;
    bool last;
    enum status status = begin_call(ledger, &last, false, error);

    if (status != STATUS_OK) {
        return status;
    }
    if (test_random_below(&ledger->random, 100) < ledger->refusing_percent) {
        return error_set(error, STATUS_REFUSED, "this move costs more than the account has");
    }
    bytes = malloc(game_move_size(move));
    assert(bytes != NULL);
    game_move_encode(bytes, &size, move);
    if (intent == NULL) {
        write_down(ledger, name, move, bytes, size);
        intent = &ledger->outbox[ledger->outbox_count - 1];
    } else {
        if (was_refused(ledger, intent)) { /* its name is free for another try */
            free(intent->bytes);
            intent->bytes = bytes;
            intent->size = size;
            intent->value = move->value;
            intent->sent = intent->refused = false;
        } else {
            bool same = intent->size == size && memcmp(intent->bytes, bytes, size) == 0 &&
                        intent->value == move->value;

            free(bytes);
            if (same) {
                return end_call(last, STATUS_OK, error);
            }
            (void)snprintf(ledger->contradicted, sizeof(ledger->contradicted), "%s", name);
            return error_set(error, STATUS_REFUSED, "there is another move of that name");
        }
    }
    if (ledger->depth == 0) {
        send(ledger, intent);
    }
    return end_call(last, STATUS_OK, error);
}

static enum status look(void *self, struct ledger_outcome *outcome, const char *name,
                        struct error *error)
{
    struct virtual_ledger *ledger = self;
    const struct virtual_intent *intent = find(ledger, name);
    const struct virtual_move *move;
    bool last;
    enum status status = begin_call(ledger, &last, false, error);

    memset(outcome, 0, sizeof(*outcome));
    if (status != STATUS_OK || intent == NULL) {
        return status != STATUS_OK ? status
                                   : error_set(error, STATUS_NOT_FOUND, "there is no such move");
    }
    move = &ledger->chain->moves[intent->number];
    outcome->state = LEDGER_MOVE_WAITING;
    if (was_refused(ledger, intent)) {
        outcome->state = LEDGER_MOVE_REFUSED;
        outcome->refusal = intent->refused ? intent->refusal : move->refusal;
    } else if (intent->sent && move->height != 0 && !move->refused) {
        outcome->state = is_final(ledger, move) ? LEDGER_MOVE_FINAL : LEDGER_MOVE_DONE;
        outcome->height = move->height;
    }
    return end_call(last, STATUS_OK, error);
}

bool virtual_ledger_is_waiting(const struct virtual_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->outbox_count; i++) {
        const struct virtual_intent *intent = &ledger->outbox[i];

        if (!intent->refused &&
            (!intent->sent || !is_final(ledger, &ledger->chain->moves[intent->number]))) {
            return true;
        }
    }
    return false;
}

/* ---- the index ------------------------------------------------------------------ */

/* The highest block that the index has and that still stands. */
static uint64_t common_height(struct virtual_ledger *ledger)
{
    struct event_log_block top = {0};
    enum status status = event_log_top(&ledger->index, &top, &ledger->error);

    if (status == STATUS_NOT_FOUND) {
        return 0;
    }
    must(ledger, status);
    while (top.height > 0 && (top.height > ledger->chain->height ||
                              !hash32_equal(&top.hash, &ledger->chain->blocks[top.height].hash))) {
        status = event_log_block_at(&ledger->index, &top, top.height - 1, &ledger->error);
        if (status == STATUS_NOT_FOUND) {
            return 0;
        }
        must(ledger, status);
    }
    return top.height;
}

static void add_block(struct virtual_ledger *ledger, uint64_t height)
{
    const struct virtual_block *found = &ledger->chain->blocks[height];
    const struct event_log_block block = {height, found->hash, found->time_s};

    must(ledger, event_log_add_block(&ledger->index, &block, &ledger->error));
    for (uint32_t i = 0; i < found->log_count; i++) {
        must(ledger,
             event_log_add_log(&ledger->index, &block, i, &found->logs[i].log, &ledger->error));
    }
}

static void follow(struct virtual_ledger *ledger)
{
    uint64_t height = common_height(ledger);
    uint64_t end =
        ledger->lags && height + 1 < ledger->chain->height ? height + 1 : ledger->chain->height;

    must(ledger, database_begin(&ledger->index, &ledger->error));
    must(ledger, event_log_rewind(&ledger->index, height, &ledger->error));
    while (height < end) {
        add_block(ledger, ++height);
    }
    must(ledger, database_end(&ledger->index, STATUS_OK, &ledger->error));
}

static void look_back(struct virtual_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->outbox_count; i++) {
        struct virtual_intent *intent = &ledger->outbox[i];
        const struct virtual_move *move = &ledger->chain->moves[intent->number];
        /* What was done, and is refused in the blocks that came instead, is taken back too. */
        bool final = intent->sent && is_final(ledger, move) && !move->refused;

        ledger->reopened += intent->final && !final;
        intent->final = final;
    }
}

static enum status count_reopened(void *self, uint64_t *count, struct error *error)
{
    const struct virtual_ledger *ledger = self;

    (void)error;
    *count = ledger->reopened;
    return STATUS_OK;
}

static enum status work(void *self, struct error *error)
{
    struct virtual_ledger *ledger = self;
    bool last;
    enum status status = begin_call(ledger, &last, true, error);

    if (status != STATUS_OK) {
        return status;
    }
    for (uint32_t i = 0; i < ledger->outbox_count; i++) {
        struct virtual_intent *intent = &ledger->outbox[i];

        if (!intent->sent && !intent->refused) {
            send(ledger, intent);
        }
    }
    look_back(ledger);
    follow(ledger);
    return end_call(last, STATUS_OK, error);
}

static enum status behind(void *self, bool *is_behind, struct error *error)
{
    struct virtual_ledger *ledger = self;

    (void)error;
    *is_behind = common_height(ledger) < ledger->chain->height;
    return STATUS_OK;
}

static enum status next(void *self, struct ledger_entry *entry, uint64_t after, uint32_t depth,
                        const struct hash32 *topic, struct error *error)
{
    struct virtual_ledger *ledger = self;
    bool last;
    enum status status = begin_call(ledger, &last, false, error);

    (void)depth;
    if (status != STATUS_OK) {
        return status;
    }
    status =
        event_log_next(&ledger->index, entry, ledger->payload, after, UINT64_MAX, topic, error);
    return end_call(last, status, error);
}

/* ---- reading --------------------------------------------------------------------- */

static enum status get_job(void *self, struct ledger_job *job, const struct hash32 *key,
                           struct error *error)
{
    struct virtual_ledger *ledger = self;
    struct local_job found;
    bool last;
    enum status status = begin_call(ledger, &last, true, error);

    if (status != STATUS_OK) {
        return status;
    }
    must(ledger, local_get(&ledger->chain->store, &found, LOCAL_JOB, key, 0));
    ledger_local_job(job, &found);
    return end_call(last, found.phase == GAME_PHASE_NONE ? STATUS_NOT_FOUND : STATUS_OK, error);
}

static enum status get_claim(void *self, struct ledger_claim *claim, const struct hash32 *key,
                             struct error *error)
{
    struct virtual_ledger *ledger = self;
    struct local_claimant lead = {0};
    struct local_dispute found;
    bool last;
    enum status status = begin_call(ledger, &last, true, error);

    if (status != STATUS_OK) {
        return status;
    }
    must(ledger, local_get(&ledger->chain->store, &found, LOCAL_DISPUTE, key, 0));
    must(ledger, local_get(&ledger->chain->store, &lead, LOCAL_CLAIMANT, key, found.first));
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
    return end_call(last, found.phase == GAME_CLAIM_NONE ? STATUS_NOT_FOUND : STATUS_OK, error);
}

static enum status get_account(void *self, wei *purse, wei *owed, const struct address *account,
                               struct error *error)
{
    struct virtual_ledger *ledger = self;
    const struct hash32 key = local_key_of_account(account);
    struct local_account found;
    bool last;
    enum status status = begin_call(ledger, &last, true, error);

    if (status == STATUS_OK) {
        must(ledger, local_get(&ledger->chain->store, &found, LOCAL_ACCOUNT, &key, 0));
        *purse = found.purse;
        *owed = found.owed;
        status = end_call(last, status, error);
    }
    return status;
}

static enum status get_clock(void *self, struct ledger_clock *clock, struct error *error)
{
    struct virtual_ledger *ledger = self;
    bool last;
    enum status status = begin_call(ledger, &last, true, error);

    if (status == STATUS_OK) {
        clock->height = ledger->chain->height;
        clock->time_s = time_of(ledger);
        clock->seed_delay = GAME_SEED_DELAY;
        status = end_call(last, status, error);
    }
    return status;
}

static enum status get_fixed(void *self, uint64_t *source, uint64_t height, uint64_t time_s,
                             struct error *error)
{
    struct virtual_ledger *ledger = self;
    const struct hash32 key = local_key_of_commits(height, time_s);
    bool last;
    enum status status = begin_call(ledger, &last, true, error);

    if (status == STATUS_OK) {
        must(ledger, local_get(&ledger->chain->store, source, LOCAL_FIXED, &key, 0));
        status = end_call(last, status, error);
    }
    return status;
}

static void close_nothing(void *self)
{
    (void)self;
}

static const struct ledger_backend backend = {
    .close = close_nothing,
    .submit = submit,
    .look = look,
    .reopened = count_reopened,
    .work = work,
    .behind = behind,
    .next = next,
    .get_job = get_job,
    .get_claim = get_claim,
    .get_account = get_account,
    .get_clock = get_clock,
    .get_fixed = get_fixed,
};

void virtual_ledger_init(struct virtual_ledger *ledger, struct virtual_chain *chain,
                         struct fate *fate, const struct address *account, uint32_t depth,
                         uint64_t seed)
{
    memset(ledger, 0, sizeof(*ledger));
    error_init(&ledger->error);
    ledger->chain = chain;
    ledger->fate = fate;
    ledger->depth = depth;
    ledger->random = seed;
    ledger->ledger.backend = &backend;
    ledger->ledger.self = ledger;
    ledger->ledger.account = *account;
    ledger->ledger.may_write = true;
    (void)snprintf(ledger->ledger.place.chain, sizeof(ledger->ledger.place.chain), "virtual:1");
    ledger->ledger.game = virtual_place;
    ledger->outbox = calloc(VIRTUAL_OUTBOX_MAX, sizeof(*ledger->outbox));
    assert(ledger->outbox != NULL);
    must(ledger, database_open(&ledger->index, ":memory:", schema, &ledger->error));
}

void virtual_ledger_release(struct virtual_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->outbox_count; i++) {
        free(ledger->outbox[i].bytes);
    }
    free(ledger->outbox);
    database_close(&ledger->index);
}
