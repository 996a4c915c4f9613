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
};

typedef void visitor(const struct reference_op *run, const struct visit *visit);

static void visit_window(const struct reference_op *run, int64_t b, int64_t oy, int64_t ox,
                         int64_t row, visitor *visitor)
{
    const int64_t *a = run->attributes;
    int64_t channels = a[IMAGE_CHANNELS];

    for (int64_t inside = 0; inside < a[IMAGE_KERNEL_HEIGHT] * a[IMAGE_KERNEL_WIDTH]; inside++) {
        int64_t y = oy * a[IMAGE_STRIDE] + inside / a[IMAGE_KERNEL_WIDTH] - a[IMAGE_PADDING];
        int64_t x = ox * a[IMAGE_STRIDE] + inside % a[IMAGE_KERNEL_WIDTH] - a[IMAGE_PADDING];
        int64_t patch = row * a[IMAGE_KERNEL_HEIGHT] * a[IMAGE_KERNEL_WIDTH] + inside;
        bool there = y >= 0 && y < a[IMAGE_HEIGHT] && x >= 0 && x < a[IMAGE_WIDTH];

        for (int64_t c = 0; c < channels; c++) {
            int64_t place = ((b * a[IMAGE_HEIGHT] + y) * a[IMAGE_WIDTH] + x) * channels + c;
            struct visit visit = {there ? place : -1, patch * channels + c, row * channels + c,
                                  inside};

            visitor(run, &visit);
        }
    }
}

static void walk(const struct reference_op *run, visitor *visitor)
{
    const int64_t *a = run->attributes;
    int64_t high =
        (a[IMAGE_HEIGHT] + 2 * a[IMAGE_PADDING] - a[IMAGE_KERNEL_HEIGHT]) / a[IMAGE_STRIDE] + 1;
    int64_t wide =
        (a[IMAGE_WIDTH] + 2 * a[IMAGE_PADDING] - a[IMAGE_KERNEL_WIDTH]) / a[IMAGE_STRIDE] + 1;

    for (uint32_t i = 0; i < run->op->output_count; i++) {
        memset(run->out[i], 0, (size_t)run->out_count[i] * sizeof(double));
    }
    for (int64_t b = 0; b < a[IMAGE_BATCH]; b++) {
        for (int64_t window = 0; window < high * wide; window++) {
            visit_window(run, b, window / wide, window % wide, b * high * wide + window, visitor);
        }
    }
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

static void visit_max_pool(const struct reference_op *run, const struct visit *visit)
{
    double x = run->in[0][visit->picture];

    if (visit->inside == 0 || x > run->out[0][visit->window]) {
        run->out[0][visit->window] = x;
        run->out[1][visit->window] = (double)visit->inside;
    }
}

static void visit_max_pool_grad(const struct reference_op *run, const struct visit *visit)
{
    if (run->in[0][visit->window] == (double)visit->inside) {
        run->out[0][visit->picture] += run->in[1][visit->window];
    }
}

static double window_size(const struct reference_op *run)
{
    return (double)(run->attributes[IMAGE_KERNEL_HEIGHT] * run->attributes[IMAGE_KERNEL_WIDTH]);
}

static void visit_mean_pool(const struct reference_op *run, const struct visit *visit)
{
    run->out[0][visit->window] += run->in[0][visit->picture] / window_size(run);
}

static void visit_mean_pool_grad(const struct reference_op *run, const struct visit *visit)
{
    run->out[0][visit->picture] += run->in[0][visit->window] / window_size(run);
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
    walk(run, visit_max_pool);
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
