/*
 * rpc.h - JSON-RPC to an EVM node, or to several that should agree.
 *
 * A call goes to the endpoint that worked last; trouble on the way (no connection, a timeout, a
 * malformed reply, "too many requests") moves on to the next, and after a round of all of them
 * waits, longer each time and never exactly as long, before the next round. A refusal
 * is an answer: it is returned at once. An endpoint that asks for a pause (Retry-After) gets it.
 *
 * What ails an endpoint is kept, with the time since when, until it is mended; what lasts is told
 * to the log, and so is its end.
 *
 * A call may arrive twice. Reads bear that, and so does a raw transaction, since its hash is its
 * identity.
 */
#ifndef CHAIN_EVM_RPC_RPC_H
#define CHAIN_EVM_RPC_RPC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/io/log.h"
#include "chain/evm/rpc/rpc_reply.h"

#define RPC_ENDPOINTS_MAX 16
#define RPC_REASON_SIZE   400

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
    const struct log *log; /* learns of endpoints that are ill; borrowed; NULL: nobody does */
    uint32_t tell_after_s; /* ... when it has lasted that long */
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

/* The same without params, also for an endpoint that is barred. */
MUST_CHECK enum status rpc_call_barred(struct rpc *rpc, size_t endpoint, json_t **result,
                                       const char *method, struct error *error);

/* One request with a list of params for the same method: *results has the results in their order.
 * STATUS_REFUSED: one of them, or the batch, was refused. */
MUST_CHECK enum status rpc_batch_at(struct rpc *rpc, size_t endpoint, json_t **results,
                                    const char *method, json_t *params_list, struct error *error);

/* The error object of the last STATUS_REFUSED. */
const struct rpc_failure *rpc_failure(const struct rpc *rpc);

size_t rpc_endpoint_count(const struct rpc *rpc);

/* "https://host:port", for sentences. */
const char *rpc_endpoint_label(const struct rpc *rpc, size_t endpoint);

/* The endpoints in the order in which to call them, rpc_endpoint_count() of them. Those that failed
 * lately come last, longer the more often they failed in a row. Returns how many come before. */
size_t rpc_endpoint_order(const struct rpc *rpc, size_t order[RPC_ENDPOINTS_MAX]);

struct rpc_endpoint_state {
    const char *label;
    bool ill;
    char reason[RPC_REASON_SIZE]; /* of an ill one */
    uint64_t since_s;             /* ... and the time of day at which that began */
};

void rpc_endpoint_look(const struct rpc *rpc, struct rpc_endpoint_state *state, size_t endpoint);

/* It answers, but not as it should: the reason stays until rpc_endpoint_clear() of this method. */
void rpc_endpoint_blame(struct rpc *rpc, size_t endpoint, const char *method, const char *reason);
void rpc_endpoint_clear(struct rpc *rpc, size_t endpoint, const char *method);

/* It is asked nothing more, for this reason; NULL: again. */
void rpc_endpoint_bar(struct rpc *rpc, size_t endpoint, const char *reason);

/* Has it failed twice in a row, or is it to be left alone? */
bool rpc_endpoint_is_out(const struct rpc *rpc, size_t endpoint);

/* Is there a stop? */
bool rpc_is_stopped(const struct rpc *rpc);

/* Counts a round and waits, as rpc_call() does between its rounds. False: rounds_max is reached, or
 * there is a stop. */
bool rpc_endpoint_again(struct rpc *rpc, uint32_t *round);

/* A call whose result is one quantity. */
MUST_CHECK enum status rpc_call_uint256(struct rpc *rpc, struct uint256 *value, const char *method,
                                        json_t *params, struct error *error);

#endif /* CHAIN_EVM_RPC_RPC_H */
