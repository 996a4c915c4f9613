/*
 * attestation_audit.h - what other verifiers attested, compared with what this node finds.
 *
 * An attestation is a trace root. A false one covers a segment that nobody checked. So the node
 * checks a secret share of the revealed roots: it replays the segment and traces the step that the
 * attestor drew. Where the root differs, a second replay on another instruction set must give ours
 * again. Then the node accuses the attestor, through the verdict database and the signing guard.
 * Roots of steps that were traced anyway are always compared.
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
