/* model_card.c - see model_card.h. */
#include "verifier/lineage/model_card.h"

#include <string.h>

#include "base/hex.h"
#include "base/io/file.h"

#define BASE "base_model: "

/* Does the line begin so? *rest and *size are what follows. */
static bool begins_with(const char **rest, size_t *size, const char *line, size_t length,
                        const char *begin)
{
    const size_t skipped = strlen(begin);

    if (length < skipped || memcmp(line, begin, skipped) != 0) {
        return false;
    }
    *rest = line + skipped;
    *size = length - skipped;
    return true;
}

/* "HEX` |" */
static bool take_digest(struct digest *digest, const char *text, size_t size)
{
    return size >= 2 * DIGEST_SIZE &&
           hex_decode(digest->bytes, DIGEST_SIZE, text, 2 * DIGEST_SIZE) == STATUS_OK;
}

/* " 12 8 4 |": how many there are. */
static uint32_t count_steps(const char *text, size_t size)
{
    uint32_t count = 0;
    bool inside = false;

    for (size_t i = 0; i < size && count < AVERAGE_STATES_MAX; i++) {
        const bool digit = text[i] >= '0' && text[i] <= '9';

        count += digit && !inside;
        inside = digit;
    }
    return count;
}

static void take_line(struct model_card *card, const char *line, size_t length)
{
    const char *rest;
    size_t size;

    if (begins_with(&rest, &size, line, length, "| job | `")) {
        card->job_known = take_digest(&card->job, rest, size);
    } else if (begins_with(&rest, &size, line, length, "| root of this state | `") ||
               begins_with(&rest, &size, line, length, "| root of the last of these states | `")) {
        card->root_known = take_digest(&card->root, rest, size);
    } else if (begins_with(&rest, &size, line, length, "| mean of the states after steps |")) {
        card->averaged_count = count_steps(rest, size);
    } else if (begins_with(&rest, &size, line, length, BASE) && card->base[0] == '\0') {
        size = size > MODEL_CARD_BASE_MAX ? MODEL_CARD_BASE_MAX : size;
        memcpy(card->base, rest, size);
        card->base[size] = '\0';
    }
}

void model_card_parse(struct model_card *card, const char *text, size_t size)
{
    *card = (struct model_card){0};
    while (size > 0) {
        const char *end = memchr(text, '\n', size);
        const size_t length = end == NULL ? size : (size_t)(end - text);

        take_line(card, text, length);
        text += length + (end != NULL);
        size -= length + (end != NULL);
    }
}

void model_card_read(struct model_card *card, const char *folder)
{
    struct file_bytes bytes = {0};
    char path[FILE_PATH_MAX];

    *card = (struct model_card){0};
    if (file_path_join(path, sizeof(path), NULL, folder, MODEL_CARD_NAME) == STATUS_OK &&
        file_read(&bytes, NULL, path, MODEL_CARD_SIZE_MAX) == STATUS_OK) {
        model_card_parse(card, (const char *)bytes.data, bytes.size);
    }
    file_bytes_release(&bytes);
}
