/* ledger_commands.c - `lockstep ledger init|faucet|deploy|status|watch`. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/stop.h"
#include "base/io/strict_json.h"
#include "chain/codec/hex_data.h"
#include "chain/commands/commands.h"
#include "chain/commands/policy_options.h"
#include "chain/evm/ledger_evm.h"
#include "chain/game/terms.h"
#include "chain/job/job_event.h"
#include "chain/local/ledger_local.h"
#include "chain/money/money_book.h"
#include "chain/money/money_text.h"

enum {
    WATCH_WAIT_S = 2,
    LINE_SIZE_MAX = 4096, /* of JSON about one event */
};

/* ---- shared ------------------------------------------------------------------- */

static enum status read_address(struct address *address, const char *text, const char *what,
                                struct error *error)
{
    memset(address, 0, sizeof(*address));
    if (text == NULL) {
        return STATUS_OK;
    }
    return address_parse(address, text) == STATUS_OK
               ? STATUS_OK
               : error_set(error, STATUS_USAGE,
                           "%s: '%.60s' is not an address, or its checksum is wrong", what, text);
}

void chain_child_ledger(struct child_words *words, const struct options *given)
{
    static const struct option_spec specs[] = {CHAIN_LEDGER_OPTIONS};

    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        child_words_given(words, specs[i].name, given);
    }
    child_words_given(words, "config", given);
}

enum status chain_ledger_options(struct ledger_options *options, char state_dir[FILE_PATH_MAX],
                                 const struct command_context *context, const struct signer *signer,
                                 struct error *error)
{
    return chain_ledger_options_at(options, state_dir, context, signer, NULL, error);
}

enum status chain_ledger_options_at(struct ledger_options *options, char state_dir[FILE_PATH_MAX],
                                    const struct command_context *context,
                                    const struct signer *signer,
                                    const struct chain_ledger_place *place, struct error *error)
{
    const struct options *given = context->options;
    const char *state = options_text(given, "ledger-state");
    const char *registry = options_text(given, "registry");
    enum status status = STATUS_OK;

    ledger_options_init(options);
    options->url = options_text(given, "ledger");
    options->signer = signer;
    options->first_height = options_number(given, "first-block");
    options->depth = (uint32_t)options_number(given, "depth");
    options->gas_price_gwei_max = options_number(given, "gas-price-max");
    options->state_dir = state_dir;
    options->log = context->log;
    if (options->url == NULL && place != NULL) {
        options->url = place->url;
        if (registry == NULL && place->registry != NULL && place->registry[0] != '\0') {
            registry = place->registry;
        }
        if (!options_given(given, "first-block")) {
            options->first_height = place->first_height;
        }
    }
    if (options->url == NULL) {
        (void)error_set(error, STATUS_USAGE, "no ledger is named");
        error_advise(error, "--ledger local:PATH or --ledger http://HOST:PORT, or a line "
                            "ledger=... in the config file");
        return STATUS_USAGE;
    }
    if (state == NULL && ledger_is_embedded(options->url)) {
        state_dir[0] = '\0'; /* an embedded ledger is a file, and keeps nothing elsewhere */
    } else if (state == NULL) {
        status = file_place(state_dir, FILE_PATH_MAX, error, FILE_PLACE_STATE, "ledger");
    } else if (strlen(state) >= FILE_PATH_MAX) {
        status = error_set(error, STATUS_USAGE, "the path of the ledger's state is too long");
    } else {
        memcpy(state_dir, state, strlen(state) + 1);
    }
    return status == STATUS_OK ? read_address(&options->registry, registry, "--registry", error)
                               : status;
}

static enum status open_reader(struct ledger **ledger, const struct command_context *context,
                               struct error *error)
{
    struct ledger_options options;
    char state_dir[FILE_PATH_MAX];
    enum status status = chain_ledger_options(&options, state_dir, context, NULL, error);

    *ledger = NULL;
    return status == STATUS_OK ? ledger_open(ledger, &options, error) : status;
}

/* ---- init, faucet --------------------------------------------------------------- */

static int run_init(struct command_context *context)
{
    const char *path = context->options->arguments[0];
    struct error error;

    error_init(&error);
    if (ledger_local_init(path, &error) != STATUS_OK) {
        return command_fail(context, &error);
    }
    return command_say(context, json_pack("{s:s+}", "ledger", "local:", path), "local:%s\n", path);
}

static const struct option_spec faucet_options[] = {CHAIN_LEDGER_OPTIONS};

static int show_faucet(struct command_context *context, const struct address *account, wei amount,
                       wei purse)
{
    char address[ADDRESS_TEXT_SIZE];
    char given[2][WEI_TEXT_SIZE];
    char has[2][WEI_TEXT_SIZE];

    address_print(address, account);
    wei_print_plain(given[0], amount);
    wei_print_plain(has[0], purse);
    currency_print(given[1], &currency_coin, amount);
    currency_print(has[1], &currency_coin, purse);
    return command_say(context,
                       json_pack("{s:s, s:s, s:s}", "address", address, "given_wei", given[0],
                                 "purse_wei", has[0]),
                       "gave %s to %s, which has %s\n", given[1], address, has[1]);
}

/* Before anything is asked of a chain: it need not even answer. */
enum status chain_contact(const char **contact, const struct options *options, struct error *error)
{
    const char *text = options_text(options, "contact");
    const char *bad = text == NULL || text[0] == '\0' ? NULL : http_reach_bad_url(text);

    *contact = text;
    if (bad != NULL) {
        (void)error_set(error, STATUS_USAGE, "--contact: '%.80s' %s: nobody would call it", text,
                        bad);
        error_advise(error, "http://HOST:PORT, or https://");
        return STATUS_USAGE;
    }
    return text != NULL && strlen(text) > GAME_CONTACT_MAX
               ? error_set(error, STATUS_USAGE, "--contact: at most %d bytes", GAME_CONTACT_MAX)
               : STATUS_OK;
}

enum http_reach chain_contact_reach(const struct options *options, const struct ledger *ledger)
{
    bool embedded = strncmp(ledger_get_place(ledger)->chain, "local:", 6) == 0;

    return options_flag(options, "private-contacts") ? HTTP_REACH_ANY
           : embedded                                ? HTTP_REACH_LOOPBACK
                                                     : HTTP_REACH_PUBLIC;
}

static enum status require_embedded(const struct command_context *context, struct error *error)
{
    const char *url = options_text(context->options, "ledger");

    if (url == NULL || ledger_is_embedded(url)) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_USAGE,
                    "this ledger is a chain: nobody gives its money away here");
    error_advise(error,
                 "send money to the address from an account that has some; a test network has "
                 "a faucet of its own, and a node for tests (anvil) accounts that are rich");
    return STATUS_USAGE;
}

static int run_faucet(struct command_context *context)
{
    const char *text = context->options->arguments[1];
    struct ledger *ledger = NULL;
    struct address account;
    struct error error;
    wei amount = 0;
    wei purse = 0;
    wei owed = 0;
    enum status status;

    error_init(&error);
    TRY_OUT(read_address(&account, context->options->arguments[0], "ADDRESS", &error));
    if (strspn(text, "0123456789") == strlen(text) && strcmp(text, "0") != 0) {
        return command_usage(context, "%.60s of what? %.60swei, %.60sgwei or %.60seth", text, text,
                             text, text);
    }
    if (wei_parse(&amount, text) != STATUS_OK) {
        return command_usage(context, "'%.60s' is not an amount such as 1.5ether", text);
    }
    TRY_OUT(require_embedded(context, &error));
    TRY_OUT(open_reader(&ledger, context, &error));
    TRY_OUT(ledger_local_faucet(ledger, &account, amount, &error));
    TRY_OUT(ledger_get_account(ledger, &purse, &owed, &account, &error));
out:
    ledger_close(ledger);
    return status == STATUS_OK ? show_faucet(context, &account, amount, purse)
                               : command_fail(context, &error);
}

/* ---- deploy ------------------------------------------------------------------- */

static const struct option_spec deploy_options[] = {
    CHAIN_LEDGER_OPTIONS,
    CHAIN_KEY_OPTIONS,
    CHAIN_ACCOUNT_OPTION,
    {.name = "name",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .fallback = "registry",
     .help = "the same name is the same contract, also after a crash; another makes another"},
    {.name = "token",
     .kind = OPTION_TEXT,
     .value = "ADDRESS",
     .help = "the token (ERC-20) that all is paid in; without it the chain's coin"},
    {.name = "timeout",
     .heading = "ledger",
     .kind = OPTION_DURATION,
     .value = "TIME",
     .fallback = "10m",
     .minimum = 1,
     .help = "how long to wait for the chain"},
};

static enum status deploy(struct command_context *context, struct address *registry,
                          uint64_t *height, struct error *error)
{
    const struct options *given = context->options;
    char name[LEDGER_NAME_MAX];
    char state_dir[FILE_PATH_MAX];
    struct ledger_options options;
    struct signer *signer = NULL;
    struct address token;
    enum status status;

    TRY_OUT(read_address(&token, options_text(given, "token"), "--token", error));
    TRY_OUT(chain_unlock(&signer, context, error));
    TRY_OUT(chain_ledger_options(&options, state_dir, context, signer, error));
    if (strncmp(options.url, "http", 4) != 0) {
        TRY_OUT(error_set(error, STATUS_USAGE,
                          "a contract is deployed on a chain; an embedded ledger is made by "
                          "lockstep ledger init"));
    }
    (void)snprintf(name, sizeof(name), "deploy %.150s", options_text(given, "name"));
    TRY_OUT(ledger_evm_deploy(&options, name, registry, height, &token,
                              (uint32_t)options_number(given, "timeout"), error));
out:
    signer_free(signer);
    return status;
}

static int run_deploy(struct command_context *context)
{
    char address[ADDRESS_TEXT_SIZE];
    struct address registry;
    struct error error;
    uint64_t height = 0;

    error_init(&error);
    if (deploy(context, &registry, &height, &error) != STATUS_OK) {
        return command_fail(context, &error);
    }
    address_print(address, &registry);
    return command_say(
        context, json_pack("{s:s, s:I}", "registry", address, "first_block", (json_int_t)height),
        "registry=%s\nfirst-block=%llu\n", address, (unsigned long long)height);
}

/* ---- status ------------------------------------------------------------------- */

static const struct option_spec status_options[] = {CHAIN_LEDGER_OPTIONS, CHAIN_KEY_OPTIONS};

/* Leaves out the keys whose address only a passphrase gives, and says so. */
static size_t drop_unnamed(struct wallet_entry *entries, size_t count, struct sheet *view)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (entries[i].named) {
            entries[kept++] = entries[i];
        } else {
            sheet_print(view, "%s names no address: lockstep wallet address shows it\n",
                        entries[i].path);
        }
    }
    return kept;
}

/* The account that is named, or those of the wallet. *accounts is the caller's. */
static enum status choose_accounts(struct address **accounts, uint32_t *count, struct sheet *view,
                                   struct command_context *context, struct error *error)
{
    const struct options *given = context->options;
    struct wallet_entry *entries = NULL;
    char folder[FILE_PATH_MAX];
    size_t found = 1;
    enum status status = STATUS_OK;

    if (given->argument_count == 0) {
        TRY(chain_wallet_folder(folder, context, error));
        TRY(wallet_list(&entries, &found, folder, error));
        found = drop_unnamed(entries, found, view);
    }
    *accounts = calloc(found + 1, sizeof(**accounts));
    if (*accounts == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for the accounts");
    } else if (given->argument_count > 0) {
        status = read_address(*accounts, given->arguments[0], "ADDRESS", error);
    }
    for (size_t i = 0; entries != NULL && status == STATUS_OK && i < found; i++) {
        (*accounts)[i] = entries[i].address;
    }
    *count = (uint32_t)found;
    free(entries);
    return status;
}

/* *money is the caller's, one for each account. */
static enum status count_money(struct money **money, struct ledger *ledger,
                               const struct address *accounts, uint32_t count, struct error *error)
{
    struct money_book book = {0};
    struct board board = {0};
    enum status status;

    *money = calloc(count + 1, sizeof(**money));
    if (*money == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the accounts");
    }
    if (count == 0) {
        return STATUS_OK;
    }
    TRY_OUT(money_book_open(&book, &board, accounts, count, error));
    TRY_OUT(money_book_read(&book, *money, &board, ledger, error));
out:
    board_release(&board);
    money_book_release(&book);
    return status;
}

static void show_head(struct sheet *view, const struct ledger *ledger,
                      const struct ledger_clock *clock)
{
    const struct address *token = ledger_get_token(ledger);
    const char *chain = ledger_get_place(ledger)->chain;
    char address[ADDRESS_TEXT_SIZE];
    char time[TERMS_TIME_SIZE];

    terms_time(time, clock->time_s);
    sheet_merge(view, json_pack("{s:s, s:I, s:I}", "chain", chain, "height",
                                (json_int_t)clock->height, "time", (json_int_t)clock->time_s));
    sheet_print(view, "chain %s, height %llu, time %s\n", chain, (unsigned long long)clock->height,
                time);
    if (!address_is_zero(token)) {
        address_print(address, token);
        sheet_print(view, "amounts are in %s of the token %s\n",
                    currency_name(ledger_get_currency(ledger)), address);
    }
}

static void show_account(struct sheet *view, json_t *accounts, const struct money *money)
{
    char address[ADDRESS_TEXT_SIZE];
    char purse[WEI_TEXT_SIZE];
    char owed[WEI_TEXT_SIZE];

    address_print(address, &money->account);
    wei_print_plain(purse, money->free);
    wei_print_plain(owed, money->owed);
    (void)json_array_append_new(accounts,
                                json_pack("{s:s, s:s, s:s, s:o}", "address", address, "purse_wei",
                                          purse, "owed_wei", owed, "money", money_json(money)));
    sheet_print(view, "%s\n", address);
    money_text_show(view, money, "  ");
}

static int run_status(struct command_context *context)
{
    struct address *accounts = NULL;
    struct ledger *ledger = NULL;
    struct money *money = NULL;
    struct ledger_clock clock = {0};
    json_t *list = json_array();
    struct sheet view;
    struct error error;
    uint32_t count = 0;
    enum status status;

    error_init(&error);
    sheet_init(&view);
    TRY_OUT(open_reader(&ledger, context, &error));
    TRY_OUT(ledger_get_clock(ledger, &clock, &error));
    TRY_OUT(choose_accounts(&accounts, &count, &view, context, &error));
    TRY_OUT(count_money(&money, ledger, accounts, count, &error));
    show_head(&view, ledger, &clock);
    for (uint32_t i = 0; i < count; i++) {
        show_account(&view, list, &money[i]);
    }
out:
    sheet_set(&view, "accounts", list);
    free(money);
    free(accounts);
    ledger_close(ledger);
    if (status != STATUS_OK) {
        sheet_release(&view);
        return command_fail(context, &error);
    }
    return command_show(context, &view);
}

/* ---- watch -------------------------------------------------------------------- */

static const struct option_spec watch_options[] = {
    CHAIN_LEDGER_OPTIONS,
    {.name = "after",
     .heading = "ledger",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "0",
     .help = "begin after the entry of this number"},
    {.name = "follow",
     .heading = "ledger",
     .kind = OPTION_FLAG,
     .help = "go on with what is still to come"},
};

static bool is_of_segment(enum game_event_kind kind)
{
    static const enum game_event_kind kinds[] = {
        GAME_COMMITTED,      GAME_DRAWN,     GAME_ROUND_OVER,  GAME_ROUND,
        GAME_SEALED_VERDICT, GAME_REVEALED,  GAME_SAID_UNSEEN, GAME_VOUCHED,
        GAME_FEE_PAID,       GAME_DISPROVED, GAME_FINALIZED,   GAME_CLAIMED};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (kinds[i] == kind) {
            return true;
        }
    }
    return false;
}

static void print_job(struct sheet *view, const char *job, const struct game_event *event)
{
    sheet_print(view, "\tjob %.18s", job);
    if (event->kind == GAME_CONVICTED || event->kind == GAME_VOIDED ||
        event->kind == GAME_RELEASED || event->kind == GAME_CLOSED) {
        sheet_print(view, " with %u segments final", event->index);
    } else if (is_of_segment(event->kind)) {
        sheet_print(view, " segment %u", event->index);
    }
    if (event->kind == GAME_REVEALED) {
        sheet_print(view, ": %s", job_verdict_name((enum game_verdict)event->verdict));
    }
}

/* What anybody wrote there is shown only as plain text. */
static bool is_plain(const struct game_bytes *text)
{
    for (size_t i = 0; i < text->size; i++) {
        if (text->bytes[i] < ' ' || text->bytes[i] > '~') {
            return false;
        }
    }
    return true;
}

static enum status show_entry(struct command_context *context, const struct ledger_entry *entry,
                              struct error *error)
{
    const struct game_event *event = &entry->event;
    const bool rewind = entry->kind == LEDGER_REWIND;
    const char *name = rewind ? "rewind" : game_event_name(event->kind);
    const bool ruled = event->kind == GAME_RULED;
    char job[HEX_DATA_SIZE(HASH32_SIZE)];
    char claim[HEX_DATA_SIZE(HASH32_SIZE)];
    char account[ADDRESS_TEXT_SIZE];
    struct sheet view;

    hex_write(job, event->job.bytes, HASH32_SIZE, true);
    hex_write(claim, event->claim.bytes, HASH32_SIZE, true);
    address_print(account, &event->account);
    sheet_init(&view);
    sheet_print(&view, "%" PRIu64 "\t%" PRIu64 "\t%s", entry->number, entry->height, name);
    if (!hash32_is_zero(&event->job)) {
        print_job(&view, job, event);
    }
    if (!hash32_is_zero(&event->claim)) {
        sheet_print(&view, "\tclaim %.18s%s%s", claim, ruled ? " " : "",
                    ruled ? job_outcome_name((enum game_outcome)event->outcome) : "");
    }
    if (!address_is_zero(&event->account)) {
        sheet_print(&view, "\t%s", account);
    }
    sheet_print(&view, "\n");
    sheet_merge(&view, json_pack("{s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:i}", "number",
                                 (json_int_t)entry->number, "height", (json_int_t)entry->height,
                                 "time", (json_int_t)entry->time_s, "event", name, "job", job,
                                 "claim", claim, "account", account, "segment", (int)event->index));
    if (event->contact.size > 0 && is_plain(&event->contact)) {
        sheet_set(&view, "contact",
                  json_stringn((const char *)event->contact.bytes, event->contact.size));
    }
    return command_show(context, &view) == COMMAND_OK
               ? STATUS_OK
               : error_set(error, STATUS_IO, "cannot show an event");
}

static enum status watch(struct command_context *context, struct ledger *ledger, struct stop *stop,
                         struct error *error)
{
    const bool follow = options_flag(context->options, "follow");
    uint64_t after = options_number(context->options, "after");
    enum status status;

    do {
        struct ledger_entry entry;

        status = ledger_work(ledger, error);
        if (status != STATUS_OK && !(follow && status == STATUS_UNREACHABLE)) {
            return status;
        }
        while ((status = ledger_next(ledger, &entry, after, 0, error)) == STATUS_OK) {
            TRY(show_entry(context, &entry, error));
            after = entry.number;
        }
        (void)fflush(context->out);
        if (status != STATUS_NOT_FOUND) {
            return status;
        }
    } while (follow && !stop_wait(stop, WATCH_WAIT_S));
    return STATUS_OK;
}

static int run_watch(struct command_context *context)
{
    struct ledger *ledger = NULL;
    struct stop stop;
    struct error error;
    enum status status;

    error_init(&error);
    if (stop_open(&stop, &error) != STATUS_OK) {
        return command_fail(context, &error);
    }
    TRY_OUT(open_reader(&ledger, context, &error));
    TRY_OUT(watch(context, ledger, &stop, &error));
out:
    ledger_close(ledger);
    stop_close(&stop);
    return status == STATUS_OK ? COMMAND_OK : command_fail(context, &error);
}

/* ---- the table ---------------------------------------------------------------- */

#define OPTIONS(specs) .options = (specs), .option_count = sizeof(specs) / sizeof((specs)[0])

static const struct command commands[] = {
    {.name = "init",
     .summary = "make an embedded ledger",
     .arguments = "PATH",
     .description = "One file on this machine with the rules of the chain and money for free: to "
                    "try everything, and for several processes of one machine.",
     .example = "lockstep ledger init try.ledger",
     .run = run_init},
    {.name = "faucet",
     .summary = "give free money, on an embedded ledger",
     .arguments = "ADDRESS AMOUNT",
     .example = "lockstep ledger faucet 0x52908400098527886E0F7030069857D2E4169EE7 10ether "
                "--ledger local:try.ledger",
     OPTIONS(faucet_options),
     .run = run_faucet},
    {.name = "deploy",
     .summary = "put a registry contract on a chain",
     .example = "lockstep ledger deploy --ledger http://127.0.0.1:8545",
     OPTIONS(deploy_options),
     .run = run_deploy},
    {.name = "status",
     .summary = "show the ledger's height, and the money of the wallet's keys",
     .arguments = "[ADDRESS]",
     .description =
         "Two lines an account, which both add up to what it has: where it lies, and what it "
         "earned, paid for what was delivered, lost in stakes, bonds and voids, and spent on gas. "
         "The rest was brought in. Below them what each of the last days had of it. Gas is that "
         "of the transactions that this machine sent (--ledger-state).",
     .example = "lockstep ledger status --ledger local:try.ledger",
     OPTIONS(status_options),
     .run = run_status},
    {.name = "watch",
     .summary = "print what happened on the ledger, and what happens",
     .description =
         "Prints one line for each event. After a rewind the events of higher blocks are void: "
         "the chain was reorganized.",
     .example = "lockstep ledger watch --ledger local:try.ledger --follow",
     OPTIONS(watch_options),
     .run = run_watch},
};

const struct command_group ledger_commands = {
    .name = "ledger",
    .summary = "the ledger: embedded, or on a chain",
    .commands = commands,
    .command_count = sizeof(commands) / sizeof(commands[0]),
    .checks = policy_options_checks,
    .check_count = POLICY_OPTIONS_CHECK_COUNT,
};
