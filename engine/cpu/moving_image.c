/*
 * moving_image.c - kernels of windows over pictures.
 *
 * Channels are the innermost axis and independent, so every inner loop runs along them, and the
 * outer loops give the order of each element's sum. A sum starts at -0: adding the first term then
 * gives that term bit for bit, as the rule requires.
 */
#include <string.h>

#include "engine/cpu/cpu.h"
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
    int64_t windows = image->batch * image->y.out * image->x.out;
    int64_t elements = image->y.kernel * image->x.kernel * image->channels;

    return windows * elements < PARALLEL_ELEMENTS_MIN ? 1 : call->thread_count;
}

/* The index of the first channel of a pixel, or of a window. */
static int64_t pixel_at(const struct image *image, int64_t batch, int64_t y, int64_t x)
{
    return ((batch * image->y.size + y) * image->x.size + x) * image->channels;
}

static int64_t window_at(const struct image *image, int64_t batch, int64_t oy, int64_t ox)
{
    return ((batch * image->y.out + oy) * image->x.out + ox) * image->channels;
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

/* The windows of one direction in which a position lies, by ascending place: descending windows. */
struct cover {
    int32_t count;
    int32_t places[IMAGE_KERNEL_MAX];
    int64_t windows[IMAGE_KERNEL_MAX];
};

static void cover_find(struct cover *cover, const struct image_axis *axis, int64_t position)
{
    int64_t start = position + axis->before;

    cover->count = 0;
    if (axis->stride == 1 && axis->dilation == 1) { /* the usual convolution: all in one run */
        int64_t first = start < axis->out ? 0 : start - axis->out + 1;
        int64_t end = start < axis->kernel ? start + 1 : axis->kernel;

        for (int64_t k = first; k < end; k++) {
            cover->places[cover->count] = (int32_t)k;
            cover->windows[cover->count++] = start - k;
        }
        return;
    }
    for (int64_t k = 0; k < axis->kernel && start >= 0; k++, start -= axis->dilation) {
        int64_t window = axis->stride == 1 ? start : start / axis->stride;

        if (window * axis->stride == start && window < axis->out) {
            cover->places[cover->count] = (int32_t)k;
            cover->windows[cover->count++] = window;
        }
    }
}

/* ---- im2col and its adjoint ---- */

/* Copies one line (fixed ky) of window ox: KW*C elements. */
static void copy_window_line(uint32_t *out, const uint32_t *line, const struct image *image,
                             int64_t ox)
{
    struct image_span there = image_places(&image->x, ox);
    int64_t channels = image->channels;
    size_t size = (size_t)channels * sizeof(*out);
    int64_t end = there.end > there.first ? there.end : there.first;

    if (there.first >= image->x.kernel) {
        memset(out, 0, (size_t)image->x.kernel * size);
        return;
    }
    memset(out, 0, (size_t)there.first * size);
    line += image_position(&image->x, ox, there.first) * channels;
    if (image->x.dilation == 1) {
        memcpy(out + there.first * channels, line, (size_t)(end - there.first) * size);
    } else {
        for (int64_t kx = there.first; kx < end; kx++) {
            memcpy(out + kx * channels, line, size);
            line += image->x.dilation * channels;
        }
    }
    memset(out + end * channels, 0, (size_t)(image->x.kernel - end) * size);
}

static void im2col_window(uint32_t *out, const uint32_t *picture, const struct image *image,
                          int64_t oy, int64_t ox)
{
    int64_t line_count = image->x.kernel * image->channels;

    for (int64_t ky = 0; ky < image->y.kernel; ky++) {
        int64_t y = image_position(&image->y, oy, ky);

        if (y < 0 || y >= image->y.size) {
            memset(out + ky * line_count, 0, (size_t)line_count * sizeof(*out));
        } else {
            copy_window_line(out + ky * line_count, picture + y * image->x.size * image->channels,
                             image, ox);
        }
    }
}

static void run_im2col(const struct kernel_call *call)
{
    struct image image = image_of(call->op);
    const uint32_t *in = call->inputs[0];
    uint32_t *out = call->outputs[0];
    int64_t row_count = image.y.kernel * image.x.kernel * image.channels;
    int64_t lines = image.batch * image.y.out;

    if (out == NULL) {
        return;
    }
#pragma omp parallel for num_threads(threads_for(call, &image))
    for (int64_t line = 0; line < lines; line++) {
        const uint32_t *picture = in + pixel_at(&image, line / image.y.out, 0, 0);

        for (int64_t ox = 0; ox < image.x.out; ox++) {
            im2col_window(out + (line * image.x.out + ox) * row_count, picture, &image,
                          line % image.y.out, ox);
        }
    }
}

/* A pixel of the input, and the windows that cover it. */
struct pixel {
    const struct image *image;
    int64_t batch;
    struct cover rows;
    struct cover columns;
};

typedef void pixel_kernel(float *out, const struct kernel_call *call, const struct pixel *pixel);

static void store_channels(float *out, int64_t count)
{
    for (int64_t c = 0; c < count; c++) {
        out[c] = real_stored(out[c]);
    }
}

static void each_pixel(const struct kernel_call *call, pixel_kernel *kernel)
{
    const struct image image = image_of(call->op);
    float *out = call->outputs[0];
    int64_t lines = image.batch * image.y.size;

    if (out == NULL) {
        return;
    }
#pragma omp parallel for num_threads(threads_for(call, &image))
    for (int64_t line = 0; line < lines; line++) {
        struct pixel pixel = {.image = &image, .batch = line / image.y.size};

        cover_find(&pixel.rows, &image.y, line % image.y.size);
        for (int64_t x = 0; x < image.x.size; x++) {
            float *at = out + (line * image.x.size + x) * image.channels;

            cover_find(&pixel.columns, &image.x, x);
            if (pixel.rows.count == 0 || pixel.columns.count == 0) {
                memset(at, 0, (size_t)image.channels * sizeof(*at));
            } else {
                kernel(at, call, &pixel);
            }
        }
    }
}

static void col2im_pixel(float *out, const struct kernel_call *call, const struct pixel *pixel)
{
    const struct image *image = pixel->image;
    const struct cover *rows = &pixel->rows;
    const struct cover *columns = &pixel->columns;
    const float *in = call->inputs[0];

    start_channels(out, image->channels);
    for (int32_t i = 0; i < rows->count; i++) {
        for (int32_t j = 0; j < columns->count; j++) {
            int64_t row = (pixel->batch * image->y.out + rows->windows[i]) * image->x.out +
                          columns->windows[j];
            int64_t at =
                (row * image->y.kernel + rows->places[i]) * image->x.kernel + columns->places[j];

            add_channels(out, in + at * image->channels, image->channels);
        }
    }
    store_channels(out, image->channels);
}

static void run_col2im(const struct kernel_call *call)
{
    each_pixel(call, col2im_pixel);
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

/* The window (oy, ox) of a picture, and which of its places lie in it. */
struct window {
    const float *picture; /* its first channel that is wanted */
    int64_t oy;
    int64_t ox;
    struct image_span rows;
    struct image_span columns;
};

static struct window window_of(const struct image *image, const float *in, int64_t line, int64_t ox)
{
    int64_t oy = line % image->y.out;

    return (struct window){in + pixel_at(image, line / image->y.out, 0, 0), oy, ox,
                           image_places(&image->y, oy), image_places(&image->x, ox)};
}

static const float *place_in(const struct window *window, const struct image *image, int64_t ky,
                             int64_t kx)
{
    return window->picture + pixel_at(image, 0, image_position(&image->y, window->oy, ky),
                                      image_position(&image->x, window->ox, kx));
}

/* Of the count channels from `first` on. */
static void best_of_window(struct best *best, const struct window *window,
                           const struct image *image, int64_t first, int64_t count)
{
    bool begun = false;

    for (int64_t ky = window->rows.first; ky < window->rows.end; ky++) {
        for (int64_t kx = window->columns.first; kx < window->columns.end; kx++) {
            const float *in = place_in(window, image, ky, kx) + first;
            uint32_t place = (uint32_t)(ky * image->x.kernel + kx);

            if (begun) {
                best_take(best, in, place, count);
                continue;
            }
            begun = true;
            memcpy(best->values, in, (size_t)count * sizeof(*in));
            for (int64_t c = 0; c < count; c++) {
                best->places[c] = place;
            }
        }
    }
}

static int64_t channels_from(const struct image *image, int64_t first)
{
    int64_t left = image->channels - first;

    return left < CHANNELS_AT_ONCE ? left : CHANNELS_AT_ONCE;
}

static void max_pool_window(float *y, uint32_t *index, const struct window *window,
                            const struct image *image)
{
    for (int64_t first = 0; first < image->channels; first += CHANNELS_AT_ONCE) {
        int64_t count = channels_from(image, first);
        struct best best = {0};

        best_of_window(&best, window, image, first, count);
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
    int64_t lines = image.batch * image.y.out;

    if (y == NULL && index == NULL) {
        return;
    }
#pragma omp parallel for num_threads(threads_for(call, &image))
    for (int64_t line = 0; line < lines; line++) {
        for (int64_t ox = 0; ox < image.x.out; ox++) {
            struct window window = window_of(&image, in, line, ox);
            int64_t out = (line * image.x.out + ox) * image.channels;

            max_pool_window(y != NULL ? y + out : NULL, index != NULL ? index + out : NULL, &window,
                            &image);
        }
    }
}

/* A window without a hit does not change a channel's sum: adding zero could change its sign. */
static void max_pool_grad_channels(float *out, const struct kernel_call *call,
                                   const struct pixel *pixel, int64_t first)
{
    const struct image *image = pixel->image;
    const struct cover *rows = &pixel->rows;
    const struct cover *columns = &pixel->columns;
    const uint32_t *index = (const uint32_t *)call->inputs[0] + first;
    const float *dy = (const float *)call->inputs[1] + first;
    int64_t count = channels_from(image, first);
    float sum[CHANNELS_AT_ONCE];
    uint32_t hit[CHANNELS_AT_ONCE] = {0};

    start_channels(sum, count);
    for (int32_t i = rows->count - 1; i >= 0; i--) {
        for (int32_t j = columns->count - 1; j >= 0; j--) {
            int64_t at = window_at(image, pixel->batch, rows->windows[i], columns->windows[j]);
            uint32_t place = (uint32_t)(rows->places[i] * image->x.kernel + columns->places[j]);

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
        out[first + c] = hit[c] != 0 ? real_stored(sum[c]) : 0.0f;
    }
}

static void max_pool_grad_pixel(float *out, const struct kernel_call *call,
                                const struct pixel *pixel)
{
    for (int64_t first = 0; first < pixel->image->channels; first += CHANNELS_AT_ONCE) {
        max_pool_grad_channels(out, call, pixel, first);
    }
}

static void run_max_pool_grad(const struct kernel_call *call)
{
    each_pixel(call, max_pool_grad_pixel);
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
    int64_t windows = image.batch * image.y.out * image.x.out;

    if (y == NULL) {
        return;
    }
#pragma omp parallel for num_threads(threads_for(call, &image))
    for (int64_t at = 0; at < windows; at++) {
        struct window window = window_of(&image, in, at / image.x.out, at % image.x.out);
        float *sum = y + at * image.channels;

        start_channels(sum, image.channels);
        for (int64_t ky = window.rows.first; ky < window.rows.end; ky++) {
            for (int64_t kx = window.columns.first; kx < window.columns.end; kx++) {
                add_channels(sum, place_in(&window, &image, ky, kx), image.channels);
            }
        }
        divide_channels(sum, image_divisor(call->op, &image, window.oy, window.ox), image.channels);
    }
}

static void add_shares(float *sum, const float *terms, float divisor, int64_t count)
{
#pragma omp simd
    for (int64_t c = 0; c < count; c++) {
        sum[c] = sum[c] + terms[c] / divisor;
    }
}

static void mean_pool_grad_pixel(float *out, const struct kernel_call *call,
                                 const struct pixel *pixel)
{
    const struct image *image = pixel->image;
    const float *dy = call->inputs[0];

    start_channels(out, image->channels);
    for (int32_t i = pixel->rows.count - 1; i >= 0; i--) {
        for (int32_t j = pixel->columns.count - 1; j >= 0; j--) {
            int64_t oy = pixel->rows.windows[i];
            int64_t ox = pixel->columns.windows[j];

            add_shares(out, dy + window_at(image, pixel->batch, oy, ox),
                       image_divisor(call->op, image, oy, ox), image->channels);
        }
    }
    store_channels(out, image->channels);
}

static void run_mean_pool_grad(const struct kernel_call *call)
{
    each_pixel(call, mean_pool_grad_pixel);
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
