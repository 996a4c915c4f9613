/*
 * moving_image.c - kernels of windows over pictures.
 *
 * Channels are the innermost axis and independent, so every inner loop runs along them, and the
 * outer loops give the order of each element's sum. A sum starts at -0: adding the first term then
 * gives that term bit for bit, as the rule requires.
 */
#include <string.h>

#include "engine/cpu/moving_image.h"
#include "engine/ops/image.h"
#include "engine/ops/real.h"

#ifdef __clang__
/* Without optimization, and under sanitizers, clang warns that it did not vectorize "omp simd". */
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

#define PARALLEL_ELEMENTS_MIN 16384
/* Channels whose state is on the stack at a time. */
#define CHANNELS_AT_ONCE      64

/* Every kernel here touches every element of every window once. */
static int threads_for(const struct kernel_call *call, const struct image *image)
{
    int64_t windows = image->batch * image->out_height * image->out_width;
    int64_t elements = image->kernel_height * image->kernel_width * image->channels;

    return windows * elements < PARALLEL_ELEMENTS_MIN ? 1 : call->thread_count;
}

/* The index of the first channel of a pixel, or of a window. */
static int64_t pixel_at(const struct image *image, int64_t batch, int64_t y, int64_t x)
{
    return ((batch * image->height + y) * image->width + x) * image->channels;
}

static int64_t window_at(const struct image *image, int64_t batch, int64_t oy, int64_t ox)
{
    return ((batch * image->out_height + oy) * image->out_width + ox) * image->channels;
}

static void add_channels(float *sum, const float *terms, int64_t count)
{
#pragma omp simd
    for (int64_t c = 0; c < count; c++) {
        sum[c] = sum[c] + terms[c];
    }
}

static void start_channels(float *sum, int64_t count)
{
    for (int64_t c = 0; c < count; c++) {
        sum[c] = -0.0f;
    }
}

/* ---- im2col and its adjoint ---- */

/* Copies one line (fixed ky) of one window: KW*C elements, contiguous inside of the picture. */
static void copy_window_line(uint32_t *out, const uint32_t *line, const struct image *image,
                             int64_t x)
{
    int64_t before = x < 0 ? -x : 0; /* columns of the window left of the picture */
    int64_t end = image->width - x;  /* the first column right of the picture */

    before = before < image->kernel_width ? before : image->kernel_width;
    end = end < image->kernel_width ? end : image->kernel_width;
    end = end > before ? end : before;

    size_t column_size = (size_t)image->channels * sizeof(*out);

    memset(out, 0, (size_t)before * column_size);
    if (end > before) {
        memcpy(out + before * image->channels, line + (x + before) * image->channels,
               (size_t)(end - before) * column_size);
    }
    memset(out + end * image->channels, 0, (size_t)(image->kernel_width - end) * column_size);
}

static void im2col_window(uint32_t *out, const uint32_t *picture, const struct image *image,
                          int64_t y, int64_t x)
{
    int64_t line_count = image->kernel_width * image->channels;

    for (int64_t ky = 0; ky < image->kernel_height; ky++) {
        if (y + ky < 0 || y + ky >= image->height) {
            memset(out + ky * line_count, 0, (size_t)line_count * sizeof(*out));
        } else {
            copy_window_line(out + ky * line_count,
                             picture + (y + ky) * image->width * image->channels, image, x);
        }
    }
}

static void run_im2col(const struct kernel_call *call)
{
    struct image image = image_of(call->op);
    const uint32_t *in = call->inputs[0];
    uint32_t *out = call->outputs[0];
    int64_t row_count = image.kernel_height * image.kernel_width * image.channels;
    int64_t lines = image.batch * image.out_height;

    if (out == NULL) {
        return;
    }
#pragma omp parallel for num_threads(threads_for(call, &image))
    for (int64_t line = 0; line < lines; line++) {
        const uint32_t *picture = in + pixel_at(&image, line / image.out_height, 0, 0);
        int64_t y = line % image.out_height * image.stride - image.padding;

        for (int64_t ox = 0; ox < image.out_width; ox++) {
            im2col_window(out + (line * image.out_width + ox) * row_count, picture, &image, y,
                          ox * image.stride - image.padding);
        }
    }
}

/* Ascending (ky, kx) are descending windows (oy, ox): the offset is position - window*stride. */
static void col2im_pixel(float *out, const float *in, const struct image *image, int64_t batch,
                         int64_t y, int64_t x)
{
    struct image_span rows =
        image_windows(y, image->padding, image->kernel_height, image->stride, image->out_height);
    struct image_span columns =
        image_windows(x, image->padding, image->kernel_width, image->stride, image->out_width);
    bool none = rows.last < rows.first || columns.last < columns.first;

    if (none) {
        memset(out, 0, (size_t)image->channels * sizeof(*out));
        return;
    }
    start_channels(out, image->channels);
    for (int64_t oy = rows.last; oy >= rows.first; oy--) {
        int64_t ky = y + image->padding - oy * image->stride;

        for (int64_t ox = columns.last; ox >= columns.first; ox--) {
            int64_t kx = x + image->padding - ox * image->stride;
            int64_t row = (batch * image->out_height + oy) * image->out_width + ox;
            int64_t at = (row * image->kernel_height + ky) * image->kernel_width + kx;

            add_channels(out, in + at * image->channels, image->channels);
        }
    }
    for (int64_t c = 0; c < image->channels; c++) {
        out[c] = real_stored(out[c]);
    }
}

static void run_col2im(const struct kernel_call *call)
{
    struct image image = image_of(call->op);
    const float *in = call->inputs[0];
    float *out = call->outputs[0];
    int64_t lines = image.batch * image.height;

    if (out == NULL) {
        return;
    }
#pragma omp parallel for num_threads(threads_for(call, &image))
    for (int64_t line = 0; line < lines; line++) {
        for (int64_t x = 0; x < image.width; x++) {
            int64_t batch = line / image.height;
            int64_t y = line % image.height;

            col2im_pixel(out + pixel_at(&image, batch, y, x), in, &image, batch, y, x);
        }
    }
}

/* ---- pools ---- */

struct best {
    float values[CHANNELS_AT_ONCE];
    uint32_t places[CHANNELS_AT_ONCE];
};

/* The first NaN wins; without one a strictly greater value wins. */
static void best_take(struct best *best, const float *in, uint32_t place, int64_t count)
{
#pragma omp simd
    for (int64_t c = 0; c < count; c++) {
        float held = best->values[c];
        bool wins = in[c] > held || (in[c] != in[c] && held == held);

        best->values[c] = wins ? in[c] : held;
        best->places[c] = wins ? place : best->places[c];
    }
}

/* in points at the first of count channels of the window's first pixel. */
static void best_of_window(struct best *best, const float *in, const struct image *image,
                           int64_t count)
{
    memcpy(best->values, in, (size_t)count * sizeof(*in));
    memset(best->places, 0, sizeof(best->places));
    for (int64_t ky = 0; ky < image->kernel_height; ky++) {
        for (int64_t kx = 0; kx < image->kernel_width; kx++) {
            best_take(best, in + (ky * image->width + kx) * image->channels,
                      (uint32_t)(ky * image->kernel_width + kx), count);
        }
    }
}

static int64_t channels_from(const struct image *image, int64_t first)
{
    int64_t left = image->channels - first;

    return left < CHANNELS_AT_ONCE ? left : CHANNELS_AT_ONCE;
}

static void max_pool_window(float *y, uint32_t *index, const float *in, const struct image *image)
{
    for (int64_t first = 0; first < image->channels; first += CHANNELS_AT_ONCE) {
        int64_t count = channels_from(image, first);
        struct best best;

        best_of_window(&best, in + first, image, count);
        if (y != NULL) {
            for (int64_t c = 0; c < count; c++) {
                y[first + c] = real_stored(best.values[c]);
            }
        }
        if (index != NULL) {
            memcpy(index + first, best.places, (size_t)count * sizeof(*index));
        }
    }
}

static void run_max_pool(const struct kernel_call *call)
{
    struct image image = image_of(call->op);
    const float *in = call->inputs[0];
    float *y = call->outputs[0];
    uint32_t *index = call->outputs[1];
    int64_t lines = image.batch * image.out_height;

    if (y == NULL && index == NULL) {
        return;
    }
#pragma omp parallel for num_threads(threads_for(call, &image))
    for (int64_t line = 0; line < lines; line++) {
        int64_t batch = line / image.out_height;
        int64_t oy = line % image.out_height;

        for (int64_t ox = 0; ox < image.out_width; ox++) {
            int64_t out = window_at(&image, batch, oy, ox);

            max_pool_window(y != NULL ? y + out : NULL, index != NULL ? index + out : NULL,
                            in + pixel_at(&image, batch, oy * image.stride, ox * image.stride),
                            &image);
        }
    }
}

/* A position of a picture and the windows of a pool that cover it. */
struct cover {
    int64_t batch;
    int64_t y;
    int64_t x;
    struct image_span rows;
    struct image_span columns;
};

static struct cover cover_of(const struct image *image, int64_t line, int64_t x)
{
    struct cover cover = {.batch = line / image->height, .y = line % image->height, .x = x};

    cover.rows = image_windows(cover.y, 0, image->kernel_height, image->stride, image->out_height);
    cover.columns = image_windows(x, 0, image->kernel_width, image->stride, image->out_width);
    return cover;
}

/* A window without a hit does not change a channel's sum: adding zero could change its sign. */
static void max_pool_grad_channels(float *out, const uint32_t *index, const float *dy,
                                   const struct image *image, const struct cover *cover,
                                   int64_t count)
{
    float sum[CHANNELS_AT_ONCE];
    uint32_t hit[CHANNELS_AT_ONCE] = {0};

    start_channels(sum, count);
    for (int64_t oy = cover->rows.first; oy <= cover->rows.last; oy++) {
        for (int64_t ox = cover->columns.first; ox <= cover->columns.last; ox++) {
            int64_t at = window_at(image, cover->batch, oy, ox);
            uint32_t place = (uint32_t)((cover->y - oy * image->stride) * image->kernel_width +
                                        cover->x - ox * image->stride);

#pragma omp simd
            for (int64_t c = 0; c < count; c++) {
                float more = sum[c] + dy[at + c];
                bool here = index[at + c] == place;

                sum[c] = here ? more : sum[c];
                hit[c] |= here;
            }
        }
    }
    for (int64_t c = 0; c < count; c++) {
        out[c] = hit[c] != 0 ? real_stored(sum[c]) : 0.0f;
    }
}

static void run_max_pool_grad(const struct kernel_call *call)
{
    struct image image = image_of(call->op);
    const uint32_t *index = call->inputs[0];
    const float *dy = call->inputs[1];
    float *out = call->outputs[0];
    int64_t lines = image.batch * image.height;

    if (out == NULL) {
        return;
    }
#pragma omp parallel for num_threads(threads_for(call, &image))
    for (int64_t line = 0; line < lines; line++) {
        for (int64_t x = 0; x < image.width; x++) {
            struct cover cover = cover_of(&image, line, x);
            float *pixel = out + pixel_at(&image, cover.batch, cover.y, x);

            for (int64_t first = 0; first < image.channels; first += CHANNELS_AT_ONCE) {
                max_pool_grad_channels(pixel + first, index + first, dy + first, &image, &cover,
                                       channels_from(&image, first));
            }
        }
    }
}

static void divide_channels(float *sum, float divisor, int64_t count)
{
#pragma omp simd
    for (int64_t c = 0; c < count; c++) {
        sum[c] = real_stored(sum[c] / divisor);
    }
}

static void run_mean_pool(const struct kernel_call *call)
{
    struct image image = image_of(call->op);
    const float *in = call->inputs[0];
    float *y = call->outputs[0];
    int64_t windows = image.batch * image.out_height * image.out_width;
    int64_t places = image.kernel_height * image.kernel_width;

    if (y == NULL) {
        return;
    }
#pragma omp parallel for num_threads(threads_for(call, &image))
    for (int64_t window = 0; window < windows; window++) {
        int64_t line = window / image.out_width;
        const float *first =
            in + pixel_at(&image, line / image.out_height, line % image.out_height * image.stride,
                          window % image.out_width * image.stride);
        float *sum = y + window * image.channels;

        start_channels(sum, image.channels);
        for (int64_t place = 0; place < places; place++) {
            int64_t offset = place / image.kernel_width * image.width + place % image.kernel_width;

            add_channels(sum, first + offset * image.channels, image.channels);
        }
        divide_channels(sum, (float)places, image.channels);
    }
}

static void mean_pool_grad_pixel(float *out, const float *dy, const struct image *image,
                                 const struct cover *cover)
{
    bool none = cover->rows.last < cover->rows.first || cover->columns.last < cover->columns.first;

    if (none) {
        memset(out, 0, (size_t)image->channels * sizeof(*out));
        return;
    }
    start_channels(out, image->channels);
    for (int64_t oy = cover->rows.first; oy <= cover->rows.last; oy++) {
        for (int64_t ox = cover->columns.first; ox <= cover->columns.last; ox++) {
            add_channels(out, dy + window_at(image, cover->batch, oy, ox), image->channels);
        }
    }
    divide_channels(out, (float)(image->kernel_height * image->kernel_width), image->channels);
}

static void run_mean_pool_grad(const struct kernel_call *call)
{
    struct image image = image_of(call->op);
    const float *dy = call->inputs[0];
    float *out = call->outputs[0];
    int64_t lines = image.batch * image.height;

    if (out == NULL) {
        return;
    }
#pragma omp parallel for num_threads(threads_for(call, &image))
    for (int64_t line = 0; line < lines; line++) {
        for (int64_t x = 0; x < image.width; x++) {
            struct cover cover = cover_of(&image, line, x);

            mean_pool_grad_pixel(out + pixel_at(&image, cover.batch, cover.y, x), dy, &image,
                                 &cover);
        }
    }
}

void moving_image_kernels(struct kernel_table *table)
{
    table->kernels[OP_IM2COL].run = run_im2col;
    table->kernels[OP_COL2IM].run = run_col2im;
    table->kernels[OP_MAX_POOL].run = run_max_pool;
    table->kernels[OP_MAX_POOL_GRAD].run = run_max_pool_grad;
    table->kernels[OP_MEAN_POOL].run = run_mean_pool;
    table->kernels[OP_MEAN_POOL_GRAD].run = run_mean_pool_grad;
}
