/* job_wait.c - see job_wait.h. */
#include "chain/job/job_wait.h"

#include <stdio.h>

#include "base/hex.h"
#include "chain/game/terms.h"
#include "chain/job/due_moves.h"

#define KEY_BYTES 4 /* of a job's key, which each command takes */

bool job_wait_is_over(const struct job_record *record)
{
    return record->state.phase == GAME_PHASE_CLOSED;
}

/* The leg in front holds up all later ones: the segment that ends it, or, while none is covered,
 * the first whose draw says more. */
static uint32_t front_of(const struct job_record *record)
{
    uint32_t at = record->state.finalized;

    while (at + 1 < record->state.committed && at < record->state.drawn &&
           !record->segments[at].draw.covered) {
        at++;
    }
    return at;
}

static void describe_front(struct job_wait *wait, const struct job_record *record, uint64_t now_s)
{
    uint32_t front = front_of(record);
    char time[TERMS_TIME_SIZE];
    struct job_status status;

    job_status_describe(&status, record, front, now_s);
    wait->word = status.word;
    wait->segment = front;
    wait->until_s = status.until_s != 0 ? status.until_s : due_move_after(record, now_s);
    terms_time(time, wait->until_s);
    (void)snprintf(wait->text, sizeof(wait->text), "segment %u: %s%s%s", front, status.text,
                   status.until_s == 0 && wait->until_s != 0 ? "; their turn ends " : "",
                   status.until_s == 0 && wait->until_s != 0 ? time : "");
}

/* Nothing is committed that the panel looks at. */
static void describe_solver(struct job_wait *wait, const struct job_record *record, uint64_t now_s)
{
    bool late = now_s > record->state.due_s;
    char key[HEX_SIZE(KEY_BYTES)];
    char time[TERMS_TIME_SIZE];

    wait->word = late ? "release" : "commit";
    wait->until_s = late ? 0 : record->state.due_s;
    terms_time(time, record->state.due_s);
    if (!late) {
        (void)snprintf(wait->text, sizeof(wait->text),
                       "the solver, which has until %s to commit the next segment", time);
        return;
    }
    hex_encode(key, record->key.bytes, KEY_BYTES);
    (void)snprintf(wait->text, sizeof(wait->text),
                   "its release, which is due: the solver had until %s to commit. Anybody may make "
                   "it: 'lockstep job collect 0x%s'",
                   time, key);
}

/* A refusal that holds something is told with the segment in front. */
static void describe_refused(struct job_wait *wait, const struct job_record *record)
{
    char time[TERMS_TIME_SIZE];

    wait->word = "refusal";
    wait->until_s = record->state.refused_until_s;
    terms_time(time, record->state.refused_until_s);
    (void)snprintf(wait->text, sizeof(wait->text),
                   "the end of the refusal, %s; claims may come until then", time);
}

static void describe_running(struct job_wait *wait, const struct job_record *record, uint64_t now_s)
{
    bool front = record->state.leg_start > record->state.finalized ||
                 record->state.drawn < record->state.committed ||
                 job_record_open_claims(record) > 0;

    if (record->state.finalized < record->state.committed &&
        (front || record->state.refused_until_s != 0)) {
        describe_front(wait, record, now_s);
    } else if (record->state.refused_until_s != 0) {
        describe_refused(wait, record);
    } else {
        describe_solver(wait, record, now_s);
    }
}

/* A void burned a part of the escrow: the client puts it back, or takes the rest. */
static void describe_barred(struct job_wait *wait, const struct job_record *record)
{
    char amount[WEI_TEXT_SIZE];
    char time[TERMS_TIME_SIZE];

    wait->word = "client";
    currency_print(amount, &record->currency,
                   record->state.missing_escrow + record->state.missing_pool);
    terms_time(time, wait->until_s);
    (void)snprintf(wait->text, sizeof(wait->text),
                   "the client: segments were void, and their price burned. 'lockstep job resume' "
                   "puts %s back, until %s; 'lockstep job close' takes the rest",
                   amount, time);
}

static void describe_open(struct job_wait *wait, const struct job_record *record, uint64_t now_s)
{
    char time[TERMS_TIME_SIZE];

    wait->until_s = record->terms.deadline_s;
    terms_time(time, wait->until_s);
    if (now_s > record->terms.deadline_s) {
        wait->word = "close";
        wait->until_s = 0;
        (void)snprintf(wait->text, sizeof(wait->text),
                       "'lockstep job close', which anybody may call: the deadline was %s", time);
    } else if (record->state.barred) {
        describe_barred(wait, record);
    } else {
        (void)snprintf(wait->text, sizeof(wait->text),
                       "a solver that accepts it, until %s; 'lockstep job close' takes back the "
                       "rest of the escrow before",
                       time);
    }
}

bool job_wait_describe(struct job_wait *wait, const struct job_record *record, uint64_t now_s)
{
    *wait = (struct job_wait){.word = "solver", .segment = -1};
    if (record->state.phase == GAME_PHASE_RUNNING) {
        describe_running(wait, record, now_s);
    } else if (record->state.phase == GAME_PHASE_OPEN) {
        describe_open(wait, record, now_s);
    }
    return wait->text[0] != '\0';
}

json_t *job_wait_json(const struct job_wait *wait)
{
    return wait->text[0] == '\0'
               ? json_null()
               : json_pack("{s:s, s:o, s:I, s:s}", "for", wait->word, "segment",
                           wait->segment < 0 ? json_null() : json_integer(wait->segment), "until",
                           (json_int_t)wait->until_s, "text", wait->text);
}
