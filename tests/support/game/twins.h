/*
 * twins.h - the embedded ledger and the contracts side by side, playing the same moves.
 *
 * On the contracts a driver (tests/contracts/Harness.sol) plays many moves in one transaction,
 * with a clock of the test's own. Moves are played on the embedded side at once; twins_compare()
 * then plays them on the contracts; the bytes of every event and refusal and every balance must be
 * equal. Skips the test without anvil.
 */
#ifndef TESTS_SUPPORT_GAME_TWINS_H
#define TESTS_SUPPORT_GAME_TWINS_H

#include "base/buffer.h"
#include "chain/local/local_game.h"
#include "tests/support/game/anvil.h"

#define TWINS_PLAYERS 6
#define TWINS_MOVES   150 /* between two comparisons */
#define TWINS_LOGS    (TWINS_MOVES * 40)

struct twins {
    /* The embedded side. */
    struct database sql;
    struct local_store store;
    struct local_game *game; /* the move that is played */
    struct error error;
    uint64_t now_s;
    uint64_t height;
    struct address players[TWINS_PLAYERS];
    void (*learn)(void *context, const struct game_event *event); /* may be NULL */
    void *context;
    /* What was played and is not compared yet. */
    struct buffer script;
    struct game_log logs[TWINS_LOGS]; /* their data are owned */
    uint32_t log_count;
    struct {
        bool done;
        uint8_t bytes[GAME_REVERT_SIZE];
        size_t size;
        uint32_t logs_before;
        enum game_move_kind kind;
    } outcomes[TWINS_MOVES];
    uint32_t outcome_count;
    /* Of this registry: */
    wei paid_in;
    wei paid_out;
    wei paid_in_by[TWINS_PLAYERS];
    wei paid_out_of[TWINS_PLAYERS]; /* what was owed to them */
    /* Of all: */
    uint32_t done_of[GAME_MOVE_KINDS];
    uint32_t refused_of[GAME_REFUSAL_KINDS];
    /* The contracts. */
    struct anvil *anvil;
    struct rpc *rpc;
    struct address driver;
    struct address examiner; /* zero: not put up on this chain */
    struct address referee;
    struct address registry;
    struct game_place place; /* of the registry; embedded alone: zeros */
    bool direct;  /* each move is a transaction of its player's own, and nothing is compared */
    uint64_t gas; /* of the last of them */
};

void twins_open(struct twins *twins);
/* To measure gas: see direct. The chain is as young as anvil's newest. */
void twins_open_direct(struct twins *twins);
/* Without the contracts: there is nothing to compare with then, and nothing is skipped. */
void twins_open_embedded(struct twins *twins);
void twins_close(struct twins *twins);

/* Anvil keeps every block in memory: thousands of transactions want a fresh one now and then. */
void twins_restart_chain(struct twins *twins);

/* Fresh contracts, as they are deployed but for the clock and the chance, and a fresh ledger. */
void twins_new_court(struct twins *twins);

/* A fresh embedded ledger alone. */
void twins_new_store(struct twins *twins);

/* Plays a move on the embedded side and keeps it for the contracts. What was refused is said;
 * GAME_REFUSED_NOT and done: it was not. */
struct twins_outcome {
    bool done;
    struct game_refusal refusal;
};
struct twins_outcome twins_play(struct twins *twins, const struct game_move *move, uint32_t player);

/* Plays on the contracts what was played, and compares. The gas of the transaction. promised: what
 * must lie in the contract beside what is owed. */
uint64_t twins_compare(struct twins *twins, wei promised);

#endif /* TESTS_SUPPORT_GAME_TWINS_H */
