/* Any bytes as an endpoint's reply, to one request and to a batch: results, refusals in plain text,
 * or its fault. */
#include <stdlib.h>
#include <string.h>

#include "chain/evm/rpc/rpc_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rpc_failure failure;
    struct uint256 number;
    struct hash32 hash;
    uint8_t bytes[64];
    size_t count = 0;
    json_t *result = NULL;
    enum status status = rpc_reply_read(&result, &failure, (const char *)data, size, 1, NULL);

    if ((status == STATUS_OK) != (result != NULL) ||
        (status != STATUS_OK && status != STATUS_REFUSED && status != STATUS_BAD_FORMAT)) {
        abort();
    }
    for (const char *letter = failure.message; *letter != '\0'; letter++) {
        if (*letter < ' ' || *letter > '~') {
            abort();
        }
    }
    if (result != NULL) {
        (void)!rpc_value_uint256(&number, result, "x", NULL);
        (void)!rpc_field_hash(&hash, result, "hash", NULL);
        if (rpc_value_data(bytes, sizeof(bytes), &count, result, "x", NULL) == STATUS_OK &&
            count > sizeof(bytes)) {
            abort();
        }
    }
    json_decref(result);
    status = rpc_reply_read_batch(&result, &failure, (const char *)data, size, 1, 2, NULL);
    if ((status == STATUS_OK) != (json_array_size(result) == 2) ||
        (status != STATUS_OK && status != STATUS_REFUSED && status != STATUS_BAD_FORMAT)) {
        abort();
    }
    json_decref(result);
    return 0;
}
