/*
 * ask_fuzz.c - bytes as an ask, as its text, and as what was asked with an answer to it. What is
 * read is written back as it was; an answer that is accepted is not accepted when a bit is flipped.
 */
#include <stdlib.h>
#include <string.h>

#include "proofs/question.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_ask(const uint8_t *data, size_t size)
{
    uint8_t bytes[ASK_SIZE];
    char text[ASK_TEXT_MAX];
    struct ask again;
    struct ask ask;

    if (ask_read(&ask, data, size) != STATUS_OK) {
        return;
    }
    ask_write(bytes, &ask);
    ask_text(text, &ask);
    if (memcmp(bytes, data, size) != 0 || ask_parse(&again, text) != STATUS_OK) {
        abort();
    }
}

static void read_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    char again[ASK_TEXT_MAX];
    struct ask ask;

    if (text == NULL) {
        return;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    if (ask_parse(&ask, text) == STATUS_OK) {
        ask_text(again, &ask);
        if (strcmp(again, text) != 0) {
            abort();
        }
    }
    free(text);
}

/* The size of what was asked (2), that, and the answer. */
static void read_told(const uint8_t *data, size_t size)
{
    static uint8_t changed[TELL_BYTES_MAX];
    struct parts_told parts;
    struct asked asked;
    struct told told;
    size_t asked_size;

    if (size < 2) {
        return;
    }
    asked_size = (size_t)data[0] << 8 | data[1];
    data += 2;
    size -= 2;
    if (asked_size > size || asked_read(&asked, data, asked_size) != STATUS_OK ||
        asked.ask.kind == ASK_DIVERGED) {
        return;
    }
    data += asked_size;
    size -= asked_size;
    if (asked.ask.kind == ASK_PARTS) {
        if (parts_check(&parts, &asked.parts, data, size) == VERDICT_VALID && !parts.none &&
            size != 4 + 8 * (size_t)asked.parts.count) {
            abort();
        }
        return;
    }
    if (tell_check(&told, &asked.target, data, size) != VERDICT_VALID) {
        return;
    }
    if (told.entries == 0 || told.entries > ASK_ENTRIES_MAX || size > sizeof(changed)) {
        abort();
    }
    memcpy(changed, data, size);
    changed[size / 2] ^= 1;
    if (tell_check(&told, &asked.target, changed, size) == VERDICT_VALID) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    switch (data[0] % 3) {
    case 0:
        read_ask(data + 1, size - 1);
        break;
    case 1:
        read_text(data + 1, size - 1);
        break;
    default:
        read_told(data + 1, size - 1);
        break;
    }
    return 0;
}
