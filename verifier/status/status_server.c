/* status_server.c - see status_server.h. */
#include "verifier/status/status_server.h"

#include <stdlib.h>

#include "base/web/sheet_site.h"
#include "verifier/status/metrics.h"
#include "verifier/status/status_page.h"
#include "verifier/store/store.h"

struct status_server {
    struct sheet_server *web;
    struct store store;
    struct node_snapshot *snapshot;
};

static enum status show_node(void *context, struct sheet *sheet, uint64_t now_ms,
                             struct error *error)
{
    struct status_server *server = context;

    TRY(node_snapshot_look(server->snapshot, &server->store, now_ms, error));
    status_page_show(sheet, server->snapshot);
    metrics_show(sheet, server->snapshot);
    return STATUS_OK;
}

static const char *trouble_text(void *context)
{
    const struct status_server *server = context;

    return node_snapshot_trouble(server->snapshot);
}

enum status status_server_open(struct status_server **server, const char *path,
                               const struct listen_place *place, struct error *error)
{
    struct status_server *made = calloc(1, sizeof(*made));
    const struct sheet_site site = {.has_metrics = true,
                                    .size_max = STATUS_PAGE_SIZE_MAX,
                                    .show = show_node,
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
    TRY_OUT(sheet_server_open(&made->web, &site, place, error));
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
    sheet_server_close(server->web);
    store_close(&server->store);
    free(server->snapshot);
    free(server);
}

uint16_t status_server_port(const struct status_server *server)
{
    return web_server_port(sheet_server_web(server->web));
}
