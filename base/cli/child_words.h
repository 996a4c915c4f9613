/*
 * child_words.h - the command line of a child that is this program again: a group, a command,
 * options.
 *
 * Words are borrowed, numbers are kept here. More words than there is room for are a bug.
 */
#ifndef BASE_CLI_CHILD_WORDS_H
#define BASE_CLI_CHILD_WORDS_H

#include "base/cli/options.h"

#define CHILD_WORDS_MAX (3 * OPTION_LIST_MAX + 208)
#define CHILD_TEXTS_MAX (CHILD_WORDS_MAX / 2)

struct child_words {
    const char *list[CHILD_WORDS_MAX + 1]; /* ends with NULL */
    size_t count;
    char texts[CHILD_TEXTS_MAX][OPTION_NAME_MAX + 3]; /* names with hyphens, and numbers */
    size_t text_count;
};

/* "lockstep", a group and a command. */
void child_words_init(struct child_words *words, const char *group, const char *command);
void child_words_add(struct child_words *words, const char *word);
void child_words_flag(struct child_words *words, const char *option);
/* option: "out", of --out. value NULL or "": nothing. */
void child_words_option(struct child_words *words, const char *option, const char *value);
void child_words_number(struct child_words *words, const char *option, uint64_t number);
/* The option as it was given to us, by its kind; nothing, where it is unset. */
void child_words_given(struct child_words *words, const char *option, const struct options *given);

#endif /* BASE_CLI_CHILD_WORDS_H */
