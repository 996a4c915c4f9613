/* state_root.c - see state_root.h. */
#include "proofs/commit/state_root.h"

#include <assert.h>
#include <omp.h>
#include <stdlib.h>

#include "proofs/commit/commit.h"
#include "proofs/commit/state_pieces.h"

/* Below this size waking another thread takes as long as hashing. */
#define BESIDE_SIZE (UINT64_C(1) << 20)

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

static enum status begin_by_asking(struct machine *machine, struct error *error)
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

static enum status end_by_asking(struct digest *root, bool *finite, struct machine *machine,
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

/* ---- beside a step -------------------------------------------------------- */

/* Cores that the machine's threads leave idle. */
static int idle_cores(int threads)
{
    return threads > 0 ? omp_get_num_procs() - threads : 0;
}

/* Bytes of the states that steps change. */
static uint64_t changing_size(const struct tape *tape)
{
    uint64_t size = 0;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (tape->states[i].after != tape->states[i].before) {
            size += commit_tensor_size(&tape->tensors[tape->states[i].before]);
        }
    }
    return size;
}

bool state_root_can_overlap(const struct machine *machine, int threads)
{
    return machine->backend->hash_begin != NULL ||
           (machine->backend == &backend_cpu && idle_cores(threads) > 0 &&
            changing_size(machine->tape) >= BESIDE_SIZE);
}

enum status state_root_begin(struct machine *machine, int threads, struct error *error)
{
    struct state_pieces *pieces;

    if (machine->backend->hash_begin != NULL) {
        return begin_by_asking(machine, error);
    }
    TRY(state_pieces_new(&pieces, machine, threads, error));
    assert(pieces != NULL);
    state_pieces_start(pieces, idle_cores(threads));
    return STATUS_OK;
}

enum status state_root_end(struct digest *root, bool *finite, uint64_t *waited_ns,
                           struct machine *machine, struct error *error)
{
    struct state_pieces *pieces = machine->guard.context;
    enum status status;

    *waited_ns = 0;
    if (machine->backend->hash_end != NULL) {
        return end_by_asking(root, finite, machine, error);
    }
    assert(pieces != NULL);
    status = state_pieces_finish(root, finite, pieces);
    *waited_ns = state_pieces_waited_ns(pieces);
    state_pieces_free(pieces);
    return status;
}

/* ---- in one go ------------------------------------------------------------ */

/* The quickest way that the machine has: beside its work, hashing where the bytes are, on the
 * host's threads without a copy, and last with one. */
enum status state_root_find(struct digest *root, bool *finite, struct machine *machine, int threads,
                            struct error *error)
{
    struct state_pieces *pieces;
    bool unwanted;
    enum status status;

    finite = finite == NULL ? &unwanted : finite;
    if (machine->backend->hash_begin != NULL) {
        TRY(begin_by_asking(machine, error));
        return end_by_asking(root, finite, machine, error);
    }
    if (machine->backend->leaves_roots != NULL) {
        return find_by_asking(root, finite, machine, error);
    }
    TRY(state_pieces_new(&pieces, machine, threads, error));
    if (pieces == NULL) {
        return find_by_reading(root, finite, machine, threads, error);
    }
    status = state_pieces_finish(root, finite, pieces);
    state_pieces_free(pieces);
    return status;
}

enum status state_root_of(struct digest *root, struct machine *machine, struct error *error)
{
    return state_root_find(root, NULL, machine, 0, error);
}
