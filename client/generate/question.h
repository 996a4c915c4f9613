/*
 * question.h - a text, or a conversation up to an answer, as the tokens that the answer follows.
 *
 * A conversation is laid out as data pack lays it out (chat.h), with an answer behind it; what
 * would be learned of that answer is left away. So a model sees what it has learned to see. The
 * token that ends the turn ends the answer.
 */
#ifndef CLIENT_GENERATE_QUESTION_H
#define CLIENT_GENERATE_QUESTION_H

#include "data/source/chat.h"

#define QUESTION_MESSAGES_MAX 4096

struct question {
    const struct tokenizer *tokenizer; /* borrowed */
    const struct chat_layout *layout;  /* NULL: a text */
    const char *date;                  /* borrowed; NULL: the layout's own */
    struct chat_message messages[QUESTION_MESSAGES_MAX];
    size_t count;
    struct parts parts;
    struct buffer learned;
    struct encoder encoder; /* its ids are the question */
    uint32_t end_of_turn;   /* VOCABULARY_NONE: the layout has none */
};

/* layout NULL: a text. On failure there is nothing to release. */
MUST_CHECK enum status question_init(struct question *question, struct error *error,
                                     const struct tokenizer *tokenizer,
                                     const struct chat_layout *layout, const char *date);
void question_release(struct question *question); /* a zero-filled one is allowed */

/* The ids of a text: what its tokenizer puts before a text, and the text. */
MUST_CHECK enum status question_of_text(struct question *question, struct error *error,
                                        const char *text, size_t size);

/* One more message; copies the text. */
MUST_CHECK enum status question_add(struct question *question, struct error *error,
                                    enum chat_role role, const char *text, size_t size);

/* The ids of the conversation so far, up to the answer. */
MUST_CHECK enum status question_lay_out(struct question *question, struct error *error);

#endif /* CLIENT_GENERATE_QUESTION_H */
