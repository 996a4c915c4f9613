/*
 * local_rules.h - a move that is being played, and the checks that moves share.
 *
 * For local_game.c, local_claims.c and local_referee.c. Callers play through local_game.h.
 */
#ifndef CHAIN_LOCAL_LOCAL_RULES_H
#define CHAIN_LOCAL_LOCAL_RULES_H

#include "chain/game/game.h"
#include "chain/local/local_store.h"
#include "proofs/dispute/ledger_query.h"

#define LOCAL_EVENTS_MAX 4 /* of one move */

struct local_game {
    struct local_store *store;
    struct game_place place;
    struct address sender;
    struct address referee;
    bool judges; /* the referee is the embedded one: it judges QUERY, REPLY and CONVICT */
    uint64_t now_s;
    uint64_t height; /* of the block that this move is in */
    /* The hash of an earlier block, or zero when it is more than 256 blocks old. */
    enum status (*block_hash)(void *context, struct hash32 *hash, uint64_t height);
    void *context;
    /* Set by playing; events also borrow from the move: */
    struct game_event events[LOCAL_EVENTS_MAX];
    uint32_t event_count;
    struct game_refusal refusal;
    uint8_t queried[LEDGER_QUERIED_SIZE_MAX]; /* what an event borrows */
};

/* A segment that a move shows. */
struct local_segment {
    const struct game_segment *shown;
    struct hash32 hash;
    bool stands;
    struct local_tally tally;
};

/* A claim that a move is about. */
struct local_dispute {
    const struct hash32 *key;
    struct local_claim claim;
    struct local_job job;
};

enum status local_refuse(struct local_game *game, enum game_refusal_kind kind, wei number);
enum status local_refuse_other(struct local_game *game, const struct address *expected);
struct game_event *local_event(struct local_game *game, enum game_event_kind kind,
                               const struct hash32 *job);
enum status local_credit(struct local_game *game, const struct address *owner, wei amount);

enum status local_require_phase(struct local_game *game, const struct local_job *job,
                                enum game_phase phase);
enum status local_require_not_after(struct local_game *game, uint64_t time_s);
enum status local_require_after(struct local_game *game, uint64_t time_s);

/* The segment that a move shows, whether it stands or not. */
enum status local_find_segment(struct local_game *game, struct local_segment *segment,
                               const struct game_move *move, const struct local_job *job);
enum status local_require_standing(struct local_game *game, struct local_segment *segment,
                                   const struct game_move *move, const struct local_job *job);
uint64_t local_round_start(const struct local_segment *segment);
uint64_t local_claim_end(const struct local_job *job, const struct local_segment *segment);
uint64_t local_respond_by(const struct local_game *game, const struct local_job *job);

/* Forgets every segment that is not final. */
void local_void_committed(struct local_job *job);

/* A claim that the referee may judge now, loaded. */
enum status local_require_tried(struct local_game *game, struct local_dispute *dispute,
                                const struct hash32 *claim);
/* A move of the referee ends with one of these. Each saves the dispute. */
enum status local_give_turn(struct local_game *game, struct local_dispute *dispute,
                            enum game_turn turn);
enum status local_end_claim(struct local_game *game, struct local_dispute *dispute, bool upheld);
struct game_event *local_dispute_event(struct local_game *game, enum game_event_kind kind,
                                       const struct local_dispute *dispute);

/* The moves of a dispute. */
enum status local_answer(struct local_game *game, const struct game_move *move);
enum status local_seal_claim(struct local_game *game, const struct game_move *move);
enum status local_claim(struct local_game *game, const struct game_move *move);
enum status local_accuse(struct local_game *game, const struct game_move *move);
enum status local_pass_turn(struct local_game *game, const struct game_move *move);
enum status local_rule(struct local_game *game, const struct game_move *move);
enum status local_timeout(struct local_game *game, const struct game_move *move);
enum status local_lapse(struct local_game *game, const struct game_move *move);

/* The moves before the referee. */
enum status local_query(struct local_game *game, const struct game_move *move);
enum status local_reply(struct local_game *game, const struct game_move *move);
enum status local_convict(struct local_game *game, const struct game_move *move);

#endif /* CHAIN_LOCAL_LOCAL_RULES_H */
