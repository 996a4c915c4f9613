/*
 * Goal: the kinds give what the published node tests of ONNX say.
 *
 * Method: "onnx_nodes_test run" reads small tapes with their inputs, one a line, runs each on the
 * fastest kernels and by the rules, and prints what the last operation made; onnx_nodes.py writes
 * a tape for each node test and compares (onnx_nodes_test.sh). Without arguments it runs two lines
 * of its own.
 *
 * A line is numbers: how many tensors; of each its type, its elements and 1 and all bits, or
 * 0; how many operations; of each its kind, its attributes, its inputs and its outputs, each list
 * with its length before it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/spec/op_spec.h"
#include "engine/plan/backend.h"
#include "proofs/commit/element.h"
#include "tests/support/test.h"

enum { LINE_MAX_SIZE = 1 << 22 };

struct line {
    const char *at;
    void **given; /* of each tensor, NULL where an operation makes it */
    struct tape *tape;
};

static int64_t number(struct line *line)
{
    char *end = NULL;
    int64_t value = strtoll(line->at, &end, 10);

    assert_true(end != line->at);
    line->at = end;
    return value;
}

static void read_tensor(struct line *line, uint32_t id)
{
    struct tensor *tensor = &line->tape->tensors[id];
    size_t size;

    (void)snprintf(tensor->name, sizeof(tensor->name), "t%u", id);
    tensor->dtype = (enum dtype)number(line);
    tensor->role = ROLE_TEMPORARY;
    tensor->rank = 1;
    tensor->dims[0] = tensor->count = (uint64_t)number(line);
    assert_true(tensor->dtype < DTYPE_COUNT && tensor->count > 0 && tensor->count < 1000000);
    if (number(line) == 0) {
        return;
    }
    size = dtype_size(tensor->dtype);
    tensor->role = ROLE_INPUT;
    line->given[id] = calloc(tensor->count, size);
    assert_non_null(line->given[id]);
    for (uint64_t i = 0; i < tensor->count; i++) {
        uint32_t bits = (uint32_t)number(line);

        memcpy((char *)line->given[id] + i * size, &bits, size);
    }
}

static uint32_t read_ids(struct line *line, uint32_t *ids, uint32_t most)
{
    uint32_t count = (uint32_t)number(line);

    assert_true(count <= most);
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = (uint32_t)number(line);
        assert_true(ids[i] < line->tape->tensor_count);
    }
    return count;
}

static void read_op(struct line *line, uint32_t at)
{
    struct op *op = &line->tape->ops[at];
    bool last = at + 1 == line->tape->op_count;

    op->kind = (enum op_kind)number(line);
    assert_true(op->kind < OP_KIND_COUNT);
    op->attribute_count = (uint32_t)number(line);
    assert_true(op->attribute_count <= OP_ATTRIBUTES_MAX);
    for (uint32_t i = 0; i < op->attribute_count; i++) {
        op->attributes[i] = number(line);
    }
    op->input_count = read_ids(line, op->inputs, OP_INPUTS_MAX);
    op->output_count = read_ids(line, op->outputs, OP_OUTPUTS_MAX);
    for (uint32_t i = 0; last && i < op->output_count; i++) {
        line->tape->tensors[op->outputs[i]].role = ROLE_OUTPUT;
    }
}

static void read_line(struct line *line)
{
    struct tape *tape = calloc(1, sizeof(*tape));

    assert_non_null(tape);
    line->tape = tape;
    tape->loss = TENSOR_NONE;
    tape->tensor_count = (uint32_t)number(line);
    assert_true(tape->tensor_count < 1000);
    tape->tensors = calloc((size_t)tape->tensor_count + 1, sizeof(*tape->tensors));
    line->given = calloc((size_t)tape->tensor_count + 1, sizeof(*line->given));
    assert_non_null(tape->tensors);
    assert_non_null(line->given);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        read_tensor(line, id);
    }
    tape->op_count = (uint32_t)number(line);
    assert_true(tape->op_count > 0 && tape->op_count < 100);
    tape->ops = calloc(tape->op_count, sizeof(*tape->ops));
    assert_non_null(tape->ops);
    for (uint32_t at = 0; at < tape->op_count; at++) {
        read_op(line, at);
    }
}

static void print_outputs(FILE *file, struct machine *machine, const struct op *op)
{
    for (uint32_t i = 0; i < op->output_count; i++) {
        const struct tensor *tensor = &machine->tape->tensors[op->outputs[i]];
        const uint8_t *bytes = backend_cpu.peek(machine, op->outputs[i]);

        for (uint64_t at = 0; at < tensor->count; at++) {
            (void)fprintf(file, "%" PRIu32 " ",
                          element_bits(bytes + at * dtype_size(tensor->dtype), tensor->dtype));
        }
        (void)fprintf(file, "%s", i + 1 < op->output_count ? ", " : "\n");
    }
}

static struct machine *run_with(const struct line *line, enum isa isa)
{
    struct machine_options options = {.isa = isa, .thread_count = 1};
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    if (tape_check(line->tape, &error) != STATUS_OK ||
        backend_cpu.open(&machine, line->tape, &options, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    for (uint32_t id = 0; id < line->tape->tensor_count; id++) {
        if (line->given[id] != NULL) {
            assert_int_equal(backend_cpu.write(machine, id, line->given[id], &error), STATUS_OK);
        }
    }
    assert_int_equal(backend_cpu.step(machine, NULL, &error), STATUS_OK);
    return machine;
}

/* Runs a line by kernels and rules, which must agree, and prints what came out. */
static void run_line(FILE *file, const char *text)
{
    struct line line = {.at = text};
    struct machine *machines[2];
    const struct op *op;

    read_line(&line);
    op = &line.tape->ops[line.tape->op_count - 1];
    machines[0] = run_with(&line, isa_best());
    machines[1] = run_with(&line, ISA_SCALAR);
    for (uint32_t i = 0; i < op->output_count; i++) {
        assert_memory_equal(backend_cpu.peek(machines[0], op->outputs[i]),
                            backend_cpu.peek(machines[1], op->outputs[i]),
                            tensor_size(&line.tape->tensors[op->outputs[i]]));
    }
    print_outputs(file, machines[0], op);
    for (uint32_t id = 0; id < line.tape->tensor_count; id++) {
        free(line.given[id]);
    }
    free(line.given);
    backend_cpu.close(machines[0]);
    backend_cpu.close(machines[1]);
    tape_free(line.tape);
}

static void test_lines_are_run(void **state)
{
    char line[256];
    char reply[64];
    FILE *file = tmpfile();

    (void)state;
    assert_non_null(file);
    /* relu of 1, -1, and the extreme of a row of two */
    (void)snprintf(line, sizeof(line), "2 0 2 1 1065353216 3212836864 0 2 0 1 %d 2 %d 0 1 0 1 1",
                   OP_MAP, MAP_RELU);
    run_line(file, line);
    rewind(file);
    assert_non_null(fgets(reply, sizeof(reply), file));
    assert_string_equal(reply, "1065353216 0 \n");
    (void)fclose(file);
}

/* Lines of stdin to lines of stdout. */
static void test_lines_of_stdin_are_run(void **state)
{
    char *text = malloc(LINE_MAX_SIZE);

    (void)state;
    assert_non_null(text);
    while (fgets(text, LINE_MAX_SIZE, stdin) != NULL) {
        run_line(*state, text);
    }
    free(text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_are_run),
    };

    if (argc == 2 && strcmp(argv[1], "kinds") == 0) {
        for (int kind = 0; kind < OP_KIND_COUNT; kind++) {
            (void)printf("%s\n", op_kind_name((enum op_kind)kind));
        }
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "run") == 0) {
        const struct CMUnitTest run[] = {
            cmocka_unit_test_prestate(test_lines_of_stdin_are_run, stdout)};

        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(run, NULL, NULL);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
