/* job_serve.c - see job_serve.h. */
#include "client/job_serve.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/io/file.h"
#include "base/io/notify.h"
#include "base/io/stop.h"
#include "base/web/ports.h"
#include "chain/commands/commands.h"
#include "chain/commands/job_source.h"
#include "client/keeper/keep_page.h"
#include "proofs/bundle/checkpoint_write.h"
#include "proofs/job/job_file.h"
#include "proofs/mirror/depot.h"
#include "proofs/mirror/kept.h"
#include "proofs/run/data_paths.h"
#include "proofs/run/run.h"

enum {
    WAIT_MS_MAX = 3600000,
    JOBS_MAX = 1024,
    TOKEN_LEAST = 16,
    TOKEN_FILE_MAX = 4096,
};

const struct option_spec job_serve_options[JOB_SERVE_OPTIONS] = {
    {.name = "data",
     .heading = "data",
     .often = true,
     .kind = OPTION_LIST,
     .value = "FILE",
     .help = "the job's data, for each data tensor; found by its root"},
    {.name = "first-state",
     .heading = "model",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help =
         "the first state of a job that does not draw it, as 'job new' was given it; of a folder, "
         "of all its jobs that draw none; it is copied into --folder"},
    {.name = "serve",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "ADDRESS:PORT",
     .fallback = "127.0.0.1:" PORT_JOB_SERVE,
     .help = "where to listen; 0.0.0.0:" PORT_JOB_SERVE " for everybody"},
    {.name = "folder",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .fallback = "served",
     .help = "what is pushed lies here, and is served too"},
    {.name = "push-token",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "a solver that shows the first line of this file may push ('prover publish --push'); "
             "without it nobody may"},
    {.name = "keep-max",
     .heading = "keeping",
     .kind = OPTION_SIZE,
     .value = "BYTES",
     .fallback = "64G",
     .help = "bytes that the folder may hold"},
    SERVE_OPTIONS,
    {.name = "keeper-of",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "KEY",
     .help = "also be the keeper of this job on a ledger, as 'job keep' is: with --account, and "
             "what it keeps in --folder"},
    KEEPER_CONTACT_OPTION(
        "with --keeper-of: where others find what is served (default: the address of --serve)"),
    CHAIN_POLL_OPTION("with --keeper-of: how often to look at the ledger"),
    {.name = "page",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "ADDRESS:PORT",
     .help = "with --keeper-of: serve the keeper as a page at /, its /metrics, and /health; with a "
             "port "
             "alone to this machine only (default: not at all)"},
    CHAIN_LEDGER_OPTIONS,
    CHAIN_KEY_OPTIONS,
    CHAIN_ACCOUNT_OPTION,
    JOB_SOURCE_OPTIONS,
    KEEPER_OPTIONS,
};

struct served_job {
    char path[FILE_PATH_MAX];
    struct job *job;
};

struct serving {
    struct command_context *context;
    struct served_job *jobs;
    uint32_t job_count;
    struct data_paths data; /* the files of --data */
    struct depot *depot;
    struct serve *serve;
    struct stop stop;
    struct notify notify;
    struct keeper *keeper;      /* NULL: it only serves */
    struct keep_page page;      /* of the keeper */
    bool has_state;             /* a first state is served */
    char token[TOKEN_FILE_MAX]; /* empty: nothing is taken in */
};

/* ---- what is shown ------------------------------------------------------------------------- */

/* Shows the data tensor by its root, and the hashes of its pieces, whose descriptor it takes. */
static bool show_root(struct serving *serving, const struct tensor *tensor,
                      const struct digest *root, const char *path, uint64_t offset, int pieces)
{
    char text[HEX_SIZE(DIGEST_SIZE)];
    char name[SERVE_PATH_MAX];
    struct error none;

    error_init(&none);
    hex_encode(text, root->bytes, DIGEST_SIZE);
    (void)snprintf(name, sizeof(name), "v1/roots/%s.pieces", text);
    if (depot_show_open(serving->depot, name, pieces, &none) != STATUS_OK) {
        return false;
    }
    (void)snprintf(name, sizeof(name), "v1/roots/%s", text);
    return depot_show(serving->depot, name, path, offset,
                      dataset_is_named(path) ? tensor_size(tensor) : 0, &none) == STATUS_OK;
}

/* False: the file does not hold the data tensor. */
static bool show_data(struct serving *serving, const struct tensor *tensor,
                      const struct digest *wanted, const char *path)
{
    struct dataset dataset;
    struct digest root;
    struct error none;
    uint64_t offset;
    int pieces = -1;
    bool found;

    error_init(&none);
    if (run_data_open(&dataset, NULL, tensor, path, &none) != STATUS_OK) {
        return false;
    }
    offset = dataset.offset;
    found = run_data_pieces(&pieces, &root, &dataset, tensor, &none) == STATUS_OK;
    dataset_close(&dataset);
    if (found && !digest_equal(&root, wanted)) {
        (void)close(pieces);
        return false;
    }
    return found && show_root(serving, tensor, &root, path, offset, pieces);
}

/* Every data tensor of the job, from one of the files. */
static enum status show_all_data(struct serving *serving, const struct job *job,
                                 struct error *error)
{
    const struct tape *tape = job->tape;
    uint32_t at = 0;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        bool found = tape->tensors[id].role != ROLE_DATA;

        for (uint32_t i = 0; i < serving->data.count && !found; i++) {
            found =
                show_data(serving, &tape->tensors[id], &job->data_roots[at], serving->data.of[i]);
        }
        if (!found) {
            (void)error_set(error, STATUS_REFUSED, "no file of --data holds the job's data '%s'",
                            tape->tensors[id].name);
            error_advise(error, "name the files that 'lockstep job new' was given");
            return STATUS_REFUSED;
        }
        at += tape->tensors[id].role == ROLE_DATA;
    }
    return STATUS_OK;
}

static enum status show_job(struct serving *serving, const struct served_job *served,
                            struct error *error)
{
    char id[HEX_SIZE(DIGEST_SIZE)];
    char name[SERVE_PATH_MAX];

    hex_encode(id, served->job->id.bytes, DIGEST_SIZE);
    (void)snprintf(name, sizeof(name), "v1/jobs/%s/job", id);
    TRY(depot_show(serving->depot, name, served->path, 0, 0, error));
    (void)snprintf(name, sizeof(name), "v1/roots/%s", id);
    TRY(depot_show(serving->depot, name, served->path, 0, 0, error));
    return show_all_data(serving, served->job, error);
}

/* ---- the jobs ------------------------------------------------------------------------------ */

static enum status read_one(struct serving *serving, const char *path, struct error *error)
{
    struct served_job *more =
        serving->job_count == JOBS_MAX
            ? NULL
            : realloc(serving->jobs, (serving->job_count + 1) * sizeof(*more));

    if (more == NULL) {
        return error_set(error, STATUS_OVER_LIMIT, "no more than %d jobs are served at once",
                         JOBS_MAX);
    }
    serving->jobs = more;
    more += serving->job_count;
    *more = (struct served_job){.job = NULL};
    if (snprintf(more->path, sizeof(more->path), "%s", path) >= (int)sizeof(more->path)) {
        return error_set(error, STATUS_USAGE, "the path %.80s... is too long", path);
    }
    TRY(job_read(&more->job, path, error));
    serving->job_count++;
    return STATUS_OK;
}

static int is_job_file(const struct dirent *entry)
{
    size_t size = strlen(entry->d_name);

    return size > 4 && strcmp(entry->d_name + size - 4, ".job") == 0;
}

static enum status read_folder(struct serving *serving, const char *folder, struct error *error)
{
    struct dirent **names = NULL;
    int count = scandir(folder, &names, is_job_file, alphasort);
    enum status status = STATUS_OK;

    for (int i = 0; i < count; i++) {
        char path[FILE_PATH_MAX];

        if (status == STATUS_OK) {
            status = file_path_join(path, sizeof(path), error, folder, names[i]->d_name);
            status = status == STATUS_OK ? read_one(serving, path, error) : status;
        }
        free(names[i]);
    }
    free(names);
    if (status == STATUS_OK && serving->job_count == 0) {
        return error_set(error, STATUS_NOT_FOUND, "%s has no file NAME.job", folder);
    }
    return status;
}

/* The job file that is named, or all of a folder. */
static enum status read_jobs(struct serving *serving, struct error *error)
{
    const struct options *given = serving->context->options;
    const char *path = given->arguments[0];
    struct stat about;

    if (stat(path, &about) != 0 || !S_ISDIR(about.st_mode)) {
        return read_one(serving, path, error);
    }
    if (options_text(given, "keeper-of") != NULL) {
        return error_set(error, STATUS_USAGE,
                         "--keeper-of is about one job: name its file, not a folder");
    }
    return read_folder(serving, path, error);
}

/* ---- the first state ----------------------------------------------------------------------- */

static bool is_copied(const struct job *job, const char *path)
{
    struct safetensors file;
    struct digest root;
    struct error none;
    enum status status;

    error_init(&none);
    if (safetensors_open(&file, &none, path) != STATUS_OK) {
        return false;
    }
    status = checkpoint_file_root(&root, &file, job->tape, &none);
    safetensors_close(&file);
    return status == STATUS_OK && digest_equal(&root, &job->first_state_root);
}

static enum status copy_state(const struct job *job, const char *path, const char *pieces,
                              const char *from, struct error *error)
{
    struct first_state first = {0};
    const struct checkpoint_write what = {
        .job = job, .root = &job->first_state_root, .first = &first, .pieces = pieces};
    struct digest root;
    enum status status;

    TRY_OUT(first_state_open(&first, job->tape, from, error));
    TRY_OUT(first_state_root(&root, &first, error));
    TRY_OUT(digest_equal(&root, &job->first_state_root)
                ? STATUS_OK
                : error_set(error, STATUS_REFUSED, "%s is not the first state of the job", from));
    TRY_OUT(checkpoint_write(&what, path, error));
out:
    first_state_close(&first);
    return status;
}

/* As the checkpoint before step 0 of the published tree. One that was copied before stays. */
static enum status give_state_to(struct kept *kept, const struct job *job, const char *from,
                                 struct error *error)
{
    char path[FILE_PATH_MAX];
    char pieces[FILE_PATH_MAX];

    TRY(kept_path(path, kept, &job->id, 0, KEPT_STATE, error));
    TRY(kept_path(pieces, kept, &job->id, 0, KEPT_PIECES, error));
    return kept_has(kept, &job->id, 0) && is_copied(job, path)
               ? STATUS_OK
               : copy_state(job, path, pieces, from, error);
}

/* To each job of a folder that does not draw its own. */
static enum status give_first_state(struct serving *serving, struct error *error)
{
    const struct options *given = serving->context->options;
    const char *from = options_text(given, "first-state");
    struct kept *kept = NULL;
    enum status status;

    if (from == NULL) {
        return STATUS_OK;
    }
    TRY(kept_open(&kept, options_text(given, "folder"), NULL, error));
    for (uint32_t i = 0; i < serving->job_count; i++) {
        if (serving->jobs[i].job->first_state_given) {
            TRY_OUT(give_state_to(kept, serving->jobs[i].job, from, error));
            serving->has_state = true;
        }
    }
    status = serving->has_state
                 ? STATUS_OK
                 : error_set(error, STATUS_USAGE,
                             "--first-state: the job draws its first state; none can be given");
out:
    kept_close(kept);
    return status;
}

static enum status read_token(struct serving *serving, struct error *error)
{
    const char *path = options_text(serving->context->options, "push-token");
    struct file_bytes bytes = {0};
    size_t size;

    if (path == NULL) {
        return STATUS_OK;
    }
    TRY(file_read(&bytes, error, path, sizeof(serving->token) - 1));
    size = strcspn((const char *)bytes.data, "\r\n");
    memcpy(serving->token, bytes.data, size);
    explicit_bzero(bytes.data, bytes.size);
    file_bytes_release(&bytes);
    if (size < TOKEN_LEAST) {
        (void)error_set(error, STATUS_USAGE, "%s: a token has at least %d characters", path,
                        TOKEN_LEAST);
        error_advise(error, "head -c 24 /dev/urandom | base64 >%.200s", path);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

/* ---- the keeper ---------------------------------------------------------------------------- */

/* It keeps in the folder that is served here, and finds the job file there. */
static enum status give_job(const struct serving *serving, struct error *error)
{
    const struct options *given = serving->context->options;
    char path[FILE_PATH_MAX];
    struct file_bytes bytes = {0};
    struct kept *kept = NULL;
    enum status status;

    if (options_text(given, "keeper-of") == NULL) {
        return STATUS_OK;
    }
    TRY_OUT(kept_open(&kept, options_text(given, "folder"), NULL, error));
    TRY_OUT(kept_path(path, kept, &serving->jobs[0].job->id, 0, KEPT_JOB, error));
    if (!file_exists(path)) {
        TRY_OUT(file_read(&bytes, error, given->arguments[0], JOB_FILE_SIZE_MAX));
        TRY_OUT(file_write(path, error, bytes.data, bytes.size, 0644));
    }
out:
    file_bytes_release(&bytes);
    kept_close(kept);
    return status;
}

static enum status check_key(const struct serving *serving, struct error *error)
{
    return digest_equal(&keeper_record(serving->keeper)->terms.job_id, &serving->jobs[0].job->id)
               ? STATUS_OK
               : error_set(error, STATUS_USAGE,
                           "--keeper-of: that job is of another file than %.200s",
                           serving->context->options->arguments[0]);
}

static enum status open_keeper(struct serving *serving, const struct listen_place *place,
                               struct error *error)
{
    const struct options *given = serving->context->options;
    char url[LISTEN_URL_MAX];
    struct keeper_options options = {.context = serving->context,
                                     .key = options_text(given, "keeper-of"),
                                     .stop = &serving->stop,
                                     .notify = &serving->notify,
                                     .sight = &serving->page.sight,
                                     .folder = options_text(given, "folder")};

    if (options.key == NULL) {
        return STATUS_OK;
    }
    TRY(chain_contact(&options.contact, given, error));
    if (options.contact == NULL && !listen_place_is_any(place)) {
        listen_place_url(url, place, options_text(given, "certificate") != NULL);
        options.contact = url;
    }
    TRY(keeper_open(&serving->keeper, &options, error));
    TRY(check_key(serving, error));
    return keep_page_open(&serving->page, serving->context, serving->keeper, error);
}

/* One look at the ledger. What it cannot do now it says, and tries again. */
static void keep(struct serving *serving)
{
    struct error why;
    enum status status;

    if (serving->keeper == NULL || keeper_is_done(serving->keeper)) {
        return;
    }
    error_init(&why);
    status = keeper_round(serving->keeper, &why);
    if (status != STATUS_OK && status != STATUS_STOPPED) {
        log_error(serving->context->log, "keeper", "%s", why.text);
    }
    keep_page_take(&serving->page, serving->keeper);
    if (keeper_is_done(serving->keeper)) {
        log_info(serving->context->log, "keeper",
                 "the job is closed: nothing is left to keep; it is served on");
    }
}

/* ---- the command --------------------------------------------------------------------------- */

static enum status open_all(struct serving *serving, struct listen_place *place,
                            struct error *error)
{
    const struct options *given = serving->context->options;
    struct serve_options options = {
        .certificate = options_text(given, "certificate"),
        .key = options_text(given, "tls-key"),
        .connections_max = (uint32_t)options_number(given, "connections"),
        .connections_per_client = (uint32_t)options_number(given, "connections-per-client"),
        .idle_s = 30,
    };
    const char *files[OPTION_LIST_MAX];
    struct serve_source source;

    if (options_text(given, "page") != NULL && options_text(given, "keeper-of") == NULL) {
        return error_set(error, STATUS_USAGE,
                         "--page shows what --keeper-of KEY keeps; name that too");
    }
    TRY(stop_open(&serving->stop, error)); /* before there are threads */
    TRY(listen_place_read(place, options_text(given, "serve"), error));
    TRY(read_token(serving, error));
    TRY(read_jobs(serving, error));
    TRY(data_paths_spread(&serving->data, files, options_list(files, given, "data"), error));
    TRY(give_first_state(serving, error)); /* before its size is counted */
    TRY(give_job(serving, error));
    TRY(depot_open(&serving->depot, options_text(given, "folder"),
                   options_number(given, "keep-max"), error));
    for (uint32_t i = 0; i < serving->job_count; i++) {
        TRY(show_job(serving, &serving->jobs[i], error));
    }
    source = depot_source(serving->depot, serving->token[0] == '\0' ? NULL : serving->token);
    options.place = *place;
    TRY(serve_open(&serving->serve, &source, &options, error));
    place->port = serve_port(serving->serve);
    return open_keeper(serving, place, error);
}

static void free_jobs(struct serving *serving)
{
    for (uint32_t i = 0; i < serving->job_count; i++) {
        job_free(serving->jobs[i].job);
    }
    free(serving->jobs);
    data_paths_close(&serving->data);
}

static int show_address(struct serving *serving, const struct listen_place *place)
{
    struct command_context *context = serving->context;
    char url[LISTEN_URL_MAX];
    char what[32] = "the job";

    if (serving->job_count > 1) {
        (void)snprintf(what, sizeof(what), "%" PRIu32 " jobs", serving->job_count);
    }
    listen_place_url(url, place, options_text(context->options, "certificate") != NULL);
    return command_say(
        context,
        json_pack("{s:s, s:i, s:b, s:b, s:b}", "serving", url, "jobs", (int)serving->job_count,
                  "takes_pushes", serving->token[0] != '\0', "first_state", serving->has_state,
                  "keeps", serving->keeper != NULL),
        "serving %s%s%s at %s%s%s\n"
        "%s"
        "'lockstep job open --contact URL' tells it on the ledger    Ctrl-C ends it\n",
        what, options_list_count(context->options, "data") > 0 ? " and its data" : "",
        serving->has_state ? " and its first state" : "", url,
        serving->token[0] != '\0' ? ", and taking in what is pushed" : "",
        serving->keeper != NULL ? ", and keeping its states" : "",
        serving->jobs[0].job->first_state_given && !serving->has_state
            ? "its first state is not served: --first-state FILE serves it\n"
            : "");
}

int job_serve_run(struct command_context *context)
{
    struct serving serving = {.context = context, .stop = {.descriptor = -1}};
    struct listen_place place;
    uint64_t wait_ms;
    struct error error;
    enum status status;
    int code = COMMAND_OK;

    error_init(&error);
    keep_page_init(&serving.page);
    notify_open(&serving.notify);
    TRY_OUT(open_all(&serving, &place, &error));
    code = show_address(&serving, &place);
    notify_ready(&serving.notify, "serving");
    wait_ms =
        serving.keeper == NULL ? WAIT_MS_MAX : 1000 * options_number(context->options, "poll");
    do {
        notify_alive(&serving.notify);
        keep(&serving);
    } while (code == COMMAND_OK &&
             !stop_wait(&serving.stop, (double)notify_wait_ms(&serving.notify, wait_ms) / 1000));
    notify_stopping(&serving.notify);
out:
    keep_page_close(&serving.page);
    keeper_close(serving.keeper);
    serve_close(serving.serve);
    depot_close(serving.depot);
    free_jobs(&serving);
    stop_close(&serving.stop);
    notify_close(&serving.notify);
    keep_page_release(&serving.page);
    explicit_bzero(serving.token, sizeof(serving.token));
    return status == STATUS_OK ? code : command_fail(context, &error);
}
