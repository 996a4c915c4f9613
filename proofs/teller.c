/* teller.c - see teller.h. */
#include "proofs/teller.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/element.h"

/* ---- the states before the step ------------------------------------------ */

static enum status no_memory(const struct tensor *tensor, struct error *error)
{
    return error_set(error, STATUS_NO_MEMORY, "no memory for '%s', %" PRIu64 " bytes", tensor->name,
                     commit_tensor_size(tensor));
}

static enum status save_states(struct teller *teller, struct error *error)
{
    const struct tape *tape = teller->tape;

    teller->states = calloc((size_t)tape->state_count + 1, sizeof(*teller->states));
    if (teller->states == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of states");
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        uint32_t id = tape->states[i].before;
        enum status status;

        teller->states[i] = malloc(commit_tensor_size(&tape->tensors[id]));
        if (teller->states[i] == NULL) {
            return no_memory(&tape->tensors[id], error);
        }
        status = teller->machine->backend->read(teller->machine, id, teller->states[i], error);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

/* Runs the step again, from the state before it. */
static enum status run(struct teller *teller, const struct observer *observer, struct error *error)
{
    struct machine *machine = teller->machine;
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < teller->tape->state_count && status == STATUS_OK; i++) {
        status = machine->backend->write(machine, teller->tape->states[i].before, teller->states[i],
                                         error);
    }
    teller->runs++;
    return status == STATUS_OK ? machine->backend->step(machine, observer, error) : status;
}

/* ---- tensors that are kept ----------------------------------------------- */

static void drop(struct teller_tensor *kept)
{
    free(kept->owned);
    free(kept->hashes);
    memset(kept, 0, sizeof(*kept));
}

const struct teller_tensor *teller_tensor(const struct teller *teller, uint32_t item)
{
    for (uint32_t i = 0; i < teller->kept_count; i++) {
        if (teller->kept[i].item == item) {
            return &teller->kept[i];
        }
    }
    return NULL;
}

static bool wants(const uint32_t *items, uint32_t count, uint32_t item)
{
    for (uint32_t i = 0; i < count; i++) {
        if (items[i] == item) {
            return true;
        }
    }
    return false;
}

static void keep_only(struct teller *teller, const uint32_t *items, uint32_t count)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < teller->kept_count; i++) {
        if (wants(items, count, teller->kept[i].item)) {
            teller->kept[left++] = teller->kept[i];
        } else {
            drop(&teller->kept[i]);
        }
    }
    teller->kept_count = left;
}

/* Hashes what is kept at bytes; it must be what the trace says. */
static enum status keep(struct teller *teller, uint32_t item, const uint8_t *bytes, uint8_t *owned,
                        struct error *error)
{
    struct teller_tensor *kept = &teller->kept[teller->kept_count];
    struct merkle_leaves leaves;
    struct merkle_leaves hashes;
    struct digest root;

    assert(teller->kept_count < TELLER_KEPT_MAX);
    kept->item = item;
    kept->tensor = &teller->tape->tensors[trace_tensor_at(teller->tape, item)];
    kept->bytes = bytes;
    kept->owned = owned;
    kept->size = commit_tensor_size(kept->tensor);
    kept->leaf_count = ask_tensor_count(kept->tensor);
    kept->hashes = malloc((size_t)kept->leaf_count * sizeof(*kept->hashes));
    if (kept->hashes == NULL) {
        const struct tensor *tensor = kept->tensor;

        drop(kept);
        return no_memory(tensor, error);
    }
    merkle_leaves_init_bytes(&leaves, bytes, kept->size);
    merkle_leaf_hashes(kept->hashes, &leaves);
    merkle_leaves_init_hashes(&hashes, kept->hashes, kept->leaf_count);
    merkle_root(&root, &hashes);
    commit_tensor_root_of(&root, COMMIT_TENSOR, kept->tensor, &root);
    if (!digest_equal(&root, &teller->trace.items[item])) {
        enum status status = error_set(
            error, STATUS_DEVICE, "tensor %u of the trace is not what it was the first time", item);

        error_advise(error, "this machine computes wrongly: use another one");
        drop(kept);
        return status;
    }
    teller->kept_count++;
    return STATUS_OK;
}

/* One run that looks for the items that are wanted and not kept. */
struct search {
    struct teller *teller;
    const uint32_t *items;
    uint32_t count;
    uint32_t next; /* the item that comes next */
    uint32_t left; /* outputs to be found */
};

static enum status found(void *context, uint32_t op, uint32_t output, const void *bytes,
                         uint64_t size, struct error *error)
{
    struct search *search = context;
    struct teller *teller = search->teller;
    uint32_t item = search->next++;
    enum status status;
    uint8_t *copy;

    if (!wants(search->items, search->count, item) || teller_tensor(teller, item) != NULL) {
        return STATUS_OK;
    }
    copy = malloc((size_t)size);
    if (copy == NULL) {
        return no_memory(&teller->tape->tensors[teller->tape->ops[op].outputs[output]], error);
    }
    memcpy(copy, bytes, (size_t)size);
    status = keep(teller, item, copy, copy, error);
    search->left--;
    /* Nothing after the last one is of interest: that is no failure. */
    return status == STATUS_OK && search->left == 0 ? STATUS_STOPPED : status;
}

enum status teller_keep(struct teller *teller, const uint32_t *items, uint32_t count,
                        struct error *error)
{
    struct search search = {teller, items, count, teller->tape->state_count, 0};
    const struct observer observer = {found, &search};
    enum status status = STATUS_OK;

    assert(count <= TELLER_KEPT_MAX);
    keep_only(teller, items, count);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        uint32_t item = items[i];

        assert(item < teller->trace.item_count);
        if (teller_tensor(teller, item) != NULL || wants(items, i, item)) {
            continue;
        }
        if (item < teller->trace.state_count) {
            status = keep(teller, item, teller->states[item], NULL, error);
        } else {
            search.left++;
        }
    }
    if (status == STATUS_OK && search.left > 0) {
        status = run(teller, &observer, error);
        if (status == STATUS_STOPPED && search.left == 0) {
            status = STATUS_OK;
        }
        assert(status != STATUS_OK || search.left == 0);
    }
    return status;
}

/* ---- opening and closing ------------------------------------------------- */

static enum status list_next(struct teller *teller, struct error *error)
{
    uint32_t count = teller->tape->state_count;
    enum status status = trace_next_items(&teller->next_items, teller->tape, error);

    if (status != STATUS_OK) {
        return status;
    }
    teller->next = malloc(((size_t)count + 1) * 2 * sizeof(*teller->next));
    if (teller->next == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of states");
    }
    for (uint32_t i = 0; i < count; i++) {
        teller->next[i] = teller->trace.items[teller->next_items[i]];
        merkle_leaf_hash(&teller->next[count + i], teller->next[i].bytes, DIGEST_SIZE);
    }
    return STATUS_OK;
}

enum status teller_open(struct teller *teller, struct machine *machine, struct error *error)
{
    enum status status;

    memset(teller, 0, sizeof(*teller));
    teller->machine = machine;
    teller->tape = machine->tape;
    status = save_states(teller, error);
    if (status == STATUS_OK) {
        teller->runs = 1;
        status = trace_run(&teller->trace, machine, NULL, 0, error);
    }
    if (status == STATUS_OK) {
        status = list_next(teller, error);
    }
    if (status != STATUS_OK) {
        teller_close(teller);
    }
    return status;
}

void teller_close(struct teller *teller)
{
    keep_only(teller, NULL, 0);
    for (uint32_t i = 0; teller->states != NULL && i < teller->tape->state_count; i++) {
        free(teller->states[i]);
    }
    free(teller->states);
    free(teller->next_items);
    free(teller->next);
    trace_release(&teller->trace);
    memset(teller, 0, sizeof(*teller));
}

/* ---- answers ------------------------------------------------------------- */

enum status teller_tree(struct tell_tree *tree, struct teller *teller, const struct ask *ask,
                        struct error *error)
{
    enum status status = ask_check(ask, teller->tape, error);
    const struct teller_tensor *kept;

    memset(tree, 0, sizeof(*tree));
    if (status != STATUS_OK) {
        return status;
    }
    switch (ask->kind) {
    case ASK_LIST:
    case ASK_LIST_NODE:
        tree->items = ask->list == ASK_TRACE ? teller->trace.items : teller->next;
        merkle_leaves_init_hashes(&tree->hashes,
                                  ask->list == ASK_TRACE ? teller->trace.hashes
                                                         : teller->next + teller->tape->state_count,
                                  ask_list_count(teller->tape, ask->list));
        return STATUS_OK;
    case ASK_TENSOR:
    case ASK_TENSOR_NODE:
        break;
    case ASK_DIVERGED:
    case ASK_PARTS:
        return error_set(error, STATUS_USAGE, "what is told of that is no tree");
    }
    if (teller_tensor(teller, ask->item) == NULL) {
        status = teller_keep(teller, &ask->item, 1, error);
    }
    kept = teller_tensor(teller, ask->item);
    if (kept != NULL) {
        tree->bytes = kept->bytes;
        tree->byte_count = kept->size;
        merkle_leaves_init_hashes(&tree->hashes, kept->hashes, kept->leaf_count);
    }
    return status;
}

enum status teller_answer(uint8_t *bytes, size_t *size, struct teller *teller,
                          const struct ask *ask, struct error *error)
{
    struct tell_tree tree;
    enum status status = teller_tree(&tree, teller, ask, error);

    *size = status == STATUS_OK ? tell_write(bytes, ask, &tree) : 0;
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

enum status teller_diverged(uint32_t *state, uint64_t *element, struct teller *teller,
                            struct error *error)
{
    const struct tape *tape = teller->tape;
    enum status status = run(teller, NULL, error);

    for (*state = 0; *state < tape->state_count && status == STATUS_OK; ++*state) {
        status = state_visit(teller->machine, tape->states[*state].before, find_not_finite, element,
                             error);
        if (status == STATUS_OK && *element != UINT64_MAX) {
            return STATUS_OK;
        }
    }
    return status == STATUS_OK ? error_set(error, STATUS_NOT_FOUND,
                                           "all elements of the next state are finite numbers")
                               : status;
}
