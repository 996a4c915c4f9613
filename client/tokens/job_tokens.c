/* job_tokens.c - see job_tokens.h. */
#include "client/tokens/job_tokens.h"

#include <inttypes.h>
#include <string.h>

#include "base/io/file.h"
#include "base/text.h"
#include "data/text/shown.h"
#include "data/token/tokenizer.h"
#include "proofs/format/dataset.h"

enum {
    SHOWN_TOKENS = 64,
    SHOWN_BYTES = 320,
};

static uint32_t token_at(const struct dataset *data, uint64_t at)
{
    const size_t size = dtype_size(data->dtype);
    uint32_t token = 0;

    memcpy(&token, (const uint8_t *)data->data + at * size, size);
    return token;
}

/* The folder has a tokenizer of the kinds that we read or refuse by a reason. */
static bool has_tokenizer(const char *folder)
{
    static const char *const names[] = {"tokenizer.json", "vocab.json"};
    char path[FILE_PATH_MAX];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (file_path_join(path, sizeof(path), NULL, folder, names[i]) == STATUS_OK &&
            file_exists(path)) {
            return true;
        }
    }
    return false;
}

/* What cannot be shown is no reason to refuse the job. */
static void show_first(struct job_tokens *tokens, const struct dataset *data, const char *folder,
                       uint64_t length)
{
    struct tokenizer tokenizer;
    struct buffer bytes;

    if (folder == NULL || !has_tokenizer(folder) ||
        tokenizer_open(&tokenizer, &tokens->unread, folder) != STATUS_OK) {
        return;
    }
    buffer_init(&bytes, 1 << 20);
    for (uint64_t i = 0; i < data->count && i < length && i < SHOWN_TOKENS; i++) {
        tokenizer_show(&tokenizer, &bytes, token_at(data, i));
    }
    shown_add(&tokens->first, bytes.data,
              bytes.size < SHOWN_BYTES ? bytes.size : (size_t)SHOWN_BYTES);
    buffer_release(&bytes);
    tokenizer_release(&tokenizer);
}

enum status job_tokens_look(struct job_tokens *tokens, struct error *error, const char *path,
                            enum dtype dtype, uint64_t vocabulary, const char *folder,
                            uint64_t length)
{
    struct dataset data;

    *tokens = (struct job_tokens){0};
    error_init(&tokens->unread);
    buffer_init(&tokens->first, 1 << 20);
    TRY(dataset_open_tokens(&data, error, path, dtype, vocabulary));
    for (uint64_t i = 0; i < data.count; i++) {
        uint32_t token = token_at(&data, i);

        tokens->largest = token > tokens->largest ? token : tokens->largest;
    }
    show_first(tokens, &data, folder, length);
    dataset_close(&data);
    return STATUS_OK;
}

void job_tokens_release(struct job_tokens *tokens)
{
    buffer_release(&tokens->first);
}

enum status job_tokens_check_mask(const char *path, uint64_t count, struct error *error)
{
    struct dataset mask;
    uint64_t at = 1; /* nothing stands before the first token, so nobody learns it */

    TRY(dataset_open_tokens(&mask, error, path, DTYPE_U8, 256));
    if (mask.dtype != DTYPE_U8 || mask.count != count) {
        (void)error_set(error, STATUS_BAD_FORMAT,
                        "--mask %s: %" PRIu64
                        " elements of %s; it must be one u8 for each of %" PRIu64 " tokens",
                        path, mask.count, dtype_name(mask.dtype), count);
        dataset_close(&mask);
        return STATUS_BAD_FORMAT;
    }
    while (at < count && token_at(&mask, at) == 0) {
        at++;
    }
    dataset_close(&mask);
    if (at < count) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_REFUSED, "--mask %s: it counts no token, so nothing is learned",
                    path);
    error_advise(error, "a byte that is not 0 stands where a token is to be learned");
    return STATUS_REFUSED;
}

enum status job_tokens_count_mask(struct job_tokens *tokens, const char *path, struct error *error)
{
    struct dataset mask;
    uint64_t counted = 0;

    TRY(dataset_open_tokens(&mask, error, path, DTYPE_U8, 256));
    for (uint64_t at = 0; at < mask.count; at++) {
        counted += token_at(&mask, at) != 0;
    }
    tokens->masked = true;
    tokens->counted = mask.count == 0 ? 0.0 : (double)counted / (double)mask.count;
    dataset_close(&mask);
    return STATUS_OK;
}

enum status job_tokens_check_type(const char *path, bool given, struct error *error)
{
    if (given || text_ends_with(path, ".npy")) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_USAGE,
                    "%s: a flat file does not say how large a token is, and bytes are hardly the "
                    "tokens of a published model",
                    path);
    error_advise(error, "say --data-type u8, u16 or u32, or give a .npy");
    return STATUS_USAGE;
}
