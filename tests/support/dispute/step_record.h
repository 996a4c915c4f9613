/*
 * step_record.h - one step's tensors kept in memory: what a claimant takes evidence from.
 *
 * The step is run once in trace mode and all that an operation touches is kept (or everything, for
 * small tapes). A record answers as an evidence_source for the step as it was run; a claimant who
 * knows where the accused differs answers that part from what the accused told, and the rest from
 * here.
 */
#ifndef TESTS_SUPPORT_DISPUTE_STEP_RECORD_H
#define TESTS_SUPPORT_DISPUTE_STEP_RECORD_H

#include "proofs/commit/descriptor.h"
#include "proofs/commit/trace.h"
#include "proofs/dispute/evidence.h"

#define RECORD_ALL UINT32_MAX

struct record {
    const struct tape *tape; /* borrowed */
    struct evidence_given given;
    struct descriptor_places places;
    struct trace trace;
    uint8_t **kept;       /* by item of the trace; NULL: not kept */
    struct digest *after; /* tensor roots of the state after the step */
};

/*
 * Runs one step of machine, which must be in trace mode and hold the state before the step. Keeps
 * the tensors of operation `op` in its first turn, or RECORD_ALL. Afterwards the machine holds the
 * state after it.
 */
MUST_CHECK enum status record_run(struct record *record, struct machine *machine,
                                  const struct evidence_given *given, uint32_t op,
                                  struct error *error);
void record_release(struct record *record); /* a zero-filled record is allowed */

/* Borrows record. What was not kept is STATUS_NOT_FOUND. */
void record_source(struct evidence_source *source, struct record *record);

/* Which list and item of it hold the root of an operand of an operation, inputs before outputs. */
enum evidence_list record_place(uint32_t *item, const struct record *record, struct op_turn maker,
                                uint32_t number);

#endif /* TESTS_SUPPORT_DISPUTE_STEP_RECORD_H */
