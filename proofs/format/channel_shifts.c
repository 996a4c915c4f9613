/* channel_shifts.c - see channel_shifts.h. */
#include "proofs/format/channel_shifts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHIFT_MAX = 24,
    SHIFT_LEAST = 2, /* of one channel */
    SHIFT_WORTH = 3, /* of some channel, for a product to be shifted at all */
};

/* One number for each channel. */
struct channels {
    uint64_t count;
    double *gain;    /* |gain| in the norm; 1 without one */
    double *largest; /* |weight| */
    double *squares; /* sum of the squares of its weights */
    double *sorted;  /* for a median */
};

static const struct weights_entry *find(const struct weights *weights, const char *name)
{
    char longer[SAFETENSORS_NAME_MAX + 16];
    const struct weights_entry *entry = weights_find(weights, name);

    (void)snprintf(longer, sizeof(longer), "transformer.%s", name);
    return entry != NULL ? entry : weights_find(weights, longer);
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

/* Of the logarithms that are finite. */
static double median(struct channels *channels, const double *values)
{
    size_t count = 0;

    for (uint64_t k = 0; k < channels->count; k++) {
        if (isfinite(values[k])) {
            channels->sorted[count++] = values[k];
        }
    }
    qsort(channels->sorted, count, sizeof(double), by_size);
    return count == 0 ? 0.0 : channels->sorted[count / 2];
}

/* ---- what the weights say ----------------------------------------------- */

static void take_weight(struct channels *channels, uint64_t k, float weight)
{
    double size = fabs((double)weight);

    channels->largest[k] = size > channels->largest[k] ? size : channels->largest[k];
    channels->squares[k] += size * size;
}

/* A matrix (out, in), or with in_first (in, out); row by row. */
static bool take_matrix(struct channels *channels, const struct weights_entry *entry, bool in_first)
{
    uint64_t rows;
    uint64_t columns;
    float *row;
    bool taken = true;

    if (entry == NULL || entry->entry->rank != 2 || !weights_widen(entry->entry->element) ||
        entry->entry->dims[in_first ? 0 : 1] != channels->count) {
        return false;
    }
    rows = entry->entry->dims[0];
    columns = entry->entry->dims[1];
    row = malloc(columns * sizeof(*row) + 1);
    for (uint64_t r = 0; r < rows && taken; r++) {
        taken = row != NULL && weights_read(row, entry, r * columns, columns, NULL) == STATUS_OK;
        for (uint64_t i = 0; taken && i < columns; i++) {
            take_weight(channels, in_first ? r : i, row[i]);
        }
    }
    free(row);
    return taken;
}

static bool take_gain(struct channels *channels, const struct weights_entry *entry)
{
    float *gain = malloc(channels->count * sizeof(*gain) + 1);
    bool taken = gain != NULL && entry != NULL && entry->entry->rank == 1 &&
                 entry->entry->dims[0] == channels->count && weights_widen(entry->entry->element) &&
                 weights_read(gain, entry, 0, channels->count, NULL) == STATUS_OK;

    for (uint64_t k = 0; taken && k < channels->count; k++) {
        channels->gain[k] = fabs((double)gain[k]);
    }
    free(gain);
    return taken;
}

static bool take_all(struct channels *channels, const struct weights *weights,
                     const struct channel_readers *readers)
{
    for (uint32_t i = 0; i < readers->count; i++) {
        if (!take_matrix(channels, find(weights, readers->names[i]), readers->in_first)) {
            return false;
        }
    }
    return readers->gain[0] == '\0' || take_gain(channels, find(weights, readers->gain));
}

/* ---- the rule ----------------------------------------------------------- */

static int within(double value)
{
    return value > SHIFT_MAX ? SHIFT_MAX : value < -SHIFT_MAX ? -SHIFT_MAX : (int)value;
}

static int choose(double d, double r)
{
    int h = fabs(d) < SHIFT_LEAST ? 0 : within(floor((round(d) + 1.0) / 2.0));
    int w = fabs(r) < SHIFT_LEAST ? 0 : within(-round(r));

    if (h != 0 && (h > 0) != (w > 0) && w != 0) {
        return h;
    }
    return abs(h) > abs(w) ? h : w;
}

/* In place: gain becomes d without its median, squares r. */
static bool shift(int16_t *c, struct channels *channels, bool gains)
{
    double middle_d;
    double middle_r;
    bool worth = false;

    for (uint64_t k = 0; k < channels->count; k++) {
        channels->gain[k] = log2(channels->gain[k]) - log2(channels->largest[k]);
        channels->squares[k] = 0.5 * log2(channels->squares[k]);
    }
    middle_d = median(channels, channels->gain);
    middle_r = median(channels, channels->squares);
    for (uint64_t k = 0; k < channels->count; k++) {
        double d = gains ? channels->gain[k] - middle_d : 0.0;
        double r = channels->squares[k] - middle_r;

        c[k] = isfinite(d) && isfinite(r) ? (int16_t)choose(d, r) : 0;
        worth = worth || abs(c[k]) >= SHIFT_WORTH;
    }
    return worth;
}

bool channel_shifts_of(const void *weights, int16_t *c, const struct channel_readers *readers)
{
    uint64_t count = readers->width;
    double *memory = calloc(4 * count + 1, sizeof(*memory));
    struct channels channels = {.count = count,
                                .gain = memory,
                                .largest = memory + count,
                                .squares = memory + 2 * count,
                                .sorted = memory + 3 * count};
    bool worth = false;

    if (memory == NULL) {
        return false;
    }
    for (uint64_t k = 0; k < count; k++) {
        channels.gain[k] = 1.0;
    }
    if (take_all(&channels, weights, readers)) {
        worth = shift(c, &channels, readers->gain[0] != '\0');
    }
    free(memory);
    return worth;
}
