/* lineage_receipt.h - an answer: is its model among what was given, and did it answer so? */
#ifndef VERIFIER_LINEAGE_LINEAGE_RECEIPT_H
#define VERIFIER_LINEAGE_LINEAGE_RECEIPT_H

#include "verifier/lineage/lineage_parts.h"

/* Runs the one step of the receipt, by the model whose weights have its root. */
MUST_CHECK enum status lineage_receipt_check(struct lineage *lineage, struct lineage_item *item,
                                             struct error *error);

#endif /* VERIFIER_LINEAGE_LINEAGE_RECEIPT_H */
