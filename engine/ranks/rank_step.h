/*
 * rank_step.h - one rank's machine, and its share of a step: its legs, the exchange of sums behind
 * the first, and what arrives before each other one. After a step each rank has its part of the
 * states of one machine.
 */
#ifndef ENGINE_RANKS_RANK_STEP_H
#define ENGINE_RANKS_RANK_STEP_H

#include "engine/plan/backend.h"
#include "engine/ranks/rank_arrivals.h"
#include "engine/ranks/rank_sums.h"
#include "engine/ranks/rank_tape.h"

struct rank_step {
    const struct tape *whole;      /* borrowed */
    const struct ranks_link *link; /* borrowed */
    struct ranks_plan plan;
    struct rank_places places;
    struct ranks_shards shards; /* of the sums */
    struct rank_tape own;
    struct rank_sums sums;
    struct rank_arrivals *arrivals; /* per stage from 1 on; stage_count is behind the last leg */
    struct machine *machine;
    uint32_t *bounded; /* per tensor: of a state with shards the one whose bounds it has */
    uint32_t *legs;    /* where they begin in the machine's tape */
    uint8_t *bounce;   /* the largest tensor that travels */
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
    uint32_t spare;    /* ranks without a group */
    uint64_t elements; /* of the sums: the parameters that learn, and the losses */
    uint64_t bytes;    /* that all ranks send, without the heads of messages */
    uint64_t cut;      /* bytes of the states that lie in shards */
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

/* Where a state, data or a constant lies on the ranks: a tensor of the whole tape. */
struct rank_holding {
    uint32_t id;    /* of this rank's tape, whole or its part; TENSOR_NONE: it has no part */
    bool in_parts;  /* each rank has a part, and none the whole */
    bool is_shared; /* a state with shards, at leaves: each rank hashes its part */
};

void rank_step_holding(struct rank_holding *holding, const struct rank_step *step, uint32_t tensor);

/* The first byte of a tensor with bounds that a rank has; of rank `rank_count`, its size. */
uint64_t rank_step_first(const struct rank_step *step, uint32_t tensor, uint32_t rank);

#endif /* ENGINE_RANKS_RANK_STEP_H */
