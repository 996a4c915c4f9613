/* receipt_fuzz.c - any bytes as a receipt: what is read has the bounds that a step needs, and is
 * written as the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "proofs/receipt/receipt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_row(const struct receipt *receipt)
{
    const struct receipt_row *row = &receipt->row;

    if (row->prompt == 0 || row->count <= row->prompt || row->count > RECEIPT_TOKENS_MAX ||
        receipt->stop_count > RECEIPT_STOPS_MAX || receipt_row_length(row) % 16 != 0 ||
        receipt_row_conditions(row) < 2 * receipt_answer(receipt) || !(row->temperature >= 0.0f)) {
        abort();
    }
    for (uint32_t i = 0; i < receipt_answer(receipt); i++) {
        if (!(row->thresholds_p[i] <= 1.0f && row->thresholds_k[i] <= 1.0f)) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct receipt receipt;
    struct buffer bytes;
    struct error error;

    error_init(&error);
    if (receipt_parse(&receipt, &error, "receipt", data, size) != STATUS_OK) {
        if (error.status == STATUS_OK || error.text[0] == '\0' || receipt.row.tokens != NULL) {
            abort();
        }
        return 0;
    }
    check_row(&receipt);
    buffer_init(&bytes, RECEIPT_SIZE_MAX);
    if (receipt_bytes(&bytes, &error, &receipt) != STATUS_OK || bytes.size != size ||
        memcmp(bytes.data, data, size) != 0) {
        abort();
    }
    buffer_release(&bytes);
    receipt_release(&receipt);
    return 0;
}
