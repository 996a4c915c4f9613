/* http_client.c - see http_client.h. */
#include "base/http/http_client.h"

#include <sys/socket.h>

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

bool http_client_set(CURL *curl, struct http_client *client, const char *url, uint64_t connect_ms,
                     uint32_t silence_s)
{
    client->error[0] = '\0';
    client->refused = NULL;
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
