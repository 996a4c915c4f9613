/* http_server.c - see http_server.h. */
#include "base/http/http_server.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/http/http_words.h"
#include "base/steady.h"
#include "base/text.h"

#define LOOK_S 0.5 /* how often it is looked who is too slow */

/* A page holds its style, its drawings and its script, and a browser may ask for nothing else. */
#define POLICY                                                                                     \
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "                               \
    "script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'self'; "        \
    "frame-ancestors 'none'"

struct http_server {
    struct http_server_options options;
    struct listen_place place;
    struct MHD_Daemon *daemon;
    struct http_callers *callers;
    pthread_t watch;
    pthread_mutex_t lock; /* covers over */
    pthread_cond_t ended;
    bool watches;
    bool over;
};

void http_server_headers(struct MHD_Response *response, const char *type)
{
    (void)MHD_add_response_header(response, "Content-Type", type);
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (strncmp(type, "text/html", 9) == 0) {
        (void)MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
        (void)MHD_add_response_header(response, "Content-Security-Policy", POLICY);
    }
}

/* ---- sound requests ------------------------------------------------------------------ */

struct headers {
    uint32_t lengths;
    uint32_t codings;
    uint32_t hosts;
    const char *host;
    bool has_range; /* of what is sent */
};

static enum MHD_Result count_header(void *context, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    struct headers *headers = context;

    (void)kind;
    headers->lengths += strcasecmp(name, "Content-Length") == 0;
    headers->codings += strcasecmp(name, "Transfer-Encoding") == 0;
    headers->has_range = headers->has_range || strcasecmp(name, "Content-Range") == 0;
    if (strcasecmp(name, "Host") == 0) {
        headers->hosts++;
        headers->host = value;
    }
    return MHD_YES;
}

/* An address cannot be turned to another machine, a name can. */
static bool is_our_name(const struct listen_place *place, const char *host)
{
    char name[HTTP_WORDS_HOST_MAX];
    uint8_t address[16];

    return http_words_host(name, host) &&
           (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1 ||
            strcasecmp(name, "localhost") == 0 || listen_place_has_name(place, name));
}

/* NULL: the request is sound; else why not, and the code. */
static const char *find_fault(unsigned int *code, const struct http_server *server,
                              struct MHD_Connection *connection, const char *method,
                              const char *version)
{
    struct headers headers = {.host = NULL};

    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, count_header, &headers);
    *code = MHD_HTTP_BAD_REQUEST;
    if (headers.lengths + headers.codings > 1) {
        return "the length of the request is said twice";
    }
    if (headers.hosts > 1 || (headers.hosts == 0 && strcmp(version, "HTTP/1.1") == 0)) {
        return "a request has one Host";
    }
    if (headers.has_range && strcmp(method, "PUT") == 0) {
        return "a file is put whole: no Content-Range";
    }
    if (headers.host != NULL && listen_place_is_loopback(&server->place) &&
        !is_our_name(&server->place, headers.host)) {
        *code = MHD_HTTP_MISDIRECTED_REQUEST;
        return "this machine is not called so here; its server may add the name behind a comma "
               "to ADDRESS:PORT";
    }
    return NULL;
}

static enum MHD_Result refuse_request(struct MHD_Connection *connection, unsigned int code,
                                      const char *words)
{
    char line[256];
    struct MHD_Response *response;
    enum MHD_Result result;

    (void)snprintf(line, sizeof(line), "%s\n", words);
    response = MHD_create_response_from_buffer(strlen(line), line, MHD_RESPMEM_MUST_COPY);
    if (response == NULL) {
        return MHD_NO;
    }
    http_server_headers(response, "text/plain; charset=utf-8");
    (void)MHD_add_response_header(response, "Connection", "close");
    result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

/* ---- connections ---------------------------------------------------------------------- */

static void note_turn(struct http_server *server, struct MHD_Connection *connection,
                      enum http_turn turn, size_t bytes)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    if (info != NULL && info->socket_context != NULL) {
        http_callers_turn(server->callers, info->socket_context, turn, bytes, steady_ms());
    }
}

void http_server_holds(struct http_server *server, struct MHD_Connection *connection, size_t bytes)
{
    note_turn(server, connection, HTTP_TURN_ANSWER, bytes);
}

static enum MHD_Result answer_request(void *context, struct MHD_Connection *connection,
                                      const char *url, const char *method, const char *version,
                                      const char *upload, size_t *upload_size, void **state)
{
    struct http_server *server = context;
    const struct http_server_options *options = &server->options;
    bool body = *state == NULL || *upload_size != 0;
    enum MHD_Result result;

    if (*state == NULL) {
        unsigned int code;
        const char *fault = find_fault(&code, server, connection, method, version);

        if (fault != NULL) {
            note_turn(server, connection, HTTP_TURN_ANSWER, 0);
            return refuse_request(connection, code, fault);
        }
        note_turn(server, connection, HTTP_TURN_BODY, 0);
    }
    if (!body) {
        note_turn(server, connection, HTTP_TURN_WORK, 0);
    }
    result = options->answer(options->context, connection, url, method, version, upload,
                             upload_size, state);
    if (!body && result == MHD_YES && options->bytes_max == 0) { /* else it says what it holds */
        note_turn(server, connection, HTTP_TURN_ANSWER, 0);
    }
    return result;
}

static void complete_request(void *context, struct MHD_Connection *connection, void **state,
                             enum MHD_RequestTerminationCode code)
{
    struct http_server *server = context;

    if (server->options.complete != NULL) {
        server->options.complete(server->options.context, connection, state, code);
    }
    note_turn(server, connection, HTTP_TURN_HEAD, 0);
}

static void note_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                            enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = context;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *from;

    if (code == MHD_CONNECTION_NOTIFY_STARTED && info != NULL) {
        int socket = info->connect_fd;

        from = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        *socket_context = http_callers_come(server->callers, socket,
                                            from == NULL ? NULL : from->client_addr, steady_ms());
    } else if (code != MHD_CONNECTION_NOTIFY_STARTED && *socket_context != NULL) {
        http_callers_go(server->callers, *socket_context);
    }
}

static size_t unescape_text(void *context, struct MHD_Connection *connection, char *text)
{
    (void)context;
    (void)connection;
    return text_unescape(text);
}

static void *watch_callers(void *context)
{
    struct http_server *server = context;

    (void)pthread_mutex_lock(&server->lock);
    while (!server->over) {
        struct timespec until = steady_after(LOOK_S);

        (void)pthread_mutex_unlock(&server->lock);
        http_callers_look(server->callers, steady_ms());
        (void)pthread_mutex_lock(&server->lock);
        if (!server->over) {
            (void)pthread_cond_clockwait(&server->ended, &server->lock, CLOCK_MONOTONIC, &until);
        }
    }
    (void)pthread_mutex_unlock(&server->lock);
    return NULL;
}

/* ---- the server ------------------------------------------------------------------------ */

static enum status start_daemon(struct http_server *server, const struct http_limits *limits,
                                struct error *error)
{
    const struct http_server_options *options = &server->options;
    struct sockaddr_storage address;
    bool tls = options->certificate != NULL;
    unsigned int flags = MHD_USE_INTERNAL_POLLING_THREAD | (tls ? (unsigned int)MHD_USE_TLS : 0);
    /* The library wants the TLS entries only when they are used. */
    struct MHD_OptionItem pems[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->key},
        {MHD_OPTION_END, 0, NULL},
    };

    flags |= options->threads ? MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL : MHD_USE_AUTO;
    TRY(listen_place_socket(&address, &server->place, error));
    flags |= address.ss_family == AF_INET6 ? (unsigned int)MHD_USE_IPv6 : 0;
    server->daemon = MHD_start_daemon(
        flags, server->place.port, NULL, NULL, answer_request, server, MHD_OPTION_SOCK_ADDR,
        &address, MHD_OPTION_CONNECTION_LIMIT, (unsigned int)http_callers_places(limits),
        MHD_OPTION_NOTIFY_CONNECTION, note_connection, server, MHD_OPTION_NOTIFY_COMPLETED,
        complete_request, server, MHD_OPTION_UNESCAPE_CALLBACK, unescape_text, NULL,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)options->idle_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_SERVER_REQUEST_MAX, MHD_OPTION_ARRAY,
        tls ? pems : pems + 2, MHD_OPTION_END);
    if (server->daemon == NULL) {
        (void)error_set_errno(error, "cannot serve %s at %s, port %u", options->what,
                              server->place.address, server->place.port);
        error_advise(error, tls ? "is the port free, and do certificate and key belong together?"
                                : "is the port free, and is the address this machine's?");
        return STATUS_IO;
    }
    server->watches = pthread_create(&server->watch, NULL, watch_callers, server) == 0;
    return server->watches ? STATUS_OK
                           : error_set(error, STATUS_NO_MEMORY, "no thread to serve with");
}

enum status http_server_open(struct http_server **server, const struct http_server_options *options,
                             struct error *error)
{
    const struct http_limits limits = {.room = options->room,
                                       .per_network = options->per_network,
                                       .head_ms = HTTP_SERVER_HEAD_MS,
                                       .pace_ms = HTTP_SERVER_PACE_MS,
                                       .trickle = HTTP_SERVER_TRICKLE,
                                       .bytes_max = options->bytes_max};
    struct http_server *made = calloc(1, sizeof(*made));
    enum status status;

    *server = NULL;
    if (made == NULL || (made->callers = http_callers_new(&limits)) == NULL ||
        pthread_mutex_init(&made->lock, NULL) != 0) {
        http_callers_free(made == NULL ? NULL : made->callers);
        free(made);
        return error_set(error, STATUS_NO_MEMORY, "no memory to serve %s", options->what);
    }
    (void)pthread_cond_init(&made->ended, NULL);
    made->options = *options;
    made->place = *options->place;
    status = start_daemon(made, &limits, error);
    if (status != STATUS_OK) {
        http_server_close(made);
        return status;
    }
    *server = made;
    return STATUS_OK;
}

void http_server_close(struct http_server *server)
{
    if (server == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&server->lock);
    server->over = true;
    (void)pthread_cond_signal(&server->ended);
    (void)pthread_mutex_unlock(&server->lock);
    if (server->watches) {
        (void)pthread_join(server->watch, NULL);
    }
    if (server->daemon != NULL) {
        MHD_stop_daemon(server->daemon);
    }
    (void)pthread_cond_destroy(&server->ended);
    (void)pthread_mutex_destroy(&server->lock);
    http_callers_free(server->callers);
    free(server);
}

uint16_t http_server_port(const struct http_server *server)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);

    return info == NULL ? 0 : info->port;
}
