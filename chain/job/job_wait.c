/* job_wait.c - see job_wait.h. */
#include "chain/job/job_wait.h"

#include <stdio.h>

#include "chain/game/terms.h"
#include "chain/job/due_moves.h"

bool job_wait_is_over(const struct job_record *record)
{
    return record->phase == GAME_PHASE_CLOSED &&
           (record->delivered || record->held == 0 || record->terms.held_ppm == 0);
}

/* The first segment that is not final holds up all later ones. */
static void describe_first(struct job_wait *wait, const struct job_record *record, uint64_t now_s)
{
    uint32_t first = record->finalized;
    char time[TERMS_TIME_SIZE];
    struct job_status status;

    job_status_describe(&status, record, first, now_s);
    wait->word = status.word;
    wait->segment = first;
    wait->until_s = status.until_s != 0 ? status.until_s : due_move_after(record, now_s);
    terms_time(time, wait->until_s);
    (void)snprintf(wait->text, sizeof(wait->text), "segment %u: %s%s%s", first, status.text,
                   status.until_s == 0 && wait->until_s != 0 ? "; their turn ends " : "",
                   status.until_s == 0 && wait->until_s != 0 ? time : "");
}

static void describe_running(struct job_wait *wait, const struct job_record *record, uint64_t now_s)
{
    bool late = now_s > record->due_s;
    char time[TERMS_TIME_SIZE];

    if (record->finalized < record->committed) {
        describe_first(wait, record, now_s);
        return;
    }
    wait->word = late ? "end" : "commit";
    wait->until_s = late ? record->terms.deadline_s : record->due_s;
    terms_time(time, wait->until_s);
    (void)snprintf(wait->text, sizeof(wait->text),
                   late ? "the deadline, %s: the whole stake comes back then"
                        : "the solver, which has until %s to commit the next segment",
                   time);
}

/* The one round in which the panel says whether the last state can be had. */
static void describe_ask(struct job_wait *wait, size_t size, const struct job_record *record,
                         wei held, uint64_t now_s)
{
    uint64_t until_s = record->closed_s + record->terms.delivery_period_s / 2;
    wei cost = 2 * (wei)record->terms.seats * record->terms.fee;
    char amount[TERMS_AMOUNT_SIZE];
    char period[TERMS_PERIOD_SIZE];

    if (record->asked) {
        (void)snprintf(wait->text + size, sizeof(wait->text) - size,
                       ". The panel was asked; its answer decides");
    } else if (job_record_can_deny(record) && now_s <= until_s) {
        terms_amount(amount, cost);
        terms_period(period, until_s - now_s);
        (void)snprintf(wait->text + size, sizeof(wait->text) - size,
                       ". If nobody has it, 'lockstep job ask-panel' may bring the held part back: "
                       "it costs %s, for %s more%s",
                       amount, period,
                       cost >= held ? ", which is no less than what it brings" : "");
    }
}

/* The client has the model fetched, or asks the panel in the first half of the period. */
static void describe_delivery(struct job_wait *wait, const struct job_record *record,
                              uint64_t now_s)
{
    wei held = record->reward * record->terms.held_ppm / GAME_PPM * record->held;
    char amount[TERMS_AMOUNT_SIZE];
    char period[TERMS_PERIOD_SIZE];
    int written;

    wait->word = "delivery";
    wait->until_s = record->closed_s + record->terms.delivery_period_s;
    terms_amount(amount, held);
    terms_period(period, wait->until_s > now_s ? wait->until_s - now_s : 0);
    written = snprintf(wait->text, sizeof(wait->text),
                       "the client: %s are held for %s more; 'lockstep job fetch' brings the model "
                       "and acknowledges it",
                       amount, period);
    if (written > 0 && (size_t)written < sizeof(wait->text)) {
        describe_ask(wait, (size_t)written, record, held, now_s);
    }
}

bool job_wait_describe(struct job_wait *wait, const struct job_record *record, uint64_t now_s)
{
    char time[TERMS_TIME_SIZE];

    *wait = (struct job_wait){.word = "solver", .segment = -1};
    if (record->phase == GAME_PHASE_RUNNING) {
        describe_running(wait, record, now_s);
    } else if (record->phase == GAME_PHASE_OPEN) {
        wait->until_s = record->terms.deadline_s;
        terms_time(time, wait->until_s);
        (void)snprintf(wait->text, sizeof(wait->text),
                       "a solver that accepts it, until %s; 'lockstep job cancel' takes back the "
                       "rest of the escrow before",
                       time);
    } else if (record->phase == GAME_PHASE_CLOSED && !job_wait_is_over(record)) {
        describe_delivery(wait, record, now_s);
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
