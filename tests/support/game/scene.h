/*
 * scene.h - a job on a stage, played move by move by honest and dishonest parties whose states are
 * made_states.h.
 *
 * Each move waits until it is done; a failure fails the test. Money is counted from the moment
 * before the job is opened, gas included where there is a chain.
 */
#ifndef TESTS_SUPPORT_GAME_SCENE_H
#define TESTS_SUPPORT_GAME_SCENE_H

#include "chain/job/job_record.h"
#include "tests/support/game/made_states.h"
#include "tests/support/game/stage.h"

enum {
    SCENE_SEGMENTS = 3,
    SCENE_STEPS = 3, /* of a segment */
    SCENE_SEAL_S = 600,
    SCENE_REVEAL_S = 600,
    SCENE_CLAIM_S = 600,
    SCENE_CLOCK_S = 1200,
    SCENE_SEGMENT_S = 3600,
    SCENE_STRANGER = STAGE_PLAYERS, /* who is none of the stage's players, and plays by itself */
};

struct scene {
    struct stage stage;
    struct game_terms terms; /* change them before scene_open_job() */
    enum made_shape shape;   /* of the states; likewise */
    struct hash32 job;
    uint8_t header[GAME_JOB_HEADER_SIZE];
    wei before[STAGE_PLAYERS];
    struct job_record record; /* as the client reads it */
};

/* Standard terms: three segments of 1 ether, stake 20, one seat of 0.1, all covered, bonds of 1, no
 * keeper. */
void scene_open(struct scene *scene, enum stage_ledger ledger, const char *name);
void scene_close(struct scene *scene);

void scene_open_job(struct scene *scene);
void scene_enlist(struct scene *scene, int player, uint32_t entries);
/* A panel that anybody may enlist in has time to come together first. */
void scene_accept(struct scene *scene, int player);

/* The next segment, with the states that the job gives, or with others (lie: from which step on;
 * SCENE_STEPS: none). */
void scene_commit(struct scene *scene, int player, uint32_t lie);

/* Reads the events; the record is then up to date. */
void scene_read(struct scene *scene);
struct game_segment scene_segment(struct scene *scene, uint32_t index);

/* The random number of a block, which its maker knows before all others. */
struct hash32 scene_random_of(struct scene *scene, uint64_t height);

/* The first step of a segment that is not what the job gives; else how many there are. */
uint32_t scene_replay(struct scene *scene, uint32_t index);

/* Draws the seats of a segment, once. */
void scene_draw(struct scene *scene, uint32_t index);

/* A job of two seats, the friend's entries and one of the verifier's; its first segment, which lies
 * from a step on, is drawn. */
void scene_commit_for_two(struct scene *scene, uint32_t friends, uint32_t lie);

/* Who holds the n-th seat of the last round of a segment; SCENE_STRANGER: nobody of the stage;
 * -1: there are no more. */
int scene_seat(struct scene *scene, uint32_t index, uint32_t n, uint32_t *place);

/* What the players say in their seats. */
struct scene_verdicts {
    enum game_verdict of[STAGE_PLAYERS + 1]; /* NONE: absent, as are strangers */
    bool unseen[STAGE_PLAYERS + 1];          /* says that it could not get the states */
    bool made_up[STAGE_PLAYERS];             /* a right with leaves that nobody has seen */
    bool lazy[STAGE_PLAYERS];                /* of the last state alone, which anybody can fetch */
    int copies[STAGE_PLAYERS];               /* a right with the tags of this player; 0: its own */
    uint32_t false_step;                     /* of FALSE */
};

/* One round of a segment: all seats seal, and all reveal; time passes. The claim of an alarm is
 * *claim (NULL: there is none). */
void scene_round(struct scene *scene, uint32_t index, const struct scene_verdicts *verdicts,
                 struct hash32 *claim);

/* What players do in their seats of the last round now: they seal until its end, then they reveal;
 * what they have done they do not do again. No time passes. */
void scene_say(struct scene *scene, uint32_t index, const struct scene_verdicts *verdicts);

/* Rounds until no further one opens; then the claim time passes. */
void scene_rounds(struct scene *scene, uint32_t index, const struct scene_verdicts *verdicts);
/* The same, of players who say something else in the first round than later. */
void scene_rounds_after(struct scene *scene, uint32_t index, const struct scene_verdicts *first,
                        const struct scene_verdicts *later);

/* A round is closed, and the next one drawn. */
void scene_next_round(struct scene *scene, int player, uint32_t index);

/* A round is closed, or the leg becomes final or void. */
void scene_settle(struct scene *scene, int player, uint32_t index);

/* The same, with the keeper's vouch; a settle that comes too early for more notes it. keeper: the
 * player whose signature it is. */
void scene_vouch(struct scene *scene, int player, int keeper, uint32_t index);

/* Draws a segment, the verdicts are told, and it is settled. */
void scene_end_segment(struct scene *scene, uint32_t index, const struct scene_verdicts *verdicts);

/* Shows a leaf of the right of a player's seat, the first of the round; why that was refused. */
enum game_refusal_kind scene_challenge(struct scene *scene, int player, uint32_t index, int owner,
                                       uint32_t which);

/* The same of a player that has sealed nothing: it copies what another is about to show. */
enum game_refusal_kind scene_challenge_unsealed(struct scene *scene, int player, uint32_t index,
                                                int owner, uint32_t which);

/* An outsider's claim about a step of a segment; others: with that many claims of outsiders open
 * already. */
struct hash32 scene_claim(struct scene *scene, int player, uint32_t index, uint32_t step,
                          uint32_t others);
void scene_answer(struct scene *scene, int player, const struct hash32 *claim);
void scene_timeout(struct scene *scene, int player, const struct hash32 *claim);
void scene_pay(struct scene *scene, int player, uint32_t generation);

/* The solver is silent: the verifier's alarm convicts it, and each has what the rules say. */
void scene_see_convicted(struct scene *scene, const struct hash32 *alarm);

/* Two whole jobs, each on a ledger of its own: one that is done, verified and paid; a solver that
 * is convicted for silence. Handles close and open again in the middle; balances are exact. */
void scene_play_jobs(enum stage_ledger ledger);

/* Everybody's entries come back, as far as they are there. After the job is closed. */
void scene_depart(struct scene *scene);

/* How a player's call(ledger, name, ...) is refused. */
#define SCENE_REFUSAL(scene, player, call, ...)                                                    \
    ({                                                                                             \
        char refused_name[32];                                                                     \
        struct error refused_error;                                                                \
        error_init(&refused_error);                                                                \
        stage_check(call((scene)->stage.ledgers[player],                                           \
                         stage_next_name(&(scene)->stage, refused_name, sizeof(refused_name)),     \
                         __VA_ARGS__, &refused_error),                                             \
                    &refused_error);                                                               \
        stage_refused(&(scene)->stage, player, refused_name);                                      \
    })

void scene_pass(struct scene *scene, uint32_t seconds);
void scene_pass_blocks(struct scene *scene, uint32_t count);

/* What a player has more or less than before, in thousandths of an ether; a hundredth of an ether
 * of gas is forgiven where there is a chain. */
int64_t scene_gain(struct scene *scene, int player);
int64_t scene_gain_of(wei now, wei before); /* of an account that is no player's */

/* The same, of several players as one party. */
int64_t scene_party_gain(struct scene *scene, const int *players, uint32_t count);

/* Fails unless a gain is as wanted, on a chain within the gas of some hundred moves. */
void scene_see(struct scene *scene, int64_t gain, int64_t wanted);

#endif /* TESTS_SUPPORT_GAME_SCENE_H */
