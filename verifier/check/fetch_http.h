/*
 * fetch_http.h - one file by HTTP, into a part file that can be gone on with. Used by fetch.c only.
 *
 * Refused: other protocols, redirects, more bytes than asked for, and endpoints that trickle: less
 * than FETCH_TRICKLE bytes a second over the whole patience is silence.
 */
#ifndef VERIFIER_CHECK_FETCH_HTTP_H
#define VERIFIER_CHECK_FETCH_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define FETCH_TRICKLE 1024

struct fetch_http;

MUST_CHECK enum status fetch_http_open(struct fetch_http **http, uint64_t bandwidth_max,
                                       uint32_t timeout_s, struct error *error);
/* From now on; at least a second. */
void fetch_http_set_timeout(struct fetch_http *http, uint32_t timeout_s);
void fetch_http_close(struct fetch_http *http); /* NULL is fine */

/*
 * Gets base/name into part, going on where an earlier call left it; *bytes is what came over the
 * line. STATUS_NOT_FOUND: the endpoint says it has none. STATUS_UNREACHABLE: it failed, and part
 * may be gone on with. STATUS_OVER_LIMIT: it sends more than size_max; part is gone.
 */
MUST_CHECK enum status fetch_http_get(struct fetch_http *http, uint64_t *bytes, const char *base,
                                      const char *name, const char *part, uint64_t size_max,
                                      struct error *error);

bool fetch_http_is_url(const char *mirror);

/* A number that tells mirrors apart. */
uint32_t fetch_http_mark(const char *mirror);

#endif /* VERIFIER_CHECK_FETCH_HTTP_H */
