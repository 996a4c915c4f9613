/* accused.c - see accused.h. */
#include "verifier/audit/accused.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proofs/commit/commit.h"
#include "proofs/commit/state_root.h"

enum {
    MIRROR_TIMEOUT_S = 20,
};

/* ---- opening and closing ------------------------------------------------- */

static enum status make_cache(struct accused *accused, struct error *error)
{
    const char *folder = getenv("TMPDIR");

    if (snprintf(accused->cache, sizeof(accused->cache), "%s/lockstep-audit-XXXXXX",
                 folder == NULL || folder[0] == '\0' ? "/tmp" : folder) >=
        (int)sizeof(accused->cache)) {
        accused->cache[0] = '\0';
        return error_set(error, STATUS_USAGE, "TMPDIR is too long a path");
    }
    if (mkdtemp(accused->cache) == NULL) {
        enum status status = error_set_errno(error, "cannot make %s", accused->cache);

        accused->cache[0] = '\0';
        return status;
    }
    return STATUS_OK;
}

/* The cache is flat: fetch.c keeps each content under its root's name. */
static void remove_cache(const struct accused *accused)
{
    DIR *folder = accused->cache[0] == '\0' ? NULL : opendir(accused->cache);
    struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
        (void)rmdir(accused->cache);
    }
}

static void add_mirror(struct check_request *request, const char *mirror)
{
    (void)snprintf(request->mirrors[request->mirror_count++], FILE_PATH_MAX, "%s", mirror);
}

enum status accused_open(struct accused *accused, struct bundle *bundle, uint64_t step,
                         const char *const *sources, size_t source_count, struct error *error)
{
    struct check_request *request = calloc(1, sizeof(*request));
    enum status status = STATUS_OK;

    *accused = (struct accused){.bundle = bundle, .step = step, .request = request};
    accused->notes = calloc(1, sizeof(*accused->notes));
    if (request == NULL || accused->notes == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory to look for a trace");
    } else if (source_count > ACCUSED_SOURCES_MAX) {
        status = error_set(error, STATUS_USAGE, "at most %d places for a trace can be named",
                           ACCUSED_SOURCES_MAX);
    } else {
        status = make_cache(accused, error);
    }
    if (status == STATUS_OK) {
        request->mirror_timeout_s = MIRROR_TIMEOUT_S;
        (void)snprintf(request->cache, sizeof(request->cache), "%s", accused->cache);
        for (size_t i = 0; i < source_count; i++) {
            add_mirror(request, sources[i]);
        }
        add_mirror(request, bundle_path(bundle));
        status = fetch_open(&accused->fetch, request, accused->notes, error);
    }
    if (status != STATUS_OK) {
        accused_close(accused);
    }
    return status;
}

void accused_close(struct accused *accused)
{
    fetch_close(accused->fetch);
    remove_cache(accused);
    free(accused->after);
    free(accused->notes);
    free(accused->request);
    memset(accused, 0, sizeof(*accused));
}

/* ---- the state after the step -------------------------------------------- */

/* Loads the very state; STATUS_NOT_FOUND: an older one is the newest that there is. */
static enum status load(const struct accused *accused, struct run *run, struct error *error)
{
    uint64_t at = 0;
    enum status status =
        bundle_restore(&at, accused->bundle, run->machine, accused->step + 1, error);

    return status == STATUS_OK && at != accused->step + 1
               ? error_set(error, STATUS_NOT_FOUND, "the bundle has no checkpoint of that state")
               : status;
}

static enum status take_root(void *context, const struct tensor *tensor, const void *bytes,
                             struct error *error)
{
    (void)error;
    commit_tensor_root(context, COMMIT_TENSOR, tensor, bytes, 0);
    return STATUS_OK;
}

enum status accused_find_state(struct accused *accused, struct run *run, struct error *error)
{
    const struct tape *tape = run->job->tape;
    struct digest *roots;
    enum status status = load(accused, run, error);

    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    roots = calloc((size_t)tape->state_count * 2 + 1, sizeof(*roots));
    if (roots == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of states");
    }
    for (uint32_t i = 0; i < tape->state_count && status == STATUS_OK; i++) {
        status = state_visit(run->machine, tape->states[i].before, take_root, &roots[i], error);
        merkle_leaf_hash(&roots[tape->state_count + i], roots[i].bytes, DIGEST_SIZE);
    }
    if (status != STATUS_OK) {
        free(roots);
        return status;
    }
    accused->after = roots;
    return STATUS_OK;
}

enum status accused_read_state(void *bytes, const struct accused *accused, struct run *run,
                               uint32_t state, struct error *error)
{
    enum status status = load(accused, run, error);

    return status == STATUS_OK
               ? run->machine->backend->read(run->machine, run->job->tape->states[state].before,
                                             bytes, error)
               : status;
}
<<<<<<< HEAD
=======

/* ---- answers ------------------------------------------------------------- */

static enum status fetch_answer(struct accused *accused, struct fetch_request *wish,
                                const struct trace_query *query, struct error *error)
{
    char text[TRACE_QUERY_TEXT_MAX];
    char path[FILE_PATH_MAX];

    trace_query_text(text, query);
    wish->kind = FETCH_TRACE;
    wish->job = bundle_job(accused->bundle)->id;
    wish->number = accused->step;
    wish->query = text;
    wish->size_max = TRACE_REPLY_BYTES_MAX;
    return fetch_get(path, accused->fetch, wish, error);
}

/* The first answer about a trace begins with the root of its tree. */
struct first_answer {
    const struct tape *tape;
    struct digest root;
};

static enum status take_first(void *context, const char *path, struct error *error)
{
    const struct trace_query query = {.kind = TRACE_QUERY_LIST, .list = TRACE_QUERY_TRACE};
    struct first_answer *first = context;
    struct trace_reply_target target;
    struct file_bytes bytes;
    struct digest tree;
    struct trace_reply reply;
    enum status status = file_read(&bytes, error, path, TRACE_REPLY_BYTES_MAX);

    if (status == STATUS_OK && bytes.size < DIGEST_SIZE) {
        status = error_set(error, STATUS_BAD_FORMAT, "%s is no answer about a trace", path);
    }
    if (status == STATUS_OK) {
        memcpy(tree.bytes, bytes.data, DIGEST_SIZE);
        commit_list_root_of(&first->root, COMMIT_TRACE, 0, trace_item_count(first->tape), &tree);
        status = trace_reply_target(&target, &query, first->tape, &first->root, error);
    }
    if (status == STATUS_OK &&
        trace_reply_check(&reply, &target, bytes.data, bytes.size) != VERDICT_VALID) {
        status = error_set(error, STATUS_BAD_FORMAT, "%s is no answer about this trace", path);
    }
    file_bytes_release(&bytes);
    return status;
}

enum status accused_trace(struct digest *root, struct accused *accused, const struct tape *tape,
                          struct error *error)
{
    const struct trace_query query = {.kind = TRACE_QUERY_LIST, .list = TRACE_QUERY_TRACE};
    struct first_answer first = {.tape = tape};
    struct fetch_request wish = {.check = take_first, .context = &first};
    enum status status = fetch_answer(accused, &wish, &query, error);

    *root = first.root;
    return status;
}

static enum status take_answer(void *context, const char *path, struct error *error)
{
    struct file_bytes bytes;
    enum status status = file_read(&bytes, error, path, TRACE_REPLY_BYTES_MAX);

    if (status == STATUS_OK) {
        status = trace_walk_take(context, bytes.data, bytes.size, error);
    }
    file_bytes_release(&bytes);
    return status;
}

/* What the checkpoint tells of the state after the step. */
static enum status answer_from_state(const struct accused *accused, struct trace_walk *walk,
                                     const struct trace_query *query, struct error *error)
{
    uint32_t count = walk->own->tape->state_count;
    struct trace_reply_tree tree = {.items = accused->after};
    uint8_t *bytes = malloc(TRACE_REPLY_BYTES_MAX);
    enum status status;

    if (bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for an answer");
    }
    merkle_leaves_init_hashes(&tree.hashes, accused->after + count, count);
    status = trace_walk_take(walk, bytes, trace_reply_write(bytes, query, &tree), error);
    free(bytes);
    return status;
}

enum status accused_answer(struct accused *accused, struct trace_walk *walk, struct error *error)
{
    enum status status = STATUS_OK;
    struct digest known;
    struct trace_query query;

    while (status == STATUS_OK && trace_walk_next(&query, &known, walk)) {
        bool of_list = query.kind == TRACE_QUERY_LIST || query.kind == TRACE_QUERY_LIST_NODE;

        if (of_list && query.list == TRACE_QUERY_NEXT_STATE && accused->after != NULL) {
            status = answer_from_state(accused, walk, &query, error);
        } else {
            struct fetch_request wish = {.root = known, .check = take_answer, .context = walk};

            status = fetch_answer(accused, &wish, &query, error);
        }
    }
    return status;
}
>>>>>>> 9bc4819 (verifier/check: early returns; a request, a mirror's timeout)
