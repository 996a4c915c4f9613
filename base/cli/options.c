/* options.c - see options.h. */
#include "base/cli/options.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli/renamed.h"
#include "base/cli/suggest.h"
#include "base/text.h"

#define ORIGIN_TEXT_MAX      (FILENAME_MAX + 64)
#define ENVIRONMENT_TEXT_MAX 65536

/* ---- the values ------------------------------------------------------------------------- */

static struct option_value *find_value(struct options *options, const char *name, size_t length)
{
    for (size_t i = 0; i < options->value_count; i++) {
        const char *known = options->values[i].spec->name;

        if (strlen(known) == length && memcmp(known, name, length) == 0) {
            return &options->values[i];
        }
    }
    return NULL;
}

/* A whole number followed by one of the suffixes; each multiplies by its factor. */
static bool parse_scaled(uint64_t *number, const char *text, const char *suffixes,
                         const uint64_t *factors)
{
    const char *suffix;

    if (!text_take_number(number, &text, UINT64_MAX)) {
        return false;
    }
    if (*text == '\0') {
        return true;
    }
    suffix = strchr(suffixes, *text);
    if (suffix == NULL || text[1] != '\0' || *number > UINT64_MAX / factors[suffix - suffixes]) {
        return false;
    }
    *number *= factors[suffix - suffixes];
    return true;
}

static bool parse_real(double *real, const char *text)
{
    char *end;

    if (text[0] == '\0' || strspn(text, "0123456789.eE+-") != strlen(text) || text[0] == '-' ||
        text[0] == '+') {
        return false;
    }
    *real = strtod(text, &end);
    return *end == '\0' && isfinite(*real);
}

static bool parse_flag(uint64_t *number, const char *text)
{
    *number = strcmp(text, "true") == 0 || strcmp(text, "1") == 0 || strcmp(text, "yes") == 0;
    return *number == 1 || strcmp(text, "false") == 0 || strcmp(text, "0") == 0 ||
           strcmp(text, "no") == 0;
}

static bool is_choice(const char *choices, const char *text)
{
    size_t length = strlen(text);

    while (length > 0 && *choices != '\0') {
        size_t one = strcspn(choices, "|");

        if (one == length && memcmp(choices, text, length) == 0) {
            return true;
        }
        choices += one + (choices[one] == '|');
    }
    return false;
}

static bool is_free_of_controls(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            return false;
        }
    }
    return true;
}

/* Reads text as its kind; the return is what the text should have been, or NULL when it is fine. */
static const char *convert_value(struct option_value *value, const char *text)
{
    static const uint64_t sizes[] = {1024,     1024,     1u << 20,         1u << 20,
                                     1u << 30, 1u << 30, UINT64_C(1) << 40};
    static const uint64_t durations[] = {1, 60, 3600, 86400};

    switch (value->spec->kind) {
    case OPTION_FLAG:
        return parse_flag(&value->number, text) ? NULL : "true or false";
    case OPTION_TEXT:
    case OPTION_LIST:
        return is_free_of_controls(text) ? NULL : "text without control characters";
    case OPTION_INTEGER:
        return parse_scaled(&value->number, text, "", NULL) ? NULL : "a whole number";
    case OPTION_REAL:
        return parse_real(&value->real, text) ? NULL : "a number such as 0.25";
    case OPTION_SIZE:
        return parse_scaled(&value->number, text, "kKmMgGT", sizes) ? NULL
                                                                    : "a size such as 64k or 2G";
    case OPTION_DURATION:
        return parse_scaled(&value->number, text, "smhd", durations)
                   ? NULL
                   : "a duration such as 90s, 15m or 24h";
    case OPTION_CHOICE:
        return is_choice(value->spec->choices, text) ? NULL : value->spec->choices;
    }
    return "of a known kind";
}

static enum status check_range(const struct option_value *value, struct error *error,
                               const char *place)
{
    const struct option_spec *spec = value->spec;
    bool counted =
        spec->kind == OPTION_INTEGER || spec->kind == OPTION_SIZE || spec->kind == OPTION_DURATION;

    if (counted && value->number < spec->minimum) {
        return error_set(error, STATUS_USAGE, "%s: %s is less than %llu", place, value->text,
                         (unsigned long long)spec->minimum);
    }
    if (counted && spec->maximum != 0 && value->number > spec->maximum) {
        return error_set(error, STATUS_USAGE, "%s: %s is more than %llu", place, value->text,
                         (unsigned long long)spec->maximum);
    }
    return STATUS_OK;
}

/* place is how an error names the setting: "--steps", "LOCKSTEP_STEPS", "FILE:3: steps". */
static enum status set_value(struct options *options, struct error *error,
                             struct option_value *value, const char *text,
                             enum option_origin origin, const char *place)
{
    const char *wanted;

    if (strlen(text) > OPTION_VALUE_MAX) {
        return error_set(error, STATUS_USAGE, "%s: longer than %d bytes", place, OPTION_VALUE_MAX);
    }
    wanted = convert_value(value, text);
    if (wanted != NULL) {
        return error_set(error, STATUS_USAGE, "%s: '%.60s' is not %s%s", place, text,
                         value->spec->kind == OPTION_CHOICE ? "one of " : "", wanted);
    }
    /* Of what is written twice one file would be dropped without a word. */
    if (origin == OPTION_FROM_FLAG && value->origin == OPTION_FROM_FLAG &&
        value->spec->kind == OPTION_TEXT && value->spec->value != NULL &&
        strcmp(value->spec->value, "FILE") == 0) {
        return error_set(error, STATUS_USAGE, "%s is given twice: %.60s and %.60s", place,
                         value->text, text);
    }
    value->text = text;
    value->origin = origin;
    if (value->spec->kind == OPTION_LIST) {
        if (options->item_count == OPTION_LIST_MAX) {
            return error_set(error, STATUS_USAGE, "%s: more than %d values", place,
                             OPTION_LIST_MAX);
        }
        options->items[options->item_count++] =
            (struct option_item){.spec = value->spec, .text = text};
    }
    return check_range(value, error, place);
}

/* ---- the command line ------------------------------------------------------------------- */

static bool has_option(const void *context, const char *name)
{
    const struct options *options = context;

    for (size_t i = 0; i < options->value_count; i++) {
        if (strcmp(options->values[i].spec->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static enum status unknown_option(const struct options *options, struct error *error,
                                  const char *word, size_t name_length)
{
    const char *now = renamed_option(word + 2, name_length, has_option, options);
    char name[SUGGEST_WORD_MAX] = "";
    struct suggestion suggestion;

    if (now != NULL) {
        return error_set(error, STATUS_USAGE, "--%.*s is now --%s", (int)name_length, word + 2,
                         now);
    }
    if (name_length < sizeof(name)) {
        memcpy(name, word + 2, name_length);
    }
    suggestion_init(&suggestion, name);
    for (size_t i = 0; i < options->value_count; i++) {
        suggestion_consider(&suggestion, options->values[i].spec->name);
    }
    if (suggestion.best != NULL) {
        return error_set(error, STATUS_USAGE, "unknown option --%.*s (did you mean --%s?)",
                         (int)name_length, word + 2, suggestion.best);
    }
    return error_set(error, STATUS_USAGE, "unknown option --%.*s", (int)name_length, word + 2);
}

/* One word that starts with "--"; moves *index past the value when that is a word of its own. */
static enum status parse_long(struct options *options, struct error *error,
                              const struct option_sources *sources, size_t *index)
{
    const char *word = sources->words[*index];
    size_t length = strcspn(word + 2, "=");
    bool has_value = word[2 + length] == '=';
    struct option_value *value = find_value(options, word + 2, length);
    char place[OPTION_NAME_MAX + 3] = "--";

    if (value == NULL && length > 3 && !has_value && strncmp(word, "--no-", 5) == 0) {
        value = find_value(options, word + 5, length - 3);
        if (value != NULL && value->spec->kind == OPTION_FLAG) {
            return set_value(options, error, value, "false", OPTION_FROM_FLAG, word);
        }
        value = NULL;
    }
    if (value == NULL) {
        return unknown_option(options, error, word, length);
    }
    memcpy(place + 2, value->spec->name, strlen(value->spec->name) + 1);
    if (has_value) {
        return set_value(options, error, value, word + 3 + length, OPTION_FROM_FLAG, place);
    }
    if (value->spec->kind == OPTION_FLAG) {
        return set_value(options, error, value, "true", OPTION_FROM_FLAG, place);
    }
    if (*index + 1 == sources->word_count || strncmp(sources->words[*index + 1], "--", 2) == 0) {
        return error_set(error, STATUS_USAGE, "%s needs a value: %s %s", place, place,
                         value->spec->value == NULL ? "VALUE" : value->spec->value);
    }
    (*index)++;
    return set_value(options, error, value, sources->words[*index], OPTION_FROM_FLAG, place);
}

static enum status parse_words(struct options *options, struct error *error,
                               const struct option_sources *sources)
{
    bool only_arguments = false;

    for (size_t i = 0; i < sources->word_count; i++) {
        const char *word = sources->words[i];
        enum status status = STATUS_OK;

        if (!only_arguments && strcmp(word, "--") == 0) {
            only_arguments = true;
        } else if (!only_arguments && strcmp(word, "-h") == 0) {
            struct option_value *help = find_value(options, "help", 4);

            status = help == NULL ? error_set(error, STATUS_USAGE, "unknown option -h")
                                  : set_value(options, error, help, "true", OPTION_FROM_FLAG, "-h");
        } else if (!only_arguments && strncmp(word, "--", 2) == 0) {
            status = parse_long(options, error, sources, &i);
        } else if (!only_arguments && word[0] == '-' && word[1] != '\0') {
            status = error_set(error, STATUS_USAGE, "unknown option %.60s", word);
        } else {
            options->arguments[options->argument_count++] = word;
        }
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

/* ---- environment and file --------------------------------------------------------------- */

void options_environment_name(char *name, size_t name_size, const char *option)
{
    static const char prefix[] = "LOCKSTEP_";
    size_t used = sizeof(prefix) - 1;

    assert(name_size > used + strlen(option));
    memcpy(name, prefix, used);
    for (; *option != '\0'; option++) {
        name[used++] = *option == '-' ? '_' : (char)toupper((unsigned char)*option);
    }
    name[used] = '\0';
}

/* A list in the environment is cut at its commas, in a copy that options owns. */
static enum status set_list(struct options *options, struct error *error,
                            struct option_value *value, const char *text, const char *place)
{
    size_t size = strlen(text) + 1;
    char *at;

    if (options->environment_text == NULL) {
        options->environment_text = malloc(ENVIRONMENT_TEXT_MAX);
    }
    if (options->environment_text == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", place);
    }
    if (size > ENVIRONMENT_TEXT_MAX - options->environment_used) {
        return error_set(error, STATUS_USAGE, "%s: too long", place);
    }
    at = options->environment_text + options->environment_used;
    memcpy(at, text, size);
    options->environment_used += size;
    for (;;) {
        size_t length = strcspn(at, ",");
        bool last = at[length] == '\0';
        enum status status;

        at[length] = '\0';
        status = set_value(options, error, value, at, OPTION_FROM_ENVIRONMENT, place);
        if (status != STATUS_OK || last) {
            return status;
        }
        at += length + 1;
    }
}

/* An old name of an option that this command has, in the environment. A name that some command
 * still has is no old one. */
static enum status check_environment(const struct options *options, struct error *error,
                                     const struct option_sources *sources)
{
    const struct option_dictionary *dictionary = sources->dictionary;

    for (size_t i = 0; sources->environment != NULL && i < RENAMED_OPTION_COUNT; i++) {
        const struct renamed *row = &renamed_options[i];
        char was[OPTION_NAME_MAX + 16];
        char now[OPTION_NAME_MAX + 16];
        const char *text;

        options_environment_name(was, sizeof(was), row->was);
        options_environment_name(now, sizeof(now), row->now);
        text = sources->environment(was);
        if (text != NULL && text[0] != '\0' && has_option(options, row->now) &&
            !has_option(options, row->was) &&
            (dictionary == NULL || !dictionary->knows(dictionary->context, row->was))) {
            return error_set(error, STATUS_USAGE, "%s is now %s", was, now);
        }
    }
    return STATUS_OK;
}

static enum status parse_environment(struct options *options, struct error *error,
                                     const struct option_sources *sources)
{
    for (size_t i = 0; sources->environment != NULL && i < options->value_count; i++) {
        struct option_value *value = &options->values[i];
        char name[OPTION_NAME_MAX + 16];
        const char *text;
        enum status status;

        if (value->origin > OPTION_FROM_ENVIRONMENT || value->spec->command_line_only) {
            continue;
        }
        options_environment_name(name, sizeof(name), value->spec->name);
        text = sources->environment(name);
        if (text == NULL || text[0] == '\0') {
            continue;
        }
        status = value->spec->kind == OPTION_LIST
                     ? set_list(options, error, value, text, name)
                     : set_value(options, error, value, text, OPTION_FROM_ENVIRONMENT, name);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

static enum status unknown_key(const struct options *options, struct error *error,
                               const struct option_sources *sources,
                               const struct config_entry *entry, const char *path)
{
    const struct option_dictionary *dictionary = sources->dictionary;
    struct suggestion suggestion;
    const char *now;

    if (dictionary != NULL && dictionary->knows(dictionary->context, entry->key)) {
        return STATUS_OK; /* another command's */
    }
    now = renamed_option(entry->key, strlen(entry->key), has_option, options);
    if (now == NULL && dictionary != NULL) {
        now =
            renamed_option(entry->key, strlen(entry->key), dictionary->knows, dictionary->context);
    }
    if (now != NULL) {
        return error_set(error, STATUS_USAGE, "%s:%u: '%s' is now '%s'", path, entry->line,
                         entry->key, now);
    }
    suggestion_init(&suggestion, entry->key);
    for (size_t i = 0; i < options->value_count; i++) {
        if (!options->values[i].spec->command_line_only) {
            suggestion_consider(&suggestion, options->values[i].spec->name);
        }
    }
    if (suggestion.best == NULL && dictionary != NULL && dictionary->nearest != NULL) {
        suggestion.best = dictionary->nearest(dictionary->context, entry->key);
    }
    if (suggestion.best != NULL) {
        return error_set(error, STATUS_USAGE, "%s:%u: unknown key '%.60s' (did you mean '%s'?)",
                         path, entry->line, entry->key, suggestion.best);
    }
    return error_set(error, STATUS_USAGE, "%s:%u: unknown key '%.60s'", path, entry->line,
                     entry->key);
}

static enum status apply_entry(struct options *options, struct error *error,
                               const struct option_sources *sources, const char *path, size_t index)
{
    const struct config_entry *entry = &options->config.entries[index];
    struct option_value *value = find_value(options, entry->key, strlen(entry->key));
    char place[ORIGIN_TEXT_MAX];

    if (value == NULL || value->spec->command_line_only) {
        return unknown_key(options, error, sources, entry, path);
    }
    for (size_t i = 0; value->spec->kind != OPTION_LIST && i < index; i++) {
        if (strcmp(options->config.entries[i].key, entry->key) == 0) {
            return error_set(error, STATUS_USAGE, "%s:%u: '%s' is set already on line %u", path,
                             entry->line, entry->key, options->config.entries[i].line);
        }
    }
    if (value->origin > OPTION_FROM_CONFIG) {
        return STATUS_OK;
    }
    snprintf(place, sizeof(place), "%s:%u: %s", path, entry->line, entry->key);
    return set_value(options, error, value, entry->value, OPTION_FROM_CONFIG, place);
}

static enum status parse_config(struct options *options, struct error *error,
                                const struct option_sources *sources)
{
    const struct option_value *named = find_value(options, "config", 6);
    bool chosen = named != NULL && named->origin > OPTION_FROM_FALLBACK;
    const char *path = chosen ? named->text : sources->config_path;
    enum status status;

    if (path == NULL) {
        return STATUS_OK;
    }
    status = config_read(&options->config, error, path);
    if (status == STATUS_NOT_FOUND && !chosen) {
        return STATUS_OK;
    }
    if (status != STATUS_OK) {
        /* The remedy is always to mend this file or to name another one. */
        if (error != NULL && status != STATUS_NO_MEMORY) {
            error->status = STATUS_USAGE;
        }
        return status == STATUS_NO_MEMORY ? status : STATUS_USAGE;
    }
    for (size_t i = 0; i < options->config.entry_count && status == STATUS_OK; i++) {
        status = apply_entry(options, error, sources, path, i);
    }
    return status;
}

/* ---- the whole -------------------------------------------------------------------------- */

static enum status parse_fallbacks(struct options *options, struct error *error)
{
    for (size_t i = 0; i < options->value_count; i++) {
        struct option_value *value = &options->values[i];

        if (value->origin == OPTION_FROM_NOWHERE && value->spec->fallback != NULL) {
            enum status status = set_value(options, error, value, value->spec->fallback,
                                           OPTION_FROM_FALLBACK, value->spec->name);

            if (status != STATUS_OK) {
                return status;
            }
        }
    }
    return STATUS_OK;
}

void options_count_arguments(size_t *least, size_t *most, const char *arguments)
{
    *least = 0;
    *most = 0;
    while (arguments != NULL && *arguments != '\0') {
        size_t length = strcspn(arguments, " ");

        if (length > 0) {
            *least += arguments[0] != '[';
            *most += 1;
            if (memmem(arguments, length, "...", 3) != NULL) {
                *most = OPTION_ARGUMENTS_MAX;
            }
        }
        arguments += length + (arguments[length] == ' ');
    }
}

static enum status check_arguments(const struct options *options, struct error *error,
                                   const char *arguments)
{
    size_t least;
    size_t most;

    options_count_arguments(&least, &most, arguments);
    if (options->argument_count < least) {
        return error_set(error, STATUS_USAGE, "needs more arguments: %s", arguments);
    }
    if (options->argument_count > most) {
        return error_set(error, STATUS_USAGE, "does not know what to do with '%.60s'",
                         options->arguments[most]);
    }
    for (size_t i = 0; i < options->value_count; i++) {
        const struct option_value *value = &options->values[i];

        if (value->spec->required && value->origin == OPTION_FROM_NOWHERE) {
            return error_set(error, STATUS_USAGE, "needs --%s %s", value->spec->name,
                             value->spec->value == NULL ? "" : value->spec->value);
        }
    }
    return STATUS_OK;
}

static void take_tables(struct options *options, const struct option_table *tables,
                        size_t table_count)
{
    for (size_t i = 0; i < table_count; i++) {
        for (size_t j = 0; j < tables[i].count; j++) {
            const struct option_spec *spec = &tables[i].specs[j];

            assert(options->value_count < OPTIONS_MAX);
            assert(strlen(spec->name) < OPTION_NAME_MAX);
            assert(find_value(options, spec->name, strlen(spec->name)) == NULL);
            options->values[options->value_count++].spec = spec;
        }
    }
}

static enum status parse_all(struct options *options, struct error *error, const char *arguments,
                             const struct option_sources *sources)
{
    const struct option_value *help;

    TRY(parse_words(options, error, sources));
    help = find_value(options, "help", 4);
    if (help != NULL && help->number == 1) {
        return parse_fallbacks(options, error);
    }
    TRY(check_environment(options, error, sources));
    TRY(parse_environment(options, error, sources));
    TRY(parse_config(options, error, sources));
    TRY(parse_fallbacks(options, error));
    return check_arguments(options, error, arguments);
}

enum status options_parse(struct options *options, struct error *error,
                          const struct option_table *tables, size_t table_count,
                          const char *arguments, const struct option_sources *sources)
{
    enum status status;

    memset(options, 0, sizeof(*options));
    if (sources->word_count > OPTION_ARGUMENTS_MAX) {
        return error_set(error, STATUS_USAGE, "more than %d words", OPTION_ARGUMENTS_MAX);
    }
    take_tables(options, tables, table_count);
    options->arguments = calloc(sources->word_count + 1, sizeof(*options->arguments));
    if (options->arguments == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the command line");
    }
    status = parse_all(options, error, arguments, sources);
    if (status != STATUS_OK) {
        options_release(options);
    }
    return status;
}

void options_release(struct options *options)
{
    config_release(&options->config);
    free(options->arguments);
    free(options->environment_text);
    memset(options, 0, sizeof(*options));
}

/* ---- reading values ------------------------------------------------------------------------- */

static const struct option_value *value_of(const struct options *options, const char *name)
{
    for (size_t i = 0; i < options->value_count; i++) {
        if (strcmp(options->values[i].spec->name, name) == 0) {
            return &options->values[i];
        }
    }
    assert(!"an option that is in no table");
    abort();
}

const struct option_spec *options_spec(const struct options *options, const char *name)
{
    return value_of(options, name)->spec;
}

bool options_given(const struct options *options, const char *name)
{
    return value_of(options, name)->origin > OPTION_FROM_FALLBACK;
}

bool options_flagged(const struct options *options, const char *name)
{
    return value_of(options, name)->origin == OPTION_FROM_FLAG;
}

bool options_flag(const struct options *options, const char *name)
{
    const struct option_value *value = value_of(options, name);

    assert(value->spec->kind == OPTION_FLAG);
    return value->number == 1;
}

const char *options_text(const struct options *options, const char *name)
{
    return value_of(options, name)->text;
}

uint64_t options_number(const struct options *options, const char *name)
{
    const struct option_value *value = value_of(options, name);

    assert(value->spec->kind == OPTION_INTEGER || value->spec->kind == OPTION_SIZE ||
           value->spec->kind == OPTION_DURATION);
    return value->number;
}

double options_real(const struct options *options, const char *name)
{
    const struct option_value *value = value_of(options, name);

    assert(value->spec->kind == OPTION_REAL);
    return value->real;
}

size_t options_list_count(const struct options *options, const char *name)
{
    const struct option_value *value = value_of(options, name);
    size_t count = 0;

    assert(value->spec->kind == OPTION_LIST);
    for (size_t i = 0; i < options->item_count; i++) {
        count += options->items[i].spec == value->spec;
    }
    return count;
}

const char *options_list_item(const struct options *options, const char *name, size_t index)
{
    const struct option_value *value = value_of(options, name);

    assert(value->spec->kind == OPTION_LIST);
    for (size_t i = 0; i < options->item_count; i++) {
        if (options->items[i].spec == value->spec && index-- == 0) {
            return options->items[i].text;
        }
    }
    assert(!"a list item beyond the last");
    abort();
}

const char *options_list_first(const struct options *options, const char *name)
{
    return options_list_count(options, name) == 0 ? NULL : options_list_item(options, name, 0);
}

size_t options_list(const char *items[OPTION_LIST_MAX], const struct options *options,
                    const char *name)
{
    const size_t count = options_list_count(options, name);

    for (size_t i = 0; i < count; i++) {
        items[i] = options_list_item(options, name, i);
    }
    return count;
}

enum status options_set(struct options *options, const char *name, const char *text,
                        struct error *error)
{
    struct option_value *value = find_value(options, name, strlen(name));

    assert(value != NULL && (value->spec->kind == OPTION_TEXT || value->spec->kind == OPTION_LIST));
    if (value->spec->kind == OPTION_LIST) {
        if (options->item_count == OPTION_LIST_MAX) {
            return error_set(error, STATUS_OVER_LIMIT, "more values of --%s than there can be",
                             name);
        }
        options->items[options->item_count++] =
            (struct option_item){.spec = value->spec, .text = text};
    } else {
        value->text = text;
    }
    value->origin = OPTION_FROM_FLAG;
    return STATUS_OK;
}
