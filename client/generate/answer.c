/* answer.c - see answer.h. */
#include "client/generate/answer.h"

#include <string.h>

#include "data/text/shown.h"
#include "data/text/utf8.h"

#define ANSWER_SIZE_MAX ((size_t)1 << 28)

void answer_init(struct answer *answer, const struct tokenizer *tokenizer,
                 const struct answer_stops *stops, FILE *out, bool terminal)
{
    *answer =
        (struct answer){.tokenizer = tokenizer, .stops = stops, .out = out, .terminal = terminal};
    buffer_init(&answer->text, ANSWER_SIZE_MAX);
    for (size_t i = 0; i < stops->text_count; i++) {
        const size_t size = strlen(stops->texts[i]);

        answer->held = size > answer->held + 1 ? size - 1 : answer->held;
    }
}

void answer_release(struct answer *answer)
{
    buffer_release(&answer->text);
}

/* Lines stay lines; all else that a terminal would obey is shown. */
static void print_shown(const struct answer *answer, const uint8_t *bytes, size_t size)
{
    size_t at = 0;

    while (at < size) {
        const uint8_t *line = memchr(bytes + at, '\n', size - at);
        const size_t count = line == NULL ? size - at : (size_t)(line - (bytes + at));
        struct buffer shown;

        buffer_init(&shown, 4 * count + 1);
        shown_add(&shown, bytes + at, count);
        if (shown.size > 0) { /* an empty line has no bytes */
            (void)fwrite(shown.data, 1, shown.size, answer->out);
        }
        buffer_release(&shown);
        if (line != NULL) {
            (void)fputc('\n', answer->out);
        }
        at += count + (line != NULL);
    }
}

/* The text up to `end`, without a character that is not whole. */
static void print_to(struct answer *answer, size_t end, bool whole)
{
    const uint8_t *bytes = answer->text.data + answer->printed;
    size_t size = end > answer->printed ? end - answer->printed : 0;

    /* Up to three bytes at the end may be the beginning of a character. */
    for (size_t back = 1; !whole && back < UTF8_BYTES_MAX && back <= size; back++) {
        const uint8_t byte = bytes[size - back];
        const size_t needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;

        if (byte >= 0xc0 || byte < 0x80) {
            size -= needs > back ? back : 0;
            break;
        }
    }
    answer->printed += size;
    if (answer->out == NULL || size == 0) {
        return;
    }
    if (answer->terminal) {
        print_shown(answer, bytes, size);
    } else {
        (void)fwrite(bytes, 1, size, answer->out);
    }
    (void)fflush(answer->out);
}

/* Where the first text that stops begins, not before `from`; SIZE_MAX: there is none. */
static size_t find_stop(const struct answer *answer, size_t from)
{
    const struct buffer *text = &answer->text;
    size_t first = SIZE_MAX;

    for (size_t i = 0; i < answer->stops->text_count; i++) {
        const char *stop = answer->stops->texts[i];
        const uint8_t *found =
            text->size > from ? memmem(text->data + from, text->size - from, stop, strlen(stop))
                              : NULL;
        const size_t at = found == NULL ? SIZE_MAX : (size_t)(found - text->data);

        first = at < first ? at : first;
    }
    return first;
}

bool answer_add(struct answer *answer, uint32_t token)
{
    const size_t before = answer->text.size;
    size_t stop;

    for (size_t i = 0; i < answer->stops->id_count; i++) {
        if (answer->stops->ids[i] == token) {
            return true;
        }
    }
    tokenizer_show(answer->tokenizer, &answer->text, token);
    stop = find_stop(answer, before > answer->held ? before - answer->held : 0);
    if (stop != SIZE_MAX) {
        answer->text.size = stop;
        return true;
    }
    print_to(answer, answer->text.size > answer->held ? answer->text.size - answer->held : 0,
             false);
    return false;
}

enum status answer_end(struct answer *answer, struct error *error)
{
    TRY(buffer_check(&answer->text, error, "the answer"));
    print_to(answer, answer->text.size, true);
    if (answer->out != NULL && ferror(answer->out)) {
        return error_set_errno(error, "cannot write the answer");
    }
    return STATUS_OK;
}
