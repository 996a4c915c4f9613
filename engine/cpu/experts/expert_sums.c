/*
 * expert_sums.c - products whose sums are apart by expert: the gradients of experts' weights.
 *
 * The places along K are copied together by their experts, from both operands; each expert is then
 * a product of its own, over its places alone.
 */
#include <string.h>

#include "engine/cpu/contraction_packed.h"

/*
 * Places along K, expert by expert, as they come; ROW_NONE adds nothing. A piece has places of one
 * block: where rows have several, each goes on with a new piece of so many places.
 */
#define BLOCK_PIECE 16
struct expert_places {
    int64_t experts;
    int64_t block;    /* of K; 0: all of it */
    uint32_t *starts; /* experts + 1; a multiple of 2, or of a piece */
    uint32_t *order;
    uint32_t *next; /* experts */
    uint32_t *last; /* experts: the block of the last place */
};

/* Places that an expert takes at most, of all together. */
static int64_t places_most(const struct op *op)
{
    struct contraction_shape shape = contraction_shape_of(op);
    int64_t experts = op->attributes[CHOSEN_SUM_EXPERTS];
    int64_t runs = shape.k < experts * shape.blocks ? shape.k : experts * shape.blocks;

    return shape.blocks == 1 ? shape.k + 2 * experts
                             : shape.k + BLOCK_PIECE * runs + BLOCK_PIECE * experts;
}

/* The same of one expert. */
static int64_t expert_most(const struct contraction_shape *shape)
{
    return shape->blocks == 1 ? shape->k + 2 : shape->k + BLOCK_PIECE * (shape->blocks + 1);
}

/* What one expert's part of an operand looks like. */
static struct packed_layout expert_layout(const struct contraction_shape *shape, int64_t k,
                                          int64_t rows)
{
    struct contraction_shape own =
        contraction_shape(k, shape->bits, shape->blocks == 1 ? 0 : BLOCK_PIECE);

    return packed_layout(&own, rows);
}

/* Bytes of an expert's part of an operand, at most. */
static size_t part_size(const struct contraction_shape *shape, int64_t rows)
{
    struct packed_layout layout = expert_layout(shape, expert_most(shape), rows);

    return (size_t)layout.panels * layout.panel_size;
}

static size_t table_size(const struct op *op)
{
    return contraction_lines(sizeof(uint32_t) * (size_t)(op->attributes[CHOSEN_SUM_EXPERTS] + 1));
}

size_t contraction_chosen_rows_scratch(const struct op *op, int thread_count)
{
    struct contraction_shape shape = contraction_shape_of(op);

    return contraction_contract_scratch(op, thread_count) +
           part_size(&shape, op->attributes[CHOSEN_SUM_M]) +
           part_size(&shape, op->attributes[CHOSEN_SUM_N]) + 3 * table_size(op) +
           sizeof(uint32_t) * (size_t)places_most(op);
}

static uint32_t rounded_place(const struct expert_places *places, uint32_t at)
{
    uint32_t unit = places->block == 0 ? 2 : BLOCK_PIECE;

    return (at + unit - 1) / unit * unit;
}

/* Goes through K: next[e] is what follows the last place of an expert, and order is filled where it
 * is given. */
static void walk_places(const struct expert_places *places, const uint32_t *index, int64_t count,
                        bool fill)
{
    memset(places->last, 0xff, sizeof(*places->last) * (size_t)places->experts);
    for (int64_t k = 0; k < count; k++) {
        uint32_t block = places->block == 0 ? 0 : (uint32_t)(k / places->block);
        uint32_t e = index[k];

        if (e >= (uint64_t)places->experts) {
            continue;
        }
        if (places->last[e] != block && places->last[e] != ROW_NONE) {
            places->next[e] = rounded_place(places, places->next[e]);
        }
        places->last[e] = block;
        if (fill) {
            places->order[places->next[e]] = (uint32_t)k;
        }
        places->next[e]++;
    }
}

static void sort_by_expert(const struct expert_places *places, const uint32_t *index, int64_t count)
{
    uint32_t at = 0;

    memset(places->next, 0, sizeof(*places->next) * (size_t)places->experts);
    walk_places(places, index, count, false);
    for (int64_t e = 0; e < places->experts; e++) {
        uint32_t own = places->next[e] == 0 ? 1 : places->next[e];

        places->starts[e] = at;
        places->next[e] = at;
        at += rounded_place(places, own);
    }
    places->starts[places->experts] = at;
    memset(places->order, 0xff, sizeof(*places->order) * at);
    walk_places(places, index, count, true);
}

/* Element k of each row of a plane: half of each word of its line. */
struct half_words {
    const uint32_t *line;
    uint32_t down;
    uint32_t kept; /* 0 where there is no element */
};

static struct half_words half_of(const char *plane, uint32_t k)
{
    bool none = k == ROW_NONE;

    return (struct half_words){
        .line = (const uint32_t *)(uintptr_t)(plane + (none ? 0 : k / 2 * (size_t)LINE_SIZE)),
        .down = none ? 0 : 16 * (k & 1),
        .kept = none ? 0 : UINT32_C(0xffff)};
}

/* Two places become a line. */
static void join_places(uint32_t *restrict line, const char *plane, const uint32_t order[2])
{
    const struct half_words low = half_of(plane, order[0]);
    const struct half_words high = half_of(plane, order[1]);

    for (int r = 0; r < PANEL_ROWS; r++) {
        line[r] = (low.line[r] >> low.down & low.kept) | (high.line[r] >> high.down & high.kept)
                                                             << 16;
    }
}

/* The same where whole groups of lines hold bytes. */
static void join_bytes(const struct contraction_isa *isa, const struct packed_layout *from,
                       const char *panel, const struct packed_layout *layout, char *to,
                       const uint32_t *order)
{
    int64_t grouped = layout->shape.k / 2 / BYTES_LINES * BYTES_LINES * 2;

    for (int64_t k = 0; k < layout->shape.k; k++) {
        for (int r = 0; r < PANEL_ROWS; r++) {
            int32_t q = order[k] == ROW_NONE ? 0 : packed_element(isa, from, panel, r, order[k]);
            int8_t *at = (int8_t *)to + k / 8 * BYTES_GROUP + r * 8 + k % 8;

            if (k < grouped) {
                int32_t low = ((q + 64) & 127) - 64;

                at[0] = (int8_t)((q - low) / (1 << BYTE_BITS));
                at[BYTES_LOW] = (int8_t)low;
            } else {
                ((int16_t *)(uintptr_t)(to + k / 2 * LINE_SIZE))[2 * r + (k & 1)] = (int16_t)q;
            }
        }
    }
}

static void join_lines(const struct packed_layout *from, const char *panel,
                       const struct packed_layout *layout, char *to, const uint32_t *order)
{
    for (int plane = 0; plane < layout->planes; plane++) {
        const char *in = panel + (size_t)plane * from->plane_size;
        uint32_t *out = (uint32_t *)(uintptr_t)(to + (size_t)plane * layout->plane_size);

        for (int64_t pair = 0; pair < layout->shape.k / 2; pair++) {
            join_places(out + pair * PANEL_ROWS, in, order + 2 * pair);
        }
    }
}

/* Makes an expert's part of one panel. */
static void part_panel(const struct contraction_isa *isa, const struct packed_layout *from,
                       const char *panel, const struct packed_layout *layout, char *to,
                       const uint32_t *order)
{
    const struct contraction_shape *shape = &layout->shape;

    memcpy(panel_lowest(layout, to), panel_lowest(from, panel), LINE_SIZE);
    if (isa->bytes) {
        join_bytes(isa, from, panel, layout, to, order);
    } else {
        join_lines(from, panel, layout, to, order);
    }
    for (int64_t p = 0; p < shape->pieces; p++) {
        struct piece_head *head = &panel_heads(layout, to)[p];
        int64_t start = p * shape->piece;
        int64_t count = shape->k - start < shape->piece ? shape->k - start : shape->piece;
        uint32_t first = order[start] == ROW_NONE ? 0 : order[start];

        memcpy(head->shifts, panel_heads(from, panel)[first / from->shape.piece].shifts,
               sizeof(head->shifts));
        isa->norms(head->norms, to + start / 2 * LINE_SIZE, layout->plane_size, count / 2,
                   shape->bits);
    }
}

/* An operand, and the expert's part of it that is made now. */
struct parted {
    const char *q;
    struct packed_layout layout;
    char *part;
};

struct expert_sums {
    const struct contraction_isa *isa;
    struct contraction_shape shape;
    struct expert_places places;
    struct parted operands[2];
    float *out;
    int threads;
};

/* Makes an expert's part of an operand. */
static void part_operand(const struct expert_sums *sums, const struct parted *operand,
                         int64_t expert)
{
    const uint32_t *starts = sums->places.starts;
    struct packed_layout layout =
        expert_layout(&sums->shape, starts[expert + 1] - starts[expert], operand->layout.rows);

#pragma omp parallel for schedule(static) num_threads(sums->threads) if (sums->threads > 1)
    for (int64_t panel = 0; panel < layout.panels; panel++) {
        part_panel(sums->isa, &operand->layout,
                   operand->q + (size_t)panel * operand->layout.panel_size, &layout,
                   operand->part + (size_t)panel * layout.panel_size,
                   sums->places.order + starts[expert]);
    }
}

static void run_expert(const struct expert_sums *sums, int64_t expert, char *scratch)
{
    const uint32_t *starts = sums->places.starts;
    int64_t m = sums->operands[0].layout.rows;
    int64_t n = sums->operands[1].layout.rows;
    struct packed_layout layout =
        expert_layout(&sums->shape, starts[expert + 1] - starts[expert], m);
    struct product product = {
        .isa = sums->isa,
        .shape = layout.shape,
        .a = contraction_operand(&layout.shape, sums->operands[0].part, 1, m),
        .b = contraction_operand(&layout.shape, sums->operands[1].part, 1, n),
        .stream = sums->places.experts * m * n > STREAM_SIZE / (int64_t)sizeof(float),
        .unit = true,
        .dims = {1, 1, 1, m, 1, n},
        .strides = {0, 0, 0, n, 0, 1},
        .out = sums->out + expert * m * n,
    };

    part_operand(sums, &sums->operands[0], expert);
    part_operand(sums, &sums->operands[1], expert);
    contraction_run_product(&product, scratch, sums->threads);
}

void contraction_chosen_rows(const struct contraction_isa *isa, const struct kernel_call *call)
{
    const int64_t *attributes = call->op->attributes;
    const int64_t m = attributes[CHOSEN_SUM_M];
    const int64_t n = attributes[CHOSEN_SUM_N];
    const size_t table = table_size(call->op);
    struct contraction_shape shape = contraction_shape_of(call->op);
    char *memory =
        (char *)call->scratch + contraction_contract_scratch(call->op, call->thread_count);
    char *tables = memory + part_size(&shape, m) + part_size(&shape, n);
    struct expert_sums sums = {
        .isa = isa,
        .shape = shape,
        .operands = {{call->inputs[1], packed_layout(&shape, m), memory},
                     {call->inputs[3], packed_layout(&shape, n), memory + part_size(&shape, m)}},
        .places = {.experts = attributes[CHOSEN_SUM_EXPERTS],
                   .block = shape.blocks == 1 ? 0 : shape.block,
                   .starts = (uint32_t *)(uintptr_t)tables,
                   .next = (uint32_t *)(uintptr_t)(tables + table),
                   .last = (uint32_t *)(uintptr_t)(tables + 2 * table),
                   .order = (uint32_t *)(uintptr_t)(tables + 3 * table)},
        .out = call->outputs[0],
        .threads = contraction_threads(call->thread_count, m * n, THREAD_PRODUCTS / shape.k + 1)};

    sort_by_expert(&sums.places, call->inputs[0], shape.k);
    for (int64_t e = 0; e < sums.places.experts; e++) {
        run_expert(&sums, e, call->scratch);
    }
}
