/* rpc_server.c - see rpc_server.h. One thread accepts, one thread per connection answers. */
#include "tests/support/game/rpc_server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chain/evm/rpc/rpc.h"

#define ZEROS    "0000000000000000000000000000000000000000000000000000000000000000"
#define REVERTED "{\"code\":3,\"message\":\"execution reverted\\u001b[2J\",\"data\":\"0x08c379a0\"}"
#define LIMITED  "{\"code\":-32005,\"message\":\"limit exceeded\"}"

#define BATCH_REFUSED                                                                              \
    "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"batch too "         \
    "large\"}}"

enum {
    REQUEST_SIZE = 1 << 20,
    REPLY_SIZE = 4 << 20,
    CONNECTIONS_MAX = 256,
    DEPTH = 100000,
    POLL_MS = 20,
};

struct rpc_server {
    int listener;
    char url[64];
    const enum rpc_behaviour *script;
    uint32_t script_count;
    rpc_answer *answer;
    void *context;
    atomic_uint requests;
    atomic_uint batch_max; /* 0: any */
    atomic_uint period;    /* of these requests, */
    atomic_uint failing;   /* ... this many, the first, fail */
    atomic_bool stopping;
    pthread_t acceptor;
    pthread_t workers[CONNECTIONS_MAX];
    int connections[CONNECTIONS_MAX];
    uint32_t worker_count;
};

struct worker {
    struct rpc_server *server;
    int connection;
};

static bool send_all(const struct rpc_server *server, int connection, const char *bytes,
                     size_t size)
{
    while (size > 0 && !atomic_load(&server->stopping)) {
        struct pollfd ready = {connection, POLLOUT, 0};
        ssize_t sent;

        if (poll(&ready, 1, POLL_MS) <= 0) {
            continue;
        }
        sent = send(connection, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            return false;
        }
        bytes += sent;
        size -= (size_t)sent;
    }
    return size == 0;
}

/* Waits for input; false when the connection or the server ends. */
static bool wait_readable(const struct rpc_server *server, int connection)
{
    while (!atomic_load(&server->stopping)) {
        struct pollfd ready = {connection, POLLIN, 0};

        if (poll(&ready, 1, POLL_MS) > 0) {
            return true;
        }
    }
    return false;
}

/* Reads one HTTP request; its body ends with a NUL in request. */
static bool read_request(const struct rpc_server *server, int connection, char *request)
{
    size_t used = 0;

    while (used + 1 < REQUEST_SIZE && wait_readable(server, connection)) {
        ssize_t got = recv(connection, request + used, REQUEST_SIZE - 1 - used, 0);
        char *body;
        char *length;

        if (got <= 0) {
            return false;
        }
        used += (size_t)got;
        request[used] = '\0';
        body = strstr(request, "\r\n\r\n");
        length = strcasestr(request, "\r\nContent-Length:");
        if (body != NULL && length != NULL && length < body) {
            size_t body_size = strtoul(length + strlen("\r\nContent-Length:"), NULL, 10);

            if (used - (size_t)(body + 4 - request) >= body_size) {
                memmove(request, body + 4, body_size + 1);
                return true;
            }
        }
    }
    return false;
}

static unsigned long id_of(const char *request)
{
    const char *id = strstr(request, "\"id\":");

    return id == NULL ? 0 : strtoul(id + 5, NULL, 10);
}

static bool send_reply(const struct rpc_server *server, int connection, const char *status,
                       const char *extra, const char *body)
{
    char header[512];
    int size = snprintf(header, sizeof(header),
                        "HTTP/1.1 %s\r\nContent-Type: application/json\r\n%sContent-Length: "
                        "%zu\r\n\r\n",
                        status, extra, strlen(body));

    return send_all(server, connection, header, (size_t)size) &&
           send_all(server, connection, body, strlen(body));
}

static void make_body(char *body, size_t size, enum rpc_behaviour behaviour, unsigned long id)
{
    /* NOLINTBEGIN(bugprone-suspicious-missing-comma): some lines are made of parts */
    static const char *const formats[RPC_BEHAVIOURS] = {
        [RPC_GOOD] = "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"result\":\"0x2a\"}",
        [RPC_NOT_JSON] = "<html>%lu</html>",
        [RPC_JSON_AND_MORE] = "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"result\":\"0x2a\"} {}",
        [RPC_BATCH] = "[{\"jsonrpc\":\"2.0\",\"id\":%lu,\"result\":\"0x2a\"}]",
        [RPC_WRONG_ID] = "{\"jsonrpc\":\"2.0\",\"id\":1%lu,\"result\":\"0x2a\"}",
        [RPC_TEXT_ID] = "{\"jsonrpc\":\"2.0\",\"id\":\"%lu\",\"result\":\"0x2a\"}",
        [RPC_NO_ID] = "{\"jsonrpc\":\"2.0\",\"result\":\"0x2a\",\"x\":%lu}",
        [RPC_NO_VERSION] = "{\"id\":%lu,\"result\":\"0x2a\"}",
        [RPC_DUPLICATE_KEY] = "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"result\":1,\"result\":\"0x2a\"}",
        [RPC_BOTH] = "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"result\":\"0x2a\",\"error\":{}}",
        [RPC_NEITHER] = "{\"jsonrpc\":\"2.0\",\"id\":%lu}",
        [RPC_BAD_ERROR] = "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"error\":{\"message\":\"x\"}}",
        [RPC_BAD_UTF8] = "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"result\":\"\xff\xfe\"}",
        [RPC_WRONG_TYPE] = "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"result\":42}",
        [RPC_PAST_RANGE] = "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"result\":\"0x1" ZEROS "\"}",
        [RPC_LEADING_ZERO] = "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"result\":\"0x02a\"}",
        [RPC_REFUSES] = "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"error\":" REVERTED "}",
        [RPC_LIMITS] = "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"error\":" LIMITED "}",
    };
    /* NOLINTEND(bugprone-suspicious-missing-comma) */

    if (behaviour == RPC_DEEP) {
        memset(body, '[', DEPTH);
        memset(body + DEPTH, ']', DEPTH);
        body[2 * DEPTH] = '\0';
    } else if (formats[behaviour] == NULL) {
        body[0] = '\0';
    } else {
        int length = snprintf(body, size, formats[behaviour], id);

        assert(length >= 0);
    }
}

/* Sends the same bytes until the other side has had enough. */
static void send_endlessly(const struct rpc_server *server, int connection, const char *start,
                           const char *more)
{
    bool open = send_all(server, connection, start, strlen(start));

    while (open && !atomic_load(&server->stopping)) {
        open = send_all(server, connection, more, strlen(more));
    }
}

static void trickle(const struct rpc_server *server, int connection)
{
    const char *reply = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnull";

    for (; *reply != '\0' && !atomic_load(&server->stopping); reply++) {
        if (!send_all(server, connection, reply, 1)) {
            return;
        }
        usleep(200000);
    }
}

/* False: the connection is to be closed. */
static bool misbehave(const struct rpc_server *server, int connection, enum rpc_behaviour behaviour,
                      char *body, unsigned long id)
{
    const struct linger reset = {1, 0};
    char header[128];

    switch ((int)behaviour) {
    case RPC_HANGS:
        while (!atomic_load(&server->stopping)) {
            usleep(POLL_MS * 1000);
        }
        return false;
    case RPC_CLOSES:
        return false;
    case RPC_RESETS:
        (void)setsockopt(connection, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        return false;
    case RPC_CUT_BODY:
        make_body(body, REPLY_SIZE, RPC_GOOD, id);
        (void)snprintf(header, sizeof(header), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
                       strlen(body) + 10);
        return send_all(server, connection, header, strlen(header)) &&
               send_all(server, connection, body, strlen(body)) && false;
    case RPC_TRICKLES:
        trickle(server, connection);
        return false;
    case RPC_ENDLESS_BODY:
        send_endlessly(server, connection, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                       "10\r\n                \r\n");
        return false;
    case RPC_ENDLESS_HEADER:
        send_endlessly(server, connection, "HTTP/1.1 200 OK\r\n", "X-More: and more and more\r\n");
        return false;
    case RPC_HUGE_LENGTH:
        send_endlessly(server, connection,
                       "HTTP/1.1 200 OK\r\nContent-Length: 4611686018427387904\r\n\r\n",
                       "                                ");
        return false;
    case RPC_NOT_HTTP:
        (void)send_all(server, connection, "SSH-2.0-x\r\n", 11);
        return false;
    case RPC_STATUS_500:
        return send_reply(server, connection, "500 Internal Server Error", "", "oops");
    case RPC_STATUS_429:
        return send_reply(server, connection, "429 Too Many Requests", "Retry-After: 1\r\n", "");
    case RPC_REDIRECTS:
        (void)snprintf(header, sizeof(header), "Location: %s\r\n", server->url);
        return send_reply(server, connection, "307 Temporary Redirect", header, "");
    default:
        make_body(body, REPLY_SIZE, behaviour, id);
        return send_reply(server, connection, "200 OK", "", body);
    }
}

/* Of a batch each request is answered by itself. */
static int answer_batch(const struct rpc_server *server, char *body, const json_t *batch)
{
    char *one = malloc(REPLY_SIZE);
    int used = snprintf(body, REPLY_SIZE, "[");

    assert(one != NULL);
    for (size_t i = 0; i < json_array_size(batch); i++) {
        char *request = json_dumps(json_array_get(batch, i), JSON_COMPACT);
        int size = server->answer(one, REPLY_SIZE, request, server->context);

        free(request);
        assert(size >= 0 && size < REPLY_SIZE - used - 2);
        used += snprintf(body + used, (size_t)(REPLY_SIZE - used), "%s%s", i == 0 ? "" : ",", one);
    }
    free(one);
    return used + snprintf(body + used, (size_t)(REPLY_SIZE - used), "]");
}

static int answer_request(const struct rpc_server *server, char *body, const char *request)
{
    json_t *batch = json_loads(request, 0, NULL);
    uint32_t most = atomic_load(&server->batch_max);
    int size = json_is_array(batch) && most > 0 && json_array_size(batch) > most
                   ? snprintf(body, REPLY_SIZE, "%s", BATCH_REFUSED)
               : json_is_array(batch) ? answer_batch(server, body, batch)
                                      : server->answer(body, REPLY_SIZE, request, server->context);

    json_decref(batch);
    return size;
}

static bool fails(const struct rpc_server *server, uint32_t count)
{
    uint32_t period = atomic_load(&server->period);

    return period > 0 && count % period < atomic_load(&server->failing);
}

static void *serve(void *argument)
{
    struct worker worker = *(struct worker *)argument;
    struct rpc_server *server = worker.server;
    char *request = malloc(REQUEST_SIZE);
    char *body = malloc(REPLY_SIZE);
    bool open = true;

    free(argument);
    assert(request != NULL && body != NULL);
    while (open && read_request(server, worker.connection, request)) {
        uint32_t count = atomic_fetch_add(&server->requests, 1);

        if (fails(server, count)) {
            open = send_reply(server, worker.connection, "200 OK", "", "<html>try again</html>");
        } else if (server->answer != NULL) {
            int size = answer_request(server, body, request);

            assert(size >= 0 && size < REPLY_SIZE);
            open = send_reply(server, worker.connection, "200 OK", "", body);
        } else {
            uint32_t at = count < server->script_count ? count : server->script_count - 1;

            open = misbehave(server, worker.connection, server->script[at], body, id_of(request));
        }
    }
    (void)close(worker.connection);
    free(request);
    free(body);
    return NULL;
}

static void *accept_all(void *argument)
{
    struct rpc_server *server = argument;

    while (wait_readable(server, server->listener)) {
        struct worker *worker = malloc(sizeof(*worker));

        assert(worker != NULL && server->worker_count < CONNECTIONS_MAX);
        worker->server = server;
        worker->connection = accept(server->listener, NULL, NULL);
        assert(worker->connection >= 0);
        /* A reply is sent in two parts: the second must not wait for the first to be seen. */
        (void)setsockopt(worker->connection, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        if (pthread_create(&server->workers[server->worker_count], NULL, serve, worker) != 0) {
            abort();
        }
        server->worker_count++;
    }
    return NULL;
}

static struct rpc_server *start(struct rpc_server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int result;

    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert(server->listener >= 0);
    result = bind(server->listener, (struct sockaddr *)&address, sizeof(address));
    assert(result == 0);
    result = listen(server->listener, CONNECTIONS_MAX);
    assert(result == 0);
    result = getsockname(server->listener, (struct sockaddr *)&address, &size);
    assert(result == 0);
    (void)snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%u/secret-access-key",
                   ntohs(address.sin_port));
    result = pthread_create(&server->acceptor, NULL, accept_all, server);
    assert(result == 0);
    return server;
}

struct rpc_server *rpc_server_start(const enum rpc_behaviour *script, uint32_t script_count)
{
    struct rpc_server *server = calloc(1, sizeof(*server));

    assert(server != NULL && script_count > 0);
    server->script = script;
    server->script_count = script_count;
    return start(server);
}

struct rpc_server *rpc_server_start_answering(rpc_answer *answer, void *context)
{
    struct rpc_server *server = calloc(1, sizeof(*server));

    assert(server != NULL);
    server->answer = answer;
    server->context = context;
    return start(server);
}

int rpc_server_write(char *reply, int reply_size, const json_t *queried, json_t *result)
{
    json_t *id = json_object_get(queried, "id");
    json_t *envelope =
        result != NULL ? json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "result", result)
                       : json_pack("{s:s, s:O, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", id, "error",
                                   "code", -32000, "message", "no");
    char *text = json_dumps(envelope, JSON_COMPACT);
    int size;

    assert(text != NULL);
    size = snprintf(reply, (size_t)reply_size, "%s", text);
    free(text);
    json_decref(envelope);
    return size;
}

int rpc_server_pass_on(char *reply, int reply_size, const char *request, void *context)
{
    json_t *queried = json_loads(request, 0, NULL);
    json_t *result = NULL;
    enum status status =
        rpc_call(context, &result, json_string_value(json_object_get(queried, "method")),
                 json_incref(json_object_get(queried, "params")), NULL);
    int size = rpc_server_write(reply, reply_size, queried, status == STATUS_OK ? result : NULL);

    json_decref(queried);
    return size;
}

void rpc_server_fail_some(struct rpc_server *server, uint32_t period, uint32_t failing)
{
    atomic_store(&server->failing, failing);
    atomic_store(&server->period, period);
}

void rpc_server_limit_batches(struct rpc_server *server, uint32_t most)
{
    atomic_store(&server->batch_max, most);
}

void rpc_server_stop(struct rpc_server *server)
{
    atomic_store(&server->stopping, true);
    (void)pthread_join(server->acceptor, NULL);
    for (uint32_t i = 0; i < server->worker_count; i++) {
        (void)pthread_join(server->workers[i], NULL);
    }
    (void)close(server->listener);
    free(server);
}

const char *rpc_server_url(const struct rpc_server *server)
{
    return server->url;
}

uint32_t rpc_server_request_count(struct rpc_server *server)
{
    return atomic_load(&server->requests);
}
