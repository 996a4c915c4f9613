/*
 * exhibit.h - a step as an accused committed to it, kept whole, and evidence about its elements.
 *
 * An exhibit is honest (a step that was run: exhibit_of_model(), exhibit_of_tape()) or invented
 * (one operation of any shape whose tensors hold any numbers: exhibit_of_kind()): the rule's answer
 * is defined either way. Any element can then be changed, and the roots follow. For tests of all
 * that judge: the judge in C, the contract's rules, the embedded ledger.
 *
 *     exhibit_of_kind(&exhibit, OP_SOFTMAX, MOOD_WILD, seed);
 *     exhibit_any_target(&target, &exhibit, &random);
 *     exhibit_make_right(&exhibit, &target);            the accused has what the rule gives
 *     exhibit_evidence(&bytes, &exhibit, &target);      ... not guilty
 *     exhibit_set(&exhibit, &target, bits ^ 1);
 *     exhibit_evidence(&bytes, &exhibit, &target);      ... upheld, under exhibit.context
 *
 * Any failure here ends the program with a sentence.
 */
#ifndef TESTS_SUPPORT_DISPUTE_EXHIBIT_H
#define TESTS_SUPPORT_DISPUTE_EXHIBIT_H

#include "engine/models/model.h"
#include "proofs/dispute/ledger_query.h"
#include "tests/support/dispute/step_record.h"
#include "tests/support/numeric/random_op.h"

struct exhibit {
    struct tape *tape;
    struct record record; /* the accused's; kept[] holds all of the trace */
    struct evidence_context context;
    struct evidence_source source;
    /* What record.given points to. */
    void **data;
    void **constants;
    struct digest *data_roots;
};

/* One step, after `steps` others, of a small model (small_model.h). */
void exhibit_of_model(struct exhibit *exhibit, enum model_kind kind, uint32_t steps);

void exhibit_of_options(struct exhibit *exhibit, const struct model_options *options,
                        uint32_t steps);

/* The same of so many micro-batches in groups. */
void exhibit_of_repeat(struct exhibit *exhibit, enum model_kind kind, uint32_t times,
                       uint32_t group, uint32_t steps);

/* One step of random_tape(seed). */
void exhibit_of_tape(struct exhibit *exhibit, uint64_t seed, uint32_t op_count);

/* One operation of this kind, of random shape, all of whose tensors hold invented numbers. */
void exhibit_of_kind(struct exhibit *exhibit, enum op_kind kind, enum random_mood mood,
                     uint64_t seed);
/* The same for an operation of the caller's choice: tape is taken. */
void exhibit_of_op(struct exhibit *exhibit, struct tape *tape, enum random_mood mood,
                   uint64_t seed);
void exhibit_close(struct exhibit *exhibit);

/* An output of any operation, and an element of it; often the first, the last or a leaf's edge. */
void exhibit_any_target(struct evidence_target *target, const struct exhibit *exhibit,
                        uint64_t *random);

/* What the rule gives of the accused's elements; what the accused has. */
uint32_t exhibit_rule(const struct exhibit *exhibit, const struct evidence_target *target);
uint32_t exhibit_get(const struct exhibit *exhibit, const struct evidence_target *target);

/* Changes an element of the accused's, and every root that follows. */
void exhibit_set(struct exhibit *exhibit, const struct evidence_target *target, uint32_t bits);
void exhibit_make_right(struct exhibit *exhibit, const struct evidence_target *target);

/* The micro-batch whose list an operation reads; TENSOR_NONE: none. The context has the roots of
 * the accused's lists, of micro-batches that of the last evidence. */
uint32_t exhibit_batch(const struct exhibit *exhibit, struct op_turn maker);

/* After changing bytes of record.kept[item], or record.after[]: the roots follow. */
void exhibit_changed(struct exhibit *exhibit, uint32_t item);

/* The accused's state before the step is another than the one that its trace begins in: a bit of
 * this state differs. The source says so; it borrows apart. */
#define EXHIBIT_STATES_MAX 64
struct exhibit_apart {
    struct evidence_source honest;
    struct digest before[EXHIBIT_STATES_MAX];
    uint32_t count;
};
void exhibit_begin_apart(struct exhibit *exhibit, struct exhibit_apart *apart, uint32_t number);

/* A state of more than 300 floats. */
uint32_t exhibit_large_state(const struct exhibit *exhibit);

/* The bytes of an input or output of an operation, by number, inputs before outputs. */
uint8_t *exhibit_operand(const struct exhibit *exhibit, struct op_turn maker, uint32_t number,
                         const struct tensor **tensor);

/* Whole evidence of kind 1 in a fresh buffer. */
void exhibit_evidence(struct buffer *bytes, struct exhibit *exhibit,
                      const struct evidence_target *target);

/* ---- parts of an element that has an axis ---- */

struct rule_axis exhibit_axis(const struct exhibit *exhibit, const struct evidence_target *target);

/* The question for them, and what an honest accused tells, in fresh buffers. */
void exhibit_query(struct buffer *bytes, const struct exhibit *exhibit,
                   const struct evidence_target *target);
void exhibit_parts(struct buffer *reply, const struct exhibit *exhibit,
                   const struct evidence_target *target);

/* As if it had been told on a ledger, true or not; false: no ledger takes it. The element must have
 * parts. */
bool exhibit_reply(struct exhibit *exhibit, const struct evidence_target *target,
                   const struct buffer *reply);

/* Evidence about one of them in a fresh buffer. */
void exhibit_part_evidence(struct buffer *bytes, const struct exhibit *exhibit,
                           const struct evidence_target *target, uint32_t part,
                           const struct buffer *reply);

/* The judge's answer to it under the exhibit's context. */
struct evidence_ruling exhibit_judge(const struct exhibit *exhibit, const uint8_t *bytes,
                                     size_t size);

#endif /* TESTS_SUPPORT_DISPUTE_EXHIBIT_H */
