/* serve.c - see serve.h. */
#include "proofs/mirror/serve.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/http/http_server.h"
#include "base/io/file.h"
#include "base/secret.h"
#include "base/text.h"

#define PEM_SIZE_MAX      (1u << 20)
#define CONNECTIONS_LEAST 8

struct serve {
    struct serve_source source;
    struct http_server *http;
    struct file_bytes certificate;
    struct file_bytes key;
    pthread_mutex_t lock;
    struct serve_counts counts;
};

void serve_content_release(struct serve_content *content)
{
    if (content->descriptor >= 0) {
        (void)close(content->descriptor);
    }
    free(content->bytes);
    *content = (struct serve_content){.descriptor = -1};
}

/* ---- ranges ------------------------------------------------------------- */

/* Of a byte in a header. */
#define RANGE_MOST UINT64_C(999999999999999999)

enum serve_range serve_read_range(uint64_t *first, uint64_t *count, const char *header,
                                  uint64_t size)
{
    uint64_t from;
    uint64_t to = UINT64_MAX;
    bool has_from;
    bool has_to;

    *first = 0;
    *count = size;
    if (header == NULL || strncmp(header, "bytes=", 6) != 0) {
        return SERVE_WHOLE;
    }
    header += 6;
    has_from = text_take_number(&from, &header, RANGE_MOST);
    if (*header++ != '-') {
        return SERVE_WHOLE;
    }
    has_to = text_take_number(&to, &header, RANGE_MOST);
    if (*header != '\0' || (!has_from && !has_to) || (has_from && has_to && to < from)) {
        return SERVE_WHOLE;
    }
    if (!has_from) { /* the last `to` bytes */
        if (to == 0 || size == 0) {
            return SERVE_OUTSIDE;
        }
        *first = to < size ? size - to : 0;
        *count = size - *first;
        return SERVE_PART;
    }
    if (from >= size) {
        return SERVE_OUTSIDE;
    }
    *first = from;
    *count = (has_to && to < size ? to + 1 : size) - from;
    return SERVE_PART;
}

/* ---- responses ---------------------------------------------------------- */

static void count_request(struct serve *serve, bool refused, uint64_t bytes)
{
    (void)pthread_mutex_lock(&serve->lock);
    serve->counts.requests++;
    serve->counts.refused += refused;
    serve->counts.bytes += bytes;
    (void)pthread_mutex_unlock(&serve->lock);
}

/* A response of one line. */
static enum MHD_Result send_words(struct serve *serve, struct MHD_Connection *connection,
                                  unsigned int code, const char *words)
{
    char text[ERROR_TEXT_MAX + 2];
    struct MHD_Response *response;
    enum MHD_Result result;

    (void)snprintf(text, sizeof(text), "%s\n", words);
    response = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_COPY);
    if (response == NULL) {
        return MHD_NO;
    }
    http_server_headers(response, "text/plain; charset=utf-8");
    if (code == MHD_HTTP_UNAUTHORIZED) {
        (void)MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    }
    if (code == MHD_HTTP_SERVICE_UNAVAILABLE) {
        (void)MHD_add_response_header(response, "Retry-After", "1");
    }
    if (code == MHD_HTTP_METHOD_NOT_ALLOWED) {
        (void)MHD_add_response_header(response, "Allow",
                                      serve->source.take != NULL ? "GET, HEAD, PUT" : "GET, HEAD");
    }
    result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    count_request(serve, code >= MHD_HTTP_BAD_REQUEST, 0);
    return result;
}

/* The response of a part of the content; takes its descriptor or its bytes. */
static struct MHD_Response *response_of(struct serve_content *content, uint64_t first,
                                        uint64_t size)
{
    struct MHD_Response *response;

    if (content->descriptor >= 0) {
        response = MHD_create_response_from_fd_at_offset64(size, content->descriptor,
                                                           content->offset + first);
        if (response != NULL) {
            content->descriptor = -1;
        }
        return response;
    }
    return MHD_create_response_from_buffer(size, content->bytes + first, MHD_RESPMEM_MUST_COPY);
}

#define TAG_SIZE (HEX_SIZE(DIGEST_SIZE) + 2)

static void write_tag(char tag[TAG_SIZE], const struct serve_content *content)
{
    tag[0] = '"';
    hex_encode(tag + 1, content->root.bytes, DIGEST_SIZE);
    memcpy(tag + 1 + 2 * DIGEST_SIZE, "\"", 2);
}

/* Does the client have it? A list of tags, or "*" (RFC 9110, 13.1.2). */
static bool is_known(struct MHD_Connection *connection, const struct serve_content *content)
{
    const char *has = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "If-None-Match");
    char tag[TAG_SIZE];

    if (has == NULL || !content->fixed) {
        return false;
    }
    write_tag(tag, content);
    return strcmp(has, "*") == 0 || strstr(has, tag) != NULL;
}

/* The range that is asked for; NULL: all of it. One that is for another content counts for nothing
 * (RFC 9110, 13.1.5). */
static const char *range_of(struct MHD_Connection *connection, const struct serve_content *content)
{
    const char *when = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "If-Range");
    char tag[TAG_SIZE];

    write_tag(tag, content);
    return when == NULL || (content->fixed && strcmp(when, tag) == 0)
               ? MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Range")
               : NULL;
}

static void add_headers(struct MHD_Response *response, const struct serve_content *content)
{
    char tag[TAG_SIZE];

    http_server_headers(response, content->type);
    (void)MHD_add_response_header(response, "Accept-Ranges", "bytes");
    if (content->fixed) {
        write_tag(tag, content);
        (void)MHD_add_response_header(response, "ETag", tag);
        (void)MHD_add_response_header(response, "Cache-Control",
                                      "public, max-age=31536000, immutable");
    } else {
        (void)MHD_add_response_header(response, "Cache-Control", "no-cache");
    }
}

/* Queues what says where a part stands, or that there is none or no need of any. */
static enum MHD_Result queue_response(struct serve *serve, struct MHD_Connection *connection,
                                      unsigned int code, struct MHD_Response *response,
                                      const char *place, uint64_t bytes)
{
    enum MHD_Result result;

    if (response == NULL) {
        return MHD_NO;
    }
    if (place[0] != '\0') {
        (void)MHD_add_response_header(response, "Content-Range", place);
    }
    result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    count_request(serve, code >= MHD_HTTP_BAD_REQUEST, bytes);
    return result;
}

static enum MHD_Result give_content(struct serve *serve, struct MHD_Connection *connection,
                                    struct serve_content *content)
{
    bool known = is_known(connection, content);
    unsigned int code = MHD_HTTP_OK;
    struct MHD_Response *response;
    char place[80] = "";
    uint64_t first;
    uint64_t size;

    switch (serve_read_range(&first, &size, range_of(connection, content), content->size)) {
    case SERVE_WHOLE:
        break;
    case SERVE_PART:
        code = MHD_HTTP_PARTIAL_CONTENT;
        (void)snprintf(place, sizeof(place), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, first,
                       first + size - 1, content->size);
        break;
    case SERVE_OUTSIDE:
        code = MHD_HTTP_RANGE_NOT_SATISFIABLE;
        (void)snprintf(place, sizeof(place), "bytes */%" PRIu64, content->size);
        break;
    }
    /* Who has the content already, by its tag, gets no bytes of it again, whole or in part. */
    if (known || code == MHD_HTTP_RANGE_NOT_SATISFIABLE) {
        code = known ? MHD_HTTP_NOT_MODIFIED : code;
        size = 0;
        response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    } else {
        response = response_of(content, first, size);
    }
    if (response != NULL) {
        add_headers(response, content);
    }
    return queue_response(serve, connection, code, response, known ? "" : place, size);
}

static unsigned int code_of(enum status status)
{
    if (status == STATUS_NOT_FOUND) {
        return MHD_HTTP_NOT_FOUND;
    }
    if (status == STATUS_REFUSED) {
        return MHD_HTTP_FORBIDDEN;
    }
    return status == STATUS_OVER_LIMIT || status == STATUS_NO_MEMORY || status == STATUS_UNREACHABLE
               ? MHD_HTTP_SERVICE_UNAVAILABLE
               : MHD_HTTP_INTERNAL_SERVER_ERROR;
}

static enum MHD_Result refuse_for(struct serve *serve, struct MHD_Connection *connection,
                                  enum status status, const struct error *error)
{
    /* An internal error may name our files: strangers see no details. */
    bool internal = code_of(status) == MHD_HTTP_INTERNAL_SERVER_ERROR;

    return send_words(serve, connection, code_of(status),
                      internal ? "internal error" : error->text);
}

static enum MHD_Result show_content(struct serve *serve, struct MHD_Connection *connection,
                                    const char *path)
{
    const struct serve_source *source = &serve->source;
    const char *header =
        source->header == NULL
            ? NULL
            : MHD_lookup_connection_value(connection, MHD_HEADER_KIND, source->header);
    struct serve_content content;
    enum MHD_Result result;
    struct error error;
    enum status status;

    error_init(&error);
    status = source->find(source->context, &content, path, header, &error);
    if (status != STATUS_OK) {
        return refuse_for(serve, connection, status, &error);
    }
    result = give_content(serve, connection, &content);
    serve_content_release(&content);
    return result;
}

/* ---- what is taken in --------------------------------------------------- */

/* A PUT under way; one that failed reads on, so that the client hears why. */
struct serve_intake {
    const struct serve_source *source;
    void *intake; /* NULL: refused, or over */
    enum status status;
    struct error error;
};

static bool has_token(const struct serve *serve, struct MHD_Connection *connection)
{
    static const char bearer[] = "Bearer ";
    const char *shown = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
    const char *token = serve->source.token;
    size_t size = token == NULL ? 0 : strlen(token);

    return token == NULL ||
           (size > 0 && shown != NULL && strncmp(shown, bearer, sizeof(bearer) - 1) == 0 &&
            strlen(shown) == sizeof(bearer) - 1 + size &&
            secret_equal(shown + sizeof(bearer) - 1, token, size));
}

static enum MHD_Result begin_intake(struct serve *serve, struct MHD_Connection *connection,
                                    const char *path, void **state)
{
    struct serve_intake *intake;

    if (!has_token(serve, connection)) {
        return send_words(serve, connection, MHD_HTTP_UNAUTHORIZED, "the token is not ours");
    }
    intake = calloc(1, sizeof(*intake));
    if (intake == NULL) {
        return MHD_NO;
    }
    intake->source = &serve->source;
    error_init(&intake->error);
    intake->status =
        serve->source.take_begin(serve->source.context, &intake->intake, path, &intake->error);
    if (intake->status != STATUS_OK) {
        enum MHD_Result result = refuse_for(serve, connection, intake->status, &intake->error);

        free(intake);
        return result;
    }
    *state = intake;
    return MHD_YES;
}

static enum MHD_Result go_on_with_intake(struct serve *serve, struct MHD_Connection *connection,
                                         struct serve_intake *intake, const char *upload,
                                         size_t *upload_size)
{
    if (*upload_size > 0) {
        if (intake->status == STATUS_OK) {
            intake->status =
                intake->source->take(intake->intake, upload, *upload_size, &intake->error);
        }
        *upload_size = 0;
        /* A stranger, who shows no token, sends no more than is taken. */
        return intake->status == STATUS_OK || serve->source.token != NULL ? MHD_YES : MHD_NO;
    }
    if (intake->intake != NULL) {
        enum status ended =
            intake->source->take_end(intake->intake, intake->status == STATUS_OK, &intake->error);

        intake->status = intake->status == STATUS_OK ? ended : intake->status;
        intake->intake = NULL;
    }
    return intake->status == STATUS_OK
               ? send_words(serve, connection, MHD_HTTP_CREATED, "kept")
               : refuse_for(serve, connection, intake->status, &intake->error);
}

/* When a request is over, however it ended. */
static void forget_request(void *context, struct MHD_Connection *connection, void **state,
                           enum MHD_RequestTerminationCode code)
{
    struct serve *serve = context;
    struct serve_intake *intake = *state == serve ? NULL : *state;

    (void)connection;
    (void)code;
    if (intake != NULL && intake->intake != NULL) {
        (void)!intake->source->take_end(intake->intake, false, &intake->error);
    }
    free(intake);
    *state = NULL;
}

static enum MHD_Result answer_request(void *context, struct MHD_Connection *connection,
                                      const char *url, const char *method, const char *version,
                                      const char *upload, size_t *upload_size, void **state)
{
    struct serve *serve = context;
    bool takes = serve->source.take != NULL;
    bool puts = takes && strcmp(method, "PUT") == 0;

    (void)version;
    /* A response before the end of a request closes the connection, as it should here. */
    if (!puts && strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        return send_words(serve, connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                          takes ? "only GET, HEAD and PUT" : "only GET and HEAD");
    }
    if (url[0] != '/' || strnlen(url, SERVE_PATH_MAX) >= SERVE_PATH_MAX) {
        return send_words(serve, connection, MHD_HTTP_NOT_FOUND, "there is no such name");
    }
    if (puts) {
        return *state == NULL ? begin_intake(serve, connection, url + 1, state)
                              : go_on_with_intake(serve, connection, *state, upload, upload_size);
    }
    if (*state == NULL) {
        *state = serve;
        return MHD_YES;
    }
    return *upload_size != 0 ? MHD_NO : show_content(serve, connection, url + 1);
}

/* ---- the server --------------------------------------------------------- */

static enum status read_pems(struct serve *serve, const struct serve_options *options,
                             struct error *error)
{
    if (options->certificate == NULL && options->key == NULL) {
        return STATUS_OK;
    }
    if (options->certificate == NULL || options->key == NULL) {
        return error_set(error, STATUS_USAGE, "TLS needs both a certificate and its key");
    }
    TRY(file_read(&serve->certificate, error, options->certificate, PEM_SIZE_MAX));
    return file_read(&serve->key, error, options->key, PEM_SIZE_MAX);
}

static enum status start_server(struct serve *serve, const struct serve_options *given,
                                struct error *error)
{
    const struct http_server_options options = {
        .place = &given->place,
        .what = "content",
        .certificate = (const char *)serve->certificate.data,
        .key = (const char *)serve->key.data,
        .room =
            given->connections_max < CONNECTIONS_LEAST ? CONNECTIONS_LEAST : given->connections_max,
        .per_network = given->connections_per_client,
        .idle_s = given->idle_s,
        .threads = true, /* a reply about a trace may wait for its turn */
        .answer = answer_request,
        .complete = forget_request,
        .context = serve};

    return http_server_open(&serve->http, &options, error);
}

enum status serve_open(struct serve **serve, const struct serve_source *source,
                       const struct serve_options *options, struct error *error)
{
    struct serve *made = calloc(1, sizeof(*made));
    enum status status;

    *serve = NULL;
    if (made == NULL || pthread_mutex_init(&made->lock, NULL) != 0) {
        free(made);
        return error_set(error, STATUS_NO_MEMORY, "no memory to serve");
    }
    made->source = *source;
    TRY_OUT(read_pems(made, options, error));
    TRY_OUT(start_server(made, options, error));
out:
    if (status != STATUS_OK) {
        serve_close(made);
        return status;
    }
    *serve = made;
    return STATUS_OK;
}

void serve_close(struct serve *serve)
{
    if (serve == NULL) {
        return;
    }
    http_server_close(serve->http);
    file_bytes_release(&serve->certificate);
    if (serve->key.data != NULL) {
        explicit_bzero(serve->key.data, serve->key.size);
    }
    file_bytes_release(&serve->key);
    (void)pthread_mutex_destroy(&serve->lock);
    free(serve);
}

uint16_t serve_port(const struct serve *serve)
{
    return http_server_port(serve->http);
}

struct serve_counts serve_counts(struct serve *serve)
{
    struct serve_counts counts;

    (void)pthread_mutex_lock(&serve->lock);
    counts = serve->counts;
    (void)pthread_mutex_unlock(&serve->lock);
    return counts;
}
