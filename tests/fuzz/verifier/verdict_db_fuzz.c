/*
 * verdict_db_fuzz.c - any bytes as an exported verdict database, for an empty one. What is imported
 * is exported again with as many rows, and taken a second time without news; what is refused
 * leaves no row.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/strict_json.h"
#include "tests/support/folder.h"
#include "verifier/store/verdict_db.h"

#define DEPTH_MAX 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void insist(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "book fuzz: %s\n", what);
        abort();
    }
}

static size_t rows_of(struct verdict_db *verdicts)
{
    json_t *view = NULL;
    size_t count;

    insist(verdict_db_export(&view, verdicts, NULL) == STATUS_OK, "no export");
    count = json_array_size(json_object_get(view, "verdicts")) +
            json_array_size(json_object_get(view, "seals"));
    json_decref(view);
    return count;
}

static void import(struct verdict_db *verdicts, const json_t *view)
{
    uint64_t added = 0;
    uint64_t again = 0;

    if (verdict_db_import(&added, verdicts, view, NULL) != STATUS_OK) {
        insist(rows_of(verdicts) == 0, "rows of an export that was refused");
        return;
    }
    insist(rows_of(verdicts) == added, "another number of rows");
    insist(verdict_db_import(&again, verdicts, view, NULL) == STATUS_OK && again == 0,
           "news the second time");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char folder[FOLDER_PATH_MAX];
    char path[96];
    struct verdict_db *verdicts = NULL;
    json_t *view = NULL;

    if (strict_json_parse(&view, NULL, "the book", data, size, VERDICT_DB_EXPORT_SIZE_MAX,
                          DEPTH_MAX) != STATUS_OK) {
        return 0;
    }
    folder_make(folder);
    (void)snprintf(path, sizeof(path), "%s/book.db", folder);
    insist(verdict_db_open(&verdicts, path, NULL) == STATUS_OK, "a book");
    import(verdicts, view);
    verdict_db_close(verdicts);
    json_decref(view);
    folder_remove(folder);
    return 0;
}
