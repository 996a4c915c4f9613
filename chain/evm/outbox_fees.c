/* outbox_fees.c - see outbox_fees.h. */
#include "chain/evm/outbox_fees.h"

#include "base/io/file.h"

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

/* ---- what they cost ----------------------------------------------------------------- */

enum status outbox_fees_note(struct database *sql, int64_t intent, const struct hash32 *hash,
                             uint64_t sent_s, wei amount, struct error *error)
{
    char text[WEI_TEXT_SIZE];

    TRY(database_run(sql, error,
                     "DELETE FROM gas WHERE hash IN (SELECT hash FROM attempts WHERE intent = ?)",
                     "i", intent));
    if (hash == NULL || amount == 0) {
        return STATUS_OK;
    }
    wei_print_plain(text, amount);
    return database_run(sql, error, "INSERT INTO gas VALUES (?, ?, ?)", "bit",
                        &(struct database_blob){hash->bytes, HASH32_SIZE}, (int64_t)sent_s, text);
}

static enum status take_each(struct database *sql,
                             void (*take)(void *context, wei amount, uint64_t time_s),
                             void *context, struct error *error)
{
    sqlite3_stmt *rows = database_query(sql, error, "SELECT amount, sent_s FROM gas", "");
    enum status status = rows == NULL ? error->status : STATUS_OK;

    while (status == STATUS_OK) {
        wei amount = 0;

        status = database_step(sql, rows, error);
        if (status == STATUS_OK &&
            (sqlite3_column_text(rows, 0) == NULL ||
             wei_parse(&amount, (const char *)sqlite3_column_text(rows, 0)) != STATUS_OK)) {
            status = error_set(error, STATUS_BAD_FORMAT, "the outbox's file is damaged");
        }
        if (status == STATUS_OK) {
            take(context, amount, (uint64_t)sqlite3_column_int64(rows, 1));
        }
    }
    database_done(sql, rows);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status outbox_fees_each(const char *path,
                             void (*take)(void *context, wei amount, uint64_t time_s),
                             void *context, struct error *error)
{
    struct database sql = {0};
    int64_t known = 0;
    enum status status;

    if (!file_exists(path)) {
        return STATUS_OK;
    }
    TRY_OUT(database_open_foreign(&sql, path, SQLITE_OPEN_READWRITE, error));
    TRY_OUT(database_number(&sql, &known, 0, error,
                            "SELECT count(*) FROM sqlite_master WHERE name = 'gas'", ""));
    if (known > 0) {
        status = take_each(&sql, take, context, error);
    }
out:
    database_close(&sql);
    return status;
}
