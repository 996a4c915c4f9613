/*
 * store_tables.h - the jobs of a ledger as tables that SQL reads: jobs, entries, segments, seats,
 * disputes.
 *
 * The tables hold nothing. A row is a struct of the board (chain/job/board.h), read where it is, so
 * that a statement can join it with what the node keeps of its own. Nothing can be written.
 * A search by a key or a hash goes to the row, one by a job to the rows of the job; the others walk
 * over all rows, and compare `=` without SQL: write `e.ours = 1`, not `e.ours`.
 */
#ifndef VERIFIER_STORE_STORE_TABLES_H
#define VERIFIER_STORE_STORE_TABLES_H

#include "base/io/database.h"
#include "chain/job/board.h"

/* Borrows the board, which must be whole, until the database is closed. */
MUST_CHECK enum status store_tables_make(struct database *sql, const struct board *board,
                                         struct error *error);

#endif /* VERIFIER_STORE_STORE_TABLES_H */
