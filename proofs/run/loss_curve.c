/* loss_curve.c - see loss_curve.h. */
#include "proofs/run/loss_curve.h"

#include <math.h>

#include "base/endian.h"
#include "engine/ops/real.h"

#define RECALLED_MAX 8192 /* steps of a bundle that are read: more are not seen */

void loss_curve_init(struct loss_curve *curve, uint64_t steps)
{
    curve_init(&curve->loss, steps);
    curve_init(&curve->held_out, steps);
    curve->accuracy = NAN;
    curve->steps = 0;
    curve->nanoseconds = 0;
}

static void add_step(struct loss_curve *curve, uint64_t step, uint32_t loss_bits,
                     uint32_t held_out_bits, uint32_t accuracy_bits)
{
    bool is_newest = step >= curve->held_out.end && isfinite((double)real_from_bits(accuracy_bits));

    curve_add(&curve->loss, step, (double)real_from_bits(loss_bits));
    curve_add(&curve->held_out, step, (double)real_from_bits(held_out_bits));
    curve->accuracy = is_newest ? (double)real_from_bits(accuracy_bits) : curve->accuracy;
}

void loss_curve_add(struct loss_curve *curve, const struct bundle_step *step)
{
    if (step->hidden) {
        return;
    }
    add_step(curve, step->step, step->loss_bits,
             step->evaluated ? step->held_out_bits : FLOAT_NAN_BITS,
             step->evaluated ? step->accuracy_bits : FLOAT_NAN_BITS);
    curve->steps++;
    curve->nanoseconds += step->nanoseconds + step->nanoseconds_committing;
}

enum status loss_curve_recall(struct loss_curve *curve, struct bundle *bundle, struct error *error)
{
    struct bundle_step step;
    uint64_t count = 0;
    uint64_t each;

    TRY(bundle_step_count(&count, bundle, error));
    each = count / RECALLED_MAX + 1;
    for (uint64_t at = 0; at < count && !bundle_is_locked(bundle); at += each) {
        TRY(bundle_step_read(&step, bundle, at, error));
        loss_curve_add(curve, &step);
    }
    return STATUS_OK;
}

double loss_curve_pace(const struct loss_curve *curve)
{
    return curve->nanoseconds == 0 ? 0 : (double)curve->steps * 1e9 / (double)curve->nanoseconds;
}

/* ---- as bytes -------------------------------------------------------------------------- */

/* Where the numbers of a step stand in its LOSS_CURVE_STEP_SIZE bytes. */
enum { CURVE_LOSS = 0, CURVE_HELD_OUT = 4, CURVE_ACCURACY = 8, CURVE_NANOSECONDS = 12 };

enum status loss_curve_write(uint8_t *bytes, struct bundle *bundle, uint64_t first, uint64_t end,
                             struct error *error)
{
    struct bundle_step step;

    for (uint64_t at = first; at < end; at++, bytes += LOSS_CURVE_STEP_SIZE) {
        TRY(bundle_step_read(&step, bundle, at, error));
        endian_store_be32(bytes + CURVE_LOSS, step.loss_bits);
        endian_store_be32(bytes + CURVE_HELD_OUT,
                          step.evaluated ? step.held_out_bits : FLOAT_NAN_BITS);
        endian_store_be32(bytes + CURVE_ACCURACY,
                          step.evaluated ? step.accuracy_bits : FLOAT_NAN_BITS);
        endian_store_be64(bytes + CURVE_NANOSECONDS,
                          step.nanoseconds + step.nanoseconds_committing);
    }
    return STATUS_OK;
}

void loss_curve_read(struct loss_curve *curve, uint64_t first, const uint8_t *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, bytes += LOSS_CURVE_STEP_SIZE) {
        uint64_t nanoseconds = endian_load_be64(bytes + CURVE_NANOSECONDS);

        add_step(curve, first + i, endian_load_be32(bytes + CURVE_LOSS),
                 endian_load_be32(bytes + CURVE_HELD_OUT),
                 endian_load_be32(bytes + CURVE_ACCURACY));
        /* A stranger's numbers: their sum must not wrap. */
        curve->steps++;
        curve->nanoseconds += nanoseconds < UINT64_MAX - curve->nanoseconds ? nanoseconds : 0;
    }
}
