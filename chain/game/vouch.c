/* vouch.c - see vouch.h. */
#include "chain/game/vouch.h"

#include <string.h>

enum status vouch_sign(struct vouch *vouch, const struct game_place *place,
                       const struct hash32 *job, const struct hash32 *segment,
                       const struct signer *keeper, struct error *error)
{
    struct hash32 digest = game_vouch_digest(place, job, segment);
    struct signature signature;

    TRY(signer_sign(keeper, &signature, &digest, error));
    vouch->segment = *segment;
    vouch->size = GAME_VOUCH_SIZE;
    signature_to_bytes(vouch->signature, &signature);
    return STATUS_OK;
}

enum verdict vouch_check(const struct vouch *vouch, const struct game_place *place,
                         const struct hash32 *job, const struct address *keeper)
{
    struct hash32 digest = game_vouch_digest(place, job, &vouch->segment);
    struct signature signature;
    struct address account;

    if (vouch->size != GAME_VOUCH_SIZE) {
        return VERDICT_INVALID;
    }
    signature_from_bytes(&signature, vouch->signature);
    return signature_recover(&signature, &account, &digest) == VERDICT_VALID &&
                   address_equal(&account, keeper)
               ? VERDICT_VALID
               : VERDICT_INVALID;
}

enum status vouch_ask(const struct vouch *vouch, struct ledger *ledger, const struct hash32 *job,
                      const struct address *keeper, struct error *error)
{
    const struct ledger_vouch asking = {.job = *job,
                                        .segment = vouch->segment,
                                        .keeper = *keeper,
                                        .signature = {vouch->signature, vouch->size}};
    bool asked;

    TRY(ledger_ask_vouch(ledger, &asked, &asking, error));
    return asked || vouch_check(vouch, ledger_get_game(ledger), job, keeper) == VERDICT_VALID
               ? STATUS_OK
               : error_set(error, STATUS_REFUSED, "the keeper has not signed that");
}

size_t vouch_write(uint8_t *bytes, const struct vouch *vouch)
{
    memcpy(bytes, vouch->segment.bytes, HASH32_SIZE);
    memcpy(bytes + HASH32_SIZE, vouch->signature, vouch->size);
    return HASH32_SIZE + vouch->size;
}

/* An address is text. A hash is not: it would be, once in 10^14. */
static bool is_text(const uint8_t bytes[HASH32_SIZE])
{
    for (size_t i = 0; i < HASH32_SIZE; i++) {
        if (bytes[i] < ' ' || bytes[i] > '~') {
            return false;
        }
    }
    return true;
}

bool vouch_read(struct vouch *vouch, const struct game_bytes *bytes)
{
    if (bytes->size <= HASH32_SIZE || bytes->size > VOUCH_SIZE_MAX || is_text(bytes->bytes)) {
        return false;
    }
    memcpy(vouch->segment.bytes, bytes->bytes, HASH32_SIZE);
    vouch->size = bytes->size - HASH32_SIZE;
    memcpy(vouch->signature, bytes->bytes + HASH32_SIZE, vouch->size);
    return true;
}
