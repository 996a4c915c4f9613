/* store_money.c - see store_money.h. It is one fact, as JSON. */
#include "verifier/store/store_money.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/strict_json.h"
#include "chain/money/money_text.h"

#define FACT_SIZE_MAX  65536
#define FACT_DEPTH_MAX 4

enum status store_money_open(struct store_money *money, struct store *store,
                             const struct address *account, struct error *error)
{
    *money = (struct store_money){.board = store->board};
    if (address_is_zero(account)) {
        return STATUS_OK;
    }
    TRY(money_book_open(&money->book, store->board, account, 1, error));
    return store_position(store) == 0 ? STATUS_OK : board_restart(store->board, error);
}

void store_money_release(struct store_money *money)
{
    if (money->board != NULL) {
        money->board->listener = (struct board_listener){.hear = NULL};
    }
    money_book_release(&money->book);
    money->board = NULL;
}

static enum status put_money(struct store *store, const struct money *money, struct error *error)
{
    json_t *object = money_json(money);
    char *text = object == NULL ? NULL : json_dumps(object, JSON_COMPACT);
    int64_t same = 0;
    enum status status;

    TRY_OUT(text == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory for the money")
                         : STATUS_OK);
    TRY_OUT(database_number(&store->sql, &same, 0, error,
                            "SELECT count(*) FROM facts WHERE name = 'money' AND value = ?", "t",
                            text));
    TRY_OUT(same > 0 ? STATUS_OK : store_set_text(store, "money", text, error));
out:
    free(text);
    json_decref(object);
    return status;
}

static enum status has_taken_all(bool *all, const struct store *store, struct ledger *ledger,
                                 struct error *error)
{
    struct ledger_entry entry;
    enum status status;

    TRY(ledger_catch_up(ledger, error));
    status = ledger_next(ledger, &entry, store_position(store), 0, error);
    *all = status == STATUS_NOT_FOUND;
    return *all ? STATUS_OK : status;
}

/* Purse and debt are those of the newest block: they hold once no event came since. */
enum status store_money_follow(struct store_money *money, struct store *store,
                               struct ledger *ledger, struct error *error)
{
    struct money now;
    bool all = false;

    if (money->book.account_count == 0) {
        return STATUS_OK;
    }
    TRY(has_taken_all(&all, store, ledger, error));
    if (all) {
        TRY(money_book_ask(&money->book, &now, 0, ledger, error));
        TRY(has_taken_all(&all, store, ledger, error));
    }
    return all ? put_money(store, &now, error) : STATUS_OK;
}

enum status store_money_get(struct store *store, struct money *money, struct error *error)
{
    sqlite3_stmt *row =
        database_query(&store->sql, error, "SELECT value FROM facts WHERE name = 'money'", "");
    enum status status = row == NULL ? error->status : database_step(&store->sql, row, error);
    const char *text = status == STATUS_OK ? (const char *)sqlite3_column_text(row, 0) : NULL;
    json_t *object = NULL;

    TRY_OUT(status);
    TRY_OUT(strict_json_parse(&object, error, "the money", text == NULL ? "" : text,
                              text == NULL ? 0 : strlen(text), FACT_SIZE_MAX, FACT_DEPTH_MAX));
    TRY_OUT(money_from_json(money, object, error));
out:
    database_done(&store->sql, row);
    json_decref(object);
    return status;
}
