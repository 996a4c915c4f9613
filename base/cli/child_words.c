/* child_words.c - see child_words.h. */
#include "base/cli/child_words.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

void child_words_init(struct child_words *words, const char *group, const char *command)
{
    words->count = 0;
    words->text_count = 0;
    child_words_add(words, "lockstep");
    child_words_add(words, group);
    child_words_add(words, command);
}

void child_words_add(struct child_words *words, const char *word)
{
    assert(words->count < CHILD_WORDS_MAX);
    words->list[words->count++] = word;
    words->list[words->count] = NULL;
}

void child_words_flag(struct child_words *words, const char *option)
{
    char *text = words->texts[words->text_count++];

    assert(words->text_count <= CHILD_TEXTS_MAX);
    (void)snprintf(text, sizeof(words->texts[0]), "--%s", option);
    child_words_add(words, text);
}

void child_words_option(struct child_words *words, const char *option, const char *value)
{
    if (value != NULL && value[0] != '\0') {
        child_words_flag(words, option);
        child_words_add(words, value);
    }
}

void child_words_number(struct child_words *words, const char *option, uint64_t number)
{
    char *text;

    child_words_flag(words, option);
    text = words->texts[words->text_count++];
    assert(words->text_count <= CHILD_TEXTS_MAX);
    (void)snprintf(text, sizeof(words->texts[0]), "%" PRIu64, number);
    child_words_add(words, text);
}

void child_words_given(struct child_words *words, const char *option, const struct options *given)
{
    const struct option_spec *spec = options_spec(given, option);

    if (spec->kind == OPTION_LIST) {
        for (size_t i = 0; i < options_list_count(given, option); i++) {
            child_words_option(words, option, options_list_item(given, option, i));
        }
    } else if (spec->kind != OPTION_FLAG) {
        child_words_option(words, option, options_text(given, option));
    } else if (options_flag(given, option)) {
        child_words_flag(words, option);
    }
}
