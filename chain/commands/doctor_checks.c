/* doctor_checks.c - see doctor_checks.h. */
#include "chain/commands/doctor_checks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cli/doctor.h"
#include "base/io/file.h"
#include "chain/codec/wei.h"
#include "chain/commands/commands.h"
#include "chain/evm/evm.h"
#include "chain/evm/evm_open.h"
#include "chain/evm/evm_registry.h"
#include "chain/evm/evm_seeds.h"
#include "chain/evm/evm_token.h"

enum {
    ANSWER_MS = 3000, /* of an endpoint: doctor is asked by somebody who waits */
    EARLY_S = 30,     /* a newest block from the future: this clock is wrong */
};

static const struct option_spec wallet_options[] = {CHAIN_KEY_OPTIONS, CHAIN_ACCOUNT_OPTION};
static const struct option_spec place_options[] = {CHAIN_LEDGER_OPTIONS};

static void tell_trouble(struct doctor_finding *finding, enum doctor_grade grade,
                         const struct error *error, const char *advice)
{
    finding->grade = grade;
    (void)snprintf(finding->text, sizeof(finding->text), "%.400s", error->text);
    (void)snprintf(finding->advice, sizeof(finding->advice), "%s",
                   error->advice[0] != '\0' ? error->advice : advice);
}

/* ---- the wallet ---------------------------------------------------------------- */

static void tell_key(struct doctor_finding *finding, const struct wallet_entry *entry)
{
    char address[ADDRESS_TEXT_SIZE] = "a key that names no address";
    struct stat about;

    if (entry->named) {
        address_print(address, &entry->address);
    }
    finding->grade = DOCTOR_GOOD;
    (void)snprintf(finding->text, sizeof(finding->text), "%s, in %.400s", address, entry->path);
    if (stat(entry->path, &about) == 0 && (about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        finding->grade = DOCTOR_NOTE;
        (void)snprintf(finding->advice, sizeof(finding->advice),
                       "others can open this file: chmod 600 %.450s", entry->path);
    }
}

static enum status find_key(struct doctor_finding *finding, const struct command_context *context,
                            struct error *error)
{
    struct wallet_entry *entries = NULL;
    struct wallet_entry used;
    char folder[FILE_PATH_MAX];
    const char *account = options_text(context->options, "account");
    size_t count = 0;

    TRY(chain_wallet_folder(folder, context, error));
    TRY(wallet_list(&entries, &count, folder, error));
    free(entries);
    if (count == 0 && account == NULL) {
        finding->grade = DOCTOR_NOTE;
        (void)snprintf(finding->text, sizeof(finding->text), "no key in %.400s", folder);
        (void)snprintf(finding->advice, sizeof(finding->advice),
                       "'lockstep wallet new' makes one; training and auditing alone need none");
        return STATUS_OK;
    }
    if (count > 1 && account == NULL) {
        finding->grade = DOCTOR_NOTE;
        (void)snprintf(finding->text, sizeof(finding->text), "%zu keys in %.400s", count, folder);
        (void)snprintf(finding->advice, sizeof(finding->advice),
                       "a line account=ADDRESS in the config file says which of them commands use");
        return STATUS_OK;
    }
    TRY(wallet_find(&used, folder, account, error));
    tell_key(finding, &used);
    return STATUS_OK;
}

static void look_at_wallet(struct doctor_finding *finding, const struct command_context *context)
{
    const struct option_table table = {wallet_options,
                                       sizeof(wallet_options) / sizeof(wallet_options[0])};
    struct command_context with = *context;
    struct options options;
    struct error error;
    enum status status;

    error_init(&error);
    status = doctor_options(&options, context, &table, &error);
    if (status == STATUS_OK) {
        with.options = &options;
        status = find_key(finding, &with, &error);
        options_release(&options);
    }
    if (status != STATUS_OK) {
        tell_trouble(finding, DOCTOR_BROKEN, &error, "'lockstep wallet list' shows the keys");
    }
}

/* ---- the ledger ---------------------------------------------------------------- */

static void tell_block(struct doctor_finding *finding, const char *chain,
                       const struct ledger_clock *clock)
{
    int64_t age_s = (int64_t)time(NULL) - (int64_t)clock->time_s;

    finding->grade = DOCTOR_GOOD;
    (void)snprintf(finding->text, sizeof(finding->text), "%s, height %" PRIu64, chain,
                   clock->height);
    if (age_s < -EARLY_S) {
        finding->grade = DOCTOR_BROKEN;
        (void)snprintf(finding->advice, sizeof(finding->advice),
                       "its newest block is %" PRId64 " s ahead of this machine: the clock here is "
                       "slow",
                       -age_s);
    } else if (ledger_is_stale(clock)) {
        finding->grade = DOCTOR_NOTE;
        (void)snprintf(finding->advice, sizeof(finding->advice),
                       "its newest block is %" PRId64
                       " s old: the endpoint lags, the chain stands, "
                       "or the clock here is fast",
                       age_s);
    }
}

/* Endpoints that are ill, with the reason; the ledger may be read without them. */
static void tell_endpoints(struct doctor_finding *finding, const struct rpc *rpc)
{
    for (size_t i = 0; i < rpc_endpoint_count(rpc); i++) {
        struct rpc_endpoint_state state;
        size_t used = strlen(finding->text);

        rpc_endpoint_look(rpc, &state, i);
        if (state.ill) {
            (void)snprintf(finding->text + used, sizeof(finding->text) - used, "; %.100s: %.200s",
                           state.label, state.reason);
            finding->grade = finding->grade == DOCTOR_GOOD ? DOCTOR_NOTE : finding->grade;
            if (finding->advice[0] == '\0') {
                (void)snprintf(finding->advice, sizeof(finding->advice),
                               "replace this endpoint; with two, one that is away is done without, "
                               "and three decide whom to believe");
            }
        }
    }
}

/* What a registry plays for, where that is not the chain's coin. */
static enum status tell_token(struct doctor_finding *finding, struct rpc *rpc,
                              const struct address *registry, struct error *error)
{
    struct evm_token about;
    struct address token;
    char address[ADDRESS_TEXT_SIZE];
    size_t used = strlen(finding->text);

    TRY(evm_registry_part(rpc, &token, registry, "TOKEN()", error));
    if (address_is_zero(&token)) {
        return STATUS_OK;
    }
    TRY(evm_token_look(rpc, &about, &token, error));
    address_print(address, &token);
    (void)snprintf(finding->text + used, sizeof(finding->text) - used,
                   "; all is paid in the token %s %s, of %" PRIu32 " decimals%s", about.symbol,
                   address, about.decimals, about.rebasing ? ", which is rebasing: unfit" : "");
    if (about.rebasing) {
        finding->grade = DOCTOR_BROKEN;
        (void)snprintf(finding->advice, sizeof(finding->advice),
                       "its balances change by themselves, so the registry may owe what it has "
                       "not: play on another");
    } else if (finding->advice[0] == '\0') {
        (void)snprintf(finding->advice, sizeof(finding->advice),
                       "options take amounts in its smallest units; a token that is rebasing, or "
                       "keeps a part of a transfer, is unfit");
    }
    return STATUS_OK;
}

/* Which registry, and is it one to play on? */
static enum status tell_registry(struct doctor_finding *finding, struct rpc *rpc,
                                 const struct address *registry, uint64_t chain_id,
                                 struct error *error)
{
    struct evm_seeds seeds;

    TRY(evm_seeds_delay(&seeds.delay, chain_id, error));
    if (!address_is_zero(registry)) {
        TRY(tell_token(finding, rpc, registry, error));
        return evm_seeds_find(&seeds, rpc, registry, chain_id, error);
    }
    if (finding->advice[0] == '\0') {
        finding->grade = DOCTOR_NOTE;
        (void)snprintf(finding->advice, sizeof(finding->advice),
                       "no registry= is named: 'lockstep ledger deploy' makes one");
    }
    return STATUS_OK;
}

/* Without outbox and index, which doctor must not make. */
static enum status look_at_chain(struct doctor_finding *finding,
                                 const struct ledger_options *options, struct error *error)
{
    struct rpc *rpc = NULL;
    struct evm_block block;
    uint64_t chain_id = 0;
    uint64_t height = 0;
    char name[LEDGER_CHAIN_MAX];
    enum status status;

    TRY_OUT(evm_open_rpc(&rpc, options, error));
    TRY_OUT(evm_chain_id(rpc, &chain_id, error));
    TRY_OUT(evm_head(rpc, &height, error));
    TRY_OUT(evm_block_at(rpc, &block, height, error));
    (void)snprintf(name, sizeof(name), "eip155:%" PRIu64, chain_id);
    evm_check_chain(rpc, chain_id);
    tell_block(finding, name, &(struct ledger_clock){.height = height, .time_s = block.time_s});
    tell_endpoints(finding, rpc);
    TRY_OUT(tell_registry(finding, rpc, &options->registry, chain_id, error));
out:
    rpc_free(rpc);
    return status;
}

static enum status look_at_file(struct doctor_finding *finding,
                                const struct ledger_options *options, struct error *error)
{
    struct ledger *ledger;
    struct ledger_clock clock;
    enum status status;

    TRY(ledger_open(&ledger, options, error));
    status = ledger_get_clock(ledger, &clock, error);
    if (status == STATUS_OK) { /* its time is that of this machine, or a test's */
        finding->grade = DOCTOR_GOOD;
        (void)snprintf(finding->text, sizeof(finding->text), "%.400s, height %" PRIu64,
                       options->url, clock.height);
    }
    ledger_close(ledger);
    return status;
}

static void look_at_ledger(struct doctor_finding *finding, const struct command_context *context)
{
    const struct option_table table = {place_options,
                                       sizeof(place_options) / sizeof(place_options[0])};
    struct command_context with = *context;
    struct ledger_options place;
    struct options options;
    char state_dir[FILE_PATH_MAX];
    struct error error;
    enum status status;

    error_init(&error);
    status = doctor_options(&options, context, &table, &error);
    if (status != STATUS_OK) {
        tell_trouble(finding, DOCTOR_BROKEN, &error,
                     "correct it in the config file or the environment");
        return;
    }
    with.options = &options;
    if (options_text(&options, "ledger") == NULL) {
        finding->grade = DOCTOR_NOTE;
        (void)snprintf(finding->text, sizeof(finding->text),
                       "none is named: training and auditing work alone");
        (void)snprintf(finding->advice, sizeof(finding->advice),
                       "a line ledger=URL in the config file, or LOCKSTEP_LEDGER=URL, names one");
    } else {
        status = chain_ledger_options(&place, state_dir, &with, NULL, &error);
        place.timeout_ms = ANSWER_MS;
        if (status == STATUS_OK) {
            status = ledger_is_embedded(place.url) ? look_at_file(finding, &place, &error)
                                                   : look_at_chain(finding, &place, &error);
        }
    }
    if (status != STATUS_OK) {
        tell_trouble(
            finding, DOCTOR_BROKEN, &error,
            "is the network there, and ledger= right? With a second endpoint, ledger=URL,URL, "
            "one that is away is done without; three decide whom to believe");
    }
    options_release(&options);
}

const struct doctor_check chain_doctor_checks[CHAIN_DOCTOR_CHECK_COUNT] = {
    {"wallet", look_at_wallet},
    {"ledger", look_at_ledger},
};
