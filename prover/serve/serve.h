/*
 * serve.h - serves a content tree to strangers by HTTP, read-only and bounded.
 *
 * GET and HEAD of the names of content_tree.h, whole or one range. Idle connections are closed and
 * the connections of one client limited. Requests have no bodies, and nothing in a request becomes
 * a path of the file system. TLS by certificate and key in PEM files.
 */
#ifndef PROVER_SERVE_SERVE_H
#define PROVER_SERVE_SERVE_H

#include "base/io/listen.h"
#include "prover/serve/content_tree.h"

struct serve_options {
    struct listen_place place;
    const char *certificate; /* PEM files, both or neither */
    const char *key;
    uint32_t connections_max;
    uint32_t connections_per_client;
    uint32_t idle_s; /* after which an idle connection is closed */
};

struct serve_counts {
    uint64_t requests;
    uint64_t refused; /* not found, busy, malformed */
    uint64_t bytes;   /* of contents, also of those that were cut short */
};

struct serve;

/* Borrows tree until serve_close(). Starts threads: open a stop before. */
MUST_CHECK enum status serve_open(struct serve **serve, struct content_tree *tree,
                                  const struct serve_options *options, struct error *error);
void serve_close(struct serve *serve); /* NULL is fine; waits for running requests */

uint16_t serve_port(const struct serve *serve);
struct serve_counts serve_counts(struct serve *serve);

enum serve_range {
    SERVE_WHOLE = 0, /* no range, or one that we do not understand: all of it */
    SERVE_PART,
    SERVE_OUTSIDE, /* a range that the content does not have */
};

/* Reads a Range header for a content of size bytes: one range of bytes. */
enum serve_range serve_read_range(uint64_t *first, uint64_t *count, const char *header,
                                  uint64_t size);

#endif /* PROVER_SERVE_SERVE_H */
