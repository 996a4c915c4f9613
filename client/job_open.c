/*
 * job_open.c - `lockstep job open`.
 *
 * Terms that are not given follow from others. All terms are shown and must be confirmed: an escrow
 * cannot be taken back once the job is accepted.
 */
#include "client/job_open.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/io/whole_file.h"
#include "chain/codec/hex_data.h"
#include "chain/commands/commands.h"
#include "chain/game/terms.h"
#include "chain/job/job_card.h"
#include "client/job_moves.h"
#include "client/job_policy.h"
#include "client/job_terms.h"
#include "proofs/job/job_file.h"
#include "proofs/mirror/mirror_set.h"

enum {
    CONTACT_TIMEOUT_S = 15,
    CONTACT_TRIES = 6, /* 'job serve' may have begun a moment ago */
};

const struct option_spec job_open_options[JOB_OPEN_OPTIONS] = {
    CHAIN_LEDGER_OPTIONS,
    CHAIN_KEY_OPTIONS,
    CHAIN_ACCOUNT_OPTION,
    JOB_TERMS_OPTIONS,
    {.name = "contact",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "URL",
     .help = "where solvers and verifiers find the job file and the data, such as a URL; it stands "
             "on the ledger, and a URL is asked for the job before"},
    {.name = "any-terms",
     .heading = "policy",
     .kind = OPTION_FLAG,
     .help = "open it even if no node or no solver takes the terms at its defaults, or --contact "
             "does not serve the job",
     .command_line_only = true},
    {.name = "yes",
     .heading = "account",
     .often = true,
     .kind = OPTION_FLAG,
     .help = "open it without a prompt",
     .command_line_only = true},
    JOB_MOVES_TIMEOUT_OPTION,
};

/* ---- confirming -------------------------------------------------------------------------- */

static enum status confirm(struct command_context *context, const struct game_terms *terms,
                           const struct currency *currency, struct error *error)
{
    if (context->json || options_flag(context->options, "yes")) {
        return STATUS_OK;
    }
    job_terms_show(stderr, currency, terms, context->options);
    if (isatty(STDIN_FILENO) != 1) {
        (void)error_set(error, STATUS_USAGE, "no terminal to confirm the escrow on");
        error_advise(error, "--yes opens it without a prompt");
        return STATUS_USAGE;
    }
    return command_confirms("Open the job with this escrow?")
               ? STATUS_OK
               : error_set(error, STATUS_REFUSED, "not confirmed, and nothing was sent");
}

/* ---- the contact -------------------------------------------------------------------------- */

static enum status take_any(void *context, const char *path, struct error *error)
{
    const struct job *wanted = context;
    struct job *found = NULL;
    enum status status;

    TRY(job_read(&found, path, error));
    status = digest_equal(&found->id, &wanted->id)
                 ? STATUS_OK
                 : error_set(error, STATUS_BAD_FORMAT, "it is another job");
    job_free(found);
    return status;
}

/* Asks the address as a stranger will: who cannot fetch the job takes no part in it. */
static enum status ask_address(const struct job *job, const char *address, struct error *error)
{
    const struct mirror_wanted wanted = {.kind = MIRROR_JOB,
                                         .root = job->id,
                                         .job = job->id,
                                         .size_max = JOB_FILE_SIZE_MAX,
                                         .check = take_any,
                                         .context = (void *)(uintptr_t)job};
    struct mirror_set *mirrors = calloc(1, sizeof(*mirrors));
    char folder[] = "/tmp/lockstep-XXXXXX";
    char path[FILE_PATH_MAX];
    enum status status;

    if (mirrors == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to ask --contact");
    }
    mirrors->timeout_s = CONTACT_TIMEOUT_S;
    status = mirror_set_add(mirrors, address, error);
    if (status == STATUS_OK && whole_file_make_part(folder, 0700, true) < 0) {
        status = error_set_errno(error, "cannot make a folder below /tmp");
    } else if (status == STATUS_OK) {
        (void)snprintf(path, sizeof(path), "%s/job", folder);
        status = mirror_set_get(path, mirrors, &wanted, error);
        (void)unlink(path);
        (void)rmdir(folder);
        if (status != STATUS_OK) {
            (void)error_set(error, status, "%.200s does not serve this job: %.160s", address,
                            mirrors->mirrors[0].note.trouble);
        }
    }
    free(mirrors);
    return status;
}

/* What is no URL is for people, and nobody asks it. */
static enum status ask_contact(const struct job *job, const struct command_context *context,
                               struct error *error)
{
    const bool any = options_flag(context->options, "any-terms");
    const char *address;
    enum status status;

    TRY(chain_contact(&address, context->options, error));
    if (address == NULL || strncmp(address, "http", 4) != 0) {
        return STATUS_OK;
    }
    status = ask_address(job, address, error);
    for (int i = 1; i < CONTACT_TRIES && status == STATUS_UNREACHABLE && !any; i++) {
        (void)sleep(1);
        status = ask_address(job, address, error);
    }
    if (status != STATUS_UNREACHABLE && status != STATUS_BAD_FORMAT) {
        return status;
    }
    if (any) {
        log_warn(context->log, "job", "%s", error->text);
        error_init(error);
        return STATUS_OK;
    }
    error_advise(error, "start 'lockstep job serve JOB --data FILE' there first; --any-terms opens"
                        " it all the same");
    return status;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Refuses a job that is on the ledger with other terms, or that is over: the user must not believe
 * that the terms given here hold. */
static enum status look_before(bool *opened, struct ledger *ledger, const struct hash32 *key,
                               const struct game_terms *terms, struct error *error)
{
    struct ledger_job there;
    struct game_terms opened_with;
    struct hash32 found;
    const char *other;
    char text[HEX_DATA_SIZE(HASH32_SIZE)];
    enum status status = ledger_get_job(ledger, &there, key, error);

    *opened = status == STATUS_OK;
    if (status == STATUS_NOT_FOUND) {
        error_init(error);
        return STATUS_OK;
    }
    if (status != STATUS_OK) {
        return status;
    }
    hex_write(text, key->bytes, HASH32_SIZE, true);
    if (there.phase == GAME_PHASE_CLOSED) {
        (void)error_set(error, STATUS_REFUSED, "this job was opened before, as %.14s, and is over",
                        text);
        error_advise(error, "--salt N opens it once more");
        return STATUS_REFUSED;
    }
    TRY(terms_find(&found, &opened_with, ledger, text, NULL, error));
    other = job_terms_differ(&opened_with, terms);
    if (other != NULL) {
        (void)error_set(error, STATUS_REFUSED,
                        "this job is on the ledger already, as %.14s, with another --%s", text,
                        other);
        error_advise(error,
                     "'lockstep job show %.14s' has its terms, 'lockstep job close' takes "
                     "it back while it is open, --salt N opens another",
                     text);
        return STATUS_REFUSED;
    }
    return STATUS_OK;
}

/* Sends the move once per job and salt. A new deadline does not make it another move. */
static enum status send_open(struct ledger *ledger, struct hash32 *key,
                             const struct game_terms *terms, const char *place,
                             const struct options *options, struct error *error)
{
    const struct game_bytes contact = {(const uint8_t *)place, strlen(place)};
    uint64_t timeout_s = options_number(options, "timeout");
    char id[HEX_SIZE(DIGEST_SIZE)];
    char name[LEDGER_NAME_MAX];
    struct ledger_outcome outcome;
    enum status status;

    hex_encode(id, terms->job_id.bytes, DIGEST_SIZE);
    (void)snprintf(name, sizeof(name), "open %s salt %" PRIu64, id, terms->salt);
    status = ledger_look(ledger, &outcome, name, error);
    if (status == STATUS_NOT_FOUND ||
        (status == STATUS_OK && outcome.state == LEDGER_MOVE_REFUSED)) {
        status = ledger_open_job(ledger, name, key, terms, &contact, error);
    }
    return status == STATUS_OK ? job_moves_wait(ledger, name, "open the job", timeout_s, error)
                               : status;
}

/* The address of --contact, and what boards show of the job. */
static enum status make_contact(char contact[GAME_CONTACT_MAX + 1], const struct job *job,
                                const struct options *options, struct error *error)
{
    struct job_card card;
    const char *address;

    TRY(chain_contact(&address, options, error));
    job_card_of(&card, job);
    return job_card_write(contact, address, &card)
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "--contact: more than %d bytes", GAME_CONTACT_MAX);
}

static int report_opened(struct command_context *context, const struct hash32 *key,
                         const struct game_terms *terms)
{
    char text[HEX_DATA_SIZE(HASH32_SIZE)];
    char escrow[WEI_TEXT_SIZE];

    hex_write(text, key->bytes, HASH32_SIZE, true);
    if (context->json) {
        wei_print_plain(escrow, game_escrow(terms));
        return command_emit(context, json_pack("{s:s, s:s}", "job", text, "escrow_wei", escrow));
    }
    fprintf(context->out, "%s\n", text);
    return COMMAND_OK;
}

/* Settles all that needs no key: the deadline, the refusals, and that the user agrees. */
static enum status agree(bool *opened, struct hash32 *key, struct game_terms *terms,
                         const struct job *job, struct command_context *context,
                         struct error *error)
{
    struct ledger_clock clock = {0};
    struct ledger *ledger = NULL;
    struct address account;
    enum status status;

    TRY(job_moves_watch(&ledger, &account, context, error));
    TRY_OUT(ledger_get_clock(ledger, &clock, error));
    terms->deadline_s = clock.time_s + job_terms_deadline_s(context->options);
    *key = game_job_key(ledger_get_game(ledger), &account, &terms->job_id, terms->salt);
    TRY_OUT(look_before(opened, ledger, key, terms, error));
    if (*opened) {
        goto out;
    }
    if (!options_flag(context->options, "any-terms")) {
        TRY_OUT(job_policy_check(terms, ledger_get_currency(ledger),
                                 job_terms_are_quick(context->options), clock.time_s, error));
    }
    TRY_OUT(ask_contact(job, context, error));
    TRY_OUT(confirm(context, terms, ledger_get_currency(ledger), error));
out:
    ledger_close(ledger);
    return status;
}

int job_open_run(struct command_context *context)
{
    struct ledger *ledger = NULL;
    struct signer *signer = NULL;
    struct job *job = NULL;
    struct game_terms terms = {0};
    char contact[GAME_CONTACT_MAX + 1];
    struct hash32 key;
    struct error error;
    bool opened = false;
    enum status status;
    int code;

    error_init(&error);
    TRY_OUT(job_read(&job, context->options->arguments[0], &error));
    TRY_OUT(job_terms_make(&terms, job, context->options, &error));
    TRY_OUT(make_contact(contact, job, context->options, &error));
    TRY_OUT(agree(&opened, &key, &terms, job, context, &error));
    TRY_OUT(job_moves_open(&ledger, &signer, context, &error));
    TRY_OUT(send_open(ledger, &key, &terms, contact, context->options, &error));
    if (opened) {
        log_info(context->log, "job", "the job is open already with these terms: paid nothing");
    }
out:
    code =
        status == STATUS_OK ? report_opened(context, &key, &terms) : command_fail(context, &error);
    ledger_close(ledger);
    signer_free(signer);
    job_free(job);
    return code;
}
