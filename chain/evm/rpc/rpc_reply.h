/*
 * rpc_reply.h - what a JSON-RPC endpoint answered, read strictly.
 *
 * A reply counts only when it is one JSON object of version 2.0 that carries our id and exactly
 * one of result and error, with no key twice. Everything else is the endpoint's fault
 * (STATUS_BAD_FORMAT), never a result.
 */
#ifndef CHAIN_EVM_RPC_RPC_REPLY_H
#define CHAIN_EVM_RPC_RPC_REPLY_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "chain/codec/address.h"
#include "chain/codec/keccak.h"
#include "chain/codec/uint256.h"

#define RPC_MESSAGE_SIZE 256
#define RPC_DATA_MAX     4096 /* of an error: the bytes that a contract reverted with */

/* The error object of a reply. */
struct rpc_failure {
    int64_t code;
    char message[RPC_MESSAGE_SIZE]; /* printable ASCII; the rest is '?' */
    uint8_t data[RPC_DATA_MAX];
    size_t data_size;
};

/* STATUS_OK: *result is the caller's. STATUS_REFUSED: the endpoint answered with an error, which
 * is in *failure. STATUS_BAD_FORMAT: not an answer to request id. */
MUST_CHECK enum status rpc_reply_read(json_t **result, struct rpc_failure *failure,
                                      const char *text, size_t size, uint64_t id,
                                      struct error *error);

/* The replies to a batch whose ids are first_id and those after it, in any order: *results is a
 * list in the order of the ids. STATUS_REFUSED: one of them, or the whole batch, was refused. */
MUST_CHECK enum status rpc_reply_read_batch(json_t **results, struct rpc_failure *failure,
                                            const char *text, size_t size, uint64_t first_id,
                                            size_t count, struct error *error);

/* Typed reading of results. name is for the sentence; a field that is missing is malformed. */
MUST_CHECK enum status rpc_field_u64(uint64_t *value, const json_t *object, const char *name,
                                     struct error *error);
MUST_CHECK enum status rpc_field_uint256(struct uint256 *value, const json_t *object,
                                         const char *name, struct error *error);
MUST_CHECK enum status rpc_field_hash(struct hash32 *value, const json_t *object, const char *name,
                                      struct error *error);
MUST_CHECK enum status rpc_field_address(struct address *value, const json_t *object,
                                         const char *name, struct error *error);

/* The same for a bare value; what is the name in the sentence. */
MUST_CHECK enum status rpc_value_uint256(struct uint256 *value, const json_t *json,
                                         const char *what, struct error *error);
MUST_CHECK enum status rpc_value_u64(uint64_t *value, const json_t *json, const char *what,
                                     struct error *error);
MUST_CHECK enum status rpc_value_hash(struct hash32 *value, const json_t *json, const char *what,
                                      struct error *error);

/* "0x" and hex digits; *size is how many bytes there were. */
MUST_CHECK enum status rpc_value_data(uint8_t *bytes, size_t bytes_size, size_t *size,
                                      const json_t *json, const char *what, struct error *error);

#endif /* CHAIN_EVM_RPC_RPC_REPLY_H */
