/*
 * federation.h - the parts that a federation is made of, for the files of this folder.
 *
 * Everything that happened is on disk before anything follows from it: the agreement, the progress
 * of each owner, the state that it gave, the mean, the record. So a federation that is killed goes
 * on where it stopped, and asks the ledger, not its memory, what was opened and paid.
 */
#ifndef CLIENT_FEDERATE_FEDERATION_H
#define CLIENT_FEDERATE_FEDERATION_H

#include "base/cli/command.h"
#include "chain/game/ledger.h"
#include "chain/job/job_record.h"
#include "client/federate/federate_child.h"
#include "client/federate/federate_plan.h"
#include "proofs/bundle/bundle.h"
#include "proofs/rounds/round_mean.h"

#define FEDERATION_CONTACT_MAX 256
#define FEDERATION_DEATHS_MAX  8 /* of children one after another, before no more is begun */

struct federation {
    struct command_context *context;
    const struct options *options;
    const char *folder;
    struct federate_plan plan;
    struct rounds rounds;
    struct stop stop;
    struct file_lock lock;
    struct ledger *ledger; /* NULL: the jobs run here */
    struct address account;
    struct federate_child server;         /* of the round's jobs */
    uint16_t port;                        /* at which one of them listened; 0: not yet */
    char contact[FEDERATION_CONTACT_MAX]; /* where they are served; "": nowhere that we know of */
};

/* One round while it is made. */
struct federate_round {
    struct federation *federation;
    uint32_t number;
    struct job *jobs[ROUNDS_OWNERS_MAX]; /* of this round; owned */
    struct digest *start;                /* trees of their first state; owned */
    struct digest *velocity;             /* trees of the outer step's state before; owned */
    struct round_record record;
    /* Of a ledger, what it says of each owner's last try: */
    struct job_record looks[ROUNDS_OWNERS_MAX];
    enum round_end troubles[ROUNDS_OWNERS_MAX]; /* NONE: it goes its way */
    struct digest fetched[ROUNDS_OWNERS_MAX];   /* the root of the last state that was fetched */
    uint32_t deaths[ROUNDS_OWNERS_MAX];         /* of children about an owner since one did well */
    uint32_t server_deaths;                     /* since the round went on, */
    uint64_t server_progress;                   /* and how far that was */
    struct error last_death;
};

/* ---- federate_round.c ---- */

/* Makes a round, or goes on with it, and writes its record. */
MUST_CHECK enum status federate_round_run(struct federation *federation, uint32_t number,
                                          struct error *error);

/* Keeps an owner's progress. */
MUST_CHECK enum status federate_round_keep(struct federate_round *round, uint32_t owner,
                                           struct error *error);

/* Takes the last state of an owner's job from a checkpoint, and keeps what is averaged. */
MUST_CHECK enum status federate_round_take(struct federate_round *round, uint32_t owner,
                                           const char *checkpoint, const struct digest *wanted,
                                           struct error *error);

/* ---- federate_local.c: jobs that run on this machine ---- */

MUST_CHECK enum status federate_local_run(struct federate_round *round, struct error *error);

/* ---- federate_ledger.c: jobs on a ledger ---- */

MUST_CHECK enum status federate_ledger_open(struct federation *federation, struct error *error);
MUST_CHECK enum status federate_ledger_run(struct federate_round *round, struct error *error);

#endif /* CLIENT_FEDERATE_FEDERATION_H */
