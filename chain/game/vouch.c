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
    signature_to_bytes(vouch->signature, &signature);
    return STATUS_OK;
}

enum verdict vouch_check(const struct vouch *vouch, const struct game_place *place,
                         const struct hash32 *job, const struct address *keeper)
{
    struct hash32 digest = game_vouch_digest(place, job, &vouch->segment);
    struct signature signature;
    struct address account;

    signature_from_bytes(&signature, vouch->signature);
    return signature_recover(&signature, &account, &digest) == VERDICT_VALID &&
                   address_equal(&account, keeper)
               ? VERDICT_VALID
               : VERDICT_INVALID;
}

void vouch_write(uint8_t bytes[VOUCH_SIZE], const struct vouch *vouch)
{
    memcpy(bytes, vouch->segment.bytes, HASH32_SIZE);
    memcpy(bytes + HASH32_SIZE, vouch->signature, GAME_VOUCH_SIZE);
}

bool vouch_read(struct vouch *vouch, const struct game_bytes *bytes)
{
    if (bytes->size != VOUCH_SIZE) {
        return false;
    }
    memcpy(vouch->segment.bytes, bytes->bytes, HASH32_SIZE);
    memcpy(vouch->signature, bytes->bytes + HASH32_SIZE, GAME_VOUCH_SIZE);
    return true;
}
