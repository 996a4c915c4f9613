/*
 * decode_fuzz.c - any bytes as the config.json of a model that generates: the decoder of it is
 * opened or refused, and what it says does not depend on how many tokens it takes at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/decode/decode.h"
#include "proofs/format/base_config.h"

enum { CONTEXT = 24, TOKENS = 19 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Small enough to run in no time. */
static bool is_small(const struct model_options *model)
{
    return model->layers <= 2 && model->vocabulary <= 128 && model->width <= 64 &&
           model->hidden <= 128 && model->heads <= 8 && model->head_width <= 64 &&
           model->kv_heads <= 8;
}

static const char *find_weight(enum dtype *dtype, const void *files, const char *name)
{
    (void)files;
    *dtype = DTYPE_F32;
    return name;
}

static enum status read_weight(void *context, void *bytes, const struct tensor *weight,
                               struct error *error)
{
    uint32_t seed = 1;

    (void)context;
    (void)error;
    for (uint64_t i = 0; i < weight->count; i++) {
        seed = seed * 1664525u + 1013904223u;
        ((float *)bytes)[i] = (float)(seed >> 16) * 0x1p-18f - 0.1f;
    }
    return STATUS_OK;
}

/* Takes tokens from `from` on; the logits must be those of `wanted`. */
static void take_again(struct decode *decode, const uint32_t *tokens, uint32_t from, uint32_t step,
                       const float *wanted)
{
    struct error error;

    error_init(&error);
    decode_forget(decode, from);
    if (decode_count(decode) != from) {
        abort();
    }
    while (from < TOKENS) {
        const uint32_t count = TOKENS - from < step ? TOKENS - from : step;

        if (decode_take(decode, tokens + from, count, &error) != STATUS_OK) {
            return; /* no number after fewer tokens */
        }
        from += count;
    }
    if (memcmp(wanted, decode_logits(decode), decode_vocabulary(decode) * sizeof(float)) != 0) {
        abort();
    }
}

/* All tokens at once, then the last ones once more, then each by itself. */
static void take_in_ways(struct decode *decode)
{
    const uint32_t vocabulary = decode_vocabulary(decode);
    const size_t size = vocabulary * sizeof(float);
    float *first = malloc(size + 1);
    uint32_t tokens[TOKENS];
    struct error error;
    enum status status;

    error_init(&error);
    for (uint32_t i = 0; i < TOKENS; i++) {
        tokens[i] = i * 7 % vocabulary;
    }
    if (first == NULL) {
        return;
    }
    status = decode_take(decode, tokens, TOKENS, &error);
    memcpy(first, decode_logits(decode), size);
    if (decode_count(decode) != (status == STATUS_OK ? TOKENS : 0)) {
        abort();
    }
    if (status == STATUS_OK) {
        take_again(decode, tokens, TOKENS - 2, 2, first);
        take_again(decode, tokens, 0, 1, first);
    }
    free(first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct base_config config;
    struct error error;
    struct decode *decode;
    struct decode_options options = {.model = &config.model,
                                     .context = CONTEXT,
                                     .isa = ISA_SCALAR,
                                     .thread_count = 1,
                                     .read = read_weight};

    error_init(&error);
    if (base_config_parse(&config, data, size, "config.json", &error) != STATUS_OK ||
        !is_small(&config.model)) {
        return 0;
    }
    config.model.lora.find = find_weight;
    if (config.positions < options.context) {
        options.context = config.positions; /* as generate does */
    }
    if (decode_open(&decode, &options, &error) != STATUS_OK) {
        if (error.status == STATUS_OK || error.text[0] == '\0') {
            abort(); /* refused without a word */
        }
        return 0;
    }
    if (options.context == CONTEXT) {
        take_in_ways(decode);
    }
    decode_close(decode);
    return 0;
}
