/* gradient_check.c - see gradient_check.h. */
#include "tests/support/numeric/gradient_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/plan/backend.h"
#include "tests/support/reference/reference.h"
#include "tests/support/test.h"

#define DIFFERENCES   48 /* elements of a parameter that are moved */
#define STEP          1e-5
#define DOUBLE_WITHIN 1e-6

/* ---- writing ------------------------------------------------------------ */

uint32_t net_parameter(struct net *net, uint32_t rank, uint64_t a, uint64_t b, uint64_t c,
                       uint64_t d)
{
    uint64_t dims[4] = {a, b, c, d};
    char name[16];

    (void)snprintf(name, sizeof(name), "p%u", net->parameter_count);
    assert_true(net->parameter_count < NET_TENSORS_MAX);
    return net->parameters[net->parameter_count++] =
               build_tensor(net->builder, name, DTYPE_F32, ROLE_STATE, rank, dims);
}

uint32_t net_vector(struct net *net, uint64_t n)
{
    return net_parameter(net, 1, n, 0, 0, 0);
}

uint32_t net_matrix(struct net *net, uint64_t rows, uint64_t columns)
{
    return net_parameter(net, 2, rows, columns, 0, 0);
}

uint32_t net_cube(struct net *net, uint64_t a, uint64_t b, uint64_t c)
{
    return net_parameter(net, 3, a, b, c, 0);
}

uint32_t net_index(struct net *net, uint64_t count, uint32_t below)
{
    net->index_below = below;
    return net->indexes = build_tensor(net->builder, "index", DTYPE_U32, ROLE_CONSTANT, 1, &count);
}

/* loss = mean(y * weights); a single number is the loss itself. */
static uint32_t write_loss(struct net *net, uint32_t y)
{
    const struct tensor shape = *builder_tensor(net->builder, y);
    uint32_t weights;

    if (shape.count == 1) {
        return y;
    }
    weights =
        build_tensor(net->builder, "weights", DTYPE_F32, ROLE_CONSTANT, shape.rank, shape.dims);
    return build_mean(net->builder, build_mul(net->builder, y, weights, 1));
}

static enum status write_net(struct net *net, write_case *write, struct precision precision,
                             struct error *error)
{
    enum status status;
    uint32_t loss;

    net->indexes = TENSOR_NONE;
    net->builder = builder_new(precision);
    assert_non_null(net->builder);
    loss = write_loss(net, write(net));
    build_output(net->builder, "loss", loss);
    build_loss(net->builder, loss);
    net->forward = net->builder->tape.op_count;
    build_gradients(net->builder, net->gradients, loss, net->parameters, net->parameter_count);
    for (uint32_t i = 0; i < net->parameter_count && !builder_failed(net->builder); i++) {
        char name[32];

        /* Every case uses all of its parameters. */
        assert_int_not_equal(net->gradients[i], TENSOR_NONE);
        assert_int_equal(builder_tensor(net->builder, net->gradients[i])->count,
                         builder_tensor(net->builder, net->parameters[i])->count);
        (void)snprintf(name, sizeof(name), "gradient%u", i);
        build_output(net->builder, name, net->gradients[i]);
    }
    status = builder_finish(&net->tape, net->builder, error);
    builder_free(net->builder);
    return status;
}

/* ---- values ------------------------------------------------------------- */

/* Fills a tensor; the engine and the reference both start from these values. */
static void *first_values(const struct net *net, uint32_t id, uint64_t *random)
{
    const struct tensor *tensor = &net->tape->tensors[id];
    void *bytes = calloc(tensor->count, dtype_size(tensor->dtype));

    assert_non_null(bytes);
    for (uint64_t i = 0; i < tensor->count; i++) {
        if (tensor->dtype == DTYPE_U32) {
            ((uint32_t *)bytes)[i] =
                id == net->indexes ? (uint32_t)test_random_below(random, net->index_below) : 3;
            if (id == net->indexes && net->ignores && i % 3 == 1) {
                ((uint32_t *)bytes)[i] = TARGET_IGNORED;
            }
        } else if (net->spread > 0.0 && tensor->role == ROLE_STATE) {
            /* Odd multiples of half the spread, each once, in a scattered order. */
            int64_t count = (int64_t)tensor->count;
            int64_t place = (int64_t)i * 37 % count - count / 2;

            ((float *)bytes)[i] = (float)(((double)place + 0.5) * net->spread);
        } else {
            ((float *)bytes)[i] =
                (float)((double)test_random_below(random, 2000001) / 1000000.0 - 1.0);
        }
    }
    return bytes;
}

static bool is_given(enum role role)
{
    return role == ROLE_STATE || role == ROLE_CONSTANT;
}

/* ---- the three ways ----------------------------------------------------- */

static double loss_of(struct reference *reference, const struct net *net)
{
    reference_run(reference, net->forward);
    return reference_values(reference, net->tape->loss)[0];
}

static double largest(const double *values, uint64_t count)
{
    double top = 0.0;

    for (uint64_t i = 0; i < count; i++) {
        top = fmax(top, fabs(values[i]));
    }
    return top;
}

static void compare_differences(struct reference *reference, const struct net *net, uint32_t which)
{
    uint64_t count = net->tape->tensors[net->parameters[which]].count;
    double *x = reference_values(reference, net->parameters[which]);
    const double *gradient = reference_values(reference, net->gradients[which]);
    uint64_t stride = count / DIFFERENCES + 1;

    for (uint64_t i = 0; i < count; i += stride) {
        double before = x[i];
        double above;
        double below;
        double difference;

        x[i] = before + STEP;
        above = loss_of(reference, net);
        x[i] = before - STEP;
        below = loss_of(reference, net);
        x[i] = before;
        difference = (above - below) / (2.0 * STEP);
        if (fabs(difference - gradient[i]) > DOUBLE_WITHIN * (largest(gradient, count) + 1e-4)) {
            fail_msg("parameter %u element %llu: gradient %.12g, differences give %.12g", which,
                     (unsigned long long)i, gradient[i], difference);
        }
    }
}

/* The distance of the engine's values from the reference's, relative to the latter's norm. */
static double distance(const float *values, const double *exact, uint64_t count)
{
    double apart = 0.0;
    double length = 0.0;

    for (uint64_t i = 0; i < count; i++) {
        apart += (values[i] - exact[i]) * (values[i] - exact[i]);
        length += exact[i] * exact[i];
    }
    return length == 0.0 ? sqrt(apart) : sqrt(apart / length);
}

static void compare_engine(const struct reference *reference, const struct net *net, void **values,
                           enum isa isa, double within)
{
    struct machine_options options = {.isa = isa, .thread_count = 2};
    struct machine *machine;
    struct error error;

    error_init(&error);
    if (backend_cpu.open(&machine, net->tape, &options, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    for (uint32_t id = 0; id < net->tape->tensor_count; id++) {
        if (is_given(net->tape->tensors[id].role)) {
            assert_int_equal(backend_cpu.write(machine, id, values[id], &error), STATUS_OK);
        }
    }
    assert_int_equal(backend_cpu.step(machine, NULL, &error), STATUS_OK);
    for (uint32_t i = 0; i < net->parameter_count; i++) {
        uint32_t id = net->gradients[i];
        double apart = distance(backend_cpu.peek(machine, id), reference_values(reference, id),
                                net->tape->tensors[id].count);

        if (!(apart < within * (net->slack > 0.0 ? net->slack : 1.0))) {
            fail_msg("%s: gradient of parameter %u is %.3g away, allowed %.3g", isa_name(isa), i,
                     apart, within);
        }
    }
    backend_cpu.close(machine);
}

/* ---- one case ----------------------------------------------------------- */

struct width {
    struct precision precision;
    double within; /* relative distance that the bits allow, over the few products of a case */
};

static const struct width widths[] = {
    {{14, 128}, 1e-3}, {{14, 16}, 1e-3}, {{16, 0}, 3e-4}, {{22, 0}, 4e-6}};

static void check_width(write_case *write, double spread, const struct width *width)
{
    struct net net = {.spread = spread};
    uint64_t random = 7;
    struct reference *reference;
    struct error error;
    void **values;

    error_init(&error);
    if (write_net(&net, write, width->precision, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    reference = reference_new(net.tape, REFERENCE_DOUBLE);
    values = calloc(net.tape->tensor_count, sizeof(*values));
    assert_non_null(values);
    for (uint32_t id = 0; id < net.tape->tensor_count; id++) {
        if (is_given(net.tape->tensors[id].role)) {
            values[id] = first_values(&net, id, &random);
            reference_write(reference, id, values[id]);
        }
    }
    reference_run(reference, net.tape->op_count);
    for (int isa = ISA_SCALAR; isa < ISA_COUNT; isa++) {
        if (isa_available((enum isa)isa)) {
            compare_engine(reference, &net, values, (enum isa)isa, width->within);
        }
    }
    for (uint32_t i = 0; i < net.parameter_count && width == widths; i++) {
        compare_differences(reference, &net, i);
    }
    for (uint32_t id = 0; id < net.tape->tensor_count; id++) {
        free(values[id]);
    }
    free(values);
    reference_free(reference);
    tape_free(net.tape);
}

void gradient_check_spread(write_case *write, double spread)
{
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        check_width(write, spread, &widths[i]);
    }
}

void gradient_check(write_case *write)
{
    gradient_check_spread(write, 0.0);
}

/* ---- refusals --------------------------------------------------------------- */

void gradient_check_refused(write_case *write, const char *words)
{
    struct net net = {0};
    struct error error;

    error_init(&error);
    assert_int_not_equal(write_net(&net, write, PRECISION_DEFAULT, &error), STATUS_OK);
    if (strstr(error.text, words) == NULL) {
        fail_msg("'%s' does not say '%s'", error.text, words);
    }
}
