/*
 * node.h - the verifier's node: one round of its work, over whatever clock, ledger and workers.
 *
 * node_round() follows the ledger, chooses segments, hands checks to the workers and takes their
 * answers, enters verdicts into the book, and sends the moves that follow. It never waits, reads no
 * clock but the one it is given, and keeps everything that matters in the store and the book: a
 * node that is killed between any two instructions goes on where it was.
 *
 *     node.c         the round
 *     node_plan.c    which segments, and why not
 *     node_checks.c  checks out and answers in: the only place where a verdict is made
 *     attestation_audit.c        what others attested, compared with what is found here
 *     signing_guard.c  what is signed of itself: seals, claims, attestations and what follows
 *     claimant.c     what becomes of a claim once it is on the ledger
 *     moves.c        the moves of its dispute, and what a refusal of one means
 *     solver_timeout.c the moves of a solver that makes them no more, where money of ours waits
 */
#ifndef VERIFIER_NODE_NODE_H
#define VERIFIER_NODE_NODE_H

#include "base/io/log.h"
#include "verifier/check/workers.h"
#include "verifier/store/queue.h"
#include "verifier/store/verdict_db.h"

/* A turn must not be lost for want of a free child. */
#define NODE_CHECKS_MAX (WORKERS_MAX - 1)

enum node_mode {
    NODE_OBSERVE, /* checks and tells; never signs */
    NODE_DEFEND,  /* and whistles */
    NODE_ACT,     /* and attests, for the fees */
};

struct node_options {
    enum node_mode mode;
    double share;        /* of the segments that could be attested, 0 to 1 */
    double extra;        /* of the others: samples that nobody can foresee */
    double audit_share;  /* of what others attested: compared with a trace of our own */
    uint32_t checks_max; /* at once; a dispute has one place more */
    uint32_t move_max;   /* bytes of a move's payload; 0: what the ledger takes */
    bool by_hand;        /* nothing is chosen or checked by itself: disputes and moves go on */
    uint32_t reach;      /* segments that may be replayed before one, for want of a checkpoint */
    const char *const *mirrors;
    size_t mirror_count;
    const char *const *data;
    size_t data_count;
    const char *cache;
    uint64_t memory_max;    /* of one check */
    uint64_t disk_max;      /* of the cache, and so of any file in it */
    uint64_t bandwidth_max; /* of all checks together; 0: no limit */
    uint32_t ledger_retry_s;
    uint32_t check_time_s;
    uint32_t threads;       /* of one check */
    const char *device;     /* where a check computes; NULL: on the CPU */
    uint64_t device_memory; /* of each device; 0: all of it */
    wei withdraw_at;        /* owed; 0: never */
    uint32_t grace_s;       /* until moves that anybody may make are made for who did not */
};

struct node_ports {
    struct ledger *ledger;
    struct store *store;
    struct verdict_db *verdicts;
    struct check_port checks;
    uint64_t (*now_ms)(void *context); /* since 1970 */
    void *clock;
    const struct log *log; /* NULL: nothing is told */
};

struct node_running {
    int64_t number; /* of the task; 0: the place is free */
    struct check_request *request;
    struct check_result *result; /* its answer, until it is kept; NULL: it still runs */
    bool disputing;              /* no task: the next move about this claim */
    struct hash32 claim;
};

struct node {
    struct node_options options;
    struct node_ports ports;
    struct ledger_clock clock; /* the ledger's, as of this round */
    uint64_t now_ms;
    bool fault;
    bool fault_is_safe; /* it outlives a loss of power */
    uint64_t swept_ms;
    struct node_running running[WORKERS_MAX];
    uint32_t running_count;
    int64_t disputes;       /* children that were started for disputes */
    struct action *actions; /* QUEUE_ACTIONS_MAX of them */
};

/* Borrows all of options and ports. */
MUST_CHECK enum status node_open(struct node *node, const struct node_options *options,
                                 const struct node_ports *ports, struct error *error);
void node_close(struct node *node);

/* Somebody has looked into a fault of the machine: a node that is opened then signs again, and
 * makes the checks once more that ended in it. */
MUST_CHECK enum status node_forget_fault(struct store *store, struct verdict_db *verdicts,
                                         struct error *error);

/* One round. *busy: there was something to do, so the next one should come soon. A ledger that
 * cannot be reached is weather, and told in the store; a failure is one of our own disk. */
MUST_CHECK enum status node_round(struct node *node, bool *busy, struct error *error);

/* ---- the parts, for node*.c, signing_guard.c and claimant.c ---- */

uint64_t node_attest_end(const struct store_segment *segment);
uint64_t node_reveal_end(const struct store_segment *segment);
uint64_t node_claim_end(const struct store_segment *segment);

MUST_CHECK enum status node_plan(struct node *node, struct error *error);
MUST_CHECK enum status node_take_answers(struct node *node, bool *busy, struct error *error);
MUST_CHECK enum status node_start_checks(struct node *node, bool *busy, struct error *error);

/* The row of the book for a segment, but for verdict, step and states. */
struct verdict_db_entry node_entry(const struct node *node, const struct store_segment *segment,
                                   const struct digest *before);

/* Hands a request to a free child; STATUS_NOT_FOUND: there is none now. Takes request. claim: the
 * dispute that it is about, which has a child more to take; NULL: a check. */
MUST_CHECK enum status node_start(struct node *node, int64_t number, const struct hash32 *claim,
                                  struct check_request *request, struct error *error);

/* The request to check a segment as it stands, with the node's limits and mirrors.
 * STATUS_NOT_FOUND: one before it is missing. *made is the caller's on any outcome. */
MUST_CHECK enum status node_request(struct node *node, struct check_request **made,
                                    const struct store_segment *segment, struct error *error);

/* Plans a move anew where an earlier round missed it: a renewed segment has another time. */
MUST_CHECK enum status node_plan_again(struct node *node, const struct action *action,
                                       struct error *error);

/* Nothing is signed any more until somebody has looked. */
MUST_CHECK enum status node_fault(struct node *node, const char *text, struct error *error);

/* Enters a refuted step into the book and plans the claim. *why: what stands in the way, if
 * anything does. Inside a transaction. */
MUST_CHECK enum status node_accuse(struct node *node, const struct hash32 *job,
                                   const struct check_request *request,
                                   const struct check_result *result, const char **why,
                                   struct error *error);

/* Plans the seal and the claim. Inside a transaction. */
MUST_CHECK enum status node_plan_claim(struct node *node, const struct action *seal,
                                       struct error *error);

/* A draw that nobody else can make, and that is the same after a crash. */
bool node_draws(const struct node *node, const char *words, const void *about, size_t size,
                double share);

/* Plans the attestation that a proven check allows, and its reveal. Inside a transaction. */
MUST_CHECK enum status node_plan_attestation(struct node *node, const struct store_segment *segment,
                                             uint32_t step, const struct check_result *result,
                                             struct error *error);

#endif /* VERIFIER_NODE_NODE_H */
