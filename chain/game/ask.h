/*
 * ask.h - an ask about the trace of one disputed step, signed by a party of the job.
 *
 * It is a typed message (EIP-712) of the game's domain, so it means nothing on another chain, to
 * another contract, in another job, about another step, or after its expiry. A server that is shown
 * it may use it until then, for that step alone.
 */
#ifndef CHAIN_GAME_ASK_H
#define CHAIN_GAME_ASK_H

#include "chain/game/game.h"
#include "chain/keys/signer.h"

/* Of HTTP. Its value is EXPIRY, a space, and the signature's 65 bytes in hexadecimal. A party that
 * is a contract puts its address and a space before a signature of its own kind (ERC-1271). */
#define ASK_HEADER       "Lockstep-Ask"
#define ASK_TEXT_MAX     160 /* of a key's, with the NUL */
#define ASK_CONTRACT_MAX (64 + 2 * GAME_VOUCH_MAX)
#define ASK_LIFE_S       3600

struct ask {
    struct game_place place;
    struct hash32 job;
    uint32_t index; /* of the segment */
    uint32_t step;  /* within it */
    uint64_t expiry_s;
};

/* What is signed. */
struct hash32 ask_digest(const struct ask *ask);

MUST_CHECK enum status ask_write(char text[ASK_TEXT_MAX], const struct ask *ask,
                                 const struct signer *signer, struct error *error);

/*
 * Who signed it, and until when? Everything in ask but its expiry is what the reader expects.
 * VERDICT_INVALID: nobody, it is over, or it would be valid for longer than twice ASK_LIFE_S. Safe
 * on hostile input.
 */
MUST_CHECK enum verdict ask_read(struct address *account, struct ask *ask, const char *text,
                                 uint64_t now_s);

/* What a contract is said to have signed: its ledger knows whether that is so. */
struct ask_claim {
    struct address account;
    struct hash32 digest;
    uint8_t signature[GAME_VOUCH_MAX];
    size_t signature_size;
};

/* The same of a contract, which is still to be asked (ledger_get_signed()). */
MUST_CHECK enum verdict ask_read_contract(struct ask_claim *claim, struct ask *ask,
                                          const char *text, uint64_t now_s);

#endif /* CHAIN_GAME_ASK_H */
