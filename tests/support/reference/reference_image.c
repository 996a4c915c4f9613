/*
 * reference_image.c - windows over pictures in double precision.
 *
 * Each operation visits the windows and the elements under them; the adjoints scatter along the
 * same visits. So one loop (walk) holds all the geometry.
 */
#include <math.h>
#include <string.h>

#include "tests/support/reference/reference_core.h"

/* An element under a window: where it is in the picture, in the patches and among the windows. */
struct visit {
    int64_t picture; /* -1: in the padding */
    int64_t patch;
    int64_t window;
    int64_t inside; /* ky*KW + kx */
    int64_t oy;
    int64_t ox;
};

typedef void visitor(const struct reference_op *run, const struct visit *visit);

static void visit_window(const struct reference_op *run, int64_t b, int64_t oy, int64_t ox,
                         int64_t row, visitor *visitor)
{
    const int64_t *a = run->attributes;
    int64_t channels = a[IMAGE_CHANNELS];

    for (int64_t inside = 0; inside < a[IMAGE_KERNEL_HEIGHT] * a[IMAGE_KERNEL_WIDTH]; inside++) {
        int64_t ky = inside / a[IMAGE_KERNEL_WIDTH];
        int64_t kx = inside % a[IMAGE_KERNEL_WIDTH];
        int64_t y = oy * a[IMAGE_STRIDE_Y] + ky * a[IMAGE_DILATION_Y] - a[IMAGE_TOP];
        int64_t x = ox * a[IMAGE_STRIDE_X] + kx * a[IMAGE_DILATION_X] - a[IMAGE_LEFT];
        int64_t patch = row * a[IMAGE_KERNEL_HEIGHT] * a[IMAGE_KERNEL_WIDTH] + inside;
        bool there = y >= 0 && y < a[IMAGE_HEIGHT] && x >= 0 && x < a[IMAGE_WIDTH];

        for (int64_t c = 0; c < channels; c++) {
            int64_t place = ((b * a[IMAGE_HEIGHT] + y) * a[IMAGE_WIDTH] + x) * channels + c;
            struct visit visit = {
                there ? place : -1, patch * channels + c, row * channels + c, inside, oy, ox};

            visitor(run, &visit);
        }
    }
}

static void visit_all(const struct reference_op *run, visitor *visitor)
{
    const int64_t *a = run->attributes;
    int64_t high = (a[IMAGE_TOP] + a[IMAGE_HEIGHT] + a[IMAGE_BOTTOM] -
                    a[IMAGE_DILATION_Y] * (a[IMAGE_KERNEL_HEIGHT] - 1) - 1) /
                       a[IMAGE_STRIDE_Y] +
                   1;
    int64_t wide = (a[IMAGE_LEFT] + a[IMAGE_WIDTH] + a[IMAGE_RIGHT] -
                    a[IMAGE_DILATION_X] * (a[IMAGE_KERNEL_WIDTH] - 1) - 1) /
                       a[IMAGE_STRIDE_X] +
                   1;

    for (int64_t b = 0; b < a[IMAGE_BATCH]; b++) {
        for (int64_t window = 0; window < high * wide; window++) {
            visit_window(run, b, window / wide, window % wide, b * high * wide + window, visitor);
        }
    }
}

static void walk(const struct reference_op *run, visitor *visitor)
{
    for (uint32_t i = 0; i < run->op->output_count; i++) {
        memset(run->out[i], 0, (size_t)run->out_count[i] * sizeof(double));
    }
    visit_all(run, visitor);
}

static void visit_im2col(const struct reference_op *run, const struct visit *visit)
{
    run->out[0][visit->patch] = visit->picture < 0 ? 0.0 : run->in[0][visit->picture];
}

static void visit_col2im(const struct reference_op *run, const struct visit *visit)
{
    if (visit->picture >= 0) {
        run->out[0][visit->picture] += run->in[0][visit->patch];
    }
}

/* Before the first element a window holds -1. */
static void visit_max_pool(const struct reference_op *run, const struct visit *visit)
{
    if (visit->picture < 0) {
        return;
    }
    double x = run->in[0][visit->picture];

    if (run->out[1][visit->window] < 0.0 || x > run->out[0][visit->window]) {
        run->out[0][visit->window] = x;
        run->out[1][visit->window] = (double)visit->inside;
    }
}

static void visit_before_max_pool(const struct reference_op *run, const struct visit *visit)
{
    run->out[1][visit->window] = -1.0;
}

static void visit_max_pool_grad(const struct reference_op *run, const struct visit *visit)
{
    if (visit->picture >= 0 && run->in[0][visit->window] == (double)visit->inside) {
        run->out[0][visit->picture] += run->in[1][visit->window];
    }
}

/* The places of row- or column-window o that lie in the picture. */
static int64_t places_of(const int64_t *a, int horizontal, int64_t o)
{
    int64_t count = 0;

    for (int64_t k = 0; k < a[IMAGE_KERNEL_HEIGHT + horizontal]; k++) {
        int64_t at = o * a[IMAGE_STRIDE_Y + horizontal] + k * a[IMAGE_DILATION_Y + horizontal] -
                     a[IMAGE_TOP + horizontal];

        count += at >= 0 && at < a[IMAGE_HEIGHT + horizontal];
    }
    return count;
}

static double divisor(const struct reference_op *run, const struct visit *visit)
{
    const int64_t *a = run->attributes;

    if (a[MEAN_POOL_COUNTS_PADDING] != 0) {
        return (double)(a[IMAGE_KERNEL_HEIGHT] * a[IMAGE_KERNEL_WIDTH]);
    }
    return (double)(places_of(a, 0, visit->oy) * places_of(a, 1, visit->ox));
}

static void visit_mean_pool(const struct reference_op *run, const struct visit *visit)
{
    if (visit->picture >= 0) {
        run->out[0][visit->window] += run->in[0][visit->picture] / divisor(run, visit);
    }
}

static void visit_mean_pool_grad(const struct reference_op *run, const struct visit *visit)
{
    if (visit->picture >= 0) {
        run->out[0][visit->picture] += run->in[0][visit->window] / divisor(run, visit);
    }
}

void reference_im2col(const struct reference_op *run)
{
    walk(run, visit_im2col);
}

void reference_col2im(const struct reference_op *run)
{
    walk(run, visit_col2im);
}

void reference_max_pool(const struct reference_op *run)
{
    visit_all(run, visit_before_max_pool);
    visit_all(run, visit_max_pool);
}

void reference_max_pool_grad(const struct reference_op *run)
{
    walk(run, visit_max_pool_grad);
}

void reference_mean_pool(const struct reference_op *run)
{
    walk(run, visit_mean_pool);
}

void reference_mean_pool_grad(const struct reference_op *run)
{
    walk(run, visit_mean_pool_grad);
}
