/*
 * queue.h - the node's bounded queue on disk: checks to make, and moves to send.
 *
 * Checks run in the order of their deadlines, then the least covered first. A check without an
 * answer is tried again, with longer and longer pauses, until its time is over. Jobs whose checks
 * keep failing come last, so they block nobody. A job never takes more places than it leaves free.
 * A check that ends without an answer keeps its reason.
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
    struct hash32 job;
    uint32_t index;
    struct digest previous;
    struct digest root;
    bool traced;
    uint32_t traced_step;
    bool extra;
    uint32_t attempts;
    uint64_t deadline_s;
    uint64_t expiry_s;
};

/* Adds a check, once for each segment, pre-state and step. *full: the queue or this job's share of
 * it is full, and nothing was added. */
MUST_CHECK enum status queue_add(struct store *store, bool *full,
                                 const struct store_segment *segment, const struct task *task,
                                 struct error *error);

/* The next check to run. of_job_max: how many of one job may run at once. STATUS_NOT_FOUND: none.
 * A pause longer than QUEUE_WAIT_MS_MAX is over: the clock was set back. */
MUST_CHECK enum status queue_next(struct store *store, struct task *task, uint64_t now_ms,
                                  uint32_t of_job_max, struct error *error);
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

/* The result of the traced check of this content, if it was proven; free *result. */
MUST_CHECK enum status queue_answer(struct store *store, struct check_result **result,
                                    const struct store_segment *segment, uint32_t step,
                                    struct error *error);

/* Gives a check of this content the task's times, unless it is proven. One that was given up,
 * refuted (the next solver committed the same content again) or found a fault waits again. One that
 * runs goes on. */
MUST_CHECK enum status queue_revive(struct store *store, const struct store_segment *segment,
                                    const struct task *task, struct error *error);

/* A check of this content that is proven, or skipped before its first try, waits again: it gave no
 * trace root to compare. One that waits or runs is left alone. */
MUST_CHECK enum status queue_recheck(struct store *store, const struct store_segment *segment,
                                     const struct task *task, struct error *error);

/* ---- moves --------------------------------------------------------------- */

struct action {
    char name[LEDGER_NAME_MAX + 1];
    enum action_kind kind;
    struct hash32 segment; /* its hash; zero: about none */
    struct hash32 claim;   /* likewise */
    struct digest before;
    struct digest pre_state;
    struct digest post_state; /* ATTEST, REVEAL: the trace root */
    /* SEAL, CLAIM: the accused; zero: the solver. Against an attestor pre_state is the trace root
     * that it revealed, post_state the true one. */
    struct address attestor;
    uint32_t step;  /* QUERY, CONVICT, REPLY: the number of the turn */
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
MUST_CHECK enum status action_set(struct store *store, const struct action *action,
                                  enum action_state state, uint64_t due_s, const char *trouble,
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

/* "job 7c25 segment 10: attested": what became of a move in that state, for logs. */
#define ACTION_TEXT 128
void action_text(char text[ACTION_TEXT], struct store *store, const struct action *action,
                 enum action_state state);

/* "attest/" and the hash in hex: the same move has the same name after any crash. */
void action_name(char name[LEDGER_NAME_MAX + 1], enum action_kind kind, const struct hash32 *about);

#endif /* VERIFIER_STORE_QUEUE_H */
