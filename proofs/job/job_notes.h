/*
 * job_notes.h - what the maker of a job says of its program, for people: lines of text in the job
 * file. The job id binds them as it binds the title, and nothing is computed from them.
 *
 *     from config.json HEX                the program was made of a file of that name and SHA-256
 *     first-step f64 0.0001 0.01 0.0001   the first step was held to PyTorch's, computed in this
 *                                         precision: how far loss, gradients and states may be off
 *     at 17 encoder.layers.0              what makes tensor 17, and those behind, is of this module
 *     end 90                              and what makes tensor 90, and those behind, is of none
 *
 * Text from outside is hostile: it is bounded, of printable ASCII, and numbers of tensors rise.
 */
#ifndef PROOFS_JOB_JOB_NOTES_H
#define PROOFS_JOB_JOB_NOTES_H

#include "base/buffer.h"
#include "base/digest.h"
#include "engine/tape/tape.h"

#define JOB_NOTES_MAX      (1u << 20) /* bytes of all lines */
#define JOB_NOTES_LINE_MAX 240u       /* of one, without its line feed */

enum job_note_kind {
    JOB_NOTE_FIRST_STEP,
    JOB_NOTE_AT,
    JOB_NOTE_END,
    JOB_NOTE_FROM,
};

struct job_note {
    enum job_note_kind kind;
    uint32_t tensor; /* of "at" and "end" */
    bool single;     /* of "first-step": PyTorch computed in binary32 */
    double loss;     /* likewise, and the next two */
    double gradients;
    double states;
    char module[JOB_NOTES_LINE_MAX + 1]; /* of "at"; of "from" the file's name */
    struct digest sha256;                /* of "from" */
};

/* Takes the next line at *notes, which job_notes_check() has passed; false: there is none. */
bool job_notes_next(struct job_note *note, const char **notes);

/* Appends "from" of a file in a folder, of JOB_NOTES_FILE_MAX bytes at most. */
#define JOB_NOTES_FILE_MAX (1u << 20)
MUST_CHECK enum status job_notes_add_from(struct buffer *notes, const char *folder,
                                          const char *name, struct error *error);
/* STATUS_REFUSED: the notes name a file of that name, and the folder has another. */
MUST_CHECK enum status job_notes_check_from(const char *notes, const char *folder, const char *name,
                                            struct error *error);
/* Appends those of other notes, which may be NULL. */
void job_notes_copy_from(struct buffer *notes, const char *other);

/* Are these notes of the tape's? */
MUST_CHECK enum status job_notes_check(const char *notes, const struct tape *tape,
                                       struct error *error);

#endif /* PROOFS_JOB_JOB_NOTES_H */
