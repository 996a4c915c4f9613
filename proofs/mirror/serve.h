/*
 * serve.h - serves content by its names to strangers by HTTP, bounded.
 *
 * GET and HEAD of the names that a source knows, whole or one range; PUT where the source takes
 * content in and the request has the token, if it wants one. Idle connections are closed and the
 * connections of one client limited. TLS by certificate and key in PEM files.
 */
#ifndef PROOFS_MIRROR_SERVE_H
#define PROOFS_MIRROR_SERVE_H

#include "base/digest.h"
#include "base/io/listen.h"

#define SERVE_PATH_MAX 256

/* Either a part of a file, or bytes. */
struct serve_content {
    int descriptor;  /* of a file; -1: bytes */
    uint64_t offset; /* of the part in the file */
    uint64_t size;
    uint8_t *bytes;
    const char *type;
    bool fixed;         /* a root fixes the bytes: they never change */
    struct digest root; /* that root */
};

void serve_content_release(struct serve_content *content);

/* What is served; many threads use it at once. */
struct serve_source {
    void *context;
    const char *header; /* of a request, that find is told of; NULL: none */
    /* Finds the content of a path, which begins with no slash. STATUS_NOT_FOUND, STATUS_REFUSED,
     * STATUS_OVER_LIMIT (busy) are told to the client. */
    enum status (*find)(void *context, struct serve_content *content, const char *path,
                        const char *header, struct error *error);
    /* All NULL: nothing is taken in. Content comes in pieces, and appears when it is whole.
     * take_begin makes *intake, which take_end frees; keep: all of it came. */
    enum status (*take_begin)(void *context, void **intake, const char *path, struct error *error);
    enum status (*take)(void *intake, const void *bytes, size_t size, struct error *error);
    enum status (*take_end)(void *intake, bool keep, struct error *error);
    const char *token; /* that a PUT must show: "Authorization: Bearer TOKEN"; NULL: none */
};

/* The options of commands that serve: TLS, and how many connections. */
#define SERVE_OPTIONS                                                                              \
    {.name = "certificate",                                                                        \
     .heading = "serving",                                                                         \
     .kind = OPTION_TEXT,                                                                          \
     .value = "FILE",                                                                              \
     .help = "serve by TLS: the certificate, and those above it, as PEM"},                         \
        {.name = "tls-key",                                                                        \
         .heading = "serving",                                                                     \
         .kind = OPTION_TEXT,                                                                      \
         .value = "FILE",                                                                          \
         .help = "with --certificate: the key of the certificate, as PEM"},                        \
        {.name = "connections",                                                                    \
         .heading = "serving",                                                                     \
         .kind = OPTION_INTEGER,                                                                   \
         .value = "N",                                                                             \
         .maximum = 10000,                                                                         \
         .fallback = "256",                                                                        \
         .help = "connections at a time"},                                                         \
    {                                                                                              \
        .name = "connections-per-client", .heading = "serving", .kind = OPTION_INTEGER,            \
        .value = "N", .maximum = 10000, .fallback = "16",                                          \
        .help = "connections at a time from one address"                                           \
    }

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

/* Borrows what source points to until serve_close(). Starts threads: open a stop before. */
MUST_CHECK enum status serve_open(struct serve **serve, const struct serve_source *source,
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

#endif /* PROOFS_MIRROR_SERVE_H */
