/*
 * batch_rows.h - which row of its data a row of BATCH_ROWS is.
 *
 * The rows of a batch are drawn in units of UNIT. Units stand in positions 0, 1, 2, ... of the
 * whole training: those of the counter's batch follow those of the batch before it. With ORDER 0
 * unit p stands at position p, and behind the last one stands none. With ORDER 1 every epoch of as
 * many positions as there are units has each of them once, in an order of its own.
 *
 * The order is a Feistel network of eight rounds over a rectangle of a by b places, a the least
 * integer with a*a >= units and b = ceil(units/a). Fewer than a of its places are no unit; a unit
 * that would come to such a place goes on from there. (With four rounds neighbours follow each
 * other 1.74 times as often as by chance.)
 */
#ifndef ENGINE_OPS_BATCH_ROWS_H
#define ENGINE_OPS_BATCH_ROWS_H

#include "engine/ops/op.h"
#include "engine/ops/philox.h"

#define BATCH_UNITS_MAX (UINT64_C(1) << 31)
#define BATCH_ROUNDS    8
/* After so many walks the unit is the one of its position. No sound job gets there. */
#define BATCH_WALKS_MAX 64
#define BATCH_ROW_NONE  UINT64_MAX

/* The least integer whose square is at least units; 1 <= units <= BATCH_UNITS_MAX. */
static RULE inline uint64_t batch_side(uint64_t units)
{
    uint64_t below = 0; /* the largest integer whose square is below units */

    for (uint64_t bit = UINT64_C(1) << 15; bit > 0; bit >>= 1) {
        if ((below + bit) * (below + bit) < units) {
            below += bit;
        }
    }
    return below + 1;
}

/* The unit at a position of the whole training, in the order of its epoch. */
static RULE inline uint64_t batch_unit(uint64_t position, uint64_t units, uint32_t stream,
                                       uint64_t seed)
{
    const uint32_t epoch = (uint32_t)(position / units);
    const uint64_t sides[2] = {batch_side(units),
                               (units + batch_side(units) - 1) / batch_side(units)};
    uint64_t place = position % units;

    for (uint32_t walk = 0; walk < BATCH_WALKS_MAX; walk++) {
        uint64_t left = place % sides[0];
        uint64_t right = place / sides[0];

        for (uint64_t round = 0; round < BATCH_ROUNDS; round++) {
            const uint64_t side = sides[round & 1];
            const struct philox_block block = philox_draw(right | round << 32, stream, epoch, seed);
            const uint64_t moved = (left + philox_below(&block, side)) % side;

            left = right;
            right = moved;
        }
        place = right * sides[0] + left;
        if (place < units) {
            return place;
        }
    }
    return position % units;
}

/* The data's row that row `row` of the counter's batch is; BATCH_ROW_NONE: none stands there. */
static RULE inline uint64_t batch_row(const int64_t *attributes, uint64_t data_count,
                                      uint32_t counter, uint64_t row)
{
    const uint64_t together = (uint64_t)attributes[BATCH_ROWS_UNIT];
    const uint64_t units = data_count / (uint64_t)attributes[BATCH_LENGTH] / together;
    const uint64_t seed = (uint64_t)(uint32_t)attributes[BATCH_SEED_HIGH] << 32 |
                          (uint32_t)attributes[BATCH_SEED_LOW];
    const uint64_t position =
        counter * ((uint64_t)attributes[BATCH_COUNT] / together) + row / together;
    uint64_t unit = position;

    if (attributes[BATCH_ROWS_ORDER] != 0) {
        unit = batch_unit(position, units, (uint32_t)attributes[BATCH_STREAM], seed);
    } else if (position >= units) {
        return BATCH_ROW_NONE;
    }
    return together * unit + row % together;
}

#endif /* ENGINE_OPS_BATCH_ROWS_H */
