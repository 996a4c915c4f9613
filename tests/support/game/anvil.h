/*
 * anvil.h - a chain for one test: starts the pinned anvil, or hardhat, on a free loopback port.
 *
 * If it is not installed the running test is skipped, with the reason. LOCKSTEP_ANVIL names another
 * anvil.
 */
#ifndef TESTS_SUPPORT_GAME_ANVIL_H
#define TESTS_SUPPORT_GAME_ANVIL_H

#include <stddef.h>
#include <stdint.h>

#include "chain/codec/address.h"
#include "chain/evm/rpc/rpc.h"
#include "chain/game/game.h"

struct anvil;

/* Skips the test where there is no anvil: before it has anything to give back. */
void anvil_need(void);

/* arguments: more options for anvil, NULL at the end; may be NULL. */
struct anvil *anvil_start(const char *const *arguments);

/* Hardhat's network in its place, with the same rich accounts and its own, stricter limits. */
struct anvil *anvil_start_hardhat(void);
void anvil_stop(struct anvil *anvil); /* NULL is fine */
void anvil_kill(struct anvil *anvil); /* at once, as a crash does; still to be stopped */

const char *anvil_url(const struct anvil *anvil);

/* A client of it. */
struct rpc *anvil_rpc(const struct anvil *anvil);

/* The key of its account that is rich from the start, by number from 0 to 9. */
struct secret_key anvil_key(uint32_t number);

/* Calls that must succeed; the test fails where they do not. params is taken; the result is the
 * caller's. */
json_t *anvil_call(struct rpc *rpc, const char *method, json_t *params);

uint64_t anvil_time_s(struct rpc *rpc); /* of the newest block */
/* The clock of its blocks goes on by so much, and one is made. */
void anvil_pass_time(struct rpc *rpc, uint32_t seconds);

/* A word of a block's header: "hash", "mixHash". */
struct hash32 anvil_word_of_block(struct rpc *rpc, uint64_t height, const char *field);

/* Sends from account number, waits for the receipt, and checks its status. The receipt is the
 * caller's. to may be NULL: creates a contract. value is a quantity, "0x0". */
json_t *anvil_send(struct rpc *rpc, uint32_t number, const struct address *to, const char *data,
                   const char *value);

/* Deploys from account number; code is hex without "0x". */
struct address anvil_deploy(struct rpc *rpc, uint32_t number, const char *code,
                            const struct address *argument, const char *value);

/* With addresses as the arguments of its constructor. */
struct address anvil_deploy_with(struct rpc *rpc, uint32_t number, const char *code,
                                 const struct address *arguments, size_t count, const char *value);

/* The seeds of that chain; and the rules with their examiner. */
struct address anvil_deploy_seeds(struct rpc *rpc, uint32_t number);
struct address anvil_deploy_examiner(struct rpc *rpc, uint32_t number);

/* The game of a registry there. */
struct game_place anvil_place(struct rpc *rpc, const struct address *registry);

/* A file of the pinned npm packages below tests/evm/node_modules; skips the test without it. */
const char *evm_tool(const char *path);

#endif /* TESTS_SUPPORT_GAME_ANVIL_H */
