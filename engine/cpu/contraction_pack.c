/* contraction_pack.c - sizes of the packed layout, unpacking to rows, the kernels' table. */
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

static void unpack_split(const struct contraction_isa *isa, int32_t *q,
                         const struct packed_layout *layout, const char *panel, int64_t rows)
{
    int64_t k_count = layout->shape.k;

    for (int64_t row = 0; row < rows; row++) {
        for (int64_t k = 0; k < k_count; k++) {
            q[row * k_count + k] = packed_element(isa, layout, panel, row, k);
        }
    }
}

/* Unpacks squares of UNPACK_PAIRS pairs, then the rest of K element by element. */
static void unpack_whole(const struct contraction_isa *isa, int16_t *q,
                         const struct packed_layout *layout, const char *panel, int64_t rows)
{
    int64_t k_count = layout->shape.k;
    int64_t square = 2 * UNPACK_PAIRS;
    int64_t squares = k_count / square;
    int16_t local[PANEL_ROWS * 2 * UNPACK_PAIRS] __attribute__((aligned(LINE_SIZE)));

    for (int64_t i = 0; i < squares; i++) {
        const char *lines = panel + i * UNPACK_PAIRS * LINE_SIZE;

        if (rows == PANEL_ROWS) {
            isa->unpack(q + i * square, k_count, lines);
            continue;
        }
        isa->unpack(local, square, lines);
        for (int64_t row = 0; row < rows; row++) {
            memcpy(q + row * k_count + i * square, local + row * square,
                   (size_t)square * sizeof(*q));
        }
    }
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t k = squares * square; k < k_count; k++) {
            q[row * k_count + k] = (int16_t)packed_element(isa, layout, panel, row, k);
        }
    }
}

void contraction_unpack(const struct contraction_isa *isa, void *q, const void *packed,
                        const struct op *quantize, int thread_count)
{
    struct contraction_shape shape = contraction_shape_of(quantize);
    struct packed_layout layout = packed_layout(&shape, quantize_rows(quantize));
    int threads = contraction_threads(thread_count, layout.rows * shape.k, THREAD_ELEMENTS);

#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t index = 0; index < layout.panels; index++) {
        const char *panel = (const char *)packed + (size_t)index * layout.panel_size;
        int64_t first = index * PANEL_ROWS;
        int64_t rows = layout.rows - first < PANEL_ROWS ? layout.rows - first : PANEL_ROWS;

        if (layout.planes == 3) {
            unpack_split(isa, (int32_t *)q + first * shape.k, &layout, panel, rows);
        } else {
            unpack_whole(isa, (int16_t *)q + first * shape.k, &layout, panel, rows);
        }
    }
}

void contraction_table(struct kernel_table *table, const struct contraction_runs *runs)
{
    table->unpack = runs->unpack;
    table->kernels[OP_QUANTIZE] = (struct kernel){.run = runs->quantize};
    table->kernels[OP_EQUILIBRATE].run = contraction_equilibrate;
    table->kernels[OP_CONTRACT] =
        (struct kernel){.run = runs->contract, .scratch_size = contraction_contract_scratch};
    table->kernels[OP_CONTRACT_ONES] = (struct kernel){.run = runs->ones};
    table->kernels[OP_CONTRACT_ONEHOT] =
        (struct kernel){.run = runs->onehot, .scratch_size = contraction_onehot_scratch};
    table->kernels[OP_CONTRACT_CHOSEN] =
        (struct kernel){.run = runs->chosen, .scratch_size = contraction_chosen_scratch};
    table->kernels[OP_CONTRACT_CHOSEN_ROWS] =
        (struct kernel){.run = runs->chosen_rows, .scratch_size = contraction_chosen_rows_scratch};
}
