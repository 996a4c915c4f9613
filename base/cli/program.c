/* program.c - see program.h. */
#include "base/cli/program.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cli/completion.h"
#include "base/cli/doctor.h"
#include "base/cli/help.h"
#include "base/cli/renamed.h"
#include "base/cli/suggest.h"
#include "base/io/file.h"
#include "base/version.h"

/* ---- finding a command
 * ---------------------------------------------------------------------------- */

static const struct command_group *find_group(const struct command_context *context,
                                              const char *name)
{
    for (size_t i = 0; i < context->group_count; i++) {
        if (context->groups[i]->name != NULL && strcmp(context->groups[i]->name, name) == 0) {
            return context->groups[i];
        }
    }
    return NULL;
}

static const struct command *find_command(const struct command_group *group, const char *name)
{
    for (size_t i = 0; i < group->command_count; i++) {
        if (strcmp(group->commands[i].name, name) == 0) {
            return &group->commands[i];
        }
    }
    return NULL;
}

/* A command directly below lockstep, as "doctor". */
static bool find_top(struct command_context *context, const char *name)
{
    for (size_t i = 0; i < context->group_count; i++) {
        const struct command_group *group = context->groups[i];
        const struct command *command = group->name == NULL ? find_command(group, name) : NULL;

        if (command != NULL) {
            context->group = group;
            context->command = command;
            return true;
        }
    }
    return false;
}

static int unknown_word(struct command_context *context, const struct command_group *inside,
                        const char *word)
{
    struct suggestion suggestion;

    suggestion_init(&suggestion, word);
    for (size_t i = 0; i < context->group_count; i++) {
        const struct command_group *group = context->groups[i];

        if (inside == NULL && group->name != NULL) {
            suggestion_consider(&suggestion, group->name);
        }
        for (size_t j = 0; j < group->command_count; j++) {
            if (group == inside || (inside == NULL && group->name == NULL)) {
                suggestion_consider(&suggestion, group->commands[j].name);
            }
        }
    }
    context->group = inside;
    if (suggestion.best != NULL) {
        return command_usage(context, "unknown command '%.60s' (did you mean '%s'?)", word,
                             suggestion.best);
    }
    return command_usage(context, "unknown command '%.60s' (see: lockstep %s)", word,
                         inside == NULL ? "help" : "help COMMAND");
}

/* ---- help ------------------------------------------------------------------------------- */

static void write_completion(const struct command_context *context, const char *shell)
{
    if (strcmp(shell, "zsh") == 0) {
        completion_zsh(context->out, context->groups, context->group_count);
    } else if (strcmp(shell, "fish") == 0) {
        completion_fish(context->out, context->groups, context->group_count);
    } else {
        completion_bash(context->out, context->groups, context->group_count);
    }
}

/* command NULL: the page of the whole program. */
static enum status write_page(const struct command_context *context, const char *folder,
                              const struct command_group *group, const struct command *command,
                              struct error *error)
{
    char name[HELP_PAGE_NAME_MAX] = "lockstep";
    char file[HELP_PAGE_NAME_MAX + 4];
    char path[FILE_PATH_MAX];
    FILE *page;

    if (command != NULL) {
        help_man_name(name, group, command);
    }
    (void)snprintf(file, sizeof(file), "%s.1", name);
    TRY(file_path_join(path, sizeof(path), error, folder, file));
    page = fopen(path, "we");
    if (page == NULL) {
        return error_set_errno(error, "cannot write %s", path);
    }
    if (command == NULL) {
        help_man(page, context->groups, context->group_count);
    } else {
        help_man_command(page, group, command);
    }
    return fclose(page) == 0 ? STATUS_OK : error_set_errno(error, "cannot write %s", path);
}

static enum status write_pages(const struct command_context *context, const char *folder,
                               struct error *error)
{
    TRY(write_page(context, folder, NULL, NULL, error));
    for (size_t i = 0; i < context->group_count; i++) {
        const struct command_group *group = context->groups[i];

        for (size_t j = 0; j < group->command_count; j++) {
            TRY(write_page(context, folder, group, &group->commands[j], error));
        }
    }
    return STATUS_OK;
}

/* "--help all", "help job new all" */
static bool wants_all(const struct options *options)
{
    return options->argument_count > 0 &&
           strcmp(options->arguments[options->argument_count - 1], "all") == 0;
}

/* lockstep help [WORD [WORD [all]]] */
static int run_help(struct command_context *context)
{
    const struct options *options = context->options;
    struct command_context topic = *context;
    struct error error;

    if (options_flag(options, "man")) {
        help_man(context->out, context->groups, context->group_count);
    } else if (options_text(options, "man-to") != NULL) {
        error_init(&error);
        if (write_pages(context, options_text(options, "man-to"), &error) != STATUS_OK) {
            return command_fail(context, &error);
        }
    } else if (options_flag(options, "completion")) {
        write_completion(context, options_text(options, "shell"));
    } else if (options->argument_count == 0) {
        help_program(context->out, context->groups, context->group_count);
    } else if (find_top(&topic, options->arguments[0])) {
        help_command(context->out, topic.group, topic.command, wants_all(options));
    } else {
        const struct command_group *group = find_group(context, options->arguments[0]);

        if (group == NULL) {
            return unknown_word(context, NULL, options->arguments[0]);
        }
        if (options->argument_count == 1) {
            help_group(context->out, group);
        } else if (find_command(group, options->arguments[1]) == NULL) {
            return unknown_word(context, group, options->arguments[1]);
        } else {
            help_command(context->out, group, find_command(group, options->arguments[1]),
                         wants_all(options));
        }
    }
    return COMMAND_OK;
}

static const struct option_spec help_options[] = {
    {.name = "man",
     .kind = OPTION_FLAG,
     .help = "write the manual page, as roff source",
     .command_line_only = true},
    {.name = "man-to",
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "write all manual pages into a folder: the program's, and one for each command",
     .command_line_only = true},
    {.name = "completion",
     .kind = OPTION_FLAG,
     .help = "write the completion script of a shell",
     .command_line_only = true},
    {.name = "shell",
     .kind = OPTION_CHOICE,
     .value = "SHELL",
     .choices = "bash|zsh|fish",
     .fallback = "bash",
     .help = "which shell",
     .command_line_only = true},
};

static const struct command commands[] = {
    {.name = "help",
     .summary = "what the commands are, or what one of them does",
     .arguments = "[COMMAND] [SUBCOMMAND] [all]",
     .example = "lockstep help doctor\nlockstep help job new all\n"
                "lockstep help --man | man -l -",
     .options = help_options,
     .option_count = sizeof(help_options) / sizeof(help_options[0]),
     .run = run_help,
     .without_config = true},
    {.name = "doctor",
     .summary = "is this machine fit, and for what",
     .description = "Looks at this machine and says what works, what is missing and what to do "
                    "about it. Changes nothing, and asks only the ledger that the config file or "
                    "the environment names, for its newest block. Exit code 1 when something that "
                    "commands need is broken.",
     .example = "lockstep doctor\nlockstep doctor --json",
     .run = doctor_run},
};

const struct command_group program_commands = {
    .commands = commands,
    .command_count = sizeof(commands) / sizeof(commands[0]),
    .checks = doctor_checks,
    .check_count = DOCTOR_CHECK_COUNT,
};

/* ---- the config file's keys ------------------------------------------------------------- */

/* Visits every key that a config file may hold; stops when visit says so. */
static bool each_key(const struct command_context *context,
                     bool (*visit)(void *state, const char *key), void *state)
{
    for (size_t i = 0; i < context->group_count; i++) {
        for (size_t j = 0; j < context->groups[i]->command_count; j++) {
            const struct command *command = &context->groups[i]->commands[j];

            for (size_t k = 0; k < command->option_count; k++) {
                if (!command->options[k].command_line_only &&
                    visit(state, command->options[k].name)) {
                    return true;
                }
            }
        }
    }
    return false;
}

static bool visit_equal(void *state, const char *key)
{
    return strcmp(*(const char **)state, key) == 0;
}

static bool visit_consider(void *state, const char *key)
{
    suggestion_consider(state, key);
    return false;
}

static bool knows_key(const void *context, const char *key)
{
    return each_key(context, visit_equal, &key);
}

static const char *nearest_key(const void *context, const char *key)
{
    struct suggestion suggestion;

    suggestion_init(&suggestion, key);
    (void)each_key(context, visit_consider, &suggestion);
    return suggestion.best;
}

/* ---- running ---------------------------------------------------------------------------- */

static const char *environment_value(const char *name)
{
    return getenv(name);
}

static int run_with_options(struct command_context *context, struct options *options)
{
    enum log_level level = LOG_LEVEL_INFO;

    (void)log_level_parse(&level, options_text(options, "log-level"));
    log_init(context->log, stderr, level,
             strcmp(options_text(options, "log-format"), "json") == 0 ? LOG_FORMAT_JSON
                                                                      : LOG_FORMAT_PLAIN);
    context->options = options;
    context->json = options_flag(options, "json");
    if (options_flag(options, "help")) {
        help_command(context->out, context->group, context->command, wants_all(options));
        return COMMAND_OK;
    }
    return context->command->run(context);
}

static int run_command(struct command_context *context, const char *const *words, size_t word_count)
{
    const struct option_table tables[] = {
        {context->command->options, context->command->option_count}, command_common_options};
    const struct option_dictionary dictionary = {knows_key, nearest_key, context};
    struct option_sources sources = {.words = words,
                                     .word_count = word_count,
                                     .environment = environment_value,
                                     .dictionary = &dictionary};
    char config_path[FILE_PATH_MAX];
    struct options *options = calloc(1, sizeof(*options));
    struct error error;
    int code;

    error_init(&error);
    if (options == NULL) {
        return command_usage(context, "out of memory");
    }
    /* Without a home folder there is no config file, and the command still runs. */
    if (!context->command->without_config && file_place(config_path, sizeof(config_path), NULL,
                                                        FILE_PLACE_CONFIG, "config") == STATUS_OK) {
        sources.config_path = config_path;
    }
    if (options_parse(options, &error, tables, 2, context->command->arguments, &sources) !=
        STATUS_OK) {
        code = command_fail(context, &error);
    } else {
        code = run_with_options(context, options);
        options_release(options);
    }
    free(options);
    return code;
}

static int run_words(struct command_context *context, const char *const *words, size_t word_count)
{
    const struct command_group *group;
    const char *now;

    if (word_count == 0) {
        return command_usage(context, "which command? (see: lockstep help)");
    }
    if (strcmp(words[0], "--version") == 0) {
        return command_say(context, json_pack("{s:s}", "version", LOCKSTEP_VERSION),
                           "lockstep %s\n", LOCKSTEP_VERSION);
    }
    if (strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0) {
        help_program(context->out, context->groups, context->group_count);
        return COMMAND_OK;
    }
    /* A command of the first level stands where a group would: it has no second word. */
    if (find_top(context, words[0])) {
        return run_command(context, words + 1, word_count - 1);
    }
    group = find_group(context, words[0]);
    if (group == NULL) {
        return unknown_word(context, NULL, words[0]);
    }
    context->group = group;
    if (word_count == 1) {
        return command_usage(context, "which command? (see: lockstep help %s)", group->name);
    }
    if (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0) {
        help_group(context->out, group);
        return COMMAND_OK;
    }
    now = renamed_command(group->name, words[1], word_count > 2 ? words[2] : NULL);
    if (now != NULL) {
        return command_usage(context, "'%s %s' is now '%s'", group->name, words[1], now);
    }
    context->command = find_command(group, words[1]);
    if (context->command == NULL) {
        return unknown_word(context, group, words[1]);
    }
    return run_command(context, words + 2, word_count - 2);
}

/* Errors of the command line itself must be JSON too, before the options are read. */
static bool wants_json(const char *const *words, size_t word_count)
{
    const char *set = getenv("LOCKSTEP_JSON");

    for (size_t i = 0; i < word_count && strcmp(words[i], "--") != 0; i++) {
        if (strcmp(words[i], "--json") == 0 || strcmp(words[i], "--json=true") == 0) {
            return true;
        }
    }
    return set != NULL && strcmp(set, "true") == 0;
}

/* A reader such as head stops early: that is no error. */
static bool reader_is_gone(int descriptor)
{
    struct pollfd watched = {.fd = descriptor, .events = POLLOUT};

    return poll(&watched, 1, 0) == 1 && (watched.revents & POLLERR) != 0;
}

int program_main(const struct command_group *const *groups, size_t group_count, int argc,
                 char **argv)
{
    size_t word_count = argc > 1 ? (size_t)argc - 1 : 0;
    const char *const *words = word_count > 0 ? (const char *const *)argv + 1 : NULL;
    struct log log;
    struct command_context context = {
        .log = &log,
        .groups = groups,
        .group_count = group_count,
        .out = stdout,
        .json = wants_json(words, word_count),
    };
    int code;

    log_init(&log, stderr, LOG_LEVEL_INFO, LOG_FORMAT_PLAIN);
    /* This process holds keys: no core file. */
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    /* When a reader goes away, write() fails; the process goes on. */
    (void)signal(SIGPIPE, SIG_IGN);
    /* The same for a file at its size limit (ulimit -f). */
    (void)signal(SIGXFSZ, SIG_IGN);
    /* Who started us may ignore it, and we inherit that: then no child's end would be told. */
    (void)signal(SIGCHLD, SIG_DFL);
    code = run_words(&context, words, word_count);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (!reader_is_gone(fileno(stdout))) {
            fprintf(stderr, "lockstep: cannot write to stdout\n");
        }
        return code == COMMAND_OK ? COMMAND_UNKNOWN : code;
    }
    return code;
}
