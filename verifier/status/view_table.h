/*
 * view_table.h - prints rows of JSON as a table: columns in line, hashes as short as commands take
 * them, times as dates, no empty columns, long sentences on lines of their own. It knows nothing of
 * what the rows mean and reads no clock.
 */
#ifndef VERIFIER_STATUS_VIEW_TABLE_H
#define VERIFIER_STATUS_VIEW_TABLE_H

#include <jansson.h>
#include <stdio.h>

#define VIEW_COLUMNS_MAX 16

/* The title with blanks for underscores, the names of the columns, the rows; nothing where there
 * are none. rows is an array of objects that all have the keys of the first. */
void view_table_print(FILE *out, const char *title, const json_t *rows);

/* The same of rows of a name and a value each: one line each, without names of columns. */
void view_facts_print(FILE *out, const char *title, const json_t *rows);

#endif /* VERIFIER_STATUS_VIEW_TABLE_H */
