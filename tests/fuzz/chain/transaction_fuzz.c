/* Any bytes as a signed transaction: what decodes is in its one form, so it hashes to a sender. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/chain/transaction_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct transaction transaction;
    struct transaction changed;
    struct address sender;
    struct hash32 hash;
    struct hash32 other;

    if (transaction_decode(&transaction, &sender, data, size) != STATUS_OK) {
        return 0;
    }
    changed = transaction;
    changed.nonce++;
    if (transaction.data < data || transaction.data + transaction.data_size > data + size ||
        transaction_signing_hash(&transaction, &hash) != STATUS_OK ||
        transaction_signing_hash(&changed, &other) != STATUS_OK || hash32_equal(&hash, &other)) {
        abort();
    }
    return 0;
}
