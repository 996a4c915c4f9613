/*
 * general_test.c - random operations of the general kinds with their results and gradients, for
 * PyTorch to compute again.
 *
 * "general_test dump" prints a line of JSON for each: the kind, its attributes, the inputs, the
 * weights of the loss (the mean of result times weight), the result and the gradients, as the
 * CPU's fastest kernels make them at 22 bits. torch_general_test.sh gives them to torch_general.py.
 * Without arguments it checks that every operation can be dumped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/plan/backend.h"
#include "engine/tape/builder_core.h"
#include "tests/support/numeric/random_op.h"
#include "tests/support/test.h"

enum { SEEDS = 90 }; /* of each kind: each function several times */

struct dumped {
    struct tape *tape;
    uint32_t inputs[OP_INPUTS_MAX];
    uint32_t gradients[OP_INPUTS_MAX]; /* TENSOR_NONE: of a condition, of an exponent */
    uint32_t weights;
};

static uint32_t given(struct builder *builder, const char *name, uint32_t number, enum dtype dtype,
                      enum role role, uint64_t count)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%s%u", name, number);
    return build_tensor(builder, text, dtype, role, 1, &count);
}

static bool has_gradient(const struct op *op, uint32_t input)
{
    bool power = op->kind == OP_BINARY && op->attributes[BINARY_FUNCTION] == BINARY_POW;
    bool slope = (op->kind == OP_MAP && op->attributes[MAP_FUNCTION] == MAP_GELU_ERF_SLOPE) ||
                 (op->kind == OP_BINARY && op->attributes[BINARY_FUNCTION] >= BINARY_RELU_GRAD &&
                  op->attributes[BINARY_FUNCTION] != BINARY_SQUARED_ERROR);

    return !(op->kind == OP_SELECT && input == 0) && !(power && input == 1) && !slope;
}

/* The operation of a random tape, with a loss and gradients behind it. */
static void write_tape(struct dumped *dumped, const struct tape *random)
{
    const struct op *op = &random->ops[0];
    struct builder *builder = builder_new((struct precision){22, 0});
    uint64_t count = random->tensors[op->outputs[0]].count;
    struct output_shape shape = shape_vector(DTYPE_F32, count);
    uint32_t wanted[OP_INPUTS_MAX];
    uint32_t gradients[OP_INPUTS_MAX];
    uint32_t wanted_count = 0;
    struct error error;

    assert_non_null(builder);
    error_init(&error);
    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct tensor *like = &random->tensors[op->inputs[i]];

        dumped->inputs[i] = given(builder, "x", i, like->dtype,
                                  has_gradient(op, i) ? ROLE_STATE : ROLE_CONSTANT, like->count);
        if (has_gradient(op, i)) {
            wanted[wanted_count++] = dumped->inputs[i];
        }
    }
    dumped->weights = given(builder, "w", 0, DTYPE_F32, ROLE_CONSTANT, count);
    struct op made = op_begin(op->kind, op->input_count, dumped->inputs);

    for (uint32_t i = 0; i < op->attribute_count; i++) {
        op_attribute(&made, (uint64_t)op->attributes[i]);
    }
    made.output_count = 1;
    build_op(builder, &made, &shape);
    build_output(builder, "y", made.outputs[0]);
    uint32_t loss = build_mean(builder, build_mul(builder, made.outputs[0], dumped->weights, 1));

    build_output(builder, "loss", loss);
    build_loss(builder, loss);
    build_gradients(builder, gradients, loss, wanted, wanted_count);
    for (uint32_t i = 0, at = 0; i < op->input_count; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "gradient%u", i);
        dumped->gradients[i] = has_gradient(op, i) ? gradients[at++] : TENSOR_NONE;
        if (dumped->gradients[i] != TENSOR_NONE) {
            build_output(builder, name, dumped->gradients[i]);
        }
    }
    if (builder_finish(&dumped->tape, builder, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    builder_free(builder);
}

/* Ordinary numbers; above zero where the function wants it. */
static void fill(struct machine *machine, const struct tape *tape, uint32_t id, bool above,
                 uint64_t *seed)
{
    const struct tensor *tensor = &tape->tensors[id];
    uint8_t *bytes = calloc(tensor->count, dtype_size(tensor->dtype));
    struct error error;

    assert_non_null(bytes);
    error_init(&error);
    for (uint64_t i = 0; i < tensor->count; i++) {
        float x = (float)((double)test_random_below(seed, 4000001) * 1e-6 - 2.0);

        if (tensor->dtype != DTYPE_F32) {
            bytes[i * dtype_size(tensor->dtype)] = (uint8_t)test_random_below(seed, 2);
        } else {
            x = above ? (x < 0.0f ? -x : x) + 0.125f : x;
            memcpy(bytes + 4 * i, &x, 4);
        }
    }
    assert_int_equal(backend_cpu.write(machine, id, bytes, &error), STATUS_OK);
    free(bytes);
}

static bool wants_above(const struct op *op, uint32_t input)
{
    int64_t function = op->attributes[0];

    if (op->kind == OP_MAP) {
        return function == MAP_SQRT || function == MAP_RSQRT || function == MAP_LOG ||
               function == MAP_RECIPROCAL;
    }
    return op->kind == OP_BINARY &&
           ((function == BINARY_POW && input == 0) || (function == BINARY_DIV && input == 1));
}

static void print_numbers(FILE *file, const char *name, struct machine *machine,
                          const struct tape *tape, uint32_t id)
{
    const struct tensor *tensor = &tape->tensors[id];
    const uint8_t *bytes = backend_cpu.peek(machine, id);

    (void)fprintf(file, ", \"%s\": [", name);
    for (uint64_t i = 0; i < tensor->count; i++) {
        float x = bytes[i * dtype_size(tensor->dtype)];

        if (tensor->dtype == DTYPE_F32) {
            memcpy(&x, bytes + 4 * i, 4);
        }
        (void)fprintf(file, "%s%.9g", i == 0 ? "" : ", ", (double)x);
    }
    (void)fprintf(file, "]");
}

static void dump_one(FILE *file, enum op_kind kind, uint64_t seed)
{
    struct tape *random = random_op_tape(kind, seed);
    const struct op *op = &random->ops[0];
    struct machine_options options = {.isa = isa_best(), .thread_count = 1};
    struct dumped dumped = {0};
    struct machine *machine;
    struct error error;

    error_init(&error);
    if (random->tensors[op->outputs[0]].dtype != DTYPE_F32) {
        tape_free(random);
        return;
    }
    write_tape(&dumped, random);
    assert_int_equal(backend_cpu.open(&machine, dumped.tape, &options, &error), STATUS_OK);
    for (uint32_t i = 0; i < op->input_count; i++) {
        fill(machine, dumped.tape, dumped.inputs[i], wants_above(op, i), &seed);
    }
    fill(machine, dumped.tape, dumped.weights, true, &seed);
    assert_int_equal(backend_cpu.step(machine, NULL, &error), STATUS_OK);
    (void)fprintf(file, "{\"kind\": \"%s\", \"attributes\": [", op_kind_name(kind));
    for (uint32_t i = 0; i < op->attribute_count; i++) {
        (void)fprintf(file, "%s%lld", i == 0 ? "" : ", ", (long long)op->attributes[i]);
    }
    (void)fprintf(file, "]");
    for (uint32_t i = 0; i < op->input_count; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "x%u", i);
        print_numbers(file, name, machine, dumped.tape, dumped.inputs[i]);
        (void)snprintf(name, sizeof(name), "d%u", i);
        if (dumped.gradients[i] != TENSOR_NONE) {
            print_numbers(file, name, machine, dumped.tape, dumped.gradients[i]);
        }
    }
    print_numbers(file, "w", machine, dumped.tape, dumped.weights);
    for (uint32_t id = 0; id < dumped.tape->tensor_count; id++) {
        if (strcmp(dumped.tape->tensors[id].name, "y") == 0) {
            print_numbers(file, "y", machine, dumped.tape, id);
        }
    }
    (void)fprintf(file, "}\n");
    backend_cpu.close(machine);
    tape_free(dumped.tape);
    tape_free(random);
}

static void dump_all(FILE *file)
{
    for (int kind = OP_MAP; kind <= OP_PLACE; kind++) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            dump_one(file, (enum op_kind)kind, seed);
        }
    }
}

static void test_every_general_operation_can_be_dumped(void **state)
{
    FILE *file = tmpfile();

    (void)state;
    assert_non_null(file);
    dump_all(file);
    assert_true(ftell(file) > 100000);
    (void)fclose(file);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_general_operation_can_be_dumped),
    };

    if (argc == 2 && strcmp(argv[1], "dump") == 0) {
        dump_all(stdout);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
