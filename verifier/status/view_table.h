/*
 * view_table.h - rows of JSON as a table for people: columns in line, hashes cut to what commands
 * take as a key, times as dates, empty columns left out, and long sentences on lines of their own.
 * It knows nothing of what the rows mean, and asks no clock.
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
