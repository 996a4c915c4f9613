/* trace_source.c - see trace_source.h. */
#include "verifier/dispute/trace_source.h"

#include <stdlib.h>
#include <string.h>

#include "proofs/commit/trace.h"
#include "proofs/dispute/trace_reply.h"

/* ---- one reply ------------------------------------------------------------ */

/* A file that may hold the reply that the walk wants now. */
static enum status take_reply(void *context, const char *path, struct error *error)
{
    struct file_bytes bytes = {0};
    enum status status;

    TRY(file_read(&bytes, error, path, TRACE_REPLY_BYTES_MAX));
    status = trace_walk_take(context, bytes.data, bytes.size, error);
    file_bytes_release(&bytes);
    return status;
}

static enum status fetch_reply(const struct trace_source *source, const struct trace_query *query,
                               const struct digest *known,
                               enum status (*check)(void *context, const char *path,
                                                    struct error *error),
                               void *context, struct error *error)
{
    char text[TRACE_QUERY_TEXT_MAX];
    char path[FILE_PATH_MAX];
    const struct mirror_wanted wish = {.kind = MIRROR_TRACE,
                                       .root = *known,
                                       .job = source->job,
                                       .number = source->step,
                                       .query = text,
                                       .size_max = TRACE_REPLY_BYTES_MAX,
                                       .check = check,
                                       .context = context};

    trace_query_text(text, query);
    return fetch_get(path, source->fetch, &wish, NULL, error);
}

/* ---- roots that nobody committed to ------------------------------------------ */

/* The first reply about a list begins with the root of its tree. */
struct first_reply {
    const struct tape *tape;
    struct trace_query query;
    struct digest root;
};

static enum status check_first(struct first_reply *first, const struct file_bytes *bytes,
                               const char *path, struct error *error)
{
    struct trace_reply_target target;
    struct trace_reply reply;

    memset(&first->root, 0, sizeof(first->root));
    TRY(trace_reply_target(&target, &first->query, first->tape, &first->root, error));
    target.is_unknown = true;
    if (trace_reply_check(&reply, &target, bytes->data, bytes->size) != VERDICT_VALID) {
        return error_set(error, STATUS_BAD_FORMAT, "%s is no reply about this trace", path);
    }
    first->root = reply.root;
    return STATUS_OK;
}

static enum status take_first(void *context, const char *path, struct error *error)
{
    struct file_bytes bytes = {0};
    enum status status;

    TRY(file_read(&bytes, error, path, TRACE_REPLY_BYTES_MAX));
    status = check_first(context, &bytes, path, error);
    file_bytes_release(&bytes);
    return status;
}

static enum status find_root(struct digest *root, const struct trace_source *source,
                             const struct trace_query *query, const struct tape *tape,
                             struct error *error)
{
    const struct digest unknown = {{0}};
    struct first_reply first = {.tape = tape, .query = *query};
    enum status status = fetch_reply(source, query, &unknown, take_first, &first, error);

    *root = first.root;
    return status;
}

enum status trace_source_root(struct digest *root, const struct trace_source *source,
                              const struct tape *tape, struct error *error)
{
    const struct trace_query query = {.kind = TRACE_QUERY_LIST, .list = TRACE_QUERY_TRACE};

    return find_root(root, source, &query, tape, error);
}

/* ---- any reply ------------------------------------------------------------ */

/* What the checkpoint says of the state after the step. */
static enum status reply_from_states(struct trace_walk *walk, const struct trace_source *source,
                                     const struct trace_query *query, struct error *error)
{
    uint32_t count = walk->own->tape->state_count;
    struct trace_reply_tree tree = {.items = source->states};
    uint8_t *bytes = malloc(TRACE_REPLY_BYTES_MAX);
    enum status status;

    if (bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a reply");
    }
    merkle_leaves_init_hashes(&tree.hashes, source->states + count, count);
    status = trace_walk_take(walk, bytes, trace_reply_write(bytes, query, &tree), error);
    free(bytes);
    return status;
}

static bool is_no_reply(enum status status)
{
    return status == STATUS_NOT_FOUND || status == STATUS_BAD_FORMAT ||
           status == STATUS_OVER_LIMIT || status == STATUS_UNREACHABLE;
}

/* Before the reply about a micro-batch's list the accused must have committed to it, on a ledger
 * where there is one. */
static enum status commit_batch(struct digest *wanted, struct trace_walk *walk,
                                const struct trace_source *source, const struct trace_query *query,
                                const struct digest *known, struct error *error)
{
    static const struct digest none;

    *wanted = *known;
    if (query->kind != TRACE_QUERY_LIST || query->list != TRACE_QUERY_BATCH ||
        !digest_equal(known, &none)) {
        return STATUS_OK;
    }
    if (!source->alone) {
        return error_set(error, STATUS_NOT_FOUND,
                         "the accused has not committed to micro-batch %u yet", query->item);
    }
    TRY(find_root(wanted, source, query, walk->own->tape, error));
    walk->accused.batch_root = *wanted;
    return STATUS_OK;
}

static enum status find_reply(struct trace_walk *walk, const struct trace_source *source,
                              const struct trace_query *query, const struct digest *known,
                              struct error *error)
{
    bool of_list = query->kind == TRACE_QUERY_LIST || query->kind == TRACE_QUERY_LIST_NODE;
    enum status status = STATUS_NOT_FOUND;
    struct error passed_over;
    struct digest wanted;

    error_init(&passed_over);
    TRY(commit_batch(&wanted, walk, source, query, known, error));
    if (source->states != NULL && of_list && query->list == TRACE_QUERY_NEXT_STATE) {
        return reply_from_states(walk, source, query, error);
    }
    if (source->reply[0] != '\0') {
        status = take_reply(walk, source->reply, &passed_over);
    }
    if (is_no_reply(status)) {
        status = fetch_reply(source, query, &wanted, take_reply, walk, &passed_over);
    }
    if (status != STATUS_OK) {
        *error = passed_over;
    }
    return status;
}

/* ---- the walk -------------------------------------------------------------- */

static enum status save_walk(const struct trace_walk *walk, const struct trace_source *source,
                             struct error *error)
{
    struct buffer bytes;
    enum status status;

    if (source->walk[0] == '\0') {
        return STATUS_OK;
    }
    buffer_init(&bytes, TRACE_WALK_BYTES_MAX);
    TRY_OUT(trace_walk_save(&bytes, walk, error));
    TRY_OUT(buffer_check(&bytes, error, "a walk"));
    status = file_write(source->walk, error, bytes.data, bytes.size, 0600);
out:
    buffer_release(&bytes);
    return status;
}

/* A reorganization may have brought another root, of the trace or of a micro-batch that the walk is
 * in: then it begins again. */
static enum status load_walk(struct trace_walk *walk, struct trace_server *own,
                             const struct trace_source *source,
                             const struct trace_walk_case *accused, struct error *error)
{
    struct file_bytes bytes = {0};
    enum status status;

    TRY(file_read(&bytes, error, source->walk, TRACE_WALK_BYTES_MAX));
    status = trace_walk_load(walk, own, bytes.data, bytes.size, error);
    file_bytes_release(&bytes);
    if (status == STATUS_OK &&
        (!digest_equal(&walk->accused.trace_root, &accused->trace_root) ||
         (!digest_equal(&walk->accused.batch_root, &accused->batch_root) && walk->batch_known))) {
        trace_walk_close(walk);
        return STATUS_NOT_FOUND;
    }
    walk->accused.batch_root = accused->batch_root;
    return status;
}

enum status trace_source_open(struct trace_walk *walk, struct trace_server *own,
                              const struct trace_source *source,
                              const struct trace_walk_case *accused, struct error *error)
{
    struct error passed_over;

    error_init(&passed_over);
    if (source->walk[0] != '\0') {
        enum status status = load_walk(walk, own, source, accused, &passed_over);

        if (!is_no_reply(status) && status != STATUS_REFUSED) {
            *error = passed_over;
            return status;
        }
        memset(walk, 0, sizeof(*walk));
    }
    return trace_walk_open(walk, own, accused, error);
}

enum status trace_source_walk(struct trace_walk *walk, const struct trace_source *source,
                              struct error *error)
{
    struct digest known;
    struct trace_query query;

    while (trace_walk_next(&query, &known, walk)) {
        enum status status = find_reply(walk, source, &query, &known, error);

        if (is_no_reply(status)) {
            break;
        }
        TRY(status);
        TRY(save_walk(walk, source, error));
    }
    return STATUS_OK;
}
