/* lineage_options.h - how a lineage is traced, for callers and for the files of this folder. */
#ifndef VERIFIER_LINEAGE_LINEAGE_OPTIONS_H
#define VERIFIER_LINEAGE_LINEAGE_OPTIONS_H

#include "verifier/audit/audit.h"

struct lineage; /* opaque */

struct lineage_options {
    const struct audit_options *audit;     /* how runs are run again, */
    const struct machine_options *machine; /* and the step of an answer */
    const char *sources;   /* the folder of the data's sources; NULL: as the manifest */
    const char *tokenizer; /* likewise */
};

#endif /* VERIFIER_LINEAGE_LINEAGE_OPTIONS_H */
