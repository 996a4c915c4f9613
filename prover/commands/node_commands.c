/* node_commands.c - see node_commands.h. */
#include "prover/commands/node_commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cli/doctor.h"
#include "base/io/file.h"
#include "base/io/notify.h"
#include "base/io/progress.h"
#include "base/steady.h"
#include "proofs/hash/sha256.h"
#include "prover/commands/access.h"
#include "prover/node/node_page.h"
#include "prover/node/node_view.h"
#include "prover/node/solver_node.h"

#define SHEET_MS 1000

#define NODE_STATE_OPTION                                                                          \
    {                                                                                              \
        .name = "state", .heading = "keeping", .often = true, .kind = OPTION_TEXT,                 \
        .value = "FOLDER",                                                                         \
        .help = "the node's jobs, bundles and status (default: solver below the state folder)"     \
    }

const struct option_spec node_commands_status_options[NODE_COMMANDS_STATUS_OPTIONS] = {
    NODE_STATE_OPTION};

const struct option_spec node_commands_node_options[NODE_COMMANDS_NODE_OPTIONS] = {
    NODE_STATE_OPTION,
    {.name = "jobs",
     .heading = "fetching",
     .often = true,
     .kind = OPTION_LIST,
     .value = "PATH",
     .help = "a job file, or a folder of NAME.job: the jobs that it could run"},
    {.name = "data",
     .heading = "data",
     .often = true,
     .kind = OPTION_LIST,
     .value = "FILE",
     .help = "a data file of any job, found by its root"},
    {.name = "fetch-max",
     .heading = "policy",
     .kind = OPTION_SIZE,
     .value = "BYTES",
     .fallback = "2G",
     .help =
         "policy: fetch job files, data and first states that are not here from where the client "
         "serves them, at most so much for a job; 0: fetch nothing"},
    {.name = "mirror",
     .heading = "fetching",
     .often = true,
     .kind = OPTION_LIST,
     .value = "URL",
     .help = "where to fetch; asked before the addresses that the ledger's "
             "events give"},
    CHAIN_CONTACTS_OPTION,
    {.name = "slot",
     .heading = "machine",
     .often = true,
     .kind = OPTION_LIST,
     .value = "DEVICE",
     .help = "where to train: cpu, cuda, cuda:N or auto; a job at a time on each "
             "(default: cpu)"},
    {.name = "jobs-max",
     .heading = "policy",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "32",
     .minimum = 1,
     .maximum = SOLVER_NODE_JOBS_MAX,
     .help = "policy: the most jobs at a time, those included that wait for their money"},
    {.name = "stakes-max",
     .heading = "policy",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "AMOUNT",
     .help = "policy: the most to stake on all jobs together (default: any)"},
    {.name = "when-idle",
     .heading = "machine",
     .kind = OPTION_FLAG,
     .help = "policy: begin nothing while others use the device, and leave the processor to them"},
    RUN_MACHINE_OPTIONS,
    {.name = "memory-max",
     .heading = "machine",
     .kind = OPTION_SIZE,
     .value = "BYTES",
     .help = "policy: take no job that needs more memory (default: what the machine has)"},
    {.name = "keep",
     .heading = "keeping",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "0",
     .help = "how many of the newest checkpoints to keep; 0: all"},
    {.name = "measure",
     .heading = "machine",
     .kind = OPTION_REAL,
     .value = "SECONDS",
     .fallback = "3",
     .help = "for how long to time steps of a job before it is taken"},
    {.name = "serve",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "ADDRESS:PORT",
     .help = "serve the bundles there, as 'prover serve' does; without --contact the ledger names "
             "this place (default: not at all, and then no job that has seats is taken)"},
    {.name = "page",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "ADDRESS:PORT",
     .help = "serve a status page at /, /node.json, /metrics and /health; with a port alone to "
             "this machine "
             "only (default: not at all)"},
    CHAIN_LEDGER_OPTIONS,
    SESSION_WALLET_OPTIONS,
    POLICY_OPTIONS,
    POLICY_SOLVER_OPTIONS,
    SESSION_ACCEPT_OPTIONS,
};

struct running {
    struct command_context *context;
    struct solver_node node;
    struct session account;
    struct policy policy;
    struct stop stop;
    struct notify notify;
    struct file_lock lock;
    struct node_page *page; /* NULL: none is served */
    const char *lists[OPTION_LIST_MAX + 1];
    char folder[FILE_PATH_MAX];
    char jobs[FILE_PATH_MAX];
    char view[FILE_PATH_MAX];
    char contact[LISTEN_URL_MAX]; /* of --serve */
    uint64_t started_s;
    uint64_t viewed_ms;
};

/* ---- options ------------------------------------------------------------------------- */

static enum status folder_of(char path[FILE_PATH_MAX], const struct options *given,
                             struct error *error)
{
    const char *named = options_text(given, "state");

    if (named == NULL) {
        return file_place(path, FILE_PATH_MAX, error, FILE_PLACE_STATE, "solver");
    }
    return snprintf(path, FILE_PATH_MAX, "%s", named) < FILE_PATH_MAX
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "the path of the node's state is too long");
}

/* One after the other in running->lists. */
static void read_list(struct running *running, size_t *used, const char *const **list,
                      size_t *count, const char *name)
{
    const struct options *given = running->context->options;

    *list = running->lists + *used;
    *count = options_list_count(given, name);
    for (size_t i = 0; i < *count; i++) {
        running->lists[(*used)++] = options_list_item(given, name, i);
    }
}

static void read_text(char text[24], const struct options *given, const char *name)
{
    if (options_given(given, name)) {
        (void)snprintf(text, 24, "%s", options_text(given, name));
    }
}

static enum status read_slots(struct solver_node_options *options, const struct options *given,
                              const struct log *log, struct error *error)
{
    size_t count = options_list_count(given, "slot");

    if (count > SOLVER_NODE_SLOTS_MAX) {
        return error_set(error, STATUS_USAGE, "--slot: at most %d", SOLVER_NODE_SLOTS_MAX);
    }
    options->slot_count = count == 0 ? 1 : (uint32_t)count;
    for (uint32_t i = 0; i < options->slot_count; i++) {
        const char *device = count == 0 ? "cpu" : options_list_item(given, "slot", i);
        struct machine_options *machine = &options->machines[i];

        if (strlen(device) >= SOLVER_NODE_DEVICE_MAX) {
            return error_set(error, STATUS_USAGE, "--slot: there is no device '%.60s'", device);
        }
        (void)snprintf(options->devices[i], SOLVER_NODE_DEVICE_MAX, "%s", device);
        TRY(machine_options_default(machine, error));
        TRY(machine_options_device(machine, device, log, error));
    }
    return STATUS_OK;
}

/* What the ledger names: --contact, else the place of --serve. Why nobody could fetch from there;
 * NULL: verifiers can. */
static const char *find_contact(const char **contact, char url[LISTEN_URL_MAX],
                                const struct options *given, struct error *error)
{
    const char *serve = options_text(given, "serve");
    struct listen_place place;

    if (chain_contact(contact, given, error) != STATUS_OK || *contact != NULL) {
        return NULL; /* the error says what is wrong */
    }
    if (serve == NULL) {
        return "verifiers could not fetch what this node commits: name a place with --serve "
               "ADDRESS:PORT, or with --contact URL where 'lockstep prover publish' puts it";
    }
    if (listen_place_read(&place, serve, error) != STATUS_OK) {
        return NULL; /* the error says it */
    }
    if (listen_place_is_any(&place) || place.port == 0) {
        return "verifiers could not know where this node serves: name its address and port with "
               "--contact http://HOST:PORT, or in --serve";
    }
    listen_place_url(url, &place, false);
    *contact = url;
    return NULL;
}

static enum status read_contact(struct running *running, struct error *error)
{
    struct solver_node_options *options = &running->node.options;

    options->nobody_fetches =
        find_contact(&options->terms.contact, running->contact, running->context->options, error);
    if (error->status != STATUS_OK) {
        return error->status;
    }
    if (options->nobody_fetches != NULL) {
        log_warn(running->context->log, "serve", "takes no job that has seats: %s",
                 options->nobody_fetches);
    } else {
        log_info(running->context->log, "serve", "the ledger names %s", options->terms.contact);
    }
    return STATUS_OK;
}

static enum status read_options(struct running *running, struct error *error)
{
    const struct options *given = running->context->options;
    struct solver_node_options *options = &running->node.options;
    size_t used = 0;

    TRY(read_slots(options, given, running->context->log, error));
    TRY(policy_options_solver(&running->policy, given, error));
    TRY(chain_amount(&options->stakes_max, given, "stakes-max", error));
    running->lists[used++] = options->fetched;
    read_list(running, &used, &options->shelf.places, &options->shelf.place_count, "jobs");
    options->shelf.places = running->lists; /* and the folder of what is fetched */
    options->shelf.place_count++;
    read_list(running, &used, &options->shelf.data, &options->shelf.data_count, "data");
    options->private_contacts = options_flag(given, "private-contacts");
    read_list(running, &used, &options->mirrors, &options->mirror_count, "mirror");
    (void)snprintf(options->fetch_most, sizeof(options->fetch_most), "%" PRIu64,
                   options_number(given, "fetch-max"));
    options->held_max = (uint32_t)options_number(given, "jobs-max");
    options->when_idle = options_flag(given, "when-idle");
    options->serve = options_text(given, "serve");
    read_text(options->threads, given, "threads");
    read_text(options->memory, given, "memory-max");
    read_text(options->device_memory, given, "device-memory");
    read_text(options->keep, given, "keep");
    read_text(options->measure, given, "measure");
    options->machines[0].thread_count = (int)options_number(given, "threads");
    return STATUS_OK;
}

/* ---- opening ---------------------------------------------------------------------------- */

static enum status open_files(struct running *running, struct error *error)
{
    char lock[FILE_PATH_MAX];

    TRY(folder_of(running->folder, running->context->options, error));
    TRY(file_path_join(running->jobs, sizeof(running->jobs), error, running->folder, "jobs"));
    TRY(file_path_join(running->view, sizeof(running->view), error, running->folder, "node.json"));
    TRY(file_path_join(lock, sizeof(lock), error, running->folder, "lock"));
    TRY(file_private_folder(running->folder, error));
    TRY(file_make_folder(running->jobs, error, 0700));
    TRY(file_path_join(running->node.options.fetched, FILE_PATH_MAX, error, running->folder,
                       "fetched"));
    TRY(file_make_folder(running->node.options.fetched, error, 0700));
    return file_lock_open(&running->lock, error, lock, "name another folder with --state");
}

static enum status open_ledger(struct running *running, struct error *error)
{
    struct solver_node *node = &running->node;
    struct ledger_retry retry = session_retry(running->context, &running->stop, &running->notify);
    enum status status;

    TRY(session_open(&running->account, running->context, NULL, true, error));
    running->account.ledger.stopped = stop_called_back;
    running->account.ledger.context = &running->stop;
    do {
        status = ledger_open(&node->ledger, &running->account.ledger, error);
    } while (ledger_retry_again(&retry, &status, error));
    return status;
}

static enum status open_page(struct running *running, struct error *error)
{
    const char *text = options_text(running->context->options, "page");
    char url[WEB_SERVER_URL_MAX];
    struct listen_place place;

    if (text == NULL) {
        return STATUS_OK;
    }
    TRY(listen_place_read(&place, text, error));
    TRY(node_page_open(&running->page, running->view, &place, error));
    node_page_url(url, running->page, &place);
    log_info(running->context->log, "solver", "status at %s", url);
    return STATUS_OK;
}

static enum status open_node(struct running *running, struct error *error)
{
    const struct options *given = running->context->options;
    struct solver_node *node = &running->node;

    TRY(read_options(running, error));
    TRY(open_files(running, error));
    TRY(open_page(running, error));
    TRY(open_ledger(running, error));
    running->policy.currency = *ledger_get_currency(node->ledger);
    node->log = running->context->log;
    node->options.folder = running->folder;
    TRY(read_contact(running, error));
    node->options.terms = (struct held_terms){.account = &running->account,
                                              .ledger = node->ledger,
                                              .jobs = running->jobs,
                                              .policy = &running->policy,
                                              .allow_list = options_text(given, "allow-list"),
                                              .contact = node->options.terms.contact,
                                              .known = options_text(given, "known"),
                                              .ahead = (uint32_t)options_number(given, "ahead"),
                                              .machine = &node->options.machines[0],
                                              .log = node->log};
    running->started_s = (uint64_t)time(NULL);
    return solver_node_open(node, error);
}

/* ---- working ------------------------------------------------------------------------------ */

static enum status show(struct running *running, struct error *error)
{
    uint64_t now_ms = steady_ms();

    if (running->viewed_ms != 0 && now_ms < running->viewed_ms + SHEET_MS) {
        return STATUS_OK;
    }
    running->viewed_ms = now_ms;
    return node_view_write(&running->node, running->view, running->started_s, (uint64_t)time(NULL),
                           error);
}

static enum status work(struct running *running, struct error *error)
{
    double wait_s = running->account.poll_s;

    while (!stop_requested(&running->stop)) {
        enum status status;

        error_init(error);
        notify_alive(&running->notify);
        status = solver_node_round(&running->node, error);
        if (status == STATUS_OK) {
            status = show(running, error);
        }
        if (status == STATUS_GONE) {
            return status;
        }
        /* A full disk may have room later; a node that ends would miss deadlines. */
        if (status != STATUS_OK && status != STATUS_STOPPED) {
            log_error(running->context->log, "solver", "%s", error->text);
        }
        (void)stop_wait(&running->stop, wait_s);
    }
    return STATUS_OK;
}

static enum status run_node(struct running *running, struct error *error)
{
    struct command_context *context = running->context;
    char account[ADDRESS_TEXT_SIZE];
    enum status status;

    TRY(stop_open(&running->stop, error));
    status = open_node(running, error);
    if (status == STATUS_OK) {
        address_print(account, ledger_get_own(running->node.ledger));
        log_info(context->log, "solver", "started as %s, in %s: %u jobs are begun", account,
                 running->folder, running->node.held_count);
        notify_ready(&running->notify, "following the ledger");
        status = work(running, error);
        log_info(context->log, "solver", "stopping");
    }
    notify_stopping(&running->notify);
    solver_node_close(&running->node);
    node_page_close(running->page);
    ledger_close(running->node.ledger);
    session_close(&running->account);
    file_lock_close(&running->lock);
    return status == STATUS_STOPPED ? STATUS_OK : status;
}

int node_commands_node(struct command_context *context)
{
    struct running *running = calloc(1, sizeof(*running));
    struct error error;
    enum status status;

    error_init(&error);
    if (running == NULL) {
        (void)error_set(&error, STATUS_NO_MEMORY, "no memory for a node");
        return command_fail(context, &error);
    }
    running->context = context;
    running->lock.descriptor = -1;
    running->stop.descriptor = -1;
    notify_open(&running->notify);
    status = run_node(running, &error);
    stop_close(&running->stop);
    notify_close(&running->notify);
    free(running);
    return status == STATUS_OK ? COMMAND_OK : command_fail(context, &error);
}

/* ---- doctor ---------------------------------------------------------------------------------- */

static void describe(struct doctor_finding *finding, const struct options *options)
{
    const char *stakes = options_text(options, "stakes-max");
    size_t count = options_list_count(options, "slot");
    size_t size = 0;

    for (size_t i = 0; i < count && size < sizeof(finding->text) / 2; i++) {
        size += (size_t)snprintf(finding->text + size, sizeof(finding->text) - size, "%s%.60s",
                                 i == 0 ? "a job at a time on each of " : ", ",
                                 options_list_item(options, "slot", i));
    }
    (void)snprintf(
        finding->text + size, sizeof(finding->text) - size,
        "%s; holds at most %" PRIu64 " jobs, and stakes %.60s on them; fetches at most "
        "%" PRIu64 " MiB for a job%s",
        count == 0 ? "a job at a time on cpu" : "", options_number(options, "jobs-max"),
        stakes == NULL ? "any amount" : stakes, options_number(options, "fetch-max") >> 20,
        options_flag(options, "when-idle") ? "; begins nothing while others use the device" : "");
}

static void look_at_node(struct doctor_finding *finding, const struct command_context *context)
{
    const struct option_table table = {node_commands_node_options, NODE_COMMANDS_NODE_OPTIONS};
    const char *nobody_fetches;
    const char *contact;
    char url[LISTEN_URL_MAX];
    struct options options;
    struct error error;

    error_init(&error);
    if (doctor_options(&options, context, &table, &error) == STATUS_OK) {
        nobody_fetches = find_contact(&contact, url, &options, &error);
        finding->grade = nobody_fetches == NULL ? DOCTOR_GOOD : DOCTOR_NOTE;
        describe(finding, &options);
        if (nobody_fetches != NULL) {
            (void)snprintf(finding->advice, sizeof(finding->advice),
                           "'lockstep prover node' would take only jobs without seats: a line "
                           "serve=ADDRESS:PORT or contact=URL in its config file says where "
                           "verifiers fetch what it commits");
        }
        options_release(&options);
        return;
    }
    finding->grade = DOCTOR_BROKEN;
    (void)snprintf(finding->text, sizeof(finding->text), "%.400s", error.text);
    (void)snprintf(finding->advice, sizeof(finding->advice),
                   "correct it in the config file or the environment");
}

/* Which of the processor's instruction sets compute here. */
static void look_at_kernels(struct doctor_finding *finding, const struct command_context *context)
{
    struct machine_options machine;
    struct error error;
    size_t used;

    (void)context;
    error_init(&error);
    if (machine_options_default(&machine, &error) != STATUS_OK) {
        finding->grade = DOCTOR_BROKEN;
        (void)snprintf(finding->text, sizeof(finding->text), "%.400s", error.text);
        (void)snprintf(finding->advice, sizeof(finding->advice), "%.400s", error.advice);
        return;
    }
    finding->grade = DOCTOR_GOOD;
    (void)snprintf(finding->text, sizeof(finding->text), "computes with %s and hashes with %s; has",
                   isa_name(machine.isa), sha256_isa_name(SHA256_ISA_BEST));
    for (int isa = ISA_SCALAR; isa < ISA_COUNT; isa++) {
        used = strlen(finding->text);
        if (isa_available((enum isa)isa)) {
            (void)snprintf(finding->text + used, sizeof(finding->text) - used, " %s",
                           isa_name((enum isa)isa));
        }
    }
}

const struct doctor_check node_commands_checks[NODE_COMMANDS_CHECK_COUNT] = {
    {"kernels", look_at_kernels},
    {"taking jobs", look_at_node},
};

/* ---- jobs ----------------------------------------------------------------------------------- */

int node_commands_status(struct command_context *context)
{
    char folder[FILE_PATH_MAX];
    char path[FILE_PATH_MAX];
    json_t *made = NULL;
    struct sheet view;
    struct error error;
    enum status status;

    error_init(&error);
    TRY_OUT(folder_of(folder, context->options, &error));
    TRY_OUT(file_path_join(path, sizeof(path), &error, folder, "node.json"));
    if (!file_exists(path)) {
        status = error_set(&error, STATUS_NOT_FOUND, "no solver's node has run in %s", folder);
        error_advise(&error, "'lockstep prover node' starts one; --state FOLDER says where one is");
        goto out;
    }
    TRY_OUT(node_view_read(&made, path, &error));
out:
    if (status != STATUS_OK) {
        return command_fail(context, &error);
    }
    sheet_init(&view);
    node_page_show(&view, made, (uint64_t)time(NULL));
    json_decref(made);
    return command_show(context, &view);
}
