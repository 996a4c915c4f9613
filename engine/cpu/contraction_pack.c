/*
 * contraction_pack.c - the packed layout's sizes, and canonical rows brought into it.
 */
#include <string.h>

#include "engine/cpu/contraction_packed.h"

struct packed_layout packed_layout(const struct contraction_shape *shape, int64_t rows)
{
    struct packed_layout layout = {.shape = *shape, .rows = rows};
    size_t heads = (size_t)shape->pieces * sizeof(struct piece_head);

    layout.planes = shape->bits == 22 ? 3 : 1;
    layout.panels = (rows + PANEL_ROWS - 1) / PANEL_ROWS;
    layout.plane_size = (size_t)((shape->k + 1) / 2) * LINE_SIZE;
    layout.panel_size = (size_t)layout.planes * layout.plane_size + LINE_SIZE +
                        (heads + LINE_SIZE - 1) / LINE_SIZE * LINE_SIZE;
    return layout;
}

size_t contraction_packed_size(const struct op *quantize)
{
    struct contraction_shape shape = contraction_shape_of(quantize);
    struct packed_layout layout = packed_layout(&shape, quantize_rows(quantize));

    return (size_t)layout.panels * layout.panel_size;
}

/* One row of a piece of 14, 15 or 16 bits. */
static void pack_row(int16_t *to, const int16_t *q, int64_t count)
{
    for (int64_t k = 0; k + 1 < count; k += 2) {
        int32_t pair;

        memcpy(&pair, q + k, sizeof(pair));
        memcpy(to + k * PANEL_ROWS, &pair, sizeof(pair));
    }
    if (count & 1) {
        to[(count - 1) * PANEL_ROWS] = q[count - 1];
        to[(count - 1) * PANEL_ROWS + 1] = 0;
    }
}

static void pack_row_split(int16_t *to, size_t plane, const int32_t *q, int64_t count)
{
    for (int64_t k = 0; k < count + (count & 1); k++) {
        int32_t value = k < count ? q[k] : 0;
        int32_t low = (int32_t)((uint32_t)value << (32 - PLANE_BITS)) >> (32 - PLANE_BITS);
        int32_t high = (value - low) >> PLANE_BITS;
        int64_t at = k / 2 * 2 * PANEL_ROWS + (k & 1);

        to[at] = (int16_t)high;
        to[plane + (size_t)at] = (int16_t)low;
        to[2 * plane + (size_t)at] = (int16_t)(high + low);
    }
}

static void clear_row(int16_t *to, int64_t count)
{
    for (int64_t k = 0; k < count; k += 2) {
        to[k * PANEL_ROWS] = 0;
        to[k * PANEL_ROWS + 1] = 0;
    }
}

void contraction_pack(const struct contraction_isa *isa, char *lines, size_t plane_size,
                      struct piece_head *heads, const struct contraction_shape *shape,
                      const struct quantized_row *rows, const int32_t *lowest, int row_count,
                      int64_t start, int64_t count)
{
    size_t plane = plane_size / sizeof(int16_t);
    int planes = shape->bits == 22 ? 3 : 1;

    for (int r = 0; r < PANEL_ROWS; r++) {
        int16_t *to = (int16_t *)lines + 2 * r;

        if (r >= row_count) {
            for (int p = 0; p < planes; p++) {
                clear_row(to + (size_t)p * plane, count);
            }
        } else if (planes == 3) {
            pack_row_split(to, plane, (const int32_t *)rows[r].q + start, count);
        } else {
            pack_row(to, (const int16_t *)rows[r].q + start, count);
        }
    }
    for (int64_t k = 0; k < count; k += shape->piece, heads++) {
        int64_t pairs = ((count - k < shape->piece ? count - k : shape->piece) + 1) / 2;

        isa->norms(heads->norms, lines + k / 2 * LINE_SIZE, plane_size, pairs, shape->bits);
        for (int r = 0; r < PANEL_ROWS; r++) {
            bool live = r < row_count && lowest[r] < LOWEST_POISON;

            heads->shifts[r] =
                live ? (uint8_t)(rows[r].exponents[(start + k) / shape->block] - lowest[r]) : 0;
        }
    }
}
