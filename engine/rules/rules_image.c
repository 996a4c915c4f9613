/*
 * rules_image.c - rules of windows over pictures: convolution's rearrangement, and pools.
 *
 * Every sum has one order. It starts with its first term, not with zero; a sum of no terms is +0.
 * A sum has at most kernel height * kernel width terms.
 */
#include <stdbool.h>

#include "engine/ops/image.h"
#include "engine/ops/real.h"
#include "engine/rules/rules.h"

/* Where an element lies in a (batch, height, width, channels) array. */
struct image_place {
    int64_t batch;
    int64_t y;
    int64_t x;
    int64_t channel;
};

static RULE struct image_place image_place_of(uint64_t index, int64_t height, int64_t width,
                                              int64_t channels)
{
    int64_t rest = (int64_t)index;
    struct image_place place;

    place.channel = rest % channels;
    rest /= channels;
    place.x = rest % width;
    rest /= width;
    place.y = rest % height;
    place.batch = rest / height;
    return place;
}

/* The index in the picture of the element (ky, kx) of the window `at`. */
static RULE uint64_t input_index(const struct image *image, const struct image_place *at,
                                 int64_t ky, int64_t kx)
{
    int64_t y = at->y * image->stride + ky;
    int64_t x = at->x * image->stride + kx;

    return (uint64_t)(((at->batch * image->height + y) * image->width + x) * image->channels +
                      at->channel);
}

/* The index of the window (oy, ox) among the windows, for the batch and channel of `at`. */
static RULE uint64_t window_index(const struct image *image, const struct image_place *at,
                                  int64_t oy, int64_t ox)
{
    return (uint64_t)(((at->batch * image->out_height + oy) * image->out_width + ox) *
                          image->channels +
                      at->channel);
}

/* A sum in the order of the calls. */
struct running_sum {
    float total;
    bool begun;
};

static RULE void running_sum_add(struct running_sum *sum, float term)
{
    sum->total = sum->begun ? sum->total + term : term;
    sum->begun = true;
}

static RULE float value_at(const struct operand *operand, uint64_t index)
{
    return real_from_bits(operand_get(operand, index));
}

RULE uint32_t rule_im2col(const struct rule_call *call, uint64_t index)
{
    struct image image = image_of(call->op);
    int64_t columns = image.kernel_height * image.kernel_width * image.channels;
    int64_t row = (int64_t)index / columns;
    int64_t column = (int64_t)index % columns;
    struct image_place offset =
        image_place_of((uint64_t)column, image.kernel_height, image.kernel_width, image.channels);
    struct image_place window = image_place_of((uint64_t)row, image.out_height, image.out_width, 1);
    int64_t y = window.y * image.stride + offset.y - image.padding;
    int64_t x = window.x * image.stride + offset.x - image.padding;

    if (y < 0 || y >= image.height || x < 0 || x >= image.width) {
        return 0;
    }
    return operand_get(
        &call->inputs[0],
        (uint64_t)(((window.batch * image.height + y) * image.width + x) * image.channels +
                   offset.channel));
}

/* The window of one direction whose element `offset` is `position`, or -1. */
static RULE int64_t window_with(int64_t position, int64_t offset, int64_t stride, int64_t out_size)
{
    int64_t start = position - offset;

    if (start < 0 || start % stride != 0 || start / stride >= out_size) {
        return -1;
    }
    return start / stride;
}

RULE uint32_t rule_col2im(const struct rule_call *call, uint64_t index)
{
    struct image image = image_of(call->op);
    struct image_place at = image_place_of(index, image.height, image.width, image.channels);
    struct running_sum sum = {0};

    for (int64_t ky = 0; ky < image.kernel_height; ky++) {
        int64_t oy = window_with(at.y + image.padding, ky, image.stride, image.out_height);

        for (int64_t kx = 0; kx < image.kernel_width && oy >= 0; kx++) {
            int64_t ox = window_with(at.x + image.padding, kx, image.stride, image.out_width);
            int64_t row = (at.batch * image.out_height + oy) * image.out_width + ox;
            int64_t offset = ky * image.kernel_width + kx;

            if (ox >= 0) {
                row *= image.kernel_height * image.kernel_width;
                running_sum_add(&sum,
                                value_at(&call->inputs[0],
                                         (uint64_t)((row + offset) * image.channels + at.channel)));
            }
        }
    }
    return real_to_bits(sum.total);
}

/* The offset ky*KW+kx of a window's first maximum, or of its first NaN. */
static RULE uint32_t first_maximum(const struct rule_call *call, const struct image *image,
                                   const struct image_place *at)
{
    uint32_t place = 0;
    float best = value_at(&call->inputs[0], input_index(image, at, 0, 0));

    for (int64_t ky = 0; ky < image->kernel_height; ky++) {
        for (int64_t kx = 0; kx < image->kernel_width; kx++) {
            float value = value_at(&call->inputs[0], input_index(image, at, ky, kx));

            if (value > best || (value != value && best == best)) {
                best = value;
                place = (uint32_t)(ky * image->kernel_width + kx);
            }
        }
    }
    return place;
}

RULE uint32_t rule_max_pool(const struct rule_call *call, uint64_t index)
{
    struct image image = image_of(call->op);
    struct image_place at =
        image_place_of(index, image.out_height, image.out_width, image.channels);
    int64_t place = first_maximum(call, &image, &at);

    return real_to_bits(
        value_at(&call->inputs[0],
                 input_index(&image, &at, place / image.kernel_width, place % image.kernel_width)));
}

RULE uint32_t rule_max_pool_index(const struct rule_call *call, uint64_t index)
{
    struct image image = image_of(call->op);
    struct image_place at =
        image_place_of(index, image.out_height, image.out_width, image.channels);

    return first_maximum(call, &image, &at);
}

RULE uint32_t rule_max_pool_grad(const struct rule_call *call, uint64_t index)
{
    struct image image = image_of(call->op);
    struct image_place at = image_place_of(index, image.height, image.width, image.channels);
    struct image_span rows =
        image_windows(at.y, 0, image.kernel_height, image.stride, image.out_height);
    struct image_span columns =
        image_windows(at.x, 0, image.kernel_width, image.stride, image.out_width);
    struct running_sum sum = {0};

    for (int64_t oy = rows.first; oy <= rows.last; oy++) {
        for (int64_t ox = columns.first; ox <= columns.last; ox++) {
            int64_t ky = at.y - oy * image.stride;
            int64_t kx = at.x - ox * image.stride;
            uint64_t window = window_index(&image, &at, oy, ox);

            if (operand_get(&call->inputs[0], window) == (uint32_t)(ky * image.kernel_width + kx)) {
                running_sum_add(&sum, value_at(&call->inputs[1], window));
            }
        }
    }
    return real_to_bits(sum.total);
}

RULE uint32_t rule_mean_pool(const struct rule_call *call, uint64_t index)
{
    struct image image = image_of(call->op);
    struct image_place at =
        image_place_of(index, image.out_height, image.out_width, image.channels);
    struct running_sum sum = {0};

    for (int64_t ky = 0; ky < image.kernel_height; ky++) {
        for (int64_t kx = 0; kx < image.kernel_width; kx++) {
            running_sum_add(&sum, value_at(&call->inputs[0], input_index(&image, &at, ky, kx)));
        }
    }
    return real_to_bits(sum.total / (float)(image.kernel_height * image.kernel_width));
}

RULE uint32_t rule_mean_pool_grad(const struct rule_call *call, uint64_t index)
{
    struct image image = image_of(call->op);
    struct image_place at = image_place_of(index, image.height, image.width, image.channels);
    struct image_span rows =
        image_windows(at.y, 0, image.kernel_height, image.stride, image.out_height);
    struct image_span columns =
        image_windows(at.x, 0, image.kernel_width, image.stride, image.out_width);
    struct running_sum sum = {0};

    for (int64_t oy = rows.first; oy <= rows.last; oy++) {
        for (int64_t ox = columns.first; ox <= columns.last; ox++) {
            running_sum_add(&sum, value_at(&call->inputs[0], window_index(&image, &at, oy, ox)));
        }
    }
    return real_to_bits(sum.total / (float)(image.kernel_height * image.kernel_width));
}
