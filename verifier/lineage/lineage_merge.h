/* lineage_merge.h - a folder of `lockstep base merge` against the two folders that it names. */
#ifndef VERIFIER_LINEAGE_LINEAGE_MERGE_H
#define VERIFIER_LINEAGE_LINEAGE_MERGE_H

#include "verifier/lineage/lineage_parts.h"

/* Says the item that it was merged? */
bool lineage_merge_is(const struct lineage_item *item);

/* Merges the two again and compares, file by file. */
MUST_CHECK enum status lineage_merge_check(struct lineage *lineage, struct lineage_item *item,
                                           struct error *error);

#endif /* VERIFIER_LINEAGE_LINEAGE_MERGE_H */
