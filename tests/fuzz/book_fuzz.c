/*
 * book_fuzz.c - any bytes as an exported verdict book, for an empty one. What is imported is
 * exported again with as many verdicts, and taken a second time without news; what is refused
 * leaves no row.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strict_json.h"
#include "tests/support/folder.h"
#include "verifier/book.h"

#define DEPTH_MAX 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void insist(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "book fuzz: %s\n", what);
        abort();
    }
}

static size_t verdicts(struct book *book)
{
    json_t *view = NULL;
    size_t count;

    insist(book_export(&view, book, NULL) == STATUS_OK, "no export");
    count = json_array_size(json_object_get(view, "verdicts"));
    json_decref(view);
    return count;
}

static void import(struct book *book, const json_t *view)
{
    uint64_t added = 0;
    uint64_t again = 0;

    if (book_import(&added, book, view, NULL) != STATUS_OK) {
        insist(verdicts(book) == 0, "rows of an export that was refused");
        return;
    }
    insist(verdicts(book) == added, "another number of verdicts");
    insist(book_import(&again, book, view, NULL) == STATUS_OK && again == 0,
           "news the second time");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char folder[FOLDER_PATH_MAX];
    char path[96];
    struct book *book = NULL;
    json_t *view = NULL;

    if (strict_json_parse(&view, NULL, "the book", data, size, BOOK_EXPORT_SIZE_MAX, DEPTH_MAX) !=
        STATUS_OK) {
        return 0;
    }
    folder_make(folder);
    (void)snprintf(path, sizeof(path), "%s/book.db", folder);
    insist(book_open(&book, path, NULL) == STATUS_OK, "a book");
    import(book, view);
    book_close(book);
    json_decref(view);
    folder_remove(folder);
    return 0;
}
