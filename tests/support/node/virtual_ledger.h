/*
 * virtual_ledger.h - one account's view of a virtual chain, behind chain/game/ledger.h: an outbox,
 * an index of events, and a connection that fails.
 *
 * What was submitted is kept through any crash, as the outbox of the product keeps it; it reaches
 * the chain in one of the rounds after. The event log is the product's own (chain/game/event_log.h)
 * and may lag behind. Every call may be the last one that its process makes
 * (tests/support/node/fate.h).
 */
#ifndef TESTS_SUPPORT_NODE_VIRTUAL_LEDGER_H
#define TESTS_SUPPORT_NODE_VIRTUAL_LEDGER_H

#include "chain/game/ledger_backend.h"
#include "tests/support/node/fate.h"
#include "tests/support/node/virtual_chain.h"

#define VIRTUAL_OUTBOX_MAX 1024

struct virtual_intent {
    char name[LEDGER_NAME_MAX + 1];
    uint8_t *bytes; /* of the move, */
    size_t size;
    wei value; /* and what goes with it */
    bool sent;
    bool refused; /* before it was sent, because the rules would */
    bool final;   /* when the ledger last worked */
    struct game_refusal refusal;
    uint32_t number; /* of the move on the chain */
};

struct virtual_ledger {
    struct ledger ledger; /* what the product is given */
    struct virtual_chain *chain;
    struct fate *fate;
    uint64_t random;
    uint32_t depth;            /* blocks on top until something is final; 0: each move is a block */
    uint64_t now_s;            /* for moves that are blocks */
    bool unreachable;          /* every call over the net fails, */
    uint32_t bad_percent;      /* or this share of them */
    uint32_t refusing_percent; /* of submits, for want of money or room */
    bool lags;                 /* the index takes at most one block in a round */
    struct database index;
    struct virtual_intent *outbox;
    uint32_t outbox_count;
    uint64_t reopened; /* intents that were final, until a reorganization */
    struct error error;
    uint8_t payload[GAME_LOG_SIZE_MAX];
    char contradicted[LEDGER_NAME_MAX + 1]; /* a name under which two moves were submitted */
};

void virtual_ledger_init(struct virtual_ledger *ledger, struct virtual_chain *chain,
                         struct fate *fate, const struct address *account, uint32_t depth,
                         uint64_t seed);
void virtual_ledger_release(struct virtual_ledger *ledger);

/* Is there a move in the outbox that is not final? */
bool virtual_ledger_is_waiting(const struct virtual_ledger *ledger);

#endif /* TESTS_SUPPORT_NODE_VIRTUAL_LEDGER_H */
