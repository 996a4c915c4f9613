/* local_marks.c - see local_marks.h. */
#include "chain/local/local_marks.h"

#include "chain/sums/table_sums.h"

static const char whose[] = "the ledger's file";

static const struct summed_table tables[] = {
    {"records", "kind, key, value"},
    {"moves", "account, name, content, done, revert, height"},
    {"blocks", "height, hash, time_s"},
    {"event_log", "number, kind, height, block, time_s, place, topics, data"},
    {"event_transactions", "block, place, hash"},
};

static const struct table_sums sums = {whose, tables, sizeof(tables) / sizeof(tables[0])};

enum status local_marks_open(struct database *sql, struct error *error)
{
    int64_t count = 0;
    int64_t records = 0;

    TRY(table_sums_ready(sql, error));
    TRY(table_sums_make(sql, error));
    TRY(table_sums_structure(sql, whose, error));
    TRY(database_number(sql, &count, 0, error, "SELECT count(*) FROM marks", ""));
    TRY(database_number(sql, &records, 0, error, "SELECT count(*) FROM records", ""));
    if (count == 0 && records > 0) {
        return error_set(error, STATUS_BAD_FORMAT, "table marks of %s is damaged", whose);
    }
    if (count == 0) {
        TRY(database_begin(sql, error));
        return database_end(sql, table_sums_begin(sql, &sums, error), error);
    }
    return table_sums_check(sql, &sums, error);
}
