/* Any bytes as what an endpoint says of a block: a header that hashes to its hash, or no header. */
#include <stdlib.h>

#include "base/io/strict_json.h"
#include "chain/evm/header/block_header.h"
#include "chain/evm/rpc/rpc_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t header[GAME_HEADER_MAX];
    size_t header_size = 0;
    bool unknown = false;
    struct hash32 said;
    json_t *block = NULL;
    enum status status = strict_json_parse_escaped_nul(&block, NULL, "a block", data, size, size,
                                                       STRICT_JSON_DEPTH_MAX);

    if (status == STATUS_OK && !strict_json_has_nul(block)) {
        status = block_header_encode(header, &header_size, &unknown, block, NULL);
        if (status == STATUS_OK) {
            struct hash32 hash = keccak256(header, header_size);

            if (unknown || header_size > sizeof(header) ||
                rpc_field_hash(&said, block, "hash", NULL) != STATUS_OK ||
                !hash32_equal(&hash, &said)) {
                abort();
            }
        } else if (status != STATUS_BAD_FORMAT) {
            abort();
        }
    }
    json_decref(block);
    return 0;
}
