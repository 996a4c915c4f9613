/* outbox_fees.c - see outbox_fees.h. */
#include "chain/evm/outbox_fees.h"

enum {
    BUMP_PERCENT = 113, /* nodes want 10 % more, some 12.5 %; tip and fee alike */
};

enum status outbox_fees_within(struct transaction *transaction, struct evm_fees *fees,
                               const struct uint256 *most, struct error *error)
{
    struct uint256 fee;
    struct uint256 least;

    transaction->kind = fees->has_base_fee ? TRANSACTION_FEE_MARKET : TRANSACTION_LEGACY;
    if (uint256_compare(&fees->tip_wei, most) > 0) {
        fees->tip_wei = *most;
    }
    if (uint256_add(&least, &fees->base_wei, &fees->tip_wei) != STATUS_OK ||
        uint256_compare(&least, most) > 0) {
        return error_set(error, STATUS_REFUSED, "gas costs more than the ceiling allows: waiting");
    }
    fee = least;
    if (fees->has_base_fee && uint256_add(&fee, &least, &fees->base_wei) != STATUS_OK) {
        fee = least;
    }
    transaction->tip_wei_max = fees->tip_wei;
    transaction->fee_wei_max = uint256_compare(&fee, most) > 0 ? *most : fee;
    return STATUS_OK;
}

bool outbox_fees_need(wei *need, wei value, uint64_t gas, uint64_t later_gas,
                      const struct transaction *transaction, const struct evm_fees *fees)
{
    struct uint256 first;
    struct uint256 price;
    struct uint256 later;
    wei amount;

    if (uint256_multiply(&first, &transaction->fee_wei_max, gas) != STATUS_OK ||
        uint256_add(&price, &fees->base_wei, &transaction->tip_wei_max) != STATUS_OK ||
        uint256_multiply(&later, &price, later_gas) != STATUS_OK ||
        uint256_add(&first, &first, &later) != STATUS_OK || !wei_from_uint256(&amount, &first) ||
        amount > WEI_MAX || value > WEI_MAX) {
        return false;
    }
    *need = value + amount;
    return true;
}

bool outbox_fees_raise(struct uint256 *value, const struct uint256 *most)
{
    struct uint256 raised;
    struct uint256 one = uint256_of(1);

    if (uint256_multiply(&raised, value, BUMP_PERCENT) != STATUS_OK) {
        return false;
    }
    (void)uint256_divide(&raised, &raised, 100);
    if (uint256_add(&raised, &raised, &one) != STATUS_OK || uint256_compare(&raised, most) > 0) {
        return false;
    }
    *value = raised;
    return true;
}
