/*
 * poll.h - one question to all endpoints, and the answer that counts.
 *
 * An answer counts if more than half of all endpoints give it, not only of those that answered. A
 * single endpoint is believed. Of numbers that grow (head, nonce) the largest that more than half
 * have reached counts. An answer that is malformed, or about something else than the query, is
 * none.
 */
#ifndef CHAIN_EVM_RPC_POLL_H
#define CHAIN_EVM_RPC_POLL_H

#include <jansson.h>

#include "base/error.h"
#include "chain/evm/rpc/rpc.h"

/* Reduces an answer to what must be equal, as text for free(). STATUS_BAD_FORMAT for one that
 * cannot be an answer to the query: malformed, or about something else. */
typedef enum status poll_reduce(char **text, const json_t *answer, const void *subject,
                                struct error *error);

/* Asks the same endpoint for what an answer lacks, before it is reduced. May replace *answer. */
typedef enum status poll_complete(json_t **answer, struct rpc *rpc, size_t endpoint,
                                  const void *subject, struct error *error);

struct poll_query {
    const char *method;
    json_t *params; /* taken; of a batch: a list of them, and the answer is a list of results */
    poll_reduce *reduce;
    const void *subject;     /* what an answer must be about */
    poll_complete *complete; /* NULL: answers are whole */
    bool batch;
};

/* An answer that must be equal in everything, and is a string or an object. */
struct poll_query poll_whole(const char *method, json_t *params);

/* *answer is one of those that agree. An endpoint that did not answer is tried again before the
 * call fails: one lost request must not cost a whole round. */
MUST_CHECK enum status poll_majority(struct rpc *rpc, json_t **answer, struct poll_query query,
                                     struct error *error);

/* Takes params. field: which of the answer's is the number; NULL: the answer is it. Endpoints that
 * failed lately are tried only if there is no majority without them. */
MUST_CHECK enum status poll_largest(struct rpc *rpc, uint64_t *number, const char *method,
                                    json_t *params, const char *field, struct error *error);

/* For a poll_reduce: a copy of found; and an endpoint that lies, or is broken. */
MUST_CHECK enum status poll_keep_text(char **text, const char *found, struct error *error);
enum status poll_false_reply(struct error *error, const char *what);

#endif /* CHAIN_EVM_RPC_POLL_H */
