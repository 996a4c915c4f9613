/*
 * data_bench.c - text to ids, one thread, against reading the text alone.
 *
 * The text is English: the fixture, in which words are swapped so that lines do not repeat. The
 * tokenizer is a byte-level one whose vocabulary the benchmark learns from the text itself, with
 * GPT-2's expression. The peer counts the words of the same text by its blanks, which is what a
 * tokenizer can hope for. TOKENIZER=DIR in the environment measures a published one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/io/file.h"
#include "bench/support/bench.h"
#include "data/token/encoder.h"

#define TEXT_SIZE  ((size_t)4 << 20)
#define SEED_FILE  "fixtures/text/village.u8"
#define MERGES     2000
#define LETTER(at) ((at) >= 33 && (at) <= 126)

struct work {
    struct encoder encoder;
    struct buffer text;
    size_t words;
};

static void die(const struct error *error)
{
    fprintf(stderr, "data_bench: %s\n", error->text);
    exit(1);
}

/* Words of the fixture in an order of our own. */
static void make_text(struct work *work)
{
    struct file_bytes file;
    struct error error;
    uint64_t state = 1;

    error_init(&error);
    if (file_read(&file, &error, SEED_FILE, TEXT_SIZE) != STATUS_OK) {
        die(&error);
    }
    buffer_init(&work->text, TEXT_SIZE + 4096);
    while (work->text.size < TEXT_SIZE) {
        size_t at;
        size_t end;

        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        at = (size_t)(state >> 33) % (file.size - 256);
        while (file.data[at] != ' ') {
            at++;
        }
        for (end = at + 8; end < file.size - 1 && file.data[end] != ' '; end++) {
        }
        buffer_add(&work->text, file.data + at, end - at);
    }
    file_bytes_release(&file);
}

/* A tokenizer.json in which frequent beginnings of words are tokens. */
static void make_tokenizer(struct buffer *json, const struct buffer *text)
{
    static char kept[MERGES][16];
    size_t count = 0;
    uint32_t id = 0;

    buffer_add_text(json, "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
                          "\"model\":{\"vocab\":{");
    for (unsigned next = 256, byte = 0; byte < 256; byte++) {
        bool prints = LETTER(byte) || (byte >= 161 && byte != 173);
        unsigned code = prints ? byte : next++;

        buffer_add_format(json, "%s\"\\u%04x\":%u", byte == 0 ? "" : ",", code, id++);
    }
    for (size_t at = 0; at + 16 < text->size && count < MERGES; at++) {
        size_t size = 2;

        while (text->data[at] == ' ' && size < 8 && count < MERGES) {
            bool plain = true;
            size_t i = 0;

            for (size_t k = 1; k < size; k++) {
                plain = plain && LETTER(text->data[at + k]) && text->data[at + k] != '"' &&
                        text->data[at + k] != '\\';
            }
            while (i < count && memcmp(kept[i], text->data + at, size + 1) != 0 &&
                   !(strlen(kept[i]) == size && memcmp(kept[i], text->data + at, size) == 0)) {
                i++;
            }
            if (!plain) {
                break;
            }
            if (i == count) {
                memcpy(kept[count], text->data + at, size);
                kept[count++][size] = '\0';
                buffer_add_format(json, ",\"\\u0120%.*s\":%u", (int)size - 1,
                                  (const char *)text->data + at + 1, id++);
            }
            size++;
        }
    }
    buffer_add_text(json, "},\"merges\":[");
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(kept[i]);

        buffer_add_format(json, "%s[\"\\u0120%.*s\",\"%c\"]", i == 0 ? "" : ",", (int)size - 2,
                          kept[i] + 1, kept[i][size - 1]);
    }
    buffer_add_text(json, "]}}");
}

static void encode(void *context)
{
    struct work *work = context;
    struct error error;

    error_init(&error);
    encoder_clear(&work->encoder);
    if (encoder_add(&work->encoder, &error, work->text.data, work->text.size, 0) != STATUS_OK) {
        die(&error);
    }
}

static void count_words(void *context)
{
    struct work *work = context;

    for (size_t i = 1; i < work->text.size; i++) {
        work->words += work->text.data[i] == ' ' && work->text.data[i - 1] != ' ';
    }
}

int main(int argc, char **argv)
{
    const char *folder = getenv("TOKENIZER");
    struct tokenizer tokenizer;
    struct work work = {0};
    struct buffer json;
    struct error error;
    struct bench bench;
    struct bench_case one = {.name = folder == NULL ? "byte-level, 2,256 ids" : folder,
                             .unit = "MB/s",
                             .work = (double)TEXT_SIZE / 1e6,
                             .ours = encode,
                             .peer = count_words,
                             .context = &work};

    bench_init(&bench, "data", "counting the words", argc, argv);
    error_init(&error);
    make_text(&work);
    buffer_init(&json, 1 << 20);
    make_tokenizer(&json, &work.text);
    if ((folder == NULL ? tokenizer_parse(&tokenizer, &error, json.data, json.size, "made")
                        : tokenizer_open(&tokenizer, &error, folder)) != STATUS_OK ||
        encoder_init(&work.encoder, &error, &tokenizer) != STATUS_OK) {
        die(&error);
    }
    bench_compare(&bench, &one);
    encoder_release(&work.encoder);
    tokenizer_release(&tokenizer);
    buffer_release(&json);
    buffer_release(&work.text);
    return bench_finish(&bench);
}
