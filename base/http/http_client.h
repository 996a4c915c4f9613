/*
 * http_client.h - how every transfer of libcurl is set up here: http and https alone, no redirects,
 * no signals, bounded waits, and no address beyond its reach (http_reach.h). The address is looked
 * at where the connection is made, after its name was resolved: no name of a host says otherwise.
 */
#ifndef BASE_HTTP_HTTP_CLIENT_H
#define BASE_HTTP_HTTP_CLIENT_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/http/http_reach.h"

struct http_client {
    CURL *curl;
    enum http_reach reach;
    const char *refused;         /* set: why the last transfer called nobody; NULL: it did */
    char error[CURL_ERROR_SIZE]; /* set by libcurl */
    bool (*stopped)(void *context);
    void *context;
};

#define HTTP_CLIENT_TRICKLE 1024 /* bytes a second: fewer of them are silence */

/* A client of zeros may be closed. Starts libcurl in this process, which nobody ends again: other
 * threads may use it. */
MUST_CHECK enum status http_client_open(struct http_client *client, struct error *error);
void http_client_close(struct http_client *client);

/* Begins a transfer, with nothing of the one before; client must stay where it is until that is
 * over. silence_s: how long it may be slower than a trickle; 0: as long as it likes. False: do not
 * make the transfer. */
bool http_client_set(struct http_client *client, const char *url, uint64_t connect_ms,
                     uint32_t silence_s);

/* The transfer ends with CURLE_ABORTED_BY_CALLBACK when it is stopped. */
bool http_client_stop_by(struct http_client *client, bool (*stopped)(void *context), void *context);

/* Where the bytes of the reply go; takes fewer of them: the transfer fails. */
typedef size_t http_client_receive(char *bytes, size_t size, size_t count, void *context);
bool http_client_receive_by(struct http_client *client, http_client_receive *receive,
                            void *context);

/* BASE/NAME; slashes at the end of the base do not count. False: it does not fit. */
#define HTTP_CLIENT_URL_MAX 4600
bool http_client_url(char url[HTTP_CLIENT_URL_MAX], const char *base, const char *name);

#endif /* BASE_HTTP_HTTP_CLIENT_H */
