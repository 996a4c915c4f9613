/*
 * queue.h - the node's bounded queue on disk: checks to make, and moves to send.
 *
 * Checks run in the order of their deadlines; states that a seat fetches come before all checks,
 * since a solver may show them for a while only. A check without an answer is tried again, with
 * longer and longer pauses, until its time is over. Jobs whose checks keep failing come last, so
 * they block nobody. A job never takes more places than it leaves free. A check that ends without
 * an answer keeps its reason.
 *
 * Moves are on disk before they are sent, under their name on the ledger.
 */
#ifndef VERIFIER_STORE_QUEUE_H
#define VERIFIER_STORE_QUEUE_H

#include "verifier/store/store.h"

#define QUEUE_ACTIONS_MAX 256   /* of one round */
#define QUEUE_WAIT_MS_MAX 60000 /* the longest pause before another try */

struct task {
    int64_t number;
    enum task_kind kind;
    struct hash32 job;
    uint32_t index;
    struct hash32 segment;  /* its hash (of a TRIAL the job's key), */
    struct digest previous; /* and the root of the one before it: together its content */
    struct hash32 seed;     /* draws the leaves that the result has; zero: none */
    uint32_t proven;        /* one of them with its proof: its number and one; 0: none */
    bool extra;
    bool unavailable; /* the last try found nothing to fetch, */
    bool line_works;  /* ... though somebody answered */
    enum task_state state;
    enum check_outcome outcome;
    uint32_t attempts;
    uint64_t deadline_s;
    uint64_t expiry_s;
};

/* Adds a task about the segment, by its own seed, once for each kind, content, seed and proof. Of a
 * TRIAL only the segment's job counts. Where it is
 * there and gave no verdict, it gets the task's times and waits again. *full: the queue or this
 * job's share of it is full, and nothing was added. */
MUST_CHECK enum status queue_add(struct store *store, bool *full,
                                 const struct store_segment *segment, const struct task *task,
                                 struct error *error);

/* The task of this kind and content, with this seed and proof. STATUS_NOT_FOUND: there is none. */
MUST_CHECK enum status queue_find(struct store *store, struct task *task, enum task_kind kind,
                                  const struct store_segment *segment, uint32_t proven,
                                  struct error *error);

/* A check that is done is made again: what it found is lost. */
MUST_CHECK enum status queue_again(struct store *store, const struct task *task,
                                   uint64_t deadline_s, struct error *error);

/* A segment that stands for the job in queue_add() and queue_find() of a TRIAL. */
struct store_segment queue_trial_of(const struct store_job *job);

/* Why the last try of a task gave no answer; text has room for STORE_REASON_MAX. */
MUST_CHECK enum status queue_reason(struct store *store, char *text, const struct task *task,
                                    struct error *error);

/* The next task to run; states_only: of the kind FETCH. of_job_max: how many of one job may run at
 * once. STATUS_NOT_FOUND: none. A pause longer than QUEUE_WAIT_MS_MAX is over: the clock was set
 * back. */
MUST_CHECK enum status queue_next(struct store *store, struct task *task, uint64_t now_ms,
                                  uint32_t of_job_max, bool states_only, struct error *error);
MUST_CHECK enum status queue_begin(struct store *store, const struct task *task, uint64_t now_ms,
                                   struct error *error);
MUST_CHECK enum status queue_get(struct store *store, struct task *task, int64_t number,
                                 struct error *error);

/* Enters the result. state WAITING: it is tried again at next_ms. */
MUST_CHECK enum status queue_finish(struct store *store, const struct task *task,
                                    const struct check_result *result, enum task_state state,
                                    uint64_t now_ms, uint64_t next_ms, struct error *error);

/* After a start: checks that ran died with the node, and wait again. */
MUST_CHECK enum status queue_recover(struct store *store, struct error *error);
/* Checks that ended in a fault of this machine wait again. */
MUST_CHECK enum status queue_forget_fault(struct store *store, struct error *error);
MUST_CHECK enum status queue_expire(struct store *store, uint64_t now_s, struct error *error);

/* The result of a check that has ended; free *result. */
MUST_CHECK enum status queue_result(struct store *store, struct check_result **result,
                                    const struct task *task, struct error *error);

/* ---- moves --------------------------------------------------------------- */

struct action {
    char name[LEDGER_NAME_MAX + 1];
    enum action_kind kind;
    struct hash32 job;
    struct hash32 segment; /* its hash; zero: about none */
    struct hash32 claim;   /* of SEAL_CLAIM and CLAIM the subject; zero: about none */
    struct digest before;  /* SEAL_CLAIM, CLAIM: the state before the segment, */
    struct digest pre_state;
    struct digest post_state;
    uint32_t place;
    /* The count of ENLIST, the entry of DEPART, the leaf of CHALLENGE, the generation of PAY, the
     * outsiders that CLAIM pays for, the turn of QUERY and CONVICT. */
    uint32_t number;
    uint32_t generation; /* DEPART */
    uint32_t step;
    uint64_t due_s; /* after this second, */
    uint64_t due_height;
    uint64_t late_s;                 /* until this one */
    char after[LEDGER_NAME_MAX + 1]; /* a move that must be in a block first; empty: none */
    enum action_state state;
    uint32_t tries;
    enum game_refusal_kind refusal; /* REFUSED: by the rules of the game; else GAME_REFUSED_NOT */
};

/* Does nothing when the name exists. */
MUST_CHECK enum status action_plan(struct store *store, const struct action *action,
                                   struct error *error);
MUST_CHECK enum status action_find(struct store *store, struct action *action, const char *name,
                                   struct error *error);

/* Moves in this state that are due; at most QUEUE_ACTIONS_MAX. */
MUST_CHECK enum status action_list(struct store *store, struct action *actions, uint32_t *count,
                                   enum action_state state, uint64_t now_s, uint64_t height,
                                   struct error *error);
/* Moves that are done, by their names, from behind `after`; at most QUEUE_ACTIONS_MAX. */
MUST_CHECK enum status action_list_done(struct store *store, struct action *actions,
                                        uint32_t *count, const char *after, struct error *error);
MUST_CHECK enum status action_set(struct store *store, const struct action *action,
                                  enum action_state state, uint64_t due_s, const char *trouble,
                                  struct error *error);

/* Changes what a planned move says: number, due_s, late_s. */
MUST_CHECK enum status action_adjust(struct store *store, const struct action *action,
                                     struct error *error);

MUST_CHECK enum status action_forget(struct store *store, const struct action *action,
                                     struct error *error);

/* The newest move of a claim's turn, and how many there are; the older ones were refused.
 * STATUS_NOT_FOUND: none yet. */
MUST_CHECK enum status action_of_turn(struct store *store, struct action *action, uint32_t *count,
                                      const struct hash32 *claim, uint32_t turn,
                                      struct error *error);
/* How many of them were refused as not guilty. */
MUST_CHECK enum status action_count_acquitted(struct store *store, uint32_t *count,
                                              const struct hash32 *claim, uint32_t turn,
                                              struct error *error);

/* "job 7c25 segment 10: sealed": what became of a move in that state, for logs. */
#define ACTION_TEXT 128
void action_text(char text[ACTION_TEXT], struct store *store, const struct action *action,
                 enum action_state state);

/* "seal/" and the hash in hex: the same move has the same name after any crash. */
void action_name(char name[LEDGER_NAME_MAX + 1], enum action_kind kind, const struct hash32 *about);

#endif /* VERIFIER_STORE_QUEUE_H */
