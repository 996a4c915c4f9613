/* push_http.c - see push_http.h. */
#include "proofs/mirror/push_http.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/http/http_client.h"

enum {
    HTTP_REDIRECT = 300,
    HTTP_REFUSED = 400,
    HTTP_FAILED = 500,
    ANSWER_MAX = 200, /* of what a mirror says, for the error */
};

struct push_http {
    const char *base;
    uint32_t timeout_s;
    struct curl_slist *headers; /* the token */
    struct http_client client;
};

enum status push_http_open(struct push_http **push, const char *base, const char *token,
                           uint32_t timeout_s, struct error *error)
{
    struct push_http *made = calloc(1, sizeof(*made));
    char header[PUSH_HTTP_TOKEN_MAX + 32];

    *push = NULL;
    (void)snprintf(header, sizeof(header), "Authorization: Bearer %s", token == NULL ? "" : token);
    if (made == NULL || http_client_open(&made->client, error) != STATUS_OK ||
        (token != NULL && (made->headers = curl_slist_append(NULL, header)) == NULL)) {
        push_http_close(made);
        return error_set(error, STATUS_NO_MEMORY, "no memory to send with");
    }
    explicit_bzero(header, sizeof(header));
    made->base = base;
    made->timeout_s = timeout_s;
    made->client.reach = HTTP_REACH_ANY; /* the user names it */
    *push = made;
    return STATUS_OK;
}

void push_http_set_reach(struct push_http *push, enum http_reach reach)
{
    push->client.reach = reach;
}

void push_http_close(struct push_http *push)
{
    if (push != NULL) {
        curl_slist_free_all(push->headers);
        http_client_close(&push->client);
        free(push);
    }
}

/* What both requests have. */
static bool set_up(struct push_http *push, const char *name)
{
    char url[HTTP_CLIENT_URL_MAX];

    return http_client_url(url, push->base, name) &&
           http_client_set(&push->client, url, UINT64_C(1000) * push->timeout_s, push->timeout_s);
}

bool push_http_has(struct push_http *push, const char *name, uint64_t size)
{
    curl_off_t length = -1;
    long code = 0;

    if (!set_up(push, name) ||
        curl_easy_setopt(push->client.curl, CURLOPT_NOBODY, 1L) != CURLE_OK ||
        curl_easy_perform(push->client.curl) != CURLE_OK) {
        return false;
    }
    (void)curl_easy_getinfo(push->client.curl, CURLINFO_RESPONSE_CODE, &code);
    (void)curl_easy_getinfo(push->client.curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    return code == 200 && length >= 0 && (uint64_t)length == size;
}

/* ---- PUT ----------------------------------------------------------------- */

struct push_transfer {
    const struct serve_content *content;
    uint64_t sent;
    char answer[ANSWER_MAX];
    size_t answer_size;
};

static size_t give_bytes(char *bytes, size_t size, size_t count, void *context)
{
    struct push_transfer *transfer = context;
    const struct serve_content *content = transfer->content;
    uint64_t left = content->size - transfer->sent;
    size_t more = left < size * count ? (size_t)left : size * count;

    if (content->descriptor < 0) {
        memcpy(bytes, content->bytes + transfer->sent, more);
    } else if (more > 0) {
        ssize_t got =
            pread(content->descriptor, bytes, more, (off_t)(content->offset + transfer->sent));

        if (got <= 0) {
            return CURL_READFUNC_ABORT; /* it was cut short meanwhile */
        }
        more = (size_t)got;
    }
    transfer->sent += more;
    return more;
}

static size_t take_answer(char *bytes, size_t size, size_t count, void *context)
{
    struct push_transfer *transfer = context;
    size_t more = size * count;
    size_t room = sizeof(transfer->answer) - 1 - transfer->answer_size;
    size_t kept = more < room ? more : room;

    for (size_t i = 0; i < kept; i++) {
        bool plain = bytes[i] >= ' ' && bytes[i] <= '~';

        transfer->answer[transfer->answer_size++] = plain ? bytes[i] : ' ';
    }
    return more;
}

enum status push_http_put(struct push_http *push, const char *name,
                          const struct serve_content *content, struct error *error)
{
    struct push_transfer transfer = {.content = content};
    CURL *curl = push->client.curl;
    CURLcode result;
    long code = 0;

    if (!set_up(push, name) || curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L) != CURLE_OK ||
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, push->headers) != CURLE_OK ||
        curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)content->size) != CURLE_OK ||
        curl_easy_setopt(curl, CURLOPT_READFUNCTION, give_bytes) != CURLE_OK ||
        curl_easy_setopt(curl, CURLOPT_READDATA, &transfer) != CURLE_OK ||
        !http_client_receive_by(&push->client, take_answer, &transfer)) {
        return error_set(error, STATUS_UNREACHABLE, "%.120s: no request can be made", push->base);
    }
    result = curl_easy_perform(curl);
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    if (code >= HTTP_REFUSED && code < HTTP_FAILED) {
        return error_set(error, STATUS_REFUSED, "%.120s refuses %.100s (%ld): %s", push->base, name,
                         code, transfer.answer);
    }
    if (result == CURLE_OK && code < HTTP_REDIRECT) {
        return STATUS_OK;
    }
    return code >= HTTP_REDIRECT
               ? error_set(error, STATUS_UNREACHABLE, "%.120s answers with status %ld: %s",
                           push->base, code, transfer.answer)
               : error_set(error, STATUS_UNREACHABLE, "%.120s: %s", push->base,
                           push->client.error[0] != '\0' ? push->client.error
                                                         : curl_easy_strerror(result));
}
