/*
 * citation.h - what a report says of a job beside the result, for those who cite it: held-out
 * figures, and where the solver says that it was paid. And all that is worth a line, in one order,
 * for the text, the page and the JSON of a report alike.
 */
#ifndef VERIFIER_AUDIT_CITATION_H
#define VERIFIER_AUDIT_CITATION_H

#include <jansson.h>

#include "verifier/audit/audit.h"

#define CITATION_VALUE_MAX 256

/*
 * Adds "held_out", the figures that the last state of the journal holds, and "ledger", the solver's
 * own notes, to an entry of a report. The figures are read from the checkpoint whose root is that
 * of the state; without it there are none. Where not all of the steps that give them were run
 * again, they are the solver's words: "held_out_told".
 */
void citation_add(json_t *entry, const struct audit_result *result, struct bundle *bundle);

/* The figures of the last look that the state after so many steps holds: "loss", "accuracy", each
 * with its bits, and "after_steps". NULL: there was no look, or no such checkpoint. */
json_t *citation_held_out(struct bundle *bundle, uint64_t steps);

/* Were all steps run again that give these figures of the state after so many steps? */
bool citation_ran(const json_t *figures, const struct audit_result *result, struct bundle *bundle,
                  uint64_t steps);

/* The line number `index` of an entry, from 0. False: there are no more. *label is NULL where this
 * entry does not say it. value is printable ASCII, others' words unescaped. */
bool citation_line(const char **label, char value[CITATION_VALUE_MAX], const json_t *entry,
                   size_t index);

#endif /* VERIFIER_AUDIT_CITATION_H */
