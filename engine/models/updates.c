/*
 * updates.c - the next values of the parameters, from their gradients: AdamW, SGD with momentum,
 * Lion and Muon, with a rate and a decay for each tensor.
 *
 * AdamW and SGD are kinds. The others are written in general kinds:
 *
 *     Lion   u = sign(beta1 m + (1 - beta1) g) + decay p;  m' = beta2 m + (1 - beta2) g
 *     Muon   m' = momentum m + g;  u = size * orthogonal(g + momentum m') + decay p
 *            size = 0.2 * sqrt(the longer side), so that a rate of AdamW fits: Liu et al., 2025
 *     p' = p - rate u
 *
 * g is the gradient after clipping. Muon is for matrices between layers; the embedding, the head
 * and vectors take AdamW's step at the same rate.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "engine/models/layouts.h"
#include "engine/models/model_writer.h"
#include "engine/tape/builder_core.h"

/* Five steps of x' = a x + (b s + c s^2) x, with s = x x^T, bring all singular values near 1. */
#define MUON_STEPS   5
#define MUON_A       3.4445f
#define MUON_B       (-4.7750f)
#define MUON_C       2.0315f
#define MUON_EPSILON 1e-7f
#define MUON_SIZE    0.2

/* With 14 bits the update would be a percent from what it is. */
#define MUON_PRECISION ((struct precision){22, 0})

#define FACTORS_MAX (2 * (RECIPE_RULES_MAX + 2))

/* The update while it is written. */
struct updating {
    struct model_writer *writer;
    struct builder *builder;
    const struct model_options *options;
    uint32_t rate; /* of the schedule */
    uint32_t correct1;
    uint32_t correct2;
    uint32_t clip; /* the factor that scales all gradients */
    double peak;   /* the highest rate of the schedule */
    uint32_t factor_count;
    struct scaled_rate {
        float factor;
        uint32_t rate;
    } factors[FACTORS_MAX];
};

/* One parameter: what its step takes. */
struct updated {
    uint32_t parameter;
    uint32_t gradient;
    uint32_t rate;
    float decay;
};

/* ---- what all share --------------------------------------------------------- */

/* The square of the norm of all gradients together. */
static uint32_t write_gradient_square(struct model_writer *writer, const uint32_t *gradients)
{
    struct builder *builder = writer->builder;
    uint32_t total = TENSOR_NONE;

    for (uint32_t i = 0; i < writer->model->parameter_count; i++) {
        uint32_t square = build_square_sum(builder, gradients[i]);

        total = total == TENSOR_NONE ? square : build_add(builder, total, square, 1);
    }
    return total;
}

/* The norm of each step's gradient, before it is clipped: a state with a number for each step. */
static void write_gradient_norm(struct model_writer *writer, uint32_t square)
{
    struct builder *builder = writer->builder;
    const struct tensor like = {
        .rank = 1, .dims = {writer->options->steps}, .count = writer->options->steps};
    const uint32_t step = build_step(builder);
    uint32_t inputs[2] = {step, build_map(builder, MAP_SQRT, square)};
    struct op op = op_begin(OP_GATHER_ELEMENTS_GRAD, 2, inputs);
    struct output_shape shape = shape_vector(DTYPE_F32, like.count);
    uint32_t norms = write_zeros(writer, GRADIENT_NORMS, &like);

    op_attribute(&op, 1);
    op_attribute(&op, like.count);
    op.output_count = 1;
    build_op(builder, &op, &shape);
    build_after(builder, norms, build_add(builder, norms, op.outputs[0], 1));
}

/* The factor that scales all gradients: from clipping, or one. */
static uint32_t write_gradient_scale(struct model_writer *writer, const uint32_t *gradients)
{
    static const uint64_t one = 1;
    const struct model_options *options = writer->options;
    struct builder *builder = writer->builder;
    struct output_shape shape = shape_vector(DTYPE_F32, 1);
    uint32_t total = TENSOR_NONE;

    if (options->clip != 0.0 || options->recipe.gradient_norm) {
        total = write_gradient_square(writer, gradients);
    }
    if (options->recipe.gradient_norm) {
        write_gradient_norm(writer, total);
    }
    if (options->clip == 0.0) {
        return build_fill(builder, 1.0f, 1, &one);
    }
    struct op op = op_begin(OP_CLIP_FACTOR, 1, &total);

    op_attribute_float(&op, (float)options->clip);
    op.output_count = 1;
    build_op(builder, &op, &shape);
    return op.outputs[0];
}

/* A moment of a parameter: a state of the same shape. */
static uint32_t write_moment(struct model_writer *writer, const char *prefix, uint32_t parameter)
{
    const struct tensor like = *builder_tensor(writer->builder, parameter);
    char name[TENSOR_NAME_MAX + 8];

    (void)snprintf(name, sizeof(name), "%s.%s", prefix, like.name);
    return write_zeros(writer, name, &like);
}

/* The gradient after clipping. */
static uint32_t clipped_gradient(const struct updating *updating, uint32_t gradient)
{
    return updating->options->clip == 0.0
               ? gradient
               : build_mul(updating->builder, gradient, updating->clip, 1);
}

/* p' = p - rate * (u + decay p) */
static void write_step(const struct updating *updating, const struct updated *updated, uint32_t u)
{
    struct builder *builder = updating->builder;
    uint32_t p = updated->parameter;

    if (updated->decay != 0.0f) {
        u = build_add(builder, u, build_scale(builder, p, updated->decay), 1);
    }
    u = build_mul(builder, u, updated->rate, 1);
    build_after(builder, p, build_binary(builder, BINARY_SUB, p, u));
}

/* ---- the optimizers --------------------------------------------------------- */

static void write_adamw(const struct updating *updating, const struct updated *updated)
{
    const struct model_options *options = updating->options;
    struct builder *builder = updating->builder;
    uint32_t m = write_moment(updating->writer, "m", updated->parameter);
    uint32_t v = write_moment(updating->writer, "v", updated->parameter);
    uint32_t inputs[8] = {
        updated->parameter, updated->gradient, m, v, updated->rate, updating->correct1,
        updating->correct2, updating->clip};
    struct op op = op_begin(OP_ADAMW, 8, inputs);
    struct output_shape shape = shape_like(builder, updated->parameter);
    struct output_shape shapes[3] = {shape, shape, shape};

    op_attribute_float(&op, (float)options->beta1);
    op_attribute_float(&op, (float)(1.0 - options->beta1));
    op_attribute_float(&op, (float)options->beta2);
    op_attribute_float(&op, (float)(1.0 - options->beta2));
    op_attribute_float(&op, (float)options->epsilon);
    op_attribute_float(&op, updated->decay);
    op.output_count = 3;
    build_op(builder, &op, shapes);
    build_after(builder, updated->parameter, op.outputs[0]);
    build_after(builder, m, op.outputs[1]);
    build_after(builder, v, op.outputs[2]);
}

static void write_sgd(const struct updating *updating, const struct updated *updated)
{
    struct builder *builder = updating->builder;
    uint32_t v = write_moment(updating->writer, "v", updated->parameter);
    uint32_t inputs[5] = {updated->parameter, updated->gradient, v, updated->rate, updating->clip};
    struct op op = op_begin(OP_SGD, 5, inputs);
    struct output_shape shape = shape_like(builder, updated->parameter);
    struct output_shape shapes[2] = {shape, shape};

    op_attribute_float(&op, (float)updating->options->momentum);
    op_attribute_float(&op, updated->decay);
    op.output_count = 2;
    build_op(builder, &op, shapes);
    build_after(builder, updated->parameter, op.outputs[0]);
    build_after(builder, v, op.outputs[1]);
}

/* a x + b y */
static uint32_t weighed_sum(struct builder *builder, uint32_t x, double a, uint32_t y, double b)
{
    x = build_scale(builder, x, (float)a);
    return build_add(builder, x, build_scale(builder, y, (float)b), 1);
}

static void write_lion(const struct updating *updating, const struct updated *updated)
{
    const struct model_options *options = updating->options;
    struct builder *builder = updating->builder;
    uint32_t m = write_moment(updating->writer, "m", updated->parameter);
    uint32_t g = clipped_gradient(updating, updated->gradient);
    uint32_t mixed = weighed_sum(builder, m, options->beta1, g, 1.0 - options->beta1);

    write_step(updating, updated, build_map(builder, MAP_SIGN, mixed));
    build_after(builder, m, weighed_sum(builder, m, options->beta2, g, 1.0 - options->beta2));
}

/* One step of the iteration. The symmetric product is the one of the shorter sides. */
static uint32_t muon_iterate(struct builder *builder, uint32_t x)
{
    const struct tensor shape = *builder_tensor(builder, x);
    const uint64_t rows = shape.dims[0];
    const uint64_t columns = shape.dims[1];
    const bool tall = rows > columns;
    const uint64_t side = tall ? columns : rows;
    const struct view view = tall ? view_transposed(side, rows) : view_matrix(side, columns);
    const uint64_t strides[6] = {0, 0, 0, side, 0, 1};
    const uint64_t dims[2] = {side, side};
    uint32_t s = build_contract(builder, x, &view, x, &view, strides, 0, 2, dims);
    uint32_t square = build_linear(builder, s, s); /* it is its own transpose */

    s = weighed_sum(builder, s, (double)MUON_B, square, (double)MUON_C);
    s = tall ? build_linear(builder, x, s) : build_linear_transposed(builder, s, x);
    return build_add(builder, build_scale(builder, x, MUON_A), s, 1);
}

/* x with singular values near 1. */
static uint32_t muon_orthogonal(struct builder *builder, uint32_t x)
{
    static const uint64_t one = 1;
    const struct precision precision = builder->precision;
    struct product_choice (*const choose)(void *, uint32_t) = builder->choose;

    builder->precision = MUON_PRECISION;
    builder->choose = NULL; /* no calibration has seen these products */

    uint32_t norm = build_map(builder, MAP_SQRT, build_square_sum(builder, x));

    norm = build_add(builder, norm, build_fill(builder, MUON_EPSILON, 1, &one), 1);
    x = build_binary(builder, BINARY_DIV, x, norm);
    for (int i = 0; i < MUON_STEPS && !builder_failed(builder); i++) {
        x = muon_iterate(builder, x);
    }
    builder->precision = precision;
    builder->choose = choose;
    return x;
}

static void write_muon(const struct updating *updating, const struct updated *updated)
{
    const double momentum = updating->options->momentum;
    struct builder *builder = updating->builder;
    const struct tensor shape = *builder_tensor(builder, updated->parameter);
    const uint64_t longer = shape.dims[0] > shape.dims[1] ? shape.dims[0] : shape.dims[1];
    uint32_t m = write_moment(updating->writer, "m", updated->parameter);
    uint32_t g = clipped_gradient(updating, updated->gradient);
    uint32_t next = build_add(builder, build_scale(builder, m, (float)momentum), g, 1);
    uint32_t u = build_add(builder, g, build_scale(builder, next, (float)momentum), 1);

    if (builder_failed(builder)) {
        return;
    }
    build_after(builder, m, next);
    u = muon_orthogonal(builder, u);
    write_step(updating, updated,
               build_scale(builder, u, (float)(MUON_SIZE * sqrt((double)longer))));
}

/* ---- rates and decay of single tensors ---------------------------------------- */

/* The rate of the schedule so many times. */
static uint32_t rate_times(struct updating *updating, double factor)
{
    struct scaled_rate *known = updating->factors;
    uint32_t i = 0;

    while (i < updating->factor_count && known[i].factor != (float)factor) {
        i++;
    }
    if (factor == 1.0 || i == FACTORS_MAX) {
        return factor == 1.0 ? updating->rate
                             : build_scale(updating->builder, updating->rate, (float)factor);
    }
    if (i == updating->factor_count) {
        known[i].factor = (float)factor;
        known[i].rate = build_scale(updating->builder, updating->rate, (float)factor);
        updating->factor_count++;
    }
    return known[i].rate;
}

static struct updated updated_of(struct updating *updating, uint32_t parameter, uint32_t gradient)
{
    const struct recipe *recipe = &updating->options->recipe;
    const struct tensor *tensor = builder_tensor(updating->builder, parameter);
    double decay = tensor->rank > 1 ? updating->options->decay : 0.0;
    double factor = 1.0;
    double rate;

    if (recipe_rule_of(&rate, &recipe->rates, tensor->name)) {
        factor = updating->peak > 0.0 ? rate / updating->peak : 1.0;
    } else if (recipe->plus != 0.0 && text_ends_with(tensor->name, LORA_B)) {
        factor = recipe->plus;
    }
    (void)recipe_rule_of(&decay, &recipe->decays, tensor->name);
    return (struct updated){parameter, gradient, rate_times(updating, factor), (float)decay};
}

/* A rule for nothing is a mistake: a job cannot be changed later. */
static void check_rules(const struct updating *updating, const struct recipe_rules *rules)
{
    const struct model *model = updating->writer->model;

    for (uint32_t i = 0; i < rules->count; i++) {
        bool fits = false;

        for (uint32_t j = 0; j < model->parameter_count && !fits; j++) {
            fits = recipe_fits(rules->rules[i].pattern,
                               builder_tensor(updating->builder, model->parameters[j])->name);
        }
        if (!fits) {
            builder_fail(updating->builder, STATUS_USAGE,
                         "no tensor that is trained has a name like '%s'", rules->rules[i].pattern);
            return;
        }
    }
}

/* ---- the whole ------------------------------------------------------------------ */

static bool is_of_layout(const char *part, const char *name)
{
    const size_t length = part == NULL ? 0 : strlen(part);

    return length != 0 && strncmp(name, part, length) == 0 && name[length] == '.';
}

/* Is it a matrix between layers, and not a table of tokens? */
static bool is_muon(const struct updating *updating, uint32_t parameter)
{
    const struct model_options *options = updating->options;
    const struct layout *layout =
        options->layout != NULL ? options->layout : layout_find(model_kind_name(options->kind));
    const struct tensor *tensor = builder_tensor(updating->builder, parameter);

    return options->optimizer == OPTIMIZER_MUON && tensor->rank == 2 && layout != NULL &&
           !is_of_layout(layout->embedding, tensor->name) &&
           !is_of_layout(layout->positions, tensor->name) &&
           !is_of_layout(layout->head, tensor->name);
}

static void write_update(const struct updating *updating, const struct updated *updated)
{
    switch (updating->options->optimizer) {
    case OPTIMIZER_SGD:
        write_sgd(updating, updated);
        return;
    case OPTIMIZER_LION:
        write_lion(updating, updated);
        return;
    case OPTIMIZER_MUON:
        if (is_muon(updating, updated->parameter)) {
            write_muon(updating, updated);
            return;
        }
        break;
    case OPTIMIZER_ADAMW:
    case OPTIMIZER_COUNT:
        break;
    }
    write_adamw(updating, updated);
}

/* The highest rate: of a list, what stands highest in it. */
static double highest_rate(const struct model_options *options)
{
    double most = 0.0;

    if (options->schedule != SCHEDULE_LISTED) {
        return options->rate;
    }
    for (uint32_t step = 0; step < options->steps; step++) {
        most = (double)options->recipe.listed[step] > most ? (double)options->recipe.listed[step]
                                                           : most;
    }
    return most;
}

void write_updates(struct model_writer *writer, const uint32_t *gradients)
{
    const struct model_options *options = writer->options;
    const struct model *model = writer->model;
    struct updating updating = {.writer = writer,
                                .builder = writer->builder,
                                .options = options,
                                .peak = highest_rate(options)};
    uint32_t columns = schedule_columns(options->optimizer);
    uint32_t table = write_constant(writer, "schedule", DTYPE_F32, options->steps, columns,
                                    schedule_table(options));

    updating.rate = build_schedule(writer->builder, table, columns, 0);
    if (columns == 3) {
        updating.correct1 = build_schedule(writer->builder, table, columns, 1);
        updating.correct2 = build_schedule(writer->builder, table, columns, 2);
    }
    updating.clip = write_gradient_scale(writer, gradients);
    check_rules(&updating, &options->recipe.rates);
    check_rules(&updating, &options->recipe.decays);
    for (uint32_t i = 0; i < model->parameter_count && !builder_failed(writer->builder); i++) {
        struct updated updated = updated_of(&updating, model->parameters[i], gradients[i]);

        write_update(&updating, &updated);
    }
}
