/*
 * moves.h - the moves of a dispute: kept as actions (queue.h), sent by the pen, and made anew when
 * the ledger refuses them for a reason that can change.
 *
 * The bytes of a move lie in the claim's folder in the cache (duel.h). A move's name follows from
 * the claim, the number of the turn and, after a refusal, how many were refused in it: so a node
 * that is killed at any point sends the same move again, and none twice.
 */
#ifndef VERIFIER_DISPUTE_MOVES_H
#define VERIFIER_DISPUTE_MOVES_H

#include "verifier/dispute/duel.h"
#include "verifier/node/node.h"

#define MOVES_ATTEMPTS_MAX 8  /* moves with other bytes, in one turn */
#define MOVES_TRIES_MAX    12 /* of one with the same bytes that is refused without a reason */

/* What a refusal asks for. */
enum moves_reaction {
    MOVES_OVER = 0,  /* it can never be taken */
    MOVES_AGAIN,     /* the same bytes, later */
    MOVES_ANEW,      /* what it was made from has changed: it is made anew from the ledger */
    MOVES_OTHERWISE, /* it does not convict: other evidence is looked for */
};
enum moves_reaction moves_reaction(enum game_refusal_kind kind);

/* Where the memory of a dispute lies. */
MUST_CHECK enum status moves_folder(char folder[FILE_PATH_MAX], const struct node *node,
                                    const struct hash32 *claim, struct error *error);
/* Writes one of its files, if there is such a folder: else it is somebody else's dispute. */
MUST_CHECK enum status moves_keep(const struct node *node, const struct hash32 *claim,
                                  const char *name, const void *bytes, size_t size,
                                  struct error *error);

/* "move-3", "move-3-1" after one refusal. */
void moves_file(char name[CHECK_NOTE_MAX], uint32_t turn, uint32_t attempt);

/* Plans to send what the file holds, until deadline_s. */
MUST_CHECK enum status moves_plan(struct node *node, const struct store_claim *claim,
                                  enum duel_kind kind, uint32_t turn, uint32_t attempt,
                                  uint64_t deadline_s, struct error *error);

/* When what could not be sent, or was refused for now, is due again: tries, this one included. */
uint64_t moves_again_s(const struct node *node, uint32_t tries);

/* For the pen: sends, and says what a refused one becomes: PLANNED again, due at *due_s, or
 * REFUSED. */
MUST_CHECK enum status moves_send(struct node *node, const struct action *action,
                                  struct error *error);
MUST_CHECK enum status moves_refused(struct node *node, enum action_state *state, uint64_t *due_s,
                                     struct action *action, struct error *error);

/* The bytes of a planned move cannot be had any more: it is not planned, and made anew. */
MUST_CHECK enum status moves_lost(struct node *node, const struct action *action, const char *why,
                                  struct error *error);

/* Our tries to find a move have failed once more. */
MUST_CHECK enum status moves_failed(struct node *node, const struct hash32 *claim, const char *why,
                                    struct error *error);

#endif /* VERIFIER_DISPUTE_MOVES_H */
