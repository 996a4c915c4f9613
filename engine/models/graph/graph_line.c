/* graph_line.c - see graph_line.h. */
#include "engine/models/graph/graph_line.h"

#include <math.h>
#include <string.h>

#define GRAPH_HEAD    "lockstep-graph 1\n"
#define FLOAT_DIGITS  8
#define DOUBLE_DIGITS 16

static bool is_digit(char letter)
{
    return letter >= '0' && letter <= '9';
}

static enum status refuse_line(const struct graph_line *line, const char *what, struct error *error)
{
    return error_set(error, STATUS_BAD_FORMAT, "line %u: %s", line->number, what);
}

/* Digits without a sign or a leading zero, up to most. */
static bool read_digits(uint64_t *number, const char *text, uint64_t most)
{
    *number = 0;
    if (!is_digit(text[0]) || (text[0] == '0' && text[1] != '\0')) {
        return false;
    }
    for (; is_digit(*text); text++) {
        *number = *number * 10 + (uint64_t)(*text - '0');
        if (*number > most) {
            return false;
        }
    }
    return *text == '\0';
}

/* So many lower-case digits behind 0x. */
static bool read_bits(uint64_t *number, const char *text, size_t digits)
{
    if (strncmp(text, "0x", 2) != 0 || strlen(text) != 2 + digits) {
        return false;
    }
    *number = 0;
    for (text += 2; *text != '\0'; text++) {
        const bool letter = *text >= 'a' && *text <= 'f';

        if (!letter && !is_digit(*text)) {
            return false;
        }
        *number = *number * 16 + (uint64_t)(letter ? *text - 'a' + 10 : *text - '0');
    }
    return true;
}

enum status graph_number(int64_t *number, const struct graph_line *line, uint32_t word,
                         struct error *error)
{
    const char *text = line->words[word];
    const bool minus = text[0] == '-';
    uint64_t size;

    if (read_bits(&size, text, FLOAT_DIGITS)) {
        *number = (int64_t)size;
        return STATUS_OK;
    }
    if (!read_digits(&size, text + minus, TENSOR_COUNT_MAX) || (minus && size == 0)) {
        return error_set(error, STATUS_BAD_FORMAT, "line %u: '%.20s' is no number", line->number,
                         text);
    }
    *number = minus ? -(int64_t)size : (int64_t)size;
    return STATUS_OK;
}

enum status graph_double(double *number, const struct graph_line *line, uint32_t word,
                         struct error *error)
{
    uint64_t bits;

    if (!read_bits(&bits, line->words[word], DOUBLE_DIGITS)) {
        return error_set(error, STATUS_BAD_FORMAT, "line %u: '%.20s' is no binary64", line->number,
                         line->words[word]);
    }
    memcpy(number, &bits, sizeof(*number));
    return isfinite(*number) ? STATUS_OK : refuse_line(line, "a number that is not finite", error);
}

enum status graph_shape(uint32_t *rank, uint64_t *dims, const struct graph_line *line,
                        uint32_t word, struct error *error)
{
    uint64_t count = 1;

    if (word >= line->count || line->count - word > TENSOR_RANK_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "line %u: a shape has 1 to %d lengths",
                         line->number, TENSOR_RANK_MAX);
    }
    *rank = line->count - word;
    for (uint32_t axis = 0; axis < *rank; axis++) {
        if (!read_digits(&dims[axis], line->words[word + axis], TENSOR_COUNT_MAX) ||
            dims[axis] == 0 || dims[axis] > TENSOR_COUNT_MAX / count) {
            return refuse_line(line, "a shape of lengths from 1, with at most 2^40 elements",
                               error);
        }
        count *= dims[axis];
    }
    return STATUS_OK;
}

enum status graph_operand(uint32_t *value, const struct graph_line *line, uint32_t word,
                          uint32_t count, struct error *error)
{
    const char *text = line->words[word];
    uint64_t number;

    if (text[0] != '%' || !read_digits(&number, text + 1, UINT32_MAX) || number >= count) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "line %u: '%.20s' is no value of an earlier line", line->number, text);
    }
    *value = (uint32_t)number;
    return STATUS_OK;
}

/* ---- lines --------------------------------------------------------------- */

enum status graph_lines_begin(struct graph_lines *lines, const char *text, size_t size,
                              struct error *error)
{
    const size_t head = sizeof(GRAPH_HEAD) - 1;

    if (size < head || size > GRAPH_TEXT_MAX || memcmp(text, GRAPH_HEAD, head) != 0) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "no graph: it begins with 'lockstep-graph 1' and has at most 64 MiB");
    }
    *lines = (struct graph_lines){.at = text + head, .end = text + size, .number = 1};
    return STATUS_OK;
}

/* Copies a line of printable ASCII whose words stand one space apart. */
static enum status copy_line(struct graph_line *line, struct graph_lines *lines,
                             struct error *error)
{
    const size_t left = (size_t)(lines->end - lines->at);
    const char *end = memchr(lines->at, '\n', left);
    const size_t size = end == NULL ? left : (size_t)(end - lines->at);

    line->number = ++lines->number;
    if (end == NULL || size == 0 || size > GRAPH_LINE_MAX) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "line %u: a line has 1 to %u bytes and a line feed", line->number,
                         GRAPH_LINE_MAX);
    }
    for (size_t i = 0; i < size; i++) {
        const char letter = lines->at[i];

        if (letter < ' ' || letter > '~' ||
            (letter == ' ' && (i == 0 || i + 1 == size || lines->at[i + 1] == ' '))) {
            return refuse_line(line, "words of printable ASCII, one space apart", error);
        }
    }
    memcpy(line->bytes, lines->at, size);
    line->bytes[size] = '\0';
    lines->at = end + 1;
    return STATUS_OK;
}

static enum status split_line(struct graph_line *line, struct error *error)
{
    char *at = line->bytes;

    line->count = 0;
    while (at != NULL) {
        if (line->count == GRAPH_WORDS_MAX) {
            return error_set(error, STATUS_BAD_FORMAT, "line %u: more than %u words", line->number,
                             GRAPH_WORDS_MAX);
        }
        line->words[line->count++] = at;
        at = strchr(at, ' ');
        if (at != NULL) {
            *at++ = '\0';
        }
    }
    return STATUS_OK;
}

/* The value that the line makes in front, and the shape that it gives behind "=". */
static enum status take_ends(struct graph_line *line, struct error *error)
{
    uint32_t sign = 1;
    uint64_t value = 0;

    line->made = line->words[0][0] == '%';
    if (line->made) {
        if (line->count < 2 || !read_digits(&value, line->words[0] + 1, UINT32_MAX)) {
            return refuse_line(line, "a value has a number and what makes it", error);
        }
        memmove(line->words, line->words + 1, --line->count * sizeof(line->words[0]));
    }
    line->value = (uint32_t)value;
    while (sign < line->count && strcmp(line->words[sign], "=") != 0) {
        sign++;
    }
    if (sign < line->count) {
        TRY(graph_shape(&line->rank, line->dims, line, sign + 1, error));
        line->count = sign;
    }
    return STATUS_OK;
}

enum status graph_line_next(struct graph_line *line, bool *found, struct graph_lines *lines,
                            struct error *error)
{
    *found = lines->at < lines->end;
    if (!*found) {
        return STATUS_OK;
    }
    TRY(copy_line(line, lines, error));
    TRY(split_line(line, error));
    line->made = false;
    line->rank = 0;
    return graph_line_word(line) == GRAPH_AT ? STATUS_OK : take_ends(line, error);
}

/* ---- declarations --------------------------------------------------------- */

enum graph_word graph_line_word(const struct graph_line *line)
{
    static const char *const words[] = {"input", "param", "frozen", "state", "at",
                                        "after", "loss",  "eval",   "expect"};

    for (int word = GRAPH_INPUT; word < GRAPH_CALL; word++) {
        if (strcmp(line->words[0], words[word]) == 0) {
            return (enum graph_word)word;
        }
    }
    return GRAPH_CALL;
}

bool graph_word_declares(enum graph_word word)
{
    return word <= GRAPH_STATE;
}

/* Of what is no parameter: that is f32. */
static bool read_type(enum dtype *dtype, enum graph_word word, const char *text)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_U32, DTYPE_F16, DTYPE_BF16};

    for (size_t i = 0; i < (word == GRAPH_FROZEN ? 4 : 2); i++) {
        if (strcmp(text, dtype_name(types[i])) == 0) {
            *dtype = types[i];
            return true;
        }
    }
    return false;
}

enum status graph_declared(struct graph_declared *declared, const struct graph_line *line,
                           struct error *error)
{
    const enum graph_word word = graph_line_word(line);
    uint32_t next = 2;

    if (!line->made || line->rank != 0 || line->count < 3) {
        return refuse_line(line, "a tensor is declared with a value, a name and a shape", error);
    }
    declared->name = line->words[1];
    declared->dtype = DTYPE_F32;
    if (strlen(declared->name) > GRAPH_NAME_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "line %u: the name '%.70s' is over %d bytes",
                         line->number, declared->name, GRAPH_NAME_MAX);
    }
    if (word != GRAPH_PARAM && !read_type(&declared->dtype, word, line->words[next++])) {
        return error_set(error, STATUS_BAD_FORMAT, "line %u: '%s' has an unknown type",
                         line->number, declared->name);
    }
    return graph_shape(&declared->rank, declared->dims, line, next, error);
}
