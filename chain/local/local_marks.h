/*
 * local_marks.h - the file of an embedded ledger, held against sums over all that it has.
 *
 * Triggers keep one sum for each table: of the hashes of its rows. A row that was changed, lost or
 * added by anything but the ledger, and a changed table, index or place, is found when the file is
 * opened. Records carry a mark of their own, which each reading checks (local_store.h).
 */
#ifndef CHAIN_LOCAL_LOCAL_MARKS_H
#define CHAIN_LOCAL_LOCAL_MARKS_H

#include "base/error.h"
#include "base/io/database.h"

/* For a connection whose tables are there: begins the sums of a new file, checks those of any
 * other. STATUS_BAD_FORMAT: the file is damaged; the sentence names the table. */
MUST_CHECK enum status local_marks_open(struct database *sql, struct error *error);

#endif /* CHAIN_LOCAL_LOCAL_MARKS_H */
