/* rpc.c - see rpc.h. */
#include "chain/evm/rpc/rpc.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/backoff.h"
#include "base/io/strict_json.h"
#include "base/secret.h"
#include "base/steady.h"
#include "chain/evm/rpc/rpc_transport.h"

enum {
    CODE_LIMIT_EXCEEDED = -32005, /* EIP-1474 */
    WAIT_SLICE_MS = 50,           /* how soon a stop is noticed */
    REST_MS_FIRST = 1000,         /* of an endpoint that failed, and of one that always does: */
    REST_MS_MAX = 60000,
    METHOD_SIZE = 48,
    TIME_SIZE = 32,
};

/* Recent failures of an endpoint: one that hangs must not cost its timeout in every call. */
struct health {
    uint32_t failures;       /* in a row */
    uint64_t rest_until_ms;  /* on the steady clock */
    uint64_t pause_until_ms; /* it asked to be left alone until then */
    bool barred;
    /* What ails it: */
    char reason[RPC_REASON_SIZE]; /* empty: nothing */
    char method[METHOD_SIZE];     /* which mends it; empty: any answer does */
    uint64_t since_ms;            /* on the steady clock */
    uint64_t since_s;
    bool told;
};

struct rpc {
    struct rpc_options options;
    struct rpc_transport *endpoints[RPC_ENDPOINTS_MAX];
    struct health health[RPC_ENDPOINTS_MAX];
    size_t endpoint_count;
    size_t preferred; /* the endpoint that answered last */
    uint64_t next_id;
    uint64_t jitter; /* state of a small generator; not a secret */
    struct rpc_failure failure;
};

void rpc_options_init(struct rpc_options *options)
{
    memset(options, 0, sizeof(*options));
    options->timeout_ms = 10000;
    options->rounds_max = 5;
    options->wait_ms_first = 200;
    options->wait_ms_max = 10000;
    options->reply_size_max = RPC_REPLY_SIZE_MAX;
    options->tell_after_s = 15;
}

struct rpc *rpc_new(const struct rpc_options *options, struct error *error)
{
    struct rpc *rpc = calloc(1, sizeof(*rpc));

    assert(options->rounds_max >= 1);
    if (rpc == NULL) {
        (void)error_set(error, STATUS_NO_MEMORY, "no memory for an RPC client");
        return NULL;
    }
    if (options->url_count < 1 || options->url_count > RPC_ENDPOINTS_MAX) {
        (void)error_set(error, STATUS_USAGE, "%zu endpoints; there must be 1 to %d",
                        options->url_count, RPC_ENDPOINTS_MAX);
        goto out;
    }
    rpc->options = *options;
    rpc->next_id = 1;
    if (secret_random(&rpc->jitter, sizeof(rpc->jitter), error) != STATUS_OK) {
        goto out;
    }
    for (size_t i = 0; i < options->url_count; i++) {
        rpc->endpoints[i] = rpc_transport_new(options->urls[i], options->timeout_ms,
                                              options->reply_size_max, error);
        if (rpc->endpoints[i] == NULL) {
            goto out;
        }
        rpc_transport_stop_by(rpc->endpoints[i], options->stopped, options->context);
        rpc->endpoint_count++;
    }
    rpc->options.urls = NULL;
    return rpc;

out:
    rpc_free(rpc);
    return NULL;
}

void rpc_free(struct rpc *rpc)
{
    if (rpc != NULL) {
        for (size_t i = 0; i < rpc->endpoint_count; i++) {
            rpc_transport_free(rpc->endpoints[i]);
        }
        free(rpc);
    }
}

const struct rpc_failure *rpc_failure(const struct rpc *rpc)
{
    return &rpc->failure;
}

size_t rpc_endpoint_count(const struct rpc *rpc)
{
    return rpc->endpoint_count;
}

const char *rpc_endpoint_label(const struct rpc *rpc, size_t endpoint)
{
    assert(endpoint < rpc->endpoint_count);
    return rpc_transport_label(rpc->endpoints[endpoint]);
}

size_t rpc_endpoint_order(const struct rpc *rpc, size_t order[RPC_ENDPOINTS_MAX])
{
    uint64_t now_ms = steady_ms();
    size_t count = 0;
    size_t well = 0;

    for (int resting = 0; resting < 2; resting++) {
        for (size_t i = 0; i < rpc->endpoint_count; i++) {
            if ((rpc->health[i].rest_until_ms > now_ms) == (resting != 0)) {
                order[count++] = i;
            }
        }
        well = resting == 0 ? count : well;
    }
    return well;
}

/* ---- what ails an endpoint ---------------------------------------------------- */

static void set_trouble(struct health *health, const char *method, const char *reason)
{
    if (health->reason[0] == '\0') {
        health->since_ms = steady_ms();
        health->since_s = (uint64_t)time(NULL);
        health->told = false;
    }
    (void)snprintf(health->reason, sizeof(health->reason), "%s", reason);
    (void)snprintf(health->method, sizeof(health->method), "%s", method);
}

static void clear_trouble(struct rpc *rpc, size_t endpoint)
{
    struct health *health = &rpc->health[endpoint];

    if (health->told) {
        log_info(rpc->options.log, "ledger", "endpoint %s is well again, after %" PRIu64 " s",
                 rpc_endpoint_label(rpc, endpoint), (steady_ms() - health->since_ms) / 1000);
    }
    health->reason[0] = '\0';
    health->told = false;
}

/* Whose word counts while this one is ill? */
static const char *what_of_it(const struct rpc *rpc, size_t endpoint)
{
    if (rpc->endpoint_count == 1) {
        return "; it is the only one";
    }
    return rpc->endpoint_count == 2 && rpc->health[endpoint].method[0] == '\0' &&
                   rpc->health[1 - endpoint].reason[0] == '\0'
               ? "; the other endpoint alone is believed meanwhile"
               : "";
}

/* Tells the log of trouble that lasts. */
static void tell_trouble(struct rpc *rpc)
{
    for (size_t i = 0; i < rpc->endpoint_count; i++) {
        struct health *health = &rpc->health[i];
        time_t since = (time_t)health->since_s;
        char text[TIME_SIZE];
        struct tm parts;

        if (health->reason[0] != '\0' && !health->told &&
            steady_ms() - health->since_ms >= (uint64_t)rpc->options.tell_after_s * 1000) {
            (void)gmtime_r(&since, &parts);
            (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
            log_warn(rpc->options.log, "ledger", "endpoint %s is ill since %s: %s%s",
                     rpc_endpoint_label(rpc, i), text, health->reason, what_of_it(rpc, i));
            health->told = true;
        }
    }
}

void rpc_endpoint_look(const struct rpc *rpc, struct rpc_endpoint_state *state, size_t endpoint)
{
    const struct health *health = &rpc->health[endpoint];

    *state = (struct rpc_endpoint_state){.label = rpc_endpoint_label(rpc, endpoint),
                                         .ill = health->reason[0] != '\0',
                                         .since_s = health->since_s};
    (void)snprintf(state->reason, sizeof(state->reason), "%s", health->reason);
}

void rpc_endpoint_blame(struct rpc *rpc, size_t endpoint, const char *method, const char *reason)
{
    set_trouble(&rpc->health[endpoint], method, reason);
    tell_trouble(rpc);
}

void rpc_endpoint_clear(struct rpc *rpc, size_t endpoint, const char *method)
{
    if (strcmp(rpc->health[endpoint].method, method) == 0 && !rpc->health[endpoint].barred) {
        clear_trouble(rpc, endpoint);
    }
}

void rpc_endpoint_bar(struct rpc *rpc, size_t endpoint, const char *reason)
{
    struct health *health = &rpc->health[endpoint];

    if (reason != NULL) {
        set_trouble(health, "", reason);
    } else if (health->barred) {
        clear_trouble(rpc, endpoint);
    }
    health->barred = reason != NULL;
    tell_trouble(rpc);
}

bool rpc_endpoint_is_out(const struct rpc *rpc, size_t endpoint)
{
    const struct health *health = &rpc->health[endpoint];

    return health->failures >= 2 || health->barred || health->pause_until_ms > steady_ms();
}

/* An error names its endpoint first; what ails the endpoint does not. */
static void note_health(struct rpc *rpc, size_t endpoint, bool answered, const struct error *error)
{
    struct health *health = &rpc->health[endpoint];
    const char *label = rpc_endpoint_label(rpc, endpoint);
    size_t size = strlen(label);

    if (answered) {
        health->failures = 0;
        health->rest_until_ms = 0;
        if (health->method[0] == '\0' && !health->barred) {
            clear_trouble(rpc, endpoint);
        }
        tell_trouble(rpc);
        return;
    }
    if (!health->barred) {
        set_trouble(health, "",
                    strncmp(error->text, label, size) == 0 && error->text[size] == ':'
                        ? error->text + size + 2
                        : error->text);
    }
    health->rest_until_ms =
        steady_ms() + backoff_pause(REST_MS_FIRST, REST_MS_MAX, health->failures);
    if (health->rest_until_ms < health->pause_until_ms) {
        health->rest_until_ms = health->pause_until_ms;
    }
    health->failures += health->failures < UINT32_MAX;
    tell_trouble(rpc);
}

/* ---- waiting ------------------------------------------------------------------ */

/* Somewhere from half of the time to all of it, so that many nodes do not return together. */
static uint32_t with_jitter(struct rpc *rpc, uint32_t wait_ms)
{
    rpc->jitter = rpc->jitter * 6364136223846793005u + 1442695040888963407u;
    return wait_ms / 2 + (uint32_t)((rpc->jitter >> 33) % (wait_ms / 2 + 1));
}

bool rpc_is_stopped(const struct rpc *rpc)
{
    return rpc->options.stopped != NULL && rpc->options.stopped(rpc->options.context);
}

static enum status wait_for(struct rpc *rpc, uint32_t wait_ms, struct error *error)
{
    while (wait_ms > 0) {
        uint32_t slice_ms = wait_ms < WAIT_SLICE_MS ? wait_ms : WAIT_SLICE_MS;
        const struct timespec slice = {0, (long)slice_ms * 1000000};

        if (rpc_is_stopped(rpc)) {
            return error_set(error, STATUS_STOPPED, "stopped while waiting for an endpoint");
        }
        (void)nanosleep(&slice, NULL);
        wait_ms -= slice_ms;
    }
    return STATUS_OK;
}

/* round: counts from 0; there is no wait before round 0. */
static enum status wait_before(struct rpc *rpc, uint32_t round, struct error *error)
{
    uint64_t wait_ms =
        backoff_pause(rpc->options.wait_ms_first, rpc->options.wait_ms_max, round - 1);

    return wait_for(rpc, with_jitter(rpc, (uint32_t)wait_ms), error);
}

/* ---- requests ----------------------------------------------------------------- */

/* {"jsonrpc":"2.0","id":...,"method":...,"params":...} */
static json_t *make_request(uint64_t id, const char *method, json_t *params)
{
    return json_pack("{s:s, s:I, s:s, s:O}", "jsonrpc", "2.0", "id", (json_int_t)id, "method",
                     method, "params", params);
}

struct request {
    const char *method;
    json_t *params; /* of a batch: a list of them */
    bool batch;
    bool of_barred; /* goes to a barred endpoint, too */
    uint64_t id;    /* of a batch: the first */
};

/* The caller releases body in any case. */
static enum status write_request(struct buffer *body, const struct request *request,
                                 struct error *error)
{
    json_t *json =
        request->batch ? json_array() : make_request(request->id, request->method, request->params);
    enum status status = STATUS_OK;

    buffer_init(body, RPC_REQUEST_SIZE_MAX);
    for (size_t i = 0; request->batch && i < json_array_size(request->params); i++) {
        (void)json_array_append_new(json, make_request(request->id + i, request->method,
                                                       json_array_get(request->params, i)));
    }
    if (json == NULL ||
        (request->batch && json_array_size(json) != json_array_size(request->params))) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for a request");
    }
    if (status == STATUS_OK) {
        status = strict_json_write(body, error, json, JSON_COMPACT);
    }
    json_decref(json);
    return status;
}

static enum status post_request(struct rpc *rpc, size_t endpoint, json_t **result,
                                struct request *request, struct error *error)
{
    uint64_t count = request->batch ? json_array_size(request->params) : 1;
    uint32_t pause_s = 0;
    struct buffer body;
    const char *reply;
    size_t reply_size;
    enum status status;

    request->id = rpc->next_id;
    rpc->next_id += count;
    TRY_OUT(write_request(&body, request, error));
    TRY_OUT(rpc_transport_post(rpc->endpoints[endpoint], &reply, &reply_size, &pause_s,
                               buffer_text(&body), body.size, error));
out:
    buffer_release(&body);
    if (pause_s > 0) {
        rpc->health[endpoint].pause_until_ms = steady_ms() + (uint64_t)pause_s * 1000;
    }
    if (status != STATUS_OK) {
        return status;
    }
    status = request->batch
                 ? rpc_reply_read_batch(result, &rpc->failure, reply, reply_size, request->id,
                                        count, error)
                 : rpc_reply_read(result, &rpc->failure, reply, reply_size, request->id, error);
    if (status != STATUS_OK) {
        return error_wrap(error, "%s: %s", rpc_endpoint_label(rpc, endpoint), request->method);
    }
    return STATUS_OK;
}

/* Could another endpoint, or a later time, give a better answer? */
static bool worth_retrying(const struct rpc *rpc, enum status status)
{
    return status == STATUS_UNREACHABLE || status == STATUS_BAD_FORMAT ||
           (status == STATUS_REFUSED && rpc->failure.code == CODE_LIMIT_EXCEEDED);
}

/* An endpoint that asked for a pause, or is of another chain, is not asked. */
static enum status check_asked(const struct rpc *rpc, size_t endpoint,
                               const struct request *request, struct error *error)
{
    const struct health *health = &rpc->health[endpoint];
    uint64_t now_ms = steady_ms();

    if (health->barred && !request->of_barred) {
        return error_set(error, STATUS_UNREACHABLE, "%s: %s", rpc_endpoint_label(rpc, endpoint),
                         health->reason);
    }
    if (health->pause_until_ms > now_ms) {
        return error_set(error, STATUS_UNREACHABLE,
                         "%s: it has too many requests and asked for a pause (Retry-After): "
                         "%" PRIu64 " s of it are left",
                         rpc_endpoint_label(rpc, endpoint),
                         (health->pause_until_ms - now_ms + 999) / 1000);
    }
    return STATUS_OK;
}

static enum status call_endpoint(struct rpc *rpc, size_t endpoint, json_t **result,
                                 struct request *request, struct error *error)
{
    enum status status;

    if (check_asked(rpc, endpoint, request, error) != STATUS_OK) {
        tell_trouble(rpc);
        return STATUS_UNREACHABLE;
    }
    status = post_request(rpc, endpoint, result, request, error);
    if (status != STATUS_STOPPED) {
        note_health(rpc, endpoint, !worth_retrying(rpc, status), error);
    }
    return status;
}

static enum status call_all(struct rpc *rpc, json_t **result, struct request *request,
                            struct error *error)
{
    enum status status = STATUS_UNREACHABLE;

    for (size_t i = 0; i < rpc->endpoint_count; i++) {
        size_t endpoint = (rpc->preferred + i) % rpc->endpoint_count;

        status = call_endpoint(rpc, endpoint, result, request, error);
        if (!worth_retrying(rpc, status)) {
            rpc->preferred = endpoint;
            return status;
        }
    }
    return status;
}

enum status rpc_call(struct rpc *rpc, json_t **result, const char *method, json_t *params,
                     struct error *error)
{
    struct request request = {.method = method, .params = params == NULL ? json_array() : params};
    struct error own;
    enum status status = STATUS_UNREACHABLE;

    error = error == NULL ? &own : error;
    error_init(error);
    *result = NULL;
    for (uint32_t round = 0; round < rpc->options.rounds_max; round++) {
        if (round > 0 && wait_before(rpc, round, error) != STATUS_OK) {
            status = STATUS_STOPPED;
            break;
        }
        status = call_all(rpc, result, &request, error);
        if (!worth_retrying(rpc, status)) {
            break;
        }
    }
    json_decref(request.params);
    if (worth_retrying(rpc, status)) {
        error->status = STATUS_UNREACHABLE;
        error_advise(error, "check the endpoint, or give a second one");
        return STATUS_UNREACHABLE;
    }
    return status;
}

bool rpc_endpoint_again(struct rpc *rpc, uint32_t *round)
{
    struct error stopped;

    error_init(&stopped);
    return *round < rpc->options.rounds_max && wait_before(rpc, (*round)++, &stopped) == STATUS_OK;
}

static enum status call_once(struct rpc *rpc, size_t endpoint, json_t **result,
                             struct request request, struct error *error)
{
    struct error own;
    enum status status;

    assert(endpoint < rpc->endpoint_count);
    error = error == NULL ? &own : error;
    error_init(error);
    *result = NULL;
    status = call_endpoint(rpc, endpoint, result, &request, error);
    json_decref(request.params);
    if (worth_retrying(rpc, status)) {
        error->status = status = STATUS_UNREACHABLE;
    }
    return status;
}

enum status rpc_call_at(struct rpc *rpc, size_t endpoint, json_t **result, const char *method,
                        json_t *params, struct error *error)
{
    return call_once(
        rpc, endpoint, result,
        (struct request){.method = method, .params = params == NULL ? json_array() : params},
        error);
}

enum status rpc_call_barred(struct rpc *rpc, size_t endpoint, json_t **result, const char *method,
                            struct error *error)
{
    return call_once(rpc, endpoint, result,
                     (struct request){.method = method, .params = json_array(), .of_barred = true},
                     error);
}

enum status rpc_batch_at(struct rpc *rpc, size_t endpoint, json_t **results, const char *method,
                         json_t *params_list, struct error *error)
{
    return call_once(rpc, endpoint, results,
                     (struct request){.method = method, .params = params_list, .batch = true},
                     error);
}

enum status rpc_call_uint256(struct rpc *rpc, struct uint256 *value, const char *method,
                             json_t *params, struct error *error)
{
    json_t *result;
    enum status status;

    TRY(rpc_call(rpc, &result, method, params, error));
    status = rpc_value_uint256(value, result, method, error);
    json_decref(result);
    return status;
}
