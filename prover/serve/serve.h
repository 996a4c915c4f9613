/*
 * serve.h - a site by HTTP: read-only, bounded, to strangers.
 *
 * GET and HEAD of what content_tree.h names, whole or one range. Whoever is slow is given up,
 * whoever opens many connections is refused, requests have no bodies, and nothing in a request
 * becomes a path of the file system. TLS by certificate and key in PEM files.
 */
#ifndef PROVER_SERVE_SERVE_H
#define PROVER_SERVE_SERVE_H

#include "prover/serve/content_tree.h"

struct serve_options {
    const char *address;     /* to listen on: an IPv4 or IPv6 address */
    uint16_t port;           /* 0: any that is free */
    const char *certificate; /* PEM files, both or neither */
    const char *key;
    uint32_t connections_max;
    uint32_t connections_per_client;
    uint32_t ledger_retry_s; /* of a connection that does nothing */
};

struct serve_counts {
    uint64_t requests;
    uint64_t refused; /* not found, busy, malformed */
    uint64_t bytes;   /* of contents that were begun */
};

struct serve;

/* Borrows site until serve_close(). Threads are started: a stop must be open before. */
MUST_CHECK enum status serve_open(struct serve **serve, struct content_tree *tree,
                                  const struct serve_options *options, struct error *error);
void serve_close(struct serve *serve); /* NULL is fine; waits for what is under way */

uint16_t serve_port(const struct serve *serve);
struct serve_counts serve_counts(struct serve *serve);

enum serve_range {
    SERVE_WHOLE = 0, /* no range was asked for, or none that is understood: all of it */
    SERVE_PART,
    SERVE_OUTSIDE, /* a range that the content does not have */
};

/* Reads a Range header for a content of size bytes: one range of bytes. */
enum serve_range serve_read_range(uint64_t *first, uint64_t *count, const char *header,
                                  uint64_t size);

#endif /* PROVER_SERVE_SERVE_H */
