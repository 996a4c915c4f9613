/* view_table.c - see view_table.h. */
#include "verifier/status/view_table.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

#define CELL_MAX      256
#define HASH_DIGITS   64
#define CELL_WIDE     32 /* longer cells get lines of their own */
#define FACT_NAME_MAX 32

/* "alive_ms" is a name for a program; "alive" is one for people. */
static int plain_length(const char *name)
{
    static const char *const units[] = {"_ms", "_ns", "_s"};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (text_ends_with(name, units[i])) {
            return (int)(strlen(name) - strlen(units[i]));
        }
    }
    return (int)strlen(name);
}

static void plain_name(char plain[CELL_MAX], const char *name)
{
    (void)snprintf(plain, CELL_MAX, "%.*s", plain_length(name), name);
    for (char *at = plain; *at != '\0'; at++) {
        *at = *at == '_' ? ' ' : *at;
    }
}

static void time_text(char text[CELL_MAX], json_int_t seconds)
{
    time_t moment = (time_t)seconds;
    struct tm date;

    if (gmtime_r(&moment, &date) == NULL ||
        strftime(text, CELL_MAX, "%Y-%m-%d %H:%M:%S UTC", &date) == 0) {
        (void)snprintf(text, CELL_MAX, "%" JSON_INTEGER_FORMAT, seconds);
    }
}

static void number_text(char text[CELL_MAX], const char *name, json_int_t number)
{
    if (text_ends_with(name, "_ns")) {
        (void)snprintf(text, CELL_MAX, "%.1f s", (double)number / 1e9);
    } else if (number > 0 && text_ends_with(name, "_ms")) {
        time_text(text, number / 1000);
    } else if (number > 0 && text_ends_with(name, "_s")) {
        time_text(text, number);
    } else {
        (void)snprintf(text, CELL_MAX, "%" JSON_INTEGER_FORMAT, number);
    }
}

/* Cuts at the cell's size; print_long() prints long sentences whole. */
static void cell_text(char text[CELL_MAX], const char *name, const json_t *value)
{
    const char *string = json_string_value(value);

    if (json_is_integer(value)) {
        number_text(text, name, json_integer_value(value));
    } else if (string != NULL && strlen(string) == HASH_DIGITS &&
               strspn(string, "0123456789abcdef") == HASH_DIGITS) {
        (void)snprintf(text, CELL_MAX, "0x%.12s", string);
    } else {
        (void)snprintf(text, CELL_MAX, "%s", string == NULL ? "" : string);
    }
}

struct column {
    const char *name;
    int width;   /* of the widest cell; 0: all are empty */
    bool number; /* set against the right edge */
};

static size_t measure_columns(struct column columns[VIEW_COLUMNS_MAX], const json_t *rows)
{
    size_t count = 0;
    size_t index;
    json_t *row;
    const char *name;
    json_t *value;

    json_object_foreach(json_array_get(rows, 0), name, value)
    {
        if (count < VIEW_COLUMNS_MAX) {
            columns[count++] = (struct column){.name = name};
        }
    }
    json_array_foreach(rows, index, row)
    {
        for (size_t i = 0; i < count; i++) {
            char text[CELL_MAX];
            int width;

            value = json_object_get(row, columns[i].name);
            cell_text(text, columns[i].name, value);
            width = (int)strlen(text);
            columns[i].width = width > columns[i].width ? width : columns[i].width;
            columns[i].number |= json_is_integer(value);
        }
    }
    for (size_t i = 0; i < count; i++) {
        int least = plain_length(columns[i].name);

        if (columns[i].width > 0 && columns[i].width <= CELL_WIDE && columns[i].width < least) {
            columns[i].width = least;
        }
    }
    return count;
}

static bool is_short(const struct column *column)
{
    return column->width > 0 && column->width <= CELL_WIDE;
}

/* One line of cells; the last one is not filled up. */
static void print_line(FILE *out, const struct column *columns, size_t count, const json_t *row)
{
    char line[VIEW_COLUMNS_MAX * (CELL_WIDE + 4)] = "";
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        char text[CELL_MAX];

        if (!is_short(&columns[i])) {
            continue;
        }
        if (row == NULL) {
            plain_name(text, columns[i].name);
        } else {
            cell_text(text, columns[i].name, json_object_get(row, columns[i].name));
        }
        used += (size_t)snprintf(line + used, sizeof(line) - used,
                                 columns[i].number ? "  %*s" : "  %-*s", columns[i].width, text);
    }
    while (used > 0 && line[used - 1] == ' ') {
        line[--used] = '\0';
    }
    (void)fprintf(out, "%s\n", line);
}

static void print_long(FILE *out, const struct column *columns, size_t count, const json_t *row)
{
    for (size_t i = 0; i < count; i++) {
        const char *string = json_string_value(json_object_get(row, columns[i].name));

        if (columns[i].width > CELL_WIDE && string != NULL && string[0] != '\0') {
            char name[CELL_MAX];

            plain_name(name, columns[i].name);
            (void)fprintf(out, "      %s: %s\n", name, string);
        }
    }
}

static void print_title(FILE *out, const char *title)
{
    char plain[CELL_MAX];

    plain_name(plain, title);
    (void)fprintf(out, "%s\n", plain);
}

void view_table_print(FILE *out, const char *title, const json_t *rows)
{
    struct column columns[VIEW_COLUMNS_MAX];
    size_t count;
    size_t index;
    json_t *row;

    if (json_array_size(rows) == 0) {
        return;
    }
    count = measure_columns(columns, rows);
    print_title(out, title);
    print_line(out, columns, count, NULL);
    json_array_foreach(rows, index, row)
    {
        print_line(out, columns, count, row);
        print_long(out, columns, count, row);
    }
}

void view_facts_print(FILE *out, const char *title, const json_t *rows)
{
    size_t index;
    json_t *row;

    if (json_array_size(rows) == 0) {
        return;
    }
    print_title(out, title);
    json_array_foreach(rows, index, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));
        const json_t *value = json_object_get(row, "value");
        char plain[CELL_MAX];
        char text[CELL_MAX];

        plain_name(plain, name == NULL ? "" : name);
        cell_text(text, name == NULL ? "" : name, value);
        (void)fprintf(
            out, "  %-15s %s\n", plain,
            json_is_string(value) && strncmp(text, "0x", 2) != 0 ? json_string_value(value) : text);
    }
}
