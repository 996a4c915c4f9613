/*
 * web_clients.h - who is connected to a server of pages. Where there is no room for another, or too
 * much waits to be read, the oldest has to go: ten thousand silent or slow ones keep nobody out,
 * and cost no more than what is named here.
 *
 * For one thread. Nothing here closes a socket: it is shut down, and its server finds its end.
 */
#ifndef BASE_WEB_WEB_CLIENTS_H
#define BASE_WEB_WEB_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEB_CLIENTS_ROOM      192 /* above that, each new one costs the oldest its place */
#define WEB_CLIENTS_MAX       256 /* with those whose end the server has not found yet */
#define WEB_CLIENTS_BYTES_MAX ((size_t)64 << 20) /* of answers that nobody has read yet */

struct web_client {
    int socket;
    bool is_here; /* the place is taken */
    bool is_sent_away;
    uint64_t number; /* in the order of coming */
    size_t bytes;    /* of its answer */
};

struct web_clients {
    struct web_client all[WEB_CLIENTS_MAX];
    uint64_t came;
    uint32_t here; /* and not sent away */
    size_t bytes;
};

/* A zero-filled struct web_clients has nobody. NULL: all places are taken. */
struct web_client *web_clients_come(struct web_clients *clients, int socket);
void web_clients_go(struct web_clients *clients, struct web_client *client);

/* An answer of so many bytes waits for it; 0: no more. */
void web_clients_answer(struct web_clients *clients, struct web_client *client, size_t bytes);

#endif /* BASE_WEB_WEB_CLIENTS_H */
