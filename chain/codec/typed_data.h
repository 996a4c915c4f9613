/*
 * typed_data.h - EIP-712: the hash that is signed for a structured message off the ledger.
 *
 * The domain (name, version, chain, contract) is part of the hash, so a message for one contract on
 * one chain means nothing to another. A struct is written as its type's text and
 * then its words, in order; a string or bytes enters as its hash.
 */
#ifndef CHAIN_CODEC_TYPED_DATA_H
#define CHAIN_CODEC_TYPED_DATA_H

#include <stdint.h>

#include "chain/codec/address.h"
#include "chain/codec/keccak.h"
#include "chain/codec/uint256.h"

#define TYPED_WORDS_MAX 32

struct typed_struct {
    uint8_t words[(1 + TYPED_WORDS_MAX) * 32];
    uint32_t count; /* words so far, with the type's hash */
};

/* type as EIP-712 spells it: "Mail(Person from,Person to,string contents)Person(…)". Adding more
 * than TYPED_WORDS_MAX words is a bug of the caller. */
void typed_struct_begin(struct typed_struct *typed, const char *type);
void typed_struct_add_hash(struct typed_struct *typed, const struct hash32 *hash);
void typed_struct_add_address(struct typed_struct *typed, const struct address *address);
void typed_struct_add_uint256(struct typed_struct *typed, const struct uint256 *value);
void typed_struct_add_u64(struct typed_struct *typed, uint64_t value);
void typed_struct_add_text(struct typed_struct *typed, const char *text);
struct hash32 typed_struct_hash(const struct typed_struct *typed);

struct hash32 typed_domain(const char *name, const char *version, const struct uint256 *chain_id,
                           const struct address *contract);

/* What is signed. */
struct hash32 typed_message_hash(const struct hash32 *domain, const struct hash32 *message);

/* EIP-191 text as wallets sign it ("personal_sign"). */
struct hash32 typed_text_hash(const void *text, size_t size);

#endif /* CHAIN_CODEC_TYPED_DATA_H */
