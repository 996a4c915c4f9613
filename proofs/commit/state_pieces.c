/* state_pieces.c - see state_pieces.h. */
#include "proofs/commit/state_pieces.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/steady.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/element.h"

/* Leaves of one piece: 256 KiB of a tensor, which is one node of its tree. */
#define PIECE_LEVEL 8
#define PIECE_SIZE  ((uint64_t)MERKLE_LEAF_SIZE << PIECE_LEVEL)
/* Below this size waking another thread takes as long as hashing. */
#define ALONE_SIZE  (UINT64_C(1) << 20)
/* More would wait for the memory. */
#define HELPERS_MAX 16

/* A state on the host, and the place of its pieces in the common list. */
struct source {
    const struct tensor *tensor;
    const uint8_t *bytes;
    uint64_t size;
    uint64_t first;            /* of its pieces */
    struct machine_note *note; /* of a state that no step changes; NULL: of another */
};

struct state_pieces {
    struct machine *machine;
    struct source *sources;
    uint32_t count;
    int threads;
    struct digest *nodes; /* one per piece */
    uint64_t piece_count;
    uint64_t size;           /* of all states */
    _Atomic uint64_t next;   /* the first piece that nobody has taken */
    atomic_bool is_infinite; /* a piece holds a NaN or an infinity */
    atomic_bool is_over;     /* helpers take no further piece */
    uint64_t waited_ns;
    bool is_done; /* the root is there */
    enum status status;
    struct digest root;
    int helper_count;
    pthread_t helpers[HELPERS_MAX];
};

/* ---- listing ------------------------------------------------------------ */

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

/* Pieces do not cross tensors: each begins at a piece of its own. False: a state is not here. */
static bool list_sources(struct state_pieces *pieces)
{
    const struct tape *tape = pieces->machine->tape;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        struct source *source = &pieces->sources[i];
        const uint32_t id = tape->states[i].before;

        source->tensor = &tape->tensors[id];
        source->bytes = pieces->machine->backend->peek(pieces->machine, id);
        source->size = commit_tensor_size(source->tensor);
        source->first = pieces->piece_count;
        source->note = note_of(pieces->machine, i);
        if (source->bytes == NULL) {
            return false;
        }
        if (source->note == NULL || !source->note->known) {
            pieces->size += source->size;
            pieces->piece_count += (source->size + PIECE_SIZE - 1) / PIECE_SIZE;
        }
    }
    return true;
}

enum status state_pieces_new(struct state_pieces **pieces, struct machine *machine, int threads,
                             struct error *error)
{
    const uint32_t count = machine->tape->state_count;
    struct state_pieces *made = calloc(1, sizeof(*made));

    *pieces = NULL;
    if (made != NULL) {
        made->machine = machine;
        made->count = count;
        made->threads = threads > 0 ? threads : omp_get_max_threads();
        made->sources = calloc((size_t)count + 1, sizeof(*made->sources));
    }
    if (made == NULL || made->sources == NULL) {
        state_pieces_free(made);
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of %u states", count);
    }
    if (!list_sources(made)) {
        state_pieces_free(made);
        return STATUS_OK;
    }
    made->nodes = malloc(((size_t)made->piece_count + 1) * sizeof(*made->nodes));
    if (made->nodes == NULL) {
        const uint64_t nodes = made->piece_count;

        state_pieces_free(made);
        return error_set(error, STATUS_NO_MEMORY, "no memory for %llu nodes of a state",
                         (unsigned long long)nodes);
    }
    *pieces = made;
    return STATUS_OK;
}

/* ---- hashing ------------------------------------------------------------ */

static const struct source *source_of(const struct state_pieces *pieces, uint64_t piece)
{
    uint32_t low = 0;
    uint32_t high = pieces->count - 1;

    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;

        if (pieces->sources[middle].first <= piece) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return &pieces->sources[low];
}

static void hash_piece(struct state_pieces *pieces, uint64_t piece)
{
    const struct source *source = source_of(pieces, piece);
    uint64_t from = (piece - source->first) * PIECE_SIZE;
    uint64_t size = source->size - from < PIECE_SIZE ? source->size - from : PIECE_SIZE;
    struct merkle_leaves leaves;

    merkle_leaves_init_bytes(&leaves, source->bytes + from, size);
    leaves.threads = 1;
    merkle_root(&pieces->nodes[piece], &leaves);
    if (source->tensor->dtype == DTYPE_F32 &&
        !element_all_finite(source->bytes + from, size / sizeof(float))) {
        atomic_store(&pieces->is_infinite, true);
    }
}

/* Takes piece after piece, until none is left. */
static void hash_pieces(struct state_pieces *pieces)
{
    for (uint64_t piece = atomic_fetch_add(&pieces->next, 1); piece < pieces->piece_count;
         piece = atomic_fetch_add(&pieces->next, 1)) {
        hash_piece(pieces, piece);
    }
}

static void *help_hashing(void *context)
{
    struct state_pieces *pieces = context;

    while (!atomic_load(&pieces->is_over)) {
        uint64_t piece = atomic_fetch_add(&pieces->next, 1);

        if (piece >= pieces->piece_count) {
            break;
        }
        hash_piece(pieces, piece);
    }
    return NULL;
}

/*
 * A piece is the node above 2^PIECE_LEVEL leaves; the last may cover fewer and rises unhashed. So
 * the tree over the pieces' nodes, taken as leaf hashes, is the top of the tensor's tree.
 */
static void find_item(struct digest *item, const struct state_pieces *pieces, uint32_t i,
                      bool finite)
{
    const struct source *source = &pieces->sources[i];
    const uint64_t end = i + 1 < pieces->count ? pieces->sources[i + 1].first : pieces->piece_count;
    struct merkle_leaves nodes;
    struct digest top;

    if (source->note != NULL && source->note->known) {
        *item = source->note->root;
        return;
    }
    merkle_leaves_init_hashes(&nodes, pieces->nodes + source->first, end - source->first);
    nodes.threads = 1;
    merkle_root(&top, &nodes);
    commit_tensor_root_of(item, COMMIT_TENSOR, source->tensor, &top);
    if (source->note != NULL && finite) { /* or the next search would miss what is not */
        *source->note = (struct machine_note){true, *item};
    }
}

static enum status join_pieces(struct state_pieces *pieces)
{
    const bool finite = !atomic_load(&pieces->is_infinite);
    struct commit_roots roots;

    commit_roots_init(&roots, COMMIT_STATE, 0);
    for (uint32_t i = 0; i < pieces->count; i++) {
        struct digest item;

        find_item(&item, pieces, i, finite);
        TRY(commit_roots_add(&roots, &item));
    }
    commit_roots_end(&roots, &pieces->root);
    return STATUS_OK;
}

static void end_helpers(struct state_pieces *pieces)
{
    for (int i = 0; i < pieces->helper_count; i++) {
        (void)pthread_join(pieces->helpers[i], NULL);
    }
    pieces->helper_count = 0;
}

/* By the caller's threads, while the helpers end their last pieces. */
static void finish_pieces(struct state_pieces *pieces)
{
    const bool is_small = pieces->size < ALONE_SIZE;

    if (pieces->is_done) {
        return;
    }
    atomic_store(&pieces->is_over, true);
    if (atomic_load(&pieces->next) < pieces->piece_count) {
#pragma omp parallel num_threads(pieces->threads) if (!is_small)
        hash_pieces(pieces);
    }
    end_helpers(pieces);
    pieces->status = join_pieces(pieces);
    pieces->is_done = true;
}

enum status state_pieces_finish(struct digest *root, bool *finite, struct state_pieces *pieces)
{
    finish_pieces(pieces);
    *root = pieces->root;
    *finite = !atomic_load(&pieces->is_infinite);
    return pieces->status;
}

/* ---- beside a step ------------------------------------------------------ */

static void finish_for_machine(void *context)
{
    struct state_pieces *pieces = context;
    const uint64_t start = steady_ns();

    pieces->machine->guard.before_write = NULL; /* once is enough */
    finish_pieces(pieces);
    pieces->waited_ns += steady_ns() - start;
}

void state_pieces_start(struct state_pieces *pieces, int helpers)
{
    pieces->machine->guard = (struct machine_guard){finish_for_machine, pieces};
    for (int i = 0; i < helpers && i < HELPERS_MAX; i++) {
        if (pthread_create(&pieces->helpers[pieces->helper_count], NULL, help_hashing, pieces) ==
            0) {
            pieces->helper_count++; /* without it the caller's threads do more */
        }
    }
}

uint64_t state_pieces_waited_ns(const struct state_pieces *pieces)
{
    return pieces->waited_ns;
}

void state_pieces_free(struct state_pieces *pieces)
{
    if (pieces == NULL) {
        return;
    }
    if (pieces->machine->guard.context == pieces) {
        pieces->machine->guard = (struct machine_guard){NULL, NULL};
    }
    atomic_store(&pieces->is_over, true);
    end_helpers(pieces);
    free(pieces->sources);
    free(pieces->nodes);
    free(pieces);
}
