/*
 * expert_sums.c - products whose sums are apart by expert: the gradients of experts' weights.
 *
 * The places along K are copied together by their experts, from both operands; each expert is then
 * a product of its own, over its places alone. A panel is read once: a window of its places stays
 * in the cache while every expert takes its own from there.
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

#define WINDOW_PLACES 1024 /* that are read from a panel before the next are */

/* Places that an expert takes at most, of all together. */
static int64_t places_most(const struct op *op)
{
    struct contraction_shape shape = contraction_shape_of(op);
    int64_t experts = op->attributes[CHOSEN_SUM_EXPERTS];
    int64_t runs = shape.k < experts * shape.blocks ? shape.k : experts * shape.blocks;

    return shape.blocks == 1 ? shape.k + 2 * experts
                             : shape.k + BLOCK_PIECE * runs + BLOCK_PIECE * experts;
}

/* What one expert's part of an operand looks like. */
static struct packed_layout expert_layout(const struct contraction_shape *shape, int64_t k,
                                          int64_t rows)
{
    struct contraction_shape own =
        contraction_shape(k, shape->bits, shape->blocks == 1 ? 0 : BLOCK_PIECE);

    return packed_layout(&own, rows);
}

/* Bytes of all experts' parts of an operand, at most: what one part of all places takes, and for
 * each expert a head, and what is rounded up. */
static size_t parts_size(const struct op *op, int64_t rows)
{
    struct contraction_shape shape = contraction_shape_of(op);
    struct packed_layout layout = expert_layout(&shape, places_most(op), rows);
    size_t own = LINE_SIZE + contraction_lines(2 * sizeof(struct piece_head));

    return (size_t)layout.panels *
           (layout.panel_size + own * (size_t)op->attributes[CHOSEN_SUM_EXPERTS]);
}

static size_t table_size(const struct op *op)
{
    return contraction_lines(sizeof(uint32_t) * (size_t)(op->attributes[CHOSEN_SUM_EXPERTS] + 1));
}

size_t contraction_chosen_rows_scratch(const struct op *op, int thread_count)
{
    return contraction_contract_scratch(op, thread_count) +
           parts_size(op, op->attributes[CHOSEN_SUM_M]) +
           parts_size(op, op->attributes[CHOSEN_SUM_N]) +
           (3 + (size_t)thread_count) * table_size(op) + sizeof(uint32_t) * (size_t)places_most(op);
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

/* Place k of a part where whole groups of lines hold bytes. */
static void put_place(const struct contraction_isa *isa, const struct packed_layout *from,
                      const char *panel, const struct packed_layout *layout, char *to, int64_t k,
                      uint32_t place)
{
    int64_t grouped = layout->shape.k / 2 / BYTES_LINES * BYTES_LINES * 2;

    for (int r = 0; r < PANEL_ROWS; r++) {
        int32_t q = place == ROW_NONE ? 0 : packed_element(isa, from, panel, r, place);
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

/* An operand, and the experts' parts of it, one after the other. */
struct parted {
    const char *q;
    struct packed_layout layout;
    char *parts;
};

struct expert_sums {
    const struct contraction_isa *isa;
    struct contraction_shape shape;
    struct expert_places places;
    struct parted operands[2];
    float *out;
    int threads;
};

static struct packed_layout layout_of_expert(const struct expert_sums *sums,
                                             const struct parted *operand, int64_t expert)
{
    const uint32_t *starts = sums->places.starts;

    return expert_layout(&sums->shape, starts[expert + 1] - starts[expert], operand->layout.rows);
}

/* How far an expert's places are before `end`, pair by pair. */
static uint32_t places_before(const uint32_t *order, uint32_t at, int64_t count, uint32_t end)
{
    while (at < count && (order[at] == ROW_NONE || order[at] < end) &&
           (order[at + 1] == ROW_NONE || order[at + 1] < end)) {
        at += 2;
    }
    return at;
}

/* Takes some of an expert's places. */
static void take_places(const struct expert_sums *sums, const struct packed_layout *from,
                        const char *panel, const struct packed_layout *layout, char *to,
                        const uint32_t *order, uint32_t first, uint32_t last)
{
    for (uint32_t k = first; sums->isa->bytes && k < last; k++) {
        put_place(sums->isa, from, panel, layout, to, k, order[k]);
    }
    for (int plane = 0; !sums->isa->bytes && plane < layout->planes; plane++) {
        sums->isa->join(to + (size_t)plane * layout->plane_size + first / 2 * (size_t)LINE_SIZE,
                        panel + (size_t)plane * from->plane_size, order + first,
                        (last - first) / 2);
    }
}

/* What an expert's part of one panel has beside its integers. */
static void finish_part(const struct expert_sums *sums, const struct packed_layout *from,
                        const char *panel, const struct packed_layout *layout, char *to,
                        const uint32_t *order)
{
    const struct contraction_shape *shape = &layout->shape;

    memcpy(panel_lowest(layout, to), panel_lowest(from, panel), LINE_SIZE);
    for (int64_t p = 0; p < shape->pieces; p++) {
        struct piece_head *head = &panel_heads(layout, to)[p];
        int64_t start = p * shape->piece;
        int64_t count = shape->k - start < shape->piece ? shape->k - start : shape->piece;
        uint32_t first = order[start] == ROW_NONE ? 0 : order[start];

        memcpy(head->shifts, panel_heads(from, panel)[first / from->shape.piece].shifts,
               sizeof(head->shifts));
        sums->isa->norms(head->norms, to + start / 2 * LINE_SIZE, layout->plane_size, count / 2,
                         shape->bits);
    }
}

/* Makes all experts' parts of one panel; at: of each expert, where it stands. */
static void part_panel(const struct expert_sums *sums, const struct parted *operand, int64_t number,
                       uint32_t *at)
{
    const struct expert_places *places = &sums->places;
    const char *panel = operand->q + (size_t)number * operand->layout.panel_size;

    memset(at, 0, sizeof(*at) * (size_t)places->experts);
    for (int64_t end = WINDOW_PLACES; end < sums->shape.k + WINDOW_PLACES; end += WINDOW_PLACES) {
        char *to = operand->parts;

        for (int64_t e = 0; e < places->experts; e++) {
            const struct packed_layout layout = layout_of_expert(sums, operand, e);
            char *own = to + (size_t)number * layout.panel_size;
            const uint32_t *order = places->order + places->starts[e];

            const uint32_t last = places_before(order, at[e], layout.shape.k, (uint32_t)end);

            take_places(sums, &operand->layout, panel, &layout, own, order, at[e], last);
            at[e] = last;
            if (end >= sums->shape.k) {
                finish_part(sums, &operand->layout, panel, &layout, own, order);
            }
            to += (size_t)layout.panels * layout.panel_size;
        }
    }
}

static void part_operand(const struct expert_sums *sums, const struct parted *operand, uint32_t *at,
                         size_t table)
{
#pragma omp parallel for schedule(static) num_threads(sums->threads) if (sums->threads > 1)
    for (int64_t panel = 0; panel < operand->layout.panels; panel++) {
        part_panel(sums, operand, panel,
                   (uint32_t *)(uintptr_t)((char *)at + (size_t)contraction_thread() * table));
    }
}

/* The product of an expert; parts: its own of both operands, which become those of the next. */
static void run_expert(const struct expert_sums *sums, int64_t expert, const char *parts[2],
                       char *scratch)
{
    int64_t m = sums->operands[0].layout.rows;
    int64_t n = sums->operands[1].layout.rows;
    struct packed_layout layout = layout_of_expert(sums, &sums->operands[0], expert);
    struct product product = {
        .isa = sums->isa,
        .shape = layout.shape,
        .a = contraction_operand(&layout.shape, parts[0], 1, m),
        .b = contraction_operand(&layout.shape, parts[1], 1, n),
        .stream = sums->places.experts * m * n > STREAM_SIZE / (int64_t)sizeof(float),
        .unit = true,
        .dims = {1, 1, 1, m, 1, n},
        .strides = {0, 0, 0, n, 0, 1},
        .out = sums->out + expert * m * n,
    };

    contraction_run_product(&product, scratch, sums->threads);
    parts[0] += (size_t)product.a.layout.panels * product.a.layout.panel_size;
    parts[1] += (size_t)product.b.layout.panels * product.b.layout.panel_size;
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
    char *tables = memory + parts_size(call->op, m) + parts_size(call->op, n);
    uint32_t *at = (uint32_t *)(uintptr_t)(tables + 3 * table);
    struct expert_sums sums = {
        .isa = isa,
        .shape = shape,
        .operands = {{call->inputs[1], packed_layout(&shape, m), memory},
                     {call->inputs[3], packed_layout(&shape, n), memory + parts_size(call->op, m)}},
        .places = {.experts = attributes[CHOSEN_SUM_EXPERTS],
                   .block = shape.blocks == 1 ? 0 : shape.block,
                   .starts = (uint32_t *)(uintptr_t)tables,
                   .next = (uint32_t *)(uintptr_t)(tables + table),
                   .last = (uint32_t *)(uintptr_t)(tables + 2 * table),
                   .order =
                       (uint32_t *)(uintptr_t)(tables + (3 + (size_t)call->thread_count) * table)},
        .out = call->outputs[0],
        .threads = contraction_threads(call->thread_count, m * n, THREAD_PRODUCTS / shape.k + 1)};
    const char *parts[2] = {sums.operands[0].parts, sums.operands[1].parts};

    sort_by_expert(&sums.places, call->inputs[0], shape.k);
    part_operand(&sums, &sums.operands[0], at, table);
    part_operand(&sums, &sums.operands[1], at, table);
    for (int64_t e = 0; e < sums.places.experts; e++) {
        run_expert(&sums, e, parts, call->scratch);
    }
}
