/*
 * dispute_send.h - sends the moves of disputes, and answers a ledger that refuses one.
 *
 * A move is kept as an action (queue.h); its bytes lie in the dispute's folder. Its name follows
 * from the claim, the number of the turn and how many moves were refused in it. So a node that is
 * killed at any point sends the same move again, and none twice.
 */
#ifndef VERIFIER_DISPUTE_DISPUTE_SEND_H
#define VERIFIER_DISPUTE_DISPUTE_SEND_H

#include "base/io/log.h"
#include "verifier/dispute/dispute.h"
#include "verifier/dispute/dispute_move.h"
#include "verifier/store/queue.h"

#define DISPUTE_ATTEMPTS_MAX 8  /* moves with other bytes, in one turn */
#define DISPUTE_TRIES_MAX    12 /* of one with the same bytes that is refused without a reason */

/* What disputes need of the code that drives them. Everything is borrowed. */
struct dispute_ports {
    struct store *store;
    struct ledger *ledger;
    const struct log *log;
    const char *cache; /* the folder of the disputes' folders */
    uint32_t move_max; /* bytes of a move's payload; 0: what the ledger takes */
    uint64_t time_s;   /* the ledger's */
    uint64_t now_ms;
    void *context;
    /* Does a child look for a move of this claim? */
    bool (*is_running)(void *context, const struct hash32 *claim);
    /* Starts a child that finds the move. STATUS_NOT_FOUND: none is free, or it cannot be asked. */
    enum status (*run_step)(void *context, const struct dispute *dispute,
                            const struct store_segment *segment, struct error *error);
    /* This machine made a claim that is false. */
    enum status (*find_fault)(void *context, const char *why, struct error *error);
};

/* What a refusal asks for. */
enum dispute_reaction {
    DISPUTE_OVER = 0,  /* it can never be taken */
    DISPUTE_AGAIN,     /* the same bytes, later */
    DISPUTE_REMAKE,    /* what it was made from has changed: it is made again from the ledger */
    DISPUTE_OTHERWISE, /* it does not convict: other evidence is looked for */
};
enum dispute_reaction dispute_reaction(enum game_refusal_kind kind);

/* Where a dispute has its folder. */
MUST_CHECK enum status dispute_folder(char folder[FILE_PATH_MAX], const char *cache,
                                      const struct hash32 *claim, struct error *error);
/* Writes a file of a dispute, if it has a folder. One without is somebody else's. */
MUST_CHECK enum status dispute_keep(const char *cache, const struct hash32 *claim, const char *name,
                                    const void *bytes, size_t size, struct error *error);
/* Removes a file of a dispute. One that stays does no harm. */
void dispute_drop(const char *cache, const struct hash32 *claim, const char *name);

/* Do we lead, and is it the claimant's turn? */
bool dispute_is_ours_to_move(const struct dispute_ports *ports, const struct store_dispute *claim);

/* Does another claimant lead, whose turn it is, and we wait to take over? A claimant that is ready
 * then has its whole clock for the moves. */
bool dispute_is_followed(const struct dispute_ports *ports, const struct store_dispute *claim);

/* Plans to send the move of a turn. */
MUST_CHECK enum status dispute_plan(const struct dispute_ports *ports,
                                    const struct store_dispute *claim, enum dispute_kind kind,
                                    const struct dispute *dispute, struct error *error);

/* When a move that could not be sent, or was refused for now, is due again: tries, this one
 * included. */
uint64_t dispute_again_s(uint64_t now_s, uint32_t tries);

/* For the signing guard: sends a move. */
MUST_CHECK enum status dispute_send(const struct dispute_ports *ports, const struct action *action,
                                    struct error *error);
/* What a refused move becomes: PLANNED again, due at *due_s, or REFUSED. */
MUST_CHECK enum status dispute_refused(const struct dispute_ports *ports, enum action_state *state,
                                       uint64_t *due_s, struct action *action, struct error *error);

/* The bytes of a planned move are gone: forgets the plan, so that the move is found again. */
MUST_CHECK enum status dispute_lost(const struct dispute_ports *ports, const struct action *action,
                                    const char *why, struct error *error);

/* One more try to find a move has failed. */
MUST_CHECK enum status dispute_failed(const struct dispute_ports *ports, const struct hash32 *claim,
                                      const char *why, struct error *error);

#endif /* VERIFIER_DISPUTE_DISPUTE_SEND_H */
