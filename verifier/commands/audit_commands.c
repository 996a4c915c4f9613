/*
 * audit_commands.c - `lockstep audit`: the replay of bundles, offline.
 */
#include <stdlib.h>

#include "base/io/progress.h"
#include "base/steady.h"
#include "chain/commands/commands.h"
#include "proofs/run/data_paths.h"
#include "proofs/run/run.h"
#include "verifier/audit/accused.h"
#include "verifier/audit/audit_views.h"
#include "verifier/audit/report.h"
#include "verifier/audit/signed_report.h"
#include "verifier/audit/transactions.h"
#include "verifier/commands/audit_evidence.h"
#include "verifier/commands/audit_lineage.h"
#include "verifier/commands/audit_receipt.h"
#include "verifier/commands/audit_report.h"
#include "verifier/commands/audit_rounds.h"
#include "verifier/commands/audit_setup.h"
#include "verifier/commands/commands.h"
#include "verifier/commands/plan_commands.h"

static const struct option_spec options[] = {
    {.name = "data",
     .heading = "data",
     .often = true,
     .kind = OPTION_LIST,
     .value = "FILE",
     .help = "a data file of the job; once for each, in the job's order (default: where the "
             "bundle's own solver had it)"},
    {.name = "base",
     .heading = "model",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "the arguments are receipts of answers ('lockstep generate --prove'): the published "
             "folder of the model that they are about, or the bundle, with --data FOLDER for what "
             "its training began with",
     .command_line_only = true},
    {.name = "sample",
     .heading = "evidence",
     .often = true,
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "0",
     .help = "replay only N segments, drawn by --sample-seed; 0: all"},
    {.name = "sample-seed",
     .heading = "evidence",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "1",
     .help = "what the sample is drawn by; a cheat must not know it before"},
    {.name = "workers",
     .heading = "machine",
     .often = true,
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "1",
     .minimum = 1,
     .maximum = AUDIT_WORKERS_MAX,
     .help = "replay in N processes at a time; each takes its share of the threads, and memory of "
             "its own"},
    PLAN_LAUNCH_OPTION,
    PLAN_MACHINE_OPTIONS,
    AUDIT_LINEAGE_OPTIONS,
    {.name = "verify-evidence",
     .heading = "evidence",
     .often = true,
     .kind = OPTION_FLAG,
     .help = "the arguments are evidence files: judge them, without bundle, data or ledger",
     .command_line_only = true},
    {.name = "evidence-folder",
     .heading = "result",
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .fallback = ".",
     .help = "where evidence of a difference is written"},
    {.name = "trace-from",
     .heading = "evidence",
     .often = true,
     .kind = OPTION_LIST,
     .value = "URL",
     .help = "an endpoint ('lockstep prover serve') or a folder with the solver's answers about "
             "the trace of a step: a difference is then followed to the operation and element"},
    {.name = "report",
     .heading = "result",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "FILE.html: a page with plots: verdict, loss, what was checked and what was not; "
             "FILE.json: the same to cite and to sign"},
    {.name = "sign",
     .heading = "result",
     .kind = OPTION_FLAG,
     .help = "sign the report FILE.json, or what --attest writes, with your account's key",
     .command_line_only = true},
    {.name = "verify-report",
     .heading = "evidence",
     .kind = OPTION_FLAG,
     .help = "the arguments are reports FILE.json: who signed them, and was a byte changed?",
     .command_line_only = true},
    {.name = "transactions",
     .heading = "ledger",
     .kind = OPTION_FLAG,
     .help = "with --report: ask the ledger of --ledger for the transactions of the job's commits, "
             "verdicts and finality; of rounds, for the states and for who was left out; without "
             "it nobody is asked anything",
     .command_line_only = true},
    CHAIN_LEDGER_OPTIONS,
    CHAIN_KEY_OPTIONS,
    CHAIN_ACCOUNT_OPTION,
};

/* ---- one bundle --------------------------------------------------------- */

static enum status find_data(struct data_paths *paths, struct bundle *bundle,
                             const struct options *given, struct error *error)
{
    const struct job *job = bundle_job(bundle);
    const char *files[OPTION_LIST_MAX];
    size_t count = options_list(files, given, "data");
    enum status status;

    if (count > 0) {
        return data_paths_of_files(paths, job->tape, files, count, error);
    }
    status = data_paths_of_bundle(paths, job, bundle, error);
    if (status == STATUS_NOT_FOUND) {
        status = error_set(error, STATUS_USAGE, "the bundle does not say where its data is");
        error_advise(error, "name the %u files with --data", job->data_count);
    }
    return status;
}

/* The page follows the audit. */
static void watch_audit(struct report *report, struct audit_options *audit_options,
                        const char *path, struct bundle *bundle,
                        const struct machine_options *machine)
{
    report_begin(report, path, bundle_job(bundle));
    if (audit_options->launch != NULL) {
        (void)snprintf(report->device, sizeof(report->device), "what '%.80s' started",
                       audit_options->launch);
    } else {
        run_describe(report->device, sizeof(report->device), machine);
    }
    audit_options->on_step = report_step;
    audit_options->step_context = report;
}

/* report NULL: no page. */
static void audit_path(struct audit_result *result, struct report *report,
                       struct command_context *context, const char *path, struct stop *stop)
{
    struct data_paths data = {0};
    const char *sources[ACCUSED_SOURCES_MAX];
    struct audit_options audit_options;
    struct machine_options machine;
    struct bundle *bundle = NULL;
    struct progress progress;
    struct error *error = &result->reason;
    double start = steady_seconds();
    enum status status = bundle_open(&bundle, path, BUNDLE_READ, error);

    if (status == STATUS_OK) {
        status = audit_setup(&audit_options, &machine, sources, context, &progress, stop, error);
    }
    if (status == STATUS_OK) {
        status = find_data(&data, bundle, context->options, error);
    }
    if (status == STATUS_OK) {
        if (report != NULL) {
            watch_audit(report, &audit_options, path, bundle, &machine);
        }
        progress_init(&progress, stderr, "auditing", "steps", 0, 0, steady_seconds());
        audit(result, bundle, (const char *const *)data.of, data.count, &audit_options);
        progress_finish(&progress, result->steps_checked, audit_answer_name(result->answer),
                        steady_seconds());
    }
    if (report != NULL) {
        struct error journal;

        error_init(&journal);
        /* A journal that cannot be read makes a page with holes: the audit then proves nothing. */
        if (report->cell_count > 0 && report_journal(report, bundle, &journal) != STATUS_OK &&
            result->reason.text[0] == '\0') {
            result->answer = AUDIT_CANNOT_TELL;
            result->reason = journal;
        }
        report->seconds = steady_seconds() - start;
    }
    bundle_close(bundle);
    data_paths_close(&data);
}

/* ---- all of them -------------------------------------------------------- */

struct audits {
    struct command_context *context;
    struct audit_view *views; /* one for each bundle */
    struct report *reports;   /* likewise; NULL: no page */
    size_t count;
    json_t *json;
    json_t *entries;       /* of a report; NULL: none is wanted */
    struct ledger *ledger; /* NULL: none is asked */
    int code;
};

static void add_entry(struct audits *audits, struct audit_view *view)
{
    struct bundle *bundle = NULL;
    struct error none;
    enum status opened;

    error_init(&none);
    opened = bundle_open(&bundle, view->path, BUNDLE_READ, &none);
    (void)json_array_append_new(
        audits->entries,
        signed_report_entry(view, opened == STATUS_OK ? bundle : NULL, audits->ledger));
    bundle_close(bundle);
}

/* A refutation of what the solver never committed to is none. Where the ledger cannot be asked, the
 * report says so. */
static void ask_ledger(struct audits *audits, struct audit_view *view)
{
    struct audit_result *result = &view->result;
    struct bundle *bundle = NULL;
    bool differ = false;
    struct error none;

    error_init(&none);
    if (audits->ledger == NULL || result->answer != AUDIT_REFUTED) {
        return;
    }
    if (bundle_open(&bundle, view->path, BUNDLE_READ, &none) == STATUS_OK &&
        transactions_differ(&differ, audits->ledger, bundle, result->wrong_segment,
                            &result->segment_root, &none) == STATUS_OK &&
        differ) {
        audit_distrust_journal(result, "is committed on the ledger");
    }
    bundle_close(bundle);
}

/* Shows the result of one bundle to people, at once: an audit may take hours. */
static int show_one(struct audits *audits, const struct audit_view *view)
{
    struct sheet sheet;

    if (command_people(audits->context) == NULL) {
        return COMMAND_OK;
    }
    sheet_init(&sheet);
    audit_view_show(&sheet, view);
    return command_show(audits->context, &sheet);
}

static void tell_one(struct audits *audits, size_t index)
{
    struct command_context *context = audits->context;
    struct audit_view *view = &audits->views[index];

    ask_ledger(audits, view);
    audit_view_keep(view, options_text(context->options, "evidence-folder"));
    if (audits->entries != NULL) {
        add_entry(audits, view);
    }
    if (audits->reports != NULL) {
        report_end(&audits->reports[index], view);
        audits->reports[index].about = json_array_get(audits->entries, index);
    }
    audits->code = audit_worse_code(audits->code, audit_code_of(view->result.answer));
    (void)json_array_append_new(audits->json, audit_view_json(view));
    audits->code = audit_worse_code(audits->code, show_one(audits, view));
}

/* One after another; prints each when it ends. */
static enum status audit_here(struct audits *audits, struct error *error)
{
    struct stop stop = {.descriptor = -1};
    enum status status = stop_open(&stop, error);

    for (size_t i = 0; i < audits->count && status == STATUS_OK; i++) {
        audit_path(&audits->views[i].result, audits->reports == NULL ? NULL : &audits->reports[i],
                   audits->context, audits->views[i].path, &stop);
        tell_one(audits, i);
    }
    stop_close(&stop);
    return status;
}

/* ---- the command ---------------------------------------------------------- */

static enum status audits_open(struct audits *audits, struct command_context *context, bool paged,
                               struct error *error)
{
    *audits = (struct audits){.context = context,
                              .count = context->options->argument_count,
                              .json = json_array(),
                              .code = COMMAND_OK};
    audits->views = calloc(audits->count + 1, sizeof(*audits->views));
    audits->reports = paged ? calloc(audits->count + 1, sizeof(*audits->reports)) : NULL;
    if (audits->json == NULL || audits->views == NULL || (paged && audits->reports == NULL)) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %zu audits", audits->count);
    }
    for (size_t i = 0; i < audits->count; i++) {
        error_init(&audits->views[i].result.reason);
        audits->views[i].path = context->options->arguments[i];
    }
    return STATUS_OK;
}

static void audits_close(struct audits *audits)
{
    for (size_t i = 0; audits->views != NULL && i < audits->count; i++) {
        audit_result_release(&audits->views[i].result);
    }
    free(audits->views);
    free(audits->reports);
    json_decref(audits->json);
    json_decref(audits->entries);
    ledger_close(audits->ledger);
}

static int run_audit(struct command_context *context)
{
    const char *path = options_text(context->options, "report");
    bool as_json = audit_report_is_json(path);
    const char *page = as_json ? NULL : path;
    bool signs = options_flag(context->options, "sign");
    struct signer *signer = NULL;
    struct audits audits;
    struct error error;
    enum status status;
    int code;

    if (options_flag(context->options, "verify-evidence")) {
        return audit_evidence(context);
    }
    if (options_flag(context->options, "verify-report")) {
        return audit_report_verify(context);
    }
    if (options_flag(context->options, "lineage")) {
        return audit_lineage(context);
    }
    if (audit_lineage_stray(context->options) != NULL) {
        return command_usage(context, "--%s says nothing without --lineage",
                             audit_lineage_stray(context->options));
    }
    if (audit_rounds_wanted(context)) {
        return audit_rounds(context);
    }
    if (audit_receipt_wanted(context)) {
        return audit_receipts(context);
    }
    if (signs && !as_json) {
        return command_usage(context, "--sign signs a report: name it with --report FILE.json");
    }
    if (path == NULL && options_flag(context->options, "transactions")) {
        return command_usage(context,
                             "--transactions stand in a report: name it with --report FILE");
    }
    error_init(&error);
    status = audits_open(&audits, context, page != NULL, &error);
    if (status != STATUS_OK) {
        goto out;
    }
    audits.entries = path != NULL ? json_array() : NULL;
    if (signs) { /* a passphrase is asked for before hours of work */
        TRY_OUT(chain_unlock(&signer, context, &error));
    }
    /* One that cannot be reached is said before hours of work. */
    TRY_OUT(audit_open_ledger(&audits.ledger, context, &error));
    TRY_OUT(audit_here(&audits, &error));
    if (page != NULL) {
        TRY_OUT(report_write(page, audits.reports, audits.count, &error));
    }
    if (as_json) {
        TRY_OUT(audit_report_write(path, audits.entries, signer, &error));
    }
out:
    code = audits.code;
    if (status != STATUS_OK) {
        code = audit_fail(context, &error);
    } else {
        int shown = command_say(context, json_pack("{s:O}", "audits", audits.json), "%s", "");

        code = shown == COMMAND_OK ? code : shown;
    }
    audits_close(&audits);
    signer_free(signer);
    return code;
}

/* ---- the table ---------------------------------------------------------- */

static const struct command commands[] = {
    {.name = "audit",
     .summary = "replay bundles or receipts offline and say whether they are true",
     .description =
         "Runs the steps of each bundle again, from its job, its data and its checkpoints, and "
         "compares every state with the journal. Exit code 0: proven, every wanted step "
         "gave the same bits. 1: refuted, some step does not, and a second replay with other "
         "instructions confirmed it. 2: no answer, with the reason; so it is when the "
         "last checkpoint is broken or missing. Follows a difference to the "
         "tensor and element, and to the operation where the solver serves its trace "
         "(--trace-from); writes the evidence to a file that 'lockstep audit --verify-evidence' "
         "and the "
         "contract judge without the bundle. A report FILE.json can be cited and, with --sign, "
         "carries your signature, which --verify-report checks; --transactions asks a ledger for "
         "what "
         "it has of the job. --workers shares the segments of each "
         "bundle among several processes. A receipt is proven or refuted by one step of the model "
         "in --base over its tokens. With --lineage the arguments are the parts of one pedigree: "
         "each link between them is checked from its bytes, and a certificate says what was "
         "proven, what is taken on trust and what is missing. Of a folder of 'lockstep job "
         "federate' "
         "it proves the chain of rounds and makes each mean again; --transactions asks the ledger "
         "for the states and the reasons.",
     .arguments = "BUNDLE|RECEIPT|FILE...",
     .example =
         "lockstep audit text.run\nlockstep audit --sample 5 --sample-seed 91 --report text.html "
         "text.run\nlockstep audit --report text.json --sign text.run\n"
         "lockstep audit --verify-report text.json\nlockstep audit --workers 8 --threads 1 "
         "long.run\nlockstep audit answer.receipt --base Llama-3.2-1B\n"
         "lockstep audit fed\n"
         "lockstep audit --lineage Llama-3.2-1B chats tune.run tuned answer.receipt \\\n"
         "    --attest tuned.dsse --attest-key key.pem",
     .options = options,
     .option_count = sizeof(options) / sizeof(options[0]),
     .run = run_audit},
};

const struct command_group audit_commands = {
    .commands = commands, .command_count = sizeof(commands) / sizeof(commands[0])};
