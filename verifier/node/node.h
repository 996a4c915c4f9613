/*
 * node.h - the verifier's node: what it is given, what it holds, and what all its parts use.
 *
 * A node reads no clock but the one it is given and never waits. All that matters is in the store
 * and the verdict database, so a node that is killed between any two instructions goes on where it
 * was.
 */
#ifndef VERIFIER_NODE_NODE_H
#define VERIFIER_NODE_NODE_H

#include "base/io/log.h"
#include "chain/game/policy/policy.h"
#include "verifier/check/workers.h"
#include "verifier/store/queue.h"
#include "verifier/store/store_money.h"
#include "verifier/store/verdict_db.h"

/* Children beside the checks: a turn must not be lost for want of one, nor the states that a seat
 * fetches. */
#define NODE_PLACES_BESIDE 2
#define NODE_CHECKS_MAX    (WORKERS_MAX - NODE_PLACES_BESIDE)

enum node_mode {
    NODE_OBSERVE, /* checks and reports; never signs */
    NODE_DEFEND,  /* and whistles */
    NODE_ACT,     /* and enlists, for the fees */
};

struct node_options {
    enum node_mode mode;
    uint32_t entries;               /* in each panel, at most */
    const char *const *allow_lists; /* files, for jobs that name their panel */
    size_t allow_list_count;
    const char *contact; /* where this node is found; NULL: nowhere */
    double extra;        /* of the segments that we have no place in: samples nobody can foresee */
    uint32_t checks_max; /* at once; a dispute, and states that are fetched, have a place more */
    uint32_t move_max;   /* bytes of a move's payload; 0: what the ledger takes */
    bool by_hand;        /* nothing is chosen or checked by itself: disputes and moves go on */
    uint32_t reach;      /* segments that may be replayed before one, for want of a checkpoint */
    const char *const *mirrors;
    size_t mirror_count;
    enum http_reach contact_reach; /* of those that the ledger tells */
    const char *const *data;
    size_t data_count;
    const char *cache;
    uint64_t memory_max;    /* of one check */
    uint64_t disk_max;      /* of the cache, and so of any file in it */
    uint64_t bandwidth_max; /* of all checks together; 0: no limit */
    uint32_t mirror_timeout_s;
    uint32_t check_time_s;
    uint32_t threads;       /* of one check */
    const char *device;     /* where a check computes; NULL: on the CPU */
    uint64_t device_memory; /* of each device; 0: all of it */
    wei withdraw_at;        /* owed; 0: never */
    struct policy policy;   /* which bonds are locked; zeros: any */
    uint32_t grace_s;       /* until moves that anybody may make are made for who did not */
};

struct keep; /* verifier/store/keep.h */

struct node_ports {
    struct ledger *ledger;
    const struct signer *signer; /* of asks about traces; NULL: they are not signed */
    struct store *store;
    struct verdict_db *verdicts;
    struct check_port checks;
    const struct keep *keep;           /* NULL: nothing is kept */
    uint64_t (*now_ms)(void *context); /* since 1970 */
    void *clock;
    const struct log *log; /* NULL: no log */
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
    uint64_t money_ms;        /* when it was last looked at */
    struct store_money money; /* of the account */
    struct node_running running[WORKERS_MAX];
    uint32_t running_count;
    int64_t disputes;       /* children that were started for disputes */
    struct action *actions; /* QUEUE_ACTIONS_MAX of them */
    bool purse_is_known;    /* of this round: what the account has, and is owed, */
    wei purse;
    bool gas_price_is_known; /* ... and the ledger's price of gas */
    wei gas_price;
};

/* Borrows all of options and ports. */
MUST_CHECK enum status node_open(struct node *node, const struct node_options *options,
                                 const struct node_ports *ports, struct error *error);
void node_close(struct node *node);

/* Somebody has looked into a fault of the machine: a node that is opened then signs again, and
 * makes the checks once more that ended in it. */
MUST_CHECK enum status node_forget_fault(struct store *store, struct verdict_db *verdicts,
                                         struct error *error);

/* Records a fault of this machine: nothing is signed any more until somebody has looked. */
MUST_CHECK enum status node_fault(struct node *node, const char *text, struct error *error);

/* The last second of sealing, of revealing and of claiming. */
uint64_t node_seal_end(const struct store_segment *segment);
uint64_t node_reveal_end(const struct store_segment *segment);
uint64_t node_claim_end(const struct store_segment *segment);

/* A draw that nobody else can make, and that is the same after a crash. */
bool node_draws(const struct node *node, const char *words, const void *about, size_t size,
                double share);

/* The verdict database's entry for a segment, without verdict, step and states. */
struct verdict_db_entry node_entry(const struct node *node, const struct store_segment *segment,
                                   const struct digest *before);

/* And its row for the verdict of a place, without the verdict. */
struct verdict_db_seal node_seal(const struct node *node, const struct store_segment *segment,
                                 uint32_t place);

/* Plans an action. Plans it again where it was refused or late; gives one that waits these times.
 * In a transaction. */
MUST_CHECK enum status node_plan_again(struct node *node, const struct action *action,
                                       struct error *error);

/* "seal/HASH/PLACE": of a place, an entry, a generation or a turn. */
void node_name(char name[LEDGER_NAME_MAX + 1], enum action_kind kind, const struct hash32 *about,
               uint32_t number);

#endif /* VERIFIER_NODE_NODE_H */
