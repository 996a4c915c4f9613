/* lineage_rows.h - packed rows: do they follow from their sources by their tokenizer? */
#ifndef VERIFIER_LINEAGE_LINEAGE_ROWS_H
#define VERIFIER_LINEAGE_LINEAGE_ROWS_H

#include "verifier/lineage/lineage_parts.h"

/* Makes the rows of a folder again, all of them, and says what it found. Each source and each file
 * of the tokenizer is held to the manifest's SHA-256 first, so that a changed one is named. Where
 * one is not there, the files of rows are held to the manifest's roots alone. */
MUST_CHECK enum status lineage_rows_check(struct lineage *lineage, struct lineage_item *item,
                                          struct error *error);

/* Finds the file of the folder that has this data root. False: there is none. */
bool lineage_rows_find(char path[FILE_PATH_MAX], const struct lineage_item *item,
                       const struct digest *root);

#endif /* VERIFIER_LINEAGE_LINEAGE_ROWS_H */
