/*
 * curve.h - a value of each step, such as the loss, as a drawing needs it: no more cells than a
 * screen has dots, however many steps a training has.
 *
 * A cell holds the mean of its steps. Nothing here allocates.
 */
#ifndef BASE_CURVE_H
#define BASE_CURVE_H

#include <stdbool.h>
#include <stdint.h>

#define CURVE_CELLS 4096

struct curve {
    uint64_t total; /* steps of the training */
    uint64_t end;   /* one past the last step that has a value */
    double newest;  /* its value */
    struct curve_cell {
        double sum;
        uint64_t count;
    } cells[CURVE_CELLS];
};

void curve_init(struct curve *curve, uint64_t total);

/* A value that is not finite, or is of no step of the training, is left out. */
void curve_add(struct curve *curve, uint64_t step, double value);

/* The steps that a drawing shows: all, or a half of them, or less, down to a sixteenth, while the
 * training is young. */
uint64_t curve_shown(const struct curve *curve);

/* The mean over part `part` of `parts` equal parts of the first `shown` steps. False: none of them
 * has a value. */
bool curve_part(double *mean, const struct curve *curve, uint64_t shown, uint32_t part,
                uint32_t parts);

/* Widens low and high by all parts; begin with DBL_MAX and -DBL_MAX. */
void curve_range(double *low, double *high, const struct curve *curve, uint64_t shown,
                 uint32_t parts);

/* Bounds between which there is something to draw, for values that hardly differ. */
void curve_spread(double *low, double *high);

#endif /* BASE_CURVE_H */
