/* data_rows.c - see data_rows.h. */
#include "verifier/check/data_rows.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/piece.h"

enum {
    /* Bits of a piece. */
    PIECE_WANTED = 1,
    PIECE_PROVEN = 2, /* in the run that is open: it can be read */
    /* Smaller data come in one request. */
    LEAST_SIZE = 1 << 20,
    /* Each shown piece is a mapping of its own, and a process has 65,530. */
    WANTED_MAX = 24000,
    /* Rows are worth it while they come to no more than one part in so many of the data. */
    WORTH = 2,
};

/* ---- what is known of the data ------------------------------------------ */

enum status data_rows_open(struct data_rows *rows, const struct job *job, bool wanted,
                           struct error *error)
{
    *rows = (struct data_rows){.count = job->data_count};
    rows->parts = calloc((size_t)job->data_count + 1, sizeof(*rows->parts));
    rows->compared = calloc((size_t)job->data_count + 1, sizeof(*rows->compared));
    if (rows->parts == NULL || rows->compared == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the rows of the data");
    }
    return wanted ? drawn_rows_open(&rows->drawn, job->tape, error) : STATUS_OK;
}

void data_rows_close(struct data_rows *rows)
{
    for (uint32_t i = 0; rows->parts != NULL && i < rows->count; i++) {
        free(rows->parts[i].hashes);
        free(rows->parts[i].pieces);
    }
    drawn_rows_close(rows->drawn);
    free(rows->parts);
    free(rows->compared);
    *rows = (struct data_rows){.count = 0};
}

bool data_rows_pay(const struct data_rows *rows, uint32_t place, const struct tensor *tensor,
                   uint64_t steps)
{
    const uint64_t size = commit_tensor_size(tensor);
    uint64_t most;
    uint64_t step;

    if (rows->drawn == NULL || size < LEAST_SIZE || !drawn_rows_suffice(rows->drawn, place) ||
        sysconf(_SC_PAGESIZE) > (long)PIECE_DATA_SIZE) {
        return false;
    }
    most = (size / WORTH - piece_data_count(tensor) * DIGEST_SIZE) / PIECE_DATA_SIZE;
    most = most < WANTED_MAX ? most : WANTED_MAX;
    step = drawn_rows_pieces(rows->drawn, place, PIECE_DATA_SIZE);
    return step <= most && steps * step <= most;
}

/* ---- the list of hashes ------------------------------------------------- */

static enum status take_hashes(void *context, const char *path, struct error *error)
{
    struct data_rows_part *part = context;
    struct file_bytes bytes = {0};
    struct digest root;
    enum status status = STATUS_OK;

    TRY(file_read(&bytes, error, path, part->count * DIGEST_SIZE));
    if (bytes.size != part->count * DIGEST_SIZE) {
        TRY_OUT(error_set(error, STATUS_BAD_FORMAT,
                          "the list of the data's pieces has another "
                          "length"));
    }
    memcpy(part->hashes, bytes.data, bytes.size);
    piece_data_root(&root, part->tensor, part->hashes);
    if (!digest_equal(&root, &part->root)) {
        TRY_OUT(error_set(error, STATUS_BAD_FORMAT,
                          "the list of the data's pieces is of another "
                          "root"));
    }
out:
    file_bytes_release(&bytes);
    return status;
}

/* A file of holes, of the size of the data; what an earlier check left in it is kept. */
static enum status make_file(const struct data_rows_part *part, struct error *error)
{
    int descriptor = open(part->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    enum status status = STATUS_OK;

    if (descriptor < 0 || ftruncate(descriptor, (off_t)commit_tensor_size(part->tensor)) != 0) {
        status = error_set_errno(error, "cannot write %s", part->path);
    }
    if (descriptor >= 0) {
        (void)close(descriptor);
    }
    return status;
}

enum status data_rows_begin(struct data_rows *rows, uint32_t place, struct fetch *fetch,
                            const struct job *job, const struct tensor *tensor, struct error *error)
{
    struct data_rows_part *part = &rows->parts[place];
    const struct mirror_wanted wanted = {.kind = MIRROR_DATA_PIECES,
                                         .root = job->data_roots[place],
                                         .job = job->id,
                                         .size_max = piece_data_count(tensor) * DIGEST_SIZE,
                                         .check = take_hashes,
                                         .context = part};
    char path[FILE_PATH_MAX];
    enum status status;

    part->tensor = tensor;
    part->root = job->data_roots[place];
    part->count = piece_data_count(tensor);
    part->hashes = calloc(part->count, sizeof(*part->hashes));
    part->pieces = calloc(part->count, sizeof(*part->pieces));
    if (part->hashes == NULL || part->pieces == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for the pieces of the data");
        goto out;
    }
    TRY_OUT(fetch_cache_path(part->path, fetch, &part->root, ".rows", error));
    TRY_OUT(fetch_get(path, fetch, &wanted, NULL, error));
    TRY_OUT(make_file(part, error));
    rows->compared[place] = true;
out:
    if (status != STATUS_OK) {
        free(part->hashes);
        free(part->pieces);
        *part = (struct data_rows_part){.tensor = NULL};
    }
    return status;
}

/* ---- pieces ------------------------------------------------------------- */

static uint32_t piece_size(const struct data_rows_part *part, uint64_t piece)
{
    const uint64_t left = commit_tensor_size(part->tensor) - piece * PIECE_DATA_SIZE;

    return left < PIECE_DATA_SIZE ? (uint32_t)left : PIECE_DATA_SIZE;
}

static bool is_piece(const struct data_rows_part *part, uint64_t piece, const void *bytes)
{
    struct digest hash;

    piece_hash(&hash, bytes, piece_size(part, piece));
    return digest_equal(&hash, &part->hashes[piece]);
}

/* Samples that are not finite are refused, as in whole data. */
static enum status check_finite(const struct dataset *dataset, uint64_t piece, uint32_t size,
                                struct error *error)
{
    struct dataset bytes = *dataset;

    bytes.data = (const uint8_t *)dataset->data + piece * PIECE_DATA_SIZE;
    bytes.count = size / dtype_size(dataset->dtype);
    return dataset_check_finite(&bytes, error);
}

/* Shows a piece that is there. */
static enum status show_piece(struct data_rows_part *part, struct dataset *dataset, uint64_t piece,
                              struct error *error)
{
    const uint64_t first = piece * PIECE_DATA_SIZE;
    const uint32_t size = piece_size(part, piece);

    TRY(dataset_show(dataset, first, size, error));
    if (!is_piece(part, piece, (const uint8_t *)dataset->data + first)) {
        return dataset_hide(dataset, first, size, error);
    }
    part->pieces[piece] |= PIECE_PROVEN;
    return check_finite(dataset, piece, size, error);
}

/* Of what is wanted and not shown yet, shows what is there. *missing: pieces that are not. */
static enum status show_wanted(struct data_rows_part *part, struct dataset *dataset,
                               uint64_t *missing, struct error *error)
{
    *missing = 0;
    for (uint64_t i = 0; i < part->count; i++) {
        if (part->pieces[i] == PIECE_WANTED) {
            TRY(show_piece(part, dataset, i, error));
            *missing += part->pieces[i] == PIECE_WANTED;
        }
    }
    return STATUS_OK;
}

static enum status damaged_pieces(const struct data_rows_part *part, uint64_t missing,
                                  struct error *error)
{
    return error_set(error, STATUS_IO, "%" PRIu64 " pieces of the data '%s' are no longer in %s",
                     missing, part->tensor->name, part->path);
}

enum status data_rows_bind(struct data_rows *rows, struct run *run, struct error *error)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        struct data_rows_part *part = &rows->parts[i];
        uint64_t missing;

        if (part->hashes == NULL) {
            continue;
        }
        TRY(dataset_hide(&run->data[i], 0, commit_tensor_size(part->tensor), error));
        for (uint64_t k = 0; k < part->count; k++) {
            part->pieces[k] &= PIECE_WANTED;
        }
        TRY(show_wanted(part, &run->data[i], &missing, error));
        if (missing > 0) {
            return damaged_pieces(part, missing, error);
        }
    }
    return STATUS_OK;
}

/* ---- fetching ----------------------------------------------------------- */

static void list_missing(struct piece_crew *crew, const struct data_rows_part *part)
{
    for (uint64_t i = 0; i < part->count; i++) {
        if (part->pieces[i] == PIECE_WANTED) {
            crew->pieces[crew->count++] = (struct piece){.remote = i * PIECE_DATA_SIZE,
                                                         .local = i * PIECE_DATA_SIZE,
                                                         .size = piece_size(part, i),
                                                         .hash = &part->hashes[i],
                                                         .tensor = part->tensor->name};
        }
    }
}

static enum status fill_pieces(struct data_rows_part *part, struct fetch *fetch, uint64_t missing,
                               struct error *error)
{
    struct piece_crew crew = {.pieces = calloc(missing, sizeof(*crew.pieces)), .path = part->path};
    enum status status;

    if (crew.pieces == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the pieces of the data");
    }
    list_missing(&crew, part);
    crew.descriptor = open(part->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    status = crew.descriptor < 0 ? error_set_errno(error, "cannot write %s", part->path)
                                 : fetch_parts(fetch, &crew, &part->root, error);
    if (crew.descriptor >= 0) {
        (void)close(crew.descriptor);
    }
    free(crew.pieces);
    return status;
}

static enum status want_row(void *context, const struct drawn_row *row, struct error *error)
{
    struct data_rows *rows = context;
    struct data_rows_part *part = &rows->parts[row->place];

    (void)error;
    for (uint64_t i = row->first / PIECE_DATA_SIZE;
         part->hashes != NULL && i <= (row->first + row->size - 1) / PIECE_DATA_SIZE; i++) {
        part->pieces[i] |= PIECE_WANTED;
    }
    return STATUS_OK;
}

static uint64_t count_wanted(const struct data_rows_part *part)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < part->count; i++) {
        count += (part->pieces[i] & PIECE_WANTED) != 0;
    }
    return count;
}

static enum status fetch_one(struct data_rows_part *part, struct dataset *dataset,
                             struct fetch *fetch, struct error *error)
{
    uint64_t missing;

    if (count_wanted(part) > WANTED_MAX) {
        return error_set(error, STATUS_REFUSED, "the steps draw too many rows of '%s'",
                         part->tensor->name);
    }
    TRY(show_wanted(part, dataset, &missing, error));
    if (missing == 0) {
        return STATUS_OK;
    }
    TRY(fill_pieces(part, fetch, missing, error));
    TRY(show_wanted(part, dataset, &missing, error));
    return missing == 0 ? STATUS_OK : damaged_pieces(part, missing, error);
}

enum status data_rows_fetch(struct data_rows *rows, struct run *run, struct fetch *fetch,
                            uint64_t steps, struct error *error)
{
    const struct drawn_rows_visitor visitor = {want_row, rows};

    for (uint64_t ahead = 0; rows->drawn != NULL && ahead < steps; ahead++) {
        TRY(drawn_rows_visit(rows->drawn, run->machine, ahead, &visitor, error));
    }
    for (uint32_t i = 0; i < rows->count; i++) {
        if (rows->parts[i].hashes != NULL) {
            TRY(fetch_one(&rows->parts[i], &run->data[i], fetch, error));
        }
    }
    return STATUS_OK;
}

/* ---- before a step ------------------------------------------------------ */

static enum status compare_row(void *context, const struct drawn_row *row, struct error *error)
{
    const struct data_rows *rows = context;
    const struct data_rows_part *part = &rows->parts[row->place];

    for (uint64_t i = row->first / PIECE_DATA_SIZE;
         part->hashes != NULL && i <= (row->first + row->size - 1) / PIECE_DATA_SIZE; i++) {
        if ((part->pieces[i] & PIECE_PROVEN) == 0) {
            return error_set(error, STATUS_REFUSED,
                             "the step reads bytes %" PRIu64 " to %" PRIu64 " of the data '%s', "
                             "and piece %" PRIu64 " is not proven",
                             row->first, row->first + row->size - 1, part->tensor->name, i);
        }
    }
    return STATUS_OK;
}

enum status data_rows_check_step(struct data_rows *rows, struct run *run, struct error *error)
{
    const struct drawn_rows_visitor visitor = {compare_row, rows};

    return rows->drawn == NULL ? STATUS_OK
                               : drawn_rows_visit(rows->drawn, run->machine, 0, &visitor, error);
}
