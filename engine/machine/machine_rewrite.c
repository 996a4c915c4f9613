/* machine_rewrite.c - see machine_rewrite.h. */
#include "engine/machine/machine_rewrite.h"

#include <stdlib.h>

#include "engine/plan/chain.h"
#include "engine/plan/hoist.h"
#include "engine/plan/recompute.h"

struct rewriting {
    const struct tape *tape;
    const struct machine_options *options;
    const struct backend *backend;
    struct chain_limits limits;
    struct tape *chained; /* chains make again what they read; NULL: there is no chain */
    bool *inside;         /* per tensor of it: what is left in slices only */
    struct tape *best;    /* of those so far; NULL: the tape itself */
    uint64_t least;       /* its bytes */
};

/* Slices of rows that a GPU keeps on chip take less memory and many launches more. A loss in slices
 * takes time for memory too. */
static struct chain_limits limits_of(const struct machine_options *options,
                                     const struct backend *backend)
{
    struct chain_limits limits = backend->slices;

    if (options->recompute || options->device_memory != 0) {
        limits.columns = 0;
    }
    limits.losses = limits.losses && options->recompute;
    return limits;
}

static enum status find_chains(struct rewriting *rewriting, struct error *error)
{
    if (rewriting->limits.room == 0) {
        return STATUS_OK; /* this backend takes no slices: ranks divide the tape as it is */
    }
    TRY(chain_remake(&rewriting->chained, rewriting->tape, &rewriting->limits, error));
    if (rewriting->chained == NULL) {
        return STATUS_OK;
    }
    rewriting->inside =
        calloc((size_t)rewriting->chained->tensor_count + 1, sizeof(*rewriting->inside));
    if (rewriting->inside == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to rewrite a tape");
    }
    return chain_mark_inside(rewriting->inside, rewriting->chained, &rewriting->limits, error);
}

/* One more way: with so many parts of recompute.h, or 0 for none of them; and chains in slices. */
static enum status build_one(struct tape **one, const struct rewriting *rewriting, uint32_t parts,
                             bool slices, struct error *error)
{
    const struct tape *chained = slices ? rewriting->chained : NULL;
    const struct recompute_hints hints = {rewriting->tape, rewriting->inside};
    struct tape *before = NULL;
    enum status status = STATUS_OK;

    if (parts != 0) {
        TRY(recompute_build(&before, chained != NULL ? chained : rewriting->tape,
                            chained != NULL ? &hints : NULL, parts, error));
    }
    if (chained == NULL) {
        *one = before;
        return STATUS_OK;
    }
    status = chain_slice(one, before != NULL ? before : chained, &rewriting->limits, error);
    if (status == STATUS_OK && *one == NULL) {
        *one = before;
        before = NULL;
    }
    tape_free(before);
    return status;
}

static enum status size_of(uint64_t *size, const struct rewriting *rewriting,
                           const struct tape *tape, struct error *error)
{
    return rewriting->backend->size(size, tape, rewriting->options, error);
}

/* Keeps the way if it takes less memory than all before it. */
static enum status try_one(struct rewriting *rewriting, uint32_t parts, bool slices,
                           struct error *error)
{
    struct tape *one = NULL;
    uint64_t size = 0;
    enum status status = build_one(&one, rewriting, parts, slices, error);

    if (status == STATUS_OK && one != NULL) {
        status = size_of(&size, rewriting, one, error);
    }
    if (status == STATUS_OK && one != NULL && size < rewriting->least) {
        struct tape *before = rewriting->best;

        rewriting->least = size;
        rewriting->best = one;
        one = before;
    }
    tape_free(one);
    return status;
}

static enum status choose_best(struct rewriting *rewriting, struct error *error)
{
    TRY(find_chains(rewriting, error));
    if (rewriting->chained == NULL && !rewriting->options->recompute) {
        return STATUS_OK;
    }
    TRY(size_of(&rewriting->least, rewriting, rewriting->tape, error));
    if (rewriting->chained != NULL) {
        TRY(try_one(rewriting, 0, true, error));
    }
    for (uint32_t parts = 2; rewriting->options->recompute && parts <= RECOMPUTE_PARTS_MAX;
         parts *= 2) {
        TRY(try_one(rewriting, parts, false, error));
        if (rewriting->chained != NULL) {
            TRY(try_one(rewriting, parts, true, error));
        }
    }
    return STATUS_OK;
}

/* Rewrites the rewrite, or the tape where there is none. */
static enum status hoist_rewrite(struct tape **rewrite, const struct tape *tape,
                                 struct error *error)
{
    struct tape *before = *rewrite;
    enum status status = hoist_build(rewrite, before != NULL ? before : tape, error);

    tape_free(before);
    return status;
}

enum status machine_rewrite(struct tape **rewrite, const struct tape *tape,
                            const struct machine_options *options, struct error *error)
{
    const struct backend *backend = options->backend == NULL ? &backend_cpu : options->backend;
    struct rewriting rewriting = {.tape = tape,
                                  .options = options,
                                  .backend = backend,
                                  .limits = limits_of(options, backend)};
    enum status status;

    *rewrite = NULL;
    if (options->trace) {
        return STATUS_OK;
    }
    status = choose_best(&rewriting, error);
    tape_free(rewriting.chained);
    free(rewriting.inside);
    if (status != STATUS_OK) {
        tape_free(rewriting.best);
        return status;
    }
    *rewrite = rewriting.best;
    return options->hoist ? hoist_rewrite(rewrite, tape, error) : STATUS_OK;
}
