/* rpc_transport.c - see rpc_transport.h. */
#include "chain/evm/rpc/rpc_transport.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/http/http_client.h"

enum {
    HTTP_OK = 200,
    HTTP_UNAUTHORIZED = 401,
    HTTP_FORBIDDEN = 403,
    HTTP_TOO_MANY = 429,
    HTTP_BUSY = 503,
    REPLY_FIRST_SIZE = 4096,
};

struct rpc_transport {
    struct curl_slist *headers;
    char label[RPC_LABEL_SIZE];
    char *reply;
    size_t reply_size; /* bytes received */
    size_t reply_room; /* bytes allocated */
    size_t reply_size_max;
    bool too_long;
    bool (*stopped)(void *context); /* NULL: nobody stops it */
    void *context;
    struct http_client client;
};

/* Scheme, host and port: up to the first slash after "//", without what stands before an '@'. */
static void make_label(char label[RPC_LABEL_SIZE], const char *url)
{
    const char *host = strstr(url, "//");
    size_t scheme_size;
    size_t host_size;
    const char *at;

    host = host == NULL ? url : host + 2;
    scheme_size = (size_t)(host - url);
    host_size = strcspn(host, "/?#");
    at = memrchr(host, '@', host_size);
    if (at != NULL) {
        host_size -= (size_t)(at + 1 - host);
        host = at + 1;
    }
    (void)snprintf(label, RPC_LABEL_SIZE, "%.*s%.*s", (int)scheme_size, url, (int)host_size, host);
}

/* libcurl's write callback: anything but size * count ends the transfer. */
static size_t receive_bytes(char *bytes, size_t size, size_t count, void *context)
{
    struct rpc_transport *transport = context;
    size_t more = size * count; /* size is 1, says libcurl */

    if (more > transport->reply_size_max - transport->reply_size) {
        transport->too_long = true;
        return 0;
    }
    if (transport->reply_size + more > transport->reply_room) {
        size_t room = transport->reply_room == 0 ? REPLY_FIRST_SIZE : transport->reply_room;
        char *grown;

        while (room < transport->reply_size + more) {
            room *= 2;
        }
        grown = realloc(transport->reply, room);
        if (grown == NULL) {
            return 0;
        }
        transport->reply = grown;
        transport->reply_room = room;
    }
    memcpy(transport->reply + transport->reply_size, bytes, more);
    transport->reply_size += more;
    return more;
}

static bool is_stopped(void *context)
{
    const struct rpc_transport *transport = context;

    return transport->stopped != NULL && transport->stopped(transport->context);
}

static bool set_options(struct rpc_transport *transport, const char *url, uint32_t timeout_ms)
{
    CURL *curl = transport->client.curl;

    transport->client.reach = HTTP_REACH_ANY; /* the user names it */
    return http_client_set(&transport->client, url, timeout_ms / 2 + 1, 0) &&
           http_client_receive_by(&transport->client, receive_bytes, transport) &&
           http_client_stop_by(&transport->client, is_stopped, transport) &&
           curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_POST, 1L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_HTTPHEADER, transport->headers) == CURLE_OK;
}

struct rpc_transport *rpc_transport_new(const char *url, uint32_t timeout_ms, size_t reply_size_max,
                                        struct error *error)
{
    struct rpc_transport *transport = NULL;

    if ((strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) ||
        strlen(url) > RPC_URL_MAX) {
        (void)error_set(error, STATUS_USAGE,
                        "an endpoint is http://... or https://... of at most %d characters",
                        RPC_URL_MAX);
        return NULL;
    }
    transport = calloc(1, sizeof(*transport));
    if (transport == NULL) {
        goto no_memory;
    }
    make_label(transport->label, url);
    transport->reply_size_max = reply_size_max;
    transport->headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (http_client_open(&transport->client, error) != STATUS_OK || transport->headers == NULL ||
        curl_slist_append(transport->headers, "Expect:") == NULL ||
        !set_options(transport, url, timeout_ms)) {
        goto no_memory;
    }
    return transport;

no_memory:
    rpc_transport_free(transport);
    (void)error_set(error, STATUS_NO_MEMORY, "no memory for an endpoint");
    return NULL;
}

void rpc_transport_free(struct rpc_transport *transport)
{
    if (transport != NULL) {
        http_client_close(&transport->client);
        curl_slist_free_all(transport->headers);
        free(transport->reply);
        free(transport);
    }
}

void rpc_transport_stop_by(struct rpc_transport *transport, bool (*stopped)(void *context),
                           void *context)
{
    transport->stopped = stopped;
    transport->context = context;
}

const char *rpc_transport_label(const struct rpc_transport *transport)
{
    return transport->label;
}

static uint32_t asked_pause(CURL *curl, long http_status)
{
    curl_off_t pause_s = 0;

    if ((http_status != HTTP_TOO_MANY && http_status != HTTP_BUSY) ||
        curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &pause_s) != CURLE_OK || pause_s < 0) {
        return 0;
    }
    return pause_s < RPC_PAUSE_S_MAX ? (uint32_t)pause_s : RPC_PAUSE_S_MAX;
}

static const char *explain_http(long http_status)
{
    switch (http_status) {
    case HTTP_UNAUTHORIZED:
    case HTTP_FORBIDDEN:
        return ": the access key in its URL is wrong, or not allowed to";
    case HTTP_TOO_MANY:
        return ": too many requests";
    default:
        return "";
    }
}

enum status rpc_transport_post(struct rpc_transport *transport, const char **reply,
                               size_t *reply_size, uint32_t *pause_s, const char *body,
                               size_t body_size, struct error *error)
{
    CURL *curl = transport->client.curl;
    long http_status = 0;
    CURLcode code;

    *pause_s = 0;
    transport->reply_size = 0;
    transport->too_long = false;
    transport->client.error[0] = '\0';
    if (curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)body_size) != CURLE_OK ||
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body) != CURLE_OK) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a request");
    }
    code = curl_easy_perform(curl);
    if (transport->too_long) {
        return error_set(error, STATUS_UNREACHABLE, "%s: the reply is longer than %zu bytes",
                         transport->label, transport->reply_size_max);
    }
    if (code == CURLE_ABORTED_BY_CALLBACK) {
        return error_set(error, STATUS_STOPPED, "stopped while asking %s", transport->label);
    }
    if (code != CURLE_OK) {
        /* Not libcurl's longer text: it can quote the URL. */
        return error_set(error, STATUS_UNREACHABLE, "%s: %s", transport->label,
                         curl_easy_strerror(code));
    }
    if (curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &http_status) != CURLE_OK ||
        http_status != HTTP_OK) {
        *pause_s = asked_pause(curl, http_status);
        return error_set(error, STATUS_UNREACHABLE, "%s: HTTP status %ld%s", transport->label,
                         http_status, explain_http(http_status));
    }
    *reply = transport->reply == NULL ? "" : transport->reply;
    *reply_size = transport->reply_size;
    return STATUS_OK;
}
