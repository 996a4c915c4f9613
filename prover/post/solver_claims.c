/* solver_claims.c - see solver_claims.h. */
#include "prover/post/solver_claims.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Claims against the solver, and claims that timed out, earliest deadline first. *left: how many
 * more there are. */
static uint32_t find_due(struct solver_claim *due, uint32_t *left,
                         const struct solver_claims *claims)
{
    const struct job_record *record = claims->record;
    uint32_t count = 0;

    *left = 0;
    for (uint32_t i = 0; i < record->claim_count; i++) {
        const struct job_record_claim *shown = &record->claims[i];
        bool against_us = address_equal(&shown->solver, claims->account);
        uint32_t place = count;

        if (!job_record_claim_is_open(shown) || shown->state.deadline_s == 0 ||
            (shown->state.turn == GAME_TURN_ACCUSED
                 ? !against_us
                 : claims->clock->time_s <= shown->state.deadline_s)) {
            continue;
        }
        while (place > 0 && due[place - 1].shown->state.deadline_s > shown->state.deadline_s) {
            place--;
        }
        *left += count == SOLVER_CLAIMS_MAX;
        if (place == SOLVER_CLAIMS_MAX) {
            continue;
        }
        count += count < SOLVER_CLAIMS_MAX;
        memmove(&due[place + 1], &due[place], (count - 1 - place) * sizeof(due[0]));
        memset(&due[place], 0, sizeof(due[0]));
        due[place].shown = shown;
    }
    return count;
}

/* A claimant that missed its turn has lost; anybody may end the claim. */
static void time_out(struct solver_claims *claims, struct solver_claim *due)
{
    struct error error;

    error_init(&error);
    (void)snprintf(due->name, SOLVER_CLAIM_NAME_SIZE, "claim %s timeout %u", due->key,
                   due->shown->state.turns);
    solver_view_follow(claims->view, claims->ledger, "timeout of a claim", due->name,
                       ledger_timeout(claims->ledger, due->name, &due->shown->key, &error), &error);
}

/* Fills the request for the claim's turn: the trace root first, then replies. The name has the
 * number of the turn, so each is sent once. False: nothing can be sent, or it is on its way. */
static bool wants_answer(struct solver_claims *claims, struct solver_claim *due)
{
    const struct job_record_claim *shown = due->shown;
    bool tried = due->claim.phase == GAME_CLAIM_TRIED;
    struct ledger_outcome outcome;
    struct move_retry retry;
    char words[MOVE_RETRY_TEXT_SIZE];
    char turn[SOLVER_CLAIM_NAME_SIZE];
    uint32_t times;
    struct error error;

    claims->view->awaited++;
    if (claims->clock->time_s > due->claim.deadline_s) {
        solver_view_note(claims->view, "claim %.18s against segment %u was not answered in time",
                         due->key, shown->index);
        return false;
    }
    if (claims->respond == NULL || (tried && shown->queried_size == 0)) {
        solver_view_note(claims->view,
                         "claim %.18s against segment %u waits for the solver's answer", due->key,
                         shown->index);
        return false;
    }
    error_init(&error);
    /* The number of the turn is in the name: after a restart the ledger knows the move by it. */
    (void)snprintf(turn, SOLVER_CLAIM_NAME_SIZE, "claim %s %s %u", due->key,
                   tried ? "reply" : "answer", due->shown->state.turns);
    if (move_retry_find(due->name, &outcome, &times, claims->ledger, turn, &error) == STATUS_OK &&
        /* On its way, or taken: what was refused may be sent again, by another name. */
        outcome.state != LEDGER_MOVE_REFUSED) {
        return false;
    }
    due->held = times > 0 && move_retry_hold(&claims->retries, &retry, turn, times,
                                             claims->clock->time_s, due->claim.deadline_s);
    if (due->held) {
        claims->view->pending++;
        move_retry_say(words, &retry, &outcome, due->claim.deadline_s);
        solver_view_note(claims->view, "%s claim %.18s: %s",
                         tried ? "the reply in" : "the answer to", due->key, words);
    }
    due->request.step = (uint64_t)shown->index * claims->segment_steps + shown->step;
    due->request.deadline_s = due->claim.deadline_s;
    due->request.query_size = tried ? shown->queried_size : 0;
    memcpy(due->request.query, shown->queried, due->request.query_size);
    return true;
}

static enum status submit_answer(struct solver_claims *claims, const struct solver_claim *due,
                                 struct error *error)
{
    const struct hash32 *key = &due->shown->key;
    struct game_bytes query = {due->request.query, due->request.query_size};
    struct digest root;
    size_t size = 0;

    TRY(respond_get(claims->respond, claims->answer, &size, &due->request, error));
    if (due->claim.phase == GAME_CLAIM_TRIED) {
        return ledger_reply(claims->ledger, due->name, key, &query, claims->answer, size, error);
    }
    memcpy(root.bytes, claims->answer, DIGEST_SIZE);
    return ledger_answer(claims->ledger, due->name, key, &root, error);
}

static void answer_claim(struct solver_claims *claims, const struct solver_claim *due)
{
    struct error error;
    enum status status;

    error_init(&error);
    status = submit_answer(claims, due, &error);
    if (status != STATUS_NOT_FOUND) {
        solver_view_follow(claims->view, claims->ledger,
                           due->claim.phase == GAME_CLAIM_TRIED ? "reply to a query"
                                                                : "answer to a claim",
                           due->name, status, &error);
    }
}

/* Warns while the operator can still help: more processors, fewer jobs on the machine. */
static void foresee_loss(struct solver_claims *claims, const struct solver_claim *due,
                         uint32_t count)
{
    uint32_t hopeless = 0;
    double seconds = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t left_s = due[i].claim.deadline_s - claims->clock->time_s;

        if (i == 0 || due[i].request.step != due[i - 1].request.step) {
            seconds += respond_forecast(claims->respond, due[i].request.step);
        }
        if (seconds > (double)left_s) {
            hopeless++;
            solver_view_note(
                claims->view,
                "claim %.18s against segment %u will not be answered in time: that takes "
                "about %.0f s, and %" PRIu64 " s are left",
                due[i].key, due[i].shown->index, seconds, left_s);
        }
    }
    if (hopeless > claims->view->hopeless) {
        claims->view->hopeless = hopeless;
    }
}

static void answer_all(struct solver_claims *claims, struct solver_claim *due, uint32_t count)
{
    uint32_t wanted = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (wants_answer(claims, &due[i])) {
            claims->requests[wanted] = due[i].request;
            if (wanted != i) {
                due[wanted] = due[i];
            }
            wanted++;
        }
    }
    if (claims->respond == NULL) {
        return;
    }
    respond_want(claims->respond, claims->requests, wanted);
    foresee_loss(claims, due, wanted);
    for (uint32_t i = 0; i < wanted; i++) {
        if (!due[i].held) {
            answer_claim(claims, &due[i]);
        }
    }
}

void solver_claims_act(struct solver_claims *claims)
{
    struct solver_claim *due = claims->due;
    uint32_t left = 0;
    uint32_t count = find_due(due, &left, claims);
    uint32_t ours = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct error error;

        error_init(&error);
        hex_write(due[i].key, due[i].shown->key.bytes, HASH32_SIZE, true);
        if (ledger_get_claim(claims->ledger, &due[i].claim, &due[i].shown->key, &error) !=
            STATUS_OK) {
            solver_view_note(claims->view, "a claim cannot be read: %.300s", error.text);
            continue;
        }
        if (due[i].claim.turn == GAME_TURN_CLAIMANT && due[i].claim.phase == GAME_CLAIM_TRIED &&
            claims->clock->time_s > due[i].claim.deadline_s) {
            time_out(claims, &due[i]);
        } else if (due[i].claim.turn == GAME_TURN_ACCUSED) {
            if (ours != i) {
                due[ours] = due[i];
            }
            ours++;
        }
    }
    answer_all(claims, due, ours);
    if (left > 0) {
        solver_view_note(claims->view, "%u more claims wait for those with an earlier deadline",
                         left);
    }
}
