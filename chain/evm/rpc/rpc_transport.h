/*
 * rpc_transport.h - one HTTP endpoint: sends a body, returns a body, over a connection kept open.
 *
 * The reply's size and time are bounded; redirects, other protocols and compressed bodies are not
 * taken. Messages name only the host: the rest of a URL may hold the user's access key.
 */
#ifndef CHAIN_EVM_RPC_RPC_TRANSPORT_H
#define CHAIN_EVM_RPC_RPC_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define RPC_URL_MAX          2048
#define RPC_LABEL_SIZE       300
#define RPC_REQUEST_SIZE_MAX (32u * 1024 * 1024)
#define RPC_REPLY_SIZE_MAX   (32u * 1024 * 1024)
#define RPC_PAUSE_S_MAX      600

struct rpc_transport;

/* timeout_ms bounds a whole request. NULL, and error set, for a URL that is not http or https. */
struct rpc_transport *rpc_transport_new(const char *url, uint32_t timeout_ms, size_t reply_size_max,
                                        struct error *error);
void rpc_transport_free(struct rpc_transport *transport); /* NULL is fine */

/* stopped is polled about once a second during a request; if it is true, the request ends with
 * STATUS_STOPPED. */
void rpc_transport_stop_by(struct rpc_transport *transport, bool (*stopped)(void *context),
                           void *context);

/* "https://host:port" */
const char *rpc_transport_label(const struct rpc_transport *transport);

/* Posts body. *reply stays valid until the next call. STATUS_UNREACHABLE for a fault that another
 * endpoint or a later try may mend: no connection, a timeout, a cut or too long reply, an HTTP
 * status that is not 200. *pause_s: how long the endpoint then asked to be left alone (Retry-After
 * of 429 and 503, at most RPC_PAUSE_S_MAX); else 0. */
MUST_CHECK enum status rpc_transport_post(struct rpc_transport *transport, const char **reply,
                                          size_t *reply_size, uint32_t *pause_s, const char *body,
                                          size_t body_size, struct error *error);

#endif /* CHAIN_EVM_RPC_RPC_TRANSPORT_H */
