/* ranks_roots.c - see ranks_roots.h. */
#include "prover/ranks/ranks_roots.h"

#include <stdlib.h>
#include <string.h>

#include "proofs/commit/element.h"
#include "proofs/hash/merkle.h"

enum status ranks_roots_open(struct ranks_roots *roots, const struct rank_step *step,
                             uint32_t states, int threads, struct error *error)
{
    *roots = (struct ranks_roots){.step = step, .threads = threads};
    roots->owners = calloc((size_t)states + 1, sizeof(*roots->owners));
    roots->sizes = calloc((size_t)states + 1, sizeof(*roots->sizes));
    if (roots->owners == NULL || roots->sizes == NULL) {
        ranks_roots_close(roots);
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of %u states", states);
    }
    return STATUS_OK;
}

void ranks_roots_close(struct ranks_roots *roots)
{
    free(roots->owners);
    free(roots->sizes);
    *roots = (struct ranks_roots){.step = NULL};
}

/* ---- who hashes what -------------------------------------------------------------------- */

static bool is_shared(const struct ranks_roots *roots, uint32_t tensor)
{
    struct rank_holding holding;

    rank_step_holding(&holding, roots->step, tensor);
    return holding.is_shared;
}

enum status ranks_roots_deal(struct ranks_roots *roots, const uint32_t *list, uint32_t count,
                             struct error *error)
{
    const struct tape *tape = roots->step->whole;

    for (uint32_t i = 0; i < count; i++) {
        roots->sizes[i] = is_shared(roots, list[i]) ? 0 : tensor_size(&tape->tensors[list[i]]);
    }
    return ranks_deal(roots->owners, roots->sizes, count, roots->step->link->rank_count, error);
}

/* The leaves of a shared tensor that a rank hashes. */
static uint64_t leaves_of(uint64_t *first, const struct ranks_roots *roots, uint32_t tensor,
                          uint32_t rank)
{
    const uint64_t from = rank_step_first(roots->step, tensor, rank);
    const uint64_t end = rank_step_first(roots->step, tensor, rank + 1);

    *first = from / MERKLE_LEAF_SIZE;
    return (end - from + MERKLE_LEAF_SIZE - 1) / MERKLE_LEAF_SIZE;
}

static uint32_t digests_of(const struct ranks_roots *roots, const uint32_t *list, uint32_t at,
                           uint32_t rank)
{
    uint64_t first;
    uint64_t leaves;

    if (!is_shared(roots, list[at])) {
        return roots->owners[at] == rank;
    }
    leaves = leaves_of(&first, roots, list[at], rank);
    return merkle_range_count(first, leaves);
}

size_t ranks_roots_count(const struct ranks_roots *roots, const uint32_t *list, uint32_t count,
                         uint32_t rank)
{
    size_t digests = 1;

    for (uint32_t i = 0; i < count; i++) {
        digests += digests_of(roots, list, i, rank);
    }
    return digests;
}

/* ---- hashing ---------------------------------------------------------------------------- */

/* The bytes of a tensor of the rank's tape: *copy is to be freed. */
static enum status take_bytes(const uint8_t **bytes, void **copy, const struct ranks_roots *roots,
                              uint32_t id, struct error *error)
{
    struct machine *machine = roots->step->machine;

    *copy = NULL;
    *bytes = machine->backend->peek(machine, id);
    if (*bytes != NULL) {
        return STATUS_OK;
    }
    *copy = malloc(tensor_size(&machine->tape->tensors[id]) + 1);
    *bytes = *copy;
    return *copy == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory to hash the state '%s'",
                                     machine->tape->tensors[id].name)
                         : machine->backend->read(machine, id, *copy, error);
}

static bool is_finite(enum dtype dtype, const uint8_t *bytes, uint64_t size)
{
    return dtype != DTYPE_F32 || element_all_finite(bytes, size / sizeof(float));
}

enum status ranks_roots_share(struct ranks_share *share, const struct ranks_roots *roots,
                              const uint32_t *list, uint32_t at, struct error *error)
{
    const uint32_t rank = roots->step->link->rank;
    struct rank_holding holding;

    *share = (struct ranks_share){.size = 0};
    rank_step_holding(&holding, roots->step, list[at]);
    if (holding.is_shared) {
        share->first = rank_step_first(roots->step, list[at], rank);
        share->size = rank_step_first(roots->step, list[at], rank + 1) - share->first;
    } else if (roots->owners[at] == rank) {
        share->size = tensor_size(&roots->step->whole->tensors[list[at]]);
    }
    if (share->size > 0) {
        TRY(take_bytes(&share->bytes, &share->copy, roots, holding.id, error));
        share->bytes += holding.in_parts ? 0 : share->first;
    }
    return STATUS_OK;
}

/* The rank's leaves of a shared tensor; of another one all of them. */
static enum status hash_leaves(struct digest *found, bool *finite, const struct ranks_roots *roots,
                               const uint32_t *list, uint32_t at, struct error *error)
{
    struct merkle_leaves leaves;
    struct ranks_share share;
    enum status status = ranks_roots_share(&share, roots, list, at, error);

    if (status == STATUS_OK && share.size > 0) {
        merkle_leaves_init_bytes(&leaves, share.bytes, share.size);
        leaves.threads = roots->threads;
        if (is_shared(roots, list[at])) {
            merkle_range_nodes(found, &leaves, share.first / MERKLE_LEAF_SIZE);
        } else {
            merkle_root(found, &leaves);
        }
        *finite = *finite &&
                  is_finite(roots->step->whole->tensors[list[at]].dtype, share.bytes, share.size);
    }
    free(share.copy);
    return status;
}

/* A state that is whole here, where it is. */
static enum status hash_there(struct digest *found, const struct ranks_roots *roots,
                              uint32_t tensor, struct error *error)
{
    struct machine *machine = roots->step->machine;
    struct rank_holding holding;

    rank_step_holding(&holding, roots->step, tensor);
    return machine->backend->leaves_roots(machine, found, &holding.id, 1, error);
}

enum status ranks_roots_find(struct digest *findings, const struct ranks_roots *roots,
                             const uint32_t *list, uint32_t count, struct error *error)
{
    struct machine *machine = roots->step->machine;
    const uint32_t rank = roots->step->link->rank;
    bool finite = true;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t digests = digests_of(roots, list, i, rank);
        const bool there = machine->backend->leaves_roots != NULL && !is_shared(roots, list[i]);

        if (digests > 0 && there) {
            TRY(hash_there(findings, roots, list[i], error));
        } else if (digests > 0) {
            TRY(hash_leaves(findings, &finite, roots, list, i, error));
        }
        findings += digests;
    }
    if (machine->backend->leaves_roots != NULL) {
        bool diverged = true;

        TRY(machine->backend->diverged(machine, &diverged, error));
        finite = finite && !diverged;
    }
    memset(findings, finite ? 1 : 0, sizeof(*findings));
    return STATUS_OK;
}

/* ---- joining ---------------------------------------------------------------------------- */

enum status ranks_roots_join(struct digest *found, bool *finite, const struct ranks_roots *roots,
                             const uint32_t *list, uint32_t count, struct digest *const *findings,
                             struct error *error)
{
    const uint32_t ranks = roots->step->link->rank_count;
    size_t *places = calloc(ranks, sizeof(*places));

    if (places == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u ranks", ranks);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct merkle_builder builder;

        merkle_builder_init(&builder);
        for (uint32_t rank = 0; rank < ranks; rank++) {
            const struct digest *there = findings[rank] + places[rank];
            const uint32_t digests = digests_of(roots, list, i, rank);
            uint64_t first;

            places[rank] += digests;
            if (!is_shared(roots, list[i])) {
                found[i] = digests > 0 ? *there : found[i];
            } else if (merkle_builder_add_range(
                           &builder, there, leaves_of(&first, roots, list[i], rank)) != STATUS_OK) {
                free(places);
                return error_set(error, STATUS_OVER_LIMIT, "a state has too many leaves");
            }
        }
        if (is_shared(roots, list[i])) {
            merkle_builder_root(&builder, &found[i]);
        }
    }
    *finite = true;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        *finite = *finite && findings[rank][places[rank]].bytes[0] == 1;
    }
    free(places);
    return STATUS_OK;
}
