/*
 * division.h - divides a tape among machines: which operation runs where, and which tensors move.
 *
 * The forward operations are cut into ranges of about equal work with few bytes across the cuts.
 * The backward operations and the update run where the parameters and activations are that they
 * read. Quantized operands never move, since machines keep them in layouts of their own; every
 * machine with a reader quantizes for itself. A state lives where its next value is made.
 *
 * Only a tape that passed tape_check() may be divided.
 */
#ifndef ENGINE_PLAN_DIVISION_H
#define ENGINE_PLAN_DIVISION_H

#include "engine/tape/tape.h"

#define DIVISION_PARTS_MAX 12

/* One machine's share. */
struct division_part {
    struct tape *tape;
    uint32_t *ids;    /* per tensor of the whole tape: its id in the share, or TENSOR_NONE */
    uint32_t *places; /* per operation of the share: its place in the whole tape */
    bool *shown;      /* per operation: does this part show its outputs to the observer? */
};

/* A tensor of the whole tape that moves from one part to another. */
struct division_move {
    uint32_t tensor;
    uint32_t from;
    uint32_t to;
};

/* Consecutive operations of one part, and the moves before them. */
struct division_leg {
    uint32_t part;
    uint32_t first; /* of the part's operations */
    uint32_t last;
    uint32_t move_first;
    uint32_t move_count;
};

struct division {
    uint32_t part_count;
    struct division_part parts[DIVISION_PARTS_MAX];
    struct division_leg *legs; /* in running order */
    uint32_t leg_count;
    struct division_move *moves;
    uint32_t move_count;
    uint32_t first_moves; /* the moves of states, before the first leg */
    uint32_t *homes;      /* per tensor: the part from which a caller reads it */
};

/*
 * in_order: operations run in the order of the tape, as a trace needs it. Otherwise each leg is as
 * long as possible. Refuses more parts than the tape has forward operations, or than
 * DIVISION_PARTS_MAX.
 */
MUST_CHECK enum status division_build(struct division *division, const struct tape *tape,
                                      uint32_t part_count, bool in_order, struct error *error);
void division_release(struct division *division);

#endif /* ENGINE_PLAN_DIVISION_H */
