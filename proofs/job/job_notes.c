/* job_notes.c - see job_notes.h. */
#include "proofs/job/job_notes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Digits without a sign or a leading zero. */
static bool read_tensor(uint32_t *tensor, const char **at)
{
    uint64_t number = 0;
    const char *first = *at;

    while (**at >= '0' && **at <= '9' && number <= UINT32_MAX) {
        number = number * 10 + (uint64_t)(*(*at)++ - '0');
    }
    *tensor = (uint32_t)number;
    return *at != first && number <= UINT32_MAX && (first[0] != '0' || *at == first + 1);
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

/* One line; *notes then stands behind it. */
static bool read_line(struct job_note *note, const char **notes)
{
    const char *at = *notes;
    bool good;

    *note = (struct job_note){0};
    if (strncmp(at, "first-step ", 11) == 0) {
        at += 11;
        good = read_first_step(note, &at);
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
                             "at and end",
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
