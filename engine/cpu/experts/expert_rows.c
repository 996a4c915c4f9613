/*
 * expert_rows.c - products of rows, each of which has an expert.
 *
 * Rows are copied together by their experts, into panels of their own, and are then a product of
 * which each expert is a batch. The copy keeps the order of rows, but no sum depends on it.
 */
#include <string.h>

#include "engine/cpu/contraction_packed.h"

#define SLICE_LINES 32 /* copied at a time; whole groups of bytes */

/* Panels that rows take at most, when each expert begins one. */
static int64_t grouped_panels(const int64_t *attributes)
{
    int64_t rows = attributes[CHOSEN_ROWS];
    int64_t experts = attributes[CHOSEN_EXPERTS];

    return rows / PANEL_ROWS + 1 + (experts < rows ? experts : rows);
}

size_t contraction_chosen_scratch(const struct op *op, int thread_count)
{
    struct contraction_shape shape = contraction_shape_of(op);
    size_t panels = (size_t)grouped_panels(op->attributes);
    size_t groups = (size_t)op->attributes[CHOSEN_EXPERTS] + 1;

    return contraction_contract_scratch(op, thread_count) +
           panels * packed_layout(&shape, PANEL_ROWS).panel_size +
           contraction_lines(sizeof(uint32_t) * groups) + sizeof(uint32_t) * panels * PANEL_ROWS;
}

/* Gives each row a place among those of its expert. */
static void group_rows(const struct row_groups *groups, const uint32_t *index, int64_t rows,
                       int64_t experts)
{
    uint32_t *panels = groups->panels;
    uint32_t all;

    memset(panels, 0, sizeof(*panels) * (size_t)(experts + 1));
    for (int64_t r = 0; r < rows; r++) {
        if (index[r] < (uint64_t)experts) {
            panels[index[r] + 1]++;
        }
    }
    for (int64_t e = 0; e < experts; e++) { /* places, which begin with a panel */
        uint32_t count = panels[e + 1];

        panels[e + 1] = panels[e] + (count + PANEL_ROWS - 1) / PANEL_ROWS * PANEL_ROWS;
    }
    all = panels[experts];
    memset(groups->order, 0xff, sizeof(*groups->order) * all);
    for (int64_t r = 0; r < rows; r++) {
        if (index[r] < (uint64_t)experts) {
            groups->order[panels[index[r]]++] = (uint32_t)r;
        }
    }
    /* Each now stands behind its last row: panels[e] is where group e + 1 begins. */
    for (int64_t e = experts; e > 0; e--) {
        panels[e] = (panels[e - 1] + PANEL_ROWS - 1) / PANEL_ROWS;
    }
    panels[0] = 0;
}

/* Where the integers of a panel's rows come from; a row without any reads zeros again and again. */
struct row_sources {
    const char *from[PANEL_ROWS]; /* the first word, or half group, of the row */
    size_t step[PANEL_ROWS];      /* to the next line, or group: all or nothing */
};

static struct row_sources open_sources(const struct packed_layout *layout, const char *q,
                                       const uint32_t *order, size_t word, size_t step)
{
    static const char zeros[8] __attribute__((aligned(8))) = {0};
    struct row_sources sources;

    for (int r = 0; r < PANEL_ROWS; r++) {
        bool none = order[r] == ROW_NONE;

        sources.from[r] =
            none ? zeros
                 : q + order[r] / PANEL_ROWS * layout->panel_size + order[r] % PANEL_ROWS * word;
        sources.step[r] = none ? 0 : step;
    }
    return sources;
}

/* Lines from `first` on of a plane: a word of each row. Line by line, since neighbours in a group
 * mostly come from the same lines. */
static void copy_words(char *to, const struct row_sources *sources, size_t start, int64_t first,
                       int64_t last)
{
    const char *from[PANEL_ROWS];
    size_t step[PANEL_ROWS];

    for (int r = 0; r < PANEL_ROWS; r++) {
        step[r] = sources->step[r];
        from[r] = sources->from[r] + (step[r] == 0 ? 0 : start + (size_t)first * step[r]);
    }
    to += first * LINE_SIZE;
    for (int64_t line = 0; line < last - first; line++) {
        for (int r = 0; r < PANEL_ROWS; r++) {
            memcpy(to + line * LINE_SIZE + r * sizeof(uint32_t), from[r] + line * step[r],
                   sizeof(uint32_t));
        }
    }
}

/* Groups of lines that hold bytes: eight of each row, twice. */
static void copy_groups(char *to, const struct row_sources *sources, int64_t first, int64_t last)
{
    for (int64_t g = first; g < last; g++) {
        for (int half = 0; half < 2; half++) {
            for (int r = 0; r < PANEL_ROWS; r++) {
                size_t from = sources->step[r] == 0
                                  ? 0
                                  : (size_t)g * sources->step[r] + (size_t)half * BYTES_LOW;

                memcpy(to + g * BYTES_GROUP + half * BYTES_LOW + 8 * r, sources->from[r] + from, 8);
            }
        }
    }
}

/* Lines from `first` on of all planes of a panel of rows that stood anywhere. */
static void copy_lines(const struct contraction_isa *isa, const struct packed_layout *layout,
                       char *to, const char *q, const uint32_t *order, int64_t first)
{
    int64_t lines = (int64_t)(layout->plane_size / LINE_SIZE);
    int64_t last = lines - first < SLICE_LINES ? lines : first + SLICE_LINES;
    int64_t grouped = isa->bytes ? lines / BYTES_LINES * BYTES_LINES : 0;
    struct row_sources words = open_sources(layout, q, order, sizeof(uint32_t), LINE_SIZE);

    if (first < grouped) {
        struct row_sources bytes = open_sources(layout, q, order, 8, BYTES_GROUP);

        copy_groups(to, &bytes, first / BYTES_LINES,
                    (last < grouped ? last : grouped) / BYTES_LINES);
        first = last < grouped ? last : grouped;
    }
    for (int plane = 0; plane < layout->planes; plane++) {
        size_t start = (size_t)plane * layout->plane_size;

        copy_words(to + start, &words, start, first, last);
    }
}

/* What a panel has beside its integers. The norms of a piece bound those of its rows. */
static void gather_heads(const struct packed_layout *layout, char *to, const char *q,
                         const uint32_t *order)
{
    struct piece_head *heads = panel_heads(layout, to);
    int64_t pieces = layout->shape.pieces;

    memset(heads, 0, sizeof(*heads) * (size_t)pieces);
    for (int r = 0; r < PANEL_ROWS; r++) {
        const char *from = NULL;
        int64_t lane = order[r] % PANEL_ROWS;

        panel_lowest(layout, to)[r] = 0;
        if (order[r] != ROW_NONE) {
            from = q + order[r] / PANEL_ROWS * layout->panel_size;
            panel_lowest(layout, to)[r] = panel_lowest(layout, from)[lane];
        }
        for (int64_t p = 0; from != NULL && p < pieces; p++) {
            const struct piece_head *head = &panel_heads(layout, from)[p];

            for (int n = 0; n < 2; n++) {
                heads[p].norms[n] =
                    head->norms[n] > heads[p].norms[n] ? head->norms[n] : heads[p].norms[n];
            }
            heads[p].shifts[r] = head->shifts[lane];
        }
    }
}

/* Makes all panels, some lines of each at a time: what these lines come from stays in the cache
 * while every expert takes its rows from there. */
static void gather_panels(const struct contraction_isa *isa, const struct packed_layout *layout,
                          char *to, const char *q, const struct row_groups *groups, int64_t panels,
                          int threads)
{
    int64_t slices = ((int64_t)(layout->plane_size / LINE_SIZE) + SLICE_LINES - 1) / SLICE_LINES;

#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t t = 0; t < slices * panels; t++) {
        int64_t p = t % panels;
        char *panel = to + (size_t)p * layout->panel_size;
        const uint32_t *order = &groups->order[p * PANEL_ROWS];

        copy_lines(isa, layout, panel, q, order, t / panels * SLICE_LINES);
        if (t < panels) {
            gather_heads(layout, panel, q, order);
        }
    }
}

/* Rows without an expert. */
static void fill_unchosen(float *out, const uint32_t *index, const int64_t *attributes)
{
    static const uint32_t bits = FLOAT_NAN_BITS;
    int64_t width = attributes[CHOSEN_WIDTH];

    for (int64_t r = 0; r < attributes[CHOSEN_ROWS]; r++) {
        for (int64_t n = 0; index[r] >= (uint64_t)attributes[CHOSEN_EXPERTS] && n < width; n++) {
            memcpy(&out[r * width + n], &bits, sizeof(bits));
        }
    }
}

void contraction_chosen(const struct contraction_isa *isa, const struct kernel_call *call)
{
    const int64_t *attributes = call->op->attributes;
    const int64_t rows = attributes[CHOSEN_ROWS];
    const int64_t experts = attributes[CHOSEN_EXPERTS];
    const int64_t width = attributes[CHOSEN_WIDTH];
    struct contraction_shape shape = contraction_shape_of(call->op);
    struct packed_layout layout = packed_layout(&shape, grouped_panels(attributes) * PANEL_ROWS);
    char *panels =
        (char *)call->scratch + contraction_contract_scratch(call->op, call->thread_count);
    struct row_groups groups = {
        .panels = (uint32_t *)(uintptr_t)(panels + (size_t)layout.panels * layout.panel_size)};
    int threads =
        contraction_threads(call->thread_count, rows * width, THREAD_PRODUCTS / shape.k + 1);

    groups.order =
        (uint32_t *)(uintptr_t)((char *)groups.panels +
                                contraction_lines(sizeof(uint32_t) * (size_t)(experts + 1)));
    group_rows(&groups, call->inputs[2], rows, experts);
    gather_panels(isa, &layout, panels, call->inputs[0], &groups, groups.panels[experts], threads);
    struct product product = {.isa = isa,
                              .groups = &groups,
                              .shape = shape,
                              .a = {.q = panels, .layout = layout},
                              .b = contraction_operand(&shape, call->inputs[3], experts, width),
                              .stream = rows * width > STREAM_SIZE / (int64_t)sizeof(float),
                              .unit = true,
                              .dims = {1, experts, 1, rows, 1, width},
                              .strides = {0, 0, 0, width, 0, 1},
                              .out = call->outputs[0]};

    contraction_run_product(&product, call->scratch, threads);
    fill_unchosen(call->outputs[0], call->inputs[2], attributes);
}
