/*
 * splitter.h - how published tokenizers cut text before they merge: one function for each pattern.
 *
 * A tokenizer.json names a regular expression. We run none: each published one has a function here
 * that cuts as it does, chosen by the exact text of the expression. A tokenizer with another is
 * refused. Classes of characters are those of unicode.h; \s is White_Space; (?i:'s) also takes
 * U+017F.
 */
#ifndef DATA_TEXT_SPLITTER_H
#define DATA_TEXT_SPLITTER_H

#include <stddef.h>
#include <stdint.h>

enum splitter {
    SPLITTER_NONE = 0,
    SPLITTER_GPT2,
    SPLITTER_CL100K, /* Llama 3 */
    SPLITTER_QWEN,   /* Qwen2, Qwen2.5, Qwen3: a token for each number */
    SPLITTER_O200K,
    SPLITTER_TEKKEN, /* Mistral's: o200k without 's, and a token for each number */
};

/* The end of the piece that begins at `at`, which is below size. text is valid UTF-8, or any bytes
 * that no piece before `at` ended in. Pieces follow each other without gaps. */
size_t splitter_next(enum splitter splitter, const uint8_t *text, size_t size, size_t at);

/* The splitter of an expression; SPLITTER_NONE: none of ours. */
enum splitter splitter_of(const char *expression);

/* An expression that means it, and its name: "cl100k". The index counts all that are known; NULL
 * behind the last. */
const char *splitter_expression(size_t index, enum splitter *splitter);
const char *splitter_name(enum splitter splitter);

#endif /* DATA_TEXT_SPLITTER_H */
