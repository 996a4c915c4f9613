/*
 * options_fuzz.c - any bytes as a command line, its words separated by zero bytes. What is accepted
 * must be within its range, and what is refused must have been told.
 */
#include "base/cli/options.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct option_spec specs[] = {
    {.name = "help", .kind = OPTION_FLAG, .help = "", .command_line_only = true},
    {.name = "fast", .kind = OPTION_FLAG, .help = ""},
    {.name = "name", .kind = OPTION_TEXT, .help = ""},
    {.name = "steps", .kind = OPTION_INTEGER, .minimum = 1, .maximum = 1000, .help = ""},
    {.name = "share", .kind = OPTION_REAL, .help = ""},
    {.name = "room", .kind = OPTION_SIZE, .maximum = 1 << 20, .help = ""},
    {.name = "wait", .kind = OPTION_DURATION, .maximum = 86400, .help = ""},
    {.name = "color", .kind = OPTION_CHOICE, .choices = "red|green", .help = ""},
    {.name = "peer", .kind = OPTION_LIST, .help = ""},
};

static void check(const struct options *options)
{
    uint64_t steps = options_number(options, "steps");

    if (steps > 1000 || (options_given(options, "steps") && steps < 1) ||
        options_number(options, "room") > 1 << 20 || options_number(options, "wait") > 86400 ||
        options_real(options, "share") < 0 || options_list_count(options, "peer") > 64) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct option_table table = {specs, sizeof(specs) / sizeof(specs[0])};
    const char *words[WORDS_MAX];
    struct option_sources sources = {.words = words};
    struct options *options = calloc(1, sizeof(*options));
    char *text = calloc(size + 1, 1);
    struct error error;

    if (options == NULL || text == NULL) {
        abort();
    }
    if (size > 0) {
        memcpy(text, data, size);
    }
    for (size_t at = 0; at < size && sources.word_count < WORDS_MAX; at += strlen(text + at) + 1) {
        words[sources.word_count++] = text + at;
    }
    error_init(&error);
    if (options_parse(options, &error, &table, 1, "[THING...]", &sources) == STATUS_OK) {
        check(options);
        options_release(options);
    } else if (error.text[0] == '\0') {
        abort();
    }
    free(text);
    free(options);
    return 0;
}
