/*
 * graph_line.h - one line of a graph (see graph.h), in words.
 */
#ifndef ENGINE_MODELS_GRAPH_GRAPH_LINE_H
#define ENGINE_MODELS_GRAPH_GRAPH_LINE_H

#include "engine/tape/tape.h"

#define GRAPH_TEXT_MAX  (64u << 20)
#define GRAPH_LINE_MAX  1000u /* bytes */
#define GRAPH_WORDS_MAX 56u
#define GRAPH_NAME_MAX  (TENSOR_NAME_MAX - 2) /* "m." and "v." stand before it too */

struct graph_line {
    uint32_t number; /* from 1 */
    bool made;       /* it makes a value: the first word was its number */
    uint32_t value;
    uint32_t count; /* words behind that */
    const char *words[GRAPH_WORDS_MAX];
    uint32_t rank; /* of the shape behind "=", or 0 */
    uint64_t dims[TENSOR_RANK_MAX];
    char bytes[GRAPH_LINE_MAX + 1];
};

struct graph_lines {
    const char *at;
    const char *end;
    uint32_t number;
};

/* The lines behind the first one, which says what the text is. */
MUST_CHECK enum status graph_lines_begin(struct graph_lines *lines, const char *text, size_t size,
                                         struct error *error);

/* Takes the next line apart; *found says whether there was one. */
MUST_CHECK enum status graph_line_next(struct graph_line *line, bool *found,
                                       struct graph_lines *lines, struct error *error);

/* A decimal number of at most 2^40 in size, or 0x and eight digits. */
MUST_CHECK enum status graph_number(int64_t *number, const struct graph_line *line, uint32_t word,
                                    struct error *error);

/* The finite binary64 behind 0x, sixteen digits. */
MUST_CHECK enum status graph_double(double *number, const struct graph_line *line, uint32_t word,
                                    struct error *error);

/* The words from there on as a shape: at most TENSOR_RANK_MAX lengths from 1. */
MUST_CHECK enum status graph_shape(uint32_t *rank, uint64_t *dims, const struct graph_line *line,
                                   uint32_t word, struct error *error);

/* A value that an earlier line made: "%12". */
MUST_CHECK enum status graph_operand(uint32_t *value, const struct graph_line *line, uint32_t word,
                                     uint32_t count, struct error *error);

/* The lines that declare, NAME [TYPE] DIMS, and those that are no calls either. */
enum graph_word {
    GRAPH_INPUT,
    GRAPH_PARAM,
    GRAPH_FROZEN,
    GRAPH_STATE,
    GRAPH_AT,
    GRAPH_AFTER,
    GRAPH_LOSS,
    GRAPH_EVAL,
    GRAPH_EXPECT,
    GRAPH_CALL,
};
enum graph_word graph_line_word(const struct graph_line *line);
bool graph_word_declares(enum graph_word word);
struct graph_declared {
    const char *name;
    enum dtype dtype;
    uint32_t rank;
    uint64_t dims[TENSOR_RANK_MAX];
};
MUST_CHECK enum status graph_declared(struct graph_declared *declared,
                                      const struct graph_line *line, struct error *error);

#endif /* ENGINE_MODELS_GRAPH_GRAPH_LINE_H */
