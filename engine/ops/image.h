/*
 * image.h - the geometry of a window that moves over pictures (batch, height, width, channels).
 *
 * Rules and kernels share these bounds, so they agree about the edges. op_check() has passed: the
 * kernel fits into the padded picture, strides and dilations are at least 1, and no product of
 * sizes exceeds TENSOR_COUNT_MAX.
 */
#ifndef ENGINE_OPS_IMAGE_H
#define ENGINE_OPS_IMAGE_H

#include "engine/ops/op.h"

/* One direction. */
struct image_axis {
    int64_t size;
    int64_t kernel; /* places of a window */
    int64_t stride;
    int64_t before; /* padding above or to the left */
    int64_t dilation;
    int64_t out; /* windows that fit */
};

struct image {
    int64_t batch;
    int64_t channels;
    struct image_axis y;
    struct image_axis x;
};

/* The extent of a window: its places and what lies between them. */
static RULE inline int64_t image_extent(const struct image_axis *axis)
{
    return (axis->kernel - 1) * axis->dilation + 1;
}

/* horizontal: 0 for rows, 1 for columns. */
static RULE inline struct image_axis image_axis_of(const int64_t *a, uint32_t horizontal)
{
    struct image_axis axis = {
        .size = a[IMAGE_HEIGHT + horizontal],
        .kernel = a[IMAGE_KERNEL_HEIGHT + horizontal],
        .stride = a[IMAGE_STRIDE_Y + horizontal],
        .before = a[IMAGE_TOP + horizontal],
        .dilation = a[IMAGE_DILATION_Y + horizontal],
    };
    int64_t padded = axis.size + axis.before + a[IMAGE_BOTTOM + horizontal];

    axis.out = (padded - image_extent(&axis)) / axis.stride + 1;
    return axis;
}

static RULE inline struct image image_of(const struct op *op)
{
    return (struct image){
        .batch = op->attributes[IMAGE_BATCH],
        .channels = op->attributes[IMAGE_CHANNELS],
        .y = image_axis_of(op->attributes, 0),
        .x = image_axis_of(op->attributes, 1),
    };
}

/* Where place k of window o lies; outside of 0 .. size-1 it is padding. */
static RULE inline int64_t image_position(const struct image_axis *axis, int64_t o, int64_t k)
{
    return o * axis->stride - axis->before + k * axis->dilation;
}

/* The window whose place k is the position, or -1. */
static RULE inline int64_t image_window_with(const struct image_axis *axis, int64_t position,
                                             int64_t k)
{
    int64_t start = position + axis->before - k * axis->dilation;

    if (start < 0 || start % axis->stride != 0 || start / axis->stride >= axis->out) {
        return -1;
    }
    return start / axis->stride;
}

/* The windows in which a position may lie: those places k for which k*dilation has one rest by the
 * stride. */
static RULE inline int64_t image_covers(const struct image_axis *axis)
{
    int64_t divisor = axis->stride;
    int64_t rest = axis->dilation;

    while (rest != 0) {
        int64_t next = divisor % rest;

        divisor = rest;
        rest = next;
    }
    int64_t apart = axis->stride / divisor;

    return (axis->kernel + apart - 1) / apart;
}

/* The places first .. end-1 of window o that lie in the picture; none where end <= first. */
struct image_span {
    int64_t first;
    int64_t end;
};

static RULE inline struct image_span image_places(const struct image_axis *axis, int64_t o)
{
    int64_t start = image_position(axis, o, 0);
    int64_t left = axis->size - start; /* from the window's beginning to the picture's end */
    struct image_span span = {0, 0};

    if (start >= 0 && left >= image_extent(axis)) { /* the usual window, without a division */
        return (struct image_span){0, axis->kernel};
    }
    if (start < 0) {
        span.first = (-start + axis->dilation - 1) / axis->dilation;
    }
    if (left > 0) {
        span.end = (left + axis->dilation - 1) / axis->dilation;
    }
    if (span.end > axis->kernel) {
        span.end = axis->kernel;
    }
    return span;
}

/* What the sum of a window of a mean pool is divided by. */
static RULE inline float image_divisor(const struct op *op, const struct image *image, int64_t oy,
                                       int64_t ox)
{
    struct image_span rows = image_places(&image->y, oy);
    struct image_span columns = image_places(&image->x, ox);

    if (op->attributes[MEAN_POOL_COUNTS_PADDING] != 0) {
        return (float)(image->y.kernel * image->x.kernel);
    }
    return (float)((rows.end - rows.first) * (columns.end - columns.first));
}

#endif /* ENGINE_OPS_IMAGE_H */
