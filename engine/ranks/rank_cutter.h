/*
 * rank_cutter.h - a rank's tape while it is written: its tensors and operations, and of what stands
 * behind the micro-batches the parts that the rank runs.
 */
#ifndef ENGINE_RANKS_RANK_CUTTER_H
#define ENGINE_RANKS_RANK_CUTTER_H

#include "engine/ranks/rank_places.h"

/* A state that counts micro-batches, by ids of the rank's tape. */
struct rank_counter {
    uint32_t state;
    uint32_t begin; /* an input: state + begin_plus. TENSOR_NONE: the rank begins with the state */
    uint32_t begin_plus;
    uint32_t
        end; /* an input, one short of the end: state + end_plus; TENSOR_NONE: it has the end */
    uint32_t end_plus;
};

struct rank_tape {
    struct tape *tape;
    uint32_t *ids;      /* per tensor of the whole tape: the id here where it is whole, or none */
    uint32_t *parts;    /* likewise where the rank has its part: of TENSOR_NONE it has nothing */
    uint32_t sum_count; /* sums: the joined carries, in the order of the tape */
    uint32_t subtree_count; /* of the rank */
    uint32_t *outputs;      /* per subtree and sum: what the first leg makes */
    uint32_t *arrivals;     /* per arrival: the input that it is written to, or TENSOR_NONE */
    uint32_t leg_count;
    uint32_t *legs; /* the first operation of each */
    struct rank_counter *counters;
    uint32_t counter_count;
};

struct tape_cutter {
    const struct tape *whole;
    const struct rank_places *places;
    const struct ranks_plan *plan;
    uint32_t rank;
    struct rank_tape *own;
    uint32_t *kept;     /* per operation of the whole tape: its place here, or TENSOR_NONE */
    uint32_t *stand;    /* per tensor of the whole tape: the id here that stands for it */
    uint32_t *arrivals; /* likewise: its number among the arrivals, or TENSOR_NONE */
};

/* A tensor like one of the whole tape; its id. */
uint32_t tape_cutter_add(struct tape_cutter *cutter, uint32_t like, enum role role);

/* The same under a name of its own: inputs and outputs, which only people who look for a fault
 * read. */
uint32_t tape_cutter_name(struct tape_cutter *cutter, uint32_t like, enum role role,
                          const char *what);

/* The rank's part of a tensor, if it has one, into own->parts. */
void tape_cutter_add_part(struct tape_cutter *cutter, uint32_t tensor, enum role role);

/* The id of a tensor that is read whole: an input where it arrives. */
uint32_t tape_cutter_whole(struct tape_cutter *cutter, uint32_t tensor);

void tape_cutter_put(struct tape_cutter *cutter, const struct op *op);

/* An operation of the whole tape, as it is. */
void tape_cutter_copy(struct tape_cutter *cutter, uint32_t at);

/* What the rank runs of the operations of a stage. */
void tape_cutter_put_stage(struct tape_cutter *cutter, uint32_t stage);

#endif /* ENGINE_RANKS_RANK_CUTTER_H */
