/*
 * http_client.h - how every transfer of libcurl is set up here: http and https alone, no redirects,
 * no signals, bounded waits, and no address beyond its reach (http_reach.h). The address is looked
 * at where the connection is made, after its name was resolved: no name of a host says otherwise.
 */
#ifndef BASE_HTTP_HTTP_CLIENT_H
#define BASE_HTTP_HTTP_CLIENT_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/http/http_reach.h"

struct http_client {
    enum http_reach reach;
    const char *refused;         /* set: why the last transfer called nobody; NULL: it did */
    char error[CURL_ERROR_SIZE]; /* set by libcurl */
};

#define HTTP_CLIENT_TRICKLE 1024 /* bytes a second: fewer of them are silence */

/* Begins a transfer; client must stay where it is until that is over. silence_s: how long it may
 * be slower than a trickle; 0: as long as it likes. False: do not make the transfer. */
bool http_client_set(CURL *curl, struct http_client *client, const char *url, uint64_t connect_ms,
                     uint32_t silence_s);

#endif /* BASE_HTTP_HTTP_CLIENT_H */
