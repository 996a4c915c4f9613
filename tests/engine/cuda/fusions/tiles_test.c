/*
 * tiles_test.c - both quantizations of a tensor from one read, and sums of its columns
 * (tiles_body.h), have the bits of the rules: on the emulator, over ragged matrices, one and
 * several, all widths that are taken, numbers of all sorts; where pieces of a row lie so far apart
 * that exponents are raised; behind GELU and SiLU, which are made on the way; behind norms, and of
 * both gradients of a norm; in whole training steps. What does not fit is left, and what others
 * read too.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/fusions/pattern.h"
#include "engine/cuda/kernels/args.h"
#include "engine/cuda/launch/launch.h"
#include "engine/cuda/launch/launch_quantize.h"
#include "engine/cuda/machine/machine_cuda.h"
#include "engine/tape/builder_core.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/device/fused_case.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/numeric/start.h"
#include "tests/support/test.h"

static const struct fake_device_switches sound;

/* Matrices, quantized by rows and by columns, and sums of their columns. */
struct matrices {
    uint64_t batches;
    uint64_t height;
    uint64_t width;
    struct precision precision;
    enum map_function function; /* MAP_NEG: nothing that could be made on the way */
    bool rows;
    bool sums;
    bool read; /* by others too */
    bool late; /* the columns are quantized first */
    bool far;  /* from each other */
};

static const struct matrices cases[] = {
    {1, 130, 260, {14, 128}, MAP_NEG, true, true, false, false, true},
    {3, 140, 37, {14, 128}, MAP_GELU, true, false, false, false, false},
    {1, 300, 129, {16, 128}, MAP_SILU, true, true, false, true, false},
    {2, 5, 132, {15, 128}, MAP_GELU, true, true, false, false, false},
    {2, 260, 3, {14, 128}, MAP_NEG, false, true, true, false, false},
    {4, 100, 64, {14, 0}, MAP_NEG, true, false, false, true, false},
    {1, 130, 36, {14, 128}, MAP_GELU, true, true, true, false, false},
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

/* Rows of x by three rows of what is given. */
static void add_product(struct builder *builder, const char *name, uint32_t x,
                        const struct view *view)
{
    const uint64_t batches = view->dims[0];
    const uint64_t rows = view->dims[3];
    const uint64_t k = view->dims[5];
    const uint64_t y_dims[3] = {batches, 3, k};
    const uint64_t dims[3] = {batches, rows, 3};
    const uint64_t strides[6] = {rows * 3, 0, 0, 3, 0, 1};
    const struct view y_view = {{batches, 1, 1, 3, 1, k}, {3 * k, 0, 0, k, 0, 1}};
    char given[32];

    (void)snprintf(given, sizeof(given), "%s.y", name);
    const uint32_t y = build_tensor(builder, given, DTYPE_F32, ROLE_INPUT, 3, y_dims);

    build_output(builder, name, build_contract(builder, x, view, y, &y_view, strides, 0, 3, dims));
}

static struct tape *matrices_tape(const struct matrices *m)
{
    const uint64_t dims[3] = {m->batches, m->height, m->width};
    const uint64_t all = m->height * m->width;
    const struct view rows = {{m->batches, 1, 1, m->height, 1, m->width},
                              {all, 0, 0, m->width, 0, 1}};
    const struct view columns = {{m->batches, 1, 1, m->width, 1, m->height},
                                 {all, 0, 0, 1, 0, m->width}};
    struct builder *builder = builder_new(m->precision);
    const uint32_t given = build_tensor(builder, "x", DTYPE_F32, ROLE_INPUT, 3, dims);
    const uint32_t u = build_scale(builder, given, 0.5f);
    const uint32_t x = build_map(builder, m->function, u);
    uint32_t scaled = u;

    if (m->rows && !m->late) {
        add_product(builder, "rows", x, &rows);
    }
    for (int i = 0; i < (m->far ? 30 : 0); i++) {
        scaled = build_scale(builder, scaled, 1.5f);
    }
    build_output(builder, "u", build_scale(builder, scaled, 2.0f));
    add_product(builder, "columns", x, &columns);
    if (m->rows && m->late) {
        add_product(builder, "rows", x, &rows);
    }
    if (m->sums) {
        /* With axes written in another way, the columns are quantized again. */
        build_output(builder, "sums",
                     m->batches == 1 ? build_reduce(builder, x, 1, m->width)
                                     : build_sum(builder, x, &columns));
    }
    if (m->read) {
        build_output(builder, "read", build_scale(builder, x, 2.0f));
    }
    return fused_finish(builder);
}

/* Numbers whose pieces lie up to 2^40 apart, along rows and columns, and pieces of zeros. */
static void give_pieces(struct machine *machine, const struct tape *tape, const struct matrices *m)
{
    const uint64_t count = m->batches * m->height * m->width;
    float *x = malloc(count * sizeof(*x));
    uint64_t random = 5;
    struct error error;
    uint32_t id = 0;

    error_init(&error);
    assert_non_null(x);
    while (strcmp(tape->tensors[id].name, "x") != 0) {
        id++;
    }
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t piece = i % m->width / 128 + i / m->width % m->height / 128;
        const float number = (float)test_random_below(&random, 4001) - 2000.0f;

        x[i] = piece % 3 == 2 ? 0.0f : ldexpf(number, piece % 3 == 0 ? -11 : -51);
    }
    assert_int_equal(machine->backend->write(machine, id, x, &error), STATUS_OK);
    free(x);
}

#define RAISED SORTS

/* Two steps by a variant, alone or with all others, are two steps by the rules. */
static void hold_given(const struct tape *tape, const struct matrices *m, int sort,
                       uint32_t disabled, const char *what)
{
    struct machine *rules = fused_rules(tape);
    struct machine *fused = fused_open(tape, disabled);
    struct machine *both[2] = {rules, fused};
    struct error error;

    error_init(&error);
    for (int i = 0; i < 2; i++) {
        fused_give(both[i], tape, sort == RAISED ? SORT_PLAIN : (enum sort)sort);
        if (sort == RAISED) {
            give_pieces(both[i], tape, m);
        }
        for (int step = 0; step < 2; step++) {
            assert_int_equal(both[i]->backend->step(both[i], NULL, &error), STATUS_OK);
        }
    }
    fused_compare(rules, fused, what);
    rules->backend->close(rules);
    fused->backend->close(fused);
}

static void hold(const struct matrices *m, int sort, uint32_t disabled, const char *what)
{
    struct tape *tape = matrices_tape(m);

    hold_given(tape, m, sort, disabled, what);
    tape_free(tape);
}

static void test_both_views_have_the_bits_of_the_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        for (int sort = 0; sort <= RAISED; sort++) {
            char what[64];

            if (test_share(1, 0) == 0 && sort != RAISED && sort != (int)(i % SORTS)) {
                continue;
            }
            (void)snprintf(what, sizeof(what), "case %zu, numbers of sort %d", i, sort);
            fake_device_set(&sound);
            hold(&cases[i], sort, fused_disabled_but(VARIANT_TILES), what);
            if (fake_device_launches(KERNEL_QUANTIZE_TILES) != 2 ||
                fake_device_launches(KERNEL_QUANTIZE_RAISE) != 2) {
                fail_msg("%s: %llu launches", what,
                         (unsigned long long)fake_device_launches(KERNEL_QUANTIZE_TILES));
            }
            /* Nobody else quantizes but the other operands, and nobody sums. */
            assert_int_equal(fake_device_launches(KERNEL_ONES), 0);
            assert_int_equal(fake_device_launches(KERNEL_QUANTIZE_ROWS) +
                                 fake_device_launches(KERNEL_QUANTIZE_INTEGERS),
                             2 * (1 + (cases[i].rows ? 1u : 0u)));
        }
    }
    assert_int_equal(fake_device_leftovers(), 0);
}

/* What only quantizations read is not made. */
static void test_functions_are_made_on_the_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        const bool taken = cases[i].function != MAP_NEG && !cases[i].read;

        fake_device_set(&sound);
        hold(&cases[i], SORT_PLAIN, fused_disabled_but(VARIANT_TILES), "functions");
        /* Two scales a step, and another one for who reads x. */
        assert_int_equal(
            fake_device_launches(KERNEL_ELEMENTS),
            2 * (2 + (taken ? 0u : 1u) + (cases[i].read ? 1u : 0u) + (cases[i].far ? 30u : 0u)));
    }
}

/* GELU of GELU of a product, each quantized both ways; the product is read by others too. */
static struct tape *chain_tape(void)
{
    enum { SIDE = 130 };
    static const uint64_t dims[2] = {SIDE, SIDE};
    static const struct view rows = {{1, 1, 1, SIDE, 1, SIDE}, {0, 0, 0, SIDE, 0, 1}};
    static const struct view columns = {{1, 1, 1, SIDE, 1, SIDE}, {0, 0, 0, 1, 0, SIDE}};
    struct builder *builder = builder_new((struct precision){14, 128});
    const uint32_t x = build_tensor(builder, "x", DTYPE_F32, ROLE_INPUT, 2, dims);
    const uint32_t w = build_tensor(builder, "w", DTYPE_F32, ROLE_INPUT, 2, dims);
    const uint32_t v = build_linear(builder, x, w);
    const uint32_t u = build_map(builder, MAP_GELU, v);
    const uint32_t y = build_map(builder, MAP_GELU, u);

    add_product(builder, "rows-u", u, &rows);
    add_product(builder, "columns-u", u, &columns);
    add_product(builder, "rows-y", y, &rows);
    add_product(builder, "columns-y", y, &columns);
    build_output(builder, "v", v);
    return fused_finish(builder);
}

/* A step of a product's epilogue that another step reads stays there. */
static void test_functions_that_others_read_stay(void **state)
{
    struct tape *tape = chain_tape();

    (void)state;
    fake_device_set(&sound);
    hold_given(tape, NULL, SORT_PLAIN,
               fused_disabled_but(VARIANT_TILES) & ~(1u << VARIANT_EPILOGUE), "GELU of GELU");
    assert_int_equal(fake_device_launches(KERNEL_QUANTIZE_TILES), 4);
    tape_free(tape);
}

/* Two gradients whose squares are summed; the columns of the first are quantized too. */
static struct tape *squares_tape(void)
{
    enum { SIDE = 20 };
    static const uint64_t dims[2] = {SIDE, SIDE};
    static const struct view columns = {{1, 1, 1, SIDE, 1, SIDE}, {0, 0, 0, 1, 0, SIDE}};
    struct builder *builder = builder_new((struct precision){14, 128});
    uint32_t gradients[2];
    uint32_t total;

    for (int i = 0; i < 2; i++) {
        gradients[i] = build_scale(
            builder, build_tensor(builder, i == 0 ? "x" : "z", DTYPE_F32, ROLE_INPUT, 2, dims),
            0.5f);
    }
    add_product(builder, "columns", gradients[0], &columns);
    total = build_square_sum(builder, gradients[0]);
    total = build_add(builder, total, build_square_sum(builder, gradients[1]), 1);
    build_output(builder, "norm", total);
    for (int i = 0; i < 2; i++) {
        const uint32_t weight =
            build_tensor(builder, i == 0 ? "wx" : "wz", DTYPE_F32, ROLE_STATE, 2, dims);

        build_after(builder, weight, build_add(builder, weight, gradients[i], 1));
    }
    return fused_finish(builder);
}

/* Squares of a list say by their quantizations what it holds. */
static void test_what_a_list_has_taken_is_left(void **state)
{
    struct tape *tape = squares_tape();

    (void)state;
    fake_device_set(&sound);
    hold_given(tape, NULL, SORT_PLAIN, fused_disabled_but(VARIANT_TILES) & ~(1u << VARIANT_LISTS),
               "squares in a list");
    assert_int_equal(fake_device_launches(KERNEL_TOTAL), 2);
    assert_int_equal(fake_device_launches(KERNEL_QUANTIZE_TILES), 0);
    tape_free(tape);
}

static void test_what_does_not_fit_is_left(void **state)
{
    static const struct matrices others[] = {
        {1, 130, 36, {22, 128}, MAP_NEG, true, true, false, false, false},    /* three limbs */
        {1, 130, 36, {14, 32}, MAP_NEG, true, true, false, false, false},     /* short blocks */
        {1, 300, 260, {14, 256}, MAP_NEG, true, true, false, false, false},   /* long ones */
        {1, 300, 260, {14, 0}, MAP_NEG, true, true, false, false, false},     /* whole rows */
        {1, 130, 36, {14, 128}, MAP_GELU, true, false, true, false, true},    /* others read it */
        {1, 130, 36, {14, 128}, MAP_GELU, false, false, false, false, false}, /* columns alone */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        fake_device_set(&sound);
        hold(&others[i], SORT_PLAIN, fused_disabled_but(VARIANT_TILES), "what does not fit");
        assert_int_equal(fake_device_launches(KERNEL_QUANTIZE_TILES), 0);
    }
}

/* ---- logits ------------------------------------------------------------------------- */

/* Logits are a product, whose weights' gradient wants the columns of theirs. */
static struct tape *logits_tape(uint64_t rows, uint64_t columns, bool read)
{
    const uint64_t x_dims[2] = {rows, 3};
    const uint64_t weight_dims[2] = {columns, 3};
    struct builder *builder = builder_new((struct precision){14, 128});
    uint32_t of[3] = {build_tensor(builder, "x", DTYPE_F32, ROLE_INPUT, 2, x_dims),
                      build_tensor(builder, "w", DTYPE_F32, ROLE_INPUT, 2, weight_dims), 0};
    const uint32_t target = build_tensor(builder, "target", DTYPE_U32, ROLE_INPUT, 1, &rows);
    const uint32_t logits = build_linear(builder, of[0], of[1]);
    const uint32_t loss = build_cross_entropy(builder, logits, target);
    uint32_t gradients[3];

    of[2] = logits;
    build_loss(builder, loss);
    build_gradients(builder, gradients, loss, of, read ? 3 : 2);
    build_output(builder, "dx", gradients[0]);
    build_output(builder, "dw", gradients[1]);
    if (read) {
        build_output(builder, "dlogits", gradients[2]);
    }
    return fused_finish(builder);
}

/* Few targets are none of six columns; exponentials of a column are of all sizes. */
static void test_gradients_of_logits_are_made_again(void **state)
{
    static const uint64_t shapes[][2] = {{300, 6}, {140, 133}, {300, 6}};
    int turns[2] = {0, 0};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const bool read = i == 2;
        struct tape *tape = logits_tape(shapes[i][0], shapes[i][1], read);

        for (int sort = 0; sort < SORTS; sort++) {
            struct machine *rules = fused_rules(tape);
            struct machine *fused;
            uint32_t entropy = 0;
            struct error error;

            if (test_share(1, 0) == 0 && sort != SORT_PLAIN && sort != SORT_NASTY) {
                rules->backend->close(rules);
                continue;
            }
            error_init(&error);
            fake_device_set(&sound);
            fused = fused_open(tape, fused_disabled_but(VARIANT_TILES) & ~(1u << VARIANT_ENTROPY));
            fused_give(rules, tape, (enum sort)sort);
            fused_give(fused, tape, (enum sort)sort);
            assert_int_equal(rules->backend->step(rules, NULL, &error), STATUS_OK);
            assert_int_equal(fused->backend->step(fused, NULL, &error), STATUS_OK);
            fused_compare(rules, fused, "logits");
            while (tape->ops[entropy].kind != OP_CROSS_ENTROPY_GRAD) {
                entropy++;
            }
            /* The gradient is in memory only where somebody reads it. */
            assert_int_equal(fake_device_launches(KERNEL_ENTROPY), 1);
            /* Where there is room, both views of x and of the weights have one read, too. */
            const bool roomy = ((struct machine_cuda *)fused)->fusion.facts.roomy;

            turns[roomy]++;
            assert_int_equal(fake_device_launches(KERNEL_QUANTIZE_TILES),
                             (read ? 0 : 1) + (roomy ? 2 : 0));
            assert_true((((struct machine_cuda *)fused)->memory[tape->ops[entropy].outputs[0]] !=
                         NULL) == read);
            rules->backend->close(rules);
            fused->backend->close(fused);
        }
        tape_free(tape);
    }
    assert_true(turns[false] > 0 && turns[true] > 0);
}

/* ---- norms -------------------------------------------------------------------------- */

struct norms {
    uint64_t rows;
    uint64_t width;
    bool layer;
    bool product; /* rows and columns of the result are quantized; else it is multiplied */
    bool read;    /* by others too */
};

/* A norm, and the gradients of its gain and bias. */
static struct tape *norms_tape(const struct norms *n)
{
    const uint64_t dims[2] = {n->rows, n->width};
    const uint64_t weight_dims[2] = {5, n->width};
    struct builder *builder = builder_new((struct precision){14, 128});
    const uint32_t given = build_tensor(builder, "x", DTYPE_F32, ROLE_INPUT, 2, dims);
    const uint32_t other =
        build_tensor(builder, "other", DTYPE_F32, ROLE_INPUT, 2, n->product ? weight_dims : dims);
    const uint32_t gain = build_tensor(builder, "gain", DTYPE_F32, ROLE_INPUT, 1, &n->width);
    const uint32_t bias = build_tensor(builder, "bias", DTYPE_F32, ROLE_INPUT, 1, &n->width);
    const uint32_t x = build_scale(builder, given, 0.5f);
    const uint32_t y = n->layer ? build_layer_norm(builder, x, gain, bias, 1e-30f)
                                : build_rms_norm(builder, x, gain, 1e-30f);
    const uint32_t of[4] = {given, gain, other, bias};
    static const char *const names[4] = {"dx", "dgain", "dother", "dbias"};
    const uint32_t count = n->layer ? 4 : 3;
    uint32_t gradients[4];
    uint32_t z = n->product ? build_linear(builder, y, other) : build_mul(builder, y, other, 1);

    if (n->product) {
        z = build_mul(builder, z, z, 1);
    }
    const uint32_t loss = build_mean(builder, z);

    build_loss(builder, loss);
    build_gradients(builder, gradients, loss, of, count);
    for (uint32_t i = 0; i < count; i++) {
        build_output(builder, names[i], gradients[i]);
    }
    if (n->read) {
        build_output(builder, "read", build_scale(builder, y, 2.0f));
    }
    return fused_finish(builder);
}

/*
 * Numbers as in give_pieces(), each beside its negative, so that the mean of a row is 0 and what a
 * norm makes of its pieces is as far apart.
 */
static void give_pairs(struct machine *machine, const struct tape *tape, const char *name,
                       const struct norms *n)
{
    float *x = malloc(n->rows * n->width * sizeof(*x));
    uint64_t random = 7;
    struct error error;
    uint32_t id = 0;

    error_init(&error);
    assert_non_null(x);
    while (strcmp(tape->tensors[id].name, name) != 0) {
        id++;
    }
    for (uint64_t i = 0; i < n->rows * n->width; i++) {
        const uint64_t piece = i % n->width / 128 + i / n->width / 128;
        const float number = 1.0f + (float)test_random_below(&random, 4000);

        x[i] = i % 2 != 0       ? -x[i - 1]
               : piece % 3 == 2 ? 0.0f
                                : ldexpf(number, piece % 3 == 0 ? -11 : -51);
    }
    assert_int_equal(machine->backend->write(machine, id, x, &error), STATUS_OK);
    free(x);
}

static uint32_t first_of(const struct tape *tape, enum op_kind kind)
{
    uint32_t at = 0;

    while (tape->ops[at].kind != kind) {
        at++;
    }
    return at;
}

/* Operations that make one thing of a norm's numbers, and so many inputs. */
static uint32_t count_tiles(const struct machine_cuda *cuda, enum tiles_code code, uint32_t inputs)
{
    uint32_t count = 0;

    for (uint32_t at = 0; at < cuda->tape.op_count; at++) {
        const struct op *op = &cuda->tape.ops[at];

        count += cuda->fusion.patterns[at] == &pattern_tiles && op->input_count == inputs &&
                 op->attributes[TILES_FUNCTION] == code;
    }
    return count;
}

/* The result is in memory for others alone, and what a gain's gradient sums never is. */
static void hold_unwritten(const struct machine *fused, const struct norms *n, bool held)
{
    const struct machine_cuda *cuda = (const struct machine_cuda *)fused;
    const struct tape *tape = fused->tape;
    const uint32_t norm = first_of(tape, n->layer ? OP_LAYER_NORM : OP_RMS_NORM);
    const struct op *gradient =
        &tape->ops[first_of(tape, n->layer ? OP_LAYER_NORM_GRAD : OP_RMS_NORM_GRAD)];

    assert_true((cuda->fusion.patterns[norm] == &pattern_unwritten) ==
                (n->product && held && !n->read));
    assert_true((cuda->memory[gradient->outputs[n->layer ? 5 : 3]] == NULL) == n->layer);
    /* The columns and both slopes together, or the slopes alone. */
    assert_int_equal(count_tiles(cuda, TILES_LAYER_NORM, 6),
                     n->layer && n->product && held && !n->read);
    assert_int_equal(count_tiles(cuda, TILES_SLOPES, 4),
                     n->layer && !(n->product && held && !n->read));
    assert_int_equal(count_tiles(cuda, TILES_RMS_NORM, 3), !n->layer && n->product && held);
}

static void test_norms_are_made_again(void **state)
{
    static const struct norms shapes[] = {{300, 140, true, true, false},
                                          {300, 140, true, false, false},
                                          {260, 132, false, true, false},
                                          {300, 264, false, false, false},
                                          {20, 36, true, true, true}};
    static const uint32_t with[] = {0, 1u << VARIANT_HELD,
                                    1u << VARIANT_HELD | 1u << VARIANT_EPILOGUE};

    (void)state;
    for (size_t i = 0; i < 3 * sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct norms *n = &shapes[i / 3];
        struct tape *tape = norms_tape(n);

        for (int sort = 0; sort <= RAISED; sort++) {
            struct machine *both[2];
            struct error error;
            char what[64];

            if (test_share(1, 0) == 0 && sort != RAISED && sort != (int)(i % SORTS)) {
                continue;
            }
            error_init(&error);
            both[0] = fused_rules(tape);
            both[1] = fused_open(tape, fused_disabled_but(VARIANT_TILES) & ~with[i % 3]);
            for (int m = 0; m < 2; m++) {
                fused_give(both[m], tape, sort == RAISED ? SORT_PLAIN : (enum sort)sort);
                if (sort == RAISED) {
                    give_pairs(both[m], tape, "x", n);
                }
                if (sort == RAISED && !n->product) {
                    give_pairs(both[m], tape, "other", n);
                }
                for (int step = 0; step < 2; step++) {
                    assert_int_equal(both[m]->backend->step(both[m], NULL, &error), STATUS_OK);
                }
            }
            (void)snprintf(what, sizeof(what), "norm %zu, variants %zu, numbers of sort %d", i / 3,
                           i % 3, sort);
            fused_compare(both[0], both[1], what);
            hold_unwritten(both[1], n, i % 3 > 0);
            both[0]->backend->close(both[0]);
            both[1]->backend->close(both[1]);
        }
        tape_free(tape);
    }
}

/* ---- models ------------------------------------------------------------------------- */

/* Alone, and with everything else: heads, GELU behind a product, gradients of biases. */
static void test_models_have_the_bits_of_the_rules(void **state)
{
    static const uint32_t kinds[] = {MODEL_GPT2, MODEL_LLAMA, MODEL_MLP};

    (void)state;
    for (size_t i = 0; i < 2 * sizeof(kinds) / sizeof(kinds[0]); i++) {
        const bool alone = i % 2 == 0;
        struct model_options options;
        struct small_model small;
        struct start start;
        struct machine *rules;
        struct machine *fused;

        fake_device_set(&sound);
        small_model_options(&options, (enum model_kind)kinds[i / 2]);
        options.precision = (struct precision){14, 128};
        small_model_open(&small, &options);
        start_model(&start, &small);
        rules = fused_rules(start.tape);
        fused = fused_open(start.tape, alone ? fused_disabled_but(VARIANT_TILES) : 0);
        start_steps(rules, &start, 2);
        start_steps(fused, &start, 2);
        start_compare(rules, fused, alone ? "tiles alone" : "tiles and all others");
        assert_true(fake_device_launches(KERNEL_QUANTIZE_TILES) > 0);
        rules->backend->close(rules);
        fused->backend->close(fused);
        start_release(&start);
        small_model_close(&small);
    }
}

/* A step may be cut wherever it likes. */
static void test_parts_may_end_anywhere(void **state)
{
    const struct matrices *m = &cases[3];
    struct tape *tape = matrices_tape(m);
    struct machine *rules = fused_rules(tape);
    struct error error;

    (void)state;
    error_init(&error);
    fake_device_set(&sound);
    fused_give(rules, tape, SORT_PLAIN);
    assert_int_equal(rules->backend->step(rules, NULL, &error), STATUS_OK);
    for (uint32_t cut = 1; cut < tape->op_count; cut++) {
        struct machine *fused = fused_open(tape, fused_disabled_but(VARIANT_TILES));

        fused_give(fused, tape, SORT_PLAIN);
        assert_int_equal(fused->backend->run(fused, 0, cut, NULL, &error), STATUS_OK);
        assert_int_equal(fused->backend->run(fused, cut, tape->op_count, NULL, &error), STATUS_OK);
        fused_compare(rules, fused, "cut");
        fused->backend->close(fused);
    }
    rules->backend->close(rules);
    tape_free(tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_views_have_the_bits_of_the_rules),
        cmocka_unit_test(test_functions_are_made_on_the_way),
        cmocka_unit_test(test_functions_that_others_read_stay),
        cmocka_unit_test(test_what_a_list_has_taken_is_left),
        cmocka_unit_test(test_what_does_not_fit_is_left),
        cmocka_unit_test(test_gradients_of_logits_are_made_again),
        cmocka_unit_test(test_norms_are_made_again),
        cmocka_unit_test(test_models_have_the_bits_of_the_rules),
        cmocka_unit_test(test_parts_may_end_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
