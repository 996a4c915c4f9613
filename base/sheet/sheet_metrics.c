/*
 * sheet_metrics.c - the figures of a sheet in the text format of Prometheus. All else of it is left
 * out.
 */
#include "base/sheet/sheet.h"

/* A label's value: the format escapes backslash, quote and line feed. */
static void add_value(struct buffer *text, const char *value)
{
    for (; *value != '\0'; value++) {
        if (*value == '\\' || *value == '"') {
            buffer_add_u8(text, '\\');
            buffer_add_u8(text, (uint8_t)*value);
        } else if (*value == '\n') {
            buffer_add_text(text, "\\n");
        } else {
            /* Other bytes may be a cut UTF-8 character. */
            buffer_add_u8(text, *value < ' ' || *value > '~' ? '?' : (uint8_t)*value);
        }
    }
}

/* NAME{LABEL="VALUE",...} FIGURE; returns the place behind it. */
static size_t add_sample(struct buffer *text, const struct sheet *sheet, const char *name,
                         size_t at)
{
    const size_t figure = at + 1;
    size_t end = figure + 1;

    buffer_add_text(text, name);
    for (; end < sheet->count && sheet->items[end].kind == SHEET_WORDS; end++) {
        buffer_add_format(text, "%s%s=\"", end == figure + 1 ? "{" : ",",
                          sheet_label_of(sheet, end));
        add_value(text, sheet_words_of(sheet, end));
        buffer_add_text(text, "\"");
    }
    buffer_add_format(text, "%s %s\n", end == figure + 1 ? "" : "}", sheet_words_of(sheet, figure));
    return end;
}

void sheet_metrics_write(struct buffer *text, const struct sheet *sheet)
{
    const char *name = "";
    size_t at = 0;

    if (sheet->words.status != STATUS_OK) { /* a block may lack its words */
        text->status = sheet->words.status;
        return;
    }
    while (at < sheet->count) {
        if (sheet->items[at].kind == SHEET_SAMPLE) {
            at = add_sample(text, sheet, name, at);
            continue;
        }
        if (sheet->items[at].kind == SHEET_METRIC) {
            name = sheet_label_of(sheet, at);
            buffer_add_format(text, "# HELP %s %s\n# TYPE %s %s\n", name,
                              sheet_words_of(sheet, at + 2), name, sheet_words_of(sheet, at + 1));
        }
        at++;
    }
}
