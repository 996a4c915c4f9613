/*
 * job_source.h - a job on a ledger, where its parts can be fetched, its job file and its data. For
 * the commands that fetch.
 */
#ifndef CHAIN_COMMANDS_JOB_SOURCE_H
#define CHAIN_COMMANDS_JOB_SOURCE_H

#include "base/cli/command.h"
#include "base/http/http_reach.h"
#include "base/io/file.h"
#include "base/io/stop.h"
#include "chain/job/job_record.h"
#include "proofs/job/job.h"
#include "proofs/mirror/mirror_set.h"

/* For a command's table: three options. */
#define JOB_SOURCE_OPTIONS                                                                         \
    {.name = "mirror",                                                                             \
     .heading = "fetching",                                                                        \
     .often = true,                                                                                \
     .kind = OPTION_LIST,                                                                          \
     .value = "URL",                                                                               \
     .help = "where to fetch; asked before the addresses that the ledger's "                       \
             "events give"},                                                                       \
        CHAIN_CONTACTS_OPTION,                                                                     \
    {                                                                                              \
        .name = "mirror-timeout", .heading = "fetching", .kind = OPTION_DURATION, .value = "TIME", \
        .fallback = "30s", .minimum = 1, .maximum = 3600,                                          \
        .help = "a mirror that is silent for so long is passed over"                               \
    }

struct job_source {
    struct ledger *ledger; /* owned */
    struct job_record record;
    struct mirror_set mirrors;
    enum http_reach reach; /* of mirrors that the ledger names */
    struct job *job;       /* owned; NULL until job_source_get() */
};

/* The job that `key` names, on the ledger of the options; signer may be NULL. Close it also after a
 * failure. */
MUST_CHECK enum status job_source_open(struct job_source *source, const char *key,
                                       const struct command_context *context,
                                       const struct signer *signer, struct error *error);
/* Waits until the job is closed, and looks again for where its parts can be fetched. */
MUST_CHECK enum status job_source_wait(struct job_source *source,
                                       const struct command_context *context, struct stop *stop,
                                       struct error *error);
/* Adds the addresses that the ledger's events name now. */
MUST_CHECK enum status job_source_add_contacts(struct job_source *source, struct error *error);
void job_source_close(struct job_source *source);

/* Reads the job file at path; fetches it into there, where there is none. */
MUST_CHECK enum status job_source_get(struct job_source *source, const char *path,
                                      struct error *error);

/* Fetches data number `at` of the job, which was got before, to a file whose name begins with
 * prefix; path has room for FILE_PATH_MAX. A file that is there already and right is taken. */
MUST_CHECK enum status job_source_get_data(char *path, struct job_source *source, uint32_t at,
                                           const char *prefix, struct error *error);

/* Fetches the first state of the job, which was got before and does not draw it. */
MUST_CHECK enum status job_source_get_first_state(char *path, struct job_source *source,
                                                  const char *prefix, struct error *error);

/* What data and first state of a job have at least; UINT64_MAX: more than can be said. */
uint64_t job_source_data_size(const struct job *job);
uint64_t job_source_first_state_size(const struct job *job); /* 0: it is drawn */

/* The name under which the two put what has this root: PREFIX, a point, the first digits of the
 * root, and an ending. False: it does not fit. */
bool job_source_name(char path[FILE_PATH_MAX], const char *prefix, const struct digest *root,
                     const char *ending);

/* Prints each mirror that gave something false or nothing, on stderr; adds all to the JSON. */
void job_source_report(const struct job_source *source, json_t *json);

#endif /* CHAIN_COMMANDS_JOB_SOURCE_H */
