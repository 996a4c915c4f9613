/* model_card_fuzz.c - any bytes as the card of a model: what is taken of it is within its limits,
 * and stands in it. */
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "verifier/lineage/model_card.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Both cases of a digit are read. */
static void must_hold(const uint8_t *data, size_t size, const struct digest *digest)
{
    char hex[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(hex, digest->bytes, DIGEST_SIZE);
    for (size_t at = 0; at + 2 * DIGEST_SIZE <= size; at++) {
        if (strncasecmp((const char *)data + at, hex, 2 * DIGEST_SIZE) == 0) {
            return;
        }
    }
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct model_card card;

    model_card_parse(&card, (const char *)data, size);
    if (card.averaged_count > AVERAGE_STATES_MAX || strlen(card.base) > MODEL_CARD_BASE_MAX) {
        abort();
    }
    if (card.job_known) {
        must_hold(data, size, &card.job);
    }
    if (card.root_known) {
        must_hold(data, size, &card.root);
    }
    if (card.base[0] != '\0' && memmem(data, size, card.base, strlen(card.base)) == NULL) {
        abort();
    }
    return 0;
}
