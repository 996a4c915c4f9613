/* job_list.c - see job_list.h. */
#include "client/job_list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/strict_json.h"
#include "chain/codec/hex_data.h"
#include "chain/commands/commands.h"
#include "chain/game/terms.h"
#include "chain/job/job_card.h"
#include "client/board/job_price.h"

enum {
    LIST_MOST = 1000,
};

const struct option_spec job_list_options[JOB_LIST_OPTIONS] = {
    CHAIN_LEDGER_OPTIONS,
    {.name = "open",
     .often = true,
     .kind = OPTION_FLAG,
     .help = "only jobs that a solver can take now",
     .command_line_only = true},
    {.name = "count",
     .often = true,
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "50",
     .minimum = 1,
     .maximum = LIST_MOST,
     .help = "look at the newest so many jobs"},
    {.name = "per-hour",
     .heading = "terms",
     .often = true,
     .kind = OPTION_FLAG,
     .help = "show what an hour of this machine would earn, its --price taken off, and what a "
             "million tokens pay, by what 'prover probe JOB --data FILE' measured; most first",
     .command_line_only = true},
    JOB_PRICE_DEVICE_OPTION,
    JOB_POLICY_OPTIONS,
};

/* A job: the terms of its opening, and its present state. */
struct listed {
    struct hash32 key;
    struct game_terms terms;
    struct job_card card;
    struct ledger_job job;
    struct currency currency;
    struct job_price price;
};

static const char *phase_word(const struct listed *listed, uint64_t now_s)
{
    switch (listed->job.phase) {
    case GAME_PHASE_OPEN:
        return now_s > listed->terms.deadline_s ? "expired"
               : listed->job.barred             ? "barred"
                                                : "open";
    case GAME_PHASE_RUNNING:
        return listed->job.refused_until_s != 0 ? "refused" : "running";
    case GAME_PHASE_CLOSED:
        return listed->job.finalized == listed->job.segments || listed->job.ended ? "done"
                                                                                  : "closed";
    case GAME_PHASE_NONE:
        break;
    }
    return "unknown";
}

static enum status open_reader(struct ledger **ledger, const struct command_context *context,
                               struct error *error)
{
    struct ledger_options options;
    char state_dir[FILE_PATH_MAX];

    *ledger = NULL;
    TRY(chain_ledger_options(&options, state_dir, context, NULL, error));
    TRY(ledger_open(ledger, &options, error));
    return ledger_catch_up(*ledger, error);
}

/* Keeps the newest `room` openings in the ring; *count is how many there were. */
static enum status read_openings(struct listed *ring, uint64_t room, uint64_t *count,
                                 struct ledger *ledger, struct error *error)
{
    struct ledger_entry entry = {0};
    enum status status;

    *count = 0;
    while ((status = ledger_next_of(ledger, &entry, entry.number, GAME_OPENED, error)) ==
           STATUS_OK) {
        struct listed *listed = &ring[(*count)++ % room];

        listed->key = entry.event.job;
        listed->terms = entry.event.terms;
        listed->currency = *ledger_get_currency(ledger);
        job_card_read(&listed->card, &entry.event.contact);
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- printing --------------------------------------------------------------------------- */

/* Of a job that is over nobody asks. */
static bool is_over(const struct listed *listed)
{
    return listed->job.phase == GAME_PHASE_CLOSED;
}

static void print_rate(struct sheet *sheet, const struct currency *currency, bool known, wei amount)
{
    char text[WEI_TEXT_SIZE];

    currency_print_about(text, currency, amount);
    sheet_print(sheet, "%12.12s  ", known ? text : "not measured");
}

static void print_line(struct sheet *sheet, const struct listed *listed,
                       const struct job_policy *policy, uint64_t now_s, bool per_hour)
{
    char key[HEX_DATA_SIZE(HASH32_SIZE)];
    char reward[WEI_TEXT_SIZE];
    char stake[WEI_TEXT_SIZE];
    char deadline[TERMS_TIME_SIZE];
    char segments[32];

    hex_write(key, listed->key.bytes, HASH32_SIZE, true);
    currency_print_about(reward, &listed->currency, listed->terms.reward * listed->job.segments);
    currency_print_about(stake, &listed->currency, listed->terms.stake);
    terms_time(deadline, listed->terms.deadline_s);
    (void)snprintf(segments, sizeof(segments), "%u/%u", listed->job.finalized,
                   listed->job.segments);
    sheet_print(sheet, "%.14s  %-7s  ", key, phase_word(listed, now_s));
    if (per_hour) { /* in place of what 'job show' has too: a line fits a terminal */
        print_rate(sheet, &listed->currency, listed->price.measured, listed->price.hour);
        print_rate(sheet, &listed->currency, listed->price.million > 0, listed->price.million);
        sheet_print(sheet, "%11s  ", reward);
    } else {
        sheet_print(sheet, "%7s  %11s  %11s  %-10.10s  ", segments, reward, stake, deadline);
    }
    sheet_print(sheet, "%s\n",
                is_over(listed) ? "-" : job_policy_word(policy, &listed->terms, now_s));
    if (listed->card.title[0] != '\0' || listed->card.model[0] != '\0') {
        sheet_print(sheet, "  %.74s\n",
                    listed->card.title[0] != '\0' ? listed->card.title : listed->card.model);
    }
}

static void set_amount(json_t *json, const char *name, wei amount)
{
    char text[WEI_TEXT_SIZE];

    wei_print_plain(text, amount);
    (void)json_object_set_new(json, name, json_string(text));
}

/* The root of an allow-list; null: anybody. */
static void set_list(json_t *json, const char *name, const struct hash32 *root)
{
    char text[HEX_DATA_SIZE(HASH32_SIZE)];

    hex_write(text, root->bytes, HASH32_SIZE, true);
    (void)json_object_set_new(json, name, hash32_is_zero(root) ? json_null() : json_string(text));
}

static json_t *terms_json(const struct game_terms *terms)
{
    json_t *json =
        json_pack("{s:I, s:i, s:i, s:f, s:i, s:i, s:i, s:i, s:i, s:i, s:I}", "steps",
                  (json_int_t)terms->steps, "segment_steps", (int)terms->segment_steps, "seats",
                  (int)terms->seats, "coverage", terms->coverage_ppm / 1e6, "panel_least",
                  (int)terms->panel_least, "segment_period", (int)terms->segment_period_s,
                  "seal_period", (int)terms->seal_period_s, "reveal_period",
                  (int)terms->reveal_period_s, "claim_period", (int)terms->claim_period_s, "clock",
                  (int)terms->clock_s, "deadline", (json_int_t)terms->deadline_s);
    char keeper[ADDRESS_TEXT_SIZE];
    char salt[24];

    (void)snprintf(salt, sizeof(salt), "%" PRIu64, terms->salt);
    (void)json_object_set_new(json, "salt", json_string(salt));
    (void)json_object_set_new(json, "id", strict_json_digest(&terms->job_id));
    (void)json_object_set_new(json, "program_root", strict_json_digest(&terms->program_root));
    (void)json_object_set_new(json, "data_root", strict_json_digest(&terms->data_root));
    (void)json_object_set_new(json, "first_state_root",
                              strict_json_digest(&terms->first_state_root));
    set_amount(json, "reward_wei", terms->reward);
    set_amount(json, "fee_wei", terms->fee);
    set_amount(json, "stake_wei", terms->stake);
    set_amount(json, "bond_wei", terms->bond);
    set_amount(json, "query_fee_wei", terms->query_fee);
    set_list(json, "solvers", &terms->solvers);
    set_list(json, "verifiers", &terms->verifiers);
    address_print(keeper, &terms->keeper);
    (void)json_object_set_new(json, "keeper",
                              address_is_zero(&terms->keeper) ? json_null() : json_string(keeper));
    return json;
}

/* The client's words and numbers; null where it says none. */
static json_t *card_json(const struct job_card *card)
{
    const struct {
        const char *name;
        uint64_t number;
    } numbers[] = {{"parameters", card->parameters},
                   {"tokens", card->tokens},
                   {"samples", card->samples},
                   {"data_bytes", card->data_bytes},
                   {"checkpoint_bytes", card->checkpoint_bytes}};
    json_t *json = json_pack("{s:s?, s:s?}", "title", card->title[0] == '\0' ? NULL : card->title,
                             "model", card->model[0] == '\0' ? NULL : card->model);

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        (void)json_object_set_new(
            json, numbers[i].name,
            numbers[i].number == 0 ? json_null() : json_integer((json_int_t)numbers[i].number));
    }
    return json;
}

static json_t *listed_json(const struct listed *listed, uint64_t now_s)
{
    char key[HEX_DATA_SIZE(HASH32_SIZE)];
    char client[ADDRESS_TEXT_SIZE];
    char solver[ADDRESS_TEXT_SIZE];
    json_t *json;

    hex_write(key, listed->key.bytes, HASH32_SIZE, true);
    address_print(client, &listed->job.client);
    address_print(solver, &listed->job.solver);
    json = json_pack("{s:s, s:s, s:s, s:o, s:i, s:i, s:i, s:i, s:I, s:i, s:i, s:b, s:I, s:o}",
                     "job", key, "phase", phase_word(listed, now_s), "client", client, "solver",
                     address_is_zero(&listed->job.solver) ? json_null() : json_string(solver),
                     "segments", (int)listed->job.segments, "committed", (int)listed->job.committed,
                     "final", (int)listed->job.finalized, "generation", (int)listed->job.generation,
                     "due", (json_int_t)listed->job.due_s, "open_claims",
                     (int)listed->job.open_claims, "panel", (int)listed->job.panel, "barred",
                     (int)listed->job.barred, "refused_until",
                     (json_int_t)listed->job.refused_until_s, "terms", terms_json(&listed->terms));
    (void)json_object_set_new(json, "currency", currency_json(&listed->currency));
    set_amount(json, "escrow_wei", game_escrow(&listed->terms));
    set_amount(json, "pool_wei", listed->job.pool);
    set_amount(json, "missing_wei", listed->job.missing_escrow + listed->job.missing_pool);
    (void)json_object_set_new(json, "card", card_json(&listed->card));
    if (listed->price.measured) {
        set_amount(json, "hour_wei", listed->price.hour);
        set_amount(json, "million_tokens_wei", listed->price.million);
    }
    return json;
}

/* ---- job list --------------------------------------------------------------------------- */

static void show_one(struct sheet *sheet, json_t *array, const struct listed *listed,
                     const struct job_policy *policy, uint64_t now_s, bool per_hour)
{
    json_t *job = listed_json(listed, now_s);

    if (!is_over(listed)) {
        (void)json_object_set_new(job, "refused_by",
                                  job_policy_json(policy, &listed->terms, now_s));
    }
    (void)json_array_append_new(array, job);
    print_line(sheet, listed, policy, now_s, per_hour);
}

/* A job to show. */
struct row {
    const struct listed *listed;
};

/* What an hour earns most first; those that nobody measured last. */
static int compare_hours(const void *left, const void *right)
{
    const struct job_price *a = &((const struct row *)left)->listed->price;
    const struct job_price *b = &((const struct row *)right)->listed->price;

    return a->measured != b->measured ? (a->measured ? -1 : 1)
                                      : (a->hour < b->hour) - (a->hour > b->hour);
}

static void find_price(struct listed *listed, const struct options *options, wei machine)
{
    listed->price =
        job_price_of(&listed->terms, listed->terms.reward, options_text(options, "device"));
    listed->price.hour = listed->price.hour > machine ? listed->price.hour - machine : 0;
}

/* Fills rows with the jobs to show, newest first. */
static enum status find_rows(struct row *rows, uint64_t *row_count,
                             const struct command_context *context, struct listed *ring,
                             uint64_t room, uint64_t count, wei machine, struct ledger *ledger,
                             uint64_t now_s, struct error *error)
{
    *row_count = 0;
    for (uint64_t i = 0; i < count && i < room; i++) {
        struct listed *listed = &ring[(count - 1 - i) % room];
        enum status status = ledger_get_job(ledger, &listed->job, &listed->key, error);

        if (status == STATUS_NOT_FOUND) {
            continue; /* a reorganization removed it */
        }
        TRY(status);
        if (!options_flag(context->options, "open") ||
            strcmp(phase_word(listed, now_s), "open") == 0) {
            find_price(listed, context->options, machine);
            rows[(*row_count)++].listed = listed;
        }
    }
    return STATUS_OK;
}

static void print_head(struct sheet *sheet, bool per_hour)
{
    if (per_hour) {
        sheet_print(sheet, "%-14s  %-7s  %12s  %12s  %11s  %s\n", "job", "is", "an hour",
                    "10^6 tokens", "reward", "policy");
    } else {
        sheet_print(sheet, "%-14s  %-7s  %7s  %11s  %11s  %-10s  %s\n", "job", "is", "final",
                    "reward", "stake", "deadline", "policy");
    }
}

static enum status list(struct sheet *sheet, json_t *array, const struct command_context *context,
                        struct listed *ring, uint64_t room, struct ledger *ledger,
                        struct error *error)
{
    bool per_hour = options_flag(context->options, "per-hour");
    struct row *rows = calloc(room, sizeof(*rows));
    struct ledger_clock clock = {0};
    struct job_policy policy;
    uint64_t count = 0;
    uint64_t shown = 0;
    enum status status;

    TRY_OUT(rows == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory for a list") : STATUS_OK);
    TRY_OUT(job_policy_read(&policy, context->options, ledger_get_currency(ledger), error));
    TRY_OUT(read_openings(ring, room, &count, ledger, error));
    TRY_OUT(ledger_get_clock(ledger, &clock, error));
    TRY_OUT(find_rows(rows, &shown, context, ring, room, count, policy.solver.price, ledger,
                      clock.time_s, error));
    if (per_hour) {
        qsort(rows, shown, sizeof(*rows), compare_hours);
    }
    print_head(sheet, per_hour);
    for (uint64_t i = 0; i < shown; i++) {
        show_one(sheet, array, rows[i].listed, &policy, clock.time_s, per_hour);
    }
out:
    free(rows);
    return status;
}

int job_list_run(struct command_context *context)
{
    uint64_t room = options_number(context->options, "count");
    struct listed *ring = calloc(room, sizeof(*ring));
    json_t *array = json_array();
    struct ledger *ledger = NULL;
    struct sheet sheet;
    struct error error;
    enum status status;

    error_init(&error);
    sheet_init(&sheet);
    TRY_OUT(ring == NULL ? error_set(&error, STATUS_NO_MEMORY, "no memory for a list")
                         : open_reader(&ledger, context, &error));
    TRY_OUT(list(&sheet, array, context, ring, room, ledger, &error));
out:
    ledger_close(ledger);
    free(ring);
    sheet_set(&sheet, "jobs", array);
    if (status != STATUS_OK) {
        sheet_release(&sheet);
        return command_fail(context, &error);
    }
    return command_show(context, &sheet);
}

/* ---- job show --------------------------------------------------------------------------- */

static void print_amount(struct sheet *sheet, const struct currency *currency, const char *what,
                         wei amount)
{
    char text[WEI_TEXT_SIZE];

    currency_print(text, currency, amount);
    sheet_print(sheet, "%-12s %s\n", what, text);
}

static void print_escrow(struct sheet *sheet, const struct currency *currency,
                         const struct game_terms *terms)
{
    char text[WEI_TEXT_SIZE];

    currency_print(text, currency, game_escrow(terms));
    sheet_print(sheet, "%-12s %s; what nobody earns of it comes back when the job is over\n",
                "escrow", text);
}

/* What the client says of it. */
static void print_card(struct sheet *sheet, const struct job_card *card)
{
    if (card->title[0] != '\0') {
        sheet_print(sheet, "title        %s\n", card->title);
    }
    if (card->model[0] != '\0' && job_card_trains(card)) {
        sheet_print(sheet, "model        %s, %" PRIu64 " parameters\n", card->model,
                    card->parameters);
    } else if (!job_card_trains(card)) {
        sheet_print(sheet, "model        %s%sstates, and no loss\n", card->model,
                    card->model[0] == '\0' ? "" : ", ");
    }
    if (card->tokens + card->samples > 0) {
        sheet_print(sheet, "%s%" PRIu64 " %s; %.2f MiB of data, checkpoints of %.2f MiB\n",
                    job_card_trains(card) ? "learns from  " : "reads        ",
                    card->tokens + card->samples, card->tokens > 0 ? "tokens" : "samples",
                    (double)card->data_bytes / 1048576.0,
                    (double)card->checkpoint_bytes / 1048576.0);
    }
}

static enum status find_card(struct job_card *card, struct ledger *ledger, const struct hash32 *key,
                             struct error *error)
{
    struct ledger_entry entry = {0};
    enum status status;

    while ((status = ledger_next_of(ledger, &entry, entry.number, GAME_OPENED, error)) ==
           STATUS_OK) {
        if (hash32_equal(&entry.event.job, key)) {
            job_card_read(card, &entry.event.contact);
        }
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* What a void burned, and until when a refusal stands. */
static void print_trouble(struct sheet *sheet, const struct listed *listed)
{
    char burned[WEI_TEXT_SIZE];
    char time[TERMS_TIME_SIZE];

    if (listed->job.barred) {
        currency_print(burned, &listed->currency,
                       listed->job.missing_escrow + listed->job.missing_pool);
        sheet_print(
            sheet,
            "barred       %s of escrow and pool burned; 'lockstep job resume' puts it back\n",
            burned);
    }
    if (listed->job.refused_until_s != 0) {
        terms_time(time, listed->job.refused_until_s);
        sheet_print(sheet,
                    "refused      until %s claims may come; then what nobody vouched for is void\n",
                    time);
    }
}

static void print_listed(struct sheet *sheet, const struct listed *listed, uint64_t now_s)
{
    const struct currency *currency = &listed->currency;
    const struct game_terms *terms = &listed->terms;
    char text[HEX_DATA_SIZE(HASH32_SIZE)];
    char periods[5][TERMS_PERIOD_SIZE];
    char time[TERMS_TIME_SIZE];

    hex_write(text, listed->key.bytes, HASH32_SIZE, true);
    sheet_print(sheet, "job          %s\n", text);
    hex_encode(text, terms->job_id.bytes, DIGEST_SIZE);
    sheet_print(sheet, "id           %s\n", text);
    print_card(sheet, &listed->card);
    address_print(text, &listed->job.client);
    sheet_print(sheet, "client       %s\n", text);
    if (!address_is_zero(&listed->job.solver)) {
        address_print(text, &listed->job.solver);
        sheet_print(sheet, "solver       %s\n", text);
    }
    terms_time(time, terms->deadline_s);
    sheet_print(sheet, "is           %s, deadline %s\n", phase_word(listed, now_s), time);
    sheet_print(sheet, "segments     %u of %u steps: %u committed, %u final\n",
                listed->job.segments, terms->segment_steps, listed->job.committed,
                listed->job.finalized);
    print_trouble(sheet, listed);
    print_amount(sheet, currency, "a segment", terms->reward);
    print_amount(sheet, currency, "stake", terms->stake);
    sheet_print(sheet, "panel        %u entries; a solver waits for %u\n", listed->job.panel,
                terms->panel_least);
    sheet_print(sheet, "seats        %u for each covered segment, %.4g %% are covered\n",
                terms->seats, terms->coverage_ppm / 1e4);
    if (terms->seats > 0) {
        print_amount(sheet, currency, "fee", terms->fee);
    }
    print_amount(sheet, currency, "bond", terms->bond);
    terms_period(periods[0], terms->segment_period_s);
    terms_period(periods[1], terms->seal_period_s);
    terms_period(periods[2], terms->reveal_period_s);
    terms_period(periods[3], terms->claim_period_s);
    terms_period(periods[4], terms->clock_s);
    sheet_print(sheet, "periods      segment %s, seal %s, reveal %s, claim %s, clock %s\n",
                periods[0], periods[1], periods[2], periods[3], periods[4]);
    if (!address_is_zero(&terms->keeper)) {
        address_print(text, &terms->keeper);
        sheet_print(sheet, "keeper       %s\n", text);
    }
    print_escrow(sheet, currency, terms);
    if (listed->job.open_claims > 0) {
        sheet_print(sheet, "claims       %u are open\n", listed->job.open_claims);
    }
}

int job_list_show(struct command_context *context)
{
    struct listed listed = {.price = {0}};
    struct ledger *ledger = NULL;
    struct sheet sheet;
    struct ledger_clock clock = {0};
    struct error error;
    enum status status;

    error_init(&error);
    TRY_OUT(open_reader(&ledger, context, &error));
    TRY_OUT(terms_find(&listed.key, &listed.terms, ledger, context->options->arguments[0], NULL,
                       &error));
    listed.currency = *ledger_get_currency(ledger);
    TRY_OUT(find_card(&listed.card, ledger, &listed.key, &error));
    TRY_OUT(ledger_get_job(ledger, &listed.job, &listed.key, &error));
    TRY_OUT(ledger_get_clock(ledger, &clock, &error));
out:
    ledger_close(ledger);
    if (status != STATUS_OK) {
        return command_fail(context, &error);
    }
    sheet_init(&sheet);
    sheet_merge(&sheet, listed_json(&listed, clock.time_s));
    print_listed(&sheet, &listed, clock.time_s);
    return command_show(context, &sheet);
}
