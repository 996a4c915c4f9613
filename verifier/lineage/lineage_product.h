/* lineage_product.h - a model's files: what a run's state makes, written again and compared. */
#ifndef VERIFIER_LINEAGE_LINEAGE_PRODUCT_H
#define VERIFIER_LINEAGE_LINEAGE_PRODUCT_H

#include "verifier/lineage/lineage_parts.h"

/*
 * Is the model, of a folder as 'bundle export --hf' makes it or a file of 'job fetch', made of a
 * state of one of the runs? Their data must be found already. Says what it found; of a model that
 * is a base, and comes of no run, nothing.
 */
MUST_CHECK enum status lineage_product_check(struct lineage *lineage, size_t product,
                                             struct error *error);

#endif /* VERIFIER_LINEAGE_LINEAGE_PRODUCT_H */
