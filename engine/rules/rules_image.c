/*
 * rules_image.c - rules of windows over pictures: convolution's rearrangement, and pools.
 *
 * Every sum has one order. It starts with its first term, not with zero; a sum of no terms is +0.
 * A sum has at most IMAGE_WINDOW_MAX terms.
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

static RULE struct image_place pixel_of(const struct image *image, uint64_t index)
{
    return image_place_of(index, image->y.size, image->x.size, image->channels);
}

static RULE struct image_place window_of(const struct image *image, uint64_t index)
{
    return image_place_of(index, image->y.out, image->x.out, image->channels);
}

/* The index in the picture of (y, x), for the batch and channel of `at`. */
static RULE uint64_t pixel_index(const struct image *image, const struct image_place *at, int64_t y,
                                 int64_t x)
{
    return (uint64_t)(((at->batch * image->y.size + y) * image->x.size + x) * image->channels +
                      at->channel);
}

/* The index of place (ky, kx) of the window `at`, which lies in the picture. */
static RULE uint64_t input_index(const struct image *image, const struct image_place *at,
                                 int64_t ky, int64_t kx)
{
    return pixel_index(image, at, image_position(&image->y, at->y, ky),
                       image_position(&image->x, at->x, kx));
}

/* The index of the window (oy, ox) among the windows, for the batch and channel of `at`. */
static RULE uint64_t window_index(const struct image *image, const struct image_place *at,
                                  int64_t oy, int64_t ox)
{
    return (uint64_t)(((at->batch * image->y.out + oy) * image->x.out + ox) * image->channels +
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
    int64_t columns = image.y.kernel * image.x.kernel * image.channels;
    struct image_place offset =
        image_place_of(index % (uint64_t)columns, image.y.kernel, image.x.kernel, image.channels);
    struct image_place window =
        image_place_of(index / (uint64_t)columns, image.y.out, image.x.out, 1);
    int64_t y = image_position(&image.y, window.y, offset.y);
    int64_t x = image_position(&image.x, window.x, offset.x);

    if (y < 0 || y >= image.y.size || x < 0 || x >= image.x.size) {
        return 0;
    }
    offset.batch = window.batch;
    return operand_get(&call->inputs[0], pixel_index(&image, &offset, y, x));
}

RULE uint32_t rule_col2im(const struct rule_call *call, uint64_t index)
{
    struct image image = image_of(call->op);
    struct image_place at = pixel_of(&image, index);
    struct running_sum sum = {0};

    for (int64_t ky = 0; ky < image.y.kernel; ky++) {
        int64_t oy = image_window_with(&image.y, at.y, ky);

        for (int64_t kx = 0; kx < image.x.kernel && oy >= 0; kx++) {
            int64_t ox = image_window_with(&image.x, at.x, kx);
            int64_t row = (at.batch * image.y.out + oy) * image.x.out + ox;
            int64_t place = (row * image.y.kernel + ky) * image.x.kernel + kx;

            if (ox >= 0) {
                running_sum_add(&sum, value_at(&call->inputs[0],
                                               (uint64_t)(place * image.channels + at.channel)));
            }
        }
    }
    return real_to_bits(sum.total);
}

/* The place ky*KW+kx of a window's first maximum, or of its first NaN. */
static RULE uint32_t first_maximum(const struct rule_call *call, const struct image *image,
                                   const struct image_place *at)
{
    struct image_span rows = image_places(&image->y, at->y);
    struct image_span columns = image_places(&image->x, at->x);
    int64_t place = rows.first * image->x.kernel + columns.first;
    float best = value_at(&call->inputs[0], input_index(image, at, rows.first, columns.first));

    for (int64_t ky = rows.first; ky < rows.end; ky++) {
        for (int64_t kx = columns.first; kx < columns.end; kx++) {
            float value = value_at(&call->inputs[0], input_index(image, at, ky, kx));

            if (value > best || (value != value && best == best)) {
                best = value;
                place = ky * image->x.kernel + kx;
            }
        }
    }
    return (uint32_t)place;
}

RULE uint32_t rule_max_pool(const struct rule_call *call, uint64_t index)
{
    struct image image = image_of(call->op);
    struct image_place at = window_of(&image, index);
    int64_t place = first_maximum(call, &image, &at);

    return real_to_bits(value_at(&call->inputs[0], input_index(&image, &at, place / image.x.kernel,
                                                               place % image.x.kernel)));
}

RULE uint32_t rule_max_pool_index(const struct rule_call *call, uint64_t index)
{
    struct image image = image_of(call->op);
    struct image_place at = window_of(&image, index);

    return first_maximum(call, &image, &at);
}

/* Descending places are ascending windows. */
RULE uint32_t rule_max_pool_grad(const struct rule_call *call, uint64_t index)
{
    struct image image = image_of(call->op);
    struct image_place at = pixel_of(&image, index);
    struct running_sum sum = {0};

    for (int64_t ky = image.y.kernel - 1; ky >= 0; ky--) {
        int64_t oy = image_window_with(&image.y, at.y, ky);

        for (int64_t kx = image.x.kernel - 1; kx >= 0 && oy >= 0; kx--) {
            int64_t ox = image_window_with(&image.x, at.x, kx);
            uint64_t window = window_index(&image, &at, oy, ox);

            if (ox >= 0 &&
                operand_get(&call->inputs[0], window) == (uint32_t)(ky * image.x.kernel + kx)) {
                running_sum_add(&sum, value_at(&call->inputs[1], window));
            }
        }
    }
    return real_to_bits(sum.total);
}

RULE uint32_t rule_mean_pool(const struct rule_call *call, uint64_t index)
{
    struct image image = image_of(call->op);
    struct image_place at = window_of(&image, index);
    struct image_span rows = image_places(&image.y, at.y);
    struct image_span columns = image_places(&image.x, at.x);
    struct running_sum sum = {0};

    for (int64_t ky = rows.first; ky < rows.end; ky++) {
        for (int64_t kx = columns.first; kx < columns.end; kx++) {
            running_sum_add(&sum, value_at(&call->inputs[0], input_index(&image, &at, ky, kx)));
        }
    }
    return real_to_bits(sum.total / image_divisor(call->op, &image, at.y, at.x));
}

RULE uint32_t rule_mean_pool_grad(const struct rule_call *call, uint64_t index)
{
    struct image image = image_of(call->op);
    struct image_place at = pixel_of(&image, index);
    struct running_sum sum = {0};

    for (int64_t ky = image.y.kernel - 1; ky >= 0; ky--) {
        int64_t oy = image_window_with(&image.y, at.y, ky);

        for (int64_t kx = image.x.kernel - 1; kx >= 0 && oy >= 0; kx--) {
            int64_t ox = image_window_with(&image.x, at.x, kx);

            if (ox >= 0) {
                float dy = value_at(&call->inputs[0], window_index(&image, &at, oy, ox));

                running_sum_add(&sum, dy / image_divisor(call->op, &image, oy, ox));
            }
        }
    }
    return real_to_bits(sum.total);
}
