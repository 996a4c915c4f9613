/*
 * virtual_chain.h - a chain in memory: blocks, a pool, reorganizations, and the rules of the game.
 *
 * The rules are those of the embedded ledger (chain/local/local_game.h). A block holds a random
 * share of what waits in the pool, each sender's moves in their order. A reorganization takes the
 * last blocks back and mines others: what was in them waits again, and comes in another order. The
 * referee is virtual where it would look at a trace: it asks the test whether the step is false, so
 * that nothing need be computed.
 */
#ifndef TESTS_SUPPORT_NODE_VIRTUAL_CHAIN_H
#define TESTS_SUPPORT_NODE_VIRTUAL_CHAIN_H

#include "base/io/database.h"
#include "chain/game/ledger.h"
#include "chain/local/local_game.h"

#define VIRTUAL_BLOCKS_MAX 4096
#define VIRTUAL_MOVES_MAX  4096
#define VIRTUAL_PURSE      (100000 * WEI_PER_ETHER) /* of each account, at the beginning */

struct virtual_log {
    struct game_log log;
    uint8_t *data;
};

struct virtual_block {
    uint64_t time_s;
    struct hash32 hash;
    struct virtual_log *logs;
    uint32_t log_count;
};

struct virtual_move {
    struct address sender;
    wei value;
    uint8_t *bytes;
    size_t size;
    uint64_t height;             /* of its block; 0: it waits, or is lost */
    uint32_t place;              /* in its block */
    struct game_refusal refusal; /* of a move in a block; kind REFUSED_NOT where refused is false */
    bool refused;
};

/* What a move before the referee is to show; payloads are these bytes. */
struct virtual_evidence {
    uint8_t kind;   /* 'q' query, 'c' convict */
    uint8_t number; /* of the query */
};

/* Of every virtual chain. */
extern const struct game_place virtual_place;

struct virtual_chain {
    struct database sql;
    struct local_store store; /* the state after the last block */
    struct error error;
    uint64_t random;
    struct virtual_block blocks[VIRTUAL_BLOCKS_MAX]; /* by height; 0 is the beginning */
    uint64_t height;
    struct virtual_move moves[VIRTUAL_MOVES_MAX];
    uint32_t move_count;
    struct address rich[16]; /* who has money from the beginning */
    uint32_t rich_count;
    uint64_t forks;
    /* Is this no step of the job? ends: it is said to have diverged there. */
    bool (*is_false)(const struct digest *pre_state, const struct digest *post_state, bool ends);
};

/* Borrows nothing. */
struct virtual_chain *virtual_chain_new(uint64_t seed, uint64_t start_s);
void virtual_chain_free(struct virtual_chain *chain);
void virtual_chain_enrich(struct virtual_chain *chain, const struct address *account);

/* Into the pool; returns the move's number. */
uint32_t virtual_chain_send(struct virtual_chain *chain, const struct address *sender,
                            const struct game_move *move);

/* One block at now_s, or the last block's time where that is later; percent: the chance that a
 * move which waits is in it. */
void virtual_chain_mine(struct virtual_chain *chain, uint64_t now_s, uint32_t percent);

/* The last depth blocks are replaced by as many others. */
void virtual_chain_reorganize(struct virtual_chain *chain, uint64_t depth);

/* Would the rules refuse it in a block of that time? */
bool virtual_chain_refuses(struct virtual_chain *chain, const struct address *sender,
                           const struct game_move *move, uint64_t time_s,
                           struct game_refusal *refusal);

uint64_t virtual_chain_time(const struct virtual_chain *chain); /* of the last block */

#endif /* TESTS_SUPPORT_NODE_VIRTUAL_CHAIN_H */
