/* help.c - see help.h. */
#include "base/cli/help.h"

#include <ctype.h>
#include <string.h>

#include "base/version.h"

#define LEFT_COLUMN 26
#define NAME_COLUMN 12 /* of groups */
#define SUMMARY_MAX 200
#define SHORT_MAX   12 /* so many options need no shorter list */
#define LEFT_MAX    (2 * OPTION_NAME_MAX + 64)

static const char tagline[] = "training that can be checked, step by step and bit by bit";

/* ---- plain text ------------------------------------------------------------------------- */

/* Writes words of text from column on, with later lines indented to the same column. */
static void write_wrapped(FILE *out, const char *text, size_t indent, size_t column)
{
    while (*text != '\0') {
        size_t length = strcspn(text, " ");

        if (column > indent && column + 1 + length > HELP_COLUMNS) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', out);
            column++;
        }
        fwrite(text, 1, length, out);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

/* "  left      right", the right side wrapped in its own column, which begins at indent. */
static void write_entry_at(FILE *out, size_t indent, const char *left, const char *right)
{
    size_t column = strlen(left) + 2;

    fprintf(out, "  %s", left);
    if (column + 2 > indent) {
        fputc('\n', out);
        column = 0;
    }
    fprintf(out, "%*s", (int)(indent - column), "");
    write_wrapped(out, right, indent, indent);
}

static void write_entry(FILE *out, const char *left, const char *right)
{
    write_entry_at(out, LEFT_COLUMN, left, right);
}

static void option_left(char left[LEFT_MAX], const struct option_spec *spec)
{
    if (spec->kind == OPTION_FLAG) {
        snprintf(left, LEFT_MAX, "--%s", spec->name);
    } else if (spec->value == NULL && spec->kind == OPTION_CHOICE) {
        snprintf(left, LEFT_MAX, "--%s %s", spec->name, spec->choices);
    } else {
        snprintf(left, LEFT_MAX, "--%s %s", spec->name,
                 spec->value == NULL ? "VALUE" : spec->value);
    }
}

/* What help says of an option beside its sentence: choices, default, that it must be given. */
static void option_right(char *right, size_t size, const struct option_spec *spec)
{
    bool shown = spec->kind == OPTION_CHOICE && spec->value != NULL;

    snprintf(right, size, "%s%s%s%s%s%s%s%s%s", spec->help, shown ? ": " : "",
             shown ? spec->choices : "", spec->kind == OPTION_LIST ? " (may be repeated)" : "",
             spec->required ? " (required)" : "", spec->fallback == NULL ? "" : " (default ",
             spec->fallback == NULL ? "" : spec->fallback, spec->fallback == NULL ? "" : ")", "");
}

static void write_option(FILE *out, const struct option_spec *spec)
{
    char left[LEFT_MAX];
    char right[1024];

    option_left(left, spec);
    option_right(right, sizeof(right), spec);
    write_entry(out, left, right);
}

static bool same_heading(const struct option_spec *a, const struct option_spec *b)
{
    return a->heading == b->heading ||
           (a->heading != NULL && b->heading != NULL && strcmp(a->heading, b->heading) == 0);
}

/* "Held-out:"; options without a heading stand under "Options:". */
static void write_heading(FILE *out, const struct option_spec *spec)
{
    const char *heading = spec->heading == NULL ? "options" : spec->heading;

    fprintf(out, "\n%c%s:\n", toupper((unsigned char)heading[0]), heading + 1);
}

/* The options under their headings, which come in the order of their first options. Returns how
 * many were left out. */
static size_t write_options(FILE *out, const struct command *command, bool all)
{
    const struct option_spec *specs = command->options;
    size_t left_out = 0;

    for (size_t i = 0; i < command->option_count; i++) {
        bool is_new = true;
        bool is_shown = false;

        for (size_t j = 0; j < i && is_new; j++) {
            is_new = !same_heading(&specs[j], &specs[i]);
        }
        for (size_t j = i; j < command->option_count && is_new; j++) {
            if (!same_heading(&specs[j], &specs[i])) {
                continue;
            }
            if (!all && !specs[j].often) {
                left_out++;
                continue;
            }
            if (!is_shown) {
                write_heading(out, &specs[i]);
                is_shown = true;
            }
            write_option(out, &specs[j]);
        }
    }
    return left_out;
}

/* A command with few options, or one that marks none, shows all. */
static bool is_short(const struct command *command)
{
    size_t often = 0;

    for (size_t i = 0; i < command->option_count; i++) {
        often += command->options[i].often;
    }
    return command->option_count <= SHORT_MAX || often == 0;
}

static void write_common_options(FILE *out)
{
    fputs("\nOptions of every command:\n", out);
    for (size_t i = 0; i < command_common_options.count; i++) {
        write_option(out, &command_common_options.specs[i]);
    }
}

static void write_command_name(FILE *out, const struct command_group *group,
                               const struct command *command)
{
    fprintf(out, "lockstep %s%s%s", group->name == NULL ? "" : group->name,
            group->name == NULL ? "" : " ", command->name);
}

/* Every line of example, indented. */
static void write_example(FILE *out, const char *example)
{
    while (*example != '\0') {
        size_t length = strcspn(example, "\n");

        fprintf(out, "  %.*s\n", (int)length, example);
        example += length + (example[length] == '\n');
    }
}

/* What a command does, as a sentence: a summary has neither a capital nor a full stop. */
static void write_summary(FILE *out, const char *summary)
{
    char sentence[SUMMARY_MAX];

    (void)snprintf(sentence, sizeof(sentence), "%c%s.", toupper((unsigned char)summary[0]),
                   summary + 1);
    write_wrapped(out, sentence, 0, 0);
}

static bool has_kind(const struct command *command, enum option_kind kind)
{
    for (size_t i = 0; i < command->option_count; i++) {
        if (command->options[i].kind == kind) {
            return true;
        }
    }
    return false;
}

static bool has_value(const struct command *command, const char *value)
{
    for (size_t i = 0; i < command->option_count; i++) {
        if (command->options[i].value != NULL && strcmp(command->options[i].value, value) == 0) {
            return true;
        }
    }
    return false;
}

/* How the values are written that the options of the command name. */
static void write_units(FILE *out, const struct command *command)
{
    if (has_kind(command, OPTION_DURATION)) {
        write_wrapped(out, "TIME is such as 90s, 15m, 24h or 7d; a bare number is seconds.", 0, 0);
    }
    if (has_kind(command, OPTION_SIZE)) {
        write_wrapped(out, "BYTES are such as 4096, 64k, 512M, 2G or 1T, by powers of 1024.", 0, 0);
    }
    if (has_value(command, "AMOUNT")) {
        write_wrapped(out, "AMOUNT is such as 0.5eth, 20gwei or 1000wei; a bare number is wei.", 0,
                      0);
    }
}

void help_command(FILE *out, const struct command_group *group, const struct command *command,
                  bool all)
{
    size_t left_out;

    fputs("Usage: ", out);
    write_command_name(out, group, command);
    fprintf(out, " [OPTION...]%s%s\n\n", command->arguments == NULL ? "" : " ",
            command->arguments == NULL ? "" : command->arguments);
    write_summary(out, command->summary);
    if (command->description != NULL) {
        fputc('\n', out);
        write_wrapped(out, command->description, 0, 0);
    }
    left_out = write_options(out, command, all || is_short(command));
    if (left_out > 0) {
        fprintf(out, "\n%zu more options: ", left_out);
        write_command_name(out, group, command);
        fputs(" --help all\n", out);
    }
    write_common_options(out);
    fputc('\n', out);
    write_wrapped(out,
                  "A flag --some-name can also be set as LOCKSTEP_SOME_NAME in the environment or "
                  "as some-name=... in the config file; flags come first.",
                  0, 0);
    write_units(out, command);
    if (command->example != NULL) {
        fputs("\nExample:\n", out);
        write_example(out, command->example);
    }
}

void help_group(FILE *out, const struct command_group *group)
{
    fprintf(out, "Usage: lockstep %s COMMAND\n\n", group->name);
    write_wrapped(out, group->summary, 0, 0);
    fputs("\nCommands:\n", out);
    for (size_t i = 0; i < group->command_count; i++) {
        write_entry(out, group->commands[i].name, group->commands[i].summary);
    }
    fprintf(out, "\n\"lockstep %s COMMAND --help\" tells more.\n", group->name);
}

/* "wallet    new | list | ..." */
static void write_group_line(FILE *out, const struct command_group *group)
{
    char names[1024] = "";
    size_t used = 0;

    for (size_t i = 0; i < group->command_count && used < sizeof(names); i++) {
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i == 0 ? "" : " | ",
                                 group->commands[i].name);
    }
    write_entry_at(out, NAME_COLUMN, group->name, names);
}

void help_program(FILE *out, const struct command_group *const *groups, size_t group_count)
{
    fprintf(out, "Lockstep %s: %s.\n\nUsage: lockstep COMMAND\n\n", LOCKSTEP_VERSION, tagline);
    for (size_t i = 0; i < group_count; i++) {
        if (groups[i]->name != NULL) {
            write_group_line(out, groups[i]);
        }
    }
    for (size_t i = 0; i < group_count; i++) {
        for (size_t j = 0; groups[i]->name == NULL && j < groups[i]->command_count; j++) {
            write_entry_at(out, NAME_COLUMN, groups[i]->commands[j].name,
                           groups[i]->commands[j].summary);
        }
    }
    fputs(
        "\n\"lockstep COMMAND --help\" tells more. Exit codes: 0 ok, 1 refused or refuted,\n"
        "2 cannot tell or cannot reach, 3 usage, 4 a training diverged, 5 a rank of one is gone.\n",
        out);
}

/* ---- the manual page -------------------------------------------------------------------- */

/* Text for roff: hyphens that may be copied, backslashes, and no line that looks like a request. */
static void write_roff(FILE *out, const char *text)
{
    if (*text == '.' || *text == '\'') {
        fputs("\\&", out);
    }
    for (; *text != '\0'; text++) {
        if (*text == '-') {
            fputs("\\-", out);
        } else if (*text == '\\') {
            fputs("\\e", out);
        } else {
            fputc(*text, out);
            if (*text == '\n' && (text[1] == '.' || text[1] == '\'')) {
                fputs("\\&", out);
            }
        }
    }
}

static void write_roff_options(FILE *out, const struct option_spec *specs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char left[LEFT_MAX];
        char right[1024];

        option_left(left, &specs[i]);
        option_right(right, sizeof(right), &specs[i]);
        fputs(".TP\n.B ", out);
        write_roff(out, left);
        fputc('\n', out);
        write_roff(out, right);
        fputs(".\n", out);
    }
}

static void write_roff_command(FILE *out, const struct command_group *group,
                               const struct command *command)
{
    fputs(".SS ", out);
    write_command_name(out, group, command);
    fputs(command->arguments == NULL ? "" : " ", out);
    write_roff(out, command->arguments == NULL ? "" : command->arguments);
    fputc('\n', out);
    write_roff(out, command->description == NULL ? command->summary : command->description);
    fputs(command->description == NULL ? ".\n" : "\n", out);
    write_roff_options(out, command->options, command->option_count);
    if (command->example != NULL) {
        fputs(".PP\nExample:\n.PP\n.nf\n", out);
        write_roff(out, command->example);
        fputs("\n.fi\n", out);
    }
}

static void write_roff_settings(FILE *out)
{
    fputs(".SH SETTINGS\n"
          "A flag \\-\\-some\\-name can also be given as the environment variable\n"
          ".B LOCKSTEP_SOME_NAME\n"
          "or as a line\n"
          ".B some\\-name=value\n"
          "of the config file. Flags come first, then the environment, then the file.\n"
          "An unknown key in the file is an error.\n"
          ".SH FILES\n"
          ".TP\n.I $XDG_CONFIG_HOME/lockstep/config\nthe config file"
          " (~/.config/lockstep/config when the variable is not set).\n"
          ".SH EXIT STATUS\n"
          ".TP\n.B 0\ndone, or proven.\n.TP\n.B 1\nrefused, or refuted.\n"
          ".TP\n.B 2\ncould not tell, or could not reach.\n.TP\n.B 3\nwrong usage.\n"
          ".TP\n.B 4\na training diverged.\n",
          out);
}

void help_man(FILE *out, const struct command_group *const *groups, size_t group_count)
{
    fprintf(out, ".TH LOCKSTEP 1 \"%s\" \"Lockstep %s\" \"User Commands\"\n", LOCKSTEP_DATE,
            LOCKSTEP_VERSION);
    fprintf(out, ".SH NAME\nlockstep \\- %s\n", tagline);
    fputs(".SH SYNOPSIS\n.B lockstep\n.I COMMAND\n[\\fIOPTION\\fR...] [\\fIARGUMENT\\fR...]\n"
          ".SH COMMANDS\n",
          out);
    for (size_t i = 0; i < group_count; i++) {
        for (size_t j = 0; j < groups[i]->command_count; j++) {
            write_roff_command(out, groups[i], &groups[i]->commands[j]);
        }
    }
    fputs(".SH COMMON OPTIONS\n", out);
    write_roff_options(out, command_common_options.specs, command_common_options.count);
    write_roff_settings(out);
}

void help_man_name(char name[HELP_PAGE_NAME_MAX], const struct command_group *group,
                   const struct command *command)
{
    (void)snprintf(name, HELP_PAGE_NAME_MAX, "lockstep-%s%s%s",
                   group->name == NULL ? "" : group->name, group->name == NULL ? "" : "-",
                   command->name);
}

void help_man_command(FILE *out, const struct command_group *group, const struct command *command)
{
    char name[HELP_PAGE_NAME_MAX];

    help_man_name(name, group, command);
    fputs(".TH ", out);
    write_roff(out, name);
    fprintf(out, " 1 \"%s\" \"Lockstep %s\" \"User Commands\"\n.SH NAME\n", LOCKSTEP_DATE,
            LOCKSTEP_VERSION);
    write_roff(out, name);
    fputs(" \\- ", out);
    write_roff(out, command->summary);
    fputs("\n.SH SYNOPSIS\n.B ", out);
    write_command_name(out, group, command);
    fputs("\n[\\fIOPTION\\fR...] ", out);
    write_roff(out, command->arguments == NULL ? "" : command->arguments);
    fputs("\n.SH DESCRIPTION\n", out);
    write_roff(out, command->description == NULL ? command->summary : command->description);
    fputs(command->description == NULL ? ".\n" : "\n", out);
    if (command->option_count > 0) {
        fputs(".SH OPTIONS\n", out);
        write_roff_options(out, command->options, command->option_count);
    }
    fputs(".SH COMMON OPTIONS\n", out);
    write_roff_options(out, command_common_options.specs, command_common_options.count);
    if (command->example != NULL) {
        fputs(".SH EXAMPLE\n.nf\n", out);
        write_roff(out, command->example);
        fputs("\n.fi\n", out);
    }
    write_roff_settings(out);
    fputs(".SH SEE ALSO\n.BR lockstep (1)\n", out);
}
