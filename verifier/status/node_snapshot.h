/*
 * node_snapshot.h - one look at a node's database, for the metrics and the status page.
 *
 * One read transaction gives all of it, so the numbers agree. Lists have named maxima: jobs under
 * an open claim come first, then those that run, then the newest; of claims the newest. The counts
 * are of all. Nothing here writes.
 */
#ifndef VERIFIER_STATUS_NODE_SNAPSHOT_H
#define VERIFIER_STATUS_NODE_SNAPSHOT_H

#include "chain/money/money.h"
#include "verifier/store/queue.h"

#define NODE_SNAPSHOT_JOBS_MAX    16
#define NODE_SNAPSHOT_CELLS_MAX   360 /* squares of a job's map; one may have several segments */
#define NODE_SNAPSHOT_CLAIMS_MAX  24
#define NODE_SNAPSHOT_MIRRORS_MAX 32
#define NODE_SNAPSHOT_MISSED_MAX  16
#define NODE_SNAPSHOT_BARS        60 /* of the throughput plot */
#define NODE_SNAPSHOT_NAME_MAX    256

#define NODE_SNAPSHOT_TASK_STATES   (TASK_STATES)
#define NODE_SNAPSHOT_OUTCOMES      (CHECK_FAULT + 1)
#define NODE_SNAPSHOT_ACTION_STATES ACTION_STATES
#define NODE_SNAPSHOT_PHASES        (GAME_PHASE_CLOSED + 1)
#define NODE_SNAPSHOT_SEAT_PHASES   (GAME_SEAT_CLOSED + 1)
#define NODE_SNAPSHOT_VERDICTS      (GAME_VERDICT_FALSE + 1)

/* A square shows the worst of its segments. */
enum node_snapshot_mark {
    NODE_SNAPSHOT_AHEAD,     /* not committed yet */
    NODE_SNAPSHOT_COMMITTED, /* not checked yet */
    NODE_SNAPSHOT_PROVEN,
    NODE_SNAPSHOT_CHECKING, /* a check of it runs */
    NODE_SNAPSHOT_UNTOLD,   /* checks gave no answer so far, and none runs */
    NODE_SNAPSHOT_REFUTED,
};
#define NODE_SNAPSHOT_MARKS 6

struct node_snapshot_cell {
    enum node_snapshot_mark mark;
    bool has_loss;
    double loss; /* of its last segment that has one */
};

struct node_snapshot_job {
    struct hash32 key;
    enum game_phase phase;
    uint64_t steps;
    uint32_t segment_count; /* 0: the terms make no sense */
    uint32_t committed;
    uint32_t finalized;
    uint32_t proven;
    uint32_t refuted;
    uint32_t being_checked;
    uint32_t cell_segments; /* in one square */
    uint32_t cell_count;
    struct node_snapshot_cell cells[NODE_SNAPSHOT_CELLS_MAX];
};

struct node_snapshot_claim {
    struct hash32 key;
    uint32_t index;
    uint32_t step;
    enum action_state move;
    enum game_claim_phase phase; /* NONE: not on the ledger yet */
    uint64_t deadline_s;
    char outcome[16];
    char trouble[NODE_SNAPSHOT_NAME_MAX];
};

/* A place of ours that earned nothing. */
struct node_snapshot_missed {
    struct hash32 job;
    uint32_t index; /* of the segment */
    uint32_t place;
    char reason[STORE_REASON_MAX]; /* and what to do */
};

struct node_snapshot_mirror {
    char name[NODE_SNAPSHOT_NAME_MAX];
    uint64_t good;
    uint64_t bad;
    uint64_t silent;
    uint64_t bytes;
    bool rests; /* it is asked last */
    uint64_t rest_until_s;
    uint64_t failures;
    char trouble[NODE_SNAPSHOT_NAME_MAX];
};

struct node_snapshot_bar {
    uint32_t checks;
    uint64_t steps;
};

struct node_snapshot {
    uint64_t now_ms;
    uint64_t started_ms;
    uint64_t alive_ms; /* the last sign of life; 0: none yet */
    uint64_t cursor;   /* the last entry of the event log that was read */
    char owner[STORE_REASON_MAX];
    char fault[STORE_REASON_MAX];          /* empty: none */
    char ledger_trouble[STORE_REASON_MAX]; /* why the ledger cannot be reached; empty: it can */
    uint32_t endpoint_count;
    struct ledger_endpoint endpoints[LEDGER_ENDPOINTS_MAX];
    uint64_t reopened; /* moves that a reorganization deeper than --depth took back */
    uint64_t tasks[NODE_SNAPSHOT_TASK_STATES];
    uint64_t outcomes[NODE_SNAPSHOT_OUTCOMES]; /* of the tasks that are done */
    uint64_t attempts;
    uint64_t steps_proven;
    uint64_t steps_run;
    uint64_t compute_ns;
    uint64_t next_deadline_s; /* of a check that waits or runs; 0: none does */
    uint64_t actions[ACTION_KINDS][NODE_SNAPSHOT_ACTION_STATES];
    /* Moves of ours that are refused or late for good. Excludes retried, superseded and obsolete
     * moves. */
    uint64_t lost[ACTION_KINDS];
    uint64_t jobs[NODE_SNAPSHOT_PHASES];
    uint64_t committed;
    uint64_t finalized;
    uint64_t claims_open;
    uint64_t claims_upheld;
    uint64_t claims_refuted;
    uint64_t claims_lapsed;
    uint64_t entries;                          /* of ours in panels */
    uint64_t seats[NODE_SNAPSHOT_SEAT_PHASES]; /* of ours, by phase, */
    uint64_t verdicts[NODE_SNAPSHOT_VERDICTS]; /* and by what was revealed */
    uint64_t bonds_lost;                       /* entries of ours that were disproved, */
    bool bonds_lost_lately;                    /* ... within NODE_SNAPSHOT_LATELY_S */
    uint64_t missed;                           /* seats without a verdict; */
    uint64_t missed_s;                         /* when the last of them was missed, */
    uint64_t verdict_s;                        /* and when there was a verdict last; the last: */
    uint32_t missed_count;
    struct node_snapshot_missed missed_seat[NODE_SNAPSHOT_MISSED_MAX];
    bool has_money; /* else it was not counted yet, or the node has no key */
    struct money money;
    uint32_t job_count;
    struct node_snapshot_job job[NODE_SNAPSHOT_JOBS_MAX];
    uint32_t claim_count;
    struct node_snapshot_claim claim[NODE_SNAPSHOT_CLAIMS_MAX];
    uint32_t mirror_count;
    struct node_snapshot_mirror mirror[NODE_SNAPSHOT_MIRRORS_MAX];
    uint64_t bar_ms; /* how long one bar is; the last one ends now */
    struct node_snapshot_bar bars[NODE_SNAPSHOT_BARS];
};

/* ---- what `verifier status` asks too; names that begin with "_" are not shown there ---- */

/* Checks by state and outcome. */
#define NODE_SNAPSHOT_CHECKS                                                                       \
    "SELECT state, iif(outcome = :cannot_tell AND state IN (:task_waiting, :task_running), NULL,"  \
    " outcome) AS outcome, count(*) AS count, sum(attempts) AS _attempts,"                         \
    " sum(coalesce(json_extract(result, '$.steps_run'), 0)) AS _steps,"                            \
    " sum(coalesce(json_extract(result, '$.compute_ns'), 0)) AS _ns"                               \
    " FROM tasks WHERE kind = :checks GROUP BY 1, 2 ORDER BY 1, 2"

/* Moves by kind and state. */
#define NODE_SNAPSHOT_MOVES                                                                        \
    "SELECT kind AS move, state, count(*) AS count, max(trouble) AS trouble FROM actions"          \
    " GROUP BY kind, state ORDER BY kind, state"

/* Mirrors, for node_snapshot_read_mirror(). */
#define NODE_SNAPSHOT_MIRRORS                                                                      \
    "SELECT name, good, bad, bytes, trouble, silent, failures, rest_until_ms FROM mirrors"
void node_snapshot_read_mirror(struct node_snapshot_mirror *mirror, sqlite3_stmt *row,
                               uint64_t now_ms);

/* Some hundred kilobytes: not for the stack. */
MUST_CHECK enum status node_snapshot_look(struct node_snapshot *snapshot, struct store *store,
                                          uint64_t now_ms, struct error *error);

/* A node without a sign of life for so long is not well. */
#define NODE_SNAPSHOT_SILENCE_MS 150000

#define NODE_SNAPSHOT_LATELY_S 3600  /* how long a bond that was lost is trouble, */
#define NODE_SNAPSHOT_MISSED_S 86400 /* and a seat that was missed, where no verdict comes */

/* What is wrong with the node; NULL: it is alive, has no fault, reaches its ledger, has lost no
 * bond lately, and had a verdict since it missed a seat. */
const char *node_snapshot_trouble(const struct node_snapshot *snapshot);

#endif /* VERIFIER_STATUS_NODE_SNAPSHOT_H */
