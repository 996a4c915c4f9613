/*
 * sheet_rows.h - rows of JSON in a sheet, as a database gives them: hashes as short as commands
 * take them, times as dates, names with blanks. It knows nothing of what the rows mean.
 */
#ifndef BASE_SHEET_SHEET_ROWS_H
#define BASE_SHEET_SHEET_ROWS_H

#include "base/sheet/sheet.h"

/* A title and a table; nothing where there are no rows. rows is an array of objects that all have
 * the keys of the first. */
void sheet_rows(struct sheet *sheet, const char *title, const json_t *rows);

/* The same of rows of a name and a value each: a fact of each. */
void sheet_row_facts(struct sheet *sheet, const char *title, const json_t *rows);

#endif /* BASE_SHEET_SHEET_ROWS_H */
