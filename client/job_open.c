/*
 * job_open.c - `lockstep job open` and `cancel`: the moves of a client.
 *
 * Terms that are not given follow from others. All terms are shown and must be confirmed: an escrow
 * cannot be taken back once the job is accepted.
 */
#include "client/job_open.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "chain/codec/hex_data.h"
#include "chain/commands/commands.h"
#include "chain/game/terms.h"
#include "client/job_moves.h"
#include "client/job_policy.h"
#include "proofs/job/job_file.h"

#define AMOUNT(option, text)                                                                       \
    {                                                                                              \
        .name = (option), .kind = OPTION_TEXT, .value = "AMOUNT", .help = (text)                   \
    }
#define PERIOD(option, preset, text)                                                               \
    {                                                                                              \
        .name = (option), .kind = OPTION_DURATION, .value = "TIME", .fallback = (preset),          \
        .minimum = 1, .maximum = GAME_PERIOD_MAX, .help = (text)                                   \
    }

const struct option_spec job_open_options[JOB_OPEN_OPTIONS] = {
    CHAIN_LEDGER_OPTIONS,
    CHAIN_KEY_OPTIONS,
    CHAIN_ACCOUNT_OPTION,
    {.name = "reward",
     .kind = OPTION_TEXT,
     .value = "AMOUNT",
     .help = "for the whole job, such as 0.5eth; it is split evenly over the segments",
     .required = true},
    AMOUNT("stake", "what a solver loses when it is convicted (default: the whole reward)"),
    {.name = "attestors",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "2",
     .maximum = GAME_ATTESTORS_MAX,
     .help = "verifiers that are paid to look at each segment, and so many nodes must come; with "
             "one, a guess pays, since nobody tries it; 0: nobody is paid to look"},
    {.name = "coverage",
     .kind = OPTION_REAL,
     .value = "X",
     .fallback = "1",
     .help = "share of the segments that must be attested to be final, from 0 to 1"},
    AMOUNT("fee", "for each attestor of each segment (default: a tenth of its reward; so two cost "
                  "a fifth of the reward more)"),
    AMOUNT("attest-bond", "what an attestor stakes (default: ten times the fee)"),
    AMOUNT("claim-bond", "what a false claim of fraud costs its maker (default: a tenth of the "
                         "stake)"),
    PERIOD("segment-period", "1d", "the solver must commit a segment at least this often"),
    PERIOD("attest-period", "12h", "how long attestors may come"),
    PERIOD("reveal-period", "6h", "and then reveal"),
    PERIOD("claim-period", "12h", "and then claims may come"),
    PERIOD("response-period", "6h", "how long a turn of a dispute lasts"),
    {.name = "deadline",
     .kind = OPTION_DURATION,
     .value = "TIME",
     .fallback = "30d",
     .minimum = 60,
     .help = "from now until the last segment must be committed"},
    {.name = "salt",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "0",
     .help = "another number opens the same job once more"},
    {.name = "any-terms",
     .kind = OPTION_FLAG,
     .help = "open it even if no node or no solver takes the terms at its defaults",
     .command_line_only = true},
    {.name = "yes",
     .kind = OPTION_FLAG,
     .help = "open it without a prompt",
     .command_line_only = true},
    JOB_MOVES_TIMEOUT_OPTION,
};

const struct option_spec job_open_cancel_options[JOB_OPEN_CANCEL_OPTIONS] = {
    CHAIN_LEDGER_OPTIONS,
    CHAIN_KEY_OPTIONS,
    CHAIN_ACCOUNT_OPTION,
    JOB_MOVES_TIMEOUT_OPTION,
};

/* ---- terms from options --------------------------------------------------------------- */

/* *amount stays as it is where the option was not given. */
static enum status take_amount(wei *amount, const struct options *options, const char *name,
                               struct error *error)
{
    const char *text = options_text(options, name);

    if (text == NULL || wei_parse(amount, text) == STATUS_OK) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_USAGE, "--%s: '%.60s' is not an amount such as 0.5eth or 10gwei",
                     name, text);
}

static enum status take_money(struct game_terms *terms, const struct options *options,
                              struct error *error)
{
    uint32_t segments = game_segment_count(terms);
    wei reward = 0;

    TRY(take_amount(&reward, options, "reward", error));
    terms->segment_reward = reward / segments;
    terms->stake = terms->segment_reward * segments;
    if (terms->segment_reward == 0) {
        return error_set(error, STATUS_USAGE, "--reward: less than a wei for each of %u segments",
                         segments);
    }
    TRY(take_amount(&terms->stake, options, "stake", error));
    terms->claim_bond = terms->stake / 10 > 0 ? terms->stake / 10 : terms->stake;
    terms->attest_fee = terms->attestors == 0 ? 0 : terms->segment_reward / 10;
    TRY(take_amount(&terms->claim_bond, options, "claim-bond", error));
    TRY(take_amount(&terms->attest_fee, options, "fee", error));
    terms->attest_bond = terms->attest_fee > 0 ? 10 * terms->attest_fee : terms->segment_reward;
    return take_amount(&terms->attest_bond, options, "attest-bond", error);
}

static enum status check_terms(const struct game_terms *terms, struct error *error)
{
    if (terms->stake == 0) {
        return error_set(error, STATUS_USAGE, "--stake: a solver must have something to lose");
    }
    if (terms->claim_bond == 0 || terms->claim_bond > terms->stake) {
        return error_set(error, STATUS_USAGE,
                         "--claim-bond: more than nothing, and at most the stake");
    }
    if (terms->coverage_ppm > 0 && terms->attestors == 0) {
        return error_set(error, STATUS_USAGE, "--coverage: without attestors it can only be 0");
    }
    if (terms->attestors > 0 && terms->attest_bond == 0) {
        return error_set(error, STATUS_USAGE, "--attest-bond: more than nothing");
    }
    return game_escrow(terms) <= WEI_MAX
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "--reward: a ledger holds less than 2^96 wei");
}

static enum status make_terms(struct game_terms *terms, const struct job *job,
                              const struct options *options, struct error *error)
{
    double coverage = options_real(options, "coverage");

    memset(terms, 0, sizeof(*terms));
    TRY(terms_of_job(terms, job, error));
    terms->salt = options_number(options, "salt");
    terms->attestors = (uint32_t)options_number(options, "attestors");
    if (coverage > 1.0) {
        return error_set(error, STATUS_USAGE, "--coverage: a share from 0 to 1");
    }
    terms->coverage_ppm = (uint32_t)(coverage * GAME_PPM + 0.5);
    if (terms->attestors == 0 && !options_given(options, "coverage")) {
        terms->coverage_ppm = 0;
    }
    terms->segment_period_s = (uint32_t)options_number(options, "segment-period");
    terms->attest_period_s = (uint32_t)options_number(options, "attest-period");
    terms->reveal_period_s = (uint32_t)options_number(options, "reveal-period");
    terms->claim_period_s = (uint32_t)options_number(options, "claim-period");
    terms->response_period_s = (uint32_t)options_number(options, "response-period");
    TRY(take_money(terms, options, error));
    return check_terms(terms, error);
}

/* ---- confirming -------------------------------------------------------------------------- */

static void show_amount(FILE *out, const char *what, wei amount, const char *why)
{
    char text[WEI_TEXT_SIZE];

    wei_print(text, amount);
    fprintf(out, "%-16s %s%s\n", what, text, why);
}

/* What the segments cannot share of the reward that was asked for, to the wei. */
static void show_remainder(FILE *out, const struct game_terms *terms, wei reward)
{
    uint32_t segments = game_segment_count(terms);
    wei rest = reward - terms->segment_reward * segments;
    char text[WEI_TEXT_SIZE];
    char wanted[WEI_TEXT_SIZE];

    if (rest > 0) {
        wei_print_plain(text, rest);
        wei_print(wanted, reward);
        fprintf(out, "%-16s %s wei of the %s: %u segments cannot share them\n", "not paid in", text,
                wanted, segments);
    }
}

static void show_terms(FILE *out, const struct game_terms *terms, wei reward)
{
    uint32_t segments = game_segment_count(terms);
    char periods[5][TERMS_PERIOD_SIZE];
    char deadline[TERMS_TIME_SIZE];

    terms_period(periods[0], terms->segment_period_s);
    terms_period(periods[1], terms->attest_period_s);
    terms_period(periods[2], terms->reveal_period_s);
    terms_period(periods[3], terms->claim_period_s);
    terms_period(periods[4], terms->response_period_s);
    terms_time(deadline, terms->deadline_s);
    fprintf(out, "%-16s %u of %u steps, one at least every %s, all by %s UTC\n", "segments",
            segments, terms->segment_steps, periods[0], deadline);
    show_amount(out, "a segment pays", terms->segment_reward, " to the solver");
    show_remainder(out, terms, reward);
    if (terms->attestors > 0) {
        fprintf(out,
                "%-16s %u for each segment, %.4g %% must be covered: so many nodes must come\n",
                "attestors", terms->attestors, terms->coverage_ppm / 1e4);
        show_amount(out, "an attestor gets", terms->attest_fee, " for each segment");
        show_amount(out, "all of them", segments * terms->attestors * terms->attest_fee,
                    ", what nobody earns comes back");
        show_amount(out, "and stakes", terms->attest_bond, "");
    } else {
        fprintf(out, "%-16s none: nobody is paid to look\n", "attestors");
    }
    show_amount(out, "a solver stakes", terms->stake, "");
    show_amount(out, "a claimant", terms->claim_bond, "");
    fprintf(out, "%-16s attest %s, reveal %s, claim %s, answer %s\n", "periods", periods[1],
            periods[2], periods[3], periods[4]);
    show_amount(out, "ESCROW", game_escrow(terms), ", paid now");
}

static enum status confirm(struct command_context *context, const struct game_terms *terms,
                           struct error *error)
{
    wei reward = 0;

    if (context->json || options_flag(context->options, "yes")) {
        return STATUS_OK;
    }
    TRY(take_amount(&reward, context->options, "reward", error));
    show_terms(stderr, terms, reward);
    if (isatty(STDIN_FILENO) != 1) {
        (void)error_set(error, STATUS_USAGE, "no terminal to confirm the escrow on");
        error_advise(error, "--yes opens it without a prompt");
        return STATUS_USAGE;
    }
    return command_confirms("Open the job with this escrow?")
               ? STATUS_OK
               : error_set(error, STATUS_REFUSED, "not confirmed, and nothing was sent");
}

/* ---- opening -------------------------------------------------------------------------------- */

/* The first option whose term differs on the ledger; NULL: none. The deadline does not count: it
 * was computed from an earlier now. */
static const char *other_term(const struct game_terms *there, const struct game_terms *wanted)
{
    const struct {
        const char *option;
        bool same;
    } terms[] = {
        {"reward", there->segment_reward == wanted->segment_reward},
        {"stake", there->stake == wanted->stake},
        {"attestors", there->attestors == wanted->attestors},
        {"coverage", there->coverage_ppm == wanted->coverage_ppm},
        {"fee", there->attest_fee == wanted->attest_fee},
        {"attest-bond", there->attest_bond == wanted->attest_bond},
        {"claim-bond", there->claim_bond == wanted->claim_bond},
        {"segment-period", there->segment_period_s == wanted->segment_period_s},
        {"attest-period", there->attest_period_s == wanted->attest_period_s},
        {"reveal-period", there->reveal_period_s == wanted->reveal_period_s},
        {"claim-period", there->claim_period_s == wanted->claim_period_s},
        {"response-period", there->response_period_s == wanted->response_period_s},
    };

    for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++) {
        if (!terms[i].same) {
            return terms[i].option;
        }
    }
    return NULL;
}

/* Refuses a job that is on the ledger with other terms, or that is over: the user must not believe
 * that the terms given here hold. */
static enum status look_before(bool *opened, struct ledger *ledger, const struct hash32 *key,
                               const struct game_terms *terms, struct error *error)
{
    struct ledger_job there;
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
    other = other_term(&there.terms, terms);
    if (there.phase == GAME_PHASE_CLOSED) {
        (void)error_set(error, STATUS_REFUSED, "this job was opened before, as %.14s, and is over",
                        text);
        error_advise(error, "--salt N opens it once more");
        return STATUS_REFUSED;
    }
    if (other != NULL) {
        (void)error_set(error, STATUS_REFUSED,
                        "this job is on the ledger already, as %.14s, with another --%s", text,
                        other);
        error_advise(error,
                     "'lockstep job show %.14s' has its terms, 'lockstep job cancel' takes "
                     "it back while it is open, --salt N opens another",
                     text);
        return STATUS_REFUSED;
    }
    return STATUS_OK;
}

/* Sends the move once per job and salt. A new deadline does not make it another move. */
static enum status send_open(struct ledger *ledger, struct hash32 *key,
                             const struct game_terms *terms, uint64_t timeout_s,
                             struct error *error)
{
    char id[HEX_SIZE(DIGEST_SIZE)];
    char name[LEDGER_NAME_MAX];
    struct ledger_outcome outcome;
    enum status status;

    hex_encode(id, terms->job_id.bytes, DIGEST_SIZE);
    (void)snprintf(name, sizeof(name), "open %s salt %" PRIu64, id, terms->salt);
    status = ledger_look(ledger, &outcome, name, error);
    if (status == STATUS_NOT_FOUND ||
        (status == STATUS_OK && outcome.state == LEDGER_MOVE_REFUSED)) {
        status = ledger_open_job(ledger, name, key, terms, error);
    }
    return status == STATUS_OK ? job_moves_wait(ledger, name, "open the job", timeout_s, error)
                               : status;
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
                         struct command_context *context, struct error *error)
{
    struct ledger_clock clock = {0};
    struct ledger *ledger = NULL;
    struct address account;
    enum status status;

    TRY(job_moves_watch(&ledger, &account, context, error));
    TRY_OUT(ledger_get_clock(ledger, &clock, error));
    terms->deadline_s = clock.time_s + options_number(context->options, "deadline");
    *key = game_job_key(ledger_get_game(ledger), &account, &terms->job_id, terms->salt);
    TRY_OUT(look_before(opened, ledger, key, terms, error));
    if (*opened) {
        goto out;
    }
    if (!options_flag(context->options, "any-terms")) {
        TRY_OUT(job_policy_check(terms, clock.time_s, error));
    }
    TRY_OUT(confirm(context, terms, error));
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
    struct hash32 key;
    struct error error;
    bool opened = false;
    enum status status;
    int code;

    error_init(&error);
    TRY_OUT(job_read(&job, context->options->arguments[0], &error));
    TRY_OUT(make_terms(&terms, job, context->options, &error));
    TRY_OUT(agree(&opened, &key, &terms, context, &error));
    TRY_OUT(job_moves_open(&ledger, &signer, context, &error));
    TRY_OUT(send_open(ledger, &key, &terms, options_number(context->options, "timeout"), &error));
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

/* ---- cancel --------------------------------------------------------------------------------- */

static enum status cancel(struct ledger *ledger, const char *text, uint64_t timeout_s,
                          struct error *error)
{
    char key[HEX_DATA_SIZE(HASH32_SIZE)];
    char name[LEDGER_NAME_MAX];
    struct hash32 job;

    TRY(terms_find(&job, NULL, ledger, text, NULL, error));
    hex_write(key, job.bytes, HASH32_SIZE, true);
    (void)snprintf(name, sizeof(name), "job %s cancel", key);
    TRY(ledger_cancel(ledger, name, &job, error));
    return job_moves_wait(ledger, name, "cancel the job", timeout_s, error);
}

int job_open_cancel(struct command_context *context)
{
    uint64_t timeout_s = options_number(context->options, "timeout");
    struct ledger *ledger = NULL;
    struct signer *signer = NULL;
    struct error error;
    wei amount = 0;
    enum status status;

    error_init(&error);
    TRY_OUT(job_moves_open(&ledger, &signer, context, &error));
    TRY_OUT(cancel(ledger, context->options->arguments[0], timeout_s, &error));
    TRY_OUT(job_moves_withdraw(&amount, ledger, signer_address(signer), timeout_s, &error));
out:
    ledger_close(ledger);
    signer_free(signer);
    return status == STATUS_OK ? job_moves_report(context, amount) : command_fail(context, &error);
}
