/*
 * job.h - the agreement that everything else refers to: program, data, first state, length.
 *
 * A job has a header of JOB_HEADER_SIZE bytes, whose hash is the job id. The header holds only
 * numbers and roots, so a contract can be shown all of it. job_file.h has the bytes, job_make.h
 * makes a job of a model or a tape.
 *
 * Tour 4 of 10: next read proofs/commit/state_root.h, what a step commits to.
 */
#ifndef PROOFS_JOB_JOB_H
#define PROOFS_JOB_JOB_H

#include "base/digest.h"
#include "engine/tape/tape.h"

#define JOB_MAGIC       "LSJOB\0\0\2" /* eight bytes: a header begins with them */
#define JOB_FORMAT      2             /* the last of them */
#define JOB_HEADER_SIZE 216
#define JOB_STEPS_MAX   UINT64_C(4294967294)
#define JOB_TITLE_MAX   80 /* bytes of a title, and of the name of a model */

/* Where the parts of a header stand: docs/FORMATS.md, section 5. Five roots are the last. */
enum job_at {
    JOB_AT_RULES = 8,
    JOB_AT_STEPS = 12,
    JOB_AT_SEGMENT = 20,
    JOB_AT_MEMORY = 28,
    JOB_AT_COMPUTE_CAPABILITY = 36,
    JOB_AT_CONTRACTION_RATE = 40,
    JOB_AT_PROGRAM = 56,
    JOB_AT_BODY = 88,
    JOB_AT_CONSTANTS = 120,
    JOB_AT_DATA = 152,
    JOB_AT_FIRST_STATE = 184,
};

/* What a machine must offer; zero sets no demand. */
struct job_requirements {
    uint64_t memory;             /* bytes */
    uint32_t compute_capability; /* of a CUDA device, as 90 for 9.0; 0: any backend */
    uint32_t contraction_rate;   /* 10^9 multiply-adds a second at 14 bits */
};

struct job {
    struct tape *tape;
    void **constants; /* in order of the tape's constant tensors */
    uint32_t constant_count;
    uint32_t rules_version;
    uint64_t steps;
    uint64_t segment_length; /* steps of a segment; the last may be shorter */
    struct job_requirements requirements;
    struct digest *data_roots; /* in order of the tape's data tensors */
    uint32_t data_count;
    struct digest first_state_root;
    bool first_state_given; /* not drawn: it is the checkpoint before step 0 */
    uint64_t seed;          /* 0 where nothing is drawn */
    /* For people; printable ASCII, or "". */
    char title[JOB_TITLE_MAX + 1];
    char model[JOB_TITLE_MAX + 1]; /* the name of the model */
    char *notes;                   /* of the maker (job_notes.h), or NULL */
    /* Derived: */
    uint8_t header[JOB_HEADER_SIZE];
    struct digest id;
};

void job_free(struct job *job); /* NULL is allowed */

/* The first value of a state tensor, of its full size. The job must not be first_state_given. */
void job_first_state(void *bytes, const struct job *job, uint32_t tensor);

/* The number of segments; the first step after segment number `segment`. */
uint64_t job_segments(const struct job *job);
uint64_t job_segment_end(const struct job *job, uint64_t segment);

/* The bytes of a constant tensor. */
const void *job_constant(const struct job *job, uint32_t tensor);

/* Ids of the tape's tensors of that role, in order, at most count_max. Returns how many there
 * are. */
uint32_t job_tensors(uint32_t *ids, uint32_t count_max, const struct job *job, enum role role);

#endif /* PROOFS_JOB_JOB_H */
