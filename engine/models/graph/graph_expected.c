/* graph_expected.c - see graph_expected.h. */
#include "engine/models/graph/graph_expected.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the signs of an element are drawn by. */
#define SIGN_MULTIPLIER_0 UINT32_C(0x9e3779b1)
#define SIGN_MULTIPLIER_1 UINT32_C(0x85ebca6b)

void graph_measure_add(struct graph_measure *measure, uint64_t place, double value)
{
    uint32_t signs = (uint32_t)place * SIGN_MULTIPLIER_0;

    signs ^= signs >> 15;
    signs *= SIGN_MULTIPLIER_1;
    signs ^= signs >> 13;
    signs >>= 24;
    measure->square += value * value;
    for (uint32_t i = 0; i < GRAPH_SUMS; i++) {
        measure->sums[i] += (signs >> i & 1) != 0 ? value : -value;
    }
}

struct expectation {
    struct graph_expected *expected;
    uint32_t *tensor_of; /* of each value that is declared, or NO_TENSOR */
    uint32_t declared;
    uint32_t loss; /* the value */
    bool evaluates;
    bool has_loss;
    char place[161];
};

#define NO_TENSOR UINT32_MAX

static enum status declare_value(struct expectation *reader, const struct graph_line *line,
                                 enum graph_word word, struct error *error)
{
    struct graph_expected *expected = reader->expected;
    struct graph_declared declared;

    TRY(graph_declared(&declared, line, error));
    if (reader->declared == GRAPH_NAMES_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "line %u: more than %u names", line->number,
                         GRAPH_NAMES_MAX);
    }
    reader->tensor_of[reader->declared] = NO_TENSOR;
    if (word == GRAPH_PARAM || word == GRAPH_STATE) {
        struct graph_expected_tensor *tensor = &expected->tensors[expected->count];

        *tensor = (struct graph_expected_tensor){.state = word == GRAPH_STATE};
        (void)snprintf(tensor->name, sizeof(tensor->name), "%s", declared.name);
        reader->tensor_of[reader->declared] = expected->count++;
    }
    reader->declared++;
    return STATUS_OK;
}

static void take_place(struct expectation *reader, const struct graph_line *line)
{
    size_t size = 0;

    reader->place[0] = '\0';
    for (uint32_t i = 1; i < line->count && size < sizeof(reader->place) - 1; i++) {
        size += (size_t)snprintf(reader->place + size, sizeof(reader->place) - size, "%s%s",
                                 i == 1 ? "" : " ", line->words[i]);
    }
}

/* Notes where a parameter or a state is read first. Numbers are no operands: they have no sign
 * %. */
static void take_call(struct expectation *reader, const struct graph_line *line)
{
    for (uint32_t i = 1; i < line->count && line->words[i][0] == '%'; i++) {
        uint32_t value;

        if (graph_operand(&value, line, i, reader->declared, NULL) == STATUS_OK &&
            reader->tensor_of[value] != NO_TENSOR) {
            struct graph_expected_tensor *tensor =
                &reader->expected->tensors[reader->tensor_of[value]];

            if (tensor->place[0] == '\0') {
                memcpy(tensor->place, reader->place, sizeof(tensor->place));
            }
        }
    }
}

static enum status take_tensor(struct expectation *reader, const struct graph_line *line,
                               uint32_t value, struct error *error)
{
    struct graph_expected_tensor *tensor;
    double norm;

    if (value >= reader->declared || reader->tensor_of[value] == NO_TENSOR ||
        line->count != 3 + GRAPH_SUMS) {
        return error_set(
            error, STATUS_BAD_FORMAT,
            "line %u: 'expect' takes the loss and a number, or a parameter or a state, "
            "a norm and %d sums",
            line->number, GRAPH_SUMS);
    }
    tensor = &reader->expected->tensors[reader->tensor_of[value]];
    if (tensor->given) {
        return error_set(error, STATUS_BAD_FORMAT, "line %u: '%s' has two lines 'expect'",
                         line->number, tensor->name);
    }
    tensor->given = true;
    TRY(graph_double(&norm, line, 2, error));
    tensor->measure.square = norm * norm;
    for (uint32_t i = 0; i < GRAPH_SUMS; i++) {
        TRY(graph_double(&tensor->measure.sums[i], line, 3 + i, error));
    }
    return STATUS_OK;
}

/* In which precision PyTorch computed what follows. */
static enum status take_precision(struct graph_expected *expected, const struct graph_line *line,
                                  struct error *error)
{
    const bool single = strcmp(line->words[1], dtype_name(DTYPE_F32)) == 0;

    if (expected->given || (!single && strcmp(line->words[1], "f64") != 0)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "line %u: the first 'expect' may say f64 or f32; others take a value and "
                         "numbers",
                         line->number);
    }
    expected->given = true;
    expected->single = single;
    return STATUS_OK;
}

/* What a job of fewer than 22 bits is measured by. */
static enum status take_bfloat16(struct graph_expected *expected, const struct graph_line *line,
                                 struct error *error)
{
    if (expected->bfloat16 != 0.0) {
        return error_set(error, STATUS_BAD_FORMAT, "line %u: two lines 'expect bfloat16'",
                         line->number);
    }
    TRY(graph_double(&expected->bfloat16, line, 2, error));
    return expected->bfloat16 >= 0.0
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "line %u: an error below 0", line->number);
}

static enum status take_expected(struct expectation *reader, const struct graph_line *line,
                                 struct error *error)
{
    uint32_t value;

    if (!line->made && line->rank == 0 && line->count == 2) {
        return take_precision(reader->expected, line, error);
    }

    if (!line->made && line->rank == 0 && line->count == 3 &&
        strcmp(line->words[1], "bfloat16") == 0) {
        return take_bfloat16(reader->expected, line, error);
    }
    if (line->made || line->rank != 0 || line->count < 3) {
        return error_set(error, STATUS_BAD_FORMAT, "line %u: 'expect' takes a value and numbers",
                         line->number);
    }
    reader->expected->given = true;
    TRY(graph_operand(&value, line, 1, UINT32_MAX, error));
    if (reader->has_loss && value == reader->loss && line->count == 3) {
        return graph_double(&reader->expected->loss, line, 2, error);
    }
    return take_tensor(reader, line, value, error);
}

static enum status read_line(struct expectation *reader, const struct graph_line *line,
                             struct error *error)
{
    const enum graph_word word = graph_line_word(line);

    if (graph_word_declares(word)) {
        return declare_value(reader, line, word, error);
    }
    if (word == GRAPH_EVAL) {
        reader->evaluates = true;
    } else if (word == GRAPH_EXPECT) {
        return take_expected(reader, line, error);
    } else if (reader->evaluates) {
        return STATUS_OK;
    } else if (word == GRAPH_AT) {
        take_place(reader, line);
    } else if (word == GRAPH_CALL) {
        take_call(reader, line);
    } else if (word == GRAPH_LOSS && line->count == 2) {
        reader->has_loss = true;
        return graph_operand(&reader->loss, line, 1, UINT32_MAX, error);
    }
    return STATUS_OK;
}

static enum status read_lines(struct expectation *reader, const struct graph *graph,
                              struct error *error)
{
    struct graph_lines lines;
    struct graph_line line;
    bool found;

    TRY(graph_lines_begin(&lines, graph->text, graph->size, error));
    for (;;) {
        TRY(graph_line_next(&line, &found, &lines, error));
        if (!found) {
            break;
        }
        TRY(read_line(reader, &line, error));
    }
    for (uint32_t i = 0; reader->expected->given && i < reader->expected->count; i++) {
        if (!reader->expected->tensors[i].given) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "of '%s' no line 'expect' says what a first step makes",
                             reader->expected->tensors[i].name);
        }
    }
    return STATUS_OK;
}

enum status graph_expected_read(struct graph_expected *expected, const struct graph *graph,
                                struct error *error)
{
    struct expectation reader = {.expected = expected};
    enum status status;

    *expected = (struct graph_expected){0};
    expected->tensors = calloc(GRAPH_NAMES_MAX, sizeof(*expected->tensors));
    reader.tensor_of = calloc(GRAPH_NAMES_MAX, sizeof(*reader.tensor_of));
    status = expected->tensors == NULL || reader.tensor_of == NULL
                 ? error_set(error, STATUS_NO_MEMORY, "no memory for what is expected of a graph")
                 : read_lines(&reader, graph, error);
    free(reader.tensor_of);
    if (status != STATUS_OK) {
        graph_expected_release(expected);
    }
    return status;
}

void graph_expected_release(struct graph_expected *expected)
{
    free(expected->tensors);
    *expected = (struct graph_expected){0};
}
