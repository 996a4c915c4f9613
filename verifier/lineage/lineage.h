/*
 * lineage.h - the pedigree of a model: base, data, training, held-out figures, the model's files.
 *
 * Each link is checked from the bytes that are given, without a key, a network or a word of
 * anybody: rows are made again from their sources, steps are run again, a model's files are
 * written again from the state that they are said to hold, and compared. What nobody can compute
 * stands in a list of its own, as taken on trust; what was not given, as missing. A file that no
 * link holds to the others is refuted: it may be the changed one.
 */
#ifndef VERIFIER_LINEAGE_LINEAGE_H
#define VERIFIER_LINEAGE_LINEAGE_H

#include "verifier/lineage/lineage_options.h"

#define LINEAGE_FILES_MAX 64

/* Traces all of it. STATUS_OK says nothing of the answer: ask lineage_answer(). The caller closes
 * *lineage, also after a failure. */
MUST_CHECK enum status lineage_trace(struct lineage **lineage, const char *const *paths,
                                     size_t count, const struct lineage_options *options,
                                     struct error *error);
void lineage_close(struct lineage *lineage); /* NULL is allowed */

/* PROVEN: every file that was given is held to the others, and all that was checked is so. */
enum audit_answer lineage_answer(const struct lineage *lineage);

#endif /* VERIFIER_LINEAGE_LINEAGE_H */
