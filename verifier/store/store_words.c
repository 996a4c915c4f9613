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
static const char *const claim_phases[] = {"not on the ledger yet", "waiting", "called", "tried",
                                           "closed"};
static const char *const seat_phases[] = {"drawn", "sealed", "revealed", "unseen", "closed"};
static const char *const verdicts[] = {"none", "right", "false"};
static const char *const task_states[] = {"waiting", "running", "done", "skipped"};
static const char *const action_kinds[] = {
    "enlist",    "depart",     "seal",  "reveal", "alarm",   "unseen",   "seal-challenge",
    "challenge", "seal-claim", "claim", "query",  "convict", "withdraw", "announce",
    "draw",      "timeout",    "lapse", "pay",    "settle",  "release"};
static const char *const action_states[] = {"planned", "sent", "done",
                                            "refused", "late", "overtaken"};
static const char *const judgements[] = {"not compared", "true", "false"};

_Static_assert(COUNT_OF(job_phases) == GAME_PHASE_CLOSED + 1, "a word for each phase");
_Static_assert(COUNT_OF(claim_phases) == GAME_CLAIM_CLOSED + 1, "a word for each phase");
_Static_assert(COUNT_OF(seat_phases) == GAME_SEAT_CLOSED + 1, "a word for each phase");
_Static_assert(COUNT_OF(verdicts) == GAME_VERDICT_FALSE + 1, "a word for each verdict");
_Static_assert(COUNT_OF(task_states) == TASK_STATES, "a word for each state");
_Static_assert(COUNT_OF(action_kinds) == ACTION_KINDS, "a word for each kind");
_Static_assert(COUNT_OF(action_states) == ACTION_STATES, "a word for each state");
_Static_assert(COUNT_OF(judgements) == STORE_FALSE + 1, "a word for each judgement");

const struct store_words store_job_phase_words = WORDS_OF(job_phases);
const struct store_words store_claim_phase_words = WORDS_OF(claim_phases);
const struct store_words store_seat_phase_words = WORDS_OF(seat_phases);
const struct store_words store_verdict_words = WORDS_OF(verdicts);
const struct store_words store_task_state_words = WORDS_OF(task_states);
const struct store_words store_action_kind_words = WORDS_OF(action_kinds);
const struct store_words store_action_state_words = WORDS_OF(action_states);
const struct store_words store_judgement_words = WORDS_OF(judgements);

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
    {"checks", TASK_CHECK},
    {"fetch", TASK_FETCH},
    {"trial", TASK_TRIAL},
    {"task_waiting", TASK_WAITING},
    {"task_running", TASK_RUNNING},
    {"task_done", TASK_DONE},
    {"task_skipped", TASK_SKIPPED},
    {"cannot_tell", CHECK_CANNOT_TELL},
    {"proven", CHECK_PROVEN},
    {"refuted", CHECK_REFUTED},
    {"fault", CHECK_FAULT},
    {"enlist", ACTION_ENLIST},
    {"depart", ACTION_DEPART},
    {"draw", ACTION_DRAW},
    {"seal", ACTION_SEAL},
    {"reveal", ACTION_REVEAL},
    {"alarm", ACTION_ALARM},
    {"unseen", ACTION_UNSEEN},
    {"challenge", ACTION_CHALLENGE},
    {"seal_claim", ACTION_SEAL_CLAIM},
    {"claim", ACTION_CLAIM},
    {"query", ACTION_QUERY},
    {"convict", ACTION_CONVICT},
    {"timeout", ACTION_TIMEOUT},
    {"settle", ACTION_SETTLE},
    {"withdraw", ACTION_WITHDRAW},
    {"action_planned", ACTION_PLANNED},
    {"action_sent", ACTION_SENT},
    {"action_done", ACTION_DONE},
    {"action_refused", ACTION_REFUSED},
    {"action_late", ACTION_LATE},
    {"undecided", STORE_UNDECIDED},
    {"to_enlist", STORE_ENLIST},
    {"to_pass", STORE_PASS},
    {"to_depart", STORE_DEPART},
    {"not_chosen", STORE_CHOICE_NONE},
    {"extra", STORE_CHOICE_EXTRA},
    {"passed_over", STORE_CHOICE_PASS},
    {"not_judged", STORE_NOT_JUDGED},
    {"judged_false", STORE_FALSE},
    {"job_open", GAME_PHASE_OPEN},
    {"job_running", GAME_PHASE_RUNNING},
    {"job_closed", GAME_PHASE_CLOSED},
    {"claim_none", GAME_CLAIM_NONE},
    {"claim_tried", GAME_CLAIM_TRIED},
    {"claim_closed", GAME_CLAIM_CLOSED},
    {"turn_claimant", GAME_TURN_CLAIMANT},
    {"upheld", GAME_UPHELD},
    {"refuted_claim", GAME_REFUTED},
    {"seat_drawn", GAME_SEAT_NONE},
    {"seat_sealed", GAME_SEAT_SEALED},
    {"seat_revealed", GAME_SEAT_REVEALED},
    {"seat_unseen", GAME_SEAT_UNSEEN},
    {"seat_closed", GAME_SEAT_CLOSED},
    {"right", GAME_VERDICT_RIGHT},
    {"none_unpaid", UINT32_MAX},
    {NULL, 0},
};

enum status store_damaged(struct error *error)
{
    return error_set(error, STATUS_BAD_FORMAT, "the node's database is damaged");
}
