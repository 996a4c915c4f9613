/* poll.c - see poll.h. */
#include "chain/evm/rpc/poll.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/strict_json.h"
#include "chain/codec/hex_data.h"
#include "chain/evm/rpc/rpc_transport.h"

enum {
    CODE_REVERTED = 3,
    LAG_BLOCKS = 32, /* of a height; a nonce that far behind is as late */
    SHOWN_MAX = 80,  /* characters of an answer that others do not give */
};

enum status poll_false_reply(struct error *error, const char *what)
{
    return error_set(error, STATUS_BAD_FORMAT, "false reply: %s", what);
}

enum status poll_keep_text(char **text, const char *found, struct error *error)
{
    *text = strdup(found);
    return *text != NULL ? STATUS_OK : error_set(error, STATUS_NO_MEMORY, "no memory for a reply");
}

static enum status reduce_whole(char **text, const json_t *answer, const void *subject,
                                struct error *error)
{
    struct buffer whole;
    enum status status;

    (void)subject;
    if (!json_is_string(answer) && !json_is_object(answer)) {
        return poll_false_reply(error, "nothing where there must be something");
    }
    buffer_init(&whole, RPC_REPLY_SIZE_MAX);
    /* A cut text could be equal to another cut text. */
    TRY_OUT(
        strict_json_write(&whole, error, answer, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY));
    TRY_OUT(poll_keep_text(text, buffer_text(&whole), error));
out:
    buffer_release(&whole);
    return status;
}

struct poll_query poll_whole(const char *method, json_t *params)
{
    return (struct poll_query){.method = method, .params = params, .reduce = reduce_whole};
}

static size_t majority_of(const struct rpc *rpc)
{
    return rpc_endpoint_count(rpc) / 2 + 1;
}

/* Of two endpoints one is enough while the other is out. */
static bool is_alone(const struct rpc *rpc, const bool answered[RPC_ENDPOINTS_MAX],
                     const bool refused[RPC_ENDPOINTS_MAX])
{
    for (size_t i = 0; i < 2 && rpc_endpoint_count(rpc) == 2; i++) {
        if (answered[i] && !answered[1 - i] &&
            (refused[1 - i] || rpc_endpoint_is_out(rpc, 1 - i))) {
            return true;
        }
    }
    return false;
}

/* A refusal of a call is an answer too: it becomes {"reverted": data}. */
static json_t *refusal_as_answer(const struct rpc *rpc)
{
    const struct rpc_failure *failure = rpc_failure(rpc);
    char text[2 * RPC_DATA_MAX + 3];

    if (failure->code != CODE_REVERTED && failure->data_size == 0) {
        return NULL;
    }
    hex_write(text, failure->data, failure->data_size, true);
    return json_pack("{s:s}", "reverted", text);
}

/* ---- answers that must be equal ----------------------------------------------- */

/* The answer of each endpoint to one request; NULL: none, or none that can be an answer. */
struct poll {
    json_t *answers[RPC_ENDPOINTS_MAX];
    char *texts[RPC_ENDPOINTS_MAX]; /* reduced, for comparison */
    bool answered[RPC_ENDPOINTS_MAX];
    bool refused[RPC_ENDPOINTS_MAX]; /* asking again gives nothing else */
    size_t answer_count;
    struct error trouble; /* of requests that failed */
    struct error untrue;  /* why an answer did not count, with its endpoint */
};

static json_t *call_one(struct poll *poll, struct rpc *rpc, size_t endpoint,
                        const struct poll_query *query)
{
    json_t *params = json_incref(query->params);
    json_t *answer = NULL;
    enum status status =
        query->batch ? rpc_batch_at(rpc, endpoint, &answer, query->method, params, &poll->trouble)
                     : rpc_call_at(rpc, endpoint, &answer, query->method, params, &poll->trouble);

    if (status == STATUS_REFUSED && strcmp(query->method, "eth_call") == 0) {
        answer = refusal_as_answer(rpc);
    }
    poll->refused[endpoint] = status == STATUS_REFUSED && answer == NULL;
    return answer;
}

static enum status reduce_one(char **text, json_t **answer, struct rpc *rpc, size_t endpoint,
                              const struct poll_query *query, struct error *error)
{
    if (query->complete != NULL) {
        TRY(query->complete(answer, rpc, endpoint, query->subject, error));
    }
    return query->reduce(text, *answer, query->subject, error);
}

/* Keeps the answer of an endpoint that had none; true when more than half give the same. */
static bool poll_one(struct poll *poll, struct rpc *rpc, size_t endpoint,
                     const struct poll_query *query)
{
    json_t *answer = call_one(poll, rpc, endpoint, query);
    struct error untrue;
    char *text = NULL;
    size_t same = 0;

    error_init(&untrue);
    if (answer == NULL) {
        return false;
    }
    if (reduce_one(&text, &answer, rpc, endpoint, query, &untrue) != STATUS_OK) {
        (void)error_wrap(&untrue, "%s", query->method);
        rpc_endpoint_blame(rpc, endpoint, query->method, untrue.text);
        (void)error_wrap(&untrue, "%s", rpc_endpoint_label(rpc, endpoint));
        poll->untrue = untrue;
        poll->refused[endpoint] = untrue.status == STATUS_BAD_FORMAT;
        json_decref(answer);
        free(text);
        return false;
    }
    poll->texts[endpoint] = text;
    poll->answers[endpoint] = answer;
    poll->answered[endpoint] = true;
    poll->answer_count++;
    for (size_t i = 0; i < rpc_endpoint_count(rpc); i++) {
        same += poll->answered[i] && strcmp(poll->texts[i], text) == 0;
    }
    return same >= majority_of(rpc);
}

/* Those that gave the answer that counts are well; those that gave another are not. */
static void judge_endpoints(struct poll *poll, struct rpc *rpc, size_t right, const char *method)
{
    for (size_t i = 0; i < rpc_endpoint_count(rpc); i++) {
        char reason[RPC_REASON_SIZE];

        if (!poll->answered[i]) {
            continue;
        }
        if (strcmp(poll->texts[i], poll->texts[right]) == 0) {
            rpc_endpoint_clear(rpc, i, method);
            continue;
        }
        (void)snprintf(reason, sizeof(reason), "%s: others say %.*s, it says %.*s", method,
                       SHOWN_MAX, poll->texts[right], SHOWN_MAX, poll->texts[i]);
        rpc_endpoint_blame(rpc, i, method, reason);
    }
}

/* Two endpoints, and nobody knows which of them is right. */
static enum status disagreement_of(struct poll *poll, struct rpc *rpc, const char *method,
                                   struct error *error)
{
    for (size_t i = 0; i < 2; i++) {
        char reason[RPC_REASON_SIZE];

        (void)snprintf(reason, sizeof(reason), "%s: %s says %.*s, it says %.*s", method,
                       rpc_endpoint_label(rpc, 1 - i), SHOWN_MAX, poll->texts[1 - i], SHOWN_MAX,
                       poll->texts[i]);
        rpc_endpoint_blame(rpc, i, method, reason);
    }
    (void)error_set(error, STATUS_UNREACHABLE,
                    "%s: the two endpoints disagree: %s says %.*s, %s "
                    "says %.*s",
                    method, rpc_endpoint_label(rpc, 0), SHOWN_MAX, poll->texts[0],
                    rpc_endpoint_label(rpc, 1), SHOWN_MAX, poll->texts[1]);
    error_advise(error, "a third endpoint decides: --ledger URL,URL,URL");
    return STATUS_UNREACHABLE;
}

static enum status no_agreement(const char *method, size_t answers, const struct rpc *rpc,
                                const struct error *trouble, struct error *error)
{
    if (rpc_is_stopped(rpc)) {
        return error_set(error, STATUS_STOPPED, "%s: stopped", method);
    }
    if (rpc_endpoint_count(rpc) == 1 && trouble->text[0] != '\0') {
        (void)error_set(error, STATUS_UNREACHABLE, "%s", trouble->text);
    } else {
        (void)error_set(error, STATUS_UNREACHABLE,
                        "%s: no %zu of %zu endpoints give the same answer (%zu answered)%s%s",
                        method, majority_of(rpc), rpc_endpoint_count(rpc), answers,
                        trouble->text[0] != '\0' ? "; " : "", trouble->text);
    }
    if (trouble->advice[0] != '\0') {
        error_advise(error, "%s", trouble->advice);
    }
    return STATUS_UNREACHABLE;
}

/* Is there an endpoint that may still answer? */
static bool may_answer(const struct poll *poll, const struct rpc *rpc)
{
    for (size_t i = 0; i < rpc_endpoint_count(rpc); i++) {
        if (!poll->answered[i] && !poll->refused[i]) {
            return true;
        }
    }
    return false;
}

/* One turn of those that have not answered: the endpoint whose answer counts, or their number. Of
 * two, one that rests is not asked while the other answers. */
static size_t poll_turn(struct poll *poll, struct rpc *rpc, const struct poll_query *query)
{
    size_t order[RPC_ENDPOINTS_MAX];
    size_t count = rpc_endpoint_count(rpc);
    size_t well = rpc_endpoint_order(rpc, order);

    for (size_t i = 0; i < count; i++) {
        size_t at = order[i];

        if (i >= well && is_alone(rpc, poll->answered, poll->refused)) {
            break;
        }
        if (!poll->answered[at] && !poll->refused[at] && poll_one(poll, rpc, at, query)) {
            return at;
        }
    }
    for (size_t i = 0; i < count && is_alone(rpc, poll->answered, poll->refused); i++) {
        if (poll->answered[i]) {
            return i;
        }
    }
    return count;
}

enum status poll_majority(struct rpc *rpc, json_t **answer, struct poll_query query,
                          struct error *error)
{
    struct poll poll = {0};
    size_t count = rpc_endpoint_count(rpc);
    size_t right;
    uint32_t round = 1;
    enum status status = STATUS_OK;

    *answer = NULL;
    error_init(&poll.trouble);
    error_init(&poll.untrue);
    do {
        right = poll_turn(&poll, rpc, &query);
    } while (right == count && may_answer(&poll, rpc) && rpc_endpoint_again(rpc, &round));
    if (right < count) {
        judge_endpoints(&poll, rpc, right, query.method);
        *answer = json_incref(poll.answers[right]);
    } else if (count == 2 && poll.answer_count == 2) {
        status = disagreement_of(&poll, rpc, query.method, error);
    } else {
        status = no_agreement(query.method, poll.answer_count, rpc,
                              poll.untrue.text[0] != '\0' ? &poll.untrue : &poll.trouble, error);
    }
    for (size_t i = 0; i < count; i++) {
        json_decref(poll.answers[i]);
        free(poll.texts[i]);
    }
    json_decref(query.params);
    return status;
}

/* ---- numbers that grow -------------------------------------------------------- */

struct numbers {
    uint64_t values[RPC_ENDPOINTS_MAX];
    bool answered[RPC_ENDPOINTS_MAX];
    bool refused[RPC_ENDPOINTS_MAX];
    bool may_answer; /* one that did not */
    size_t count;
};

static void ask_number(struct numbers *numbers, struct rpc *rpc, size_t endpoint,
                       const char *method, json_t *params, const char *field, struct error *trouble)
{
    json_t *answer = NULL;
    uint64_t value = 0;
    enum status status = rpc_call_at(rpc, endpoint, &answer, method, json_incref(params), trouble);

    numbers->refused[endpoint] = status == STATUS_REFUSED;
    if (status != STATUS_OK) {
        return;
    }
    status = rpc_value_u64(&value, field == NULL ? answer : json_object_get(answer, field), method,
                           trouble);
    json_decref(answer);
    if (status != STATUS_OK) {
        numbers->refused[endpoint] = true;
        rpc_endpoint_blame(rpc, endpoint, method, trouble->text);
        (void)error_wrap(trouble, "%s", rpc_endpoint_label(rpc, endpoint));
        return;
    }
    numbers->values[endpoint] = value;
    numbers->answered[endpoint] = true;
    numbers->count++;
}

/* The largest number that this many have reached. */
static uint64_t largest_of(const struct numbers *numbers, size_t endpoint_count, size_t many)
{
    uint64_t largest = 0;

    for (size_t i = 0; i < endpoint_count; i++) {
        size_t reached = 0;

        for (size_t k = 0; k < endpoint_count; k++) {
            reached += numbers->answered[k] && numbers->values[k] >= numbers->values[i];
        }
        if (numbers->answered[i] && reached >= many && numbers->values[i] > largest) {
            largest = numbers->values[i];
        }
    }
    return largest;
}

static void judge_lag(const struct numbers *numbers, struct rpc *rpc, const char *method)
{
    uint64_t highest = largest_of(numbers, rpc_endpoint_count(rpc), 1);

    for (size_t i = 0; i < rpc_endpoint_count(rpc); i++) {
        char reason[RPC_REASON_SIZE];

        if (!numbers->answered[i]) {
            continue;
        }
        if (highest - numbers->values[i] <= LAG_BLOCKS) {
            rpc_endpoint_clear(rpc, i, method);
            continue;
        }
        (void)snprintf(reason, sizeof(reason),
                       "%s: it says %" PRIu64 ", another endpoint says %" PRIu64
                       ": it lags, or the other one lies",
                       method, numbers->values[i], highest);
        rpc_endpoint_blame(rpc, i, method, reason);
    }
}

enum status poll_largest(struct rpc *rpc, uint64_t *number, const char *method, json_t *params,
                         const char *field, struct error *error)
{
    struct numbers numbers = {0};
    size_t order[RPC_ENDPOINTS_MAX];
    size_t endpoint_count = rpc_endpoint_count(rpc);
    size_t majority = majority_of(rpc);
    uint32_t round = 1;
    bool alone;
    struct error trouble;

    error_init(&trouble);
    do {
        size_t well = rpc_endpoint_order(rpc, order);

        numbers.may_answer = false;
        for (size_t i = 0; i < endpoint_count; i++) {
            size_t at = order[i];
            bool rests = i >= well && (numbers.count >= majority ||
                                       is_alone(rpc, numbers.answered, numbers.refused));

            if (!numbers.answered[at] && !numbers.refused[at] && !rests) {
                ask_number(&numbers, rpc, at, method, params, field, &trouble);
            }
            numbers.may_answer =
                numbers.may_answer || (!numbers.answered[at] && !numbers.refused[at]);
        }
        alone = is_alone(rpc, numbers.answered, numbers.refused);
    } while (numbers.count < majority && !alone && numbers.may_answer &&
             rpc_endpoint_again(rpc, &round));
    json_decref(params);
    if (numbers.count < majority && !alone) {
        return no_agreement(method, numbers.count, rpc, &trouble, error);
    }
    judge_lag(&numbers, rpc, method);
    *number = largest_of(&numbers, endpoint_count, alone ? 1 : majority);
    return STATUS_OK;
}
