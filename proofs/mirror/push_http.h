/*
 * push_http.h - puts files into a mirror: HTTP PUT with a token, for whoever cannot be called.
 */
#ifndef PROOFS_MIRROR_PUSH_HTTP_H
#define PROOFS_MIRROR_PUSH_HTTP_H

#include "proofs/mirror/serve.h"

#define PUSH_HTTP_TOKEN_MAX 1024

struct push_http;

/* Borrows base and token. */
MUST_CHECK enum status push_http_open(struct push_http **push, const char *base, const char *token,
                                      uint32_t timeout_s, struct error *error);
void push_http_close(struct push_http *push); /* NULL is fine */

/* Has the mirror a file of this size under the name? */
bool push_http_has(struct push_http *push, const char *name, uint64_t size);

/* Puts the content there. STATUS_REFUSED: the mirror does not want it; STATUS_UNREACHABLE. */
MUST_CHECK enum status push_http_put(struct push_http *push, const char *name,
                                     const struct serve_content *content, struct error *error);

#endif /* PROOFS_MIRROR_PUSH_HTTP_H */
