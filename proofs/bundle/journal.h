/*
 * journal.h - the sqlite3 file of a bundle, for proofs/bundle alone; bundle.h says what it holds.
 *
 * A journal from outside is hostile. It must carry our application id and exactly our tables, by
 * the text of the statements that made them: so no trigger, view, constraint, default or generated
 * column of a stranger runs with our statements. Every value that is read has its type and length
 * checked, and no value has more than JOURNAL_VALUE_MAX bytes.
 */
#ifndef PROOFS_BUNDLE_JOURNAL_H
#define PROOFS_BUNDLE_JOURNAL_H

#include "base/digest.h"
#include "base/io/database.h"
#include "base/io/file.h"

/* "LSJR", and the version of the tables. */
#define JOURNAL_APPLICATION_ID 0x4c534a52
#define JOURNAL_VERSION        3
#define JOURNAL_VALUE_MAX      (1 << 16)

struct journal {
    struct database database;
    char path[FILE_PATH_MAX];
};

enum journal_mode {
    JOURNAL_CREATE,
    JOURNAL_WRITE,
    JOURNAL_READ,
};

/* STATUS_IO: path has a symbolic link in it, which sqlite3 refuses. */
MUST_CHECK enum status journal_open(struct journal *journal, const char *path,
                                    enum journal_mode mode, struct error *error);
bool journal_is_open(const struct journal *journal);
/* A journal that is zero, or closed, may be closed. */
void journal_close(struct journal *journal);

/* A column that must be a number from 0 to maximum, or a digest. */
MUST_CHECK enum status journal_number(uint64_t *number, struct journal *journal,
                                      sqlite3_stmt *statement, int column, uint64_t maximum,
                                      struct error *error);
MUST_CHECK enum status journal_digest(struct digest *digest, struct journal *journal,
                                      sqlite3_stmt *statement, int column, struct error *error);

/* A column that must hold size_least to size_most bytes; *size says how many. */
MUST_CHECK enum status journal_bytes(void *bytes, size_t *size, struct journal *journal,
                                     sqlite3_stmt *statement, int column, size_t size_least,
                                     size_t size_most, struct error *error);

/* A text of less than text_size bytes without a NUL or a control character. */
MUST_CHECK enum status journal_text(char *text, size_t text_size, struct journal *journal,
                                    sqlite3_stmt *statement, int column, struct error *error);

bool journal_is_null(sqlite3_stmt *statement, int column);

#endif /* PROOFS_BUNDLE_JOURNAL_H */
