/*
 * shown_case.h - one operation with its tensors in memory, and evidence about its elements.
 *
 * The evidence (docs/FORMATS.md) is whole, and shows exactly the leaves that the C rule reads. Its
 * paths to the roots of tensors are empty or made up: contracts of rules check none. With proofs
 * the leaves of each operand are really proven under its root.
 */
#ifndef TESTS_SUPPORT_DISPUTE_SHOWN_CASE_H
#define TESTS_SUPPORT_DISPUTE_SHOWN_CASE_H

#include "base/buffer.h"
#include "base/digest.h"
#include "engine/rules/rule.h"

#define SHOWN_OPERANDS_MAX (OP_INPUTS_MAX + OP_OUTPUTS_MAX)

struct shown_operand {
    enum dtype dtype;
    enum role role;
    uint64_t count;
    void *memory; /* owned; elements, little-endian as on this machine */
};

struct shown_case {
    struct op op; /* tensor ids are numbers of operands, inputs before outputs */
    struct shown_operand operands[SHOWN_OPERANDS_MAX];
};

/* An element, or a part of one. */
struct shown_target {
    uint32_t output;
    uint64_t element;
    bool is_part;
    uint64_t from; /* of a part: the range of the axis that it is of; length 0: the whole */
    uint64_t length;
    uint32_t part;
    int32_t beside; /* of a part: added to the exponent that the reply gives its sum */
};

/* Sets the kind, and the counts with their tensor ids. No operand has memory yet. */
void shown_case_init(struct shown_case *shown, enum op_kind kind, uint32_t inputs,
                     uint32_t outputs);
void shown_case_release(struct shown_case *shown);

/* Gives operand `number` its type and zeros for elements; returns them. */
void *shown_case_tensor(struct shown_case *shown, uint32_t number, enum dtype dtype,
                        uint64_t count);

/* Fails the test unless op_check() accepts the operation. */
void shown_case_check(const struct shown_case *shown);

/* What the C rule makes of the tensors. */
uint32_t shown_case_rule(const struct shown_case *shown, uint32_t output, uint64_t element);

/* Fills every output by the rules. */
void shown_case_compute(struct shown_case *shown);

/* The axis of the target, and what its part comes to. */
struct rule_axis shown_case_axis(const struct shown_case *shown, const struct shown_target *target);
struct rule_part shown_case_part(const struct shown_case *shown, const struct shown_target *target);

/* The root of operand `number`: H(tag | tree root | label). */
void shown_case_root(struct digest *root, const struct shown_case *shown, uint32_t number);

/* Adds the evidence to bytes. path_size siblings (at random) stand in each path. */
void shown_case_write(struct buffer *bytes, const struct shown_case *shown,
                      const struct shown_target *target, bool proofs, uint32_t path_size);

#endif /* TESTS_SUPPORT_DISPUTE_SHOWN_CASE_H */
