/*
 * answer.h - tokens as text, as they come: whole characters, and nothing of a text that stops.
 *
 * On a terminal a stranger's text drives nothing: what is not printable is written as \xNN.
 */
#ifndef CLIENT_GENERATE_ANSWER_H
#define CLIENT_GENERATE_ANSWER_H

#include <stdio.h>

#include "data/token/tokenizer.h"

#define ANSWER_STOPS_MAX 64

struct answer_stops {
    uint32_t ids[ANSWER_STOPS_MAX]; /* tokens that end an answer and are none of it */
    size_t id_count;
    const char *texts[ANSWER_STOPS_MAX]; /* borrowed; not empty */
    size_t text_count;
};

struct answer {
    const struct tokenizer *tokenizer; /* borrowed */
    const struct answer_stops *stops;  /* borrowed */
    FILE *out;                         /* NULL: only collect */
    bool terminal;
    struct buffer text;
    size_t printed;
    size_t held; /* bytes that may be the beginning of a text that stops */
};

void answer_init(struct answer *answer, const struct tokenizer *tokenizer,
                 const struct answer_stops *stops, FILE *out, bool terminal);
void answer_release(struct answer *answer);

/* Takes a token. True: the answer ends with it. */
bool answer_add(struct answer *answer, uint32_t token);

/* Prints what was held back. */
MUST_CHECK enum status answer_end(struct answer *answer, struct error *error);

#endif /* CLIENT_GENERATE_ANSWER_H */
