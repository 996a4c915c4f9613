/* sheet_site.c - see sheet_site.h. */
#include "base/web/sheet_site.h"

#include <stdlib.h>

#define ROUTES_MAX 3

struct sheet_server {
    struct web_server *web;
    struct sheet_site site;
    struct sheet sheet;
    uint64_t now_s;
    struct web_route routes[ROUTES_MAX];
};

static void write_page(struct buffer *answer, void *context, const struct web_query *query)
{
    const struct sheet_server *server = context;

    (void)query;
    sheet_page_write(answer, &server->sheet, server->now_s);
}

static void write_json(struct buffer *answer, void *context, const struct web_query *query)
{
    const struct sheet_server *server = context;

    (void)query;
    sheet_json_write(answer, &server->sheet);
}

static void write_metrics(struct buffer *answer, void *context, const struct web_query *query)
{
    const struct sheet_server *server = context;

    (void)query;
    sheet_metrics_write(answer, &server->sheet);
}

static enum status make_sheet(void *context, uint64_t now_ms, struct error *error)
{
    struct sheet_server *server = context;

    sheet_release(&server->sheet);
    sheet_init(&server->sheet);
    server->now_s = now_ms / 1000;
    return server->site.show(server->site.context, &server->sheet, now_ms, error);
}

static const char *trouble_of(void *context)
{
    const struct sheet_server *server = context;

    return server->site.trouble(server->site.context);
}

/* Returns how many. */
static size_t list_routes(struct sheet_server *server)
{
    const struct sheet_site *site = &server->site;
    size_t count = 0;

    server->routes[count++] = (struct web_route){"/", WEB_SERVER_PAGE, write_page};
    if (site->json != NULL) {
        server->routes[count++] = (struct web_route){site->json, "application/json", write_json};
    }
    if (site->has_metrics) {
        server->routes[count++] = (struct web_route){"/metrics", WEB_SERVER_METRICS, write_metrics};
    }
    return count;
}

enum status sheet_server_open(struct sheet_server **server, const struct sheet_site *site,
                              const struct listen_place *place, struct error *error)
{
    struct sheet_server *made = calloc(1, sizeof(*made));
    struct web_site web = {
        .size_max = site->size_max, .look = make_sheet, .trouble = trouble_of, .context = made};
    enum status status;

    *server = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to serve the status");
    }
    made->site = *site;
    sheet_init(&made->sheet);
    web.routes = made->routes;
    web.route_count = list_routes(made);
    status = web_server_open(&made->web, &web, place, error);
    if (status != STATUS_OK) {
        sheet_server_close(made);
        return status;
    }
    *server = made;
    return STATUS_OK;
}

void sheet_server_close(struct sheet_server *server)
{
    if (server != NULL) {
        web_server_close(server->web);
        sheet_release(&server->sheet);
        free(server);
    }
}

const struct web_server *sheet_server_web(const struct sheet_server *server)
{
    return server->web;
}
