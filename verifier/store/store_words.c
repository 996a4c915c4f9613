/* store_words.c - see store_words.h. */
#include "verifier/store/store_words.h"

#include "chain/game/game.h"
#include "verifier/check/check_wire.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define WORDS_OF(array)                                                                            \
    {                                                                                              \
        COUNT_OF(array), array                                                                     \
    }

static const char *const job_phases[] = {"unknown", "open", "running", "closed"};
static const char *const claim_phases[] = {"not on the ledger yet", "called", "tried", "closed"};
static const char *const task_states[] = {"waiting", "running", "done", "skipped"};
static const char *const action_kinds[] = {"draw",    "attest",  "reveal",   "settle",   "seal",
                                           "claim",   "timeout", "lapse",    "withdraw", "query",
                                           "convict", "reply",   "finalize", "expire",   "renew"};
static const char *const action_states[] = {"planned", "sent", "done",
                                            "refused", "late", "overtaken"};
static const char *const audits[] = {"new", "to be compared", "true", "passed over", "false"};

_Static_assert(COUNT_OF(job_phases) == GAME_PHASE_CLOSED + 1, "a word for each phase");
_Static_assert(COUNT_OF(claim_phases) == GAME_CLAIM_CLOSED + 1, "a word for each phase");
_Static_assert(COUNT_OF(task_states) == TASK_STATES, "a word for each state");
_Static_assert(COUNT_OF(action_kinds) == ACTION_KINDS, "a word for each kind");
_Static_assert(COUNT_OF(action_states) == ACTION_STATES, "a word for each state");
_Static_assert(COUNT_OF(audits) == STORE_AUDIT_FALSE + 1, "a word for each audit");

const struct store_words store_job_phase_words = WORDS_OF(job_phases);
const struct store_words store_claim_phase_words = WORDS_OF(claim_phases);
const struct store_words store_task_state_words = WORDS_OF(task_states);
const struct store_words store_action_kind_words = WORDS_OF(action_kinds);
const struct store_words store_action_state_words = WORDS_OF(action_states);
const struct store_words store_audit_words = WORDS_OF(audits);

const char *action_kind_name(enum action_kind kind)
{
    return action_kinds[kind];
}

const char *action_state_name(enum action_state state)
{
    return action_states[state];
}

const char *task_state_name(enum task_state state)
{
    return task_states[state];
}

const struct database_name store_names[] = {
    {"task_waiting", TASK_WAITING},
    {"task_running", TASK_RUNNING},
    {"task_done", TASK_DONE},
    {"task_skipped", TASK_SKIPPED},
    {"cannot_tell", CHECK_CANNOT_TELL},
    {"proven", CHECK_PROVEN},
    {"refuted", CHECK_REFUTED},
    {"fault", CHECK_FAULT},
    {"attest", ACTION_ATTEST},
    {"settle", ACTION_SETTLE},
    {"seal", ACTION_SEAL},
    {"claim", ACTION_CLAIM},
    {"query", ACTION_QUERY},
    {"convict", ACTION_CONVICT},
    {"reply", ACTION_REPLY},
    {"finalize", ACTION_FINALIZE},
    {"expire", ACTION_EXPIRE},
    {"renew", ACTION_RENEW},
    {"action_planned", ACTION_PLANNED},
    {"action_sent", ACTION_SENT},
    {"action_done", ACTION_DONE},
    {"action_refused", ACTION_REFUSED},
    {"action_late", ACTION_LATE},
    {"undecided", STORE_UNDECIDED},
    {"to_attest", STORE_ATTEST},
    {"extra", STORE_EXTRA},
    {"passed_over", STORE_PASS},
    {"sampled", STORE_SAMPLED},
    {"not_mine", STORE_MINE_NOT},
    {"sealed", STORE_MINE_SEALED},
    {"revealed", STORE_MINE_REVEALED},
    {"settled", STORE_MINE_SETTLED},
    {"lost", STORE_MINE_LOST},
    {"audit_new", STORE_AUDIT_NEW},
    {"audit_queued", STORE_AUDIT_QUEUED},
    {"job_running", GAME_PHASE_RUNNING},
    {"claim_none", GAME_CLAIM_NONE},
    {"claim_closed", GAME_CLAIM_CLOSED},
    {"turn_claimant", GAME_TURN_CLAIMANT},
    {"turn_accused", GAME_TURN_ACCUSED},
    {NULL, 0},
};
