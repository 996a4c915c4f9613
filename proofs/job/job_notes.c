/* job_notes.c - see job_notes.h. */
#include "proofs/job/job_notes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/file.h"
#include "base/text.h"
#include "proofs/hash/sha256.h"

/* Digits without a sign or a leading zero. */
static bool read_tensor(uint32_t *tensor, const char **at)
{
    uint64_t number;
    const char *first = *at;
    const bool taken = text_take_number(&number, at, UINT32_MAX);

    *tensor = (uint32_t)number;
    return taken && (first[0] != '0' || *at == first + 1);
}

/* A number from 0 to below 10 as "%g" writes it, which is how a second reader writes it again. */
static bool read_share(double *share, const char **at)
{
    char again[32];
    char *end = NULL;

    if (**at != ' ' || (*at)[1] < '0' || (*at)[1] > '9') {
        return false;
    }
    *share = strtod(++*at, &end);
    (void)snprintf(again, sizeof(again), "%g", *share);
    if (!(*share >= 0.0 && *share < 10.0) || strlen(again) != (size_t)(end - *at) ||
        strncmp(again, *at, strlen(again)) != 0) {
        return false;
    }
    *at = end;
    return true;
}

static bool read_first_step(struct job_note *note, const char **at)
{
    note->kind = JOB_NOTE_FIRST_STEP;
    note->single = strncmp(*at, "f32", 3) == 0;
    if (!note->single && strncmp(*at, "f64", 3) != 0) {
        return false;
    }
    *at += 3;
    return read_share(&note->loss, at) && read_share(&note->gradients, at) &&
           read_share(&note->states, at);
}

/* " MODULE", of printable ASCII without blanks. */
static bool read_module(struct job_note *note, const char **at)
{
    size_t size = 0;

    if (*(*at)++ != ' ') {
        return false;
    }
    for (; **at > ' ' && **at <= '~' && size < JOB_NOTES_LINE_MAX; (*at)++) {
        note->module[size++] = **at;
    }
    note->module[size] = '\0';
    return size > 0;
}

/* " NAME HEX" */
static bool read_file(struct job_note *note, const char **at)
{
    char again[HEX_SIZE(DIGEST_SIZE)];
    const size_t size = sizeof(again) - 1;

    if (!read_module(note, at) || *(*at)++ != ' ' || strnlen(*at, size) < size ||
        hex_decode(note->sha256.bytes, DIGEST_SIZE, *at, size) != STATUS_OK) {
        return false;
    }
    hex_encode(again, note->sha256.bytes, DIGEST_SIZE);
    *at += size;
    return memcmp(again, *at - size, size) == 0; /* in lower case */
}

/* One line; *notes then stands behind it. */
static bool read_line(struct job_note *note, const char **notes)
{
    const char *at = *notes;
    bool good;

    *note = (struct job_note){0};
    if (strncmp(at, "first-step ", 11) == 0) {
        at += 11;
        good = read_first_step(note, &at);
    } else if (strncmp(at, "from ", 5) == 0) {
        at += 4;
        note->kind = JOB_NOTE_FROM;
        good = read_file(note, &at);
    } else if (strncmp(at, "at ", 3) == 0) {
        at += 3;
        note->kind = JOB_NOTE_AT;
        good = read_tensor(&note->tensor, &at) && read_module(note, &at);
    } else {
        good = strncmp(at, "end ", 4) == 0;
        at += good ? 4 : 0;
        note->kind = JOB_NOTE_END;
        good = good && read_tensor(&note->tensor, &at);
    }
    good = good && *at == '\n' && at - *notes <= JOB_NOTES_LINE_MAX;
    *notes = good ? at + 1 : at;
    return good;
}

bool job_notes_next(struct job_note *note, const char **notes)
{
    return *notes != NULL && **notes != '\0' && read_line(note, notes);
}

static void add_from(struct buffer *notes, const char *name, const struct digest *sha256)
{
    char hex[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(hex, sha256->bytes, DIGEST_SIZE);
    buffer_add_format(notes, "from %s %s\n", name, hex);
}

static enum status hash_file(struct digest *hash, const char *folder, const char *name,
                             struct error *error)
{
    struct file_bytes bytes = {0};
    char path[FILE_PATH_MAX];

    TRY(file_path_join(path, sizeof(path), error, folder, name));
    TRY(file_read(&bytes, error, path, JOB_NOTES_FILE_MAX));
    sha256(hash, bytes.data, bytes.size);
    file_bytes_release(&bytes);
    return STATUS_OK;
}

enum status job_notes_add_from(struct buffer *notes, const char *folder, const char *name,
                               struct error *error)
{
    struct digest hash;

    TRY(hash_file(&hash, folder, name, error));
    add_from(notes, name, &hash);
    return STATUS_OK;
}

enum status job_notes_check_from(const char *notes, const char *folder, const char *name,
                                 struct error *error)
{
    struct job_note note;
    struct digest hash;

    while (job_notes_next(&note, &notes)) {
        if (note.kind == JOB_NOTE_FROM && strcmp(note.module, name) == 0) {
            TRY(hash_file(&hash, folder, name, error));
            if (!digest_equal(&hash, &note.sha256)) {
                return error_set(error, STATUS_REFUSED,
                                 "%s/%s is not the one of which the job's program was made", folder,
                                 name);
            }
        }
    }
    return STATUS_OK;
}

void job_notes_copy_from(struct buffer *notes, const char *other)
{
    struct job_note note;

    while (job_notes_next(&note, &other)) {
        if (note.kind == JOB_NOTE_FROM) {
            add_from(notes, note.module, &note.sha256);
        }
    }
}

enum status job_notes_check(const char *notes, const struct tape *tape, struct error *error)
{
    const uint32_t count = tape->brief != NULL ? tape->brief->tensor_count : tape->tensor_count;
    const char *at = notes;
    struct job_note note;
    uint32_t line = 0;
    uint32_t last = 0;

    if (notes == NULL) {
        return STATUS_OK;
    }
    if (strnlen(notes, JOB_NOTES_MAX + 1) > JOB_NOTES_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "notes of a job have at most %u bytes",
                         JOB_NOTES_MAX);
    }
    while (*at != '\0') {
        line++;
        if (!read_line(&note, &at) || (note.kind == JOB_NOTE_FIRST_STEP && line != 1)) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "line %u of the job's notes is none of first-step, which comes first, "
                             "from, at and end",
                             line);
        }
        if (note.tensor < last || note.tensor > count) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "line %u of the job's notes: tensor %u behind %u, of %u", line,
                             note.tensor, last, count);
        }
        last = note.tensor;
    }
    return STATUS_OK;
}
