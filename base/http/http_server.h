/*
 * http_server.h - the frame of every HTTP server here: it listens, bounds connections, requests and
 * time (http_callers.h), and refuses what is no sound request before its server sees it.
 *
 * Refused: a length that is said twice or in two ways, no Host or two, a part of a file in a PUT.
 * At a loopback address a Host that is none of this machine's names is refused too: a page of a
 * stranger whose name was turned to this machine must not read what is shown here. A zero byte in
 * a URL stays as it was sent, "%00", which is part of no name.
 */
#ifndef BASE_HTTP_HTTP_SERVER_H
#define BASE_HTTP_HTTP_SERVER_H

#include <microhttpd.h>

#include "base/http/http_callers.h"
#include "base/io/listen.h"

#define HTTP_SERVER_REQUEST_MAX (16u << 10) /* bytes of line and headers */
#define HTTP_SERVER_HEAD_MS     10000       /* until they are whole */
#define HTTP_SERVER_PACE_MS     10000
#define HTTP_SERVER_TRICKLE     256 /* bytes a second, below which a client has to go */

struct http_server_options {
    const struct listen_place *place;
    const char *what;        /* "the status": for errors */
    const char *certificate; /* PEM; NULL: no TLS */
    const char *key;
    uint32_t room;        /* connections */
    uint32_t per_network; /* of them; 0: any */
    uint32_t idle_s;
    size_t bytes_max; /* of answers in memory that nobody has read yet; 0: they are not told of */
    bool threads;     /* one for each connection: an answer may take its time */
    MHD_AccessHandlerCallback answer;
    MHD_RequestCompletedCallback complete; /* NULL: nobody is told */
    void *context;                         /* of both */
};

struct http_server; /* opaque */

/* Starts threads: open a stop before. */
MUST_CHECK enum status http_server_open(struct http_server **server,
                                        const struct http_server_options *options,
                                        struct error *error);
void http_server_close(struct http_server *server); /* NULL is fine; waits for requests */

uint16_t http_server_port(const struct http_server *server);

/* An answer of so many bytes in memory is queued: to be told by a server with bytes_max. */
void http_server_holds(struct http_server *server, struct MHD_Connection *connection, size_t bytes);

/* What every answer has, and a page above it. */
void http_server_headers(struct MHD_Response *response, const char *type);

#endif /* BASE_HTTP_HTTP_SERVER_H */
