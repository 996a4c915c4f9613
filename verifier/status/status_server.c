/* status_server.c - see status_server.h. */
#include "verifier/status/status_server.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verifier/status/metrics.h"
#include "verifier/status/status_page.h"
#include "verifier/store/store.h"

#define FRESH_MS         1000
#define REQUEST_SIZE_MAX (16u << 10) /* line and headers */

struct status_server {
    struct MHD_Daemon *daemon;
    struct store store;
    struct node_snapshot *snapshot;
    struct buffer metrics;
    struct buffer page;
    uint64_t looked_ms; /* of the steady clock; 0: not yet */
};

/* ---- answers ------------------------------------------------------------ */

static uint64_t clock_ms(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static enum status refresh(struct status_server *server, struct error *error)
{
    uint64_t now_ms = clock_ms(CLOCK_MONOTONIC);
    enum status status;

    if (server->looked_ms != 0 && now_ms < server->looked_ms + FRESH_MS) {
        return STATUS_OK;
    }
    status = node_snapshot_look(server->snapshot, &server->store, clock_ms(CLOCK_REALTIME), error);
    if (status != STATUS_OK) {
        return status;
    }
    buffer_clear(&server->metrics);
    buffer_clear(&server->page);
    metrics_write(&server->metrics, server->snapshot);
    status_page_write(&server->page, server->snapshot);
    status = buffer_check(&server->metrics, error, "the metrics");
    if (status == STATUS_OK) {
        status = buffer_check(&server->page, error, "the status page");
    }
    server->looked_ms = status == STATUS_OK ? now_ms : 0;
    return status;
}

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned int code, const char *type,
                             const void *bytes, size_t size)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, (void *)(uintptr_t)bytes, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result result;

    if (response == NULL) {
        return MHD_NO;
    }
    (void)MHD_add_response_header(response, "Content-Type", type);
    (void)MHD_add_response_header(response, "Cache-Control", "no-store");
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    (void)MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    (void)MHD_add_response_header(response, "Content-Security-Policy", STATUS_PAGE_POLICY);
    if (code == MHD_HTTP_METHOD_NOT_ALLOWED) {
        (void)MHD_add_response_header(response, "Allow", "GET, HEAD");
    }
    result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result say(struct MHD_Connection *connection, unsigned int code, const char *words)
{
    char line[256];

    (void)snprintf(line, sizeof(line), "%s\n", words);
    return reply(connection, code, "text/plain; charset=utf-8", line, strlen(line));
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state)
{
    struct status_server *server = context;
    const char *trouble;

    (void)version;
    (void)upload;
    /* A reply before the end of the request closes the connection: wanted here. */
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD");
    }
    if (*state == NULL) {
        *state = server;
        return MHD_YES;
    }
    if (*upload_size != 0) {
        return MHD_NO;
    }
    if (strcmp(url, "/") != 0 && strcmp(url, "/metrics") != 0 && strcmp(url, "/health") != 0) {
        return say(connection, MHD_HTTP_NOT_FOUND, "there are /, /metrics and /health");
    }
    if (refresh(server, NULL) != STATUS_OK) {
        return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "the database cannot be read now");
    }
    if (strcmp(url, "/health") == 0) {
        trouble = node_snapshot_trouble(server->snapshot);
        return say(connection, trouble == NULL ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
                   trouble == NULL ? "well" : trouble);
    }
    if (strcmp(url, "/metrics") == 0) {
        return reply(connection, MHD_HTTP_OK, METRICS_TYPE, server->metrics.data,
                     server->metrics.size);
    }
    return reply(connection, MHD_HTTP_OK, "text/html; charset=utf-8", server->page.data,
                 server->page.size);
}

/* ---- the server --------------------------------------------------------- */

static enum status start(struct status_server *server, const struct listen_place *place,
                         struct error *error)
{
    unsigned int flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO;
    struct sockaddr_storage address;
    enum status status = listen_place_socket(&address, place, error);

    if (status != STATUS_OK) {
        return status;
    }
    if (address.ss_family == AF_INET6) {
        flags |= MHD_USE_IPv6;
    }
    server->daemon = MHD_start_daemon(
        flags, place->port, NULL, NULL, answer, server, MHD_OPTION_SOCK_ADDR, &address,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned int)STATUS_SERVER_CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)STATUS_SERVER_TIMEOUT_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_SIZE_MAX, MHD_OPTION_END);
    if (server->daemon == NULL) {
        (void)error_set_errno(error, "cannot serve the status at %s, port %u", place->address,
                              place->port);
        error_advise(error, "is the port free, and is the address this machine's?");
        return STATUS_IO;
    }
    return STATUS_OK;
}

enum status status_server_open(struct status_server **server, const char *path,
                               const struct listen_place *place, struct error *error)
{
    struct status_server *made = calloc(1, sizeof(*made));
    enum status status;

    *server = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to serve the status");
    }
    buffer_init(&made->metrics, METRICS_SIZE_MAX);
    buffer_init(&made->page, STATUS_PAGE_SIZE_MAX);
    made->snapshot = calloc(1, sizeof(*made->snapshot));
    status = made->snapshot == NULL
                 ? error_set(error, STATUS_NO_MEMORY, "no memory to serve the status")
                 : store_open(&made->store, path, STORE_READ, error);
    if (status == STATUS_OK) {
        status = start(made, place, error);
    }
    if (status != STATUS_OK) {
        status_server_close(made);
        return status;
    }
    *server = made;
    return STATUS_OK;
}

void status_server_close(struct status_server *server)
{
    if (server == NULL) {
        return;
    }
    if (server->daemon != NULL) {
        MHD_stop_daemon(server->daemon);
    }
    store_close(&server->store);
    buffer_release(&server->metrics);
    buffer_release(&server->page);
    free(server->snapshot);
    free(server);
}

uint16_t status_server_port(const struct status_server *server)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);

    return info == NULL ? 0 : info->port;
}
