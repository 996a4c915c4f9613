/*
 * node_parts.h - what a solver's node consists of. solver_node.h says what it does.
 */
#ifndef PROVER_NODE_NODE_PARTS_H
#define PROVER_NODE_NODE_PARTS_H

#include "chain/job/board.h"
#include "chain/money/money_book.h"
#include "prover/node/child.h"
#include "prover/node/held_job.h"
#include "prover/node/own_address.h"
#include "prover/train/device_lock.h"

#define SOLVER_NODE_SLOTS_MAX  16
#define SOLVER_NODE_JOBS_MAX   256 /* held at a time */
#define SOLVER_NODE_DEVICE_MAX 96

struct solver_node_options {
    char devices[SOLVER_NODE_SLOTS_MAX][SOLVER_NODE_DEVICE_MAX];
    struct machine_options machines[SOLVER_NODE_SLOTS_MAX]; /* the same, opened */
    uint32_t slot_count;
    wei stakes_max;    /* of all jobs; 0: any */
    uint32_t held_max; /* jobs at a time, those included that wait for their money */
    bool when_idle;    /* begin nothing while others use the device, and yield to them */
    char threads[24];  /* for the children, as options have it; "": their default */
    char memory[24];
    char device_memory[24];
    char keep[24];
    char measure[24];            /* seconds */
    const char *folder;          /* of all that it keeps */
    char fetch_most[24];         /* bytes of data to fetch for one job; "0": nothing is fetched */
    char fetched[FILE_PATH_MAX]; /* the folder, which the shelf looks into too */
    const char *const *mirrors;  /* borrowed; asked before those that the ledger tells */
    size_t mirror_count;
    bool private_contacts;      /* what the ledger tells may be of this machine and its networks */
    const char *serve;          /* ADDRESS:PORT; NULL: it serves nothing */
    const char *nobody_fetches; /* why no verifier could fetch what it commits; NULL: they can */
    struct held_terms terms;
    struct shelf shelf; /* places and data */
};

enum slot_task {
    SLOT_IDLE,
    SLOT_MEASURING,
    SLOT_TAKING,
    SLOT_TRAINING,
};

struct node_slot {
    enum slot_task task;
    struct device_lock lock;
    pid_t child;       /* 0: none */
    struct hash32 job; /* unless it is idle */
    char why[256];     /* it is idle, or not alone */
    bool holds_up;     /* a job that is begun waits for its device */
};

/* What the node thinks of a job of the board, which has the same number there. */
struct offer {
    uint32_t looked;   /* a bit for each slot: was a pace remembered? */
    uint32_t measured; /* a bit for each slot: its pace is known */
    uint64_t again_ms; /* not measured or taken before: it failed */
    struct policy_pace pace[SOLVER_NODE_SLOTS_MAX];
    wei hour; /* what an hour earns, by the pace that was looked at last; 0: not known */
    bool refused;
    char why[POLICY_TEXT_MAX]; /* it is refused, or it failed */
};

struct solver_node {
    struct solver_node_options options;
    struct ledger *ledger;
    const struct log *log;
    struct board board;
    struct money_book book; /* of its account, */
    struct money money;     /* ... as of the last round that read the ledger */
    struct offer *offers;
    uint32_t offer_room;
    uint64_t offers_of; /* the rewind of the board that they belong to */
    struct ledger_clock clock;
    struct held_job *held[SOLVER_NODE_JOBS_MAX];
    uint32_t held_count;
    struct node_slot slots[SOLVER_NODE_SLOTS_MAX];
    pid_t server; /* 0: none */
    struct own_address own;
    bool serves_all;   /* what the node has; else it is started again */
    uint64_t shelf_ms; /* when it was looked at */
    uint32_t paid;     /* jobs, in all lives */
    uint32_t lost;
    char trouble[SOLVER_VIEW_TROUBLE_MAX]; /* with the ledger */
};

#endif /* PROVER_NODE_NODE_PARTS_H */
