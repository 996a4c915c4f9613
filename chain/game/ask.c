/* ask.c - see ask.h. */
#include "chain/game/ask.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/text.h"
#include "chain/codec/typed_data.h"

#define EXPIRY_MOST UINT64_C(999999999999)

struct hash32 ask_digest(const struct ask *ask)
{
    struct hash32 domain = typed_domain("Lockstep", "1", &ask->place.chain, &ask->place.registry);
    struct typed_struct typed;
    struct hash32 hash;

    typed_struct_begin(&typed, "Ask(bytes32 job,uint256 index,uint256 step,uint256 expiry)");
    typed_struct_add_hash(&typed, &ask->job);
    typed_struct_add_u64(&typed, ask->index);
    typed_struct_add_u64(&typed, ask->step);
    typed_struct_add_u64(&typed, ask->expiry_s);
    hash = typed_struct_hash(&typed);
    return typed_message_hash(&domain, &hash);
}

enum status ask_write(char text[ASK_TEXT_MAX], const struct ask *ask, const struct signer *signer,
                      struct error *error)
{
    struct hash32 message = ask_digest(ask);
    char hex[HEX_SIZE(SIGNATURE_SIZE)];
    uint8_t bytes[SIGNATURE_SIZE];
    struct signature signature;

    TRY(signer_sign(signer, &signature, &message, error));
    signature_to_bytes(bytes, &signature);
    hex_encode(hex, bytes, sizeof(bytes));
    (void)snprintf(text, ASK_TEXT_MAX, "%" PRIu64 " %s", ask->expiry_s, hex);
    return STATUS_OK;
}

static bool take_time(struct ask *ask, const char **text, uint64_t now_s)
{
    return text_take_number(&ask->expiry_s, text, EXPIRY_MOST) && text_take_word(text, " ") &&
           ask->expiry_s >= now_s && ask->expiry_s - now_s <= 2 * (uint64_t)ASK_LIFE_S;
}

enum verdict ask_read(struct address *account, struct ask *ask, const char *text, uint64_t now_s)
{
    uint8_t bytes[SIGNATURE_SIZE];
    struct signature signature;
    struct hash32 message;

    if (strnlen(text, ASK_TEXT_MAX) == ASK_TEXT_MAX || !take_time(ask, &text, now_s) ||
        strlen(text) != 2 * sizeof(bytes) ||
        hex_decode(bytes, sizeof(bytes), text, 2 * sizeof(bytes)) != STATUS_OK) {
        return VERDICT_INVALID;
    }
    signature_from_bytes(&signature, bytes);
    message = ask_digest(ask);
    return signature_recover(&signature, account, &message);
}

static bool take_account(struct address *account, const char **text)
{
    char address[ADDRESS_TEXT_SIZE];
    size_t size = strcspn(*text, " ");

    if (size != sizeof(address) - 1 || (*text)[size] != ' ') {
        return false;
    }
    memcpy(address, *text, size);
    address[size] = '\0';
    *text += size + 1;
    return address_parse(account, address) == STATUS_OK;
}

enum verdict ask_read_contract(struct ask_claim *claim, struct ask *ask, const char *text,
                               uint64_t now_s)
{
    size_t digits;

    if (strnlen(text, ASK_CONTRACT_MAX) == ASK_CONTRACT_MAX || !take_time(ask, &text, now_s) ||
        !take_account(&claim->account, &text)) {
        return VERDICT_INVALID;
    }
    digits = strlen(text);
    claim->signature_size = digits / 2;
    if (digits == 0 || digits % 2 != 0 || claim->signature_size > sizeof(claim->signature) ||
        hex_decode(claim->signature, claim->signature_size, text, digits) != STATUS_OK) {
        return VERDICT_INVALID;
    }
    claim->digest = ask_digest(ask);
    return VERDICT_VALID;
}
