/*
 * options.h - one table per command: flags, environment, config keys and help all come from it.
 *
 *     static const struct option_spec run_options[] = {
 *         {.name = "steps", .kind = OPTION_INTEGER, .value = "N", .fallback = "1000",
 *          .minimum = 1, .maximum = 1000000, .help = "how many steps to train"},
 *     };
 *
 * "steps" is then --steps N, --steps=N, LOCKSTEP_STEPS=N and the line "steps=N" of the config
 * file, in this order of precedence, before the fallback. An empty environment variable counts as
 * unset. A value that does not fit its kind is refused with the place it came from.
 *
 * An old spelling is refused with the new one in the sentence (renamed.h).
 *
 * Passwords and keys are never option values: argument lists and environments are readable by
 * others. Take the path of a file instead.
 */
#ifndef BASE_CLI_OPTIONS_H
#define BASE_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cli/config.h"
#include "base/error.h"

#define OPTIONS_MAX          96 /* of one command, with the common ones */
#define OPTION_NAME_MAX      32
#define OPTION_VALUE_MAX     4096
#define OPTION_LIST_MAX      64 /* values of all list options of one command together */
#define OPTION_ARGUMENTS_MAX 65536

enum option_kind {
    OPTION_FLAG,     /* --json, --no-json; elsewhere true or false */
    OPTION_TEXT,     /* any text */
    OPTION_INTEGER,  /* a whole number from minimum to maximum */
    OPTION_REAL,     /* a number such as 0.25, not negative */
    OPTION_SIZE,     /* bytes: 4096, 64k, 2M, 1G, 1T (powers of 1024) */
    OPTION_DURATION, /* seconds: 90, 90s, 15m, 24h, 7d */
    OPTION_CHOICE,   /* one word of choices */
    OPTION_LIST,     /* text, any number of times; separated by commas in the environment */
};

struct option_spec {
    const char *name; /* lower-case words with hyphens: "data-root" */
    enum option_kind kind;
    const char *value;    /* how help calls the value: "PATH"; NULL for flags */
    const char *fallback; /* as it would be typed; NULL: unset */
    const char *help;     /* one sentence, no full stop */
    uint64_t minimum;     /* of numbers; real numbers have none */
    uint64_t maximum;     /* 0: no bound but that of uint64_t */
    const char *choices;  /* "plain|json"; of a text: words that a shell offers, among others */
    const char *heading;  /* under which help shows it: "model", "machine"; NULL: none */
    bool often;           /* most people need it: --help shows it, --help all shows the rest too */
    bool required;
    bool command_line_only; /* no environment variable, no config key */
};

struct option_table {
    const struct option_spec *specs;
    size_t count;
};

enum option_origin {
    OPTION_FROM_NOWHERE,
    OPTION_FROM_FALLBACK,
    OPTION_FROM_CONFIG,
    OPTION_FROM_ENVIRONMENT,
    OPTION_FROM_FLAG,
};

struct option_value {
    const struct option_spec *spec;
    enum option_origin origin;
    const char *text;
    uint64_t number; /* flags are 0 or 1 */
    double real;
};

struct option_item {
    const struct option_spec *spec;
    const char *text;
};

struct options {
    struct option_value values[OPTIONS_MAX];
    size_t value_count;
    struct option_item items[OPTION_LIST_MAX]; /* of list options, in the order given */
    size_t item_count;
    const char **arguments; /* owned array of borrowed texts: words that are not options */
    size_t argument_count;
    struct config config;
    char *environment_text; /* owned: lists from the environment, cut into items */
    size_t environment_used;
};

/* The keys of all commands: a config file serves all of them, so keys of others pass. */
struct option_dictionary {
    bool (*knows)(const void *context, const char *key);
    /* The known key nearest to a mistyped one, or NULL. */
    const char *(*nearest)(const void *context, const char *key);
    const void *context;
};

/* Where values come from. Everything is borrowed until options_release. */
struct option_sources {
    const char *const *words; /* the command line after the command's name */
    size_t word_count;
    const char *(*environment)(const char *name); /* getenv, or a test's; NULL: none */
    const char *config_path;                      /* read when it exists; NULL: none */
    const struct option_dictionary *dictionary;   /* NULL: only these tables */
};

/*
 * Fills options from the tables (a name must be in one only). A table with an option "config" lets
 * the user name another config file, which must then exist. arguments is the usage text of the
 * command's arguments: "BUNDLE...", "KEY [FILE]", or NULL for none; their number is checked. With
 * a "help" flag given, nothing needs to be complete.
 *
 * All refusals are STATUS_USAGE with one line. On failure options is released.
 */
MUST_CHECK enum status options_parse(struct options *options, struct error *error,
                                     const struct option_table *tables, size_t table_count,
                                     const char *arguments, const struct option_sources *sources);

void options_release(struct options *options);

/* As if it were given on the command line: the value of a text option, or one more of a list. text
 * is borrowed. STATUS_OVER_LIMIT: the lists are full. */
MUST_CHECK enum status options_set(struct options *options, const char *name, const char *text,
                                   struct error *error);

/* A name that is in no table, or of another kind, is a bug and asserts. */
const struct option_spec *options_spec(const struct options *options, const char *name);
bool options_given(const struct options *options, const char *name);   /* not from the fallback */
bool options_flagged(const struct options *options, const char *name); /* on the command line */
bool options_flag(const struct options *options, const char *name);
const char *options_text(const struct options *options, const char *name); /* NULL: unset */
uint64_t options_number(const struct options *options, const char *name);  /* 0: unset */
double options_real(const struct options *options, const char *name);
size_t options_list_count(const struct options *options, const char *name);
const char *options_list_item(const struct options *options, const char *name, size_t index);
/* The first item of a list; NULL: there is none. */
const char *options_list_first(const struct options *options, const char *name);
/* All items of a list, in the order given. Returns how many there are. */
size_t options_list(const char *items[OPTION_LIST_MAX], const struct options *options,
                    const char *name);

/* "data-root" to "LOCKSTEP_DATA_ROOT". name_size of at least OPTION_NAME_MAX + 10 always fits. */
void options_environment_name(char *name, size_t name_size, const char *option);

/* The words of an arguments text that must be given, and those that may be. */
void options_count_arguments(size_t *least, size_t *most, const char *arguments);

#endif /* BASE_CLI_OPTIONS_H */
