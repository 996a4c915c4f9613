/* status_server.c - see status_server.h. */
#include "verifier/status/status_server.h"

#include <stdlib.h>

#include "verifier/status/metrics.h"
#include "verifier/status/status_page.h"
#include "verifier/store/store.h"

struct status_server {
    struct web_server *web;
    struct store store;
    struct node_snapshot *snapshot;
};

static enum status look_at_node(void *context, uint64_t now_ms, struct error *error)
{
    struct status_server *server = context;

    return node_snapshot_look(server->snapshot, &server->store, now_ms, error);
}

static const char *trouble_text(void *context)
{
    const struct status_server *server = context;

    return node_snapshot_trouble(server->snapshot);
}

static void write_page(struct buffer *answer, void *context, const struct web_query *query)
{
    const struct status_server *server = context;

    (void)query;
    status_page_write(answer, server->snapshot);
}

static void write_metrics(struct buffer *answer, void *context, const struct web_query *query)
{
    const struct status_server *server = context;

    (void)query;
    metrics_write(answer, server->snapshot);
}

static const struct web_route routes[] = {{"/", WEB_SERVER_PAGE, write_page},
                                          {"/metrics", WEB_SERVER_METRICS, write_metrics}};

enum status status_server_open(struct status_server **server, const char *path,
                               const struct listen_place *place, struct error *error)
{
    struct status_server *made = calloc(1, sizeof(*made));
    const struct web_site site = {.routes = routes,
                                  .route_count = sizeof(routes) / sizeof(routes[0]),
                                  .size_max = STATUS_PAGE_SIZE_MAX,
                                  .look = look_at_node,
                                  .trouble = trouble_text,
                                  .context = made};
    enum status status;

    *server = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to serve the status");
    }
    made->snapshot = calloc(1, sizeof(*made->snapshot));
    TRY_OUT(made->snapshot == NULL
                ? error_set(error, STATUS_NO_MEMORY, "no memory to serve the status")
                : STATUS_OK);
    TRY_OUT(store_open(&made->store, path, STORE_READ, error));
    TRY_OUT(web_server_open(&made->web, &site, place, error));
    *server = made;
    return STATUS_OK;
out:
    status_server_close(made);
    return status;
}

void status_server_close(struct status_server *server)
{
    if (server == NULL) {
        return;
    }
    web_server_close(server->web);
    store_close(&server->store);
    free(server->snapshot);
    free(server);
}

uint16_t status_server_port(const struct status_server *server)
{
    return web_server_port(server->web);
}
