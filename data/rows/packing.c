/* packing.c - see packing.h. */
#include "data/rows/packing.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/steady.h"
#include "base/text.h"
#include "data/text/utf8.h"

#define LOOKED_EVERY 256 /* examples between two looks at the clock and at signals */

/* ---- opening ---- */

enum status packing_share(uint64_t *below, struct error *error, const char *share)
{
    char *end;
    double value = strtod(share, &end);

    if (end == share || *end != '\0' || !(value >= 0.0 && value < 1.0)) {
        return error_set(error, STATUS_USAGE, "--held-out %s: a share is from 0 to below 1", share);
    }
    *below = (uint64_t)ldexp(value, 64);
    return STATUS_OK;
}

/* Says which names there are. */
static enum status refuse_name(struct error *error, const char *chat)
{
    const struct chat_layout *layout;
    char names[ERROR_ADVICE_MAX] = "auto, none";

    for (size_t i = 0; (layout = chat_layout_at(i)) != NULL; i++) {
        size_t size = strlen(names);

        (void)snprintf(names + size, sizeof(names) - size, ", %s", chat_layout_name(layout));
    }
    (void)error_set(error, STATUS_USAGE, "--chat %s: no layout is called so", chat);
    error_advise(error, "there are: %s", names);
    return STATUS_USAGE;
}

static enum status choose_layout(struct packing *packing, struct error *error)
{
    const char *chat = packing->options->chat;
    struct example_rules *rules = &packing->rules;

    error_init(&packing->layout_trouble);
    rules->layout_trouble = packing->layout_trouble.text;
    if (strcmp(chat, "none") == 0) {
        (void)error_set(&packing->layout_trouble, STATUS_REFUSED,
                        "a conversation, and --chat none lays none out");
        return STATUS_OK;
    }
    if (strcmp(chat, "auto") == 0) {
        /* Only a conversation needs it. */
        if (chat_layout_of(&rules->layout, &packing->layout_trouble, &packing->tokenizer) !=
            STATUS_OK) {
            return STATUS_OK;
        }
    } else {
        rules->layout = chat_layout_named(chat);
        if (rules->layout == NULL) {
            return refuse_name(error, chat);
        }
    }
    return chat_layout_check(rules->layout, error, &packing->tokenizer);
}

enum status packing_open(struct packing *packing, struct error *error,
                         const struct pack_options *options)
{
    enum status status;

    *packing = (struct packing){.options = options};
    example_init(&packing->example);
    buffer_init(&packing->line, EXAMPLE_SIZE_MAX + 1);
    /* A byte that is no UTF-8 may become U+FFFD, which has three. */
    buffer_init(&packing->text, 4 * EXAMPLE_SIZE_MAX);
    buffer_init(&packing->learned, 4 * EXAMPLE_SIZE_MAX);
    TRY_OUT(packing_share(&packing->held_out_below, error, options->held_out));
    TRY_OUT(tokenizer_open(&packing->tokenizer, error, options->tokenizer));
    TRY_OUT(encoder_init(&packing->encoder, error, &packing->tokenizer));
    TRY_OUT(choose_layout(packing, error));
    packing->done = calloc(options->source_count, sizeof(*packing->done));
    if (packing->done == NULL) {
        TRY_OUT(error_set(error, STATUS_NO_MEMORY, "out of memory for the sources"));
    }
    packing->rules.tokenizer = &packing->tokenizer;
    packing->rules.learn = options->learn;
    packing->rules.system = options->system;
    packing->rules.date = options->date;
    packing->rules.put_before = options->bos;
    packing->rules.put_behind = strcmp(options->eos, "never") != 0;
    packing->rules.put_eos = strcmp(options->eos, "always") == 0;
    row_shape_of(&packing->shape, options->length, packing->tokenizer.id_count);
    sha256_init(&packing->given, SHA256_ISA_BEST);
out:
    if (status != STATUS_OK) {
        packing_release(packing);
    }
    return status;
}

void packing_release(struct packing *packing)
{
    for (size_t i = 0; i < PACKING_SIDES; i++) {
        row_packer_release(&packing->packers[i]);
    }
    encoder_release(&packing->encoder);
    tokenizer_release(&packing->tokenizer);
    example_release(&packing->example);
    buffer_release(&packing->line);
    buffer_release(&packing->text);
    buffer_release(&packing->learned);
    free(packing->done);
    memset(packing, 0, sizeof(*packing));
}

enum status packing_bytes(uint64_t *bytes, struct error *error, const struct pack_options *options)
{
    *bytes = 0;
    for (size_t i = 0; i < options->source_count; i++) {
        struct stat there;

        if (stat(options->sources[i], &there) != 0) {
            return error_set_errno(error, "cannot read %s", options->sources[i]);
        }
        *bytes += (uint64_t)there.st_size;
    }
    return STATUS_OK;
}

/* ---- an example ---- */

static enum status add_row(struct packing *packing, struct error *error, size_t side, bool alone)
{
    const struct encoder *encoder = &packing->encoder;
    struct row_packer *packer = &packing->packers[side];
    const uint8_t *learned = packing->learned.data;
    size_t at = 0;
    size_t left = encoder->count;

    if (alone) {
        return row_packer_add_alone(packer, error, encoder->ids, learned,
                                    left < packer->length ? left : packer->length);
    }
    if (left > packer->length && packing->options->too_long == LONG_CUT) {
        packing->counts.dropped += left - packer->length;
        left = packer->length;
    }
    while (left > 0) {
        size_t count = left < packer->length ? left : packer->length;

        TRY(row_packer_add(packer, error, encoder->ids + at, learned + at, count));
        at += count;
        left -= count;
    }
    return STATUS_OK;
}

/* Two rows beside each other: chosen, then rejected. */
static enum status add_pair(struct packing *packing, struct error *error, size_t side)
{
    const unsigned flags = packing->options->special ? ENCODE_SPECIAL : 0;
    const uint32_t length = packing->options->length;
    /* Both are measured before either is packed: a pair stays whole or is left whole. */
    bool too_long = false;

    for (size_t i = 0; i < 2; i++) {
        TRY(parts_encode(&packing->example.rows[i], error, &packing->encoder, &packing->learned,
                         flags));
        if (packing->encoder.count == 0) {
            return error_set(error, STATUS_REFUSED, "one of a pair has no tokens");
        }
        too_long = too_long || packing->encoder.count > length;
    }
    packing->counts.too_long += too_long;
    if (too_long && packing->options->too_long == LONG_LEAVE) {
        return STATUS_OK;
    }
    if (too_long && packing->options->too_long == LONG_SPLIT) {
        return error_set(error, STATUS_REFUSED, "a pair of more than %u tokens cannot be split",
                         length);
    }
    for (size_t i = 0; i < 2; i++) {
        TRY(parts_encode(&packing->example.rows[i], error, &packing->encoder, &packing->learned,
                         flags));
        /* Encoded again: the encoder holds one row at a time. */
        if (packing->encoder.count > length) {
            packing->counts.dropped += packing->encoder.count - length;
        }
        TRY(add_row(packing, error, side, true));
    }
    return STATUS_OK;
}

static enum status add_example(struct packing *packing, struct error *error)
{
    const unsigned flags = packing->options->special ? ENCODE_SPECIAL : 0;
    const bool pair = packing->example.row_count == 2;
    const size_t side = example_is_held_out(&packing->example, packing->held_out_below) ? 1 : 0;
    struct packing_counts *counts = &packing->counts;

    /* The first example says which of the two the data is. */
    if (pair ? counts->examples != counts->pairs : counts->pairs > 0) {
        return error_set(error, STATUS_REFUSED,
                         "pairs and other examples cannot be packed together");
    }
    counts->examples++;
    counts->pairs += pair;
    counts->held_out += side;
    if (pair) {
        return add_pair(packing, error, side);
    }
    TRY(parts_encode(&packing->example.rows[0], error, &packing->encoder, &packing->learned,
                     flags));
    counts->empty += packing->encoder.count == 0;
    if (packing->encoder.count > packing->options->length) {
        counts->too_long++;
        if (packing->options->too_long == LONG_LEAVE) {
            return STATUS_OK;
        }
    }
    return add_row(packing, error, side, false);
}

/* ---- text ---- */

/* The text with U+FFFD in place of what is no UTF-8, if that is asked for. */
static enum status make_valid(struct packing *packing, struct error *error,
                              const struct buffer **valid, const struct buffer *text)
{
    size_t at = text->data == NULL ? 0 : utf8_valid(text->data, text->size);
    uint8_t bytes[UTF8_BYTES_MAX];

    *valid = text;
    if (text->data == NULL || at == text->size) {
        return STATUS_OK;
    }
    if (!packing->options->replace) {
        (void)error_set(error, STATUS_BAD_FORMAT, "byte 0x%02x at %zu is not UTF-8", text->data[at],
                        at + 1);
        error_advise(error,
                     "--invalid replace puts U+FFFD in place of such bytes, and counts them");
        return STATUS_BAD_FORMAT;
    }
    buffer_clear(&packing->text);
    buffer_add(&packing->text, text->data, at);
    while (at < text->size) {
        size_t size = utf8_valid(text->data + at, text->size - at);

        buffer_add(&packing->text, text->data + at, size);
        at += size;
        if (at < text->size) {
            /* One U+FFFD for each longest start of a character that is cut off, as Unicode
             * recommends. */
            buffer_add(&packing->text, bytes, utf8_write(bytes, UTF8_REPLACEMENT));
            at += utf8_invalid(text->data + at, text->size - at);
            packing->counts.replaced++;
        }
    }
    *valid = &packing->text;
    return buffer_check(&packing->text, error, "text");
}

static enum status take_text(struct packing *packing, struct error *error,
                             const struct buffer *text, bool json)
{
    const struct buffer *valid;

    packing->source_examples++;
    sha256_add(&packing->given, text->data == NULL ? (const uint8_t *)"" : text->data, text->size);
    TRY(make_valid(packing, error, &valid, text));
    TRY(json ? example_of_json(&packing->example, error, &packing->rules, valid->data, valid->size)
             : example_of_text(&packing->example, error, &packing->rules, buffer_text(valid),
                               valid->size));
    return add_example(packing, error);
}

/* ---- a source ---- */

enum source_kind {
    SOURCE_TEXT,
    SOURCE_JSONL,
};

/* Its name says what a file holds; how it is compressed, its bytes say. */
static enum status kind_of(enum source_kind *kind, struct error *error, const char *path)
{
    static const char *const endings[] = {".txt",   ".txt.gz",   ".txt.zst",
                                          ".jsonl", ".jsonl.gz", ".jsonl.zst"};

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        if (text_ends_with(path, endings[i])) {
            *kind = i < 3 ? SOURCE_TEXT : SOURCE_JSONL;
            return STATUS_OK;
        }
    }
    (void)error_set(error, STATUS_USAGE, "%s: its name does not say what it is", path);
    error_advise(error, "a source is a .txt or a .jsonl, perhaps with .gz or .zst behind");
    return STATUS_USAGE;
}

static void strip_line_end(struct buffer *line)
{
    if (line->size > 0 && line->data[line->size - 1] == '\r') {
        line->data[--line->size] = '\0';
    }
}

/* The next text of the source; *line is where it begins. */
static enum status next_text(struct packing *packing, struct error *error,
                             struct source_file *source, enum source_kind kind, struct buffer *text,
                             bool *more, uint64_t *line)
{
    const enum packing_split split = kind == SOURCE_JSONL ? SPLIT_LINE : packing->options->split;

    *line = source->line + 1;
    if (split == SPLIT_FILE) {
        *more = *line == 1;
        return *more ? source_rest(source, error, text, EXAMPLE_SIZE_MAX) : STATUS_OK;
    }
    if (split == SPLIT_LINE) {
        TRY(source_line(source, error, text, more, EXAMPLE_SIZE_MAX));
        strip_line_end(text);
        return STATUS_OK;
    }
    buffer_clear(text);
    for (;;) {
        TRY(source_line(source, error, &packing->line, more, EXAMPLE_SIZE_MAX));
        strip_line_end(&packing->line);
        if (!*more || packing->line.size == 0) {
            if (text->size > 0 || !*more) {
                *more = text->size > 0;
                return STATUS_OK;
            }
            *line = source->line + 1;
            /* Blank lines before a text are no empty texts; the text begins behind them. */
            continue;
        }
        if (text->size > 0) {
            buffer_add_u8(text, '\n');
        }
        if (text->size + packing->line.size > EXAMPLE_SIZE_MAX) {
            return error_set(error, STATUS_OVER_LIMIT, "more than %zu MiB without a blank line",
                             EXAMPLE_SIZE_MAX >> 20);
        }
        buffer_add(text, packing->line.data, packing->line.size);
        TRY(buffer_check(text, error, "text"));
    }
}

static enum status tell_progress(struct packing *packing, struct error *error,
                                 const struct source_file *source)
{
    if (packing->progress != NULL) {
        char note[PROGRESS_NOTE_MAX];

        (void)snprintf(note, sizeof(note), "%" PRIu64 " examples", packing->counts.examples);
        progress_update(packing->progress, (packing->bytes_before + source->taken) >> 10, note,
                        steady_seconds());
    }
    return packing->pause == NULL ? STATUS_OK : packing->pause(packing->context, error);
}

/* Passes over what was packed before a stop: the texts must be the same. */
static enum status skip_packed(struct packing *packing, struct error *error,
                               struct source_file *source, enum source_kind kind,
                               struct buffer *text)
{
    struct sha256 again;
    struct digest before;
    struct digest now;
    uint64_t line;
    bool more = true;

    sha256_init(&again, SHA256_ISA_BEST);
    for (uint64_t i = 0; i < packing->source_examples && more; i++) {
        TRY(next_text(packing, error, source, kind, text, &more, &line));
        if (more) {
            sha256_add(&again, text->data == NULL ? (const uint8_t *)"" : text->data, text->size);
        }
    }
    sha256_end(&again, &now);
    again = packing->given;
    sha256_end(&again, &before);
    if (!more || memcmp(&before, &now, sizeof(now)) != 0) {
        return error_set(error, STATUS_REFUSED, "%s: changed since packing was stopped",
                         source->path);
    }
    return STATUS_OK;
}

static enum status run_texts(struct packing *packing, struct error *error,
                             struct source_file *source, enum source_kind kind, struct buffer *text)
{
    uint64_t line = 0;
    bool more = true;

    TRY(skip_packed(packing, error, source, kind, text));
    for (;;) {
        TRY(next_text(packing, error, source, kind, text, &more, &line));
        if (!more) {
            return STATUS_OK;
        }
        if (kind == SOURCE_JSONL && text->size == 0) {
            packing->source_examples++;
            continue;
        }
        if (take_text(packing, error, text, kind == SOURCE_JSONL) != STATUS_OK) {
            return error_wrap(error, "%s:%" PRIu64, source->path, line);
        }
        if (packing->counts.examples % LOOKED_EVERY == 0) {
            TRY(tell_progress(packing, error, source));
        }
    }
}

static enum status run_source(struct packing *packing, struct error *error)
{
    const char *path = packing->options->sources[packing->source];
    struct packing_source *done = &packing->done[packing->source];
    struct buffer text;
    struct source_file source;
    enum source_kind kind;
    enum status status;

    TRY(kind_of(&kind, error, path));
    TRY(source_open(&source, error, path));
    buffer_init(&text, EXAMPLE_SIZE_MAX + 1);
    status = run_texts(packing, error, &source, kind, &text);
    if (status == STATUS_OK) {
        source_digest(&source, &done->sha256);
        done->size = source.taken;
        packing->bytes_before += source.taken;
        packing->source++;
        packing->source_examples = 0;
        sha256_init(&packing->given, SHA256_ISA_BEST);
    }
    buffer_release(&text);
    source_close(&source);
    return status;
}

enum status packing_run(struct packing *packing, struct error *error)
{
    while (packing->source < packing->options->source_count) {
        TRY(run_source(packing, error));
    }
    for (size_t i = 0; i < PACKING_SIDES; i++) {
        TRY(row_packer_finish(&packing->packers[i], error));
    }
    return STATUS_OK;
}
