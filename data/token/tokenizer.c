/* tokenizer.c - see tokenizer.h; how one is read: tokenizer_read.c. */
#include "data/token/tokenizer.h"

#include <stdlib.h>
#include <string.h>

void tokenizer_release(struct tokenizer *tokenizer)
{
    vocabulary_release(&tokenizer->vocabulary);
    merges_release(&tokenizer->merges);
    added_release(&tokenizer->added);
    free(tokenizer->joined);
    free(tokenizer->chat_template);
    memset(tokenizer, 0, sizeof(*tokenizer));
}

/* Is the token one of a byte, such as <0x0A>? */
static bool is_byte(const struct tokenizer *tokenizer, uint32_t id, const uint8_t *text,
                    size_t size, uint8_t *byte)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *high;
    const char *low;

    if (!tokenizer->byte_fallback || size != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') {
        return false;
    }
    high = memchr(digits, text[3], 16);
    low = memchr(digits, text[4], 16);
    if (high == NULL || low == NULL) {
        return false;
    }
    *byte = (uint8_t)((high - digits) << 4 | (low - digits));
    return tokenizer->byte_ids[*byte] == id;
}

const uint8_t *tokenizer_bytes(const struct tokenizer *tokenizer, uint32_t id, size_t *size)
{
    const uint8_t *bytes = vocabulary_bytes(&tokenizer->vocabulary, id, size);
    const struct added_token *added = NULL;
    uint8_t byte;

    if (bytes != NULL && is_byte(tokenizer, id, bytes, *size, &byte)) {
        *size = 1;
        return &tokenizer->all_bytes[byte];
    }
    if (bytes == NULL) {
        added = added_of_id(&tokenizer->added, id);
        *size = added == NULL ? 0 : added->size;
    }
    return added == NULL ? bytes : added->bytes;
}

uint32_t tokenizer_id(const struct tokenizer *tokenizer, const char *text)
{
    const struct added_token *added = added_of_text(&tokenizer->added, text, strlen(text));

    return added == NULL ? vocabulary_find(&tokenizer->vocabulary, text, strlen(text)) : added->id;
}

void tokenizer_show(const struct tokenizer *tokenizer, struct buffer *out, uint32_t id)
{
    struct step blanks = {.from_size = tokenizer->shown_from_size, .to_size = 1, .to = {' '}};
    size_t size = 0;
    const uint8_t *bytes = tokenizer_bytes(tokenizer, id, &size);

    if (bytes == NULL) {
        buffer_add_format(out, "<%u?>", id);
    } else if (blanks.from_size == 0) {
        buffer_add(out, bytes, size);
    } else {
        memcpy(blanks.from, tokenizer->shown_from, blanks.from_size);
        step_replace(&blanks, out, bytes, size);
    }
}
