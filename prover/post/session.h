/*
 * session.h - a bundle's job on a ledger, for the commands: the ledger, the account, the solver and
 * its thread.
 *
 * Options name the ledger, the job and the account; the bundle remembers them, so that 'resume'
 * needs no such options.
 */
#ifndef PROVER_POST_SESSION_H
#define PROVER_POST_SESSION_H

#include "base/io/notify.h"
#include "base/io/stop.h"
#include "chain/commands/commands.h"
#include "chain/commands/policy_options.h"
#include "chain/game/ledger_retry.h"
#include "proofs/bundle/bundle.h"
#include "prover/post/poster.h"

/* Places of a ledger and keys to a wallet, beside the options of bundles. */
#define SESSION_LEDGER_OPTIONS                                                                     \
    CHAIN_LEDGER_OPTIONS,                                                                          \
    {                                                                                              \
        .name = "job-key", .heading = "ledger", .kind = OPTION_TEXT, .value = "KEY",               \
        .help = "the job on the ledger, or its first digits (default: the "                        \
                "only one with this job file)"                                                     \
    }
#define SESSION_LEDGER_OPTION_COUNT (CHAIN_LEDGER_OPTION_COUNT + 1)

#define SESSION_WALLET_OPTIONS                                                                     \
    {.name = "wallet",                                                                             \
     .heading = "account",                                                                         \
     .kind = OPTION_TEXT,                                                                          \
     .value = "FOLDER",                                                                            \
     .help = "folder of the key files (default: wallet below the data folder)"},                   \
        CHAIN_ACCOUNT_OPTION,                                                                      \
        {.name = "passphrase-file",                                                                \
         .heading = "account",                                                                     \
         .often = true,                                                                            \
         .kind = OPTION_TEXT,                                                                      \
         .value = "FILE",                                                                          \
         .help = "the passphrase of the account, in the file's first line (default: "              \
                 "LOCKSTEP_PASSPHRASE, else a prompt)"},                                           \
        CHAIN_POLL_OPTION("how often to look at a chain"),                                         \
    {                                                                                              \
        .name = "timeout", .heading = "ledger", .kind = OPTION_DURATION, .value = "TIME",          \
        .fallback = "10m", .minimum = 1,                                                           \
        .help = "how long to wait for the ledger before giving up"                                 \
    }
#define SESSION_WALLET_OPTION_COUNT 5

/* Of commands that may accept a job. */
#define SESSION_ACCEPT_OPTIONS                                                                     \
    {.name = "allow-list",                                                                         \
     .heading = "policy",                                                                          \
     .kind = OPTION_TEXT,                                                                          \
     .value = "FILE",                                                                              \
     .help = "the accounts that the job admits as solvers, as its client gave them: one address "  \
             "a line"},                                                                            \
        {.name = "contact",                                                                        \
         .heading = "serving",                                                                     \
         .often = true,                                                                            \
         .kind = OPTION_TEXT,                                                                      \
         .value = "URL",                                                                           \
         .help = "where others reach what is served; it stands on the ledger"},                    \
        {.name = "known",                                                                          \
         .heading = "policy",                                                                      \
         .kind = OPTION_TEXT,                                                                      \
         .value = "OWNERS",                                                                        \
         .help =                                                                                   \
             "stake on no panel where one owner has more than a third and none of these has an "   \
             "entry: addresses with commas between them, or a file of one a line"},                \
    {                                                                                              \
        .name = "ahead", .heading = "policy", .kind = OPTION_INTEGER, .value = "N",                \
        .fallback = "24", .minimum = 1, .maximum = GAME_OPEN_MAX,                                  \
        .help = "the most segments that are open while nobody vouches for them, and no more than " \
                "the stake is worth; 16 at least, and what is due comes at once"                   \
    }
#define SESSION_ACCEPT_OPTION_COUNT 4

struct session {
    struct ledger_options ledger;
    char state_dir[FILE_PATH_MAX];
    char url[FILE_PATH_MAX]; /* as remembered */
    char registry[FILE_PATH_MAX];
    struct signer *signer;   /* NULL: only reading */
    struct ledger *shared;   /* borrowed; NULL: a thread of its own has the ledger */
    struct solver_view view; /* where there is no thread: of the last round */
    struct hash32 job;
    struct uint256 chain; /* the job's ledger, for signatures */
    bool has_job;         /* and its chain */
    wei stake;            /* of the job; 0: not read yet */
    struct solver *solver;
    struct respond *respond; /* owned; NULL: claims are not answered */
    struct poster *poster;
    atomic_bool stopping;
    struct bundle *bundle; /* borrowed */
    char vouches[FILE_PATH_MAX];
    uint64_t added; /* segments that the solver has */
    double poll_s;  /* between two rounds */
    bool signing;   /* signs the roots of added segments */
    void (*keep)(void *context, uint64_t segment, const uint8_t *signature, size_t size);
    void *keep_context;    /* as in struct session_plan */
    struct notify *notify; /* borrowed; gets signs of life while we wait; or NULL */
    bool outlasts_outages; /* the timeout does not count while the ledger is unreachable, or a job
                              cannot be staked on yet */
};

/* Does an option or the bundle name a ledger? For a bundle that began without one, only an option
 * on the command line does. bundle may be NULL. */
bool session_wanted(const struct command_context *context, struct bundle *bundle);

/* Makes the bundle remember that it began without a ledger. */
MUST_CHECK enum status session_forgo(struct bundle *bundle, struct error *error);

/* Finds the ledger, and with_key unlocks the account. Close it on any outcome. */
MUST_CHECK enum status session_open(struct session *session, const struct command_context *context,
                                    struct bundle *bundle, bool with_key, struct error *error);
void session_close(struct session *session); /* a zero-filled one is allowed */

/* Another job of an account that is open. Borrows its key, and the ledger, which the caller has
 * opened with it: one process may hold the moves of an account only once. There is no thread:
 * session_round() is called instead, and everything is for one thread. */
void session_share(struct session *session, const struct session *account, struct ledger *ledger,
                   const struct hash32 *job);
MUST_CHECK enum status session_round(struct session *session, struct error *error);

/* Finds the job on the ledger and compares its terms with those of the file. terms may be NULL.
 * retry NULL: an unreachable ledger is a failure. */
MUST_CHECK enum status session_find_job(struct session *session, struct game_terms *terms,
                                        const struct command_context *context,
                                        const struct job *job, struct ledger_retry *retry,
                                        struct error *error);

/* Refuses where the account cannot pay the stake of a job that is open and would be accepted, else
 * the gas of a move, with balance and need. A ledger that does not answer now refuses nothing. */
MUST_CHECK enum status session_check_purse(struct session *session, bool accepts,
                                           struct error *error);

/* How a command that stays until the end retries an unreachable ledger. */
struct ledger_retry session_retry(const struct command_context *context, struct stop *stop,
                                  struct notify *notify);

/* Makes the bundle remember ledger, job and account. */
MUST_CHECK enum status session_remember(struct session *session, struct bundle *bundle,
                                        struct error *error);

/* What a solver's thread may do. */
struct session_plan {
    bool accept;
    bool again;
    bool collect;
    bool collect_now;
    bool sign; /* the roots of segments */
    /* Where the signatures go; NULL: into the bundle, which is open for writing. */
    void (*keep)(void *context, uint64_t segment, const uint8_t *signature, size_t size);
    void *keep_context;
    struct respond *respond; /* the session takes it; NULL: claims are not answered */
    struct solver_policy policy;
    const char *allow_list; /* borrowed; see struct solver_options */
    const char *contact;
    const char *known;
    uint32_t ahead;
};

/* Reads the options of SESSION_ACCEPT_OPTIONS into the plan. */
MUST_CHECK enum status session_accept_options(struct session_plan *plan,
                                              const struct options *options, struct error *error);

/* Refuses to stake on a bundle that verifiers cannot read: nobody could check its segments, and the
 * job would be voided. */
MUST_CHECK enum status session_check_readable(bool encrypted, struct error *error);

/* Starts the thread and adds every segment of the journal. */
MUST_CHECK enum status session_start(struct session *session, struct bundle *bundle,
                                     const struct session_plan *plan, const struct log *log,
                                     struct error *error);

/* Adds the segments that the journal got since. */
MUST_CHECK enum status session_add(struct session *session, struct error *error);

/* Signs what was added before, where the bundle has no signature or another. */
MUST_CHECK enum status session_sign(struct session *session, struct error *error);

/* Nothing more will be trained: the rounds to come give the job back. */
void session_give_up(struct session *session);

/* Waits until done is true. STATUS_STOPPED: a stop was requested. STATUS_REFUSED: the job is lost.
 * STATUS_UNREACHABLE: after timeout_s (0: never). */
MUST_CHECK enum status session_wait(struct session *session, struct solver_view *view,
                                    bool (*done)(const struct solver_view *view), struct stop *stop,
                                    uint64_t timeout_s, FILE *progress, struct error *error);

/* What to wait for. */
bool session_is_begun(
    const struct solver_view *view); /* ours, closed, or not to be staked on yet */
bool session_is_committed(const struct solver_view *view);
bool session_is_collected(const struct solver_view *view);
bool session_is_idle(const struct solver_view *view);     /* no move is possible now */
bool session_is_defended(const struct solver_view *view); /* no claim is open */
bool session_is_closed(const struct solver_view *view);   /* nor can a claim come */

#endif /* PROVER_POST_SESSION_H */
