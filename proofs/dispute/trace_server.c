/* trace_server.c - see trace_server.h. */
#include "proofs/dispute/trace_server.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/element.h"

/* ---- the states before the step ------------------------------------------ */

static enum status no_memory(const struct tensor *tensor, struct error *error)
{
    return error_set(error, STATUS_NO_MEMORY, "no memory for '%s', %" PRIu64 " bytes", tensor->name,
                     commit_tensor_size(tensor));
}

static enum status save_states(struct trace_server *server, struct error *error)
{
    const struct tape *tape = server->tape;

    server->states = calloc((size_t)tape->state_count + 1, sizeof(*server->states));
    if (server->states == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of states");
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        uint32_t id = tape->states[i].before;
        enum status status;

        server->states[i] = malloc(commit_tensor_size(&tape->tensors[id]));
        if (server->states[i] == NULL) {
            return no_memory(&tape->tensors[id], error);
        }
        status = server->machine->backend->read(server->machine, id, server->states[i], error);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

static const uint8_t *state_bytes(const struct trace_server *server, uint32_t state)
{
    return server->states != NULL ? server->states[state] : trace_file_tensor(&server->file, state);
}

/* Runs the step again, from the state before it. */
static enum status run_step(struct trace_server *server, const struct observer *observer,
                            struct error *error)
{
    struct machine *machine = server->machine;
    enum status status = STATUS_OK;

    if (machine == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "the file of the trace has not all of it");
    }
    for (uint32_t i = 0; i < server->tape->state_count && status == STATUS_OK; i++) {
        status = machine->backend->write(machine, server->tape->states[i].before,
                                         state_bytes(server, i), error);
    }
    server->runs++;
    return status == STATUS_OK ? machine->backend->step(machine, observer, error) : status;
}

/* ---- tensors that are kept ----------------------------------------------- */

static void drop_tensor(struct trace_server_tensor *kept)
{
    free(kept->owned);
    free(kept->hashes);
    memset(kept, 0, sizeof(*kept));
}

const struct trace_server_tensor *trace_server_tensor(const struct trace_server *server,
                                                      uint32_t item)
{
    for (uint32_t i = 0; i < server->kept_count; i++) {
        if (server->kept[i].item == item) {
            return &server->kept[i];
        }
    }
    return NULL;
}

static bool wants_item(const uint32_t *items, uint32_t count, uint32_t item)
{
    for (uint32_t i = 0; i < count; i++) {
        if (items[i] == item) {
            return true;
        }
    }
    return false;
}

static void drop_all(struct trace_server *server)
{
    for (uint32_t i = 0; i < server->kept_count; i++) {
        drop_tensor(&server->kept[i]);
    }
    server->kept_count = 0;
}

static void keep_only(struct trace_server *server, const uint32_t *items, uint32_t count)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < server->kept_count; i++) {
        if (wants_item(items, count, server->kept[i].item)) {
            server->kept[left++] = server->kept[i];
        } else {
            drop_tensor(&server->kept[i]);
        }
    }
    server->kept_count = left;
}

/* Hashes a micro-batch that was not yet; a file turns to it. */
static enum status know_batch(struct trace_server *server, uint32_t batch, struct error *error)
{
    struct machine *machine = server->machine;

    if (batch == TENSOR_NONE || trace_batch_known(&server->trace, batch)) {
        return STATUS_OK;
    }
    if (machine == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "the file of the trace has not all of it");
    }
    server->runs++;
    if (server->file.bytes != NULL) {
        drop_all(server); /* what is kept may lie in the file */
        return trace_file_turn(&server->file, &server->trace, machine, batch, error);
    }
    for (uint32_t i = 0; i < server->tape->state_count; i++) {
        TRY(machine->backend->write(machine, server->tape->states[i].before, server->states[i],
                                    error));
    }
    return trace_watch_batch(&server->trace, batch, machine, NULL, error);
}

/* Hashes what is kept at bytes; it must be what the trace says. Owned bytes are freed with it. */
static enum status keep_tensor(struct trace_server *server, uint32_t item, const uint8_t *bytes,
                               uint8_t *owned, struct error *error)
{
    struct trace_server_tensor *kept = &server->kept[server->kept_count];
    struct merkle_leaves leaves;
    struct merkle_leaves hashes;
    struct digest root;

    assert(server->kept_count < TRACE_SERVER_KEPT_MAX);
    kept->item = item;
    kept->tensor = &server->tape->tensors[trace_tensor_at(server->tape, item)];
    kept->bytes = bytes;
    kept->owned = owned;
    kept->size = commit_tensor_size(kept->tensor);
    kept->leaf_count = trace_query_tensor_count(kept->tensor);
    /* The hashes of the leaves stay: each reply about the tensor takes some of them. */
    kept->hashes = malloc((size_t)kept->leaf_count * sizeof(*kept->hashes));
    if (kept->hashes == NULL) {
        const struct tensor *tensor = kept->tensor;

        drop_tensor(kept);
        return no_memory(tensor, error);
    }
    merkle_leaves_init_bytes(&leaves, bytes, kept->size);
    merkle_leaf_hashes(kept->hashes, &leaves);
    merkle_leaves_init_hashes(&hashes, kept->hashes, kept->leaf_count);
    merkle_root(&root, &hashes);
    commit_tensor_root_of(&root, COMMIT_TENSOR, kept->tensor, &root);
    if (!digest_equal(&root, &server->trace.items[item])) {
        drop_tensor(kept);
        /* A file can rot and is thrown away; two runs of one machine that differ are the machine's
         * fault. */
        if (owned == NULL && server->file.bytes != NULL) {
            trace_file_remove(&server->file);
            return error_set(error, STATUS_IO, "tensor %u in the file of the trace is damaged",
                             item);
        }
        (void)error_set(error, STATUS_DEVICE,
                        "tensor %u of the trace is not what it was the first time", item);
        error_advise(error, "this machine computes wrongly: use another one");
        return STATUS_DEVICE;
    }
    server->kept_count++;
    return STATUS_OK;
}

/* One run that looks for the items that are wanted and not kept. */
struct search {
    struct trace_server *server;
    uint32_t items[TRACE_SERVER_KEPT_MAX];
    struct op_turn makers[TRACE_SERVER_KEPT_MAX];
    uint32_t outputs[TRACE_SERVER_KEPT_MAX];
    uint32_t left; /* outputs to be found */
};

/* The place of an output in the lists, or the end of them. */
static uint32_t sought_at(const struct search *search, struct op_turn maker, uint32_t output)
{
    uint32_t at = 0;

    while (at < search->left &&
           (search->makers[at].op != maker.op || search->makers[at].turn != maker.turn ||
            search->outputs[at] != output)) {
        at++;
    }
    return at;
}

static bool is_sought(const void *context, struct op_turn maker, uint32_t output)
{
    const struct search *search = context;

    return sought_at(search, maker, output) < search->left;
}

static enum status found_tensor(void *context, struct op_turn maker, uint32_t output,
                                const void *bytes, uint64_t size, struct error *error)
{
    struct search *search = context;
    struct trace_server *server = search->server;
    const uint32_t at = sought_at(search, maker, output);
    enum status status;
    uint8_t *copy;

    if (at == search->left) {
        return STATUS_OK;
    }
    copy = malloc((size_t)size);
    if (copy == NULL) {
        return no_memory(&server->tape->tensors[server->tape->ops[maker.op].outputs[output]],
                         error);
    }
    memcpy(copy, bytes, (size_t)size);
    status = keep_tensor(server, search->items[at], copy, copy, error);
    search->left--;
    search->items[at] = search->items[search->left];
    search->makers[at] = search->makers[search->left];
    search->outputs[at] = search->outputs[search->left];
    /* Nothing after the last one is of interest: that is no failure. */
    return status == STATUS_OK && search->left == 0 ? STATUS_STOPPED : status;
}

/* The micro-batch that the file should turn to; TENSOR_NONE: it has one of these items, or they are
 * of no micro-batch. */
static uint32_t other_batch(const struct trace_file *file, const uint32_t *items, uint32_t count)
{
    uint32_t other = TENSOR_NONE;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t batch;

        if (!repeat_holds(&batch, &file->layout, items[i]) || batch == TENSOR_NONE) {
            continue;
        }
        if (batch == file->batch) {
            return TENSOR_NONE;
        }
        other = batch;
    }
    return other;
}

/* What is kept may lie in the file. */
static enum status turn_file(struct trace_server *server, const uint32_t *items, uint32_t count,
                             struct error *error)
{
    uint32_t batch = other_batch(&server->file, items, count);

    if (server->file.bytes == NULL || server->machine == NULL || batch == TENSOR_NONE) {
        return STATUS_OK;
    }
    drop_all(server);
    server->runs++;
    return trace_file_turn(&server->file, &server->trace, server->machine, batch, error);
}

enum status trace_server_keep(struct trace_server *server, const uint32_t *items, uint32_t count,
                              struct error *error)
{
    struct search search = {.server = server};
    const struct observer observer = {.made = found_tensor, .context = &search, .wants = is_sought};
    enum status status = STATUS_OK;

    assert(count <= TRACE_SERVER_KEPT_MAX);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        struct trace_place place;

        /* A place within a micro-batch is known once the list of that micro-batch is. */
        trace_place_of(&place, &server->trace.layout, items[i], server->trace.list_count);
        status = know_batch(server, place.batch, error);
    }
    keep_only(server, items, count);
    if (status == STATUS_OK) {
        status = turn_file(server, items, count, error);
    }
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        uint32_t item = items[i];

        assert(item < server->trace.item_count);
        if (trace_server_tensor(server, item) != NULL || wants_item(items, i, item)) {
            continue;
        }
        /* What is in the file, or a state, costs a hash; all else costs the step, which is run once
         * for all. */
        if (trace_file_has(&server->file, item)) {
            status = keep_tensor(server, item, trace_file_tensor(&server->file, item), NULL, error);
        } else if (item < server->trace.state_count) {
            status = keep_tensor(server, item, server->states[item], NULL, error);
        } else {
            search.items[search.left] = item;
            trace_output_at(&search.makers[search.left], &search.outputs[search.left], server->tape,
                            item);
            search.left++;
        }
    }
    if (status == STATUS_OK && search.left > 0) {
        status = run_step(server, &observer, error);
        /* The observer stops the step as soon as it has the last of what it looks for. */
        if (status == STATUS_STOPPED && search.left == 0) {
            status = STATUS_OK;
        }
        assert(status != STATUS_OK || search.left == 0);
    }
    return status;
}

/* ---- opening and closing ------------------------------------------------- */

static enum status list_next(struct trace_server *server, struct error *error)
{
    uint32_t count = server->tape->state_count;
    enum status status = trace_next_items(&server->next_items, server->tape, error);

    if (status != STATUS_OK) {
        return status;
    }
    server->next = malloc(((size_t)count + 1) * 2 * sizeof(*server->next));
    if (server->next == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of states");
    }
    for (uint32_t i = 0; i < count; i++) {
        server->next[i] = server->trace.items[server->next_items[i]];
        merkle_leaf_hash(&server->next[count + i], server->next[i].bytes, DIGEST_SIZE);
    }
    return STATUS_OK;
}

static enum status begin_runs(struct trace_server *server, struct machine *machine,
                              struct error *error)
{
    memset(server, 0, sizeof(*server));
    server->machine = machine;
    server->tape = machine->tape;
    TRY(save_states(server, error));
    server->runs = 1;
    return STATUS_OK;
}

static enum status end_opening(struct trace_server *server, enum status status, struct error *error)
{
    if (status == STATUS_OK) {
        status = list_next(server, error);
    }
    if (status != STATUS_OK) {
        trace_server_close(server);
    }
    return status;
}

enum status trace_server_open(struct trace_server *server, struct machine *machine,
                              struct error *error)
{
    enum status status;

    TRY_OUT(begin_runs(server, machine, error));
    TRY_OUT(trace_run(&server->trace, machine, NULL, 0, error));
out:
    return end_opening(server, status, error);
}

void trace_server_use(struct trace_server *server, struct machine *machine)
{
    server->machine = machine;
}

static void free_states(struct trace_server *server)
{
    for (uint32_t i = 0; server->states != NULL && i < server->tape->state_count; i++) {
        free(server->states[i]);
    }
    free(server->states);
    server->states = NULL;
}

enum status trace_server_open_kept(struct trace_server *server, struct machine *machine,
                                   const char *path, const struct digest *mark, struct error *error)
{
    enum status status;

    TRY_OUT(begin_runs(server, machine, error));
    TRY_OUT(trace_file_run(&server->file, &server->trace, machine, path, mark, error));
    if (server->file.bytes != NULL) {
        free_states(server);
    }
out:
    return end_opening(server, status, error);
}

enum status trace_server_load(struct trace_server *server, const struct tape *tape,
                              const char *path, const struct digest *mark, struct error *error)
{
    enum status status;

    memset(server, 0, sizeof(*server));
    server->tape = tape;
    TRY_OUT(trace_file_open(&server->file, &server->trace, tape, path, mark, error));
out:
    return end_opening(server, status, error);
}

void trace_server_close(struct trace_server *server)
{
    drop_all(server);
    free_states(server);
    free(server->next_items);
    free(server->next);
    trace_release(&server->trace);
    trace_file_close(&server->file);
    memset(server, 0, sizeof(*server));
}

/* ---- replies ------------------------------------------------------------- */

static enum status list_tree(struct trace_reply_tree *tree, struct trace_server *server,
                             const struct trace_query *query, struct error *error)
{
    const struct trace *trace = &server->trace;
    const struct digest *hashes = trace->hashes;
    uint64_t first;

    tree->items = trace->items;
    switch (query->list) {
    case TRACE_QUERY_TRACE:
        break;
    case TRACE_QUERY_NEXT_STATE:
        tree->items = server->next;
        hashes = server->next + server->tape->state_count;
        break;
    case TRACE_QUERY_BATCH:
        TRY(know_batch(server, query->item, error));
        first = trace->list_count + (uint64_t)query->item * trace->layout.inner;
        tree->items += first;
        hashes += first;
        break;
    }
    merkle_leaves_init_hashes(&tree->hashes, hashes,
                              trace_query_list_count(server->tape, query->list));
    return STATUS_OK;
}

enum status trace_server_tree(struct trace_reply_tree *tree, struct trace_server *server,
                              const struct trace_query *query, struct error *error)
{
    enum status status = trace_query_check(query, server->tape, error);
    const struct trace_server_tensor *kept;

    memset(tree, 0, sizeof(*tree));
    if (status != STATUS_OK) {
        return status;
    }
    switch (query->kind) {
    case TRACE_QUERY_LIST:
    case TRACE_QUERY_LIST_NODE:
        return list_tree(tree, server, query, error);
    case TRACE_QUERY_TENSOR:
    case TRACE_QUERY_TENSOR_NODE:
        break;
    case TRACE_QUERY_DIVERGED:
    case TRACE_QUERY_PARTS:
        return error_set(error, STATUS_USAGE, "the reply about that is no tree");
    }
    if (trace_server_tensor(server, query->item) == NULL) {
        status = trace_server_keep(server, &query->item, 1, error);
    }
    kept = trace_server_tensor(server, query->item);
    if (kept != NULL) {
        tree->bytes = kept->bytes;
        tree->byte_count = kept->size;
        merkle_leaves_init_hashes(&tree->hashes, kept->hashes, kept->leaf_count);
    }
    return status;
}

enum status trace_server_answer(uint8_t *bytes, size_t *size, struct trace_server *server,
                                const struct trace_query *query, struct error *error)
{
    struct trace_reply_tree tree;
    enum status status = trace_server_tree(&tree, server, query, error);

    *size = status == STATUS_OK ? trace_reply_write(bytes, query, &tree) : 0;
    return status;
}

/* ---- divergence ---------------------------------------------------------- */

static enum status find_not_finite(void *context, const struct tensor *tensor, const void *bytes,
                                   struct error *error)
{
    uint64_t *element = context;

    (void)error;
    *element = UINT64_MAX;
    if (tensor->dtype != DTYPE_F32 || element_all_finite(bytes, tensor->count)) {
        return STATUS_OK;
    }
    for (*element = 0; element_all_finite((const uint8_t *)bytes + 4 * *element, 1); ++*element) {
    }
    return STATUS_OK;
}

/* The next value of a state, kept; what is no binary32 is finite. */
static enum status look_at_kept(uint64_t *element, struct trace_server *server, uint32_t state,
                                struct error *error)
{
    const struct tensor *tensor = &server->tape->tensors[server->tape->states[state].before];
    uint32_t item = server->next_items[state];

    *element = UINT64_MAX;
    if (tensor->dtype != DTYPE_F32) {
        return STATUS_OK;
    }
    TRY(trace_server_keep(server, &item, 1, error));
    return find_not_finite(element, tensor, trace_server_tensor(server, item)->bytes, error);
}

enum status trace_server_diverged(uint32_t *state, uint64_t *element, struct trace_server *server,
                                  struct error *error)
{
    const struct tape *tape = server->tape;
    bool filed = server->file.bytes != NULL;
    enum status status = filed ? STATUS_OK : run_step(server, NULL, error);

    for (*state = 0; *state < tape->state_count && status == STATUS_OK; ++*state) {
        status = filed ? look_at_kept(element, server, *state, error)
                       : state_root_visit(server->machine, tape->states[*state].before,
                                          find_not_finite, element, error);
        if (status == STATUS_OK && *element != UINT64_MAX) {
            return STATUS_OK;
        }
    }
    return status == STATUS_OK ? error_set(error, STATUS_NOT_FOUND,
                                           "all elements of the next state are finite numbers")
                               : status;
}
