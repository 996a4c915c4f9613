/*
 * access.h - keys and passphrases, the machine, and the data, for the commands on bundles.
 */
#ifndef PROVER_COMMANDS_ACCESS_H
#define PROVER_COMMANDS_ACCESS_H

#include "base/cli/command.h"
#include "proofs/run/data_paths.h"
#include "proofs/run/run.h"
#include "prover/post/respond.h"

/* The options by which an encrypted bundle is opened, for a command's table. */
#define ACCESS_KEY_OPTIONS                                                                         \
    {.name = "bundle-key",                                                                         \
     .heading = "keeping",                                                                         \
     .kind = OPTION_TEXT,                                                                          \
     .value = "FILE",                                                                              \
     .help = "the key of an encrypted bundle"},                                                    \
    {                                                                                              \
        .name = "bundle-passphrase-file", .heading = "keeping", .kind = OPTION_TEXT,               \
        .value = "FILE",                                                                           \
        .help = "the passphrase of an encrypted bundle, in the file's first line (default: "       \
                "LOCKSTEP_PASSPHRASE, else a prompt)"                                              \
    }
#define ACCESS_KEY_OPTION_COUNT 2

/* The options of commands that run steps. */
#define ACCESS_RUN_OPTIONS                                                                         \
    {.name = "data",                                                                               \
     .heading = "data",                                                                            \
     .often = true,                                                                                \
     .kind = OPTION_LIST,                                                                          \
     .value = "FILE",                                                                              \
     .help = "a data file of the job; once for each, in the job's order"},                         \
        RUN_DEVICE_OPTION("what computes: " RUN_DEVICE_NAMES), RUN_ISA_OPTION,                     \
        RUN_MACHINE_OPTIONS,                                                                       \
    {                                                                                              \
        .name = "memory-max", .heading = "machine", .kind = OPTION_SIZE, .value = "BYTES",         \
        .help = "refuse a job that needs more memory (default: what the machine has)"              \
    }
#define ACCESS_RUN_OPTION_COUNT 6

/* A new key for a bundle, and its lock where a passphrase protects it. */
struct access_encryption {
    struct encryption_key key;
    uint8_t lock[ENCRYPTION_LOCK_SIZE];
    bool has_lock;
};

/*
 * With --bundle-key: the key of that file, which is made where it does not exist. Otherwise a new
 * key under a passphrase, with two prompts. Wipe it with access_encryption_wipe().
 */
MUST_CHECK enum status access_encryption_make(struct access_encryption *encryption,
                                              const struct options *options, struct error *error);
void access_encryption_wipe(struct access_encryption *encryption);

/* Unlocks an encrypted bundle by the options. A bundle that is not encrypted needs nothing. */
MUST_CHECK enum status access_unlock(struct bundle *bundle, const struct options *options,
                                     struct error *error);

/* The same, but only where a key or a passphrase was given: without a prompt. */
MUST_CHECK enum status access_unlock_if_given(struct bundle *bundle, const struct options *options,
                                              struct error *error);

/* The machine that the options name; the log says what `auto` took. */
MUST_CHECK enum status access_machine(struct machine_options *machine,
                                      const struct command_context *context, struct error *error);

/* The files of the data that the options name, else those that the bundle remembers. bundle NULL:
 * the options must name them. Close paths on any outcome. */
MUST_CHECK enum status access_data(struct data_paths *paths, const struct job *job,
                                   struct bundle *bundle, const struct options *options,
                                   struct error *error);

/* Opens a run of the bundle's job on this data, in this process, which is kept from all but the
 * bundle, its data and the folder of out (NULL: none) from now on: the program may be a stranger's.
 * On a GPU it is not. */
MUST_CHECK enum status access_run(struct run *run, struct bundle *bundle,
                                  const struct machine_options *machine,
                                  const struct options *options, const char *out,
                                  struct error *error);

/* Makes the bundle remember the data that the options name, once a run was opened on it. */
MUST_CHECK enum status access_remember(struct bundle *bundle, const struct options *options,
                                       struct error *error);

/*
 * Opens the thread that answers claims about the bundle, on the data that the options name (NULL:
 * no such options), else on the data that the bundle remembers. Without data or key *respond is
 * NULL, which is not a failure.
 */
MUST_CHECK enum status access_respond(struct respond **respond, struct bundle *bundle,
                                      const struct machine_options *machine,
                                      const struct options *options, struct error *error);

#endif /* PROVER_COMMANDS_ACCESS_H */
