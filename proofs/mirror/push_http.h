/*
 * push_http.h - puts files into a mirror: HTTP PUT with a token, for a solver that cannot be
 * called.
 */
#ifndef PROOFS_MIRROR_PUSH_HTTP_H
#define PROOFS_MIRROR_PUSH_HTTP_H

#include "base/http/http_reach.h"
#include "proofs/mirror/serve.h"

#define PUSH_HTTP_TOKEN_MAX 1024

struct push_http;

/* Borrows base and token; token NULL: none is shown. */
MUST_CHECK enum status push_http_open(struct push_http **push, const char *base, const char *token,
                                      uint32_t timeout_s, struct error *error);
/* What it may call; anything until this is said: the user named it. */
void push_http_set_reach(struct push_http *push, enum http_reach reach);
void push_http_close(struct push_http *push); /* NULL is fine */

/* Has the mirror a file of this size under the name? */
bool push_http_has(struct push_http *push, const char *name, uint64_t size);

/* Puts the content there. STATUS_REFUSED: the mirror does not want it; STATUS_UNREACHABLE. */
MUST_CHECK enum status push_http_put(struct push_http *push, const char *name,
                                     const struct serve_content *content, struct error *error);

#endif /* PROOFS_MIRROR_PUSH_HTTP_H */
