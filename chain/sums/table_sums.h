/*
 * table_sums.h - a database file, held against sums over all that it has.
 *
 * Triggers keep one sum for each table: of the hashes of its rows. A row that was changed, lost or
 * added by anything but the program, and a changed table, index or place, is found when the file is
 * opened. A connection that writes to such a file needs table_sums_ready() first.
 */
#ifndef CHAIN_SUMS_TABLE_SUMS_H
#define CHAIN_SUMS_TABLE_SUMS_H

#include "base/error.h"
#include "base/io/database.h"
#include "base/io/file.h"

/* What statements call: the hash of the row of these columns. */
#define TABLE_SUMS_ROW "lockstep_mix(zeroblob(32), "

struct summed_table {
    const char *name;
    const char *columns; /* "a, b"; NULL: all, as they are declared */
};

struct table_sums {
    const char *whose; /* in sentences: "the ledger's file" */
    const struct summed_table *tables;
    size_t count;
};

/* As database_open(), with the function that triggers and TABLE_SUMS_ROW call. What SQLite finds
 * damaged is STATUS_BAD_FORMAT then. */
MUST_CHECK enum status table_sums_open(struct database *sql, const char *path, const char *schema,
                                       struct error *error);

/* Moves a damaged file and its log to PATH.damaged, PATH.damaged-2 and so on: *aside. The file may
 * be gone already. Nobody has it open. */
MUST_CHECK enum status table_sums_set_aside(char aside[FILE_PATH_MAX], const char *path,
                                            struct error *error);

/* Gives the connection the function that triggers and TABLE_SUMS_ROW call. */
MUST_CHECK enum status table_sums_ready(struct database *sql, struct error *error);

/* Makes the table of sums, `marks`, where it is missing. */
MUST_CHECK enum status table_sums_make(struct database *sql, struct error *error);

/* Makes triggers and the first sums. In a transaction. */
MUST_CHECK enum status table_sums_begin(struct database *sql, const struct table_sums *sums,
                                        struct error *error);

/* What SQLite itself finds wrong. STATUS_BAD_FORMAT: the file is damaged. */
MUST_CHECK enum status table_sums_structure(struct database *sql, const char *whose,
                                            struct error *error);

/* Holds the tables against their sums, at one moment; not in a transaction. STATUS_BAD_FORMAT: the
 * file is damaged; the sentence names the table. */
MUST_CHECK enum status table_sums_check(struct database *sql, const struct table_sums *sums,
                                        struct error *error);

#endif /* CHAIN_SUMS_TABLE_SUMS_H */
