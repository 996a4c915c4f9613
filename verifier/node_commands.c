/* node_commands.c - `lockstep verifier run|status|claims|book`. */
#include <inttypes.h>
#include <omp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hex.h"
#include "base/host.h"
#include "base/notify.h"
#include "base/strict_json.h"
#include "chain/commands.h"
#include "engine/backend.h"
#include "verifier/commands.h"
#include "verifier/node.h"
#include "verifier/node_views.h"
#include "verifier/plan_commands.h"
#include "verifier/self_test.h"
#include "verifier/status_server.h"

enum {
    IDLE_MS = 500,
    TROUBLE_MS = 3000,
    CHECKS_DEFAULT = 2,
};

/* ---- where the node's files are ------------------------------------------- */

static const char *const node_files[] = {"node.db", "verdicts.db", "cache", "self-test"};

enum node_file {
    FILE_STORE,
    FILE_BOOK,
    FILE_CACHE,
    FILE_SELF_TEST,
};

static enum status state_folder(char path[FILE_PATH_MAX], const struct options *given,
                                struct error *error)
{
    const char *named = options_text(given, "state");

    if (named == NULL) {
        return file_place(path, FILE_PATH_MAX, error, FILE_PLACE_STATE, "verifier");
    }
    if (strlen(named) >= FILE_PATH_MAX) {
        return error_set(error, STATUS_USAGE, "the path of the node's state is too long");
    }
    memcpy(path, named, strlen(named) + 1);
    return STATUS_OK;
}

static enum status node_path(char path[FILE_PATH_MAX], const struct options *given,
                             enum node_file which, struct error *error)
{
    char folder[FILE_PATH_MAX];
    enum status status = state_folder(folder, given, error);

    return status == STATUS_OK
               ? file_path_join(path, FILE_PATH_MAX, error, folder, node_files[which])
               : status;
}

#define STATE_OPTION                                                                               \
    {                                                                                              \
        .name = "state", .kind = OPTION_TEXT, .value = "FOLDER",                                   \
        .help = "the node's queue, verdict book and cache (default: verifier below the state "     \
                "folder)"                                                                          \
    }

/* ---- run ------------------------------------------------------------------ */

static const struct option_spec run_options[] = {
    CHAIN_LEDGER_OPTIONS,
    CHAIN_KEY_OPTIONS,
    CHAIN_ACCOUNT_OPTION,
    STATE_OPTION,
    {.name = "mode",
     .kind = OPTION_CHOICE,
     .value = "MODE",
     .fallback = "act",
     .choices = "observe|defend|act",
     .help = "observe: check and tell, sign nothing; defend: and claim; act: and attest, for fees"},
    {.name = "mirror",
     .kind = OPTION_LIST,
     .value = "URL",
     .help = "where jobs, state roots, checkpoints and data are fetched: http(s)://..., a folder "
             "that a solver publishes to, or a bundle; any number of times"},
    {.name = "data",
     .kind = OPTION_LIST,
     .value = "FILE",
     .help = "a data file of any job, found by its root; any number of times"},
    {.name = "share",
     .kind = OPTION_REAL,
     .value = "X",
     .fallback = "1",
     .help = "the fraction of segments to attest, where attestors are paid"},
    {.name = "extra",
     .kind = OPTION_REAL,
     .value = "X",
     .fallback = "0.1",
     .help = "the fraction of all others to check in secret"},
    {.name = "doubt",
     .kind = OPTION_REAL,
     .value = "X",
     .fallback = "0.1",
     .help = "the fraction of what others attested to compare with a trace of our own, in secret"},
    {.name = "checks",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "2",
     .minimum = 1,
     .maximum = NODE_CHECKS_MAX,
     .help = "checks at once, each in a process of its own; a dispute has one more to itself"},
    {.name = "threads",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = 1024,
     .help = "threads of one check (default: the cores, shared by the checks)"},
    {.name = "device",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .fallback = "cpu",
     .help = "where checks compute: cpu, cuda, cuda:N, several with commas, or auto. A difference "
             "that a GPU finds is run again on the CPU"},
    {.name = "device-memory",
     .kind = OPTION_SIZE,
     .value = "BYTES",
     .help = "memory of each GPU that one check may take (default: all of it)"},
    {.name = "memory-max",
     .kind = OPTION_SIZE,
     .value = "BYTES",
     .help = "memory of one check (default: most of the machine's, shared by the checks)"},
    {.name = "disk-max",
     .kind = OPTION_SIZE,
     .value = "BYTES",
     .fallback = "20G",
     .minimum = 1 << 20,
     .help = "of the cache of what was fetched, and of any one file"},
    {.name = "bandwidth-max",
     .kind = OPTION_SIZE,
     .value = "BYTES",
     .fallback = "0",
     .help = "bytes a second that are fetched, by all checks; 0: no limit"},
    {.name = "patience",
     .kind = OPTION_DURATION,
     .value = "TIME",
     .fallback = "20s",
     .minimum = 1,
     .maximum = 3600,
     .help = "how long a mirror may be silent or trickle"},
    {.name = "check-time",
     .kind = OPTION_DURATION,
     .value = "TIME",
     .fallback = "1h",
     .minimum = 1,
     .maximum = 2592000,
     .help = "of one check; then it is stopped and tried again"},
    {.name = "reach",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "16",
     .maximum = CHECK_REACH_MAX - 1,
     .help = "segments that may be replayed on the way, for want of a checkpoint"},
    {.name = "withdraw-at",
     .kind = OPTION_TEXT,
     .value = "AMOUNT",
     .fallback = "0.1ether",
     .help = "withdraw when that much is owed; 0: never"},
    {.name = "status",
     .kind = OPTION_TEXT,
     .value = "ADDRESS:PORT",
     .help = "serve a status page at /, /metrics for Prometheus, and /health; with a port alone to "
             "this machine only (default: not at all)"},
    {.name = "forget-fault",
     .kind = OPTION_FLAG,
     .help = "sign again after a fault of this machine was found, and looked into",
     .command_line_only = true},
    {.name = "self-test",
     .kind = OPTION_FLAG,
     .help = "check steps that are known to be true or false, for ever; no ledger is touched",
     .command_line_only = true},
    {.name = "rounds",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "0",
     .help = "of the self-test; 0: until it is stopped",
     .command_line_only = true},
    {.name = "seed",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "1",
     .help = "of the self-test",
     .command_line_only = true},
};

/* Everything that a running node owns. */
struct running_node {
    struct command_context *context;
    struct stop stop;
    struct signer *signer;
    struct ledger *ledger;
    struct store store;
    struct book *book;
    struct workers *workers;
    struct status_server *server;
    struct notify notify;
    struct node node;
    struct node_options options;
    const char *mirrors[OPTION_LIST_MAX];
    const char *data[OPTION_LIST_MAX];
    char folder[FILE_PATH_MAX];
    char cache[FILE_PATH_MAX];
};

static uint64_t system_now_ms(void *context)
{
    struct timespec now;

    (void)context;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static enum node_mode read_mode(const char *text)
{
    return strcmp(text, "observe") == 0  ? NODE_OBSERVE
           : strcmp(text, "defend") == 0 ? NODE_DEFEND
                                         : NODE_ACT;
}

/* A GPU that was asked for and does not start is said now, not by every check. */
static enum status read_device(struct node_options *options, const struct options *given,
                               struct error *error)
{
    struct machine_options machine;
    enum status status = machine_options_default(&machine, error);

    options->device = options_text(given, "device");
    options->device_memory = options_number(given, "device-memory");
    if (strlen(options->device) >= CHECK_DEVICE_MAX) {
        return error_set(error, STATUS_USAGE, "--device names too many devices");
    }
    return status == STATUS_OK ? machine_options_device(&machine, options->device, error) : status;
}

static void read_limits(struct node_options *options, const struct options *given)
{
    struct host host;

    host_look(&host);
    options->checks_max = (uint32_t)options_number(given, "checks");
    options->threads = (uint32_t)options_number(given, "threads");
    if (options->threads == 0) {
        options->threads = host.cores / options->checks_max;
        options->threads = options->threads == 0 ? 1 : options->threads;
    }
    options->memory_max = options_number(given, "memory-max");
    if (options->memory_max == 0) {
        options->memory_max = host.memory_bytes / 4 * 3 / (options->checks_max + 1);
    }
    options->disk_max = options_number(given, "disk-max");
    options->bandwidth_max = options_number(given, "bandwidth-max");
    options->patience_s = (uint32_t)options_number(given, "patience");
    options->check_time_s = (uint32_t)options_number(given, "check-time");
    options->reach = (uint32_t)options_number(given, "reach");
}

static enum status read_options(struct running_node *running, struct error *error)
{
    const struct options *given = running->context->options;
    struct node_options *options = &running->options;

    options->mode = read_mode(options_text(given, "mode"));
    options->share = options_real(given, "share");
    options->extra = options_real(given, "extra");
    options->doubt = options_real(given, "doubt");
    if (options->share > 1.0 || options->extra > 1.0 || options->doubt > 1.0) {
        return error_set(error, STATUS_USAGE,
                         "--share, --extra and --doubt are fractions, from 0 to 1");
    }
    if (read_device(options, given, error) != STATUS_OK) {
        return error->status;
    }
    read_limits(options, given);
    for (size_t i = 0; i < options_list_count(given, "mirror"); i++) {
        running->mirrors[options->mirror_count++] = options_list_item(given, "mirror", i);
    }
    for (size_t i = 0; i < options_list_count(given, "data"); i++) {
        running->data[options->data_count++] = options_list_item(given, "data", i);
    }
    options->mirrors = running->mirrors;
    options->data = running->data;
    options->cache = running->cache;
    if (wei_parse(&options->withdraw_at, options_text(given, "withdraw-at")) != STATUS_OK) {
        return error_set(error, STATUS_USAGE, "--withdraw-at: not an amount such as 0.1ether");
    }
    return node_path(running->cache, given, FILE_CACHE, error);
}

static bool is_stopped(void *context)
{
    return stop_requested(context);
}

static enum status open_ledger(struct running_node *running, struct error *error)
{
    struct ledger_options options;
    char state_dir[FILE_PATH_MAX];
    enum status status = STATUS_OK;

    if (running->options.mode != NODE_OBSERVE) {
        status = chain_unlock(&running->signer, running->context, error);
    }
    if (status == STATUS_OK) {
        status =
            chain_ledger_options(&options, state_dir, running->context, running->signer, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    /* A stop must not wait for an endpoint. */
    options.stopped = is_stopped;
    options.context = &running->stop;
    return ledger_open(&running->ledger, &options, error);
}

/* A database belongs to one account on one ledger: mixing two would send moves of one to the
 * other. */
static enum status check_owner(struct running_node *running, struct error *error)
{
    const struct ledger_place *place = ledger_get_place(running->ledger);
    char registry[ADDRESS_TEXT_SIZE];
    char account[ADDRESS_TEXT_SIZE];
    char owner[STORE_REASON_MAX];
    char before[STORE_REASON_MAX];
    enum status status = store_text(&running->store, before, "owner", error);

    address_print(registry, &place->registry);
    address_print(account, ledger_get_own(running->ledger));
    (void)snprintf(owner, sizeof(owner), "%s at %s, %s", account, place->chain, registry);
    if (status == STATUS_OK && before[0] != '\0' && strcmp(before, owner) != 0) {
        (void)error_set(error, STATUS_REFUSED, "this state is that of the node of %s", before);
        error_advise(error, "name another folder with --state");
        return STATUS_REFUSED;
    }
    return status == STATUS_OK ? store_set_text(&running->store, "owner", owner, error) : status;
}

static enum status open_files(struct running_node *running, struct error *error)
{
    const struct options *given = running->context->options;
    char path[FILE_PATH_MAX];
    enum status status = state_folder(running->folder, given, error);

    if (status == STATUS_OK) {
        status = file_make_folder(running->folder, error, 0700);
    }
    if (status == STATUS_OK) {
        status = node_path(path, given, FILE_BOOK, error);
    }
    if (status == STATUS_OK) {
        status = book_open(&running->book, path, error);
    }
    if (status == STATUS_OK) {
        status = node_path(path, given, FILE_STORE, error);
    }
    return status == STATUS_OK ? store_open(&running->store, path, STORE_WRITE, error) : status;
}

static enum status open_node(struct running_node *running, struct error *error)
{
    const struct options *given = running->context->options;
    struct node_ports ports = {
        .store = &running->store, .now_ms = system_now_ms, .log = running->context->log};
    enum status status = read_options(running, error);

    if (status == STATUS_OK) {
        status = open_files(running, error);
    }
    if (status == STATUS_OK) {
        status = open_ledger(running, error);
    }
    if (status == STATUS_OK) {
        status = check_owner(running, error);
    }
    if (status == STATUS_OK && options_flag(given, "forget-fault")) {
        status = store_set_text(&running->store, "fault", "", error);
    }
    if (status == STATUS_OK) {
        status = workers_open(&running->workers, running->options.checks_max + 1,
                              running->options.check_time_s, NULL, error);
    }
    if (status == STATUS_OK) {
        ports.ledger = running->ledger;
        ports.book = running->book;
        ports.checks = workers_port(running->workers);
        status = node_open(&running->node, &running->options, &ports, error);
    }
    if (status == STATUS_OK) {
        status =
            store_set_number(&running->store, "started_ms", (int64_t)system_now_ms(NULL), error);
    }
    return status;
}

static enum status open_server(struct running_node *running, struct error *error)
{
    const char *text = options_text(running->context->options, "status");
    struct status_server_place place;
    char path[FILE_PATH_MAX];
    enum status status;

    if (text == NULL) {
        return STATUS_OK;
    }
    status = status_server_place(&place, text, error);
    if (status == STATUS_OK) {
        status = node_path(path, running->context->options, FILE_STORE, error);
    }
    if (status == STATUS_OK) {
        status = status_server_open(&running->server, path, &place, error);
    }
    if (status == STATUS_OK) {
        log_info(running->context->log, "verifier", "status at http://%s%s%s:%u/",
                 strchr(place.address, ':') == NULL ? "" : "[", place.address,
                 strchr(place.address, ':') == NULL ? "" : "]",
                 status_server_port(running->server));
    }
    return status;
}

static void close_node(struct running_node *running)
{
    status_server_close(running->server);
    node_close(&running->node);
    workers_close(running->workers);
    ledger_close(running->ledger);
    store_close(&running->store);
    book_close(running->book);
    signer_free(running->signer);
}

/* Until an answer comes, a stop is asked for, or the time is over. */
static void wait_for_something(struct running_node *running, int wait_ms)
{
    struct pollfd polled[WORKERS_MAX + 1] = {{.fd = running->stop.descriptor, .events = POLLIN}};
    int descriptors[WORKERS_MAX];
    uint32_t count = workers_descriptors(running->workers, descriptors, WORKERS_MAX);

    for (uint32_t i = 0; i < count; i++) {
        polled[i + 1] = (struct pollfd){.fd = descriptors[i], .events = POLLIN};
    }
    (void)poll(polled, count + 1, wait_ms);
}

static void work(struct running_node *running)
{
    while (!stop_requested(&running->stop)) {
        struct error error;
        bool busy = false;

        error_init(&error);
        notify_alive(&running->notify);
        if (node_round(&running->node, &busy, &error) == STATUS_OK) {
            wait_for_something(running, busy ? 0 : IDLE_MS);
            continue;
        }
        /* A disk that is full today has room tomorrow; a node that is gone misses deadlines. */
        if (error.status != STATUS_STOPPED) {
            log_error(running->context->log, "verifier", "%s", error.text);
        }
        (void)stop_wait(&running->stop, TROUBLE_MS / 1000.0);
    }
}

/* ---- the self-test -------------------------------------------------------- */

static void tell_wrong(void *context, const char *line)
{
    const struct command_context *told = context;

    log_error(told->log, "self-test", "%s", line);
}

static int show_self_test(struct command_context *context, const struct self_test_result *result)
{
    int code = result->wrong == 0 ? COMMAND_OK : COMMAND_REFUSED;

    if (context->json) {
        int emitted = command_emit(
            context,
            json_pack("{s:I, s:I, s:I, s:I, s:I, s:s}", "proven", (json_int_t)result->proven,
                      "refuted", (json_int_t)result->refuted, "cannot_tell",
                      (json_int_t)result->cannot_tell, "fault", (json_int_t)result->fault, "wrong",
                      (json_int_t)result->wrong, "first_wrong", result->first_wrong));

        return emitted == COMMAND_OK ? code : emitted;
    }
    (void)fprintf(context->out,
                  "true steps proven %" PRIu64 ", false steps refuted %" PRIu64
                  ", withheld ones not told %" PRIu64 ", pretended faults seen %" PRIu64
                  "; wrong answers %" PRIu64 "\n",
                  result->proven, result->refuted, result->cannot_tell, result->fault,
                  result->wrong);
    if (result->wrong > 0) {
        (void)fprintf(context->out, "%s\n", result->first_wrong);
    }
    return code;
}

static int run_self_test(struct running_node *running)
{
    struct command_context *context = running->context;
    char folder[FILE_PATH_MAX];
    struct self_test_options options = {.rounds = options_number(context->options, "rounds"),
                                        .seed = options_number(context->options, "seed"),
                                        .stop = &running->stop,
                                        .folder = folder,
                                        .told = tell_wrong,
                                        .context = context};
    struct self_test_result result;
    struct error error;
    enum status status;

    error_init(&error);
    status = node_path(folder, context->options, FILE_SELF_TEST, &error);
    if (status == STATUS_OK) {
        status = read_device(&running->options, context->options, &error);
    }
    if (status == STATUS_OK) {
        read_limits(&running->options, context->options);
        options.threads = running->options.threads;
        options.device = running->options.device;
        options.device_memory = running->options.device_memory;
        status = workers_open(&running->workers, 1, running->options.check_time_s, NULL, &error);
    }
    if (status == STATUS_OK) {
        options.checks = workers_port(running->workers);
        status = self_test(&result, &options, &error);
    }
    workers_close(running->workers);
    return status == STATUS_OK ? show_self_test(context, &result) : command_fail(context, &error);
}

static int run_run(struct command_context *context)
{
    struct running_node *running = calloc(1, sizeof(*running));
    struct error error;
    int code = COMMAND_OK;

    error_init(&error);
    if (running == NULL) {
        (void)error_set(&error, STATUS_NO_MEMORY, "no memory for a node");
        return command_fail(context, &error);
    }
    running->context = context;
    notify_open(&running->notify);
    if (stop_open(&running->stop, &error) != STATUS_OK) {
        notify_close(&running->notify);
        free(running);
        return command_fail(context, &error);
    }
    if (options_flag(context->options, "self-test")) {
        code = run_self_test(running);
    } else {
        enum status status = open_node(running, &error);

        if (status == STATUS_OK) {
            status = open_server(running, &error);
        }
        if (status == STATUS_OK) {
            log_info(context->log, "verifier", "started, in %s", running->folder);
            notify_ready(&running->notify, "following the ledger");
            work(running);
            notify_stopping(&running->notify);
            log_info(context->log, "verifier", "stopped");
        } else {
            code = command_fail(context, &error);
        }
        close_node(running);
    }
    stop_close(&running->stop);
    notify_close(&running->notify);
    free(running);
    return code;
}

/* ---- status, claims ------------------------------------------------------- */

static const struct option_spec view_options[] = {STATE_OPTION};

static int show(struct command_context *context,
                enum status (*view)(json_t **made, struct store *store, struct error *error),
                void (*print)(FILE *out, const json_t *made))
{
    char path[FILE_PATH_MAX];
    struct store store = {{NULL}};
    json_t *made = NULL;
    struct error error;
    enum status status;

    error_init(&error);
    status = node_path(path, context->options, FILE_STORE, &error);
    if (status == STATUS_OK) {
        status = store_open(&store, path, STORE_READ, &error);
    }
    if (status == STATUS_OK) {
        status = view(&made, &store, &error);
        store_close(&store);
    }
    if (status != STATUS_OK) {
        return command_fail(context, &error);
    }
    if (context->json) {
        return command_emit(context, made);
    }
    print(context->out, made);
    json_decref(made);
    return COMMAND_OK;
}

static int run_status(struct command_context *context)
{
    return show(context, node_status_view, node_status_print);
}

static int run_claims(struct command_context *context)
{
    return show(context, node_claims_view, node_claims_print);
}

/* ---- the book ------------------------------------------------------------- */

static enum status export_book(struct command_context *context, struct book *book,
                               struct error *error)
{
    const char *path = context->options->argument_count > 1 ? context->options->arguments[1] : NULL;
    json_t *view = NULL;
    char *text = NULL;
    enum status status = book_export(&view, book, error);

    if (status != STATUS_OK) {
        return status;
    }
    text = json_dumps(view, JSON_INDENT(1));
    json_decref(view);
    if (text == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to export the verdict book");
    }
    if (path != NULL) {
        status = file_write_new(path, error, text, strlen(text), 0600);
    } else {
        (void)fprintf(context->out, "%s\n", text);
    }
    free(text);
    return status;
}

static enum status import_book(struct command_context *context, struct book *book, uint64_t *added,
                               struct error *error)
{
    json_t *view = NULL;
    enum status status;

    if (context->options->argument_count < 2) {
        return error_set(error, STATUS_USAGE, "import what file?");
    }
    status =
        strict_json_read(&view, error, context->options->arguments[1], BOOK_EXPORT_SIZE_MAX, 4);
    if (status == STATUS_OK) {
        status = book_import(added, book, view, error);
    }
    json_decref(view);
    return status;
}

static int run_book(struct command_context *context)
{
    const char *what = context->options->arguments[0];
    bool import = strcmp(what, "import") == 0;
    struct book *book = NULL;
    char path[FILE_PATH_MAX];
    struct error error;
    uint64_t added = 0;
    enum status status;

    error_init(&error);
    if (!import && strcmp(what, "export") != 0) {
        return command_usage(context, "the verdict book is exported or imported, not '%.40s'",
                             what);
    }
    status = state_folder(path, context->options, &error);
    if (status == STATUS_OK) {
        status = file_make_folder(path, &error, 0700);
    }
    if (status == STATUS_OK) {
        status = node_path(path, context->options, FILE_BOOK, &error);
    }
    if (status == STATUS_OK) {
        status = book_open(&book, path, &error);
    }
    if (status == STATUS_OK) {
        status = import ? import_book(context, book, &added, &error)
                        : export_book(context, book, &error);
    }
    book_close(book);
    if (status != STATUS_OK) {
        return command_fail(context, &error);
    }
    if (!import) {
        return COMMAND_OK;
    }
    if (context->json) {
        return command_emit(context, json_pack("{s:I}", "added", (json_int_t)added));
    }
    (void)fprintf(context->out, "%" PRIu64 " verdicts are new\n", added);
    return COMMAND_OK;
}

/* ---- the table ------------------------------------------------------------ */

#define OPTIONS(specs) .options = (specs), .option_count = sizeof(specs) / sizeof((specs)[0])

static const struct command commands[] = {
    {.name = "run",
     .summary = "check what solvers commit, attest what is true, claim what is not",
     .description =
         "Follows the ledger, checks segments by running them again, and attests or whistles. "
         "Everything is fetched by its root from mirrors that are believed nothing. Verdicts are "
         "in the verdict book before anything is signed, and a difference is only claimed after a "
         "second replay with other instructions. Stop it with SIGTERM; it goes on where it was.",
     .example = "lockstep verifier run --ledger local:try.ledger --mirror text.run\n"
                "lockstep verifier run --mode observe --mirror https://solver.example\n"
                "lockstep verifier run --self-test --rounds 20",
     OPTIONS(run_options),
     .run = run_run},
    {.name = "status",
     .summary = "what the node does, has found, and earns",
     .description = "Reads the node's database, whether the node runs or not: jobs, the queue, "
                    "every segment that was not checked with the reason, moves, mirrors, money.",
     .example = "lockstep verifier status",
     OPTIONS(view_options),
     .run = run_status},
    {.name = "claims",
     .summary = "the node's claims, and what became of them",
     .example = "lockstep verifier claims --json",
     OPTIONS(view_options),
     .run = run_claims},
    {.name = "book",
     .summary = "export or import the verdict book, to move a node to another machine",
     .description = "The verdict book keeps a node from ever signing two statements that "
                    "contradict each other, so it must move with the key. The node must be "
                    "stopped. The export holds the node's secret: who has it foresees its secret "
                    "samples. An import that contradicts the book changes nothing.",
     .arguments = "export|import [FILE]",
     .example = "lockstep verifier book export verdicts.json\n"
                "lockstep verifier book import verdicts.json",
     OPTIONS(view_options),
     .run = run_book},
    {.name = "plan",
     .summary = "how much to check, what that costs and earns, and when cheating pays",
     .description =
         "From the size of a job, how much of it may be false and the confidence that is wanted: "
         "how many segments to check. With the time of a step (--seconds-per-step, or measured on "
         "JOB with --data): how long. With --reward and --price: what an attestation earns, and "
         "the stake and detection at which cheating stops to pay. docs/ECONOMICS.md has the "
         "formulas. Terms that are not given are those of 'lockstep job open'.",
     .arguments = "[JOB]",
     .example = "lockstep verifier plan --segments 1000 --bad 1 --confidence 0.99\n"
                "lockstep verifier plan text.job --data text.u8 --reward 0.5eth --price 0.0004eth",
     OPTIONS(plan_command_options),
     .run = plan_command},
};

const struct command_group verifier_commands = {
    .name = "verifier",
    .summary = "the node that checks what solvers commit",
    .commands = commands,
    .command_count = sizeof(commands) / sizeof(commands[0]),
};
