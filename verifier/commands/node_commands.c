/* node_commands.c - `lockstep verifier node|status|claims|verdicts`. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/notify.h"
#include "base/io/strict_json.h"
#include "chain/commands/commands.h"
#include "chain/commands/policy_options.h"
#include "verifier/check/confine.h"
#include "verifier/check/self_test.h"
#include "verifier/commands/claim_command.h"
#include "verifier/commands/commands.h"
#include "verifier/commands/node_setup.h"
#include "verifier/commands/plan_commands.h"
#include "verifier/node/node_round.h"
#include "verifier/status/node_views.h"
#include "verifier/status/status_server.h"

enum {
    IDLE_MS = 500,
    TROUBLE_MS = 3000,
    CHECKS_DEFAULT = 2,
};

/* ---- run ------------------------------------------------------------------ */

static const struct option_spec node_options[] = {
    CHAIN_LEDGER_OPTIONS,
    CHAIN_KEY_OPTIONS,
    CHAIN_ACCOUNT_OPTION,
    NODE_STATE_OPTION,
    {.name = "mode",
     .heading = "policy",
     .often = true,
     .kind = OPTION_CHOICE,
     .value = "MODE",
     .fallback = "act",
     .choices = "observe|defend|act",
     .help =
         "observe: check and report, sign nothing; defend: and claim; act: and sit in panels, for "
         "fees"},
    {.name = "entries",
     .heading = "policy",
     .often = true,
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "1",
     .minimum = 1,
     .maximum = GAME_ENLIST_MAX,
     .help = "the most entries in one panel, each with its bond: as often as that it is drawn"},
    {.name = "allow-list",
     .heading = "policy",
     .kind = OPTION_LIST,
     .value = "FILE",
     .help = "a list of accounts, for jobs that name their panel"},
    {.name = "contact",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "URL",
     .help = "where this node is found, for its panels and clients (default: the address of "
             "--serve)"},
    {.name = "serve",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "ADDRESS:PORT",
     .help =
         "serve the end states that are kept, so that 'job fetch' has the model when its solver "
         "is gone (default: not at all)"},
    {.name = "keep-max",
     .heading = "keeping",
     .kind = OPTION_SIZE,
     .value = "BYTES",
     .fallback = "10G",
     .help = "bytes of end states of replayed segments to keep; those that nobody needs go first, "
             "models that are not delivered last"},
    {.name = "no-keep", .heading = "keeping", .kind = OPTION_FLAG, .help = "keep no end states"},
    {.name = "extra",
     .heading = "policy",
     .kind = OPTION_REAL,
     .value = "X",
     .fallback = "0.1",
     .help = "the fraction of segments without a place of ours to check in secret"},
    {.name = "checks",
     .heading = "machine",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "2",
     .minimum = 1,
     .maximum = NODE_CHECKS_MAX,
     .help = "checks at once, each in a process of its own; a dispute has one more to itself"},
    NODE_WORK_OPTIONS,
    POLICY_OPTIONS,
    POLICY_NODE_OPTIONS,
    {.name = "withdraw-at",
     .heading = "policy",
     .kind = OPTION_TEXT,
     .value = "AMOUNT",
     .fallback = "0.1ether",
     .help = "withdraw when that much is owed; 0: never"},
    {.name = "grace",
     .heading = "policy",
     .kind = OPTION_DURATION,
     .value = "TIME",
     .fallback = "10m",
     .maximum = GAME_PERIOD_MAX,
     .help = "when bonds or fees of ours wait for a solver that timed out, make the moves that "
             "anybody may make so long after it could have"},
    {.name = "page",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "ADDRESS:PORT",
     .help = "serve a status page at /, /metrics for Prometheus, and /health; with a port alone to "
             "this machine only (default: not at all)"},
    {.name = "forget-fault",
     .heading = "trials",
     .kind = OPTION_FLAG,
     .help = "sign again after a fault of this machine was found, and looked into",
     .command_line_only = true},
    {.name = "self-test",
     .heading = "trials",
     .kind = OPTION_FLAG,
     .help = "check steps that are known to be true or false, for ever; no ledger is touched",
     .command_line_only = true},
    {.name = "self-test-rounds",
     .heading = "trials",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "0",
     .help = "rounds of --self-test; 0: until it is stopped",
     .command_line_only = true},
    {.name = "self-test-seed",
     .heading = "trials",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "1",
     .help = "seed of --self-test",
     .command_line_only = true},
};

struct running_node {
    struct node_setup setup;
    struct status_server *server;
    struct notify notify;
    const char *allow_lists[OPTION_LIST_MAX];
};

static enum node_mode read_mode(const char *text)
{
    return strcmp(text, "observe") == 0  ? NODE_OBSERVE
           : strcmp(text, "defend") == 0 ? NODE_DEFEND
                                         : NODE_ACT;
}

static enum status read_panel(struct running_node *running, struct error *error)
{
    struct node_options *options = &running->setup.options;
    const struct options *given = running->setup.context->options;

    options->entries = (uint32_t)options_number(given, "entries");
    TRY(chain_contact(&options->contact, given, error));
    for (size_t i = 0; i < options_list_count(given, "allow-list"); i++) {
        running->allow_lists[options->allow_list_count++] =
            options_list_item(given, "allow-list", i);
    }
    options->allow_lists = running->allow_lists;
    return STATUS_OK;
}

/* What is kept, and where others find it. */
static enum status open_keep(struct running_node *running, struct error *error)
{
    struct node_setup *setup = &running->setup;
    const struct options *given = setup->context->options;
    const char *place = options_text(given, "serve");
    char folder[FILE_PATH_MAX];

    if (options_flag(given, "no-keep")) {
        return place == NULL
                   ? STATUS_OK
                   : error_set(error, STATUS_USAGE,
                               "--serve serves what is kept, and --no-keep keeps nothing");
    }
    TRY(node_setup_path(folder, given, NODE_FILE_KEPT, error));
    TRY(keep_open(&setup->keep, folder, place, options_number(given, "keep-max"), error));
    if (place == NULL) {
        return STATUS_OK;
    }
    log_info(setup->context->log, "verifier", "serving what is kept at %s",
             kept_url(setup->keep.folder));
    if (setup->options.contact == NULL && kept_can_be_called(setup->keep.folder)) {
        setup->options.contact = kept_url(setup->keep.folder);
    } else if (setup->options.contact == NULL) {
        log_warn(setup->context->log, "verifier",
                 "nobody can call %s: name this machine with --contact",
                 kept_url(setup->keep.folder));
    }
    return STATUS_OK;
}

static enum status read_options(struct node_options *options, const struct options *given,
                                struct error *error)
{
    options->mode = read_mode(options_text(given, "mode"));
    options->extra = options_real(given, "extra");
    options->checks_max = (uint32_t)options_number(given, "checks");
    options->grace_s = (uint32_t)options_number(given, "grace");
    if (options->extra > 1.0) {
        return error_set(error, STATUS_USAGE, "--extra is a fraction, from 0 to 1");
    }
    TRY(chain_amount(&options->withdraw_at, given, "withdraw-at", error));
    return policy_options_node(&options->policy, given, error);
}

static enum status open_server(struct running_node *running, struct error *error)
{
    const char *text = options_text(running->setup.context->options, "page");
    struct listen_place place;
    char path[FILE_PATH_MAX];

    if (text == NULL) {
        return STATUS_OK;
    }
    TRY(listen_place_read(&place, text, error));
    TRY(node_setup_path(path, running->setup.context->options, NODE_FILE_STORE, error));
    TRY(status_server_open(&running->server, path, &place, error));
    log_info(running->setup.context->log, "verifier", "status at http://%s%s%s:%u/",
             strchr(place.address, ':') == NULL ? "" : "[", place.address,
             strchr(place.address, ':') == NULL ? "" : "]", status_server_port(running->server));
    return STATUS_OK;
}

/* Opens the page before the ledger: it shows what the node waits for. */
static enum status open_node(struct running_node *running, struct error *error)
{
    struct node_setup *setup = &running->setup;
    const struct options *given = setup->context->options;
    struct ledger_retry retry = {.stop = &setup->stop,
                                 .notify = &running->notify,
                                 .log = setup->context->log,
                                 .area = "verifier",
                                 .terminal = stderr};
    enum status status;

    TRY(read_options(&setup->options, given, error));
    TRY(read_panel(running, error));
    TRY(node_setup_prepare(setup, error));
    TRY(store_set_number(&setup->store, "started_ms", (int64_t)node_setup_now_ms(NULL), error));
    TRY(open_server(running, error));
    TRY(open_keep(running, error));
    setup->retry = &retry;
    status = node_setup_open(setup, setup->options.mode != NODE_OBSERVE,
                             options_flag(given, "forget-fault"), error);
    setup->retry = NULL;
    return status;
}

/* A node lives on without money: it follows, checks, and earns nothing. */
static void warn_of_purse(struct node_setup *setup)
{
    const struct address *own = ledger_get_own(setup->ledger);
    char address[ADDRESS_TEXT_SIZE];
    struct error error;
    wei purse = 0;
    wei owed = 0;

    error_init(&error);
    if (setup->options.mode != NODE_OBSERVE &&
        ledger_get_account(setup->ledger, &purse, &owed, own, &error) == STATUS_OK && purse == 0) {
        address_print(address, own);
        log_warn(setup->context->log, "verifier",
                 "%s has no money: nothing is sealed or claimed until some is sent there", address);
    }
}

/* Once: a system that cannot keep checks from harm is no reason to make none. */
static void warn_of_freedom(const struct node_setup *setup)
{
    const char *device = setup->options.device;
    char text[CONFINE_TEXT_MAX];

    if (!confine_describe(text, device != NULL && strcmp(device, "cpu") != 0)) {
        log_warn(setup->context->log, "verifier", "%s", text);
    }
}

/* Until a stop. STATUS_GONE: the ledger's file or one of the node's own is not there any more. */
static enum status work_node(struct running_node *running, struct error *error)
{
    while (!stop_requested(&running->setup.stop)) {
        bool busy = false;

        error_init(error);
        notify_alive(&running->notify);
        if (node_round(&running->setup.node, &busy, error) == STATUS_OK) {
            node_setup_wait(&running->setup, busy ? 0 : IDLE_MS);
            continue;
        }
        if (error->status == STATUS_GONE) {
            return STATUS_GONE;
        }
        /* A full disk may have room later; a node that ends would miss deadlines. */
        if (error->status != STATUS_STOPPED) {
            log_error(running->setup.context->log, "verifier", "%s", error->text);
        }
        (void)stop_wait(&running->setup.stop, TROUBLE_MS / 1000.0);
    }
    return STATUS_OK;
}

/* ---- the self-test -------------------------------------------------------- */

static void log_wrong(void *context, const char *line)
{
    const struct command_context *command = context;

    log_error(command->log, "self-test", "%s", line);
}

static int show_self_test(struct command_context *context, const struct self_test_result *result)
{
    int shown = command_say(
        context,
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:s}", "proven", (json_int_t)result->proven, "refuted",
                  (json_int_t)result->refuted, "cannot_tell", (json_int_t)result->cannot_tell,
                  "fault", (json_int_t)result->fault, "wrong", (json_int_t)result->wrong,
                  "first_wrong", result->first_wrong),
        "true steps proven %" PRIu64 ", false steps refuted %" PRIu64
        ", withheld ones unanswered %" PRIu64 ", pretended faults found %" PRIu64
        "; wrong answers %" PRIu64 "\n%s%s",
        result->proven, result->refuted, result->cannot_tell, result->fault, result->wrong,
        result->wrong > 0 ? result->first_wrong : "", result->wrong > 0 ? "\n" : "");

    return shown == COMMAND_OK && result->wrong > 0 ? COMMAND_REFUSED : shown;
}

static int run_self_test(struct running_node *running)
{
    struct command_context *context = running->setup.context;
    char folder[FILE_PATH_MAX];
    struct self_test_options options = {.rounds =
                                            options_number(context->options, "self-test-rounds"),
                                        .seed = options_number(context->options, "self-test-seed"),
                                        .stop = &running->setup.stop,
                                        .folder = folder,
                                        .on_wrong = log_wrong,
                                        .context = context};
    struct self_test_result result;
    struct error error;
    enum status status;

    error_init(&error);
    TRY_OUT(node_setup_path(folder, context->options, NODE_FILE_SELF_TEST, &error));
    running->setup.options.checks_max = 1;
    TRY_OUT(node_setup_limits(&running->setup.options, context, &error));
    options.threads = running->setup.options.threads;
    options.device = running->setup.options.device;
    options.device_memory = running->setup.options.device_memory;
    TRY_OUT(workers_open(&running->setup.workers, 1, running->setup.options.check_time_s,
                         options_text(context->options, "launch"), &error));
    options.checks = workers_port(running->setup.workers);
    TRY_OUT(self_test(&result, &options, &error));
out:
    workers_close(running->setup.workers);
    return status == STATUS_OK ? show_self_test(context, &result) : command_fail(context, &error);
}

static int run_node(struct command_context *context)
{
    struct running_node *running = calloc(1, sizeof(*running));
    struct error error;
    int code = COMMAND_OK;

    error_init(&error);
    if (running == NULL) {
        (void)error_set(&error, STATUS_NO_MEMORY, "no memory for a node");
        return command_fail(context, &error);
    }
    running->setup.context = context;
    notify_open(&running->notify);
    /* Open before anything that takes long: a stop while the node opens ends it too. */
    if (stop_open(&running->setup.stop, &error) != STATUS_OK) {
        notify_close(&running->notify);
        free(running);
        return command_fail(context, &error);
    }
    if (options_flag(context->options, "self-test")) {
        code = run_self_test(running);
    } else {
        enum status status = open_node(running, &error);

        if (status == STATUS_OK) {
            log_info(context->log, "verifier", "started, in %s", running->setup.folder);
            warn_of_purse(&running->setup);
            warn_of_freedom(&running->setup);
            /* Only now does a service manager hear that it runs: what it opened could have
             * failed. */
            notify_ready(&running->notify, "following the ledger");
            status = work_node(running, &error);
            notify_stopping(&running->notify);
            log_info(context->log, "verifier", "stopped");
            code = status == STATUS_OK ? COMMAND_OK : command_fail(context, &error);
            /* A stop while it opened is no failure. */
        } else if (status == STATUS_STOPPED) {
            log_info(context->log, "verifier", "%s", error.text);
        } else {
            code = command_fail(context, &error);
        }
        status_server_close(running->server);
        node_setup_close(&running->setup);
    }
    stop_close(&running->setup.stop);
    notify_close(&running->notify);
    free(running);
    return code;
}

/* ---- status, claims ------------------------------------------------------- */

static const struct option_spec view_options[] = {NODE_STATE_OPTION};

static int show_view(struct command_context *context,
                     enum status (*make)(struct sheet *view, struct store *store,
                                         struct error *error))
{
    char path[FILE_PATH_MAX];
    struct store store = {0};
    struct sheet view;
    struct error error;
    enum status status;

    error_init(&error);
    sheet_init(&view);
    TRY_OUT(node_setup_path(path, context->options, NODE_FILE_STORE, &error));
    TRY_OUT(store_open(&store, path, STORE_READ, &error));
    TRY_OUT(make(&view, &store, &error));
out:
    store_close(&store);
    if (status != STATUS_OK) {
        sheet_release(&view);
        return command_fail(context, &error);
    }
    return command_show(context, &view);
}

static int run_status(struct command_context *context)
{
    return show_view(context, node_status_view);
}

static int run_claims(struct command_context *context)
{
    return show_view(context, node_claims_view);
}

/* ---- the verdict database ------------------------------------------------- */

static enum status export_verdicts(struct command_context *context, struct verdict_db *verdicts,
                                   struct error *error)
{
    const char *path = context->options->argument_count > 1 ? context->options->arguments[1] : NULL;
    json_t *view = NULL;
    char *text = NULL;
    enum status status = verdict_db_export(&view, verdicts, error);

    if (status != STATUS_OK) {
        return status;
    }
    text = json_dumps(view, JSON_INDENT(1));
    json_decref(view);
    if (text == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to export the verdict database");
    }
    if (path != NULL) {
        status = file_write_new(path, error, text, strlen(text), 0600);
    } else {
        (void)fprintf(context->out, "%s\n", text);
    }
    free(text);
    return status;
}

static enum status import_verdicts(struct command_context *context, struct verdict_db *verdicts,
                                   uint64_t *added, struct error *error)
{
    json_t *view = NULL;
    enum status status;

    if (context->options->argument_count < 2) {
        return error_set(error, STATUS_USAGE, "import what file?");
    }
    status = strict_json_read(&view, error, context->options->arguments[1],
                              VERDICT_DB_EXPORT_SIZE_MAX, 4);
    if (status == STATUS_OK) {
        status = verdict_db_import(added, verdicts, view, error);
    }
    json_decref(view);
    return status;
}

static int run_verdicts(struct command_context *context)
{
    const char *what = context->options->arguments[0];
    bool import = strcmp(what, "import") == 0;
    struct verdict_db *verdicts = NULL;
    char path[FILE_PATH_MAX];
    struct error error;
    uint64_t added = 0;
    enum status status;

    error_init(&error);
    if (!import && strcmp(what, "export") != 0) {
        return command_usage(context, "the verdict database is exported or imported, not '%.40s'",
                             what);
    }
    TRY_OUT(node_setup_folder(path, context->options, &error));
    if (import) {
        TRY_OUT(file_private_folder(path, &error));
    }
    TRY_OUT(node_setup_path(path, context->options, NODE_FILE_VERDICTS, &error));
    /* A new and empty database, exported, would be taken for a backup. */
    if (!import && !file_exists(path)) {
        status = error_set(&error, STATUS_USAGE, "no node has kept a verdict database at %s", path);
        error_advise(&error, "name the node's folder with --state");
        goto out;
    }
    TRY_OUT(verdict_db_open(&verdicts, path, &error));
    if (verdict_db_damage(verdicts)[0] != '\0') {
        log_error(context->log, "verifier", "%s", verdict_db_damage(verdicts));
    }
    TRY_OUT(import ? import_verdicts(context, verdicts, &added, &error)
                   : export_verdicts(context, verdicts, &error));
out:
    verdict_db_close(verdicts);
    if (status != STATUS_OK) {
        return command_fail(context, &error);
    }
    if (!import) {
        return context->options->argument_count > 1
                   ? command_say(context,
                                 json_pack("{s:s}", "path", context->options->arguments[1]), "%s",
                                 "")
                   : COMMAND_OK;
    }
    return command_say(context, json_pack("{s:I}", "added", (json_int_t)added),
                       "%" PRIu64 " verdicts are new\n", added);
}

/* ---- the table ------------------------------------------------------------ */

#define OPTIONS(specs) .options = (specs), .option_count = sizeof(specs) / sizeof((specs)[0])

static const struct command commands[] = {
    {.name = "node",
     .summary = "check what solvers commit, say in panels what is right, claim what is not",
     .description =
         "Follows the ledger, enlists in panels by its policy, checks segments by running them "
         "again, and seals its verdicts or claims. "
         "Fetches everything by its root from mirrors that it does not trust. Writes each verdict "
         "into the verdict database before it signs, and claims a difference only after a second "
         "replay with other instructions. Stop it with SIGTERM; it resumes where it was.",
     .example = "lockstep verifier node --ledger local:try.ledger --mirror text.run\n"
                "lockstep verifier node --mode observe --mirror https://solver.example\n"
                "lockstep verifier node --self-test --self-test-rounds 20",
     OPTIONS(node_options),
     .run = run_node},
    {.name = "status",
     .summary = "show what the node does, has found, and earns",
     .description = "Reads the node's database, whether the node runs or not: jobs, the queue, "
                    "every segment that was not checked and why, moves, mirrors, money.",
     .example = "lockstep verifier status",
     OPTIONS(view_options),
     .run = run_status},
    {.name = "claims",
     .summary = "show the node's claims and their outcomes",
     .example = "lockstep verifier claims --json",
     OPTIONS(view_options),
     .run = run_claims},
    {.name = "claim",
     .summary = "claim by hand that a step is false, and follow the claim to its verdict",
     .description =
         "For somebody who has seen a difference, for example with 'lockstep audit'. The segment "
         "of the step is run again as the node would, twice where it differs: what would not win "
         "is not claimed, and nothing overrides that. Then it shows what is staked and what it may "
         "cost, asks (--yes does not), sends the claim and makes every move of the dispute until "
         "the verdict. Interrupted, it goes on with the same command, or with a node in the same "
         "folder. STEP counts from 0 over the whole job. An evidence file of an audit says the "
         "step by itself (--evidence), must be about what stands on the "
         "ledger, and convicts in one move an accused whose trace it is about. An accused that "
         "replies with another trace is queried as without evidence.",
     .arguments = "JOB [STEP]",
     .example = "lockstep verifier claim 0x41...c7 1042 --ledger local:try.ledger --mirror "
                "text.run\n"
                "lockstep verifier claim 0x41...c7 --evidence 3f1c...-step-1042.evidence\n"
                "lockstep verifier claim 0x41...c7 --segment 4 --yes",
     OPTIONS(claim_command_options),
     .run = claim_command},
    {.name = "verdicts",
     .summary = "export or import the verdict database, to move a node to another machine",
     .description = "The verdict database keeps a node from ever signing two statements that "
                    "contradict each other, so it must move with the key. The node must be "
                    "stopped. The export holds the node's secret: who has it foresees its secret "
                    "samples. An import that contradicts the database changes nothing.",
     .arguments = "export|import [FILE]",
     .example = "lockstep verifier verdicts export verdicts.json\n"
                "lockstep verifier verdicts import verdicts.json",
     OPTIONS(view_options),
     .run = run_verdicts},
    {.name = "plan",
     .summary = "how much to check, what that costs and earns, and when cheating pays",
     .description =
         "From the size of a job, how much of it may be false and the confidence that is wanted: "
         "how many segments to check. With the time of a step (--seconds-per-step, or measured on "
         "JOB with --data): how long. With --reward and --price: what a verdict earns, and "
         "the stake and detection at which cheating stops to pay. docs/ECONOMICS.md has the "
         "formulas. Terms that are not given are those of 'lockstep job open'.",
     .arguments = "[JOB]",
     .example = "lockstep verifier plan --segments 1000 --bad 1 --confidence 0.99\n"
                "lockstep verifier plan text.job --data text.u8 --reward 0.5eth --price 0.0004eth",
     OPTIONS(plan_command_options),
     .run = plan_command},
};

static void look_at_checks(struct doctor_finding *finding, const struct command_context *context)
{
    (void)context;
    finding->grade = confine_describe(finding->text, false) ? DOCTOR_GOOD : DOCTOR_NOTE;
    (void)snprintf(finding->advice, sizeof(finding->advice), "%s",
                   finding->grade == DOCTOR_GOOD
                       ? ""
                       : "run the node as a user of its own, on a newer kernel");
}

static const struct doctor_check doctor_checks[] = {{"checks", look_at_checks}};

const struct command_group verifier_commands = {
    .name = "verifier",
    .summary = "check what solvers commit: the verifier's node, and what it found",
    .commands = commands,
    .command_count = sizeof(commands) / sizeof(commands[0]),
    .checks = doctor_checks,
    .check_count = sizeof(doctor_checks) / sizeof(doctor_checks[0]),
};
