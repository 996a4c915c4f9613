/*
 * keep_moves.h - the moves of a keeper: rare, so its account is opened for each. Between them a
 * replay of the same account may make its own.
 */
#ifndef CLIENT_KEEPER_KEEP_MOVES_H
#define CLIENT_KEEPER_KEEP_MOVES_H

#include "base/cli/command.h"
#include "chain/game/vouch.h"
#include "chain/job/job_record.h"

enum keep_move_kind {
    KEEP_MOVE_CONTACT, /* announces where it is found */
    KEEP_MOVE_VOUCH,   /* announces a vouch */
    KEEP_MOVE_BRING,   /* settles with it */
    KEEP_MOVE_REFUSE,
};

struct keep_move {
    enum keep_move_kind kind;
    const struct game_segment *segment; /* BRING */
    uint32_t round;                     /* BRING: the last one */
    const struct vouch *vouch;          /* VOUCH, BRING */
    const char *contact;                /* CONTACT */
};

/* Makes it, and waits until it is in a block. STATUS_REFUSED: the ledger's rules are against it, or
 * the account cannot pay. */
MUST_CHECK enum status keep_moves_make(const struct command_context *context,
                                       const struct signer *signer, const struct job_record *record,
                                       const struct keep_move *move, struct error *error);

#endif /* CLIENT_KEEPER_KEEP_MOVES_H */
