/* state_root.c - see state_root.h. */
#include "proofs/commit/state_root.h"

#include <assert.h>
#include <omp.h>
#include <stdlib.h>

#include "proofs/commit/commit.h"
#include "proofs/commit/element.h"

/* Leaves of one piece: 256 KiB of a tensor, which is one node of its tree. */
#define PIECE_LEVEL 8
#define PIECE_SIZE  ((uint64_t)MERKLE_LEAF_SIZE << PIECE_LEVEL)
/* Below this size waking another thread takes as long as hashing. */
#define ALONE_SIZE  (UINT64_C(1) << 20)

/* A state on the host, and the place of its pieces in the common list. */
struct source {
    const struct tensor *tensor;
    const uint8_t *bytes;
    uint64_t size;
    uint64_t first;            /* of its pieces */
    struct machine_note *note; /* of a state that no step changes; NULL: of another */
};

struct work {
    struct source *sources;
    uint32_t count;
    struct digest *nodes; /* one per piece */
    uint64_t piece_count;
    uint64_t size; /* of all states */
};

enum status state_root_visit(struct machine *machine, uint32_t tensor,
                             enum status (*take)(void *context, const struct tensor *tensor,
                                                 const void *bytes, struct error *error),
                             void *context, struct error *error)
{
    const struct tensor *shape = &machine->tape->tensors[tensor];
    const void *there = machine->backend->peek(machine, tensor);
    enum status status;
    void *copy;

    if (there != NULL) {
        return take(context, shape, there, error);
    }
    copy = malloc(commit_tensor_size(shape));
    if (copy == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the state '%s'", shape->name);
    }
    TRY_OUT(machine->backend->read(machine, tensor, copy, error));
    TRY_OUT(take(context, shape, copy, error));
out:
    free(copy);
    return status;
}

/* ---- states that are not on the host, one after the other ----------------- */

struct state_reading {
    struct commit_roots roots;
    int threads;
};

static enum status take_root(void *context, const struct tensor *tensor, const void *bytes,
                             struct error *error)
{
    struct state_reading *reading = context;
    struct digest root;

    (void)error;
    commit_tensor_root(&root, COMMIT_TENSOR, tensor, bytes, reading->threads);
    return commit_roots_add(&reading->roots, &root);
}

static enum status find_finite(bool *finite, struct machine *machine, struct error *error)
{
    bool diverged = true;
    enum status status = machine->backend->diverged(machine, &diverged, error);

    *finite = !diverged;
    return status;
}

static enum status find_by_reading(struct digest *root, bool *finite, struct machine *machine,
                                   int threads, struct error *error)
{
    const struct tape *tape = machine->tape;
    struct state_reading reading = {.threads = threads};

    commit_roots_init(&reading.roots, COMMIT_STATE, 0);
    for (uint32_t i = 0; i < tape->state_count; i++) {
        TRY(state_root_visit(machine, tape->states[i].before, take_root, &reading, error));
    }
    commit_roots_end(&reading.roots, root);
    return find_finite(finite, machine, error);
}

/* ---- states that the machine hashes where they are ---------------------- */

/* The ids of the states, and room for one digest per state. The caller frees both. */
static enum status list_states(uint32_t **ids, struct digest **items, const struct tape *tape,
                               struct error *error)
{
    size_t count = tape->state_count;

    *ids = calloc(count + 1, sizeof(**ids));
    *items = calloc(count + 1, sizeof(**items));
    if (*ids == NULL || *items == NULL) {
        free(*ids);
        free(*items);
        return error_set(error, STATUS_NO_MEMORY, "no memory for the roots of %zu states", count);
    }
    for (size_t i = 0; i < count; i++) {
        (*ids)[i] = tape->states[i].before;
    }
    return STATUS_OK;
}

static void join_roots(struct digest *root, const struct tape *tape, struct digest *items)
{
    for (size_t i = 0; i < tape->state_count; i++) {
        struct digest leaves_root = items[i];

        commit_tensor_root_of(&items[i], COMMIT_TENSOR, &tape->tensors[tape->states[i].before],
                              &leaves_root);
    }
    commit_list_root(root, COMMIT_STATE, 0, items, tape->state_count);
}

static enum status find_by_asking(struct digest *root, bool *finite, struct machine *machine,
                                  struct error *error)
{
    const struct tape *tape = machine->tape;
    uint32_t *ids;
    struct digest *items;
    enum status status;

    TRY(list_states(&ids, &items, tape, error));
    TRY_OUT(machine->backend->leaves_roots(machine, items, ids, tape->state_count, error));
    join_roots(root, tape, items);
    TRY_OUT(find_finite(finite, machine, error));
out:
    free(ids);
    free(items);
    return status;
}

bool state_root_can_overlap(const struct machine *machine)
{
    return machine->backend->hash_begin != NULL;
}

enum status state_root_begin(struct machine *machine, struct error *error)
{
    const struct tape *tape = machine->tape;
    uint32_t *ids;
    struct digest *items;
    enum status status;

    TRY(list_states(&ids, &items, tape, error));
    status = machine->backend->hash_begin(machine, ids, tape->state_count, error);
    free(ids);
    free(items);
    return status;
}

enum status state_root_end(struct digest *root, bool *finite, struct machine *machine,
                           struct error *error)
{
    const struct tape *tape = machine->tape;
    uint32_t *ids;
    struct digest *items;
    bool diverged = true;
    enum status status;

    TRY(list_states(&ids, &items, tape, error));
    TRY_OUT(machine->backend->hash_end(machine, items, &diverged, error));
    join_roots(root, tape, items);
out:
    *finite = !diverged;
    free(ids);
    free(items);
    return status;
}

/* ---- states on the host, all at once ------------------------------------ */

static const struct source *source_of(const struct work *work, uint64_t piece)
{
    uint32_t low = 0;
    uint32_t high = work->count - 1;

    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;

        if (work->sources[middle].first <= piece) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return &work->sources[low];
}

/* Hashes one piece; true when it holds no NaN and no infinity. */
static bool hash_piece(const struct work *work, uint64_t piece)
{
    const struct source *source = source_of(work, piece);
    uint64_t from = (piece - source->first) * PIECE_SIZE;
    uint64_t size = source->size - from < PIECE_SIZE ? source->size - from : PIECE_SIZE;
    struct merkle_leaves leaves;

    merkle_leaves_init_bytes(&leaves, source->bytes + from, size);
    leaves.threads = 1;
    merkle_root(&work->nodes[piece], &leaves);
    return source->tensor->dtype != DTYPE_F32 ||
           element_all_finite(source->bytes + from, size / sizeof(float));
}

/*
 * A piece is the node above 2^PIECE_LEVEL leaves; the last may cover fewer and rises unhashed. So
 * the tree over the pieces' nodes, taken as leaf hashes, is the top of the tensor's tree.
 */
static void find_item(struct digest *item, const struct work *work, uint32_t i, bool finite)
{
    const struct source *source = &work->sources[i];
    const uint64_t end = i + 1 < work->count ? work->sources[i + 1].first : work->piece_count;
    struct merkle_leaves nodes;
    struct digest top;

    if (source->note != NULL && source->note->known) {
        *item = source->note->root;
        return;
    }
    merkle_leaves_init_hashes(&nodes, work->nodes + source->first, end - source->first);
    nodes.threads = 1;
    merkle_root(&top, &nodes);
    commit_tensor_root_of(item, COMMIT_TENSOR, source->tensor, &top);
    if (source->note != NULL && finite) { /* or the next search would miss what is not */
        *source->note = (struct machine_note){true, *item};
    }
}

static enum status join_pieces(struct digest *root, const struct work *work, bool finite)
{
    struct commit_roots roots;

    commit_roots_init(&roots, COMMIT_STATE, 0);
    for (uint32_t i = 0; i < work->count; i++) {
        struct digest item;

        find_item(&item, work, i, finite);
        TRY(commit_roots_add(&roots, &item));
    }
    commit_roots_end(&roots, root);
    return STATUS_OK;
}

/* Where the root of a state that no step changes is noted. */
static struct machine_note *note_of(struct machine *machine, uint32_t state)
{
    const struct tape *tape = machine->tape;

    if (machine->backend != &backend_cpu ||
        tape->states[state].after != tape->states[state].before) {
        return NULL;
    }
    if (machine->notes == NULL) {
        machine->notes = calloc((size_t)tape->state_count + 1, sizeof(*machine->notes));
    }
    return machine->notes == NULL ? NULL : &machine->notes[state];
}

static int thread_count(uint64_t size, int threads)
{
    if (size < ALONE_SIZE) {
        return 1;
    }
    return threads > 0 ? threads : omp_get_max_threads();
}

static enum status find_at_once(struct digest *root, bool *finite, struct work *work, int threads,
                                struct error *error)
{
    int used = thread_count(work->size, threads);
    bool all_finite = true;
    enum status status;

    work->nodes = malloc(((size_t)work->piece_count + 1) * sizeof(*work->nodes));
    if (work->nodes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %llu nodes of a state",
                         (unsigned long long)work->piece_count);
    }
#pragma omp parallel for schedule(dynamic) num_threads(used) if (used > 1)            \
    reduction(&& : all_finite)
    for (uint64_t piece = 0; piece < work->piece_count; piece++) {
        bool good = hash_piece(work, piece);

        all_finite = all_finite && good;
    }
    *finite = all_finite;
    status = join_pieces(root, work, all_finite);
    free(work->nodes);
    return status;
}

enum status state_root_find(struct digest *root, bool *finite, struct machine *machine, int threads,
                            struct error *error)
{
    const struct tape *tape = machine->tape;
    struct work work = {.count = tape->state_count};
    bool on_host = true;
    bool unwanted;
    enum status status;

    finite = finite == NULL ? &unwanted : finite;
    /* The quickest way that the machine has: hashing beside the next step, hashing where the bytes
     * are, on the host's threads without a copy, and last with one. */
    if (state_root_can_overlap(machine)) {
        TRY(state_root_begin(machine, error));
        return state_root_end(root, finite, machine, error);
    }
    if (machine->backend->leaves_roots != NULL) {
        return find_by_asking(root, finite, machine, error);
    }
    work.sources = calloc((size_t)tape->state_count + 1, sizeof(*work.sources));
    if (work.sources == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of %u states",
                         tape->state_count);
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        struct source *source = &work.sources[i];

        source->tensor = &tape->tensors[tape->states[i].before];
        source->bytes = machine->backend->peek(machine, tape->states[i].before);
        source->size = commit_tensor_size(source->tensor);
        source->first = work.piece_count;
        source->note = note_of(machine, i);
        on_host = on_host && source->bytes != NULL;
        if (source->note == NULL || !source->note->known) {
            work.size += source->size;
            /* Pieces do not cross tensors: each begins at a piece of its own. */
            work.piece_count += (source->size + PIECE_SIZE - 1) / PIECE_SIZE;
        }
    }
    status = on_host ? find_at_once(root, finite, &work, threads, error)
                     : find_by_reading(root, finite, machine, threads, error);
    free(work.sources);
    return status;
}

enum status state_root_of(struct digest *root, struct machine *machine, struct error *error)
{
    return state_root_find(root, NULL, machine, 0, error);
}
