/*
 * local_rules.h - a move that is being played, and what the parts of the game share.
 *
 * For local_game.c, local_legs.c, local_panel.c, local_seeds.c, local_claims.c and local_referee.c.
 * Callers play through local_game.h.
 */
#ifndef CHAIN_LOCAL_LOCAL_RULES_H
#define CHAIN_LOCAL_LOCAL_RULES_H

#include "chain/game/game.h"
#include "chain/game/leg.h"
#include "chain/local/local_store.h"
#include "proofs/dispute/ledger_query.h"

#define LOCAL_EVENTS_MAX (GAME_PLACES_MAX + 8) /* of one move: each seat that is paid has one */

struct local_game {
    struct local_store *store;
    struct game_place place;
    struct address sender;
    uint64_t now_s;
    uint64_t height; /* of the block that this move is in */
    /* The random number of an earlier block that a contract could still read. */
    enum status (*random)(void *context, struct hash32 *random, uint64_t height);
    void *context;
    /* Set by playing; events also borrow from the move: */
    struct game_event events[LOCAL_EVENTS_MAX];
    uint32_t event_count;
    struct game_refusal refusal;
    uint8_t queried[LEDGER_QUERIED_SIZE_MAX]; /* what an event borrows */
};

/* A segment that a move shows, with its job. */
struct local_segment {
    const struct hash32 *key;         /* of the job */
    const struct game_segment *shown; /* NULL where its hash was */
    uint32_t index;
    struct hash32 hash;
    struct local_job job;
    struct local_tally tally;
};

enum status local_refuse(struct local_game *game, enum game_refusal_kind kind, wei number);
enum status local_refuse_other(struct local_game *game, const struct address *expected);

/* job may be NULL: then the event names only its claim. */
struct game_event *local_event(struct local_game *game, enum game_event_kind kind,
                               const struct hash32 *job);

/* ---- checks: each refuses ---- */

enum status local_require_phase(struct local_game *game, const struct local_job *job,
                                enum game_phase phase);
enum status local_require_sender(struct local_game *game, const struct address *expected);
enum status local_require_value(struct local_game *game, const struct game_move *move,
                                wei expected);
/* A bond comes with the move, or from what its sender is owed: never a part from each. */
enum status local_take_bond(struct local_game *game, const struct game_move *move, wei bond);
enum status local_require_not_after(struct local_game *game, uint64_t time_s);
enum status local_require_after(struct local_game *game, uint64_t time_s);
enum status local_require_short(struct local_game *game, const struct game_bytes *contact);
enum status local_require_allowed(struct local_game *game, const struct hash32 *root,
                                  const struct game_hashes *path);

/* ---- money ---- */

enum status local_credit(struct local_game *game, const struct address *owner, wei amount);
enum status local_burn(struct local_game *game, wei amount);

/* ---- jobs and segments ---- */

enum status local_get_job(struct local_game *game, struct local_job *job, const struct hash32 *key);
enum status local_put_job(struct local_game *game, const struct local_job *job,
                          const struct hash32 *key);

/* A segment that stands: committed in a running job, and not void. Refuses any other. */
enum status local_require_subject(struct local_game *game, struct local_segment *segment,
                                  const struct hash32 *key, uint32_t index,
                                  const struct hash32 *hash);
/* The same, of a segment that a move shows. */
enum status local_require_shown(struct local_game *game, struct local_segment *segment,
                                const struct hash32 *key, const struct game_segment *shown);
/* One that is not final, either. */
enum status local_require_pending(struct local_game *game, struct local_segment *segment,
                                  const struct hash32 *key, const struct game_segment *shown);
/* Its job and its tally. */
enum status local_save_segment(struct local_game *game, const struct local_segment *segment);

uint64_t local_round_end(const struct local_segment *segment);
uint64_t local_first_step(const struct local_job *job, uint32_t index);

/* A commit may come until the next is due, and never after the deadline. */
uint64_t local_due_from_now(const struct local_game *game, const struct local_job *job);

/* The client gets what was for segments that never will be final. */
enum status local_close(struct local_game *game, struct local_job *job, const struct hash32 *key);
/* Nobody has the job now; every segment that is not final is forgotten, and so is the panel. */
void local_reopen(struct local_game *game, struct local_job *job);

/* ---- the panel ---- */

enum local_place local_get_place(const struct local_tally *tally, uint32_t place);
/* The entry at a place. */
enum status local_get_seated(struct local_game *game, struct local_entry *entry,
                             const struct local_segment *segment, uint32_t place);
/* What was told about a covered segment. */
struct leg_tally local_told(const struct local_segment *segment);
/* Rights are missing: another round can be drawn, with the seed of a commit in this block. */
enum status local_close_round(struct local_game *game, const struct local_segment *segment);
/* The entry at a place that a round has reached. */
enum status local_entry_at(struct local_game *game, uint32_t *number,
                           const struct local_segment *segment, uint32_t place);
/* A seat reveals that a step is false: its entry is gone, and its bond the claim's. Saves. */
enum status local_raise(struct local_game *game, struct local_segment *segment,
                        const struct game_move *move);
/* The right at a place, of a segment that stands and is not final. */
struct local_right {
    struct local_segment segment;
    struct local_entry entry;
};
enum status local_find_right(struct local_game *game, struct local_right *right,
                             const struct game_move *move);
/* A right was disproved: the bond of its entry is taken, half of it for the sender. Saves. */
enum status local_disprove(struct local_game *game, struct local_right *right, uint32_t place);

/* ---- seeds ---- */

/* The random of a commit in that block, and whether a later one had to stand in. */
enum status local_random_of(struct local_game *game, struct hash32 *random, bool *late,
                            uint64_t height, uint64_t time_s);

/* ---- disputes ---- */

/* A dispute that a move is about. */
struct local_trial {
    const struct hash32 *key; /* of the claim */
    struct local_dispute dispute;
};

/* Is it tried, and the sender's turn, in time? */
enum status local_require_tried(struct local_game *game, struct local_trial *trial,
                                const struct hash32 *key, enum game_turn turn);
/* What a claim or a challenge sealed, 1 to 32 blocks ago. */
enum status local_open_seal(struct local_game *game, const struct hash32 *subject,
                            const struct hash32 *salt);
/* A move before the referee ends with one of these. Each saves the dispute. */
enum status local_pass_turn(struct local_game *game, struct local_trial *trial);
enum status local_uphold(struct local_game *game, struct local_trial *trial);
struct game_event *local_claim_event(struct local_game *game, enum game_event_kind kind,
                                     const struct hash32 *claim);
/* Did the solver commit to the states before and after the step? */
enum status local_check_case(struct local_game *game, const struct local_segment *segment,
                             const struct game_case *shown);

/* The solver was proven wrong: *stake is the referee's to share out. */
enum status local_convict_solver(struct local_game *game, wei *stake, struct local_job *job,
                                 const struct hash32 *key);

/* ---- the moves ---- */

enum status local_enlist(struct local_game *game, const struct game_move *move);
enum status local_depart(struct local_game *game, const struct game_move *move);
enum status local_announce(struct local_game *game, const struct game_move *move);
enum status local_draw(struct local_game *game, const struct game_move *move);
enum status local_fix(struct local_game *game, const struct game_move *move);
enum status local_seal(struct local_game *game, const struct game_move *move);
enum status local_reveal(struct local_game *game, const struct game_move *move);
enum status local_unseen(struct local_game *game, const struct game_move *move);

enum status local_settle(struct local_game *game, const struct game_move *move);
enum status local_release(struct local_game *game, const struct game_move *move);

enum status local_seal_claim(struct local_game *game, const struct game_move *move);
enum status local_claim(struct local_game *game, const struct game_move *move);
enum status local_alarm(struct local_game *game, const struct game_move *move);
enum status local_answer(struct local_game *game, const struct game_move *move);
enum status local_timeout(struct local_game *game, const struct game_move *move);
enum status local_lapse(struct local_game *game, const struct game_move *move);
enum status local_pay(struct local_game *game, const struct game_move *move);

enum status local_query(struct local_game *game, const struct game_move *move);
enum status local_reply(struct local_game *game, const struct game_move *move);
enum status local_convict(struct local_game *game, const struct game_move *move);
enum status local_challenge(struct local_game *game, const struct game_move *move);

#endif /* CHAIN_LOCAL_LOCAL_RULES_H */
