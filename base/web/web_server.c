/* web_server.c - see web_server.h. */
#include "base/web/web_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/http/http_server.h"
#include "base/steady.h"

#define FRESH_MS 1000

#define ROOM      192
#define BYTES_MAX ((size_t)64 << 20) /* of answers that nobody has read yet */

struct web_query {
    struct MHD_Connection *connection;
};

struct web_server {
    struct http_server *http;
    struct web_site site;
    struct buffer answer;
    uint64_t looked_ms; /* of the steady clock; 0: not yet */
};

static uint64_t clock_ms(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

const char *web_query_text(const struct web_query *query, const char *name)
{
    return MHD_lookup_connection_value(query->connection, MHD_GET_ARGUMENT_KIND, name);
}

/* ---- answers ------------------------------------------------------------------------ */

static enum status refresh_site(struct web_server *server, struct error *error)
{
    uint64_t now_ms = steady_ms();

    if (server->looked_ms != 0 && now_ms < server->looked_ms + FRESH_MS) {
        return STATUS_OK;
    }
    server->looked_ms = 0;
    TRY(server->site.look(server->site.context, clock_ms(CLOCK_REALTIME), error));
    server->looked_ms = now_ms;
    return STATUS_OK;
}

static enum MHD_Result send_reply(struct web_server *server, struct MHD_Connection *connection,
                                  unsigned int code, const char *type, const void *bytes,
                                  size_t size)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, (void *)(uintptr_t)bytes, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result result;

    if (response == NULL) {
        return MHD_NO;
    }
    http_server_headers(response, type);
    (void)MHD_add_response_header(response, "Cache-Control", "no-store");
    if (code == MHD_HTTP_METHOD_NOT_ALLOWED) {
        (void)MHD_add_response_header(response, "Allow", "GET, HEAD");
    }
    http_server_holds(server->http, connection, size);
    result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result send_words(struct web_server *server, struct MHD_Connection *connection,
                                  unsigned int code, const char *words)
{
    char line[256];

    (void)snprintf(line, sizeof(line), "%s\n", words);
    return send_reply(server, connection, code, "text/plain; charset=utf-8", line, strlen(line));
}

static enum MHD_Result say_what_there_is(struct web_server *server,
                                         struct MHD_Connection *connection)
{
    char words[200] = "there are /health";

    for (size_t i = 0; i < server->site.route_count; i++) {
        size_t size = strlen(words);

        (void)snprintf(words + size, sizeof(words) - size, ", %s", server->site.routes[i].url);
    }
    return send_words(server, connection, MHD_HTTP_NOT_FOUND, words);
}

static const struct web_route *find_route(const struct web_server *server, const char *url)
{
    for (size_t i = 0; i < server->site.route_count; i++) {
        if (strcmp(server->site.routes[i].url, url) == 0) {
            return &server->site.routes[i];
        }
    }
    return NULL;
}

static enum MHD_Result show_page(struct web_server *server, struct MHD_Connection *connection,
                                 const struct web_route *route)
{
    const struct web_query query = {connection};

    buffer_clear(&server->answer);
    route->write(&server->answer, server->site.context, &query);
    if (buffer_check(&server->answer, NULL, "the page") != STATUS_OK) {
        return send_words(server, connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                          "the page is too large");
    }
    return send_reply(server, connection, MHD_HTTP_OK, route->type, server->answer.data,
                      server->answer.size);
}

static enum MHD_Result answer_request(void *context, struct MHD_Connection *connection,
                                      const char *url, const char *method, const char *version,
                                      const char *upload, size_t *upload_size, void **state)
{
    struct web_server *server = context;
    const struct web_route *route = find_route(server, url);
    const char *trouble;

    (void)version;
    (void)upload;
    /* A reply before the end of the request closes the connection: wanted here. */
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        return send_words(server, connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD");
    }
    if (*state == NULL) {
        *state = server;
        return MHD_YES;
    }
    if (*upload_size != 0) {
        return MHD_NO;
    }
    if (route == NULL && strcmp(url, "/health") != 0) {
        return say_what_there_is(server, connection);
    }
    if (refresh_site(server, NULL) != STATUS_OK) {
        return send_words(server, connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                          "what is shown cannot be read now");
    }
    if (route != NULL) {
        return show_page(server, connection, route);
    }
    trouble = server->site.trouble(server->site.context);
    return send_words(server, connection,
                      trouble == NULL ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
                      trouble == NULL ? "well" : trouble);
}

/* ---- the server ------------------------------------------------------------------------ */

enum status web_server_open(struct web_server **server, const struct web_site *site,
                            const struct listen_place *place, struct error *error)
{
    struct web_server *made = calloc(1, sizeof(*made));
    const struct http_server_options options = {.place = place,
                                                .what = "the status",
                                                .room = ROOM,
                                                .idle_s = WEB_SERVER_TIMEOUT_S,
                                                .bytes_max = BYTES_MAX,
                                                .answer = answer_request,
                                                .context = made};
    enum status status;

    *server = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to serve the status");
    }
    made->site = *site;
    buffer_init(&made->answer, site->size_max);
    status = http_server_open(&made->http, &options, error);
    if (status != STATUS_OK) {
        web_server_close(made);
        return status;
    }
    *server = made;
    return STATUS_OK;
}

void web_server_close(struct web_server *server)
{
    if (server == NULL) {
        return;
    }
    http_server_close(server->http);
    buffer_release(&server->answer);
    free(server);
}

uint16_t web_server_port(const struct web_server *server)
{
    return http_server_port(server->http);
}

void web_server_url(char url[WEB_SERVER_URL_MAX], const struct web_server *server,
                    const struct listen_place *place)
{
    bool six = strchr(place->address, ':') != NULL;

    (void)snprintf(url, WEB_SERVER_URL_MAX, "http://%s%s%s:%u/", six ? "[" : "", place->address,
                   six ? "]" : "", web_server_port(server));
}
