/*
 * queue.h - the node's bounded queue on disk: checks to be made, and moves to be sent.
 *
 * Checks are taken by deadline, then least covered first. A check that could not tell is tried
 * again, later and later, until its time is over; a job that keeps failing stands behind those that
 * do not, so it blocks nobody. A job has no more places in the queue than it leaves free, so that
 * no job fills it. Every check that ends without an answer keeps its reason.
 *
 * Moves are kept before they are sent, under the name that they have on the ledger.
 */
#ifndef VERIFIER_STORE_QUEUE_H
#define VERIFIER_STORE_QUEUE_H

#include "verifier/store/store.h"

#define QUEUE_ACTIONS_MAX 256   /* looked at in one round */
#define QUEUE_WAIT_MS_MAX 60000 /* until a check, or a child for a dispute, is tried again */

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

/* Once for each segment, pre-state and step. *full: the queue is, or this job's share of it;
 * nothing was added. */
MUST_CHECK enum status queue_add(struct store *store, bool *full,
                                 const struct store_segment *segment, const struct task *task,
                                 struct error *error);

/* The next to run. of_job_max: how many of one job may run at once. STATUS_NOT_FOUND: none. A clock
 * that was set back delays nothing: who would wait longer than QUEUE_WAIT_MS_MAX need not wait. */
MUST_CHECK enum status queue_next(struct store *store, struct task *task, uint64_t now_ms,
                                  uint32_t of_job_max, struct error *error);
MUST_CHECK enum status queue_begin(struct store *store, const struct task *task, uint64_t now_ms,
                                   struct error *error);
MUST_CHECK enum status queue_get(struct store *store, struct task *task, int64_t number,
                                 struct error *error);

/* result: what came of it. WAITING: it is tried again at next_ms. */
MUST_CHECK enum status queue_finish(struct store *store, const struct task *task,
                                    const struct check_result *result, enum task_state state,
                                    uint64_t now_ms, uint64_t next_ms, struct error *error);

/* What runs has died with the node that ran it. */
MUST_CHECK enum status queue_recover(struct store *store, struct error *error);
/* What a machine could not tell that was at fault is checked once more: it may be a lie. */
MUST_CHECK enum status queue_forget_fault(struct store *store, struct error *error);
MUST_CHECK enum status queue_expire(struct store *store, uint64_t now_s, struct error *error);

/* The answer to the traced check of this content, if it was proven: *result is the caller's. */
MUST_CHECK enum status queue_answer(struct store *store, struct check_result **result,
                                    const struct store_segment *segment, uint32_t step,
                                    struct error *error);

/* A check that was given up gets the task's new times, and another chance; so does one that refuted
 * what it looked at: the same lie was committed again, by the next solver, and is claimed again;
 * and one that ended in a fault of the machine, for when somebody has looked at that.
 * One that runs gets the times: should it end without an answer, it is tried again until then. */
MUST_CHECK enum status queue_revive(struct store *store, const struct store_segment *segment,
                                    const struct task *task, struct error *error);

/* A check of this content that is done, or was given up, is made once more: it did not answer what
 * is asked of it now. One that waits or runs is left alone. */
MUST_CHECK enum status queue_recheck(struct store *store, const struct store_segment *segment,
                                     const struct task *task, struct error *error);

/* ---- moves --------------------------------------------------------------- */

struct action {
    char name[LEDGER_NAME_MAX + 1];
    enum action_kind kind;
    struct hash32 segment; /* its hash; zero where the move is about none */
    struct hash32 claim;   /* likewise */
    struct digest before;
    struct digest pre_state;
    struct digest post_state; /* ATTEST, REVEAL: the trace root */
    /* SEAL, CLAIM: who is accused; zero: the solver. Of an attestor pre_state is the trace root
     * that it revealed, post_state the true one. */
    struct address attestor;
    uint32_t step;  /* ASK, CONVICT, TELL: the number of the turn */
    uint64_t due_s; /* after this second, */
    uint64_t due_height;
    uint64_t late_s;                 /* until this one */
    char after[LEDGER_NAME_MAX + 1]; /* the move that must be in a block before; empty: none */
    enum action_state state;
    uint32_t tries;
    enum game_refusal_kind refusal; /* REFUSED: by the rules of the game; else GAME_REFUSED_NOT */
};

/* Does nothing when the name is there already. */
MUST_CHECK enum status action_plan(struct store *store, const struct action *action,
                                   struct error *error);
MUST_CHECK enum status action_find(struct store *store, struct action *action, const char *name,
                                   struct error *error);

/* Fills in those in a state that are due; *count of at most QUEUE_ACTIONS_MAX. */
MUST_CHECK enum status action_list(struct store *store, struct action *actions, uint32_t *count,
                                   enum action_state state, uint64_t now_s, uint64_t height,
                                   struct error *error);
MUST_CHECK enum status action_set(struct store *store, const struct action *action,
                                  enum action_state state, uint64_t due_s, const char *trouble,
                                  struct error *error);

MUST_CHECK enum status action_forget(struct store *store, const struct action *action,
                                     struct error *error);

/* The newest move about a claim in one of its turns, and how many there are: the others were
 * refused. STATUS_NOT_FOUND: none yet. */
MUST_CHECK enum status action_of_turn(struct store *store, struct action *action, uint32_t *count,
                                      const struct hash32 *claim, uint32_t turn,
                                      struct error *error);
/* How many of them were refused as not guilty. */
MUST_CHECK enum status action_count_acquitted(struct store *store, uint32_t *count,
                                              const struct hash32 *claim, uint32_t turn,
                                              struct error *error);

/* "attest/" and the hash in hex: the same move has the same name after any crash. */
void action_name(char name[LEDGER_NAME_MAX + 1], enum action_kind kind, const struct hash32 *about);

#endif /* VERIFIER_STORE_QUEUE_H */
