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

/* What a child does. */
enum task_kind {
    TASK_CHECK = 0,
    TASK_FETCH, /* fetches the states that a segment of a seat begins and ends with */
    TASK_TRIAL, /* of a job: is all that a step needs to be had, and how long does one take? */
};
#define TASK_KINDS 3

enum task_state {
    TASK_WAITING = 0,
    TASK_RUNNING,
    TASK_DONE,
    TASK_SKIPPED, /* its time is over, or it makes no sense */
};
#define TASK_STATES 4

/* A move on the ledger. */
enum action_kind {
    ACTION_ENLIST = 0,
    ACTION_DEPART, /* from a panel, with the bond */
    ACTION_SEAL,   /* SEAL, REVEAL, ALARM: the verdict of a place; the verdict database has it */
    ACTION_REVEAL,
    ACTION_ALARM,
    ACTION_UNSEEN,         /* of a place that could not get the states */
    ACTION_SEAL_CHALLENGE, /* SEAL_CHALLENGE, CHALLENGE: of another's right */
    ACTION_CHALLENGE,
    ACTION_SEAL_CLAIM, /* SEAL_CLAIM, CLAIM: of an outsider */
    ACTION_CLAIM,
    ACTION_QUERY, /* QUERY, CONVICT: turns of a dispute; the claim's folder has the bytes */
    ACTION_CONVICT,
    ACTION_WITHDRAW,
    ACTION_ANNOUNCE, /* where the node is found now */
    ACTION_DRAW,     /* from here on: anybody's moves */
    ACTION_TIMEOUT,
    ACTION_LAPSE,
    ACTION_PAY,
    ACTION_SETTLE,
    ACTION_RELEASE,
};
#define ACTION_KINDS 20

enum action_state {
    ACTION_PLANNED = 0,
    ACTION_SENT,
    ACTION_DONE,
    ACTION_REFUSED,
    ACTION_LATE,      /* its time was over before it could be sent */
    ACTION_OVERTAKEN, /* anybody's move: somebody else made one first */
};
#define ACTION_STATES 6

/* What the node wants of a job's panel. */
enum store_wish {
    STORE_UNDECIDED = 0,
    STORE_ENLIST,
    STORE_PASS,
    STORE_DEPART, /* the policy agrees no longer */
};

/* What the node wants of a segment, besides its places in it. */
enum store_choice {
    STORE_CHOICE_NONE = 0,
    STORE_CHOICE_EXTRA, /* a secret sample */
    STORE_CHOICE_PASS,
};

/* Somebody's revealed right. */
enum store_judgement {
    STORE_NOT_JUDGED = 0,
    STORE_TRUE,
    STORE_FALSE, /* to be challenged */
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
extern const struct store_words store_seat_phase_words;
extern const struct store_words store_verdict_words;
extern const struct store_words store_task_state_words;
extern const struct store_words store_action_kind_words;
extern const struct store_words store_action_state_words;
extern const struct store_words store_judgement_words;

/* For `struct database`: the names of all values, as ":task_done", ":action_sent", ":convict". */
extern const struct database_name store_names[];

/* What is said where a row of the database cannot be what the node wrote. */
MUST_CHECK enum status store_damaged(struct error *error);

#endif /* VERIFIER_STORE_STORE_WORDS_H */
