/*
 * rank_table.h - the table that says where what stands behind the micro-batches runs: rank_families
 * fills its first half, rank_places the other.
 */
#ifndef ENGINE_RANKS_RANK_TABLE_H
#define ENGINE_RANKS_RANK_TABLE_H

#include "engine/tape/tape.h"

enum rank_where {
    RANK_BODY = 0, /* before the stages: what stands before the body, the body and its joins */
    RANK_ALL,      /* on every rank, whole */
    RANK_CUT,      /* on each rank the units of its shard */
    RANK_ONE,      /* on one rank, whole */
};

struct rank_op {
    enum rank_where where;
    uint32_t stage;  /* 0: in the body */
    uint32_t axis;   /* RANK_CUT: that it is cut along (slice.h) */
    uint32_t family; /* RANK_CUT and RANK_ONE */
    uint64_t units;  /* RANK_CUT: of the axis */
};

/* Tensors that are cut alike: each at the same shares of its elements. */
struct rank_family {
    uint64_t count;   /* elements of its largest tensor */
    uint64_t unit;    /* elements of it between two places where the family may be cut */
    bool whole;       /* on one rank */
    uint32_t owner;   /* that one */
    uint64_t *bounds; /* per rank and one more: of the largest tensor */
};

/* A tensor that is made in parts and that ranks read whole. */
struct rank_arrival {
    uint32_t tensor;
    uint32_t stage; /* before which it arrives; the last: behind all operations */
    uint32_t state; /* whose next value it is, where that is whole on every rank; or TENSOR_NONE */
};

enum rank_state {
    RANK_STATE_ALL = 0,  /* each rank makes its next value itself */
    RANK_STATE_GATHERED, /* whole on every rank; its next value is made in parts */
    RANK_STATE_CUT,      /* each rank has its shard */
};

struct rank_places {
    const struct tape *whole; /* borrowed */
    uint32_t ranks;
    uint32_t stage_count; /* the operations' last stage, and one more */
    struct rank_op *ops;  /* per operation */
    uint32_t *families;   /* per tensor: its family, or TENSOR_NONE */
    bool *cut;            /* per tensor: it is made, or lies, in parts */
    bool *in_body;        /* per tensor: the body reads it, or what stands before the body */
    enum rank_state *states;
    struct rank_family *family;
    uint32_t family_count;
    uint64_t *bounds; /* of all families */
    struct rank_arrival *arrivals;
    uint32_t arrival_count;
    uint32_t *sums; /* per sum: the tensor */
    uint32_t sum_count;
};

#endif /* ENGINE_RANKS_RANK_TABLE_H */
