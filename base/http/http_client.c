/* http_client.c - see http_client.h. */
#include "base/http/http_client.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static pthread_once_t curl_started = PTHREAD_ONCE_INIT;

static void start_curl(void)
{
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

enum status http_client_open(struct http_client *client, struct error *error)
{
    (void)pthread_once(&curl_started, start_curl);
    client->curl = curl_easy_init();
    return client->curl != NULL ? STATUS_OK
                                : error_set(error, STATUS_NO_MEMORY, "cannot start libcurl");
}

void http_client_close(struct http_client *client)
{
    curl_easy_cleanup(client->curl);
    client->curl = NULL;
}

static bool set_protocols(CURL *curl)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    return curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK;
#else
    return curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS)) ==
           CURLE_OK;
#endif
}

/* libcurl asks for a socket to each address of a name in turn. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct http_client *client = context;
    const char *refused = http_reach_refuses(client->reach, &address->addr);

    (void)purpose;
    if (refused != NULL) {
        client->refused = refused;
        return CURL_SOCKET_BAD;
    }
    client->refused = NULL;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* A proxy would resolve the name itself, out of our sight. */
static bool set_reach(CURL *curl, struct http_client *client)
{
    return client->reach == HTTP_REACH_ANY ||
           (curl_easy_setopt(curl, CURLOPT_PROXY, "") == CURLE_OK &&
            curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket) == CURLE_OK &&
            curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, client) == CURLE_OK);
}

bool http_client_set(struct http_client *client, const char *url, uint64_t connect_ms,
                     uint32_t silence_s)
{
    CURL *curl = client->curl;

    client->error[0] = '\0';
    client->refused = NULL;
    curl_easy_reset(curl);
    return set_protocols(curl) && set_reach(curl, client) &&
           curl_easy_setopt(curl, CURLOPT_URL, url) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_USERAGENT, "lockstep") == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->error) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)HTTP_CLIENT_TRICKLE) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)silence_s) == CURLE_OK;
}

/* libcurl's progress callback: anything but 0 ends the transfer. */
static int look_up(void *context, curl_off_t down, curl_off_t down_now, curl_off_t up,
                   curl_off_t up_now)
{
    const struct http_client *client = context;

    (void)down;
    (void)down_now;
    (void)up;
    (void)up_now;
    return client->stopped(client->context) ? 1 : 0;
}

bool http_client_stop_by(struct http_client *client, bool (*stopped)(void *context), void *context)
{
    CURL *curl = client->curl;

    client->stopped = stopped;
    client->context = context;
    return curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_up) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_XFERINFODATA, client) == CURLE_OK;
}

bool http_client_receive_by(struct http_client *client, http_client_receive *receive, void *context)
{
    return curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, receive) == CURLE_OK &&
           curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, context) == CURLE_OK;
}

bool http_client_url(char url[HTTP_CLIENT_URL_MAX], const char *base, const char *name)
{
    size_t length = strlen(base);

    while (length > 0 && base[length - 1] == '/') {
        length--;
    }
    return snprintf(url, HTTP_CLIENT_URL_MAX, "%.*s/%s", (int)length, base, name) <
           HTTP_CLIENT_URL_MAX;
}
