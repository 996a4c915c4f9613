/*
 * keeper.h - the keeper of a job: fetches start and end of each covered segment, keeps and serves
 * them, vouches for them, replays what is in question, refuses what it could not have.
 *
 * All that matters follows from the ledger, from the key and from the kept folder: a keeper that
 * was killed goes on where it was. What it cannot do now it says, and tries again.
 */
#ifndef CLIENT_KEEPER_KEEPER_H
#define CLIENT_KEEPER_KEEPER_H

#include "base/cli/command.h"
#include "base/io/notify.h"
#include "client/watch/watch_keep.h"

/* For a command's table, beside "account", "data" and "keep-max". */
#define KEEPER_OPTIONS                                                                             \
    {.name = "no-refuse",                                                                          \
     .heading = "keeping",                                                                         \
     .kind = OPTION_FLAG,                                                                          \
     .help = "as keeper: never refuse, also where the states could not be fetched in time"},       \
        {.name = "no-replay",                                                                      \
         .heading = "keeping",                                                                     \
         .often = true,                                                                            \
         .kind = OPTION_FLAG,                                                                      \
         .help = "as keeper: replay nothing and claim nothing; then it vouches only for what an "  \
                 "owner of --known found right"},                                                  \
    {                                                                                              \
        .name = "known", .heading = "policy", .often = true, .kind = OPTION_LIST,                  \
        .value = "OWNERS",                                                                         \
        .help = "as keeper with --no-replay: owners of seats whose word is believed: addresses "   \
                "with commas between them, or a file of one a line"                                \
    }
#define KEEPER_OPTION_COUNT 3

struct keeper;

struct keeper_options {
    struct command_context *context; /* borrowed, like all here */
    const char *key;                 /* of the job, as the user says it */
    struct stop *stop;               /* open */
    struct notify *notify;           /* learns that it waits for a ledger; NULL: nobody */
    struct watch_sight *sight;
    const char *folder;  /* of the states; NULL: below that of its state */
    const char *place;   /* ADDRESS:PORT; NULL: somebody else serves the folder */
    const char *contact; /* where they are found; NULL: at the place */
    const char *state;   /* folder of what it keeps and of replays; NULL: below the state folder */
};

/* What it did since it was opened, and what stands. */
struct keeper_counts {
    uint64_t pending; /* covered segments that are not final */
    uint64_t held;    /* of them, those whose states are here */
    uint64_t noted;   /* and those that the ledger knows to be vouched for */
    uint64_t handed;  /* vouches: to the solver, */
    uint64_t announced;
    uint64_t brought; /* and by our own settle */
    uint64_t refused;
    uint64_t right; /* replays */
    uint64_t wrong; /* that found a lie */
    uint64_t failed;
    uint64_t looked_s; /* at the ledger, by its time */
};

/* STATUS_REFUSED: the key is not that of the job's keeper. */
MUST_CHECK enum status keeper_open(struct keeper **keeper, const struct keeper_options *options,
                                   struct error *error);
void keeper_close(struct keeper *keeper); /* NULL is fine; request the stop before */

/* Looks at the ledger once, and does what follows. A ledger that cannot be reached now is a trouble
 * of the sight, and no failure. */
MUST_CHECK enum status keeper_round(struct keeper *keeper, struct error *error);

/* Is there nothing left to keep: the job is closed? */
bool keeper_is_done(const struct keeper *keeper);

struct keeper_counts keeper_counts(const struct keeper *keeper);
const struct job_record *keeper_record(const struct keeper *keeper);
const char *keeper_contact(const struct keeper *keeper); /* "": nobody can call it */

#endif /* CLIENT_KEEPER_KEEPER_H */
