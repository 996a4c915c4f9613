/*
 * chat.h - conversations laid out as published models expect them.
 *
 * A model publishes its layout as a program, a Jinja template. We run none: for each template that
 * we know there is a function here, found by the SHA-256 of the template's text. Another template
 * is refused by its hash, never guessed. Tools and pictures are refused.
 */
#ifndef DATA_SOURCE_CHAT_H
#define DATA_SOURCE_CHAT_H

#include "data/source/parts.h"

#define CHAT_MESSAGES_MAX 65536u
#define CHAT_DATE_MAX     64

enum chat_role {
    CHAT_SYSTEM = 0,
    CHAT_USER,
    CHAT_ASSISTANT,
};

struct chat_message {
    enum chat_role role;
    const char *text; /* borrowed */
    size_t size;
    const char *thinking; /* borrowed; NULL: none is given apart from the text */
    size_t thinking_size;
    bool learned;
};

struct chat_layout;

/* The layout of the template that the tokenizer publishes; it refuses by hash. */
MUST_CHECK enum status chat_layout_of(const struct chat_layout **layout, struct error *error,
                                      const struct tokenizer *tokenizer);

/* By its name; NULL: none is called so. The index counts all; NULL behind the last. */
const struct chat_layout *chat_layout_named(const char *name);
const struct chat_layout *chat_layout_at(size_t index);
const char *chat_layout_name(const struct chat_layout *layout);

/* Refuses a tokenizer without the special tokens of the layout. */
MUST_CHECK enum status chat_layout_check(const struct chat_layout *layout, struct error *error,
                                         const struct tokenizer *tokenizer);

/* Appends the conversation. Learned of a learned message is what the assistant says and the token
 * that ends its turn. date NULL: the one that the template names itself. */
MUST_CHECK enum status chat_lay_out(struct parts *parts, struct error *error,
                                    const struct chat_layout *layout,
                                    const struct tokenizer *tokenizer, const char *date,
                                    const struct chat_message *messages, size_t count);

#endif /* DATA_SOURCE_CHAT_H */
