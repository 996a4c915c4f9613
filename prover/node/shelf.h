/*
 * shelf.h - the job files and data files of this machine: which jobs of the ledger it could run.
 *
 * A job on the ledger names its file and its data by roots. The shelf looks into folders for files
 * with these roots; a file that is new or was changed is read again.
 */
#ifndef PROVER_NODE_SHELF_H
#define PROVER_NODE_SHELF_H

#include <sys/stat.h>

#include "base/io/file.h"
#include "proofs/run/data_paths.h"

#define SHELF_ITEMS_MAX 4096

struct shelf_item {
    char *path; /* owned; of the job file */
    struct timespec changed;
    uint64_t size;
    bool is_job; /* else nothing below counts */
    struct digest id;
    uint64_t segment_steps;
    uint64_t steps;
    struct data_paths data;
    bool has_data;    /* all of it */
    bool gives_state; /* the job's first state is a file, */
    char *state;      /* owned; which lies here; NULL: it does not, or is none */
};

struct shelf {
    const char *const *places; /* borrowed: job files, and folders of NAME.job */
    size_t place_count;
    const char *const *data; /* borrowed: data files */
    size_t data_count;
    struct shelf_item *items;
    uint32_t count;
};

/* The other members are set. Files that cannot be read are passed over: they may be half there. */
MUST_CHECK enum status shelf_look(struct shelf *shelf, struct error *error);
/* The same, after data may have come: also looks again at jobs whose data was not here. */
MUST_CHECK enum status shelf_look_again(struct shelf *shelf, struct error *error);
void shelf_release(struct shelf *shelf);

/* NULL: it is not here. One that is complete, where there are several. */
const struct shelf_item *shelf_find(const struct shelf *shelf, const struct digest *job_id);

/* Has it all that a run needs? */
bool shelf_is_complete(const struct shelf_item *item);

#endif /* PROVER_NODE_SHELF_H */
