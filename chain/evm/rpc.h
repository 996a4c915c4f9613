/*
 * rpc.h - JSON-RPC to an EVM node, or to several that should agree.
 *
 * A call goes to the endpoint that worked last; trouble on the way (no connection, a timeout, a
 * malformed reply, "too many requests") moves on to the next, and after a round of all of them
 * waits, longer each time and never exactly as long, before the next round. A refusal
 * is an answer: it is returned at once.
 *
 * A call may arrive twice. Reads bear that, and so does a raw transaction, since its hash is its
 * identity.
 */
#ifndef CHAIN_EVM_RPC_H
#define CHAIN_EVM_RPC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "chain/evm/rpc_reply.h"

#define RPC_ENDPOINTS_MAX 16

struct rpc_options {
    const char *const *urls; /* borrowed for rpc_new */
    size_t url_count;        /* 1 .. RPC_ENDPOINTS_MAX */
    uint32_t timeout_ms;     /* of one request */
    uint32_t rounds_max;     /* how often all endpoints are tried; at least 1 */
    uint32_t wait_ms_first;  /* before the second round; doubles from then on */
    uint32_t wait_ms_max;
    size_t reply_size_max;
    bool (*stopped)(void *context); /* polled while waiting; NULL: never */
    void *context;
};

/* Sensible values for everything but the URLs. */
void rpc_options_init(struct rpc_options *options);

struct rpc;

struct rpc *rpc_new(const struct rpc_options *options, struct error *error);
void rpc_free(struct rpc *rpc); /* NULL is fine */

/* Takes params (NULL: none). On STATUS_OK *result is the caller's. STATUS_REFUSED: the node said
 * no, see rpc_failure(). STATUS_UNREACHABLE: nobody gave an answer. STATUS_STOPPED. */
MUST_CHECK enum status rpc_call(struct rpc *rpc, json_t **result, const char *method,
                                json_t *params, struct error *error);

/* Calls one endpoint, once: for comparing answers. */
MUST_CHECK enum status rpc_call_at(struct rpc *rpc, size_t endpoint, json_t **result,
                                   const char *method, json_t *params, struct error *error);

/* The error object of the last STATUS_REFUSED. */
const struct rpc_failure *rpc_failure(const struct rpc *rpc);

size_t rpc_endpoint_count(const struct rpc *rpc);

/* "https://host:port", for sentences. */
const char *rpc_endpoint_label(const struct rpc *rpc, size_t endpoint);

/* The endpoints in the order in which to call them, rpc_endpoint_count() of them. Those that failed
 * lately come last, longer the more often they failed in a row. Returns how many come before. */
size_t rpc_endpoint_order(const struct rpc *rpc, size_t order[RPC_ENDPOINTS_MAX]);

/* Is there a stop? */
bool rpc_is_stopped(const struct rpc *rpc);

/* Counts a round and waits, as rpc_call() does between its rounds. False: rounds_max is reached, or
 * there is a stop. */
bool rpc_endpoint_again(struct rpc *rpc, uint32_t *round);

/* A call whose result is one quantity. */
MUST_CHECK enum status rpc_call_uint256(struct rpc *rpc, struct uint256 *value, const char *method,
                                        json_t *params, struct error *error);

#endif /* CHAIN_EVM_RPC_H */
