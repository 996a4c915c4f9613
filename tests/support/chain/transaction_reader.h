/*
 * transaction_reader.h - signed transactions read back, with their sender: the judge of
 * chain/keys/transaction.h. Only what its encoding makes is accepted.
 */
#ifndef TESTS_SUPPORT_CHAIN_TRANSACTION_READER_H
#define TESTS_SUPPORT_CHAIN_TRANSACTION_READER_H

#include "chain/keys/transaction.h"

/* Decodes signed bytes; transaction->data points into them. STATUS_BAD_FORMAT for anything that is
 * not one of the two kinds in its one canonical form with a valid low-s signature. */
MUST_CHECK enum status transaction_decode(struct transaction *transaction, struct address *sender,
                                          const uint8_t *bytes, size_t size);

#endif /* TESTS_SUPPORT_CHAIN_TRANSACTION_READER_H */
