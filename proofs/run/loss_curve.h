/*
 * loss_curve.h - how a training goes: its loss, the loss on held-out data, its pace; of a bundle,
 * or of what a mirror says.
 *
 * No root binds these numbers unless they are part of a state: a page that shows them must say
 * whose word they are.
 */
#ifndef PROOFS_RUN_LOSS_CURVE_H
#define PROOFS_RUN_LOSS_CURVE_H

#include "base/curve.h"
#include "proofs/bundle/bundle.h"

struct loss_curve {
    struct curve loss;
    struct curve held_out;
    double accuracy;      /* on held-out data, the newest; NAN: there is none */
    uint64_t steps;       /* that were added, */
    uint64_t nanoseconds; /* and how long they took, with hashing and writing */
};

void loss_curve_init(struct loss_curve *curve, uint64_t steps);
void loss_curve_add(struct loss_curve *curve, const struct bundle_step *step);

/* Adds the steps of a bundle: all, or as many of them as can be seen. */
MUST_CHECK enum status loss_curve_recall(struct loss_curve *curve, struct bundle *bundle,
                                         struct error *error);

/* Steps a second; 0: not known. */
double loss_curve_pace(const struct loss_curve *curve);

/* ---- as bytes (docs/FORMATS.md, section 11.2) ---- */

#define LOSS_CURVE_STEP_SIZE 20

/* Writes the steps from `first` up to `end`. */
MUST_CHECK enum status loss_curve_write(uint8_t *bytes, struct bundle *bundle, uint64_t first,
                                        uint64_t end, struct error *error);

/* Adds the steps from `first` on. */
void loss_curve_read(struct loss_curve *curve, uint64_t first, const uint8_t *bytes,
                     uint64_t count);

#endif /* PROOFS_RUN_LOSS_CURVE_H */
