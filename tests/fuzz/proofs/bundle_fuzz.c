/*
 * bundle_fuzz.c - any bytes as one part of a bundle whose other parts are sound. The first byte
 * says which: 0 a packed file, 1 the archive inside one, 2 the database of the journal, 3 a
 * checkpoint. An import that is refused must leave nothing behind; one that is accepted must open.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "proofs/bundle/bundle_pack.h"
#include "proofs/job/job_make.h"
#include "tests/support/folder.h"
#include "tests/support/memory_file.h"

#define UNPACKED_MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- a folder of our own ------------------------------------------------- */

static void path_of(char path[128], const char *name)
{
    (void)snprintf(path, 128, "%s/%s", folder_of_program(), name);
}

static int is_empty(void)
{
    DIR *dir = opendir(folder_of_program());
    struct dirent *entry;
    int count = 0;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count == 0;
}

/* ---- what a reader does with a bundle -------------------------------------- */

static void read_rows(struct bundle *bundle)
{
    uint8_t signature[BUNDLE_SIGNATURE_MAX];
    char text[FILE_PATH_MAX];
    struct bundle_step step;
    struct digest root;
    size_t size;
    uint64_t number = 0;
    int good = 0;

    good += bundle_step_count(&number, bundle, NULL) == STATUS_OK;
    if (number > bundle_job(bundle)->steps) {
        abort();
    }
    for (uint64_t i = 0; i < 6; i++) {
        good += bundle_step_read(&step, bundle, i, NULL) == STATUS_OK;
        good += bundle_segment_root(&root, bundle, i, NULL) == STATUS_OK;
        good += bundle_segment_signature(&root, signature, &size, bundle, i, NULL) == STATUS_OK;
        good += bundle_device(text, bundle, i, NULL) == STATUS_OK;
    }
    good += bundle_diverged(&number, bundle, NULL) == STATUS_OK;
    good += bundle_note(text, bundle, "data.0", NULL) == STATUS_OK;
    number = 0;
    for (int i = 0; i < 10 && bundle_checkpoint_find(&number, bundle, number, NULL) == STATUS_OK;
         i++) {
        good += bundle_checkpoint_check(bundle, number, NULL) == STATUS_OK;
        number++;
    }
    (void)good;
}

static void read_bundle(const char *path, int must_open)
{
    struct bundle *bundle = NULL;
    enum status status = bundle_open(&bundle, path, BUNDLE_READ, NULL);

    if (status == STATUS_OK) {
        read_rows(bundle);
        bundle_close(bundle);
    } else if (must_open) {
        abort();
    }
}

/* ---- packed files ---------------------------------------------------------- */

static void import(const uint8_t *data, size_t size)
{
    struct bundle_import import = {.size_max = UNPACKED_MAX};
    enum status status;
    char archive[MEMORY_FILE_PATH_MAX];
    char path[128];
    int descriptor = memory_file_open(archive, data, size);

    path_of(path, "run");
    status = bundle_import(path, archive, &import, NULL);
    (void)close(descriptor);
    if (status == STATUS_OK) {
        read_bundle(path, 1);
        folder_remove(path);
    }
    if (!is_empty()) {
        abort();
    }
}

static void import_compressed(const uint8_t *data, size_t size)
{
    size_t room = ZSTD_compressBound(size);
    uint8_t *bytes = malloc(room);
    size_t packed = bytes == NULL ? 0 : ZSTD_compress(bytes, room, data, size, 1);

    if (bytes != NULL && !ZSTD_isError(packed)) {
        import(bytes, packed);
    }
    free(bytes);
}

/* ---- parts of a folder ----------------------------------------------------- */

static void put(const char *path, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "wb");

    if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0) {
        abort();
    }
}

/* The smallest job: one state, the step number, which one operation counts up. */
static struct job *small_job(void)
{
    static const uint8_t bytes[] = {
        'L',  'S',  'T',  'A', 'P', 'E', 0, 2, /* a tape */
        0,    0,    0,    2,   0,   0,   0, 1, 0, 0, 0, 1, 0xff,
        0xff, 0xff, 0xff, /* counts, no loss */
        4,    's',  't',  'e', 'p', 3,   1, 1, 0, 0, 0, 0, 0,
        0,    0,    1, /* step, u32, state, (1) */
        4,    's',  't',  'e', 'p', 3,   0, 1, 0, 0, 0, 0, 0,
        0,    0,    1,                                         /* its next value */
        0,    0,    0,    1,   1,   0,   0, 0, 0, 0, 0, 0, 1,  /* operation */
        0,    0,    0,    0,   0,   0,   0, 1, 1, 0, 0, 0, 0}; /* its state, zero at first */
    const struct job_terms terms = {.steps = 4, .segment_length = 2};
    struct tape *tape = NULL;
    struct job *job = NULL;

    if (tape_parse(&tape, bytes, sizeof(bytes), NULL) != STATUS_OK ||
        job_from_tape(&job, tape, NULL, 0, &terms, NULL) != STATUS_OK) {
        abort();
    }
    return job;
}

/* A bundle of the small job with one part from outside. */
static void read_folder(const uint8_t *data, size_t size, int is_database)
{
    struct bundle *bundle = NULL;
    char run[128];
    char part[256];

    path_of(run, "run");
    if (bundle_create(&bundle, run, small_job(), NULL) != STATUS_OK) {
        abort();
    }
    if (!is_database) {
        struct bundle_step step = {.step = 0};

        /* This bundle does not know the root before step 2 in the corpus: it reads any
         * checkpoint to its end and refuses it. */
        if (bundle_record(bundle, &step, NULL) != STATUS_OK) {
            abort();
        }
        step.step = 1;
        if (bundle_record(bundle, &step, NULL) != STATUS_OK) {
            abort();
        }
    }
    bundle_close(bundle);
    (void)snprintf(part, sizeof(part), "%s/%s", run,
                   is_database ? "journal.db" : "checkpoints/000000000002.safetensors");
    put(part, data, size);
    if (is_database) {
        read_bundle(run, 0);
    } else if (bundle_open(&bundle, run, BUNDLE_READ, NULL) != STATUS_OK ||
               bundle_checkpoint_check(bundle, 2, NULL) == STATUS_OK) {
        abort();
    } else {
        bundle_close(bundle);
    }
    folder_remove(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    switch (data[0]) {
    case 0:
        import(data + 1, size - 1);
        break;
    case 1:
        import_compressed(data + 1, size - 1);
        break;
    case 2:
        read_folder(data + 1, size - 1, 1);
        break;
    case 3:
        read_folder(data + 1, size - 1, 0);
        break;
    default:
        break;
    }
    return 0;
}
