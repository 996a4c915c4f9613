/*
 * attestation_audit.h - what other verifiers attested, compared with what this node finds.
 *
 * An attestation is a trace root, and a false one covers a segment that nobody has looked at. So a
 * secret share of what is revealed is checked: the segment is replayed, the step that the attestor
 * drew is traced, and where its root is another, a second replay on another instruction set must
 * give ours again. Then the attestor is accused as a solver is claimed: by way of the book and the
 * pen. Roots of steps that were traced anyway are always compared.
 */
#ifndef VERIFIER_NODE_ATTESTATION_AUDIT_H
#define VERIFIER_NODE_ATTESTATION_AUDIT_H

#include "verifier/node/node.h"

/* Decides about each revealed root, as far as it can be decided now. Inside a transaction. */
MUST_CHECK enum status attestation_audit_round(struct node *node, struct error *error);

/* Plans to accuse an attestor of a root that a confirmed trace contradicts. In a transaction. */
MUST_CHECK enum status attestation_audit_accuse(struct node *node,
                                                const struct store_reveal *reveal,
                                                const struct store_segment *segment, uint32_t step,
                                                const struct check_result *result,
                                                struct error *error);

#endif /* VERIFIER_NODE_ATTESTATION_AUDIT_H */
