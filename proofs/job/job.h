/*
 * job.h - the agreement that everything else refers to: program, data, first state, length.
 *
 * A job has a header of JOB_HEADER_SIZE bytes, whose hash is the job id: it holds only numbers and
 * roots, so a contract can be shown it whole. The job file is the header followed by what the
 * roots commit to and a reader needs: the tape, the constants, and how the first state is drawn.
 * The data stays outside; its roots are in the file. docs/FORMATS.md has every byte.
 *
 * A file from outside is hostile: it is bounded, the header commits to every byte that follows it,
 * and every root in the header but that of the first state is recomputed. The first state is
 * checked where it is drawn or loaded (bundle.h).
 */
#ifndef PROOFS_JOB_JOB_H
#define PROOFS_JOB_JOB_H

#include <jansson.h>

#include "base/buffer.h"
#include "base/digest.h"
#include "engine/models/model.h"
#include "engine/tape/init.h"

#define JOB_HEADER_SIZE   216
#define JOB_FILE_SIZE_MAX (UINT64_C(1) << 30)
#define JOB_DATA_MAX      8 /* data tensors of a tape */
#define JOB_STEPS_MAX     UINT64_C(4294967294)

/* What a machine must offer; zero asks for nothing. */
struct job_requirements {
    uint64_t memory;             /* bytes */
    uint32_t compute_capability; /* of a CUDA device, as 90 for 9.0; 0: any backend */
    uint32_t contraction_rate;   /* 10^9 multiply-adds a second at 14 bits */
};

/* One state tensor's first value, drawn from stream; states without a draw begin as zeros. */
struct job_draw {
    uint32_t tensor;
    uint32_t stream;
    struct init init;
};

struct job {
    struct tape *tape;
    void **constants; /* in order of the tape's constant tensors */
    uint32_t constant_count;
    uint32_t rules_version;
    uint64_t steps;
    uint64_t segment_length; /* steps of a segment; the last may be shorter */
    struct job_requirements requirements;
    struct digest data_roots[JOB_DATA_MAX]; /* in order of the tape's data tensors */
    uint32_t data_count;
    struct digest first_state_root;
    bool first_state_given; /* not drawn: it comes as a checkpoint of step 0 */
    uint64_t seed;
    struct job_draw *draws;
    uint32_t draw_count;
    /* Derived: */
    uint8_t header[JOB_HEADER_SIZE];
    struct digest id;
};

/* What a model does not say. */
struct job_terms {
    uint64_t steps;
    uint64_t segment_length;
    struct job_requirements requirements;
    struct digest data_roots[JOB_DATA_MAX];
    uint32_t data_count;
    bool first_state_given; /* nothing is drawn; the root is that of the state that is given */
    struct digest first_state_root;
};

/*
 * Makes a job of a model: draws the first state, once, to commit to it. Takes the model's tape and
 * constants, also on failure: the model keeps only its parameters and options.
 */
MUST_CHECK enum status job_from_model(struct job **job, struct model *model,
                                      const struct job_terms *terms, struct error *error);

/*
 * Makes a job of a checked tape and its constants, in the order of the tape's constant tensors. A
 * state that is not given begins as zeros. Takes tape, constants and each of them, also on failure.
 */
MUST_CHECK enum status job_from_tape(struct job **job, struct tape *tape, void **constants,
                                     uint32_t constant_count, const struct job_terms *terms,
                                     struct error *error);

void job_free(struct job *job); /* NULL is allowed */

/* The bytes of the job file. */
MUST_CHECK enum status job_encode(struct buffer *bytes, const struct job *job, struct error *error);

/* The version of the rules in the header of a file, when it is the job of that id (an id binds the
 * header alone) and of rules that are not known here. 0: it is neither. */
uint32_t job_unknown_rules(const char *path, const struct digest *id);

/* Makes a checked job of untrusted bytes; refuses rules that this program does not know. */
MUST_CHECK enum status job_parse(struct job **job, const uint8_t *bytes, size_t size,
                                 struct error *error);

MUST_CHECK enum status job_read(struct job **job, const char *path, struct error *error);
/* Never replaces a file. */
MUST_CHECK enum status job_write(const struct job *job, const char *path, struct error *error);

/* The first value of a state tensor, of its full size. The job must not be first_state_given. */
void job_first_state(void *bytes, const struct job *job, uint32_t tensor);

/* Segments, and the first step after segment number `segment`. */
uint64_t job_segments(const struct job *job);
uint64_t job_segment_end(const struct job *job, uint64_t segment);

/* The job for people and scripts; a new reference, NULL without memory. */
json_t *job_json(const struct job *job);

/* Ids of the tape's tensors of that role, in order; ids has room for count_max. */
uint32_t job_tensors(uint32_t *ids, uint32_t count_max, const struct job *job, enum role role);

#endif /* PROOFS_JOB_JOB_H */
