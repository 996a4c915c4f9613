/* rpc_reply.c - see rpc_reply.h. */
#include "chain/evm/rpc/rpc_reply.h"

#include <string.h>

#include "base/io/strict_json.h"
#include "chain/codec/hex_data.h"

static enum status malformed_reply(struct error *error, const char *what)
{
    return error_set(error, STATUS_BAD_FORMAT, "malformed reply: %s", what);
}

/* Text from outside may reach a terminal or a log, so only printable ASCII stays. */
static void copy_printable(char out[RPC_MESSAGE_SIZE], const char *text)
{
    size_t i = 0;

    for (; i + 1 < RPC_MESSAGE_SIZE && text[i] != '\0'; i++) {
        out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    }
    out[i] = '\0';
}

/* Nodes put the revert's bytes into data, or into data.data. Anything else there is ignored: it is
 * only an explanation. */
static void read_failure_data(struct rpc_failure *failure, const json_t *data)
{
    size_t size = 0;

    if (json_is_object(data)) {
        data = json_object_get(data, "data");
    }
    if (json_is_string(data) && hex_data_read(failure->data, sizeof(failure->data), &size,
                                              json_string_value(data)) == STATUS_OK) {
        failure->data_size = size;
    }
}

static enum status read_failure(struct rpc_failure *failure, const json_t *object,
                                struct error *error)
{
    const json_t *code = json_object_get(object, "code");
    const json_t *message = json_object_get(object, "message");

    if (!json_is_integer(code) || !json_is_string(message)) {
        return malformed_reply(error, "an error without code and message");
    }
    failure->code = json_integer_value(code);
    copy_printable(failure->message, json_string_value(message));
    read_failure_data(failure, json_object_get(object, "data"));
    return error_set(error, STATUS_REFUSED, "%s (code %lld)", failure->message,
                     (long long)failure->code);
}

/* STATUS_BAD_FORMAT, too, where the id is none of ours. */
static enum status check_envelope(uint64_t *id, const json_t *root, struct error *error)
{
    const json_t *version = json_object_get(root, "jsonrpc");
    const json_t *reply_id = json_object_get(root, "id");

    if (!json_is_string(version) || strict_json_has_nul(version) ||
        strcmp(json_string_value(version), "2.0") != 0) {
        return malformed_reply(error, "not JSON-RPC 2.0");
    }
    if (!json_is_integer(reply_id) || json_integer_value(reply_id) < 0) {
        return malformed_reply(error, "the id is not that of the request");
    }
    *id = (uint64_t)json_integer_value(reply_id);
    return STATUS_OK;
}

/* *result is borrowed from root. */
static enum status read_outcome(json_t **result, struct rpc_failure *failure, const json_t *root,
                                struct error *error)
{
    json_t *value = json_object_get(root, "result");
    json_t *failed = json_object_get(root, "error");

    /* Only a message may hold a NUL: nodes put the bytes of a revert into it. */
    if (strict_json_has_nul(value) || strict_json_has_nul(json_object_get(failed, "data"))) {
        return malformed_reply(error, "a NUL in a string");
    }
    if (json_is_null(failed) && value != NULL) {
        failed = NULL; /* some nodes send "error": null next to a result */
    }
    if ((value == NULL) == (failed == NULL)) {
        return malformed_reply(error, "not exactly one of result and error");
    }
    *result = value;
    return failed != NULL ? read_failure(failure, failed, error) : STATUS_OK;
}

static enum status parse_reply(json_t **root, const char *text, size_t size)
{
    return strict_json_parse_escaped_nul(root, NULL, "a reply", text, size, size,
                                         STRICT_JSON_DEPTH_MAX);
}

enum status rpc_reply_read(json_t **result, struct rpc_failure *failure, const char *text,
                           size_t size, uint64_t id, struct error *error)
{
    json_t *root;
    json_t *value = NULL;
    uint64_t found = 0;
    enum status status = parse_reply(&root, text, size);

    memset(failure, 0, sizeof(*failure));
    *result = NULL;
    if (status != STATUS_OK || !json_is_object(root)) {
        json_decref(root);
        return malformed_reply(error, "not one JSON object");
    }
    TRY_OUT(check_envelope(&found, root, error));
    if (found != id) {
        TRY_OUT(malformed_reply(error, "the id is not that of the request"));
    }
    TRY_OUT(read_outcome(&value, failure, root, error));
    *result = json_incref(value);
out:
    json_decref(root);
    return status;
}

/* An endpoint that refuses a batch answers with one error, often without an id. */
static enum status read_batch_refusal(struct rpc_failure *failure, const json_t *root,
                                      struct error *error)
{
    const json_t *failed = json_object_get(root, "error");

    return json_is_object(failed) && !strict_json_has_nul(json_object_get(failed, "data"))
               ? read_failure(failure, failed, error)
               : malformed_reply(error, "not a list of replies");
}

static enum status read_of_batch(json_t *results, struct rpc_failure *failure, const json_t *reply,
                                 uint64_t first_id, struct error *error)
{
    json_t *value = NULL;
    uint64_t id = 0;

    TRY(check_envelope(&id, reply, error));
    if (id < first_id || id - first_id >= json_array_size(results) ||
        !json_is_false(json_array_get(results, (size_t)(id - first_id)))) {
        return malformed_reply(error, "an id that is not of the batch, or twice");
    }
    TRY(read_outcome(&value, failure, reply, error));
    return json_array_set(results, (size_t)(id - first_id), value) == 0
               ? STATUS_OK
               : error_set(error, STATUS_NO_MEMORY, "no memory for a reply");
}

enum status rpc_reply_read_batch(json_t **results, struct rpc_failure *failure, const char *text,
                                 size_t size, uint64_t first_id, size_t count, struct error *error)
{
    json_t *made = json_array();
    json_t *root;
    enum status status = parse_reply(&root, text, size);

    memset(failure, 0, sizeof(*failure));
    *results = NULL;
    if (status != STATUS_OK) {
        TRY_OUT(malformed_reply(error, "not a list of replies"));
    }
    if (json_is_object(root)) {
        TRY_OUT(read_batch_refusal(failure, root, error));
    }
    if (!json_is_array(root) || json_array_size(root) != count) {
        TRY_OUT(malformed_reply(error, "not as many replies as the batch has requests"));
    }
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(made, json_false()); /* not there yet */
    }
    for (size_t i = 0; i < count; i++) {
        TRY_OUT(read_of_batch(made, failure, json_array_get(root, i), first_id, error));
    }
    *results = json_incref(made);
out:
    json_decref(root);
    json_decref(made);
    return status;
}

enum status rpc_value_uint256(struct uint256 *value, const json_t *json, const char *what,
                              struct error *error)
{
    if (!json_is_string(json) ||
        uint256_parse_quantity(value, json_string_value(json)) != STATUS_OK) {
        return error_set(error, STATUS_BAD_FORMAT, "malformed reply: %s is not a quantity", what);
    }
    return STATUS_OK;
}

enum status rpc_value_u64(uint64_t *value, const json_t *json, const char *what,
                          struct error *error)
{
    struct uint256 wide;
    enum status status = rpc_value_uint256(&wide, json, what, error);

    if (status == STATUS_OK && !uint256_to_u64(value, &wide)) {
        return error_set(error, STATUS_BAD_FORMAT, "malformed reply: %s is past 64 bits", what);
    }
    return status;
}

enum status rpc_value_hash(struct hash32 *value, const json_t *json, const char *what,
                           struct error *error)
{
    if (!json_is_string(json) ||
        hex_data_read_exactly(value->bytes, HASH32_SIZE, json_string_value(json)) != STATUS_OK) {
        return error_set(error, STATUS_BAD_FORMAT, "malformed reply: %s is not 32 bytes", what);
    }
    return STATUS_OK;
}

enum status rpc_value_data(uint8_t *bytes, size_t bytes_size, size_t *size, const json_t *json,
                           const char *what, struct error *error)
{
    if (!json_is_string(json) ||
        hex_data_read(bytes, bytes_size, size, json_string_value(json)) != STATUS_OK) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "malformed reply: %s is not hex of at most %zu bytes", what, bytes_size);
    }
    return STATUS_OK;
}

enum status rpc_field_u64(uint64_t *value, const json_t *object, const char *name,
                          struct error *error)
{
    return rpc_value_u64(value, json_object_get(object, name), name, error);
}

enum status rpc_field_uint256(struct uint256 *value, const json_t *object, const char *name,
                              struct error *error)
{
    return rpc_value_uint256(value, json_object_get(object, name), name, error);
}

enum status rpc_field_hash(struct hash32 *value, const json_t *object, const char *name,
                           struct error *error)
{
    return rpc_value_hash(value, json_object_get(object, name), name, error);
}

enum status rpc_field_address(struct address *value, const json_t *object, const char *name,
                              struct error *error)
{
    const json_t *json = json_object_get(object, name);

    if (!json_is_string(json) ||
        hex_data_read_exactly(value->bytes, ADDRESS_SIZE, json_string_value(json)) != STATUS_OK) {
        return error_set(error, STATUS_BAD_FORMAT, "malformed reply: %s is not an address", name);
    }
    return STATUS_OK;
}
