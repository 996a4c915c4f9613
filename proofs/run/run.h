/*
 * run.h - a job made ready to run: a machine, its data bound and checked, its constants written.
 *
 * Solver, verifier and auditor all begin here. Data that does not hash to the job's data root is
 * refused before the first step.
 */
#ifndef PROOFS_RUN_RUN_H
#define PROOFS_RUN_RUN_H

#include "proofs/bundle/bundle.h"
#include "proofs/dispute/evidence.h"
#include "proofs/format/dataset.h"
#include "proofs/job/first_state.h"
#include "proofs/job/held_out.h"
#include "proofs/job/job_make.h"

/* Of commands that run steps: how much of a machine they take. */
#define RUN_DEVICE_OPTION(text)                                                                    \
    {                                                                                              \
        .name = "device", .heading = "machine", .often = true, .kind = OPTION_TEXT,                \
        .value = "NAME", .fallback = "cpu", .choices = "cpu|cuda|auto", .help = (text)             \
    }
#define RUN_DEVICE_NAMES "cpu, cuda, cuda:N, or auto for a GPU that passes its self-test"

#define RUN_ISA_OPTION                                                                             \
    {                                                                                              \
        .name = "isa", .heading = "machine", .kind = OPTION_TEXT, .value = "NAME",                 \
        .choices = "scalar|avx2|avx512|neon|i8mm",                                                 \
        .help = "the processor's instruction set to compute with (default: the best here)"         \
    }

#define RUN_MACHINE_OPTIONS                                                                        \
    {.name = "threads",                                                                            \
     .heading = "machine",                                                                         \
     .kind = OPTION_INTEGER,                                                                       \
     .value = "N",                                                                                 \
     .maximum = MACHINE_THREADS_MAX,                                                               \
     .help = "threads to compute with (default: all cores)"},                                      \
    {                                                                                              \
        .name = "device-memory", .heading = "machine", .kind = OPTION_SIZE, .value = "BYTES",      \
        .fallback = "0",                                                                           \
        .help = "the most memory of a GPU: what needs more is computed part by part; 0: no limit"  \
    }

struct run {
    const struct job *job; /* borrowed */
    struct held_out held_out;
    struct machine_options options;
    struct machine *machine;
    struct dataset *data; /* in the order of the job's data tensors */
    const void **given;   /* their elements */
    uint32_t data_count;
};

/* paths: one file for each data tensor, in the tape's order. */
MUST_CHECK enum status run_open(struct run *run, const struct job *job, const char *const *paths,
                                size_t path_count, const struct machine_options *options,
                                struct error *error);

/* The same where the caller has compared the roots of data: checks only its shape. compared: which
 * of the files; NULL: all. */
MUST_CHECK enum status run_open_compared(struct run *run, const struct job *job,
                                         const char *const *paths, size_t path_count,
                                         const bool *compared,
                                         const struct machine_options *options,
                                         struct error *error);
/* Refuses a step that this machine has not the memory for: "WHAT takes ... MiB". */
MUST_CHECK enum status run_check_memory(const struct tape *tape,
                                        const struct machine_options *options, const char *what,
                                        const char *advice, struct error *error);
void run_close(struct run *run); /* a zero-filled run is allowed */

/* The data and constants that a step reads and no trace holds; borrowed from run. */
void run_given(struct evidence_given *given, const struct run *run);

/* Opens the file for a data tensor and finds its root; root NULL: does not. */
MUST_CHECK enum status run_data_open(struct dataset *dataset, struct digest *root,
                                     const struct tensor *tensor, const char *path,
                                     struct error *error);

/* The hashes of the pieces of open data (proofs/commit/piece.h) as a file without a name, which the
 * caller closes, and the root that follows from them. */
MUST_CHECK enum status run_data_pieces(int *descriptor, struct digest *root,
                                       const struct dataset *dataset, const struct tensor *tensor,
                                       struct error *error);

/* The roots of a tape's data, in its order, each from its file. The caller frees *roots, also after
 * a failure. */
MUST_CHECK enum status run_data_roots(struct digest **roots, uint32_t *count,
                                      const struct tape *tape, const char *const *paths,
                                      struct error *error);

/* The same into the terms of a job, from the files that a user named (data_paths_of_files()). */
MUST_CHECK enum status run_file_roots(struct job_terms *terms, struct digest **roots,
                                      const struct tape *tape, const char *const *files,
                                      size_t count, struct error *error);

/* Writes the first state into the machine: the given one, or, first NULL, the drawn one. */
MUST_CHECK enum status run_first_state(struct run *run, const struct first_state *first,
                                       struct error *error);

/* The loss of the last step as raw bits; FLOAT_NAN_BITS where the tape has none. */
MUST_CHECK enum status run_loss(uint32_t *bits, struct run *run, struct error *error);

/* What the step, which the machine has just made, found on held-out data; only where it was due:
 * else *evaluated is false. The accuracy is FLOAT_NAN_BITS where the job has none. */
MUST_CHECK enum status run_held_out(bool *evaluated, uint32_t *loss_bits, uint32_t *accuracy_bits,
                                    struct run *run, uint64_t step, struct error *error);

/*
 * Opens another machine in place of the first, with the same data and states: to trace from where
 * the fast machine stands. The states wait on the host; the two machines are never open together.
 */
MUST_CHECK enum status run_reopen(struct run *run, const struct machine_options *options,
                                  struct error *error);

/* "cpu avx512, 2 threads": what runs the steps, for people and the journal. */
void run_describe(char *text, size_t size, const struct machine_options *options);

#endif /* PROOFS_RUN_RUN_H */
