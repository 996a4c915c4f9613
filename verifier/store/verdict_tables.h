/*
 * verdict_tables.h - the tables of the verdict database: made, checked, and saved from a damaged
 * file.
 *
 * Each row carries a sum over its cells. A file in which anything is not as it was written is moved
 * to PATH.damaged, and every row that is sound goes into a new one. The secret lies a second time
 * in PATH.secret: the seals that were lost can be made again from it (node_seats.h).
 */
#ifndef VERIFIER_STORE_VERDICT_TABLES_H
#define VERIFIER_STORE_VERDICT_TABLES_H

#include "base/io/database.h"
#include "chain/codec/keccak.h"
#include "chain/sums/table_sums.h"

#define VERDICT_TABLES_VERSION  5 /* those before are of earlier editions of the game */
#define VERDICT_TABLES_TEXT_MAX 1024

/* Opens the file and holds it against its sums; a new one gets its tables, and the secret of
 * PATH.secret or a new one. STATUS_BAD_FORMAT: it is damaged. */
MUST_CHECK enum status verdict_tables_open(struct database *sql, struct hash32 *secret,
                                           const char *path, struct error *error);

/* Saves what is sound of a damaged file, which nobody has open: text says what became of it. May
 * be interrupted: verdict_tables_open() goes on with it. */
MUST_CHECK enum status verdict_tables_save(char text[VERDICT_TABLES_TEXT_MAX], const char *path,
                                           struct error *error);

/* Puts the second copy of the secret beside the file. */
MUST_CHECK enum status verdict_tables_keep_secret(const struct hash32 *secret, const char *path,
                                                  struct error *error);

/* value: as a format of database.h has it, one letter. */
MUST_CHECK enum status verdict_tables_set(struct database *sql, const char *name,
                                          const char *format, const void *value,
                                          struct error *error);

#endif /* VERIFIER_STORE_VERDICT_TABLES_H */
