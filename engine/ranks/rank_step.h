/*
 * rank_step.h - one rank's machine, and its share of a step: its first leg, the exchange of sums,
 * and the second leg, after which every rank has the states of one machine.
 */
#ifndef ENGINE_RANKS_RANK_STEP_H
#define ENGINE_RANKS_RANK_STEP_H

#include "engine/plan/backend.h"
#include "engine/ranks/rank_sums.h"
#include "engine/ranks/rank_tape.h"

struct rank_step {
    const struct tape *whole;      /* borrowed */
    const struct ranks_link *link; /* borrowed */
    struct ranks_plan plan;
    struct ranks_shards shards;
    struct rank_tape own;
    struct rank_sums sums;
    struct machine *machine;
    uint32_t cut;
    float *bounce; /* the largest sum */
};

/* Refuses by name what ranks cannot share (rank_tape.h), before anything is allocated. whole must
 * outlive the step. */
MUST_CHECK enum status rank_step_open(struct rank_step *step, const struct tape *whole,
                                      const struct machine_options *options,
                                      const struct ranks_link *link, struct error *error);
void rank_step_close(struct rank_step *step); /* a zero-filled one is allowed */

/* Bytes that rank 0 would allocate for tensors and sums. */
MUST_CHECK enum status rank_step_size(uint64_t *size, const struct tape *whole,
                                      const struct machine_options *options, uint32_t ranks,
                                      struct error *error);

/* What ranks have to add, and what goes over the wire for it in one step. */
struct rank_wire {
    uint32_t groups;
    uint32_t subtrees; /* of all ranks */
    uint64_t elements; /* of the sums: the parameters that learn, and the losses */
    uint64_t bytes;    /* that all ranks send, without the heads of messages */
};

/* Refuses what rank_step_open() refuses. */
MUST_CHECK enum status rank_step_wire(struct rank_wire *wire, const struct tape *whole,
                                      uint32_t ranks, struct error *error);

/* The first leg alone: it makes the sums of the rank's subtrees. */
MUST_CHECK enum status rank_step_first_leg(struct rank_step *step, struct error *error);

/*
 * The sums of one subtree once more, on a machine of their own that has the states of the step as
 * they are now: what a rank makes to check another one. A group's sums leave a rank only in the
 * largest subtree that holds it. data: per tensor of the whole tape the training data that is
 * bound. close() as of a step. elements: room for the largest sum.
 */
MUST_CHECK enum status rank_step_open_again(struct rank_step *again, const struct rank_step *step,
                                            uint32_t subtree, const void *const *data,
                                            const struct machine_options *options,
                                            struct error *error);
MUST_CHECK enum status rank_step_again_sum(float *elements, const struct rank_step *again,
                                           uint32_t sum, struct error *error);

MUST_CHECK enum status rank_step_run(struct rank_step *step, struct error *error);

#endif /* ENGINE_RANKS_RANK_STEP_H */
