/*
 * ranks_roots.h - what each rank does with its share of the states: it hashes it, and one joins the
 * roots; and it writes it, into a checkpoint that all of them see.
 *
 * Of a state with shards each rank has its own leaves, full subtrees of the state's tree. Others
 * are dealt out whole, by size.
 */
#ifndef PROVER_RANKS_RANKS_ROOTS_H
#define PROVER_RANKS_RANKS_ROOTS_H

#include "base/digest.h"
#include "engine/ranks/rank_step.h"
#include "prover/ranks/ranks_team.h"

struct ranks_roots {
    const struct rank_step *step; /* borrowed */
    int threads;                  /* to hash with */
    uint32_t *owners;             /* per tensor of the list: who has it, where it has no shards */
    uint64_t *sizes;
};

/* A list has at most `states` tensors. */
MUST_CHECK enum status ranks_roots_open(struct ranks_roots *roots, const struct rank_step *step,
                                        uint32_t states, int threads, struct error *error);
void ranks_roots_close(struct ranks_roots *roots); /* a zero-filled one is allowed */

/* Who has what of a list of states, by ids of the whole tape. */
MUST_CHECK enum status ranks_roots_deal(struct ranks_roots *roots, const uint32_t *list,
                                        uint32_t count, struct error *error);

/* How many digests a rank finds for the list, and one more: whether what it read is finite. */
size_t ranks_roots_count(const struct ranks_roots *roots, const uint32_t *list, uint32_t count,
                         uint32_t rank);

/* What this rank finds. */
MUST_CHECK enum status ranks_roots_find(struct digest *findings, const struct ranks_roots *roots,
                                        const uint32_t *list, uint32_t count, struct error *error);

/* The roots of the list from what all ranks have found: findings[rank]. */
MUST_CHECK enum status ranks_roots_join(struct digest *found, bool *finite,
                                        const struct ranks_roots *roots, const uint32_t *list,
                                        uint32_t count, struct digest *const *findings,
                                        struct error *error);

/* What a rank has of a state in its memory: some of the tensor's bytes. */
struct ranks_share {
    uint64_t first;
    uint64_t size;        /* 0: nothing */
    const uint8_t *bytes; /* of the share */
    void *copy;           /* free() it */
};

/* The share of this rank of tensor list[at]; of one without shards all of it, for its owner. */
MUST_CHECK enum status ranks_roots_share(struct ranks_share *share, const struct ranks_roots *roots,
                                         const uint32_t *list, uint32_t at, struct error *error);

/* ---- ranks_save.c: a checkpoint that all ranks write ---- */

/* Opens what rank 0 has made, as it made it: a file of so many bytes, no pipe and no
 * link. The caller closes it; -1: it is not open. */
MUST_CHECK enum status ranks_save_open(int *file, const char *path, uint64_t size,
                                       struct error *error);

/*
 * Rank 0 has made a file under a random name, and tells it to the others. Where all see it in the
 * folder that is theirs, each writes its share and says when it is on disk. *seen: false: one of
 * them does not see it, *error says who, and nothing was written. STATUS_RANK_LOST: the ranks are
 * not at one place any more. Another failure is told by all that wrote.
 */
MUST_CHECK enum status ranks_save_lead(bool *seen, struct ranks_team *team,
                                       struct ranks_roots *roots, const struct machine_save *save,
                                       struct error *error);

/* Of another rank, when rank 0 speaks of `count` tensors. folder: where checkpoints lie; NULL: this
 * rank sees none. */
MUST_CHECK enum status ranks_save_follow(struct ranks_team *team, struct ranks_roots *roots,
                                         const char *folder, uint32_t count, struct error *error);

#endif /* PROVER_RANKS_RANKS_ROOTS_H */
