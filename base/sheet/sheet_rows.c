/* sheet_rows.c - see sheet_rows.h. */
#include "base/sheet/sheet_rows.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

#define CELL_MAX    256
#define HASH_DIGITS 64

/* "alive_ms" is a name for a program; "alive" is one for people. */
static int plain_length(const char *name)
{
    static const char *const units[] = {"_ms", "_ns", "_bytes_s", "_s"};

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
    } else if (text_ends_with(name, "_bytes_s")) { /* no time: so many in each second */
        (void)snprintf(text, CELL_MAX, "%.1f MB/s", (double)number / 1e6);
    } else if (number > 0 && text_ends_with(name, "_ms")) {
        time_text(text, number / 1000);
    } else if (number > 0 && text_ends_with(name, "_s")) {
        time_text(text, number);
    } else {
        (void)snprintf(text, CELL_MAX, "%" JSON_INTEGER_FORMAT, number);
    }
}

/* Adds it to the cell or fact that was begun. */
static void add_value(struct sheet *sheet, const char *name, const json_t *value)
{
    const char *string = json_string_value(value);
    char text[CELL_MAX];

    if (json_is_integer(value)) {
        number_text(text, name, json_integer_value(value));
        sheet_words(sheet, SHEET_PLAIN, "%s", text);
    } else if (string != NULL && strlen(string) == HASH_DIGITS &&
               strspn(string, "0123456789abcdef") == HASH_DIGITS) {
        sheet_words(sheet, SHEET_KEY, "0x%s", string);
    } else {
        sheet_words(sheet, SHEET_PLAIN, "%s", string == NULL ? "" : string);
    }
}

static void add_title(struct sheet *sheet, const char *title)
{
    char plain[CELL_MAX];

    plain_name(plain, title);
    sheet_add(sheet, SHEET_SUBHEADING, NULL, "%s", plain);
}

void sheet_rows(struct sheet *sheet, const char *title, const json_t *rows)
{
    json_t *first = json_array_get(rows, 0);
    char plain[CELL_MAX];
    size_t index;
    json_t *row;
    const char *name;
    json_t *value;

    if (first == NULL) {
        return;
    }
    add_title(sheet, title);
    json_object_foreach(first, name, value)
    {
        plain_name(plain, name);
        sheet_add(sheet, SHEET_COLUMN, NULL, "%s", plain);
    }
    json_array_foreach(rows, index, row)
    {
        sheet_begin(sheet, SHEET_ROW, NULL);
        json_object_foreach(first, name, value)
        {
            sheet_begin(sheet, SHEET_WIDE, NULL);
            add_value(sheet, name, json_object_get(row, name));
        }
    }
}

void sheet_row_facts(struct sheet *sheet, const char *title, const json_t *rows)
{
    size_t index;
    json_t *row;

    if (json_array_size(rows) == 0) {
        return;
    }
    add_title(sheet, title);
    json_array_foreach(rows, index, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));
        char plain[CELL_MAX];

        name = name == NULL ? "" : name;
        plain_name(plain, name);
        sheet_begin(sheet, SHEET_FACT, plain);
        add_value(sheet, name, json_object_get(row, "value"));
    }
}
