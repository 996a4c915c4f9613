/* command.c - see command.h. */
#include "base/cli/command.h"

#include <stdarg.h>
#include <string.h>
#include <strings.h>

#define NAME_TEXT_MAX 128

static const struct option_spec common_specs[] = {
    {.name = "help",
     .kind = OPTION_FLAG,
     .help = "show help for this command; --help all: with all of its options",
     .command_line_only = true},
    {.name = "json", .kind = OPTION_FLAG, .help = "results and errors as JSON on stdout"},
    {.name = "config", .kind = OPTION_TEXT, .value = "PATH", .help = "read this config file"},
    {.name = "log-level",
     .kind = OPTION_CHOICE,
     .value = "LEVEL",
     .choices = "error|warn|info|debug",
     .fallback = "info",
     .help = "how much to log on stderr"},
    {.name = "log-format",
     .kind = OPTION_CHOICE,
     .value = "FORMAT",
     .choices = "plain|json",
     .fallback = "plain",
     .help = "how log lines look"},
};

const struct option_table command_common_options = {common_specs,
                                                    sizeof(common_specs) / sizeof(common_specs[0])};

/* ---- failures and results -------------------------------------------------------------- */

enum command_exit command_exit_of(enum status status)
{
    switch (status) {
    case STATUS_OK:
        return COMMAND_OK;
    case STATUS_USAGE:
    case STATUS_NOT_FOUND:
        return COMMAND_USAGE;
    case STATUS_REFUSED:
    case STATUS_BAD_FORMAT:
    case STATUS_OVER_LIMIT:
        return COMMAND_REFUSED;
    case STATUS_NO_MEMORY:
    case STATUS_IO:
    case STATUS_GONE:
    case STATUS_UNREACHABLE:
    case STATUS_DEVICE:
    case STATUS_STOPPED:
        return COMMAND_UNKNOWN;
    }
    return COMMAND_UNKNOWN;
}

static void context_name(char name[NAME_TEXT_MAX], const struct command_context *context)
{
    const char *group = context->group == NULL ? NULL : context->group->name;
    const char *command = context->command == NULL ? NULL : context->command->name;

    snprintf(name, NAME_TEXT_MAX, "lockstep%s%s%s%s", group == NULL ? "" : " ",
             group == NULL ? "" : group, command == NULL ? "" : " ",
             command == NULL ? "" : command);
}

static int fail_in_json(struct command_context *context, const struct error *error, int code)
{
    /* An error may quote strangers: make it UTF-8 without control characters first. */
    char text[ERROR_TEXT_MAX * 6];
    char advice[ERROR_ADVICE_MAX * 6];
    char name[NAME_TEXT_MAX];
    json_t *failure;

    context_name(name, context);
    log_escape(text, sizeof(text), error->text, 0);
    log_escape(advice, sizeof(advice), error->advice, 0);
    failure = json_pack("{s:s, s:s, s:s}", "status", status_name(error->status), "message", text,
                        "command", name);
    if (failure != NULL && advice[0] != '\0') {
        json_object_set_new(failure, "advice", json_string(advice));
    }
    (void)command_emit(context, json_pack("{s:o, s:i}", "error", failure, "exit", code));
    return code;
}

int command_fail(struct command_context *context, const struct error *error)
{
    int code = command_exit_of(error->status);
    char text[ERROR_TEXT_MAX * 6];
    char name[NAME_TEXT_MAX];

    if (context->json) {
        return fail_in_json(context, error, code);
    }
    context_name(name, context);
    log_escape(text, sizeof(text), error->text, 0);
    fprintf(stderr, "%s: %s\n", name, text);
    if (error->advice[0] != '\0') {
        log_escape(text, sizeof(text), error->advice, 0);
        fprintf(stderr, "  try: %s\n", text);
    }
    return code;
}

int command_usage(struct command_context *context, const char *format, ...)
{
    char text[ERROR_TEXT_MAX];
    struct error error;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    error_init(&error);
    (void)error_set(&error, STATUS_USAGE, "%s", text);
    return command_fail(context, &error);
}

int command_emit(struct command_context *context, json_t *result)
{
    int failed = result == NULL || json_dumpf(result, context->out, JSON_COMPACT) != 0 ||
                 fputc('\n', context->out) == EOF;

    json_decref(result);
    if (failed) {
        fprintf(stderr, "lockstep: cannot write the result as JSON\n");
        return COMMAND_UNKNOWN;
    }
    return COMMAND_OK;
}

bool command_confirms(const char *question)
{
    char answer[8] = "";

    (void)fprintf(stderr, "%s [y/N] ", question);
    (void)fflush(stderr);
    if (fgets(answer, sizeof(answer), stdin) == NULL) {
        return false;
    }
    answer[strcspn(answer, "\r\n")] = '\0';
    return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}
