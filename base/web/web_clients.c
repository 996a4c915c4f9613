/* web_clients.c - see web_clients.h. */
#include "base/web/web_clients.h"

#include <sys/socket.h>

/* The oldest but one, with an answer that waits where that is asked for. */
static struct web_client *find_oldest(struct web_clients *clients, const struct web_client *but,
                                      bool has_answer)
{
    struct web_client *oldest = NULL;

    for (size_t i = 0; i < WEB_CLIENTS_MAX; i++) {
        struct web_client *client = &clients->all[i];

        if (client->is_here && !client->is_sent_away && client != but &&
            (!has_answer || client->bytes > 0) &&
            (oldest == NULL || client->number < oldest->number)) {
            oldest = client;
        }
    }
    return oldest;
}

static void send_away(struct web_clients *clients, struct web_client *client)
{
    (void)shutdown(client->socket, SHUT_RDWR);
    client->is_sent_away = true;
    clients->here--;
    clients->bytes -= client->bytes;
    client->bytes = 0;
}

struct web_client *web_clients_come(struct web_clients *clients, int socket)
{
    struct web_client *client = clients->all;

    while (client < clients->all + WEB_CLIENTS_MAX && client->is_here) {
        client++;
    }
    if (client == clients->all + WEB_CLIENTS_MAX) {
        return NULL;
    }
    *client = (struct web_client){.socket = socket, .is_here = true, .number = clients->came++};
    clients->here++;
    if (clients->here > WEB_CLIENTS_ROOM) {
        send_away(clients, find_oldest(clients, client, false));
    }
    return client;
}

void web_clients_go(struct web_clients *clients, struct web_client *client)
{
    if (!client->is_sent_away) {
        clients->here--;
        clients->bytes -= client->bytes;
    }
    client->is_here = false;
}

void web_clients_answer(struct web_clients *clients, struct web_client *client, size_t bytes)
{
    struct web_client *oldest = client;

    if (client->is_sent_away) {
        return;
    }
    clients->bytes += bytes - client->bytes;
    client->bytes = bytes;
    while (clients->bytes > WEB_CLIENTS_BYTES_MAX && oldest != NULL) {
        oldest = find_oldest(clients, client, true);
        if (oldest != NULL) {
            send_away(clients, oldest);
        }
    }
}
