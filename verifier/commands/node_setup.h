/*
 * node_setup.h - a node opened from a command line: its folder, its files, its ledger and children.
 *
 * What `verifier node` and `verifier claim` have in common. The folder belongs to one process at a
 * time: its verdict database is locked.
 */
#ifndef VERIFIER_COMMANDS_NODE_SETUP_H
#define VERIFIER_COMMANDS_NODE_SETUP_H

#include "base/cli/command.h"
#include "base/io/stop.h"
#include "chain/game/ledger_retry.h"
#include "proofs/run/data_paths.h"
#include "verifier/commands/plan_commands.h"
#include "verifier/node/node.h"
#include "verifier/store/keep.h"

enum node_file {
    NODE_FILE_STORE,
    NODE_FILE_VERDICTS,
    NODE_FILE_CACHE,
    NODE_FILE_SELF_TEST,
    NODE_FILE_KEPT,
};

#define NODE_STATE_OPTION                                                                          \
    {                                                                                              \
        .name = "state", .heading = "keeping", .often = true, .kind = OPTION_TEXT,                 \
        .value = "FOLDER",                                                                         \
        .help = "the node's queue, verdict database and cache (default: verifier below the state " \
                "folder)"                                                                          \
    }

/* Where content is fetched, and what one check may take. */
#define NODE_WORK_OPTIONS                                                                          \
    PLAN_LAUNCH_OPTION,                                                                            \
        {.name = "mirror",                                                                         \
         .heading = "fetching",                                                                    \
         .often = true,                                                                            \
         .kind = OPTION_LIST,                                                                      \
         .value = "URL",                                                                           \
         .help =                                                                                   \
             "where jobs, state roots, checkpoints and data are fetched: http(s)://..., a folder " \
             "that a solver publishes to, or a bundle"},                                           \
        CHAIN_CONTACTS_OPTION,                                                                     \
        {.name = "data",                                                                           \
         .heading = "data",                                                                        \
         .often = true,                                                                            \
         .kind = OPTION_LIST,                                                                      \
         .value = "FILE",                                                                          \
         .help = "a data file of any job, found by its root"},                                     \
        {.name = "threads",                                                                        \
         .heading = "machine",                                                                     \
         .kind = OPTION_INTEGER,                                                                   \
         .value = "N",                                                                             \
         .maximum = 1024,                                                                          \
         .help = "threads of one check (default: the cores, shared by the checks)"},               \
        {.name = "device",                                                                         \
         .heading = "machine",                                                                     \
         .often = true,                                                                            \
         .kind = OPTION_TEXT,                                                                      \
         .value = "NAME",                                                                          \
         .fallback = "cpu",                                                                        \
         .choices = "cpu|cuda|auto",                                                               \
         .help = "where checks compute: cpu, cuda, cuda:N, several with commas, or auto. A "       \
                 "difference that a GPU finds is run again on the CPU"},                           \
        {.name = "device-memory",                                                                  \
         .heading = "machine",                                                                     \
         .kind = OPTION_SIZE,                                                                      \
         .value = "BYTES",                                                                         \
         .help = "memory of each GPU that one check may take (default: all of it)"},               \
        {.name = "memory-max",                                                                     \
         .heading = "machine",                                                                     \
         .kind = OPTION_SIZE,                                                                      \
         .value = "BYTES",                                                                         \
         .help = "memory of one check (default: most of the machine's, shared by the checks)"},    \
        {.name = "disk-max",                                                                       \
         .heading = "machine",                                                                     \
         .kind = OPTION_SIZE,                                                                      \
         .value = "BYTES",                                                                         \
         .fallback = "20G",                                                                        \
         .minimum = 1 << 20,                                                                       \
         .help = "bytes of the cache of what was fetched, and of any one file"},                   \
        {.name = "bandwidth-max",                                                                  \
         .heading = "machine",                                                                     \
         .kind = OPTION_SIZE,                                                                      \
         .value = "BYTES",                                                                         \
         .fallback = "0",                                                                          \
         .help = "bytes a second that all checks together fetch; 0: no limit"},                    \
        {.name = "mirror-timeout",                                                                 \
         .heading = "fetching",                                                                    \
         .kind = OPTION_DURATION,                                                                  \
         .value = "TIME",                                                                          \
         .fallback = "20s",                                                                        \
         .minimum = 1,                                                                             \
         .maximum = 3600,                                                                          \
         .help = "how long a mirror may be silent or trickle"},                                    \
        {.name = "check-time",                                                                     \
         .heading = "machine",                                                                     \
         .kind = OPTION_DURATION,                                                                  \
         .value = "TIME",                                                                          \
         .fallback = "1h",                                                                         \
         .minimum = 1,                                                                             \
         .maximum = 2592000,                                                                       \
         .help = "the most time of one check; then it is stopped and tried again"},                \
    {                                                                                              \
        .name = "reach", .heading = "machine", .kind = OPTION_INTEGER, .value = "N",               \
        .fallback = "16", .maximum = CHECK_REACH_MAX - 1,                                          \
        .help = "segments that may be replayed on the way, for want of a checkpoint"               \
    }

/* Everything that a running node owns. */
struct node_setup {
    struct command_context *context; /* borrowed */
    struct stop stop;                /* opened and closed by its owner */
    struct ledger_retry *retry; /* borrowed; NULL: a ledger that cannot be reached is a failure */
    struct signer *signer;
    struct ledger *ledger;
    struct store store;
    struct verdict_db *verdicts;
    struct workers *workers;
    struct keep keep; /* opened by a command that wants one */
    struct node node;
    struct node_options options; /* what is not in NODE_WORK_OPTIONS is set before it is opened */
    const char *mirrors[OPTION_LIST_MAX];
    struct data_paths data;
    char folder[FILE_PATH_MAX];
    char cache[FILE_PATH_MAX];
};

MUST_CHECK enum status node_setup_folder(char path[FILE_PATH_MAX], const struct options *given,
                                         struct error *error);
MUST_CHECK enum status node_setup_path(char path[FILE_PATH_MAX], const struct options *given,
                                       enum node_file which, struct error *error);

/* Fills options from NODE_WORK_OPTIONS; checks_max is set. A GPU that was asked for and does not
 * start is refused here, not by every check; where `auto` takes the CPU, so does every check. */
MUST_CHECK enum status node_setup_limits(struct node_options *options,
                                         const struct command_context *context,
                                         struct error *error);

/* Options, and the node's folder with its two databases. setup->context, stop and options
 * are set. */
MUST_CHECK enum status node_setup_prepare(struct node_setup *setup, struct error *error);

/* After that: the ledger and all the rest. needs_key: the account is unlocked. forget_fault: an
 * earlier fault of the machine was looked into. */
MUST_CHECK enum status node_setup_open(struct node_setup *setup, bool needs_key, bool forget_fault,
                                       struct error *error);
void node_setup_close(struct node_setup *setup); /* also after a failure to open it */

/* Until an answer of a child comes, a stop is asked for, or the time is over. */
void node_setup_wait(struct node_setup *setup, int wait_ms);

uint64_t node_setup_now_ms(void *context); /* the system's; context is not used */

#endif /* VERIFIER_COMMANDS_NODE_SETUP_H */
