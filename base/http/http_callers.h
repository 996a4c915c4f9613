/*
 * http_callers.h - who is connected to a server, and who has to go.
 *
 * Where there is no room for another, somebody of the network (an IPv4 address, or 64 bits of IPv6)
 * that has most connections makes room: first who has not even asked yet, then the oldest. So
 * neither ten thousand silent ones nor sixteen addresses that drip keep anybody out. A caller that
 * takes too long over the headers of a request, or sends or reads slower than a trickle, has to go
 * too.
 *
 * Many threads may use it at once. Nothing here closes a socket: it is shut down, and its server
 * finds its end.
 */
#ifndef BASE_HTTP_HTTP_CALLERS_H
#define BASE_HTTP_HTTP_CALLERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr;

struct http_limits {
    uint32_t room;        /* connections at a time */
    uint32_t per_network; /* of them; 0: any */
    uint32_t head_ms;     /* until the headers of a request are whole */
    uint32_t pace_ms;     /* how often it is looked whether more came than a trickle */
    uint32_t trickle;     /* bytes a second */
    size_t bytes_max;     /* of answers in memory that nobody has read yet */
};

enum http_turn {
    HTTP_TURN_HEAD,   /* the caller has to send a request, */
    HTTP_TURN_BODY,   /* or what belongs to it */
    HTTP_TURN_WORK,   /* we have to answer */
    HTTP_TURN_ANSWER, /* the caller has to read */
};

struct http_callers; /* opaque */
struct http_caller;

/* NULL: no memory. */
struct http_callers *http_callers_new(const struct http_limits *limits);
void http_callers_free(struct http_callers *callers); /* NULL is fine */

/* Connections that its server must have places for: with those whose end it has not found yet. */
uint32_t http_callers_places(const struct http_limits *limits);

/* NULL: all places are taken. */
struct http_caller *http_callers_come(struct http_callers *callers, int socket,
                                      const struct sockaddr *address, uint64_t now_ms);
void http_callers_go(struct http_callers *callers, struct http_caller *caller);

/* Whose turn it is now. bytes: of an answer that waits in memory. */
void http_callers_turn(struct http_callers *callers, struct http_caller *caller,
                       enum http_turn turn, size_t bytes, uint64_t now_ms);

/* Sends away who is too slow. To be called several times within pace_ms. */
void http_callers_look(struct http_callers *callers, uint64_t now_ms);

#endif /* BASE_HTTP_HTTP_CALLERS_H */
