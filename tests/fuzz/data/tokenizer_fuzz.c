/*
 * tokenizer_fuzz.c - any bytes as a tokenizer.json: what is read encodes text without stepping
 * outside of anything, and the bytes of its ids are the text, if nothing normalizes it.
 */
#include <stdlib.h>
#include <string.h>

#include "data/token/encoder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] =
    "The <s>cat's 12345  caf\xc3\xa9 e\xcc\x81\n\n \xe4\xb8\xad\xf0\x9f\x98\x80 the thin";

/* Does the text stay as it is until it is merged, with a token for all of it? */
static int is_faithful(const struct tokenizer *tokenizer)
{
    for (size_t i = 0; i < tokenizer->cut_count; i++) {
        if (tokenizer->cuts[i].kind >= STEP_METASPACE || tokenizer->cuts[i].cut == CUT_REMOVED) {
            return 0;
        }
    }
    return tokenizer->normalizer_count == 0 && tokenizer->unknown == VOCABULARY_NONE;
}

static void check(struct encoder *encoder)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;
    size_t at = 0;

    for (size_t i = 0; i < encoder->count; i++) {
        size_t size = 0;
        const uint8_t *bytes = tokenizer_bytes(tokenizer, encoder->ids[i], &size);

        if (bytes == NULL || encoder->ids[i] >= tokenizer->id_count) {
            abort();
        }
        /* lstrip and rstrip take white space along. */
        if (is_faithful(tokenizer) && tokenizer->added.count == 0 &&
            (at + size > sizeof(text) - 1 || memcmp(text + at, bytes, size) != 0)) {
            abort();
        }
        at += size;
    }
    if (is_faithful(tokenizer) && tokenizer->added.count == 0 && at != sizeof(text) - 1) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tokenizer tokenizer;
    struct encoder encoder;
    struct error error;

    error_init(&error);
    if (tokenizer_parse(&tokenizer, &error, data, size, "tokenizer.json") != STATUS_OK) {
        return 0;
    }
    if (encoder_init(&encoder, &error, &tokenizer) == STATUS_OK) {
        if (encoder_add(&encoder, &error, (const uint8_t *)text, sizeof(text) - 1, 0) ==
            STATUS_OK) {
            check(&encoder);
        }
        encoder_clear(&encoder);
        if (encoder_add(&encoder, &error, (const uint8_t *)text, sizeof(text) - 1,
                        ENCODE_SPECIAL | ENCODE_CONTINUED) != STATUS_OK) {
            encoder_clear(&encoder);
        }
    }
    encoder_release(&encoder);
    tokenizer_release(&tokenizer);
    return 0;
}
