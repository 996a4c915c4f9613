/*
 * store_words.h - the enums of the node's database, their words for people, and their names in SQL.
 *
 * The database keeps the numbers, so a value never changes and a new one goes to the end. A
 * statement binds them by name (":task_done"): see database.h.
 */
#ifndef VERIFIER_STORE_STORE_WORDS_H
#define VERIFIER_STORE_STORE_WORDS_H

#include <stdint.h>

#include "base/io/database.h"

/* A check of a segment. */
enum task_state {
    TASK_WAITING = 0,
    TASK_RUNNING,
    TASK_DONE,
    TASK_SKIPPED, /* its time is over, or it makes no sense */
};
#define TASK_STATES 4

/* A move on the ledger. */
enum action_kind {
    ACTION_DRAW = 0,
    ACTION_ATTEST,
    ACTION_REVEAL,
    ACTION_SETTLE,
    ACTION_SEAL,
    ACTION_CLAIM,
    ACTION_TIMEOUT,
    ACTION_LAPSE,
    ACTION_WITHDRAW,
    ACTION_QUERY, /* QUERY, CONVICT, REPLY: turns of a dispute; the claim's folder has the bytes */
    ACTION_CONVICT,
    ACTION_REPLY,
    ACTION_FINALIZE, /* FINALIZE, EXPIRE, RENEW: anybody's moves after a solver's timeout */
    ACTION_EXPIRE,
    ACTION_RENEW,
};
#define ACTION_KINDS 15

enum action_state {
    ACTION_PLANNED = 0,
    ACTION_SENT,
    ACTION_DONE,
    ACTION_REFUSED,
    ACTION_LATE,      /* its time was over before it could be sent */
    ACTION_OVERTAKEN, /* anybody's move: somebody else made one first */
};
#define ACTION_STATES 6

/* What the node wants of a segment. */
enum store_choice {
    STORE_UNDECIDED = 0,
    STORE_ATTEST,
    STORE_EXTRA, /* a secret sample */
    STORE_PASS,
    STORE_SAMPLED, /* to be attested, and its check is in the queue */
};

/* The node's own attestation of a segment. */
enum store_mine {
    STORE_MINE_NOT = 0,
    STORE_MINE_SEALED,
    STORE_MINE_REVEALED,
    STORE_MINE_SETTLED,
    STORE_MINE_LOST, /* settled, and the bond went to somebody else */
};

/* The audit of an attestation: a trace root that somebody else revealed. */
enum store_audit {
    STORE_AUDIT_NEW = 0,
    STORE_AUDIT_QUEUED, /* a check of its step is in the queue */
    STORE_AUDIT_TRUE,
    STORE_AUDIT_PASS,
    STORE_AUDIT_FALSE, /* two replays gave another root */
};

const char *action_kind_name(enum action_kind kind);
const char *action_state_name(enum action_state state);
const char *task_state_name(enum task_state state);

/* One word for each value of a column. */
struct store_words {
    uint32_t count;
    const char *const *words;
};

extern const struct store_words store_job_phase_words;
extern const struct store_words store_claim_phase_words;
extern const struct store_words store_task_state_words;
extern const struct store_words store_action_kind_words;
extern const struct store_words store_action_state_words;
extern const struct store_words store_audit_words;

/* For `struct database`: the names of all values, as ":task_done", ":action_sent", ":convict". */
extern const struct database_name store_names[];

#endif /* VERIFIER_STORE_STORE_WORDS_H */
