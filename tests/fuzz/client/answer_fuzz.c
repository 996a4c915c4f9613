/*
 * answer_fuzz.c - any bytes as what a person asks and as what a model answers, with any texts that
 * end the answer: a question's ids are its bytes; what is printed is the answer up to the first
 * text that ends it, in whole characters as it comes, and drives no terminal.
 *
 * An input is: the size of a text that stops, that text, the size of another, that text, tokens.
 */
#include <stdlib.h>
#include <string.h>

#include "client/generate/answer.h"
#include "client/generate/question.h"
#include "data/text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Takes a text of up to 15 bytes without a zero; returns how many bytes of the input it took. */
static size_t take_stop(struct answer_stops *stops, char text[16], const uint8_t *data, size_t size)
{
    const size_t wanted = size == 0 ? 0 : data[0] % 16;
    const size_t taken = size == 0 ? 0 : wanted < size ? wanted : size - 1;

    memcpy(text, data + (size > 0), taken);
    text[taken] = '\0';
    if (text[0] != '\0') {
        stops->texts[stops->text_count++] = text;
    }
    return taken + (size > 0);
}

/* Where the first text that stops begins, or the size. */
static size_t end_of(const struct answer_stops *stops, const uint8_t *data, size_t size)
{
    size_t end = size;

    for (size_t i = 0; i < stops->text_count; i++) {
        const uint8_t *found = memmem(data, size, stops->texts[i], strlen(stops->texts[i]));

        end = found != NULL && (size_t)(found - data) < end ? (size_t)(found - data) : end;
    }
    return end;
}

/* A text that stops may end later than one that begins behind it: the one that is whole first
 * counts, so the tokens are given up to the first end. */
static size_t first_whole(const struct answer_stops *stops, const uint8_t *data, size_t size)
{
    for (size_t count = 1; count <= size; count++) {
        if (end_of(stops, data, count) != count) {
            return count;
        }
    }
    return size;
}

static void check_printed(const uint8_t *bytes, size_t size, bool terminal)
{
    for (size_t i = 0; terminal && i < size; i++) {
        if ((bytes[i] < 32 && bytes[i] != '\n') || bytes[i] == 127) {
            abort();
        }
    }
    if (terminal && utf8_valid(bytes, size) != size) {
        abort();
    }
}

static void answer(const struct tokenizer *tokenizer, const struct answer_stops *stops,
                   const uint8_t *data, size_t size, bool terminal)
{
    const size_t count = first_whole(stops, data, size);
    const size_t end = end_of(stops, data, count);
    struct answer answer;
    struct error error;
    char *printed = NULL;
    size_t printed_size = 0;
    FILE *out = open_memstream(&printed, &printed_size);
    bool ended = false;

    if (out == NULL) {
        return;
    }
    error_init(&error);
    answer_init(&answer, tokenizer, stops, out, terminal);
    for (size_t i = 0; i < size && !ended; i++) {
        ended = answer_add(&answer, data[i]);
        if (ended != (end != count && i == count - 1) ||
            (!terminal && utf8_valid(data, size) == size &&
             utf8_valid((const uint8_t *)printed, printed_size) != printed_size)) {
            abort();
        }
    }
    if (answer_end(&answer, &error) != STATUS_OK || answer.text.size != end ||
        (end > 0 && memcmp(answer.text.data, data, end) != 0)) {
        abort();
    }
    (void)fclose(out);
    check_printed((const uint8_t *)printed, printed_size, terminal);
    if (!terminal && (printed_size != end || (end > 0 && memcmp(printed, data, end) != 0))) {
        abort();
    }
    answer_release(&answer);
    free(printed);
}

static void ask(const struct tokenizer *tokenizer, const uint8_t *data, size_t size)
{
    struct question *question = calloc(1, sizeof(*question));
    struct error error;

    error_init(&error);
    if (question == NULL || question_init(question, &error, tokenizer, NULL, NULL) != STATUS_OK) {
        free(question);
        return;
    }
    const bool valid = size > 0 && utf8_valid(data, size) == size;

    if ((question_of_text(question, &error, (const char *)data, size) == STATUS_OK) != valid ||
        (valid && question->encoder.count != size)) {
        abort();
    }
    for (size_t i = 0; valid && i < size; i++) {
        if (question->encoder.ids[i] != data[i]) {
            abort();
        }
    }
    question_release(question);
    free(question);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct answer_stops stops = {0};
    struct tokenizer tokenizer;
    struct error error;
    char texts[2][16];
    size_t at;

    if (size > 4096) {
        return 0;
    }
    error_init(&error);
    if (tokenizer_open(&tokenizer, &error, TOKENIZER_BYTES) != STATUS_OK) {
        return 0;
    }
    at = take_stop(&stops, texts[0], data, size);
    at += take_stop(&stops, texts[1], data + at, size - at);
    answer(&tokenizer, &stops, data + at, size - at, false);
    answer(&tokenizer, &stops, data + at, size - at, true);
    ask(&tokenizer, data + at, size - at);
    tokenizer_release(&tokenizer);
    return 0;
}
