/*
 * command.h - what a command is: every room contributes its commands as a table.
 *
 * A command returns its exit code. command_fail reports a failure, once: as one line on stderr, or
 * with --json as an object on stdout. stdout carries results only.
 */
#ifndef BASE_CLI_COMMAND_H
#define BASE_CLI_COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/cli/options.h"
#include "base/error.h"
#include "base/io/log.h"
#include "base/sheet/sheet.h"

/* The exit codes of every command. */
enum command_exit {
    COMMAND_OK = 0,        /* done; proven */
    COMMAND_REFUSED = 1,   /* refused; refuted */
    COMMAND_UNKNOWN = 2,   /* not known, not reachable, not possible now */
    COMMAND_USAGE = 3,     /* the command line makes no sense */
    COMMAND_DIVERGED = 4,  /* a training was done as agreed, and ended with numbers that are none */
    COMMAND_RANK_LOST = 5, /* a rank of a training is gone: start again with those that are left */
};

struct command_context;

struct command {
    const char *name;
    const char *summary;     /* one line, no full stop */
    const char *description; /* a paragraph for --help and the manual; NULL where summary will do */
    const char *arguments;   /* "BUNDLE...", "KEY [FILE]"; NULL: none. Their number is checked. */
    const char *example;     /* whole command lines, one per line */
    const struct option_spec *options;
    size_t option_count;
    int (*run)(struct command_context *context); /* returns enum command_exit */
    bool without_config;                         /* must work even when the config file is broken */
};

/* What a room can say about this machine; "lockstep doctor" runs the checks of all rooms. */
enum doctor_grade {
    DOCTOR_GOOD,
    DOCTOR_NOTE,   /* works, and the reader should know */
    DOCTOR_BROKEN, /* something that commands need does not work */
};

struct doctor_finding {
    enum doctor_grade grade;
    char text[512];   /* what was found */
    char advice[512]; /* what to do about it; empty where nothing */
};

struct doctor_check {
    const char *name; /* "cpu", "cuda", "wallet" */
    void (*look)(struct doctor_finding *finding, const struct command_context *context);
};

/* The commands below one word, as "lockstep wallet ..."; name NULL: directly below lockstep. */
struct command_group {
    const char *name;
    const char *summary;
    const struct command *commands;
    size_t command_count;
    const struct doctor_check *checks;
    size_t check_count;
};

struct command_context {
    const struct command_group *const *groups;
    size_t group_count;
    const struct command_group *group;
    const struct command *command;
    const struct options *options;
    struct log *log;
    FILE *out; /* results */
    bool json; /* results and errors are JSON objects on out */
};

/* Will command_confirm() ask? Not with --json, and not with --yes. */
bool command_asks(const struct command_context *context);

/* Asks on stderr; "y" or "yes" is taken from stdin, which must be a terminal. */
MUST_CHECK enum status command_confirm(const struct command_context *context, const char *question,
                                       struct error *error);

/* The options that every command has: --help, --json, --config, --log-level, --log-format. */
extern const struct option_table command_common_options;

/* Reports the failure and returns the exit code that fits its status. */
int command_fail(struct command_context *context, const struct error *error);

/* A usage error found by the command itself: one line, exit code 3. */
int command_usage(struct command_context *context, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * What --json says is known to these alone (scripts/check-house). A command makes a sheet
 * (base/sheet/sheet.h) of its result: facts for programs, text for people.
 */

/* Writes the sheet's facts as one line of JSON, or its text. Releases the sheet. */
int command_show(struct command_context *context, struct sheet *sheet);

/* The same of facts and a few lines; takes the reference. NULL is reported as out of memory. */
int command_say(struct command_context *context, json_t *facts, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes a line for people at once, before the result: how work goes on. Nothing with --json. */
void command_tell(const struct command_context *context, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Where people read results; NULL with --json: for what draws on a terminal. */
FILE *command_people(const struct command_context *context);

enum command_exit command_exit_of(enum status status);

#endif /* BASE_CLI_COMMAND_H */
