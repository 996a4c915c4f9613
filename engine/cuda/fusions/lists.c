/*
 * lists.c - many tensors at once: the update of all parameters by one launch; and the squares of
 * all gradients and their sum by three, from the gradients themselves, made where the last of them
 * is added.
 *
 * Saves: a launch for each of 148 tensors of GPT-2; limbs written for each gradient, and five
 * launches for each.
 */
#include "engine/cuda/fusions/lists.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/fusions/pattern.h"
#include "engine/cuda/fusions/quantizer.h"
#include "engine/ops/real.h"
#include "engine/ops/view.h"

/* ---- the squares of many tensors ------------------------------------------------------- */

/* A tensor whose squares are summed. */
struct square_term {
    uint32_t x;      /* the tensor; of long rows, the sum itself */
    uint32_t square; /* the tensor of the sum */
    uint32_t end;    /* one past its last operation */
    int64_t rows;
    int64_t k;
    bool left; /* its operations stay as they are */
};

#define SQUARE_K_MAX 65536 /* longer rows are shared by the whole device */

/* Are all axes but the first of one step? */
static bool is_line(const int64_t *dims)
{
    return dims[1] * dims[2] * dims[3] * dims[4] * dims[5] == 1;
}

static bool reads_twice(const struct op *op, const struct op *quantize)
{
    return op->input_count == 4 && op->inputs[0] == quantize->outputs[2] &&
           op->inputs[1] == quantize->outputs[1] && op->inputs[2] == quantize->outputs[2] &&
           op->inputs[3] == quantize->outputs[1];
}

/* Does a tensor's sum of squares begin at `at`? As build_square_sum() writes it. */
static bool term_at(struct square_term *term, const struct fusion *fusion, uint32_t at)
{
    const struct op *ops = &fusion->ops[at];
    const uint32_t left = fusion->op_count - at;

    if (left < 2 || ops[0].kind != OP_QUANTIZE || ops[1].kind != OP_CONTRACT ||
        !reads_twice(&ops[1], &ops[0])) {
        return false;
    }
    const struct contraction_shape shape = contraction_shape_of(&ops[0]);
    const int64_t rows = quantize_rows(&ops[0]);

    *term = (struct square_term){.x = ops[0].inputs[0],
                                 .square = ops[1].outputs[0],
                                 .end = at + 2,
                                 .rows = rows,
                                 .k = shape.k,
                                 .left = shape.k > SQUARE_K_MAX};
    if (!quantizes_rows(&ops[0], term->x, rows, shape.k) ||
        !is_line(&ops[1].attributes[CONTRACT_DIMS]) || ops[1].attributes[CONTRACT_DIMS] != rows ||
        (rows > 1 && ops[1].attributes[CONTRACT_STRIDES] != 1) ||
        (shape.blocks > 1 && shape.block != CONTRACTION_PIECE)) {
        return false;
    }
    if (rows == 1) {
        return true;
    }
    if (left < 4 || !quantizes_rows(&ops[2], term->square, 1, rows) ||
        ops[3].kind != OP_CONTRACT_ONES || ops[3].inputs[0] != ops[2].outputs[2] ||
        ops[3].inputs[1] != ops[2].outputs[1] || contraction_shape_of(&ops[2]).blocks != 1 ||
        ops[2].attributes[QUANTIZE_BITS] != 22) {
        return false;
    }
    term->square = ops[3].outputs[0];
    term->end = at + 4;
    return true;
}

static bool is_sum(const struct op *op)
{
    return op->kind == OP_BINARY && op->attributes[BINARY_FUNCTION] == BINARY_ADD;
}

static bool is_sum_of(const struct op *op, const struct tape *tape, uint32_t total, uint32_t more)
{
    return is_sum(op) && op->inputs[0] == total && op->inputs[1] == more &&
           tape->tensors[op->outputs[0]].count == 1;
}

/* Does nobody behind operations first .. end-1 read their outputs, but the last one's? */
static bool is_closed(const struct fusion *fusion, const struct readers *readers, uint32_t first,
                      uint32_t end)
{
    for (uint32_t at = first; at < end; at++) {
        const struct op *op = &fusion->ops[at];

        for (uint32_t i = 0; i < op->output_count && at + 1 < end; i++) {
            const uint32_t id = op->outputs[i];

            if (readers->kept[id] || (readers->last[id] != NEVER && readers->last[id] >= end)) {
                return false;
            }
        }
    }
    return true;
}

struct square_run {
    struct square_term *terms;
    uint32_t count;
    uint32_t left; /* terms whose operations are left */
    uint32_t end;
};

/* Is there one that no pattern has taken? */
static bool free_term_at(struct square_term *term, const struct fusion *fusion, uint32_t at)
{
    return term_at(term, fusion, at) && !fusion->apart[at];
}

/* The longest run of terms and their additions from `at` on. */
static void run_at(struct square_run *run, const struct fusion *fusion, const struct tape *tape,
                   uint32_t at)
{
    struct square_term term;
    uint32_t total;

    run->count = 0;
    run->left = 0;
    if (!free_term_at(&term, fusion, at)) {
        return;
    }
    run->terms[run->count++] = term;
    run->end = term.end;
    run->left += term.left;
    total = term.square;
    while (free_term_at(&term, fusion, run->end) && term.end < fusion->op_count &&
           is_sum_of(&fusion->ops[term.end], tape, total, term.square)) {
        run->terms[run->count++] = term;
        run->left += term.left;
        total = fusion->ops[term.end].outputs[0];
        run->end = term.end + 1;
    }
}

/* Do the tensors live until the last addition? They do where somebody reads them behind it. */
static bool terms_last(const struct square_run *run, const struct readers *readers)
{
    for (uint32_t i = 0; i < run->count; i++) {
        const uint32_t until = readers->states[run->terms[i].x];

        if (!run->terms[i].left && (until == NEVER || until < run->end)) {
            return false;
        }
    }
    return true;
}

/*
 * The last addition reads the sums that were left, which keeps them alive, and makes all the rest.
 * The operations between have no reader any more, so nobody executes them; no pattern may change
 * them, for they say what the lists hold (write_squares()).
 */
static void rewrite_run(struct fusion *fusion, const struct square_run *run, uint32_t first)
{
    struct op *last = &fusion->ops[run->end - 1];

    for (uint32_t at = first; at < run->end; at++) {
        fusion->apart[at] = true;
        if (is_sum(&fusion->ops[at])) {
            fusion->ops[at].input_count = 0;
        }
    }
    last->input_count = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        if (run->terms[i].left) {
            last->inputs[last->input_count++] = run->terms[i].square;
        }
    }
    fusion->squares[fusion->squares_count++] =
        (struct fused_squares){.first = first, .at = run->end - 1, .term_count = run->count};
    fusion->patterns[run->end - 1] = &pattern_lists;
}

static bool find_squares(struct fusion *fusion, const struct tape *tape,
                         const struct readers *readers)
{
    struct square_run run = {.terms =
                                 malloc(((size_t)tape->op_count + 1) * sizeof(struct square_term))};

    if (run.terms == NULL) {
        return false;
    }
    for (uint32_t at = 0; at < tape->op_count && fusion->squares_count < FUSED_RUNS_MAX;) {
        run_at(&run, fusion, tape, at);
        if (run.count > 1 && run.left < OP_INPUTS_MAX &&
            fusion_is_stretch(fusion, at, run.end - 1) && is_closed(fusion, readers, at, run.end) &&
            terms_last(&run, readers)) {
            rewrite_run(fusion, &run, at);
            at = run.end;
        } else {
            at++;
        }
    }
    free(run.terms);
    return true;
}

/* ---- updates ------------------------------------------------------------------------------- */

static bool is_update(const struct tape *tape, const struct op *op)
{
    bool words = op->kind == OP_ADAMW || op->kind == OP_SGD;

    for (uint32_t i = 0; words && i < op->input_count; i++) {
        words = dtype_size(tape->tensors[op->inputs[i]].dtype) == 4;
    }
    return words;
}

static uint64_t update_tiles(const struct tape *tape, const struct op *op)
{
    return (tape->tensors[op->inputs[0]].count + UPDATE_TILE - 1) / UPDATE_TILE;
}

static void find_updates(struct fusion *fusion, const struct tape *tape)
{
    for (uint32_t at = 0; at < tape->op_count && fusion->updates_count < FUSED_RUNS_MAX;) {
        struct fused_updates run = {.at = at, .end = at};

        while (run.end < tape->op_count && fusion_is_stretch(fusion, at, run.end) &&
               is_update(tape, &fusion->ops[run.end])) {
            run.tiles += update_tiles(tape, &fusion->ops[run.end]);
            run.end++;
        }
        if (run.end - at > 1) {
            fusion->ends[at] = run.end;
            fusion->patterns[at] = &pattern_lists;
            fusion->updates[fusion->updates_count++] = run;
        }
        at = run.end > at ? run.end : at + 1;
    }
}

static bool find_lists(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    const bool there = find_squares(fusion, tape, readers);

    find_updates(fusion, tape);
    return there;
}

/* ---- lists ---------------------------------------------------------------------------- */

/* Lays lists one after another; first without memory, to find their size. */
struct list_writer {
    const struct launcher *launcher;
    uint8_t *host; /* NULL: only sizes */
    uint8_t *device;
    uint64_t size;
};

static uint64_t take_place(struct list_writer *writer, uint64_t size)
{
    const uint64_t at = writer->size;

    writer->size += packed_round_up(size, PACKED_ALIGNMENT);
    return at;
}

static void write_update(const struct list_writer *writer, struct update_item *item, uint32_t at)
{
    const struct launcher *launcher = writer->launcher;
    const struct op *op = &launcher->tape->ops[at];
    bool quads = true;

    *item = (struct update_item){.op = &launcher->ops[at],
                                 .count = launcher->tape->tensors[op->inputs[0]].count};
    for (uint32_t i = 0; i < op->input_count; i++) {
        item->inputs[i] = launcher->memory[op->inputs[i]];
        quads = quads && launch_is_aligned(item->inputs[i]);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        item->outputs[i] = launcher->memory[op->outputs[i]];
        quads = quads && launch_is_aligned(item->outputs[i]);
    }
    item->quads = quads;
}

static void write_updates(struct list_writer *writer, struct fused_updates *run)
{
    const uint32_t count = run->end - run->at;
    const uint64_t items = take_place(writer, count * sizeof(struct update_item));
    const uint64_t firsts = take_place(writer, count * sizeof(uint64_t));
    const struct tape *tape = writer->launcher->tape;
    uint64_t tiles = 0;

    if (writer->host == NULL) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        write_update(writer, (struct update_item *)(writer->host + items) + i, run->at + i);
        ((uint64_t *)(writer->host + firsts))[i] = tiles;
        tiles += update_tiles(tape, &tape->ops[run->at + i]);
    }
    run->items = (const struct update_item *)(writer->device + items);
    run->firsts = (const uint64_t *)(writer->device + firsts);
}

/* A list of rows to sum, being written. */
struct square_list {
    struct square_item *items; /* NULL: only sizes */
    uint64_t *firsts;
    uint64_t tiles;
    uint32_t count;
};

static void list_add(struct square_list *list, const struct square_item *item)
{
    const uint64_t rows = item->k > SQUARE_TEAM_K ? 1 : BLOCK_THREADS / CUDA_WARP;

    if (list->items != NULL) {
        list->items[list->count] = *item;
        list->items[list->count].quads = item->k % 4 == 0 && launch_is_aligned(item->x);
        list->firsts[list->count] = list->tiles;
    }
    list->tiles += (item->rows + rows - 1) / rows;
    list->count++;
}

static struct squares_args list_args(const struct square_list *list,
                                     const struct list_writer *writer, uint64_t items,
                                     uint64_t firsts)
{
    return (struct squares_args){.items = (const struct square_item *)(writer->device + items),
                                 .firsts = (const uint64_t *)(writer->device + firsts),
                                 .tiles = list->tiles,
                                 .item_count = list->count};
}

/* Adds a term to the lists; square: where its sum goes, in device memory. */
static void write_term(struct list_writer *writer, struct square_list lists[2],
                       const struct square_term *term, const struct op *quantize, uint32_t *square)
{
    const struct contraction_shape shape = contraction_shape_of(quantize);
    const uint64_t partial =
        term->rows > 1 ? take_place(writer, (uint64_t)term->rows * sizeof(float)) : 0;
    uint32_t *partials = (uint32_t *)(writer->device + partial);
    const struct square_item rows = {.x = writer->host == NULL ? NULL
                                                               : writer->launcher->memory[term->x],
                                     .out = term->rows > 1 ? partials : square,
                                     .rows = (uint64_t)term->rows,
                                     .k = (uint64_t)term->k,
                                     .window = shape.window,
                                     .bits = shape.bits,
                                     .whole = shape.blocks == 1,
                                     .squares = 1};
    const struct square_item sums = {.x = (const float *)partials,
                                     .out = square,
                                     .rows = 1,
                                     .k = (uint64_t)term->rows,
                                     .bits = 22,
                                     .whole = 1};

    list_add(&lists[0], &rows);
    if (term->rows > 1) {
        list_add(&lists[1], &sums);
    }
}

static void write_squares(struct list_writer *writer, struct fusion *fusion,
                          struct fused_squares *run)
{
    const uint64_t count = run->term_count;
    const uint64_t items[2] = {take_place(writer, count * sizeof(struct square_item)),
                               take_place(writer, count * sizeof(struct square_item))};
    const uint64_t firsts[2] = {take_place(writer, count * sizeof(uint64_t)),
                                take_place(writer, count * sizeof(uint64_t))};
    const uint64_t terms = take_place(writer, count * sizeof(float *));
    const uint64_t squares = take_place(writer, count * sizeof(float));
    struct square_list lists[2] = {{NULL, NULL, 0, 0}, {NULL, NULL, 0, 0}};
    uint32_t at = run->first;

    run->elements = 0;
    for (int i = 0; i < 2 && writer->host != NULL; i++) {
        lists[i].items = (struct square_item *)(writer->host + items[i]);
        lists[i].firsts = (uint64_t *)(writer->host + firsts[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        const float *square = (const float *)(writer->device + squares) + i;
        struct square_term term;
        const bool found = term_at(&term, fusion, at);

        assert(found); /* rewrite_run() keeps it as it was */
        (void)found;
        if (!term.left) {
            run->elements += (uint64_t)(term.rows * term.k);
            write_term(writer, lists, &term, &fusion->ops[at], (uint32_t *)(uintptr_t)square);
        } else if (writer->host != NULL) {
            square = writer->launcher->memory[term.square];
        }
        if (writer->host != NULL) {
            ((const float **)(writer->host + terms))[i] = square;
        }
        at = term.end + (i > 0); /* skips the addition */
    }
    run->rows = list_args(&lists[0], writer, items[0], firsts[0]);
    run->sums = list_args(&lists[1], writer, items[1], firsts[1]);
    run->terms = (const float *const *)(writer->device + terms);
}

void lists_write(struct fusion *fusion, const struct launcher *launcher, uint8_t *host,
                 uint8_t *device)
{
    struct list_writer writer = {.launcher = launcher, .host = host, .device = device};

    for (uint32_t i = 0; i < fusion->updates_count; i++) {
        write_updates(&writer, &fusion->updates[i]);
    }
    for (uint32_t i = 0; i < fusion->squares_count; i++) {
        write_squares(&writer, fusion, &fusion->squares[i]);
    }
    fusion->size = writer.size;
}

/* ---- the launch ---------------------------------------------------------------------- */

static enum device_result launch_updates(const struct launcher *launcher,
                                         const struct fused_updates *run)
{
    const struct updates_args args = {.items = run->items,
                                      .firsts = run->firsts,
                                      .end_tile = run->tiles,
                                      .item_count = run->end - run->at};

    return LAUNCH_WORK(launcher, KERNEL_UPDATES, run->tiles, 1, args);
}

static enum device_result launch_squares(const struct launcher *launcher,
                                         const struct fused_squares *run, float *out)
{
    const struct total_args total = {.terms = run->terms, .out = out, .count = run->term_count};

    if (run->rows.tiles > 0) {
        DEVICE_TRY(LAUNCH_WORK(launcher, KERNEL_SQUARES, run->rows.tiles, 1, run->rows));
    }
    if (run->sums.tiles > 0) {
        DEVICE_TRY(LAUNCH_WORK(launcher, KERNEL_SQUARES, run->sums.tiles, 1, run->sums));
    }
    return launch_grid(launcher, KERNEL_TOTAL, 1, CUDA_WARP, &total, (uint32_t)sizeof(total));
}

static enum device_result launch_lists(const struct launcher *launcher, const struct fusion *fusion,
                                       uint32_t at)
{
    for (uint32_t i = 0; i < fusion->updates_count; i++) {
        if (fusion->updates[i].at == at) {
            return launch_updates(launcher, &fusion->updates[i]);
        }
    }
    for (uint32_t i = 0; i < fusion->squares_count; i++) {
        if (fusion->squares[i].at == at) {
            return launch_squares(launcher, &fusion->squares[i],
                                  output_memory(launcher, &fusion->ops[at], 0));
        }
    }
    assert(false);
    return DEVICE_FAILED;
}

/* ---- the self-test ------------------------------------------------------------------- */

/* The squares of a tensor as build_square_sum() writes them. */
static uint32_t add_square_sum(struct selftest_tape *tape, uint32_t x, int64_t rows, int64_t k,
                               int bits, int block)
{
    const struct op *q = selftest_quantize(tape, x, rows, 1, k, bits, block, true);
    const uint32_t partial = selftest_hide(tape, selftest_dots(tape, q, q, rows, k));

    if (rows == 1) {
        return partial;
    }
    q = selftest_quantize(tape, partial, 1, 1, rows, 22, 0, true);
    return selftest_hide(tape, selftest_ones(tape, q, 1, rows));
}

/* An update of one tensor; the four scalars are the same for all tensors. */
static void add_update(struct selftest_tape *tape, enum op_kind kind, uint32_t gradient,
                       const uint32_t scalars[4], uint64_t count)
{
    static const float adamw[] = {0.9f, 0.1f, 0.999f, 0.001f, 1e-8f, 0.1f};
    static const float sgd[] = {0.9f, 0.01f};
    const bool is_adamw = kind == OP_ADAMW;
    const uint32_t p = selftest_give(tape, DTYPE_F32, count);
    const uint32_t v = selftest_give(tape, DTYPE_F32, count);
    const uint32_t m = is_adamw ? selftest_give(tape, DTYPE_F32, count) : 0;
    struct op *op = selftest_op(tape, kind);

    op->attribute_count = is_adamw ? ADAMW_ATTRIBUTES : SGD_ATTRIBUTES;
    for (uint32_t i = 0; i < op->attribute_count; i++) {
        op->attributes[i] = real_to_bits(is_adamw ? adamw[i] : sgd[i]);
    }
    selftest_input(op, p);
    selftest_input(op, gradient);
    if (is_adamw) {
        selftest_input(op, m);
    }
    selftest_input(op, v);
    for (uint32_t i = 0; i < 4; i++) {
        if (is_adamw || i == 0 || i == 3) {
            selftest_input(op, scalars[i]);
        }
    }
    for (uint32_t i = 0; i < (is_adamw ? 3 : 2); i++) {
        (void)selftest_output(tape, op, DTYPE_F32, count);
    }
}

/* Tensors of all sizes: their squares, added up, and the update of each. */
static void add_selftest(struct selftest_tape *tape, uint32_t part)
{
    static const struct {
        int64_t rows;
        int64_t k;
    } shapes[4] = {{11, 300}, {1, 36}, {2, 1301}, {9, 128}};
    uint32_t gradients[4];
    uint32_t scalars[4];
    uint32_t total = 0;

    for (int i = 0; i < 4; i++) {
        gradients[i] = selftest_give(tape, DTYPE_F32, (uint64_t)(shapes[i].rows * shapes[i].k));
        scalars[i] = selftest_give(tape, DTYPE_F32, 1);
    }
    for (int i = 0; i < 4; i++) {
        const uint32_t square = add_square_sum(tape, gradients[i], shapes[i].rows, shapes[i].k,
                                               part == 0 ? 14 : 16, part == 0 ? 128 : 0);

        if (i == 0) {
            total = square;
        } else {
            struct op *op = selftest_op(tape, OP_BINARY);

            binary_set(op, BINARY_ADD, 1, 1, 1);
            selftest_input(op, total);
            selftest_input(op, square);
            total = selftest_output(tape, op, DTYPE_F32, 1);
            if (i < 3) {
                (void)selftest_hide(tape, total);
            }
        }
    }
    for (int i = 0; i < 4; i++) {
        add_update(tape, part == 0 ? OP_ADAMW : OP_SGD, gradients[i], scalars,
                   (uint64_t)(shapes[i].rows * shapes[i].k));
    }
}

const struct fusion_pattern pattern_lists = {.name = "lists",
                                             .variant = VARIANT_LISTS,
                                             .match = find_lists,
                                             .launch = launch_lists,
                                             .selftest = add_selftest,
                                             .selftests = 2};
