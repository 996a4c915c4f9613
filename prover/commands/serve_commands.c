/* serve_commands.c - see serve_commands.h. */
#include "prover/commands/serve_commands.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/host.h"
#include "base/io/notify.h"
#include "base/io/progress.h"
#include "base/steady.h"
#include "base/text.h"
#include "base/web/ports.h"
#include "proofs/mirror/push_http.h"
#include "proofs/mirror/serve.h"
#include "proofs/run/data_paths.h"
#include "prover/commands/access.h"
#include "prover/post/session.h"
#include "prover/serve/publish.h"
#include "prover/serve/vouch_intake.h"

#define WAIT_MS_MAX 3600000

enum {
    FOLLOW_MS = 3000, /* between two looks at the ledgers of the bundles */
};

const struct option_spec serve_commands_serve_options[SERVE_COMMANDS_SERVE_OPTIONS] = {
    ACCESS_RUN_OPTIONS,
    {.name = "serve",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "ADDRESS:PORT",
     .fallback = "127.0.0.1:" PORT_PROVER_SERVE,
     .help = "where to listen; 0.0.0.0:" PORT_PROVER_SERVE " for everybody; port 0: any that is "
             "free; behind a comma, the names by which a proxy calls it"},
    SERVE_OPTIONS,
    {.name = "idle-timeout",
     .heading = "serving",
     .kind = OPTION_DURATION,
     .value = "TIME",
     .maximum = 3600,
     .fallback = "30s",
     .help = "close a connection that is idle for so long"},
    SESSION_LEDGER_OPTIONS,
    {.name = "no-traces",
     .heading = "serving",
     .kind = OPTION_FLAG,
     .help = "answer no trace queries: each queried step costs a replay"},
};

const struct option_spec serve_commands_publish_options[SERVE_COMMANDS_PUBLISH_OPTIONS] = {
    ACCESS_RUN_OPTIONS,
    {.name = "out",
     .heading = "result",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "where the tree goes"},
    {.name = "push",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "URL",
     .help = "put the tree into this mirror by HTTP ('lockstep job serve --push-token')"},
    {.name = "push-token",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "with --push: the mirror's token, in the file's first line"},
    {.name = "trace",
     .heading = "evidence",
     .kind = OPTION_LIST,
     .value = "STEP",
     .help = "also write all trace replies about this step of the one bundle: as many bytes as the "
             "step computes; once for each step",
     .command_line_only = true},
};

/* Opens the bundles and data that the command line names. */
static enum status open_tree(struct content_tree **tree, struct command_context *context,
                             struct content_tree_options *options, struct error *error)
{
    const char *files[OPTION_LIST_MAX];
    struct data_paths data;
    enum status status;

    *tree = NULL;
    TRY_OUT(data_paths_spread(&data, files, options_list(files, context->options, "data"), error));
    options->bundles = (const char *const *)context->options->arguments;
    options->bundle_count = context->options->argument_count;
    options->data = (const char *const *)data.of;
    options->data_count = data.count;
    status = content_tree_open(tree, options, error);
out:
    data_paths_close(&data);
    return status;
}

/* ---- who may ask, and vouch ---------------------------------------------- */

/* Of each bundle that is staked on a ledger. */
struct guards {
    struct session *sessions;
    struct askers **askers;
    size_t count;
    size_t guarded;
};

static void close_guards(struct guards *guards)
{
    for (size_t i = 0; i < guards->count; i++) {
        askers_close(guards->askers[i]);
        session_close(&guards->sessions[i]);
    }
    free(guards->sessions);
    free(guards->askers);
}

/* Threads that wait for an endpoint give up. */
static void stop_guards(const struct guards *guards)
{
    for (size_t i = 0; i < guards->count; i++) {
        atomic_store(&guards->sessions[i].stopping, true);
    }
}

static enum status guard_bundle(struct guards *guards, size_t number,
                                struct command_context *context, struct content_tree *tree,
                                struct error *error)
{
    struct bundle *bundle = content_tree_bundle(tree, number);
    struct session *session = &guards->sessions[number];

    if (!session_wanted(context, bundle)) {
        return STATUS_OK;
    }
    TRY(session_open(session, context, bundle, false, error));
    if (!session->has_job) {
        TRY(session_find_job(session, NULL, context, bundle_job(bundle), NULL, error));
    }
    TRY(askers_open(&guards->askers[number], &session->ledger, &session->job, error));
    content_tree_guard(tree, number, guards->askers[number]);
    guards->guarded++;
    return STATUS_OK;
}

static enum status open_guards(struct guards *guards, struct command_context *context,
                               struct content_tree *tree, struct error *error)
{
    const size_t count = content_tree_bundle_count(tree);

    guards->sessions = calloc(count + 1, sizeof(*guards->sessions));
    guards->askers = calloc(count + 1, sizeof(struct askers *));
    if (guards->sessions == NULL || guards->askers == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to follow jobs");
    }
    guards->count = count;
    for (size_t i = 0; i < count; i++) {
        TRY(guard_bundle(guards, i, context, tree, error));
    }
    return STATUS_OK;
}

static void follow_all(const struct guards *guards)
{
    for (size_t i = 0; i < guards->count; i++) {
        if (guards->askers[i] != NULL) {
            askers_follow(guards->askers[i]);
        }
    }
}

/* ---- serve -------------------------------------------------------------- */

static int show_address(struct command_context *context, const struct serve_options *options,
                        const struct serve *serve, size_t bundles)
{
    struct listen_place place = options->place;
    char url[LISTEN_URL_MAX];

    place.port = serve_port(serve);
    listen_place_url(url, &place, options->certificate != NULL);
    return command_say(context, json_pack("{s:s, s:i}", "serving", url, "bundles", (int)bundles),
                       "serving %zu bundle%s at %s\n"
                       "list of jobs: %s/v1/jobs.json    Ctrl-C ends it\n",
                       bundles, bundles == 1 ? "" : "s", url, url);
}

static enum status serve_until_stopped(struct command_context *context, struct content_tree *tree,
                                       const struct guards *guards, struct stop *stop,
                                       struct notify *notify, int *code, struct error *error)
{
    const struct options *given = context->options;
    const uint64_t wait_most = guards->guarded > 0 ? FOLLOW_MS : WAIT_MS_MAX;
    struct serve_options options = {
        .certificate = options_text(given, "certificate"),
        .key = options_text(given, "tls-key"),
        .connections_max = (uint32_t)options_number(given, "connections"),
        .connections_per_client = (uint32_t)options_number(given, "connections-per-client"),
        .idle_s = (uint32_t)options_number(given, "idle-timeout"),
    };
    const struct serve_source source = vouch_intake_source(tree);
    struct serve *serve;
    struct serve_counts counts;

    TRY(listen_place_read(&options.place, options_text(given, "serve"), error));
    TRY(serve_open(&serve, &source, &options, error));
    *code = show_address(context, &options, serve, given->argument_count);
    notify_ready(notify, "serving");
    while (*code == COMMAND_OK &&
           !stop_wait(stop, (double)notify_wait_ms(notify, wait_most) / 1000)) {
        notify_alive(notify);
        follow_all(guards);
    }
    notify_stopping(notify);
    stop_guards(guards);
    counts = serve_counts(serve);
    serve_close(serve);
    command_tell(context, "answered %" PRIu64 " requests, %" PRIu64 " of them with a refusal\n",
                 counts.requests, counts.refused);
    return STATUS_OK;
}

int serve_commands_serve(struct command_context *context)
{
    struct content_tree_options options = {.traces = !options_flag(context->options, "no-traces")};
    struct stop stop = {.descriptor = -1};
    struct content_tree *tree = NULL;
    struct guards guards = {0};
    struct notify notify;
    struct error error;
    enum status status;
    int code = COMMAND_OK;

    error_init(&error);
    notify_open(&notify);
    TRY_OUT(stop_open(&stop, &error));
    TRY_OUT(access_machine(&options.machine, context, &error));
    TRY_OUT(open_tree(&tree, context, &options, &error));
    TRY_OUT(open_guards(&guards, context, tree, &error));
    host_step_back();
    TRY_OUT(serve_until_stopped(context, tree, &guards, &stop, &notify, &code, &error));
out:
    content_tree_close(tree);
    close_guards(&guards);
    stop_close(&stop);
    notify_close(&notify);
    return status == STATUS_OK ? code : command_fail(context, &error);
}

/* ---- beside a run --------------------------------------------------------- */

enum {
    BESIDE_CONNECTIONS = 256,
    BESIDE_CONNECTIONS_PER_CLIENT = 16,
    BESIDE_IDLE_S = 30,
};

/* A thread opens and closes all of it: what it starts inherits its low priority. */
struct serve_beside {
    struct command_context *context;
    const char *bundle; /* its folder */
    struct machine_options machine;
    struct listen_place place;
    char url[LISTEN_URL_MAX];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool begun; /* or failed */
    bool stopping;
    enum status status;
    struct error error;
};

static void tell_begun(struct serve_beside *beside, enum status status)
{
    (void)pthread_mutex_lock(&beside->lock);
    beside->begun = true;
    beside->status = status;
    (void)pthread_cond_broadcast(&beside->changed);
    (void)pthread_mutex_unlock(&beside->lock);
}

static void follow_until_stopped(struct serve_beside *beside, const struct guards *guards)
{
    struct timespec until;

    (void)pthread_mutex_lock(&beside->lock);
    while (!beside->stopping) {
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += FOLLOW_MS / 1000;
        (void)pthread_cond_timedwait(&beside->changed, &beside->lock, &until);
        (void)pthread_mutex_unlock(&beside->lock);
        follow_all(guards);
        (void)pthread_mutex_lock(&beside->lock);
    }
    (void)pthread_mutex_unlock(&beside->lock);
    stop_guards(guards);
}

static void *serve_beside(void *context)
{
    struct serve_beside *beside = context;
    const struct content_tree_options tree_options = {
        .bundles = &beside->bundle, .bundle_count = 1, .traces = true, .machine = beside->machine};
    const struct serve_options options = {.place = beside->place,
                                          .connections_max = BESIDE_CONNECTIONS,
                                          .connections_per_client = BESIDE_CONNECTIONS_PER_CLIENT,
                                          .idle_s = BESIDE_IDLE_S};
    struct content_tree *tree = NULL;
    struct guards guards = {0};
    struct serve_source source;
    struct serve *serve = NULL;
    enum status status;

    host_step_back();
    TRY_OUT(content_tree_open(&tree, &tree_options, &beside->error));
    TRY_OUT(open_guards(&guards, beside->context, tree, &beside->error));
    source = vouch_intake_source(tree);
    TRY_OUT(serve_open(&serve, &source, &options, &beside->error));
    beside->place.port = serve_port(serve);
    listen_place_url(beside->url, &beside->place, false);
    tell_begun(beside, STATUS_OK);
    follow_until_stopped(beside, &guards);
out:
    serve_close(serve);
    content_tree_close(tree);
    close_guards(&guards);
    if (status != STATUS_OK) {
        tell_begun(beside, status);
    }
    return NULL;
}

static enum status start_beside(struct serve_beside *beside, struct error *error)
{
    if (pthread_create(&beside->thread, NULL, serve_beside, beside) != 0) {
        return error_set(error, STATUS_NO_MEMORY, "no thread to serve with");
    }
    (void)pthread_mutex_lock(&beside->lock);
    while (!beside->begun) {
        (void)pthread_cond_wait(&beside->changed, &beside->lock);
    }
    (void)pthread_mutex_unlock(&beside->lock);
    if (beside->status != STATUS_OK) {
        (void)pthread_join(beside->thread, NULL);
        *error = beside->error;
    }
    return beside->status;
}

enum status serve_beside_open(struct serve_beside **beside, struct command_context *context,
                              const struct bundle *bundle, const struct machine_options *machine,
                              struct error *error)
{
    const char *text = options_text(context->options, "serve");
    struct listen_place place;
    struct serve_beside *made;
    enum status status;

    *beside = NULL;
    if (text == NULL) {
        return STATUS_OK;
    }
    TRY(listen_place_read(&place, text, error));
    made = calloc(1, sizeof(*made));
    if (made == NULL || pthread_mutex_init(&made->lock, NULL) != 0) {
        free(made);
        return error_set(error, STATUS_NO_MEMORY, "no memory to serve");
    }
    (void)pthread_cond_init(&made->changed, NULL);
    error_init(&made->error);
    made->context = context;
    made->bundle = bundle_path(bundle);
    made->machine = *machine;
    made->place = place;
    status = start_beside(made, error);
    if (status == STATUS_OK) {
        *beside = made;
        return STATUS_OK;
    }
    (void)pthread_cond_destroy(&made->changed);
    (void)pthread_mutex_destroy(&made->lock);
    free(made);
    return status;
}

void serve_beside_close(struct serve_beside *beside)
{
    if (beside == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&beside->lock);
    beside->stopping = true;
    (void)pthread_cond_broadcast(&beside->changed);
    (void)pthread_mutex_unlock(&beside->lock);
    (void)pthread_join(beside->thread, NULL);
    (void)pthread_cond_destroy(&beside->changed);
    (void)pthread_mutex_destroy(&beside->lock);
    free(beside);
}

const char *serve_beside_url(const struct serve_beside *beside)
{
    return beside->url;
}

bool serve_beside_can_be_called(const struct serve_beside *beside)
{
    return !listen_place_is_any(&beside->place);
}

/* ---- publish ------------------------------------------------------------ */

static void show_replies(void *context, uint64_t replies)
{
    progress_update(context, replies, "", steady_seconds());
}

static enum status publish_one_trace(struct publish_result *result, struct content_tree *tree,
                                     const char *text, const char *folder, struct error *error)
{
    struct progress progress;
    uint64_t before = result->written;
    uint64_t step = 0;
    enum status status;

    if (!text_is_number(&step, text, INT64_MAX)) {
        return error_set(error, STATUS_USAGE, "--trace: '%.40s' is not the number of a step", text);
    }
    progress_init(&progress, stderr, "tracing", "replies", 0, 0, steady_seconds());
    status = publish_trace(result, tree, step, folder, show_replies, &progress, error);
    progress_finish(&progress, result->written - before, "", steady_seconds());
    return status;
}

/* Traces first: jobs.json promises everything else. */
static enum status publish_all(struct publish_result *result, struct content_tree *tree,
                               struct command_context *context, struct error *error)
{
    const char *folder = options_text(context->options, "out");
    size_t traces = options_list_count(context->options, "trace");

    for (size_t i = 0; i < traces; i++) {
        TRY(publish_one_trace(result, tree, options_list_item(context->options, "trace", i), folder,
                              error));
    }
    return publish(result, tree, folder, error);
}

static enum status push_bundles(struct publish_result *result, struct content_tree *tree,
                                const struct options *options, struct error *error)
{
    struct file_bytes token = {0};
    enum status status;

    TRY(file_read(&token, error, options_text(options, "push-token"), PUSH_HTTP_TOKEN_MAX - 1));
    token.data[strcspn((const char *)token.data, "\r\n")] = '\0';
    status =
        publish_push(result, tree, options_text(options, "push"), (const char *)token.data, error);
    explicit_bzero(token.data, token.size);
    file_bytes_release(&token);
    return status;
}

int serve_commands_publish(struct command_context *context)
{
    const char *folder = options_text(context->options, "out");
    const char *url = options_text(context->options, "push");
    const char *place = folder != NULL ? folder : url;
    struct content_tree_options options = {
        .traces = options_list_count(context->options, "trace") > 0, .as_files = true};
    struct publish_result result = {0};
    struct content_tree *tree = NULL;
    struct error error;
    enum status status;

    if ((folder == NULL) == (url == NULL)) {
        return command_usage(context, "where to? name the folder with --out, or a mirror with "
                                      "--push");
    }
    if (url != NULL && (options.traces || options_text(context->options, "push-token") == NULL)) {
        return command_usage(context, "--push needs --push-token, and takes no --trace");
    }
    if (options.traces && context->options->argument_count > 1) {
        return command_usage(context, "--trace is of one bundle: publish it alone");
    }
    error_init(&error);
    if (options.traces) {
        /* A trace query is answered by running its step again. */
        TRY_OUT(access_machine(&options.machine, context, &error));
    }
    TRY_OUT(open_tree(&tree, context, &options, &error));
    TRY_OUT(url != NULL ? push_bundles(&result, tree, context->options, &error)
                        : publish_all(&result, tree, context, &error));
out:
    content_tree_close(tree);
    if (status != STATUS_OK) {
        return command_fail(context, &error);
    }
    return command_say(context,
                       json_pack("{s:s, s:I, s:I, s:I}", url != NULL ? "mirror" : "folder", place,
                                 "written", (json_int_t)result.written, "kept",
                                 (json_int_t)result.kept, "bytes", (json_int_t)result.bytes),
                       "%s: %" PRIu64 " files written (%.1f MB), %" PRIu64 " were there\n", place,
                       result.written, (double)result.bytes / 1e6, result.kept);
}
