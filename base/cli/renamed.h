/*
 * renamed.h - the old spellings of options and commands, and what they are called now.
 *
 * For one edition an old spelling is refused with the new one in the sentence. Nothing here is
 * accepted in place of the new word.
 */
#ifndef BASE_CLI_RENAMED_H
#define BASE_CLI_RENAMED_H

#include <stdbool.h>
#include <stddef.h>

struct renamed {
    const char *was;
    const char *now;
};

/* An old name may have several new ones; the one that a command has is meant. */
#define RENAMED_OPTION_COUNT 42
extern const struct renamed renamed_options[RENAMED_OPTION_COUNT];

/* The new name of an old option, among those that knows() says there are; NULL: none. */
const char *renamed_option(const char *was, size_t was_length,
                           bool (*knows)(const void *context, const char *name),
                           const void *context);

/* The new words of an old command: "verifier run" is "verifier node". group NULL: none. word is
 * what follows on the command line, NULL: nothing. NULL: the command was not renamed. */
const char *renamed_command(const char *group, const char *name, const char *word);

#endif /* BASE_CLI_RENAMED_H */
