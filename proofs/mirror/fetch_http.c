/* fetch_http.c - see fetch_http.h. */
#include "proofs/mirror/fetch_http.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/http/http_client.h"

enum {
    HTTP_OK = 200,
    HTTP_PARTIAL = 206,
    HTTP_FORBIDDEN = 403,
    HTTP_NOT_FOUND = 404,
    HTTP_GONE = 410,
    HTTP_RANGE = 416,
    TRIES_MAX = 4,
    LABEL_MAX = 120,
};

struct fetch_http {
    struct fetch_pace *pace; /* borrowed, or &any */
    struct fetch_pace any;   /* without a limit */
    uint32_t timeout_s;
    struct curl_slist *headers;
    struct stop *stop; /* borrowed */
    bool stalled;      /* the last transfer timed out: do not wait for it again */
    struct http_client client;
};

/* One transfer in progress. */
struct transfer {
    struct fetch_http *http;
    CURL *curl;
    int descriptor;
    uint64_t have; /* bytes in the part file */
    uint64_t came; /* over the line in this transfer */
    uint64_t size_max;
    bool begun; /* the first byte of the body was seen */
    bool over;
    bool not_content; /* an error page: its body is not the file */
    bool disk_failed;
};

enum status fetch_http_open(struct fetch_http **http, struct fetch_pace *pace, uint32_t timeout_s,
                            struct error *error)
{
    struct fetch_http *made = calloc(1, sizeof(*made));

    *http = NULL;
    if (made == NULL || http_client_open(&made->client, error) != STATUS_OK) {
        free(made);
        return error_set(error, STATUS_NO_MEMORY, "no memory to fetch with");
    }
    made->pace = pace != NULL ? pace : &made->any;
    fetch_http_set_timeout(made, timeout_s);
    *http = made;
    return STATUS_OK;
}

void fetch_http_set_timeout(struct fetch_http *http, uint32_t timeout_s)
{
    http->timeout_s = timeout_s == 0 ? 1 : timeout_s;
}

void fetch_http_set_reach(struct fetch_http *http, enum http_reach reach)
{
    http->client.reach = reach;
}

bool fetch_http_refused(const struct fetch_http *http)
{
    return http->client.refused != NULL;
}

bool fetch_http_stalled(const struct fetch_http *http)
{
    return http->stalled;
}

void fetch_http_set_stop(struct fetch_http *http, struct stop *stop)
{
    http->stop = stop;
}

void fetch_http_set_header(struct fetch_http *http, const char *header)
{
    curl_slist_free_all(http->headers);
    http->headers = header == NULL ? NULL : curl_slist_append(NULL, header);
}

void fetch_http_close(struct fetch_http *http)
{
    if (http != NULL) {
        curl_slist_free_all(http->headers);
        http_client_close(&http->client);
        free(http);
    }
}

/* FNV-1a. */
uint32_t fetch_http_mark(const char *mirror)
{
    uint32_t mark = 2166136261u;

    for (const char *at = mirror; *at != '\0'; at++) {
        mark = (mark ^ (uint8_t)*at) * 16777619u;
    }
    return mark;
}

static void pay_bytes(struct fetch_http *http, size_t bytes)
{
    fetch_pace_pay(http->pace, bytes, http->client.stopped, http->client.context);
}

/* Of a reply its head, and the body on its way to `receive`. */
static CURLcode perform_request(struct fetch_http *http)
{
    CURLcode result = curl_easy_perform(http->client.curl);
    long head = 0;

    (void)curl_easy_getinfo(http->client.curl, CURLINFO_HEADER_SIZE, &head);
    pay_bytes(http, (size_t)head);
    return result;
}

/* At the first byte of a body: is it the whole file, the rest of it, or an error page? */
static bool begin_body(struct transfer *transfer)
{
    long code = 0;

    transfer->begun = true;
    (void)curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &code);
    if (code == HTTP_PARTIAL && transfer->have > 0) {
        return true;
    }
    if (code != HTTP_OK) {
        transfer->not_content = true;
        return false;
    }
    transfer->have = 0;
    if (ftruncate(transfer->descriptor, 0) != 0 || lseek(transfer->descriptor, 0, SEEK_SET) != 0) {
        transfer->disk_failed = true;
        return false;
    }
    return true;
}

/* libcurl's write callback: anything but size * count ends the transfer. */
static size_t receive_bytes(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    size_t more = size * count;
    size_t done = 0;

    pay_bytes(transfer->http, more);
    if (!transfer->begun && !begin_body(transfer)) {
        return 0;
    }
    transfer->came += more;
    if (more > transfer->size_max || transfer->have > transfer->size_max - more) {
        transfer->over = true;
        return 0;
    }
    while (done < more) {
        ssize_t written = write(transfer->descriptor, bytes + done, more - done);

        if (written <= 0) {
            transfer->disk_failed = true;
            return 0;
        }
        done += (size_t)written;
    }
    transfer->have += more;
    return more;
}

/* range: "FIRST-" or "FIRST-LAST"; NULL: the whole file. libcurl's own resume fails when a server
 * sends the whole file instead. */
static bool set_up(struct fetch_http *http, const char *url, const char *range)
{
    CURL *curl = http->client.curl;

    return http_client_set(&http->client, url, UINT64_C(1000) * http->timeout_s, http->timeout_s) &&
           curl_easy_setopt(curl, CURLOPT_RANGE, range) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_HTTPHEADER, http->headers) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, (long)fetch_pace_read_max(http->pace)) ==
               CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)fetch_pace_trickle(http->pace)) ==
               CURLE_OK;
}

static bool set_up_file(struct fetch_http *http, struct transfer *transfer, const char *url)
{
    char range[32];

    (void)snprintf(range, sizeof(range), "%" PRIu64 "-", transfer->have);
    return set_up(http, url, transfer->have == 0 ? NULL : range) &&
           http_client_stop_by(&http->client, stop_called_back, http->stop) &&
           http_client_receive_by(&http->client, receive_bytes, transfer);
}

static enum status unreachable_mirror(const struct fetch_http *http, const char *base,
                                      CURLcode result, long code, struct error *error)
{
    const char *why =
        http->client.error[0] != '\0' ? http->client.error : curl_easy_strerror(result);

    if (http->client.refused != NULL) {
        return error_set(error, STATUS_UNREACHABLE, "it %s, and a stranger named it",
                         http->client.refused);
    }
    if (result == CURLE_OK || code >= 300) {
        return error_set(error, STATUS_UNREACHABLE, "%.*s answers with status %ld", LABEL_MAX, base,
                         code);
    }
    return error_set(error, STATUS_UNREACHABLE, "%.*s: %s", LABEL_MAX, base, why);
}

/* STATUS_UNREACHABLE with transfer->came > 0 may be resumed at once. */
static enum status transfer_once(struct fetch_http *http, struct transfer *transfer,
                                 const char *base, const char *url, struct error *error)
{
    long code = 0;
    CURLcode result;

    transfer->begun = transfer->over = transfer->not_content = false;
    transfer->came = 0;
    transfer->http = http;
    transfer->curl = http->client.curl;
    if (!set_up_file(http, transfer, url)) {
        return error_set(error, STATUS_UNREACHABLE, "%.*s: no request can be made", LABEL_MAX,
                         base);
    }
    result = perform_request(http);
    (void)curl_easy_getinfo(http->client.curl, CURLINFO_RESPONSE_CODE, &code);
    http->stalled = result == CURLE_OPERATION_TIMEDOUT;
    if (result == CURLE_ABORTED_BY_CALLBACK) {
        return error_set(error, STATUS_STOPPED, "stopped");
    }
    if (transfer->disk_failed) {
        return error_set(error, STATUS_IO, "the disk is full, or its limit is reached");
    }
    if (transfer->over) {
        return error_set(error, STATUS_OVER_LIMIT, "%.*s sends more than there can be", LABEL_MAX,
                         base);
    }
    if (code == HTTP_NOT_FOUND || code == HTTP_GONE || code == HTTP_FORBIDDEN) {
        return STATUS_NOT_FOUND;
    }
    if (code == HTTP_RANGE) { /* the part is not the beginning of what is there now */
        transfer->have = 0;
        return unreachable_mirror(http, base, result, code, error);
    }
    if (result == CURLE_OK && (code == HTTP_OK || code == HTTP_PARTIAL)) {
        if (!transfer->begun && code == HTTP_OK && ftruncate(transfer->descriptor, 0) != 0) {
            return error_set_errno(error, "cannot empty a part file");
        }
        return STATUS_OK;
    }
    return unreachable_mirror(http, base, result, code, error);
}

static enum status make_url(char url[HTTP_CLIENT_URL_MAX], const char *base, const char *name,
                            struct error *error)
{
    return http_client_url(url, base, name)
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "the mirror's URL is too long");
}

enum status fetch_http_get(struct fetch_http *http, uint64_t *bytes, const char *base,
                           const char *name, const char *part, uint64_t size_max,
                           struct error *error)
{
    struct transfer transfer = {.size_max = size_max};
    enum status status = STATUS_UNREACHABLE;
    char url[HTTP_CLIENT_URL_MAX];
    uint64_t best = 0; /* the most that the part has ever held: only more of it is progress */

    *bytes = 0;
    TRY(make_url(url, base, name, error));
    transfer.descriptor = open(part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (transfer.descriptor < 0) {
        return error_set_errno(error, "cannot write %s", part);
    }
    for (int i = 0, barren = 0; barren < TRIES_MAX && status == STATUS_UNREACHABLE; i++) {
        off_t end = transfer.have == 0 && i > 0 ? 0 : lseek(transfer.descriptor, 0, SEEK_END);

        transfer.have = end < 0 ? 0 : (uint64_t)end;
        status = transfer_once(http, &transfer, base, url, error);
        *bytes += transfer.came;
        barren = transfer.have >= best + FETCH_TRICKLE ? 0 : barren + 1;
        best = transfer.have > best ? transfer.have : best;
        if (http->stalled || (transfer.came == 0 && (transfer.have != 0 || end == 0))) {
            break; /* it gives nothing more: the next mirror */
        }
    }
    (void)close(transfer.descriptor);
    if (status == STATUS_OVER_LIMIT || status == STATUS_NOT_FOUND) {
        (void)unlink(part);
    }
    return status;
}

/* ---- parts of files ------------------------------------------------------ */

struct http_part {
    struct fetch_http *http;
    CURL *curl;
    uint8_t *bytes;
    size_t size;
    size_t came;
    const atomic_bool *cancel;
    bool begun;
    bool whole; /* it sends the file from its beginning, or more than it was asked for */
};

static size_t receive_part(char *bytes, size_t size, size_t count, void *context)
{
    struct http_part *part = context;
    size_t more = size * count;
    long code = 0;

    pay_bytes(part->http, more);
    if (!part->begun) {
        part->begun = true;
        (void)curl_easy_getinfo(part->curl, CURLINFO_RESPONSE_CODE, &code);
        part->whole = code == HTTP_OK;
        if (code != HTTP_PARTIAL) {
            return 0; /* an error page, or not what we asked for */
        }
    }
    if (more > part->size - part->came) {
        part->whole = true;
        return 0;
    }
    memcpy(part->bytes + part->came, bytes, more);
    part->came += more;
    return more;
}

static bool is_cancelled(void *context)
{
    const struct http_part *part = context;

    return atomic_load(part->cancel);
}

static bool set_up_part(struct fetch_http *http, struct http_part *part, const char *url,
                        uint64_t first)
{
    char range[48];

    (void)snprintf(range, sizeof(range), "%" PRIu64 "-%" PRIu64, first, first + part->size - 1);
    return set_up(http, url, range) && http_client_stop_by(&http->client, is_cancelled, part) &&
           http_client_receive_by(&http->client, receive_part, part);
}

enum status fetch_http_range(struct fetch_http *http, uint8_t *bytes, size_t *came,
                             const char *base, const char *name, uint64_t first, size_t size,
                             const atomic_bool *cancel, struct error *error)
{
    struct http_part part = {
        .http = http, .curl = http->client.curl, .bytes = bytes, .size = size, .cancel = cancel};
    char url[HTTP_CLIENT_URL_MAX];
    CURLcode result;
    long code = 0;

    *came = 0;
    TRY(make_url(url, base, name, error));
    if (!set_up_part(http, &part, url, first)) {
        return error_set(error, STATUS_UNREACHABLE, "%.*s: no request can be made", LABEL_MAX,
                         base);
    }
    result = perform_request(http);
    http->stalled = result == CURLE_OPERATION_TIMEDOUT;
    (void)curl_easy_getinfo(http->client.curl, CURLINFO_RESPONSE_CODE, &code);
    *came = part.came;
    /* All that was asked for came: how the transfer ended then does not matter. */
    if (part.came == size && !part.whole) {
        return STATUS_OK;
    }
    if (atomic_load(cancel)) {
        return STATUS_STOPPED;
    }
    if (code == HTTP_NOT_FOUND || code == HTTP_GONE) {
        return error_set(error, STATUS_NOT_FOUND, "%.*s has no such file", LABEL_MAX, base);
    }
    /* A server may answer a request for a part with the whole file, from its first byte. */
    if (part.whole) {
        return error_set(error, STATUS_REFUSED, "%.*s does not give parts of files", LABEL_MAX,
                         base);
    }
    if (code == HTTP_RANGE || (result == CURLE_OK && code == HTTP_PARTIAL)) {
        return error_set(error, STATUS_BAD_FORMAT, "%.*s has a shorter file there", LABEL_MAX,
                         base);
    }
    return unreachable_mirror(http, base, result, code, error);
}
