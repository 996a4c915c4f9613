/*
 * contraction_sums.c - contractions with ones, with one-hots, and of one row by one row.
 *
 * Contractions with ones give the gradients of biases and gains: one pass over the operand. Those
 * with one-hots give the gradient of an embedding: the places of k are sorted by index, each word
 * that occurs is summed at once, and all other words are zeros. One row by one row gives the sums
 * of squares by which gradients are clipped: the products of a panel of A with the same panel of B,
 * in place of tiles of which one element is wanted.
 */
#include <string.h>

#include "engine/cpu/contraction_packed.h"

/* ---- 16 rows at a time ---- */

struct rows_view {
    struct packed_layout layout;
    const char *q;
    const int16_t *exponents;
};

static int rows_count(const struct rows_view *view, int64_t panel)
{
    int64_t left = view->layout.rows - panel * PANEL_ROWS;

    return left < PANEL_ROWS ? (int)left : PANEL_ROWS;
}

/* The exponents for finish_row(): lowest - (bits - 1), or poison. */
static void last_exponents(int32_t *exponents, const struct rows_view *view, int64_t panel)
{
    const struct contraction_shape *shape = &view->layout.shape;

    for (int r = 0; r < PANEL_ROWS; r++) {
        bool poison = false;
        int32_t lowest = 0;

        if (r < rows_count(view, panel)) {
            lowest = contraction_lowest(
                &poison, view->exponents + (panel * PANEL_ROWS + r) * shape->blocks, shape->blocks);
        }
        exponents[r] = poison ? LOWEST_POISON : lowest - (shape->bits - 1);
    }
}

/* The rows of a panel past the last row may hold anything. They have no result, but adding them
 * must be defined. A shift is at most W, below 32 (contraction.h). */
static inline int64_t add_shifted(int64_t sum, int64_t value, uint8_t shift)
{
    return (int64_t)((uint64_t)sum + ((uint64_t)value << (shift & 31)));
}

/* ---- ones ---- */

static void panel_sums(const struct contraction_isa *isa, int64_t *sums,
                       const struct rows_view *view, int64_t panel)
{
    const struct packed_layout *layout = &view->layout;
    const struct contraction_shape *shape = &layout->shape;
    const char *lines = view->q + (size_t)panel * layout->panel_size;
    const struct piece_head *heads = panel_heads(layout, lines);
    int32_t part[PANEL_ROWS];
    int32_t low[PANEL_ROWS] = {0};

    memset(sums, 0, sizeof(*sums) * PANEL_ROWS);
    for (int64_t p = 0; p < shape->pieces; p++) {
        int64_t start = p * shape->piece;
        int64_t count = shape->k - start < shape->piece ? shape->k - start : shape->piece;
        const char *at = lines + start / 2 * LINE_SIZE;

        isa->row_sums(part, at, (count + 1) / 2);
        if (layout->planes == 3) {
            isa->row_sums(low, at + layout->plane_size, (count + 1) / 2);
        }
        for (int r = 0; r < PANEL_ROWS; r++) {
            int64_t whole =
                layout->planes == 3 ? (int64_t)part[r] * (1 << PLANE_BITS) + low[r] : part[r];

            sums[r] = add_shifted(sums[r], whole, heads[p].shifts[r]);
        }
    }
}

static void ones_panels(const struct contraction_isa *isa, float *out, const struct rows_view *view,
                        int thread_count)
{
#pragma omp parallel for schedule(static) num_threads(thread_count)
    for (int64_t panel = 0; panel < view->layout.panels; panel++) {
        int32_t exponents[PANEL_ROWS];
        int64_t sums[PANEL_ROWS];
        float values[PANEL_ROWS];

        last_exponents(exponents, view, panel);
        panel_sums(isa, sums, view, panel);
        isa->finish_row(values, sums, exponents);
        memcpy(out + panel * PANEL_ROWS, values, sizeof(float) * (size_t)rows_count(view, panel));
    }
}

void contraction_ones(const struct contraction_isa *isa, const struct kernel_call *call)
{
    struct contraction_shape shape = contraction_shape_of(call->op);
    struct rows_view view = {.layout = packed_layout(&shape, call->op->attributes[ONES_ROWS]),
                             .q = call->inputs[0],
                             .exponents = call->inputs[1]};

    ones_panels(
        isa, call->outputs[0], &view,
        contraction_threads(call->thread_count, view.layout.rows * shape.k, THREAD_ELEMENTS));
}

/* ---- one row by one row ---- */

bool contraction_is_dots(const struct product *product)
{
    return product->isa->row_dots != NULL && product->groups == NULL && product->shape.bits != 22 &&
           product->a.batch_rows == 1 && product->b.batch_rows == 1;
}

/* Adds piece p of 16 rows of each operand, in runs whose sums fit 32 bits. The sum of two shifts is
 * at most 2W, which is below 32 for all but 22 bits. */
static void add_dots(const struct product *product, int64_t *sums, const char *a, const char *b,
                     int64_t p)
{
    const struct contraction_shape *shape = &product->shape;
    const struct piece_head *a_head = &panel_heads(&product->a.layout, a)[p];
    const struct piece_head *b_head = &panel_heads(&product->b.layout, b)[p];
    int64_t start = p * shape->piece;
    int64_t count = shape->k - start < shape->piece ? shape->k - start : shape->piece;
    int64_t run = safe_pairs(a_head->norms, b_head->norms, shape->bits);
    int64_t pairs = (count + 1) / 2;
    int32_t part[PANEL_ROWS];

    for (int64_t done = 0; done < pairs && run > 0; done += run) {
        int64_t at = (start / 2 + done) * LINE_SIZE;

        product->isa->row_dots(part, a + at, b + at, pairs - done < run ? pairs - done : run);
        for (int r = 0; r < PANEL_ROWS; r++) {
            sums[r] =
                add_shifted(sums[r], part[r], (uint8_t)(a_head->shifts[r] + b_head->shifts[r]));
        }
    }
}

static void dots_of_panel(const struct product *product, int64_t panel)
{
    const struct packed_layout *layout = &product->a.layout;
    const char *a = (const char *)product->a.q + (size_t)panel * layout->panel_size;
    const char *b = (const char *)product->b.q + (size_t)panel * layout->panel_size;
    int64_t first = panel * PANEL_ROWS;
    int64_t sums[PANEL_ROWS] = {0};
    int32_t exponents[PANEL_ROWS];
    float values[PANEL_ROWS];

    for (int64_t p = 0; p < layout->shape.pieces; p++) {
        add_dots(product, sums, a, b, p);
    }
    for (int r = 0; r < PANEL_ROWS; r++) {
        exponents[r] =
            panel_lowest(layout, a)[r] + panel_lowest(layout, b)[r] - 2 * (product->shape.bits - 1);
    }
    product->isa->finish_row(values, sums, exponents);
    for (int64_t row = first; row < first + PANEL_ROWS && row < layout->rows; row++) {
        product->out[batch_place(product, row)] = values[row - first];
    }
}

void contraction_run_dots(const struct product *product, int thread_count)
{
#pragma omp parallel for schedule(static) num_threads(thread_count)
    for (int64_t panel = 0; panel < product->a.layout.panels; panel++) {
        dots_of_panel(product, panel);
    }
}

/* ---- one-hots ---- */

/* Places of k by index: those of word v are order[starts[v]] .. order[starts[v + 1] - 1]. */
struct word_places {
    uint32_t *starts; /* words + 1 */
    uint32_t *order;  /* K */
    int64_t words;
};

size_t contraction_onehot_scratch(const struct op *op, int thread_count)
{
    (void)thread_count;
    return contraction_lines(sizeof(uint32_t) * (size_t)(op->attributes[ONEHOT_VOCABULARY] + 2)) +
           sizeof(uint32_t) * (size_t)op->attributes[ONEHOT_K];
}

static void sort_places(struct word_places *places, const uint32_t *index, int64_t count)
{
    uint32_t *next = places->starts + 1; /* one ahead: the last loop moves it into starts */

    memset(places->starts, 0, sizeof(uint32_t) * (size_t)(places->words + 2));
    for (int64_t k = 0; k < count; k++) {
        if (index[k] < (uint64_t)places->words) {
            next[index[k] + 1]++;
        }
    }
    for (int64_t v = 1; v <= places->words; v++) {
        next[v] += next[v - 1];
    }
    for (int64_t k = 0; k < count; k++) {
        if (index[k] < (uint64_t)places->words) {
            places->order[next[index[k]]++] = (uint32_t)k;
        }
    }
}

/* Adds element k of 16 rows to the sums. */
static void add_place(const struct contraction_isa *isa, int64_t *sums,
                      const struct rows_view *view, int64_t panel, int64_t k)
{
    const struct packed_layout *layout = &view->layout;
    const char *lines = view->q + (size_t)panel * layout->panel_size;
    const struct piece_head *head = &panel_heads(layout, lines)[k / layout->shape.piece];

    for (int r = 0; r < PANEL_ROWS; r++) {
        sums[r] = add_shifted(sums[r], packed_element(isa, layout, lines, r, k), head->shifts[r]);
    }
}

/* All words of 16 columns: a sum where the word occurs, else zeros (NaN in a poison row). */
static void onehot_panel(const struct contraction_isa *isa, float *out,
                         const struct rows_view *view, const struct word_places *places,
                         int64_t panel)
{
    int rows = rows_count(view, panel);
    int64_t width = view->layout.rows;
    int32_t exponents[PANEL_ROWS];
    int64_t sums[PANEL_ROWS] = {0};
    float empty[PANEL_ROWS];

    last_exponents(exponents, view, panel);
    isa->finish_row(empty, sums, exponents);
    for (int64_t v = 0; v < places->words; v++) {
        float *to = out + v * width + panel * PANEL_ROWS;
        float values[PANEL_ROWS];

        if (places->starts[v] == places->starts[v + 1]) {
            memcpy(to, empty, sizeof(float) * (size_t)rows);
            continue;
        }
        memset(sums, 0, sizeof(sums));
        for (uint32_t i = places->starts[v]; i < places->starts[v + 1]; i++) {
            add_place(isa, sums, view, panel, places->order[i]);
        }
        isa->finish_row(values, sums, exponents);
        memcpy(to, values, sizeof(float) * (size_t)rows);
    }
}

static void onehot_panels(const struct contraction_isa *isa, float *out,
                          const struct rows_view *view, const struct word_places *places,
                          int thread_count)
{
#pragma omp parallel for schedule(static) num_threads(thread_count)
    for (int64_t panel = 0; panel < view->layout.panels; panel++) {
        onehot_panel(isa, out, view, places, panel);
    }
}

void contraction_onehot(const struct contraction_isa *isa, const struct kernel_call *call)
{
    const int64_t *attributes = call->op->attributes;
    struct contraction_shape shape = contraction_shape_of(call->op);
    struct rows_view view = {.layout = packed_layout(&shape, attributes[ONEHOT_WIDTH]),
                             .q = call->inputs[1],
                             .exponents = call->inputs[2]};
    struct word_places places = {.starts = call->scratch, .words = attributes[ONEHOT_VOCABULARY]};

    places.order = (uint32_t *)((char *)call->scratch +
                                contraction_lines(sizeof(uint32_t) * (size_t)(places.words + 2)));
    sort_places(&places, call->inputs[0], shape.k);
    onehot_panels(isa, call->outputs[0], &view, &places,
                  contraction_threads(call->thread_count,
                                      view.layout.rows * (shape.k + places.words),
                                      THREAD_ELEMENTS));
}
