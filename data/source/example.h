/*
 * example.h - a line of .jsonl, or a text, as the row or the pair of rows that it becomes.
 *
 * {"text": ...}, {"prompt": ..., "completion": ...}, {"messages": [...]}, {"chosen": ...,
 * "rejected": ...} with or without "prompt". Other keys of a line say nothing. Two of these in one
 * line are refused, since one of them would be lost.
 */
#ifndef DATA_SOURCE_EXAMPLE_H
#define DATA_SOURCE_EXAMPLE_H

#include <jansson.h>

#include "data/source/chat.h"

#define EXAMPLE_SIZE_MAX  ((size_t)ENCODE_SIZE_MAX) /* of a line, or of a text */
#define EXAMPLE_DEPTH_MAX 16

/* Of a conversation: which of the assistant's messages, where a message does not say it itself. */
enum example_learn {
    LEARN_ASSISTANT = 0,
    LEARN_LAST,
    LEARN_ALL, /* prompts and completions too */
};

/* How examples become rows. */
struct example_rules {
    const struct tokenizer *tokenizer;
    const struct chat_layout *layout; /* NULL: there is none; layout_trouble says why */
    const char *layout_trouble;
    enum example_learn learn;
    const char *system; /* before conversations without a system message; NULL: nothing */
    const char *date;
    bool put_before; /* what the tokenizer's template puts before a text: BOS */
    bool put_behind; /* and behind it */
    bool put_eos;    /* the config's EOS behind a text, and it is learned */
};

struct example {
    struct parts rows[2];    /* the second of a pair: rejected */
    size_t row_count;        /* 1, or 2 of a pair */
    struct buffer canonical; /* the JSON that says the same, for its hash */
    struct chat_message *messages;
    size_t message_capacity;
};

void example_init(struct example *example);
void example_release(struct example *example);

/* A text that is a whole example. */
MUST_CHECK enum status example_of_text(struct example *example, struct error *error,
                                       const struct example_rules *rules, const void *text,
                                       size_t size);

/* A line of .jsonl, of valid UTF-8. */
MUST_CHECK enum status example_of_json(struct example *example, struct error *error,
                                       const struct example_rules *rules, const void *line,
                                       size_t size);

/* Is an example on the side that is held out? Its SHA-256 decides, so it is always the same. */
bool example_is_held_out(const struct example *example, uint64_t below);

#endif /* DATA_SOURCE_EXAMPLE_H */
