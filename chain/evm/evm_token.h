/*
 * evm_token.h - a token (ERC-20) that a registry plays for, in place of the chain's coin.
 *
 * A token is a stranger's contract: its answers are bounded, and a balance that is more money than
 * there is counts as the most that there may be.
 */
#ifndef CHAIN_EVM_EVM_TOKEN_H
#define CHAIN_EVM_EVM_TOKEN_H

#include "chain/evm/evm.h"
#include "chain/evm/outbox.h"

#define EVM_TOKEN_SYMBOL_SIZE 33

struct evm_token {
    char symbol[EVM_TOKEN_SYMBOL_SIZE]; /* printable; empty: it tells none */
    uint32_t decimals;                  /* 0: it tells none */
    bool rebasing; /* its balances change by themselves: a registry of it would not add up */
};

/* Symbol and decimals alone, of what is known to be a token. */
MUST_CHECK enum status evm_token_name(struct rpc *rpc, struct evm_token *about,
                                      const struct address *token, struct error *error);

/* Reads what a token says of itself. STATUS_REFUSED: no token answers there. */
MUST_CHECK enum status evm_token_look(struct rpc *rpc, struct evm_token *about,
                                      const struct address *token, struct error *error);

/* STATUS_REFUSED: no token, or one that is unfit. */
MUST_CHECK enum status evm_token_check(struct rpc *rpc, const struct address *token,
                                       struct error *error);

MUST_CHECK enum status evm_token_balance(struct rpc *rpc, wei *balance, const struct address *token,
                                         const struct address *account, struct error *error);

/* Lets the registry take what the account pays, by a transaction of the outbox, unless it may take
 * that much already or one is on its way. */
MUST_CHECK enum status evm_token_approve(struct outbox *outbox, struct rpc *rpc,
                                         const struct address *token, const struct address *account,
                                         const struct address *registry, wei amount,
                                         struct error *error);

#endif /* CHAIN_EVM_EVM_TOKEN_H */
