/*
 * stage.h - a ledger of any kind with players, each with money and a key.
 *
 * The test sets the time of the embedded ledger; the node keeps that of a chain. A failure here
 * fails the test; without a chain's node the test is skipped.
 */
#ifndef TESTS_SUPPORT_GAME_STAGE_H
#define TESTS_SUPPORT_GAME_STAGE_H

#include "chain/game/ledger.h"
#include "tests/support/game/anvil.h"

enum stage_player {
    STAGE_CLIENT = 0,
    STAGE_SOLVER = 1,
    STAGE_VERIFIER = 2,
    STAGE_SECOND = 3, /* another verifier */
    STAGE_FRIEND = 4, /* of the attacker */
    STAGE_OTHER = 5,  /* another solver */
    STAGE_PLAYERS = 6,
};

enum stage_ledger {
    STAGE_EMBEDDED,
    STAGE_ANVIL,
    STAGE_HARDHAT,
    STAGE_TOKEN,    /* anvil, and a registry that plays for a token: each player has 1,000 of it */
    STAGE_ETHEREUM, /* anvil with Ethereum's number: seeds come sixteen blocks behind a commit */
};

struct stage {
    struct anvil *anvil; /* of any chain; NULL: embedded */
    struct rpc *rpc;
    struct ledger_options options;
    struct address token; /* zero: the coin */
    struct signer *signers[STAGE_PLAYERS];
    struct ledger *ledgers[STAGE_PLAYERS];
    char url[600];
    char state_dirs[STAGE_PLAYERS][600];
    uint64_t now_s; /* embedded */
    uint32_t moves;
};

void stage_open(struct stage *stage, enum stage_ledger ledger, const char *name);

void stage_close(struct stage *stage);

/* Sends a call to the token (tests/contracts/Harness.sol: Coin); numbers: its arguments. */
void stage_tell_token(struct stage *stage, const char *signature, const struct uint256 *numbers,
                      size_t count);

/* The player's process ends, and another begins with what is on the disk. */
void stage_restart(struct stage *stage, int player);
wei stage_owed(struct stage *stage, int player);
wei stage_money(struct stage *stage, int player); /* in the purse, and owed */

void stage_pass_time(struct stage *stage, uint32_t seconds);
uint64_t stage_clock(struct stage *stage);

/* Waits until a player's event log has the segment. */
struct game_segment stage_segment(struct stage *stage, int player, const struct hash32 *job,
                                  uint32_t index);

void stage_check(enum status status, const struct error *error);

/* One round; weather is allowed. */
void stage_work(struct ledger *ledger);

const char *stage_next_name(struct stage *stage, char *name, size_t size);

/* Waits until the move is refused, and says why. */
enum game_refusal_kind stage_refused(struct stage *stage, int player, const char *name);

/* Waits until the move is done, and that it was not refused. */
void stage_settle_down(struct stage *stage, int player, const char *name);

/* Submits call(ledger, name, ...) as a player and waits. */
#define STAGE_PLAY(stage, player, call, ...)                                                       \
    do {                                                                                           \
        char play_name[32];                                                                        \
        struct error play_error;                                                                   \
        stage_check(call((stage)->ledgers[player],                                                 \
                         stage_next_name(stage, play_name, sizeof(play_name)), __VA_ARGS__,        \
                         &play_error),                                                             \
                    &play_error);                                                                  \
        stage_settle_down(stage, player, play_name);                                               \
    } while (0)

#endif /* TESTS_SUPPORT_GAME_STAGE_H */
