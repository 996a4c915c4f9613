/* command.c - see command.h. */
#include "base/cli/command.h"

#include <stdarg.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

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
    case STATUS_RANK_LOST:
        return COMMAND_RANK_LOST;
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
    failure = json_pack("{s:o, s:i}", "error", failure, "exit", code);
    if (failure == NULL || json_dumpf(failure, context->out, JSON_COMPACT) != 0 ||
        fputc('\n', context->out) == EOF) {
        fprintf(stderr, "lockstep: cannot write the failure as JSON\n");
    }
    json_decref(failure);
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

/* As one line of JSON. */
static void write_facts(struct buffer *text, const struct sheet *sheet)
{
    sheet_json_write(text, sheet);
    buffer_add_text(text, "\n");
}

int command_show(struct command_context *context, struct sheet *sheet)
{
    int code = COMMAND_OK;
    struct buffer text;
    struct error error;

    error_init(&error);
    buffer_init(&text, SHEET_SIZE_MAX);
    if (context->json) {
        write_facts(&text, sheet);
    } else {
        sheet_text_write(&text, sheet);
    }
    if (sheet_check(sheet, &error) != STATUS_OK ||
        buffer_check(&text, &error, "the result") != STATUS_OK) {
        code = command_fail(context, &error);
    } else if (fwrite(buffer_text(&text), 1, text.size, context->out) != text.size ||
               fflush(context->out) != 0) {
        fprintf(stderr, "lockstep: cannot write the result\n");
        code = COMMAND_UNKNOWN;
    }
    buffer_release(&text);
    sheet_release(sheet);
    return code;
}

int command_say(struct command_context *context, json_t *facts, const char *format, ...)
{
    struct sheet sheet;
    va_list arguments;

    sheet_init(&sheet);
    sheet_merge(&sheet, facts);
    va_start(arguments, format);
    sheet_print_list(&sheet, format, arguments);
    va_end(arguments);
    return command_show(context, &sheet);
}

FILE *command_people(const struct command_context *context)
{
    return context->json ? NULL : context->out;
}

void command_tell(const struct command_context *context, const char *format, ...)
{
    va_list arguments;

    if (!context->json) {
        va_start(arguments, format);
        (void)vfprintf(context->out, format, arguments);
        va_end(arguments);
        (void)fflush(context->out);
    }
}

/* Asks on stderr; is the line that comes on stdin "y" or "yes", in capitals or not? */
static bool is_confirmed(const char *question)
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

bool command_asks(const struct command_context *context)
{
    return !context->json && !options_flag(context->options, "yes");
}

enum status command_confirm(const struct command_context *context, const char *question,
                            struct error *error)
{
    if (!command_asks(context)) {
        return STATUS_OK;
    }
    if (isatty(STDIN_FILENO) != 1) {
        (void)error_set(error, STATUS_USAGE, "nobody is there to confirm it");
        error_advise(error, "--yes does it without a prompt");
        return STATUS_USAGE;
    }
    return is_confirmed(question)
               ? STATUS_OK
               : error_set(error, STATUS_REFUSED, "not confirmed, and nothing was sent");
}
