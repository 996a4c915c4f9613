/* data_show.c - see data_show.h. */
#include "data/commands/data_show.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/rows/manifest.h"
#include "data/text/shown.h"

#define TEXT_MAX ((size_t)1 << 28) /* of a row, as it is shown */

const struct option_spec data_show_options[DATA_SHOW_OPTIONS] = {
    {.name = "row",
     .heading = "data",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "0",
     .help = "the first row that is shown",
     .command_line_only = true},
    {.name = "count",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "3",
     .minimum = 1,
     .maximum = 1000000,
     .help = "how many rows",
     .command_line_only = true},
    {.name = "held",
     .heading = "data",
     .kind = OPTION_FLAG,
     .help = "rows that are held out, not those that are trained on",
     .command_line_only = true},
    {.name = "ids",
     .heading = "data",
     .kind = OPTION_FLAG,
     .help = "tokens as numbers, not as text",
     .command_line_only = true},
    {.name = "tokenizer",
     .heading = "data",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "the tokenizer's folder, where it is no longer where the manifest says"},
};

struct show {
    const struct options *options;
    struct manifest manifest;
    struct tokenizer tokenizer;
    struct row_files files;
    struct packed_row row;
    struct buffer bytes; /* of tokens, before they are printed */
    struct buffer text;
    bool colours;
    bool ids;
};

/* ---- a row as text ---- */

/* What was collected, in the colour of what is learned or not: marks { } where there are none. */
static void flush_bytes(struct show *show, bool learned)
{
    if (show->bytes.size == 0) {
        return;
    }
    buffer_add_text(&show->text,
                    show->colours ? (learned ? "\033[1;32m" : "\033[2m") : (learned ? "{" : ""));
    shown_add(&show->text, show->bytes.data, show->bytes.size);
    buffer_add_text(&show->text, show->colours ? "\033[0m" : (learned ? "}" : ""));
    buffer_clear(&show->bytes);
}

static void add_token(struct show *show, uint32_t at)
{
    if (show->ids) {
        buffer_add_format(&show->bytes, "%s%u", show->bytes.size == 0 ? "" : " ",
                          show->row.tokens[at]);
    } else {
        tokenizer_show(&show->tokenizer, &show->bytes, show->row.tokens[at]);
    }
}

/* Padding is the end where nothing follows but zeros that begin an example each. */
static uint32_t used_of(const struct show *show)
{
    uint32_t used = show->files.shape.length;

    while (used > 0 && show->row.tokens[used - 1] == 0 && show->row.mask[used - 1] == 0 &&
           show->row.reach[used - 1] == 0) {
        used--;
    }
    return used;
}

static void add_row(struct show *show)
{
    const uint32_t used = used_of(show);
    bool learned = false;

    for (uint32_t at = 0; at < used; at++) {
        bool begins = show->row.reach[at] == 0;

        if (begins || (show->row.mask[at] != 0) != learned) {
            flush_bytes(show, learned);
        }
        if (begins && at > 0) {
            buffer_add_text(&show->text, show->colours ? "\033[1;34m|\033[0m" : "|");
        }
        learned = show->row.mask[at] != 0;
        add_token(show, at);
    }
    flush_bytes(show, learned);
    if (used < show->files.shape.length) {
        buffer_add_format(&show->text, "|(%u of padding)", show->files.shape.length - used);
    }
}

/* ---- the command ---- */

static enum status begin_show(struct show *show, struct error *error, const char *folder)
{
    const char *path = options_text(show->options, "tokenizer");
    const bool held = options_flag(show->options, "held");
    size_t length;

    TRY(manifest_read(&show->manifest, error, folder));
    if (held && show->manifest.rows[1] == 0) {
        return error_set(error, STATUS_REFUSED, "%s: no rows are held out", folder);
    }
    TRY(row_files_open(&show->files, error, folder, &show->manifest.shape, held));
    if (!show->ids) {
        TRY(tokenizer_open(&show->tokenizer, error,
                           path == NULL ? show->manifest.options.tokenizer : path));
    }
    length = show->manifest.shape.length;
    show->row.tokens = malloc(length * sizeof(uint32_t));
    show->row.reach = malloc(length * sizeof(uint32_t));
    show->row.mask = malloc(length);
    return show->row.tokens == NULL || show->row.reach == NULL || show->row.mask == NULL
               ? error_set(error, STATUS_NO_MEMORY, "out of memory for a row")
               : STATUS_OK;
}

static json_t *row_json(const struct show *show, uint64_t index)
{
    json_t *tokens = json_array();
    json_t *mask = json_array();
    json_t *reach = json_array();

    for (uint32_t at = 0; at < show->files.shape.length; at++) {
        (void)json_array_append_new(tokens, json_integer(show->row.tokens[at]));
        (void)json_array_append_new(mask, json_integer(show->row.mask[at]));
        (void)json_array_append_new(reach, json_integer(show->row.reach[at]));
    }
    return json_pack("{s:I, s:o, s:o, s:o}", "row", (json_int_t)index, "tokens", tokens, "mask",
                     mask, "reach", reach);
}

static enum status show_rows(struct show *show, struct error *error,
                             struct command_context *context, json_t *list)
{
    const uint64_t first = options_number(show->options, "row");
    const uint64_t count = options_number(show->options, "count");

    if (first >= show->files.rows_there) {
        return error_set(error, STATUS_USAGE, "--row %" PRIu64 ": there are %" PRIu64 " rows",
                         first, show->files.rows_there);
    }
    for (uint64_t i = first; i < show->files.rows_there && i - first < count; i++) {
        TRY(row_files_read(&show->files, error, &show->row, i));
        if (context->json) {
            (void)json_array_append_new(list, row_json(show, i));
            continue;
        }
        buffer_clear(&show->text);
        add_row(show);
        TRY(buffer_check(&show->text, error, "row"));
        fprintf(context->out, "row %" PRIu64 "  %s\n", i, buffer_text(&show->text));
    }
    return STATUS_OK;
}

int data_show_run(struct command_context *context)
{
    struct show show = {.options = context->options};
    struct error error;
    json_t *list = json_array();
    enum status status;
    int code;

    error_init(&error);
    row_files_init(&show.files);
    buffer_init(&show.bytes, TEXT_MAX);
    buffer_init(&show.text, TEXT_MAX);
    /* Colours are for people at a terminal; marks { } say the same in a file, and to those who want
     * none. */
    show.colours = isatty(fileno(context->out)) == 1 && getenv("NO_COLOR") == NULL;
    show.ids = options_flag(context->options, "ids") || context->json;
    TRY_OUT(begin_show(&show, &error, context->options->arguments[0]));
    status = show_rows(&show, &error, context, list);
out:
    free(show.row.tokens);
    free(show.row.reach);
    free(show.row.mask);
    buffer_release(&show.bytes);
    buffer_release(&show.text);
    row_files_close(&show.files);
    tokenizer_release(&show.tokenizer);
    manifest_release(&show.manifest);
    if (status != STATUS_OK) {
        code = command_fail(context, &error);
        json_decref(list);
    } else if (context->json) {
        code = command_emit(context, json_pack("{s:o}", "rows", list));
    } else {
        code = COMMAND_OK;
        json_decref(list);
    }
    return code;
}
