/* claim_command.c - see claim_command.h. */
#include "verifier/commands/claim_command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/text.h"
#include "chain/codec/hex_data.h"
#include "chain/codec/wei_json.h"
#include "chain/commands/commands.h"
#include "verifier/commands/node_setup.h"
#include "verifier/dispute/claim_evidence.h"
#include "verifier/node/node_children.h"
#include "verifier/node/node_claims.h"
#include "verifier/node/node_round.h"

enum {
    IDLE_MS = 200,
    TROUBLE_MS = 3000,
    FOLLOW_ROUNDS_MAX = 1000000,
    CHECK_NUMBER = 1,
};

/* Of a whole dispute, by docs/GAS.md: seal, claim, six queries, evidence of the worst rule. */
#define GAS_LEAST 700000
#define GAS_MOST  8000000

const struct option_spec claim_command_options[CLAIM_COMMAND_OPTIONS] = {
    CHAIN_LEDGER_OPTIONS,
    CHAIN_KEY_OPTIONS,
    CHAIN_ACCOUNT_OPTION,
    NODE_STATE_OPTION,
    NODE_WORK_OPTIONS,
    {.name = "evidence",
     .heading = "evidence",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "evidence about the step, as 'lockstep audit' writes it: it says which step, and is "
             "sent as soon as the accused replies with the trace that it is about",
     .command_line_only = true},
    {.name = "segment",
     .often = true,
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = GAME_SEGMENTS_MAX,
     .help =
         "in place of a step: replay this segment, and claim its first false step if it has one",
     .command_line_only = true},
    {.name = "folder",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "leave the state that the segment ends in there, where all of it is right, as mirrors "
             "have it",
     .command_line_only = true},
    {.name = "yes",
     .heading = "account",
     .often = true,
     .kind = OPTION_FLAG,
     .help = "stake the bond without asking",
     .command_line_only = true},
};

/* A claim by hand. */
struct claiming {
    struct node_setup setup;
    struct hash32 job;
    bool whole;        /* a segment is named, not a step of it: then 0 until the replay */
    uint64_t job_step; /* ... */
    struct claim_evidence evidence;

    struct store_segment segment;
    uint32_t step; /* within it */
    struct check_request *request;
    struct check_result *result;
    struct hash32 subject;
    struct hash32 claim; /* its key, unless somebody else's was refuted meanwhile */
    wei bond;
    wei purse;
    char outcome
        [16]; /* "upheld"; empty: it is open. Of a whole segment also "right", and "false": it
                       * could not be claimed */
    char why[ERROR_TEXT_MAX]; /* it could not */
    char last[STORE_REASON_MAX];
};

static bool has_evidence(const struct claiming *claiming)
{
    return claiming->evidence.path[0] != '\0';
}

/* ---- the arguments ---------------------------------------------------------------- */

static enum status read_step(uint64_t *step, const char *text, struct error *error)
{
    return text_is_number(step, text, INT64_MAX)
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "'%.40s' is not the number of a step", text);
}

/* The step is named, or the evidence has it; both must agree. */
static enum status find_step(struct claiming *claiming, struct error *error)
{
    const struct options *given = claiming->setup.context->options;
    const char *path = options_text(given, "evidence");
    const char *named = given->argument_count > 1 ? given->arguments[1] : NULL;

    claiming->whole = options_given(given, "segment");
    if (claiming->whole) {
        return path == NULL && named == NULL
                   ? STATUS_OK
                   : error_set(error, STATUS_USAGE, "--segment stands in place of a step");
    }
    if (path == NULL && named == NULL) {
        (void)error_set(error, STATUS_USAGE, "which step is false?");
        error_advise(error, "name it behind the job's key, or evidence about it with --evidence");
        return STATUS_USAGE;
    }
    if (path != NULL) {
        TRY(claim_evidence_open(&claiming->evidence, path, error));
        claiming->job_step = claiming->evidence.file.step;
    }
    if (named != NULL) {
        TRY(read_step(&claiming->job_step, named, error));
    }
    if (path != NULL && claiming->job_step != claiming->evidence.file.step) {
        return error_set(error, STATUS_USAGE, "%s is about step %" PRIu64 ", not %" PRIu64, path,
                         claiming->evidence.file.step, claiming->job_step);
    }
    return STATUS_OK;
}

static enum status read_arguments(struct claiming *claiming, struct error *error)
{
    const struct options *given = claiming->setup.context->options;
    const char *job = given->arguments[0];
    if (strncmp(job, "0x", 2) == 0) {
        job += 2;
    }
    if (hex_decode(claiming->job.bytes, HASH32_SIZE, job, strlen(job)) != STATUS_OK) {
        (void)error_set(error, STATUS_USAGE, "'%.80s' is not the key of a job",
                        given->arguments[0]);
        error_advise(error, "lockstep job list shows them");
        return STATUS_USAGE;
    }
    return find_step(claiming, error);
}

/* ---- rounds ------------------------------------------------------------------------ */

static enum status stopped(struct claiming *claiming, struct error *error)
{
    if (!stop_requested(&claiming->setup.stop)) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_STOPPED, "stopped");
    error_advise(error, "the same command goes on, and so does a node in the same folder");
    return STATUS_STOPPED;
}

/* Follows the ledger to its end. Signs nothing. */
static enum status catch_up(struct claiming *claiming, struct error *error)
{
    struct node_setup *setup = &claiming->setup;
    bool busy = true;

    TRY(ledger_catch_up(setup->ledger, error));
    setup->node.options.mode = NODE_OBSERVE;
    for (int i = 0; i < FOLLOW_ROUNDS_MAX && busy; i++) {
        TRY(node_round(&setup->node, &busy, error));
        TRY(stopped(claiming, error));
    }
    return STATUS_OK;
}

/* ---- what the claim is about ---------------------------------------------------------- */

static enum status find_segment(struct claiming *claiming, struct error *error)
{
    struct store *store = &claiming->setup.store;
    enum status status = store_segment(store, &claiming->segment, &claiming->job, 0, error);
    uint64_t length;

    if (status == STATUS_NOT_FOUND) {
        return error_set(error, STATUS_REFUSED, "no segment of such a job stands on the ledger");
    }
    if (status != STATUS_OK) {
        return status;
    }
    length = claiming->segment.terms.segment_steps;
    if (claiming->whole) {
        claiming->job_step = length * options_number(claiming->setup.context->options, "segment");
    }
    if (claiming->job_step / length <= GAME_SEGMENTS_MAX) {
        status = store_segment(store, &claiming->segment, &claiming->job,
                               (uint32_t)(claiming->job_step / length), error);
        claiming->step = (uint32_t)(claiming->job_step % length);
    } else {
        status = STATUS_NOT_FOUND;
    }
    if (status == STATUS_NOT_FOUND ||
        (status == STATUS_OK && claiming->step >= claiming->segment.committed.steps)) {
        return error_set(error, STATUS_REFUSED, "step %" PRIu64 " is not committed",
                         claiming->job_step);
    }
    return status;
}

/* Claims that are open keep the time open. */
static enum status check_time(const struct claiming *claiming, struct error *error)
{
    const struct store_segment *segment = &claiming->segment;
    uint64_t now_s = claiming->setup.node.clock.time_s;

    if (segment->state.phase != GAME_PHASE_RUNNING ||
        segment->committed.index < segment->state.finalized) {
        return error_set(error, STATUS_REFUSED, "the segment is final, or its job at an end");
    }
    return now_s <= node_claim_end(segment) || segment->job_claims > 0
               ? STATUS_OK
               : error_set(error, STATUS_REFUSED, "the time to claim is over since %" PRIu64 " s",
                           now_s - node_claim_end(segment));
}

/* ---- the replay ---------------------------------------------------------------------- */

static enum status run_check(struct claiming *claiming, struct error *error)
{
    struct node_setup *setup = &claiming->setup;
    const struct check_port *port = &setup->node.ports.checks;

    TRY(node_request(&setup->node, &claiming->request, &claiming->segment, error));
    claiming->request->keep_max = keep_wants(&setup->keep, claiming->request);
    TRY(port->start(port->context, CHECK_NUMBER, claiming->request, error));
    for (;;) {
        uint64_t number = 0;
        enum status status = port->take(port->context, &number, claiming->result, error);

        if (status == STATUS_OK) {
            keep_take(&setup->keep, &setup->store, claiming->request, claiming->result,
                      setup->node.now_ms / 1000, setup->context->log);
        }
        if (status != STATUS_NOT_FOUND) {
            return status;
        }
        node_setup_wait(setup, IDLE_MS);
        TRY(stopped(claiming, error));
    }
}

/* STATUS_OK: the claim would win, or a whole segment is right. */
static enum status would_win(struct claiming *claiming, struct error *error)
{
    const struct check_result *result = claiming->result;
    uint64_t length = claiming->segment.terms.segment_steps;
    uint64_t first = (uint64_t)result->index * length + result->step;

    switch (result->outcome) {
    case CHECK_CANNOT_TELL:
        return error_set(error, STATUS_UNREACHABLE, "it cannot be told: %.400s", result->reason);
    case CHECK_FAULT:
        return error_set(error, STATUS_DEVICE, "this machine cannot be believed: %.400s",
                         result->reason);
    case CHECK_PROVEN:
        if (claiming->whole) {
            (void)snprintf(claiming->outcome, sizeof(claiming->outcome), "right");
            return STATUS_OK;
        }
        return error_set(error, STATUS_REFUSED,
                         "every step of segment %" PRIu32
                         " is what the job gives: a claim would lose its bond",
                         claiming->segment.committed.index);
    case CHECK_REFUTED:
        break;
    }
    if (claiming->whole && result->index == claiming->segment.committed.index) {
        claiming->job_step = first;
        claiming->step = result->step;
    }
    if (first == claiming->job_step) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_REFUSED, "the first false step is %" PRIu64 ", and the solver's",
                    first);
    error_advise(error, "claim that one: only there is the state before it beyond dispute");
    return STATUS_REFUSED;
}

/* ---- what is staked -------------------------------------------------------------------- */

/* A quarter of the stake goes to the claimant of the lowest rank. */
static wei prize(const struct claiming *claiming)
{
    return claiming->segment.terms.stake / GAME_POT_SHARE;
}

static json_t *view_of(const struct claiming *claiming)
{
    char job[HEX_DATA_SIZE(HASH32_SIZE)];
    char claim[HEX_DATA_SIZE(HASH32_SIZE)];
    char accused[ADDRESS_TEXT_SIZE];

    hex_write(job, claiming->job.bytes, HASH32_SIZE, true);
    hex_write(claim, claiming->claim.bytes, HASH32_SIZE, true);
    address_print(accused, &claiming->segment.committed.solver);
    return json_pack("{s:s, s:I, s:I, s:s, s:s, s:o, s:o, s:s, s:s}", "job", job, "step",
                     (json_int_t)claiming->job_step, "segment",
                     (json_int_t)claiming->segment.committed.index, "accused", accused, "claim",
                     claim, "bond_wei", wei_json(claiming->bond), "prize_wei",
                     wei_json(prize(claiming)), "outcome", claiming->outcome, "why", claiming->why);
}

static void show_stake(const struct claiming *claiming, FILE *out)
{
    const struct check_result *result = claiming->result;
    char ours[HEX_SIZE(DIGEST_SIZE)];
    char theirs[HEX_SIZE(DIGEST_SIZE)];
    char bond[WEI_TEXT_SIZE];
    char won[WEI_TEXT_SIZE];
    char purse[WEI_TEXT_SIZE];

    hex_encode(ours, result->true_state.bytes, DIGEST_SIZE);
    hex_encode(theirs, result->post_state.bytes, DIGEST_SIZE);
    currency_print(bond, ledger_get_currency(claiming->setup.ledger), claiming->bond);
    currency_print(won, ledger_get_currency(claiming->setup.ledger), prize(claiming));
    currency_print(purse, ledger_get_currency(claiming->setup.ledger), claiming->purse);
    (void)fprintf(out,
                  "step        %" PRIu64 " (segment %" PRIu32 ", step %" PRIu32 " of it)\n"
                  "committed   %s\n"
                  "two replays %s\n"
                  "STAKE       %s, lost if the claim is refuted; the account has %s\n"
                  "prize       %s where nobody proved an earlier claim, and the bond back\n",
                  claiming->job_step, claiming->segment.committed.index, claiming->step, theirs,
                  ours, bond, purse, won);
    if (claiming->setup.node.ports.ledger != NULL &&
        strncmp(ledger_get_place(claiming->setup.ledger)->chain, "local:", 6) != 0) {
        (void)fprintf(out,
                      "gas         about %d in 3 transactions where the accused serves its trace, "
                      "%d at most, below %" PRIu64 " gwei each\n",
                      GAS_LEAST, GAS_MOST,
                      options_number(claiming->setup.context->options, "gas-price-max"));
    }
}

static enum status confirm(struct claiming *claiming, struct error *error)
{
    struct command_context *context = claiming->setup.context;
    wei owed = 0;

    TRY(ledger_get_account(claiming->setup.ledger, &claiming->purse, &owed,
                           ledger_get_own(claiming->setup.ledger), error));
    TRY(ledger_afford(claiming->setup.ledger, GAME_CLAIM, claiming->bond, error));

    if (command_people(context) != NULL) {
        show_stake(claiming, stderr);
    } else if (!options_flag(context->options, "yes")) {
        (void)error_set(error, STATUS_USAGE, "nobody is there to confirm the stake");
        error_advise(error, "--yes claims without asking");
        return STATUS_USAGE;
    }
    return command_confirm(context, "Claim with this stake?", error);
}

/* ---- the claim, to its end -------------------------------------------------------------- */

static enum status name_claim(struct claiming *claiming, struct error *error)
{
    const struct check_result *result = claiming->result;
    struct store *store = &claiming->setup.store;
    uint32_t outsiders = 0;
    int64_t round = 0;

    claiming->subject = game_subject_hash(&claiming->segment.hash, claiming->step,
                                          &result->pre_state, &result->post_state);
    TRY(database_number(&store->sql, &round, 0, error,
                        "SELECT count(*) FROM disputes WHERE subject = ? AND phase = :claim_closed"
                        " AND outcome = :refuted_claim",
                        "b", &(struct database_blob){claiming->subject.bytes, HASH32_SIZE}));
    claiming->claim = game_claim_key(&claiming->subject, (uint32_t)round);
    TRY(store_outsiders(store, &outsiders, &claiming->job, error));
    claiming->bond = game_claim_bond(&claiming->segment.terms, outsiders);
    return STATUS_OK;
}

/* A second plan of the same claim changes nothing. */
static enum status plan(struct claiming *claiming, struct error *error)
{
    struct node *node = &claiming->setup.node;
    struct task task = {.job = claiming->job,
                        .index = claiming->segment.committed.index,
                        .segment = claiming->segment.hash};
    const char *why = NULL;
    enum status status = store_begin(&claiming->setup.store, error);

    if (status != STATUS_OK) {
        return status;
    }
    node->options.mode = NODE_DEFEND;
    if (claiming->result->has_header) {
        status = store_set_header(&claiming->setup.store, &claiming->job, claiming->result->header,
                                  error);
    }
    if (status == STATUS_OK) {
        status = node_accuse(node, &task, claiming->request, claiming->result, &why, error);
    }
    if (status == STATUS_OK && why != NULL) {
        status = error_set(error, STATUS_REFUSED, "%s", why);
    }
    return store_end(&claiming->setup.store, status, error);
}

static void log_place(const struct claiming *claiming, const char *what)
{
    char place[STORE_PLACE_TEXT];

    store_place_text(place, &claiming->job, claiming->segment.committed.index);
    log_info(claiming->setup.context->log, "claim", "%s: %s", place, what);
}

/* Logs the state of the newest move about the claim when it changed. */
static enum status log_progress(struct claiming *claiming, struct error *error)
{
    char line[STORE_REASON_MAX] = "";
    sqlite3_stmt *row;
    enum status status = database_first(
        &row, &claiming->setup.store.sql, error,
        "SELECT name, state, trouble FROM actions WHERE claim IN (?, ?) ORDER BY rowid DESC"
        " LIMIT 1",
        "bb", &(struct database_blob){claiming->claim.bytes, HASH32_SIZE},
        &(struct database_blob){claiming->subject.bytes, HASH32_SIZE});

    if (status == STATUS_OK) {
        const char *name = (const char *)sqlite3_column_text(row, 0);
        const char *trouble = (const char *)sqlite3_column_text(row, 2);
        int state = sqlite3_column_int(row, 1);

        (void)snprintf(line, sizeof(line), "%.*s is %s%s%.300s", (int)strcspn(name, "/"), name,
                       state >= 0 && state <= ACTION_LATE
                           ? action_state_name((enum action_state)state)
                           : "lost",
                       trouble[0] == '\0' ? "" : ": ", trouble);
    }
    database_done(&claiming->setup.store.sql, row);
    if (strcmp(line, claiming->last) != 0) {
        memcpy(claiming->last, line, sizeof(line));
        log_place(claiming, line);
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* STATUS_NOT_FOUND: the claim is not on the ledger. */
static enum status read_outcome(struct claiming *claiming, struct error *error)
{
    sqlite3_stmt *row;
    enum status status = database_first(
        &row, &claiming->setup.store.sql, error,
        "SELECT d.key, d.phase, d.outcome, d.lost, j.unpaid = d.generation AND NOT EXISTS (SELECT 1"
        " FROM disputes o WHERE o.job = d.job AND o.generation = d.generation AND o.phase <>"
        " :claim_closed) FROM disputes d JOIN jobs j ON j.key = d.job WHERE d.subject = ? AND"
        " (d.ours OR d.lost) ORDER BY d.number DESC LIMIT 1",
        "b", &(struct database_blob){claiming->subject.bytes, HASH32_SIZE});

    if (status == STATUS_OK) {
        bool closed = sqlite3_column_int(row, 1) == GAME_CLAIM_CLOSED;
        bool lost = sqlite3_column_int(row, 3) != 0;
        enum game_outcome outcome = (enum game_outcome)sqlite3_column_int(row, 2);

        (void)!database_blob_column(row, 0, claiming->claim.bytes, HASH32_SIZE);
        /* The pot of the conviction is paid first, where nothing else has to end. */
        if (lost || (closed && sqlite3_column_int(row, 4) == 0)) {
            (void)snprintf(claiming->outcome, sizeof(claiming->outcome), "%s",
                           job_outcome_name(lost ? GAME_REFUTED : outcome));
        }
    }
    database_done(&claiming->setup.store.sql, row);
    return status;
}

/* Has the claim ended? Refused: it was never made. */
static enum status look_at_claim(struct claiming *claiming, struct error *error)
{
    struct action action;
    char name[LEDGER_NAME_MAX + 1];
    enum status status = read_outcome(claiming, error);

    if (status != STATUS_NOT_FOUND) {
        return status;
    }
    action_name(name, ACTION_CLAIM, &claiming->subject);
    status = action_find(&claiming->setup.store, &action, name, error);
    if (status == STATUS_OK && (action.state == ACTION_REFUSED || action.state == ACTION_LATE)) {
        return error_set(
            error, STATUS_REFUSED, "the claim is %s: %.300s", action_state_name(action.state),
            action.state == ACTION_LATE ? "its time was over" : game_refusal_text(action.refusal));
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status follow_through(struct claiming *claiming, struct error *error)
{
    struct node_setup *setup = &claiming->setup;

    while (claiming->outcome[0] == '\0') {
        bool busy = false;

        TRY(node_round(&setup->node, &busy, error));
        TRY(log_progress(claiming, error));
        TRY(look_at_claim(claiming, error));
        node_setup_wait(setup, busy ? 0 : IDLE_MS);
        if (claiming->outcome[0] == '\0') {
            TRY(stopped(claiming, error));
        }
    }
    return STATUS_OK;
}

/* Stakes the bond, and follows the claim to its end. */
static enum status stake(struct claiming *claiming, struct error *error)
{
    TRY(name_claim(claiming, error));
    TRY(confirm(claiming, error));
    if (has_evidence(claiming)) {
        TRY(claim_evidence_keep(&claiming->evidence, claiming->setup.cache, &claiming->claim,
                                error));
    }
    TRY(plan(claiming, error));
    return follow_through(claiming, error);
}

/* A user who asked about a whole segment is told that it is false, also where the claim fails. */
static enum status tell_false(struct claiming *claiming, enum status status,
                              const struct error *error)
{
    if (status == STATUS_OK || status == STATUS_STOPPED || !claiming->whole) {
        return status;
    }
    (void)snprintf(claiming->outcome, sizeof(claiming->outcome), "false");
    memcpy(claiming->why, error->text, sizeof(claiming->why));
    return STATUS_OK;
}

static enum status claim(struct claiming *claiming, struct error *error)
{
    TRY(catch_up(claiming, error));
    if (claiming->setup.node.fault) {
        return error_set(error, STATUS_REFUSED, "nothing is signed, because of an earlier fault");
    }
    TRY(find_segment(claiming, error));
    TRY(check_time(claiming, error));
    if (has_evidence(claiming)) {
        TRY(claim_evidence_fits(&claiming->evidence, &claiming->segment, error));
    }
    log_place(claiming, "the replay begins");
    TRY(run_check(claiming, error));
    TRY(would_win(claiming, error));
    if (has_evidence(claiming)) {
        TRY(claim_evidence_agrees(&claiming->evidence, claiming->result, error));
    }
    return claiming->outcome[0] == '\0' ? tell_false(claiming, stake(claiming, error), error)
                                        : STATUS_OK;
}

static int show(struct claiming *claiming)
{
    struct command_context *context = claiming->setup.context;
    bool lost = strcmp(claiming->outcome, "refuted") == 0 || claiming->why[0] != '\0';
    struct sheet sheet;
    int shown;

    sheet_init(&sheet);
    sheet_merge(&sheet, view_of(claiming));
    if (claiming->whole && (claiming->why[0] != '\0' || strcmp(claiming->outcome, "right") == 0)) {
        sheet_print(&sheet, "segment %" PRIu32 " is %s%s%s\n", claiming->segment.committed.index,
                    claiming->outcome,
                    claiming->why[0] == '\0' ? "" : ", and not claimed: ", claiming->why);
    } else {
        sheet_print(&sheet, "the claim is %s\n", claiming->outcome);
    }
    shown = command_show(context, &sheet);
    return shown == COMMAND_OK && lost ? COMMAND_REFUSED : shown;
}

static enum status open_setup(struct claiming *claiming, struct error *error)
{
    const struct options *given = claiming->setup.context->options;
    const char *folder = options_text(given, "folder");

    TRY(node_setup_prepare(&claiming->setup, error));
    TRY(node_setup_open(&claiming->setup, true, false, error));
    return folder == NULL ? STATUS_OK
                          : keep_open(&claiming->setup.keep, folder, NULL, UINT64_MAX, error);
}

int claim_command(struct command_context *context)
{
    struct claiming *claiming = calloc(1, sizeof(*claiming));
    struct error error;
    enum status status = STATUS_OK;
    int code;

    error_init(&error);
    if (claiming != NULL) {
        claiming->setup.context = context;
        claiming->setup.options.by_hand = true;
        claiming->setup.options.checks_max = 1;
        claiming->result = calloc(1, sizeof(*claiming->result));
        status = stop_open(&claiming->setup.stop, &error);
    }
    if (claiming == NULL || claiming->result == NULL) {
        status = error_set(&error, STATUS_NO_MEMORY, "no memory for a claim");
    }
    if (status != STATUS_OK) {
        free(claiming == NULL ? NULL : claiming->result);
        free(claiming);
        return command_fail(context, &error);
    }
    TRY_OUT(read_arguments(claiming, &error));
    TRY_OUT(open_setup(claiming, &error));
    TRY_OUT(claim(claiming, &error));
out:
    code = status == STATUS_OK ? show(claiming) : command_fail(context, &error);
    node_setup_close(&claiming->setup);
    stop_close(&claiming->setup.stop);
    claim_evidence_close(&claiming->evidence);
    free(claiming->request);
    free(claiming->result);
    free(claiming);
    return code;
}
