/*
 * access.h - what the commands on bundles share: keys and passphrases, the machine, the data.
 */
#ifndef PROVER_COMMANDS_ACCESS_H
#define PROVER_COMMANDS_ACCESS_H

#include "base/cli/options.h"
#include "proofs/run/run.h"
#include "prover/post/respond.h"

/* The options by which an encrypted bundle is opened, for a command's table. */
#define ACCESS_KEY_OPTIONS                                                                         \
    {.name = "key", .kind = OPTION_TEXT, .value = "FILE", .help = "the key of an encrypted bundle"},   \
    {                                                                                              \
        .name = "passphrase-file", .kind = OPTION_TEXT, .value = "FILE",                           \
        .help = "its passphrase, in the file's first line (default: LOCKSTEP_PASSPHRASE, else "    \
                "asked)"                                                                           \
    }
#define ACCESS_KEY_OPTION_COUNT 2

/* The options of commands that run steps. */
#define ACCESS_RUN_OPTIONS                                                                         \
    {.name = "data",                                                                               \
     .kind = OPTION_LIST,                                                                          \
     .value = "FILE",                                                                              \
     .help = "a data file of the job; once for each, in the job's order"},                         \
        {.name = "device",                                                                         \
         .kind = OPTION_TEXT,                                                                      \
         .value = "NAME",                                                                          \
         .fallback = "cpu",                                                                        \
         .help = "what computes: cpu, cuda, cuda:N, or auto for a GPU where one starts"},          \
        {.name = "threads",                                                                        \
         .kind = OPTION_INTEGER,                                                                   \
         .value = "N",                                                                             \
         .maximum = MACHINE_THREADS_MAX,                                                           \
         .help = "threads to compute with (default: all cores)"},                                  \
        {.name = "device-memory",                                                                  \
         .kind = OPTION_SIZE,                                                                      \
         .value = "BYTES",                                                                         \
         .fallback = "0",                                                                          \
         .help = "of a GPU, at the most: what needs more is computed part by part; 0: no limit"},  \
    {                                                                                              \
        .name = "memory-max", .kind = OPTION_SIZE, .value = "BYTES",                               \
        .help = "refuse a job that needs more memory (default: what the machine has)"              \
    }
#define ACCESS_RUN_OPTION_COUNT 5

/* A new key for a bundle, and its lock where it is under a passphrase. */
struct access_encryption {
    struct encryption_key key;
    uint8_t lock[ENCRYPTION_LOCK_SIZE];
    bool has_lock;
};

/*
 * By --key: the key in that file, which is made where it is not there. Otherwise a key of its own
 * under a passphrase, which is asked for twice. Wipe it with access_encryption_wipe().
 */
MUST_CHECK enum status access_encryption_make(struct access_encryption *encryption, const struct options *options,
                                        struct error *error);
void access_encryption_wipe(struct access_encryption *encryption);

/* Unlocks an encrypted bundle by the options. A bundle that is not encrypted needs nothing. */
MUST_CHECK enum status access_unlock(struct bundle *bundle, const struct options *options,
                                     struct error *error);

/* The same, but only where a key or a passphrase was given: nobody is asked. */
MUST_CHECK enum status access_unlock_if_given(struct bundle *bundle, const struct options *options,
                                              struct error *error);

/* What runs steps, by the options. */
MUST_CHECK enum status access_machine(struct machine_options *machine,
                                      const struct options *options, struct error *error);

/*
 * Opens a run of the job on the data that the options name, else on what the bundle remembers.
 * bundle NULL: there is none yet, and the data must be named.
 */
MUST_CHECK enum status access_run(struct run *run, const struct job *job, struct bundle *bundle,
                                  const struct machine_options *machine,
                                  const struct options *options, struct error *error);

/* Makes the bundle remember the data that the options name, once a run was opened on it. */
MUST_CHECK enum status access_remember(struct bundle *bundle, const struct options *options,
                                       struct error *error);

/*
 * Opens who answers claims about the bundle, on the data that the options name (NULL: there are no
 * such options), else on what the bundle remembers. Where the data or the key is not known nobody
 * answers: *respond is NULL, and that is no failure.
 */
MUST_CHECK enum status access_respond(struct respond **respond, struct bundle *bundle,
                                      const struct machine_options *machine,
                                      const struct options *options, struct error *error);

#endif /* PROVER_COMMANDS_ACCESS_H */
