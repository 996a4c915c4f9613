/* content_tree.c - see content_tree.h. */
#include "prover/serve/content_tree.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/text.h"
#include "proofs/job/job_file.h"
#include "proofs/run/loss_curve.h"
#include "prover/serve/content_data.h"
#include "prover/serve/content_page.h"
#include "prover/serve/content_pieces.h"
#include "prover/serve/content_trace.h"

#define BYTES_TYPE "application/octet-stream"

struct content_tree_bundle {
    struct bundle *bundle;
    struct digest *segments; /* roots of the whole segments; grows with the journal */
    uint64_t segment_count;
    uint64_t segment_capacity;
    struct data_paths data; /* those that were found */
    bool has_data;          /* all of them */
    struct askers *askers;  /* borrowed; NULL: anybody may ask */
};

struct content_tree {
    pthread_mutex_t lock; /* one thread at a time uses the bundles */
    struct content_tree_bundle *bundles;
    size_t bundle_count;
    struct content_data data;
    struct content_pieces *pieces;
    struct content_trace *traces; /* NULL: trace queries are not answered */
    bool promises_traces;         /* jobs.json promises replies about any step */
};

/* ---- opening ------------------------------------------------------------ */

static void free_bundle(struct content_tree_bundle *entry)
{
    bundle_close(entry->bundle);
    free(entry->segments);
    data_paths_close(&entry->data);
}

void content_tree_close(struct content_tree *tree)
{
    if (tree == NULL) {
        return;
    }
    content_trace_close(tree->traces);
    content_pieces_close(tree->pieces);
    for (size_t i = 0; i < tree->bundle_count; i++) {
        free_bundle(&tree->bundles[i]);
    }
    free(tree->bundles);
    content_data_close(&tree->data);
    (void)pthread_mutex_destroy(&tree->lock);
    free(tree);
}

static enum status open_bundle(struct content_tree *tree, const char *path,
                               const struct content_tree_options *options, struct error *error)
{
    struct content_tree_bundle *entry = &tree->bundles[tree->bundle_count];

    TRY(bundle_open(&entry->bundle, path, BUNDLE_READ, error));
    tree->bundle_count++;
    if (bundle_is_encrypted(entry->bundle)) {
        (void)error_set(error, STATUS_REFUSED, "%s is encrypted and cannot be shown to everybody",
                        path);
        error_advise(error, "share an export and the key instead: 'lockstep bundle export'");
        return STATUS_REFUSED;
    }
    return content_data_find(&tree->data, &entry->data, &entry->has_data, entry->bundle,
                             options->data, options->data_count, error);
}

static enum status open_all(struct content_tree *tree, const struct content_tree_options *options,
                            struct error *error)
{
    for (size_t i = 0; i < options->bundle_count; i++) {
        TRY(open_bundle(tree, options->bundles[i], options, error));
    }
    TRY(content_pieces_open(&tree->pieces, error));
    tree->promises_traces = options->traces && !options->as_files;
    return options->traces ? content_trace_open(&tree->traces, &options->machine, error)
                           : STATUS_OK;
}

enum status content_tree_open(struct content_tree **tree,
                              const struct content_tree_options *options, struct error *error)
{
    struct content_tree *made = calloc(1, sizeof(*made));
    enum status status;

    *tree = NULL;
    if (options->bundle_count > CONTENT_TREE_BUNDLES_MAX) {
        free(made);
        return error_set(error, STATUS_OVER_LIMIT, "%zu bundles; at most %d can be shown",
                         options->bundle_count, CONTENT_TREE_BUNDLES_MAX);
    }
    if (made != NULL) {
        made->bundles = calloc(options->bundle_count + 1, sizeof(*made->bundles));
    }
    if (made == NULL || made->bundles == NULL || pthread_mutex_init(&made->lock, NULL) != 0) {
        free(made == NULL ? NULL : made->bundles);
        free(made);
        return error_set(error, STATUS_NO_MEMORY, "no memory to show bundles");
    }
    status = open_all(made, options, error);
    if (status != STATUS_OK) {
        content_tree_close(made);
        return status;
    }
    *tree = made;
    return STATUS_OK;
}

size_t content_tree_bundle_count(const struct content_tree *tree)
{
    return tree->bundle_count;
}

struct bundle *content_tree_bundle(struct content_tree *tree, size_t number)
{
    return tree->bundles[number].bundle;
}

void content_tree_guard(struct content_tree *tree, size_t number, struct askers *askers)
{
    tree->bundles[number].askers = askers;
}

struct askers *content_tree_askers(struct content_tree *tree, size_t number)
{
    return tree->bundles[number].askers;
}

/* ---- content ------------------------------------------------------------ */

static enum status not_found(struct error *error, const char *path)
{
    return error_set(error, STATUS_NOT_FOUND, "there is no %.200s", path);
}

static enum status file_content(struct serve_content *content, const char *path,
                                const struct digest *root, struct error *error)
{
    struct stat facts;
    /* O_NONBLOCK: opening a pipe must not wait for a writer. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (descriptor < 0) {
        return error_set_errno(error, "cannot open %s", path);
    }
    if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        (void)close(descriptor);
        return error_set(error, STATUS_NOT_FOUND, "%s is no file", path);
    }
    *content = (struct serve_content){.descriptor = descriptor,
                                      .size = (uint64_t)facts.st_size,
                                      .type = BYTES_TYPE,
                                      .fixed = true,
                                      .root = *root};
    return STATUS_OK;
}

static enum status data_content(struct serve_content *content, const struct content_datum *data,
                                struct error *error)
{
    TRY(file_content(content, data->path, &data->root, error));
    if (data->size == 0) {
        return STATUS_OK;
    }
    if (data->offset + data->size > content->size) {
        serve_content_release(content);
        return error_set(error, STATUS_NOT_FOUND, "%s was cut", data->path);
    }
    content->offset = data->offset;
    content->size = data->size;
    return STATUS_OK;
}

static enum status data_pieces_content(struct serve_content *content,
                                       const struct content_datum *data, struct error *error)
{
    struct stat facts;
    int descriptor = fcntl(data->pieces, F_DUPFD_CLOEXEC, 0);

    if (descriptor < 0 || fstat(descriptor, &facts) != 0) {
        return error_set_errno(error, "cannot read the hashes of pieces");
    }
    *content = (struct serve_content){.descriptor = descriptor,
                                      .size = (uint64_t)facts.st_size,
                                      .type = BYTES_TYPE,
                                      .fixed = true,
                                      .root = data->root};
    return STATUS_OK;
}

static enum status job_content(struct serve_content *content, const struct job *job,
                               struct error *error)
{
    struct buffer bytes;
    enum status status;

    buffer_init(&bytes, JOB_FILE_SIZE_MAX);
    status = job_encode(&bytes, job, error);
    if (status != STATUS_OK) {
        buffer_release(&bytes);
        return status;
    }
    *content = (struct serve_content){.descriptor = -1,
                                      .size = bytes.size,
                                      .bytes = bytes.data,
                                      .type = BYTES_TYPE,
                                      .fixed = true,
                                      .root = job->id};
    return STATUS_OK;
}

/* Adds the segments that became whole since the last call. */
static enum status grow_bundle(struct content_tree_bundle *entry, struct error *error)
{
    while (entry->segment_count < job_segments(bundle_job(entry->bundle))) {
        enum status status;

        if (entry->segment_count == entry->segment_capacity) {
            uint64_t capacity = entry->segment_capacity == 0 ? 64 : 2 * entry->segment_capacity;
            struct digest *more = realloc(entry->segments, capacity * sizeof(*more));

            if (more == NULL) {
                return error_set(error, STATUS_NO_MEMORY, "no memory for the roots of segments");
            }
            entry->segments = more;
            entry->segment_capacity = capacity;
        }
        status = bundle_segment_root(&entry->segments[entry->segment_count], entry->bundle,
                                     entry->segment_count, error);
        if (status == STATUS_NOT_FOUND) {
            error_init(error);
            return STATUS_OK;
        }
        TRY(status);
        entry->segment_count++;
    }
    return STATUS_OK;
}

/* The steps of a segment that is whole. */
static enum status find_segment(uint64_t *first, uint64_t *end, struct content_tree_bundle *entry,
                                uint64_t segment, struct error *error)
{
    const struct job *job = bundle_job(entry->bundle);
    uint64_t diverged = UINT64_MAX;

    TRY(grow_bundle(entry, error));
    if (segment >= entry->segment_count) {
        return not_found(error, "such segment yet");
    }
    TRY(bundle_diverged(&diverged, entry->bundle, error));
    *first = segment * job->segment_length;
    *end = job_segment_end(job, segment);
    *end = diverged < *end ? diverged + 1 : *end;
    return (*end - *first) * DIGEST_SIZE > CONTENT_TREE_SEGMENT_MAX
               ? error_set(error, STATUS_NOT_FOUND, "the segment is too long to be shown")
               : STATUS_OK;
}

static enum status new_content(struct serve_content *content, uint64_t size, struct error *error)
{
    *content = (struct serve_content){
        .descriptor = -1, .size = size, .bytes = malloc(size), .type = BYTES_TYPE};
    return content->bytes == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory for a segment")
                                  : STATUS_OK;
}

static enum status segment_content(struct serve_content *content, struct content_tree_bundle *entry,
                                   uint64_t segment, struct error *error)
{
    enum status status = STATUS_OK;
    uint64_t first;
    uint64_t end;

    TRY(find_segment(&first, &end, entry, segment, error));
    TRY(new_content(content, (end - first) * DIGEST_SIZE, error));
    content->fixed = true;
    content->root = entry->segments[segment];
    for (uint64_t step = first; step < end && status == STATUS_OK; step++) {
        struct digest root;

        status = bundle_state_root(&root, entry->bundle, step + 1, error);
        memcpy(content->bytes + (step - first) * DIGEST_SIZE, root.bytes, DIGEST_SIZE);
    }
    if (status != STATUS_OK) {
        serve_content_release(content);
    }
    return status;
}

static enum status losses_content(struct serve_content *content, struct content_tree_bundle *entry,
                                  uint64_t segment, struct error *error)
{
    enum status status;
    uint64_t first;
    uint64_t end;

    TRY(find_segment(&first, &end, entry, segment, error));
    TRY(new_content(content, (end - first) * LOSS_CURVE_STEP_SIZE, error));
    content->fixed = true; /* by the journal, which never changes a step */
    content->root = entry->segments[segment];
    status = loss_curve_write(content->bytes, entry->bundle, first, end, error);
    if (status != STATUS_OK) {
        serve_content_release(content);
    }
    return status;
}

/* Where the checkpoint before a step lies, and its root. */
static enum status find_checkpoint(char path[FILE_PATH_MAX], struct digest *root,
                                   struct content_tree_bundle *entry, uint64_t step,
                                   struct error *error)
{
    uint64_t found = UINT64_MAX;

    TRY(bundle_checkpoint_find(&found, entry->bundle, step, error));
    if (found != step) {
        return not_found(error, "such checkpoint");
    }
    TRY(bundle_state_root(root, entry->bundle, step, error));
    return bundle_checkpoint_path(path, entry->bundle, step, error);
}

static enum status checkpoint_content(struct serve_content *content,
                                      struct content_tree_bundle *entry, uint64_t step,
                                      struct error *error)
{
    char path[FILE_PATH_MAX];
    struct digest root;

    TRY(find_checkpoint(path, &root, entry, step, error));
    return file_content(content, path, &root, error);
}

/* Only notes what is asked for: it is made later, without the lock on the bundles. */
static enum status find_pieces(struct content_pieces_request *request,
                               struct content_tree_bundle *entry, uint64_t step,
                               struct error *error)
{
    TRY(find_checkpoint(request->path, &request->root, entry, step, error));
    request->step = step;
    request->job = bundle_job(entry->bundle);
    return STATUS_OK;
}

/* ---- the list of jobs --------------------------------------------------- */

static json_t *checkpoints_json(struct content_tree_bundle *entry)
{
    json_t *steps = json_array();
    struct error none;
    uint64_t step = 0;

    error_init(&none);
    while (steps != NULL &&
           bundle_checkpoint_find(&step, entry->bundle, step, &none) == STATUS_OK) {
        (void)json_array_append_new(steps, json_integer((json_int_t)step));
        step++;
    }
    return steps;
}

static enum status list_one(json_t *jobs, struct content_tree *tree,
                            struct content_tree_bundle *entry, struct error *error)
{
    const struct job *job = bundle_job(entry->bundle);
    char id[HEX_SIZE(DIGEST_SIZE)];
    uint64_t steps = 0;

    TRY(bundle_step_count(&steps, entry->bundle, error));
    TRY(grow_bundle(entry, error));
    hex_encode(id, job->id.bytes, DIGEST_SIZE);
    (void)json_array_append_new(
        jobs,
        json_pack("{s:s, s:I, s:I, s:I, s:o, s:b, s:b}", "job", id, "steps", (json_int_t)job->steps,
                  "steps_done", (json_int_t)steps, "segments", (json_int_t)entry->segment_count,
                  "checkpoints", checkpoints_json(entry), "data", entry->has_data, "traces",
                  tree->promises_traces && entry->has_data));
    return STATUS_OK;
}

/* *list is the caller's. */
static enum status list_jobs(json_t **list, struct content_tree *tree, struct error *error)
{
    json_t *jobs = json_array();
    enum status status = STATUS_OK;

    *list = json_pack("{s:o}", "jobs", jobs);
    for (size_t i = 0; i < tree->bundle_count && status == STATUS_OK; i++) {
        status = list_one(jobs, tree, &tree->bundles[i], error);
    }
    if (status == STATUS_OK && *list == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for the list of jobs");
    }
    return status;
}

static enum status list_content(struct serve_content *content, struct content_tree *tree,
                                struct error *error)
{
    json_t *list = NULL;
    char *text = NULL;
    enum status status;

    TRY_OUT(list_jobs(&list, tree, error));
    text = json_dumps(list, JSON_INDENT(2));
    if (text == NULL) {
        TRY_OUT(error_set(error, STATUS_NO_MEMORY, "no memory for the list of jobs"));
    }
    *content = (struct serve_content){.descriptor = -1,
                                      .size = strlen(text),
                                      .bytes = (uint8_t *)text,
                                      .type = "application/json"};
out:
    json_decref(list);
    return status;
}

static enum status page_content(struct serve_content *content, struct content_tree *tree,
                                struct error *error)
{
    json_t *list = NULL;
    struct buffer page;
    enum status status;

    buffer_init(&page, CONTENT_PAGE_SIZE_MAX);
    TRY_OUT(list_jobs(&list, tree, error));
    content_page_write(&page, list);
    TRY_OUT(buffer_check(&page, error, "the page of the jobs"));
    *content = (struct serve_content){.descriptor = -1,
                                      .size = page.size,
                                      .bytes = page.data,
                                      .type = "text/html; charset=utf-8"};
    page = (struct buffer){0};
out:
    buffer_release(&page);
    json_decref(list);
    return status;
}

/* ---- names -------------------------------------------------------------- */

/* A decimal number without signs or leading zeros, or of exactly `digits` digits, up to end. */
static bool read_number(uint64_t *number, const char *text, size_t size, size_t digits)
{
    *number = 0;
    if (size == 0 || size > 18 || (digits != 0 && size != digits) ||
        (digits == 0 && size > 1 && text[0] == '0')) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        *number = *number * 10 + (uint64_t)(text[i] - '0');
    }
    return true;
}

/* Takes the digest that text begins with, written in lower case. */
static bool take_digest(struct digest *digest, const char **text)
{
    char canonical[HEX_SIZE(DIGEST_SIZE)];

    if (strnlen(*text, 2 * DIGEST_SIZE) < 2 * DIGEST_SIZE ||
        hex_decode(digest->bytes, DIGEST_SIZE, *text, 2 * DIGEST_SIZE) != STATUS_OK) {
        return false;
    }
    hex_encode(canonical, digest->bytes, DIGEST_SIZE);
    if (strncmp(canonical, *text, 2 * DIGEST_SIZE) != 0) {
        return false;
    }
    *text += 2 * DIGEST_SIZE;
    return true;
}

/* Only notes the query: it is answered later, without the lock on the bundles. */
static enum status find_trace(struct content_trace_request *request, struct content_tree *tree,
                              struct content_tree_bundle *entry, const char *rest,
                              struct error *error)
{
    const char *slash = strchr(rest, '/');

    if (tree->traces == NULL || !entry->has_data || slash == NULL ||
        !read_number(&request->step, rest, (size_t)(slash - rest), 0) ||
        trace_query_parse(&request->query, slash + 1) != STATUS_OK) {
        return not_found(error, "such reply");
    }
    request->askers = entry->askers;
    TRY(data_paths_open(&request->data, entry->data.count, error));
    for (uint32_t i = 0; i < entry->data.count; i++) {
        TRY(data_paths_set(&request->data, i, entry->data.of[i], error));
    }
    request->bundle = strdup(bundle_path(entry->bundle));
    return request->bundle == NULL
               ? error_set(error, STATUS_NO_MEMORY, "no memory for a trace query")
               : STATUS_OK;
}

/* What is answered without the lock on the bundles. */
struct later {
    struct content_trace_request trace;
    struct content_pieces_request pieces;
};

static enum status find_of_checkpoint(struct serve_content *content, struct later *later,
                                      struct content_tree_bundle *entry, const char *rest,
                                      struct error *error)
{
    size_t size = strcspn(rest, ".");
    uint64_t step;

    if (!read_number(&step, rest, size, 12)) {
        return not_found(error, "such checkpoint");
    }
    if (strcmp(rest + size, ".pieces") == 0) {
        return find_pieces(&later->pieces, entry, step, error);
    }
    return strcmp(rest + size, ".safetensors") == 0
               ? checkpoint_content(content, entry, step, error)
               : not_found(error, "such checkpoint");
}

static enum status find_in_job(struct serve_content *content, struct later *later,
                               struct content_tree *tree, struct content_tree_bundle *entry,
                               const char *rest, struct error *error)
{
    uint64_t number;

    if (strcmp(rest, "job") == 0) {
        return job_content(content, bundle_job(entry->bundle), error);
    }
    if (text_take_word(&rest, "segments/") && read_number(&number, rest, strcspn(rest, "."), 0)) {
        rest += strcspn(rest, ".");
        return *rest == '\0'                  ? segment_content(content, entry, number, error)
               : strcmp(rest, ".losses") == 0 ? losses_content(content, entry, number, error)
                                              : not_found(error, "such part of a segment");
    }
    if (text_take_word(&rest, "checkpoints/")) {
        return find_of_checkpoint(content, later, entry, rest, error);
    }
    if (text_take_word(&rest, "trace/")) {
        return find_trace(&later->trace, tree, entry, rest, error);
    }
    return not_found(error, "such part of a job");
}

static enum status find_in_bundle_by_root(struct serve_content *content,
                                          struct content_tree_bundle *entry,
                                          const struct digest *root, struct error *error)
{
    uint64_t step = 0;

    TRY(grow_bundle(entry, error));
    if (digest_equal(root, &bundle_job(entry->bundle)->id)) {
        return job_content(content, bundle_job(entry->bundle), error);
    }
    for (uint64_t i = 0; i < entry->segment_count; i++) {
        if (digest_equal(root, &entry->segments[i])) {
            return segment_content(content, entry, i, error);
        }
    }
    while (bundle_checkpoint_find(&step, entry->bundle, step, error) == STATUS_OK) {
        struct digest state;

        if (bundle_state_root(&state, entry->bundle, step, error) == STATUS_OK &&
            digest_equal(root, &state)) {
            return checkpoint_content(content, entry, step, error);
        }
        step++;
    }
    error_init(error);
    return not_found(error, "content of that root");
}

static enum status find_by_root(struct serve_content *content, struct content_tree *tree,
                                const struct digest *root, const char *rest, struct error *error)
{
    const struct content_datum *data = content_data_of(&tree->data, root);
    enum status status = STATUS_NOT_FOUND;

    if (strcmp(rest, ".pieces") == 0) {
        return data != NULL ? data_pieces_content(content, data, error)
                            : not_found(error, "data of that root");
    }
    if (*rest != '\0') {
        return not_found(error, "such part of the roots");
    }
    if (data != NULL) {
        return data_content(content, data, error);
    }
    for (size_t i = 0; i < tree->bundle_count && status == STATUS_NOT_FOUND; i++) {
        status = find_in_bundle_by_root(content, &tree->bundles[i], root, error);
    }
    return status == STATUS_NOT_FOUND ? not_found(error, "content of that root") : status;
}

static enum status find_content(struct content_tree *tree, struct serve_content *content,
                                struct later *later, const char *path, struct error *error)
{
    const char *rest = path;
    struct digest digest;

    if (path[0] == '\0') {
        return page_content(content, tree, error);
    }
    if (strcmp(path, "v1/jobs.json") == 0) {
        return list_content(content, tree, error);
    }
    if (text_take_word(&rest, "v1/roots/")) {
        return take_digest(&digest, &rest) ? find_by_root(content, tree, &digest, rest, error)
                                           : not_found(error, path);
    }
    if (!text_take_word(&rest, "v1/jobs/") || !take_digest(&digest, &rest) ||
        !text_take_word(&rest, "/")) {
        return not_found(error, path);
    }
    for (size_t i = 0; i < tree->bundle_count; i++) {
        if (digest_equal(&digest, &bundle_job(tree->bundles[i].bundle)->id)) {
            return find_in_job(content, later, tree, &tree->bundles[i], rest, error);
        }
    }
    return not_found(error, "such job");
}

enum status content_tree_find(struct content_tree *tree, struct serve_content *content,
                              const char *path, const char *ask, struct error *error)
{
    struct later later = {.pieces = {.job = NULL}};
    enum status status;

    *content = (struct serve_content){.descriptor = -1};
    (void)pthread_mutex_lock(&tree->lock);
    status = find_content(tree, content, &later, path, error);
    (void)pthread_mutex_unlock(&tree->lock);
    if (status == STATUS_OK && later.trace.askers != NULL) {
        status = askers_admit(later.trace.askers, &later.trace.party, ask, later.trace.step,
                              (uint64_t)time(NULL), error);
    }
    if (status == STATUS_OK && later.trace.bundle != NULL) {
        content->type = BYTES_TYPE;
        status = content_trace_answer(tree->traces, &content->bytes, &content->size, &later.trace,
                                      error);
    }
    if (status == STATUS_OK && later.pieces.job != NULL) {
        content->type = BYTES_TYPE;
        content->fixed = true;
        content->root = later.pieces.root;
        status = content_pieces_answer(tree->pieces, &content->bytes, &content->size, &later.pieces,
                                       error);
    }
    content_trace_request_release(&later.trace);
    return status;
}

static enum status find_for_server(void *context, struct serve_content *content, const char *path,
                                   const char *header, struct error *error)
{
    return content_tree_find(context, content, path, header, error);
}

struct serve_source content_tree_source(struct content_tree *tree)
{
    return (struct serve_source){.context = tree, .header = ASK_HEADER, .find = find_for_server};
}

/* ---- walks ------------------------------------------------------------- */

/* root: NULL where the content has no name by a root. */
static enum status visit_content(const struct content_tree_visitor *visitor,
                                 const struct digest *job, const char *place,
                                 const struct digest *root, struct error *error)
{
    char path[SERVE_PATH_MAX];
    char root_path[SERVE_PATH_MAX];
    char text[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(text, job->bytes, DIGEST_SIZE);
    (void)snprintf(path, sizeof(path), "v1/jobs/%s/%s", text, place);
    if (root == NULL) {
        return visitor->visit(visitor->context, path, NULL, error);
    }
    hex_encode(text, root->bytes, DIGEST_SIZE);
    (void)snprintf(root_path, sizeof(root_path), "v1/roots/%s", text);
    return visitor->visit(visitor->context, path, root_path, error);
}

static enum status walk_bundle(struct content_tree_bundle *entry,
                               const struct content_tree_visitor *visitor, struct error *error)
{
    const struct digest *job = &bundle_job(entry->bundle)->id;
    char place[64];

    TRY(grow_bundle(entry, error));
    TRY(visit_content(visitor, job, "job", job, error));
    for (uint64_t i = 0; i < entry->segment_count; i++) {
        (void)snprintf(place, sizeof(place), "segments/%" PRIu64, i);
        TRY(visit_content(visitor, job, place, &entry->segments[i], error));
        (void)snprintf(place, sizeof(place), "segments/%" PRIu64 ".losses", i);
        TRY(visit_content(visitor, job, place, NULL, error));
    }
    for (uint64_t step = 0;; step++) {
        enum status status = bundle_checkpoint_find(&step, entry->bundle, step, error);
        struct digest root;

        if (status == STATUS_NOT_FOUND) {
            error_init(error);
            return STATUS_OK;
        }
        TRY(status);
        TRY(bundle_state_root(&root, entry->bundle, step, error));
        (void)snprintf(place, sizeof(place), "checkpoints/" CONTENT_TREE_CHECKPOINT_NAME, step);
        TRY(visit_content(visitor, job, place, &root, error));
        (void)snprintf(place, sizeof(place), "checkpoints/%012" PRIu64 ".pieces", step);
        TRY(visit_content(visitor, job, place, NULL, error));
    }
}

enum status content_tree_walk(struct content_tree *tree, const struct content_tree_visitor *visitor,
                              struct error *error)
{
    for (size_t i = 0; i < tree->bundle_count; i++) {
        TRY(walk_bundle(&tree->bundles[i], visitor, error));
    }
    for (size_t i = 0; i < tree->data.count; i++) {
        char root[HEX_SIZE(DIGEST_SIZE)];
        char path[SERVE_PATH_MAX];
        hex_encode(root, tree->data.of[i].root.bytes, DIGEST_SIZE);
        (void)snprintf(path, sizeof(path), "v1/roots/%s", root);
        TRY(visitor->visit(visitor->context, path, NULL, error));
        (void)snprintf(path, sizeof(path), "v1/roots/%s.pieces", root);
        TRY(visitor->visit(visitor->context, path, NULL, error));
    }
    return visitor->visit(visitor->context, "v1/jobs.json", NULL, error);
}

struct trace_visit {
    const struct content_tree_visitor *visitor;
    char job[HEX_SIZE(DIGEST_SIZE)];
    uint64_t step;
};

static enum status visit_query(void *context, const struct trace_query *query, struct error *error)
{
    const struct trace_visit *walk = context;
    char path[SERVE_PATH_MAX];
    char text[TRACE_QUERY_TEXT_MAX];

    trace_query_text(text, query);
    (void)snprintf(path, sizeof(path), "v1/jobs/%s/trace/%" PRIu64 "/%s", walk->job, walk->step,
                   text);
    return walk->visitor->visit(walk->visitor->context, path, NULL, error);
}

enum status content_tree_walk_trace(struct content_tree *tree, uint64_t step,
                                    const struct content_tree_visitor *visitor, struct error *error)
{
    const struct job *job = bundle_job(tree->bundles[0].bundle);
    struct trace_visit walk = {.visitor = visitor, .step = step};
    const struct trace_query_visitor visit_queries = {visit_query, &walk};

    assert(tree->traces != NULL);
    if (!tree->bundles[0].has_data) {
        (void)error_set(error, STATUS_USAGE, "the trace of a step needs the job's data");
        error_advise(error, "name the %u files with --data", job->data_count);
        return STATUS_USAGE;
    }
    hex_encode(walk.job, job->id.bytes, DIGEST_SIZE);
    return trace_query_visit(job->tape, &visit_queries, error);
}
