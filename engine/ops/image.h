/*
 * image.h - the geometry of a window that moves over pictures (batch, height, width, channels).
 *
 * Rules and kernels share these bounds, so they agree about the edges. op_check() has passed: the
 * kernel fits into the padded picture, stride >= 1, and no product of sizes exceeds
 * TENSOR_COUNT_MAX.
 */
#ifndef ENGINE_OPS_IMAGE_H
#define ENGINE_OPS_IMAGE_H

#include "engine/ops/op.h"

struct image {
    int64_t batch;
    int64_t height;
    int64_t width;
    int64_t channels;
    int64_t kernel_height;
    int64_t kernel_width;
    int64_t stride;
    int64_t padding;
    int64_t out_height; /* windows that fit: floor((height + 2*padding - kernel) / stride) + 1 */
    int64_t out_width;
};

/* The windows first .. last of one direction that cover a position; none where last < first. */
struct image_span {
    int64_t first;
    int64_t last;
};

static RULE inline struct image image_of(const struct op *op)
{
    const int64_t *a = op->attributes;
    struct image image = {
        .batch = a[IMAGE_BATCH],
        .height = a[IMAGE_HEIGHT],
        .width = a[IMAGE_WIDTH],
        .channels = a[IMAGE_CHANNELS],
        .kernel_height = a[IMAGE_KERNEL_HEIGHT],
        .kernel_width = a[IMAGE_KERNEL_WIDTH],
        .stride = a[IMAGE_STRIDE],
        .padding = a[IMAGE_PADDING],
    };

    image.out_height = (image.height + 2 * image.padding - image.kernel_height) / image.stride + 1;
    image.out_width = (image.width + 2 * image.padding - image.kernel_width) / image.stride + 1;
    return image;
}

/* Windows o of one direction with o*stride <= position + padding < o*stride + kernel. */
static RULE inline struct image_span image_windows(int64_t position, int64_t padding,
                                                   int64_t kernel, int64_t stride, int64_t out_size)
{
    int64_t at = position + padding;
    struct image_span span = {0, at / stride};

    if (at >= kernel) {
        span.first = (at - kernel) / stride + 1;
    }
    if (span.last >= out_size) {
        span.last = out_size - 1;
    }
    return span;
}

#endif /* ENGINE_OPS_IMAGE_H */
