/*
 * market.h - a ledger with a client, a solver and a verifier's node, for tests of whole jobs.
 *
 * The test sets the time of the embedded ledger; anvil keeps that of a chain. The node is the real
 * one, in this process, with real children: the test's main() must also serve as a worker. A
 * failure here fails the test.
 */
#ifndef TESTS_SUPPORT_GAME_MARKET_H
#define TESTS_SUPPORT_GAME_MARKET_H

#include "tests/support/game/anvil.h"
#include "tests/support/numeric/small_job.h"
#include "verifier/dispute/dispute_child.h"
#include "verifier/node/node_round.h"

enum market_player {
    MARKET_CLIENT = 0,
    MARKET_SOLVER,
    MARKET_VERIFIER,
    MARKET_RIVAL, /* another verifier */
    MARKET_PLAYERS,
};

/* Periods of the terms, in seconds. On a chain real time passes too: they outlast a busy
 * machine. */
enum {
    MARKET_SEAL_S = 3600,
    MARKET_REVEAL_S = 3600,
    MARKET_CLAIM_S = 3600,
    MARKET_CLOCK_S = 3600,
    MARKET_GRACE_S = 600, /* of the node */
};

struct market {
    struct anvil *anvil; /* NULL: embedded */
    struct rpc *rpc;
    struct ledger_options options;
    struct signer *signers[MARKET_PLAYERS];
    struct ledger *ledgers[MARKET_PLAYERS];
    char url[600];
    char folders[MARKET_PLAYERS][600];
    uint64_t now_s;
    uint32_t moves;
    uint64_t salt;
    enum market_player client; /* opens and closes; MARKET_CLIENT where nobody says otherwise */
    uint32_t seats;            /* of each segment, in the terms; 1 likewise */
    /* How many entries each has in the panel before the job is accepted: the verifier one. */
    uint32_t entries[MARKET_PLAYERS];
    void (*retouch)(struct game_terms *terms); /* before a job is opened; NULL: nothing is */
};

void market_open(struct market *market, bool embedded, const char *name);
void market_close(struct market *market);
/* Lets go of every file of the ledger, and takes them up again: what lies there may be older. */
void market_leave(struct market *market);
void market_return(struct market *market);
void market_pass_time(struct market *market, uint32_t seconds);
struct game_terms market_terms(struct market *market, const struct job *job);

/* A job that nobody has accepted, and the end of one. */
struct hash32 market_open_job(struct market *market, const struct job *job);
void market_close_job(struct market *market, const struct hash32 *job);

/* A job that is opened, whose panel enlists, and that is accepted; nothing is committed. */
struct hash32 market_accept(struct market *market, const char *path);
/* Commits the segments from `first` on, up to the one before `end`, as the bundle says. */
void market_commit_some(struct market *market, const struct hash32 *job, const char *path,
                        uint32_t first, uint32_t end);

/* A job that is opened, accepted and committed whole, as the bundle at path says. */
struct hash32 market_commit(struct market *market, const char *path);

/* The same, of a solver who says of segment `index` that it ends, after that many steps, in a NaN
 * or infinity; nothing behind it is committed. */
struct hash32 market_commit_diverged(struct market *market, const char *path, uint32_t index,
                                     uint32_t steps);

/* Moves that change nothing, each in a block of its own. */
void market_mine(struct market *market, const struct hash32 *job, int blocks);

/* Draws a segment; the first place that player has in it, GAME_PLACES_MAX where none. */
uint32_t market_draw(struct market *market, enum market_player player, const struct hash32 *job,
                     uint32_t index);
/* The verdict of a place, with leaves and a salt that follow from `number`. */
void market_seal(struct market *market, enum market_player player, const struct hash32 *job,
                 uint32_t index, uint32_t place, enum game_verdict verdict, uint8_t number);
void market_reveal(struct market *market, enum market_player player, const struct hash32 *job,
                   uint32_t index, uint32_t place, enum game_verdict verdict, uint8_t number);

void market_answer(struct market *market, enum market_player player, const struct hash32 *claim,
                   const struct digest *trace_root);
void market_timeout(struct market *market, enum market_player player, const struct hash32 *claim);

struct game_segment market_segment(struct market *market, const struct hash32 *job, uint32_t index);
struct ledger_job market_job(struct market *market, const struct hash32 *job);
void market_settle(struct market *market, const struct hash32 *job, uint32_t index);
wei market_owed(struct market *market, enum market_player player);
wei market_money(struct market *market, enum market_player player); /* in the purse, and owed */

/* How many events of this kind are about this account (NULL: about anybody). */
uint32_t market_count(struct market *market, enum game_event_kind kind,
                      const struct address *account);

/* ---- the node ---- */

/* Checks that run in this process, one at a time, when their answer is fetched: for tests
 * of what a node does between two instructions. */
#define MARKET_CHECKS_MAX 8

struct market_checks {
    struct check_request *requests[MARKET_CHECKS_MAX];
    uint64_t numbers[MARKET_CHECKS_MAX];
    uint32_t count;
};

struct market_node {
    struct market *market;
    bool in_process; /* no children: see market_checks */
    struct market_checks checks;
    struct store store;
    struct verdict_db *verdicts;
    struct workers *workers;
    const char *program;     /* that checks; NULL: the one that runs */
    const struct keep *keep; /* NULL: nothing is kept */
    struct node node;
    struct node_options options;
    const char *mirrors[8];
    char cache[600];
    struct ledger *ledger; /* the verifier's, borrowed */
};

/* options beyond the defaults are set before; folder is made. */
void market_node_defaults(struct market_node *node, struct market *market, const char *mirror);
void market_node_open(struct market_node *node);
/* The same in a child of the test, where a failure must not jump back into the test. */
MUST_CHECK enum status market_node_try_open(struct market_node *node, struct error *error);
void market_node_close(struct market_node *node);

/* Rounds until nothing runs, waits or moves; where no check runs a second passes in each. */
void market_node_settle(struct market_node *node);
int64_t market_node_number(struct market_node *node, const char *query);

#endif /* TESTS_SUPPORT_GAME_MARKET_H */
