/*
 * division.h - a tape divided among machines: which operation runs where, and what crosses over.
 *
 * The forward operations are cut by range, so that each machine has about as much to do and little
 * crosses the cuts; the backward ones and the update follow the parameters and the activations that
 * they read. Quantized operands never cross, since machines keep them in layouts of their own:
 * their quantization runs wherever a reader is. A state lives where its next value is made.
 *
 * Only a tape that passed tape_check() may be divided.
 */
#ifndef ENGINE_PLAN_DIVISION_H
#define ENGINE_PLAN_DIVISION_H

#include "engine/tape/tape.h"

#define DIVISION_PARTS_MAX 8

/* One machine's share. Ids of the whole tape become ids[id] of its own, or TENSOR_NONE. */
struct division_part {
    struct tape *tape;
    uint32_t *ids;
    uint32_t *places; /* per operation of the share: its place in the whole tape */
    bool *shown;      /* per operation: is it here that its outputs are to be shown? */
};

/* A tensor (of the whole tape) that a part needs and another has. */
struct division_move {
    uint32_t tensor;
    uint32_t from;
    uint32_t to;
};

/* Consecutive operations of one part, after the moves that they need. */
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
    struct division_leg *legs; /* in the order in which they run */
    uint32_t leg_count;
    struct division_move *moves;
    uint32_t move_count;
    uint32_t first_moves; /* how many of the moves come before the first leg: states */
    uint32_t *homes;      /* per tensor: the part that a caller reads it from */
};

/*
 * in_order: operations run in the order of the tape, as a trace wants it; else each part goes on as
 * long as it can, so that there are few turns. Refuses more parts than the tape has forward
 * operations, or than DIVISION_PARTS_MAX.
 */
MUST_CHECK enum status division_build(struct division *division, const struct tape *tape,
                                      uint32_t part_count, bool in_order, struct error *error);
void division_release(struct division *division);

/* Bytes that cross over in a step. */
uint64_t division_moved(const struct division *division, const struct tape *tape);

#endif /* ENGINE_PLAN_DIVISION_H */
