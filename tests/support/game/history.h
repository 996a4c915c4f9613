/*
 * history.h - random histories of the game: most moves plausible, some absurd.
 *
 * A history plays on twins (tests/support/game/twins.h) and learns from their events what jobs,
 * segments and claims there are. All moves of client, keeper, solver, panel and claimants come up.
 */
#ifndef TESTS_SUPPORT_GAME_HISTORY_H
#define TESTS_SUPPORT_GAME_HISTORY_H

#include "chain/keys/signer.h"
#include "tests/support/game/twins.h"

#define HISTORY_JOBS     2
#define HISTORY_SEGMENTS 512 /* more than one history commits */
#define HISTORY_CLAIMS   32
#define HISTORY_SEALS    8
#define HISTORY_STEPS    5                   /* of a segment, at most */
#define HISTORY_CLIENTS  2                   /* players 0 and 1 */
#define HISTORY_MEMBERS  3                   /* of allow-lists: the players after them */
#define HISTORY_KEEPER   (TWINS_PLAYERS - 2) /* a player that some jobs have as their keeper */

struct known_segment {
    struct hash32 job;
    struct game_segment segment;
    struct digest roots[HISTORY_STEPS + 1];
};

struct known_claim {
    struct hash32 key;
    struct game_subject subject;
};

struct sealed_claim {
    struct game_move move;
    uint32_t player;
};

struct history {
    uint64_t random;
    struct twins twins;
    uint8_t header[GAME_JOB_HEADER_SIZE];
    struct digest job_id;
    struct hash32 jobs[HISTORY_JOBS];
    struct local_job states[HISTORY_JOBS]; /* of these, before the move that is chosen */
    uint32_t job_count;
    uint64_t next_salt;
    struct known_segment segments[HISTORY_SEGMENTS];
    uint32_t segment_count;
    struct known_claim claims[HISTORY_CLAIMS];
    uint32_t claim_count;
    struct sealed_claim seals[HISTORY_SEALS];
    uint32_t seal_count;
    uint32_t patience;     /* of how many in a hundred verdicts are right */
    uint32_t hostility;    /* how many in a hundred moves are about claims */
    bool runs_ahead;       /* the solver does, until as many segments are open as may be */
    struct signer *keeper; /* of most jobs; it makes no moves */
    /* What the move borrows. */
    struct digest roots[HISTORY_STEPS + 1];
    struct digest siblings[GAME_ALLOW_MAX];
    uint8_t contact[GAME_CONTACT_MAX + 1];
    uint8_t vouch[GAME_VOUCH_MAX + 1];
    struct buffer payload;
};

/* Where a run begins: LOCKSTEP_FUZZ_SEED, or as usual. */
uint64_t history_seed(uint64_t usual);

/* The caller opens the twins. */
void history_init(struct history *history, uint64_t random);
void history_release(struct history *history);

/* To be told of every event of the twins. */
void history_learn(struct history *history, const struct game_event *event);

/* Forgets what it knew; opens jobs, and panels for them. */
void history_begin(struct history *history);

/* The next move, and the player that makes it. It may have made another before: see
 * HISTORY_MOVES_OF_ONE. */
#define HISTORY_MOVES_OF_ONE 2
uint32_t history_choose(struct history *history, struct game_move *move);

#endif /* TESTS_SUPPORT_GAME_HISTORY_H */
