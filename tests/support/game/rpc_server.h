/*
 * rpc_server.h - an endpoint on loopback, in a thread, that misbehaves in every way an endpoint
 * can.
 *
 * The server answers each request by the next behaviour of its script; the last one stays.
 */
#ifndef TESTS_SUPPORT_GAME_RPC_SERVER_H
#define TESTS_SUPPORT_GAME_RPC_SERVER_H

#include <jansson.h>
#include <stdint.h>

enum rpc_behaviour {
    RPC_GOOD,         /* {"jsonrpc":"2.0","id":ID,"result":"0x2a"} */
    RPC_HANGS,        /* never answers */
    RPC_CLOSES,       /* closes the connection without a word */
    RPC_RESETS,       /* closes it with a reset */
    RPC_CUT_BODY,     /* announces more bytes than it sends */
    RPC_TRICKLES,     /* one byte, long pauses */
    RPC_ENDLESS_BODY, /* chunked, without end */
    RPC_ENDLESS_HEADER,
    RPC_HUGE_LENGTH, /* announces 2^62 bytes */
    RPC_NOT_HTTP,
    RPC_STATUS_500,
    RPC_STATUS_429,
    RPC_REDIRECTS, /* to itself */
    RPC_EMPTY_BODY,
    RPC_NOT_JSON,
    RPC_JSON_AND_MORE, /* a good answer with bytes after it */
    RPC_BATCH,         /* a good answer in an array */
    RPC_WRONG_ID,
    RPC_TEXT_ID, /* the right id as a string */
    RPC_NO_ID,
    RPC_NO_VERSION,
    RPC_DUPLICATE_KEY, /* result twice */
    RPC_BOTH,          /* result and error */
    RPC_NEITHER,
    RPC_BAD_ERROR, /* an error without a code */
    RPC_DEEP,      /* 100,000 nested arrays */
    RPC_BAD_UTF8,
    RPC_WRONG_TYPE,   /* result is a number */
    RPC_PAST_RANGE,   /* a quantity of 65 digits */
    RPC_LEADING_ZERO, /* "0x02a" */
    RPC_REFUSES,      /* error 3, "execution reverted", with data */
    RPC_LIMITS,       /* error -32005 */
    RPC_BEHAVIOURS,
};

struct rpc_server;

/* Answers with a function of its own instead of a script: writes a whole JSON reply for the
 * request body into reply, returns its length. Of a batch it gets each request by itself. */
typedef int rpc_answer(char *reply, int reply_size, const char *request, void *context);

/* An answer whose context is a client (struct rpc) of a chain: passes its answers on. */
rpc_answer rpc_server_pass_on;

/* Writes the reply to a request that was read; result is taken, NULL is an error. */
int rpc_server_write(char *reply, int reply_size, const json_t *queried, json_t *result);

struct rpc_server *rpc_server_start(const enum rpc_behaviour *script, uint32_t script_count);
struct rpc_server *rpc_server_start_answering(rpc_answer *answer, void *context);
/* Of period requests the first that many get no answer. */
void rpc_server_fail_some(struct rpc_server *server, uint32_t period, uint32_t failing);

/* A batch of more requests is refused as a whole, as many providers do; 0: none. */
void rpc_server_limit_batches(struct rpc_server *server, uint32_t most);
void rpc_server_stop(struct rpc_server *server);

const char *rpc_server_url(const struct rpc_server *server);
uint32_t rpc_server_request_count(struct rpc_server *server);

#endif /* TESTS_SUPPORT_GAME_RPC_SERVER_H */
