/*
 * fetch_http.h - gets a file by HTTP into a part file, which a later call resumes; or a part of a
 * file into memory.
 *
 * Refused: other protocols, redirects, and more bytes than the limit. Less than FETCH_TRICKLE bytes
 * a second over the whole timeout is silence (fetch_pace_trickle(): with a pace it may be less).
 */
#ifndef PROOFS_MIRROR_FETCH_HTTP_H
#define PROOFS_MIRROR_FETCH_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include "base/http/http_reach.h"
#include "base/io/stop.h"
#include "proofs/mirror/fetch_pace.h"

#define FETCH_TRICKLE 1024 /* HTTP_CLIENT_TRICKLE */

struct fetch_http;

/* Borrows the pace; NULL: as fast as it comes. */
MUST_CHECK enum status fetch_http_open(struct fetch_http **http, struct fetch_pace *pace,
                                       uint32_t timeout_s, struct error *error);
/* For the calls that follow; at least a second. */
void fetch_http_set_timeout(struct fetch_http *http, uint32_t timeout_s);
/* A header, "NAME: VALUE", for the calls that follow. NULL: none. */
void fetch_http_set_header(struct fetch_http *http, const char *header);
/* Ends fetch_http_get() early, as STATUS_STOPPED. Borrows stop; NULL: nothing does. */
void fetch_http_set_stop(struct fetch_http *http, struct stop *stop);
/* What it may call; HTTP_REACH_PUBLIC until this is said. */
void fetch_http_set_reach(struct fetch_http *http, enum http_reach reach);
void fetch_http_close(struct fetch_http *http); /* NULL is fine */

/*
 * Gets base/name into part, and resumes what part holds; *bytes counts what came over the line.
 * STATUS_NOT_FOUND: the endpoint has no such file, or shows it to others only. STATUS_UNREACHABLE:
 * it failed; part stays for the next call. STATUS_OVER_LIMIT: it sends more than size_max; part is
 * deleted.
 */
MUST_CHECK enum status fetch_http_get(struct fetch_http *http, uint64_t *bytes, const char *base,
                                      const char *name, const char *part, uint64_t size_max,
                                      struct error *error);

/*
 * Gets the `size` bytes of base/name that begin at `first`, into bytes; *came says how many of them
 * came, in order, also after a failure. STATUS_REFUSED: the endpoint gives no parts of files.
 * STATUS_BAD_FORMAT: it has a shorter file there. Ends early, as STATUS_STOPPED, once *cancel is
 * true.
 */
MUST_CHECK enum status fetch_http_range(struct fetch_http *http, uint8_t *bytes, size_t *came,
                                        const char *base, const char *name, uint64_t first,
                                        size_t size, const atomic_bool *cancel,
                                        struct error *error);

/* Did the last transfer call nobody, since its address is beyond the reach? */
bool fetch_http_refused(const struct fetch_http *http);

/* Did the last transfer end because nothing came for the whole timeout? */
bool fetch_http_stalled(const struct fetch_http *http);

/* A number that tells mirrors apart. */
uint32_t fetch_http_mark(const char *mirror);

#endif /* PROOFS_MIRROR_FETCH_HTTP_H */
