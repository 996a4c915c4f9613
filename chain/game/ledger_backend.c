/* ledger_backend.c - opens a ledger and hands each call of ledger.h to its implementation. */
#include "chain/game/ledger_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/steady.h"

enum {
    WAIT_STEP_MS = 20,
    WAIT_STEP_MS_MAX = 500,
    STALE_S = 900,
};

void ledger_options_init(struct ledger_options *options)
{
    memset(options, 0, sizeof(*options));
    options->depth = 12;
    options->replace_after_s = 90;
    options->gas_price_gwei_max = 200;
    options->timeout_ms = 10000;
}

bool ledger_is_embedded(const char *url)
{
    return url != NULL && strncmp(url, "local:", 6) == 0;
}

enum status ledger_open(struct ledger **ledger, const struct ledger_options *options,
                        struct error *error)
{
    struct ledger *made = calloc(1, sizeof(*made));
    enum status status;

    *ledger = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a ledger");
    }
    made->may_write = options->signer != NULL;
    if (made->may_write) {
        made->account = *signer_address(options->signer);
    }
    if (strlen(options->url) > LEDGER_URL_MAX) {
        status = error_set(error, STATUS_USAGE, "the ledger's URL is too long");
    } else if (ledger_is_embedded(options->url)) {
        status = ledger_local_attach(made, options, error);
    } else if (strncmp(options->url, "http://", 7) == 0 ||
               strncmp(options->url, "https://", 8) == 0) {
        status = ledger_evm_attach(made, options, error);
    } else {
        status = error_set(error, STATUS_USAGE,
                           "a ledger is local:PATH, http://... or https://..., not '%.100s'",
                           options->url);
    }
    if (status != STATUS_OK) {
        free(made);
        return status;
    }
    *ledger = made;
    return STATUS_OK;
}

void ledger_close(struct ledger *ledger)
{
    if (ledger != NULL) {
        ledger->backend->close(ledger->self);
        free(ledger);
    }
}

const struct ledger_place *ledger_get_place(const struct ledger *ledger)
{
    return &ledger->place;
}

const char *ledger_get_event_log(const struct ledger *ledger)
{
    return ledger->event_log;
}

const struct game_place *ledger_get_game(const struct ledger *ledger)
{
    return &ledger->game;
}

const struct address *ledger_get_token(const struct ledger *ledger)
{
    return &ledger->token;
}

const struct currency *ledger_get_currency(const struct ledger *ledger)
{
    return &ledger->currency;
}

const struct address *ledger_get_own(const struct ledger *ledger)
{
    return &ledger->account;
}

enum status ledger_submit(struct ledger *ledger, const char *name, const struct game_move *move,
                          struct error *error)
{
    if (!ledger->may_write) {
        return error_set(error, STATUS_USAGE, "the ledger was opened without a key");
    }
    if (name[0] == '\0' || strlen(name) > LEDGER_NAME_MAX) {
        return error_set(error, STATUS_USAGE, "a move needs a name of up to %d characters",
                         LEDGER_NAME_MAX);
    }
    if (!game_move_fits(move)) {
        return error_set(error, STATUS_OVER_LIMIT, "this move is too long for one transaction");
    }
    return ledger->backend->submit(ledger->self, name, move, error);
}

enum status ledger_afford(struct ledger *ledger, enum game_move_kind kind, wei value,
                          struct error *error)
{
    return ledger->may_write && ledger->backend->afford != NULL
               ? ledger->backend->afford(ledger->self, kind, value, error)
               : STATUS_OK;
}

enum status ledger_get_gas_price(struct ledger *ledger, wei *price, struct error *error)
{
    *price = 0;
    return ledger->backend->get_gas_price == NULL
               ? STATUS_OK
               : ledger->backend->get_gas_price(ledger->self, price, error);
}

enum status ledger_look(struct ledger *ledger, struct ledger_outcome *outcome, const char *name,
                        struct error *error)
{
    if (!ledger->may_write) {
        return error_set(error, STATUS_USAGE, "the ledger was opened without a key");
    }
    return ledger->backend->look(ledger->self, outcome, name, error);
}

enum status ledger_work(struct ledger *ledger, struct error *error)
{
    return ledger->backend->work(ledger->self, error);
}

enum status ledger_catch_up(struct ledger *ledger, struct error *error)
{
    bool behind = true;

    while (behind) {
        TRY(ledger_work(ledger, error));
        TRY(ledger->backend->behind(ledger->self, &behind, error));
    }
    return STATUS_OK;
}

enum status ledger_wait(struct ledger *ledger, struct ledger_outcome *outcome, const char *name,
                        bool until_final, uint32_t timeout_ms, struct error *error)
{
    uint64_t end_ms = steady_ms() + timeout_ms;
    uint32_t step_ms = WAIT_STEP_MS;

    for (;;) {
        struct timespec pause = {0, (long)step_ms * 1000000};
        enum status worked = ledger_work(ledger, error);
        enum status status = ledger_look(ledger, outcome, name, error);

        if (status != STATUS_OK || (worked != STATUS_OK && worked != STATUS_UNREACHABLE)) {
            return status != STATUS_OK ? status : worked;
        }
        if (outcome->state == LEDGER_MOVE_FINAL || outcome->state == LEDGER_MOVE_REFUSED ||
            (outcome->state == LEDGER_MOVE_DONE && !until_final)) {
            return STATUS_OK;
        }
        if (steady_ms() >= end_ms) {
            return error_set(error, STATUS_UNREACHABLE, "'%s' is still on its way%s%s", name,
                             outcome->trouble[0] != '\0' ? ": " : "", outcome->trouble);
        }
        (void)nanosleep(&pause, NULL);
        step_ms = 2 * step_ms > WAIT_STEP_MS_MAX ? WAIT_STEP_MS_MAX : 2 * step_ms;
    }
}

enum status ledger_next(struct ledger *ledger, struct ledger_entry *entry, uint64_t after,
                        uint32_t depth, struct error *error)
{
    return ledger->backend->next(ledger->self, entry, after, depth, NULL, error);
}

enum status ledger_next_of(struct ledger *ledger, struct ledger_entry *entry, uint64_t after,
                           enum game_event_kind kind, struct error *error)
{
    const struct hash32 topic = game_event_topic(kind);

    return ledger->backend->next(ledger->self, entry, after, 0, &topic, error);
}

enum status ledger_get_job(struct ledger *ledger, struct ledger_job *job, const struct hash32 *key,
                           struct error *error)
{
    return ledger->backend->get_job(ledger->self, job, key, error);
}

enum status ledger_get_claim(struct ledger *ledger, struct ledger_claim *claim,
                             const struct hash32 *key, struct error *error)
{
    TRY(ledger->backend->get_claim(ledger->self, claim, key, error));
    claim->deadline_s = 0;
    if (claim->phase == GAME_CLAIM_CALLED || claim->phase == GAME_CLAIM_TRIED) {
        claim->deadline_s =
            claim->since_s +
            (claim->turn == GAME_TURN_ACCUSED ? claim->solver_left_s : claim->lead_left_s);
    }
    return STATUS_OK;
}

enum status ledger_get_account(struct ledger *ledger, wei *purse, wei *owed,
                               const struct address *account, struct error *error)
{
    return ledger->backend->get_account(ledger->self, purse, owed, account, error);
}

enum status ledger_each_gas(struct ledger *ledger, const struct address *account,
                            void (*take)(void *context, wei amount, uint64_t time_s), void *context,
                            struct error *error)
{
    return ledger->backend->each_gas == NULL
               ? STATUS_OK
               : ledger->backend->each_gas(ledger->self, account, take, context, error);
}

enum status ledger_get_clock(struct ledger *ledger, struct ledger_clock *clock, struct error *error)
{
    return ledger->backend->get_clock(ledger->self, clock, error);
}

size_t ledger_endpoints(const struct ledger *ledger,
                        struct ledger_endpoint list[LEDGER_ENDPOINTS_MAX])
{
    return ledger->backend->endpoints == NULL ? 0 : ledger->backend->endpoints(ledger->self, list);
}

enum status ledger_reopened(struct ledger *ledger, uint64_t *count, struct error *error)
{
    *count = 0;
    return ledger->backend->reopened == NULL
               ? STATUS_OK
               : ledger->backend->reopened(ledger->self, count, error);
}

void ledger_ill_endpoints(const struct ledger *ledger, char *text, size_t text_size)
{
    struct ledger_endpoint list[LEDGER_ENDPOINTS_MAX];
    size_t count = ledger_endpoints(ledger, list);
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < count && used < text_size; i++) {
        time_t since = (time_t)list[i].since_s;
        char when[32];
        struct tm parts;
        int more;

        if (list[i].reason[0] == '\0') {
            continue;
        }
        (void)gmtime_r(&since, &parts);
        (void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &parts);
        more = snprintf(text + used, text_size - used, "%s%s is ill since %s: %s",
                        used == 0 ? "" : "; ", list[i].label, when, list[i].reason);
        used += more < 0 ? 0 : (size_t)more;
    }
}

enum status ledger_get_fixed(struct ledger *ledger, uint64_t *source, uint64_t height,
                             uint64_t time_s, struct error *error)
{
    return ledger->backend->get_fixed(ledger->self, source, height, time_s, error);
}

enum status ledger_get_signed(struct ledger *ledger, const struct address *contract,
                              const struct hash32 *hash, const struct game_bytes *signature,
                              struct error *error)
{
    return ledger->backend->get_signed == NULL
               ? error_set(error, STATUS_REFUSED, "this ledger has no contracts")
               : ledger->backend->get_signed(ledger->self, contract, hash, signature, error);
}

enum status ledger_ask_vouch(struct ledger *ledger, bool *asked, const struct ledger_vouch *vouch,
                             struct error *error)
{
    *asked = ledger->backend->ask_vouch != NULL;
    return *asked ? ledger->backend->ask_vouch(ledger->self, vouch, error) : STATUS_OK;
}

uint64_t ledger_age_s(const struct ledger_clock *clock)
{
    uint64_t now_s = (uint64_t)time(NULL);

    return now_s > clock->time_s ? now_s - clock->time_s : 0;
}

bool ledger_is_stale(const struct ledger_clock *clock)
{
    return ledger_age_s(clock) > STALE_S;
}

enum status ledger_missing(struct ledger *ledger, struct error *error)
{
    struct ledger_clock clock;
    struct error unknown;

    error_init(&unknown);
    if (ledger->backend->endpoints != NULL &&
        ledger_get_clock(ledger, &clock, &unknown) == STATUS_OK && ledger_is_stale(&clock)) {
        (void)error_wrap(error, "the newest block is %llu s old, so the endpoint may be behind",
                         (unsigned long long)ledger_age_s(&clock));
        error->status = STATUS_UNREACHABLE;
    }
    return error->status;
}
