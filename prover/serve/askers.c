/* askers.c - see askers.h. */
#include "prover/serve/askers.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/steady.h"
#include "chain/job/job_record.h"

#define FOLLOW_LEAST_MS 200 /* between two looks at the ledger that asks have caused, */
#define SIGNED_LEAST_MS 200 /* ... and two questions to contracts */

/* Who is admitted by what is known waits for no endpoint. Taken in this order. */
struct askers {
    pthread_mutex_t following; /* the ledger and the time of the last look at it */
    pthread_mutex_t lock;      /* the record, and where it is from */
    struct ledger_options options;
    struct ledger *ledger; /* NULL: it was not reached yet */
    uint64_t followed_ms;
    uint64_t asked_ms; /* a contract, for its signature */
    struct game_place place;
    struct job_record record;
    bool is_read; /* to its end, once at least */
};

enum status askers_open(struct askers **askers, const struct ledger_options *options,
                        const struct hash32 *job, struct error *error)
{
    struct askers *made = calloc(1, sizeof(*made));

    *askers = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to follow a job");
    }
    (void)pthread_mutex_init(&made->following, NULL); /* neither can fail here */
    (void)pthread_mutex_init(&made->lock, NULL);
    made->options = *options;
    job_record_init(&made->record, job, NULL);
    *askers = made;
    return STATUS_OK;
}

void askers_close(struct askers *askers)
{
    if (askers != NULL) {
        ledger_close(askers->ledger);
        job_record_free(&askers->record);
        (void)pthread_mutex_destroy(&askers->following);
        (void)pthread_mutex_destroy(&askers->lock);
        free(askers);
    }
}

/* ---- the ledger ----------------------------------------------------------------- */

static enum status follow_ledger(struct askers *askers, struct error *error)
{
    enum status status;

    if (askers->ledger == NULL) {
        TRY(ledger_open(&askers->ledger, &askers->options, error));
    }
    TRY(ledger_catch_up(askers->ledger, error));
    (void)pthread_mutex_lock(&askers->lock);
    askers->place = *ledger_get_game(askers->ledger);
    status = job_record_follow(&askers->record, askers->ledger, error);
    askers->is_read = askers->is_read || status == STATUS_OK;
    (void)pthread_mutex_unlock(&askers->lock);
    return status;
}

/* Asks alone cannot make this machine look more often than that. */
static void follow_after(struct askers *askers, uint64_t least_ms)
{
    struct error ignored;

    error_init(&ignored);
    (void)pthread_mutex_lock(&askers->following);
    if (askers->followed_ms == 0 || steady_ms() >= askers->followed_ms + least_ms) {
        (void)!follow_ledger(askers, &ignored);
        askers->followed_ms = steady_ms();
    }
    (void)pthread_mutex_unlock(&askers->following);
}

void askers_follow(struct askers *askers)
{
    follow_after(askers, 0);
}

/* ---- asks ----------------------------------------------------------------------- */

static bool is_about(const struct askers *askers, const struct job_record_claim *claim,
                     uint64_t step)
{
    return job_record_claim_is_open(claim) &&
           (uint64_t)claim->index * askers->record.terms.segment_steps + claim->step == step;
}

static bool is_disputed(const struct askers *askers, uint64_t step)
{
    for (uint32_t i = 0; i < askers->record.claim_count; i++) {
        if (is_about(askers, &askers->record.claims[i], step)) {
            return true;
        }
    }
    return false;
}

static bool is_party(const struct askers *askers, const struct address *account, uint64_t step)
{
    const struct job_record *record = &askers->record;

    if (address_equal(account, &record->client) || address_equal(account, &record->state.solver)) {
        return true;
    }
    for (uint32_t i = 0; i < record->state.entries; i++) {
        if (address_equal(account, &record->entries[i].owner)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < record->claim_count; i++) {
        if (is_about(askers, &record->claims[i], step) &&
            job_record_is_claimant(&record->claims[i], account)) {
            return true;
        }
    }
    return false;
}

/* Whose is it? The claim of a contract has a size; its word is still to be heard. */
static bool read_ask(struct address *party, struct ask_claim *claim, struct ask *ask,
                     const char *text, uint64_t now_s)
{
    claim->signature_size = 0;
    if (ask_read(party, ask, text, now_s) == VERDICT_VALID) {
        return true;
    }
    if (ask_read_contract(claim, ask, text, now_s) != VERDICT_VALID) {
        return false;
    }
    *party = claim->account;
    return true;
}

static enum status judge_ask(const struct askers *askers, struct address *party,
                             struct ask_claim *claim, const char *text, uint64_t step,
                             uint64_t now_s, struct error *error)
{
    const uint32_t length = askers->record.terms.segment_steps;
    struct ask ask = {.place = askers->place, .job = askers->record.key};

    if (!askers->is_read || length == 0) {
        return error_set(error, STATUS_UNREACHABLE,
                         "the ledger, which says who may ask, cannot be read now");
    }
    if (!is_disputed(askers, step)) {
        return error_set(
            error, STATUS_REFUSED,
            "no open claim or alarm is about step %" PRIu64 ": nothing is told of its trace", step);
    }
    ask.index = (uint32_t)(step / length);
    ask.step = (uint32_t)(step % length);
    if (!read_ask(party, claim, &ask, text, now_s)) {
        return error_set(error, STATUS_REFUSED,
                         "the signature in " ASK_HEADER
                         " is not about this step, or its time is over");
    }
    return is_party(askers, party, step)
               ? STATUS_OK
               : error_set(error, STATUS_REFUSED, "who signed the ask is no party of the job");
}

/* Only a party's contract is asked, and not often. Under the lock `following`. */
static enum status take_turn(struct askers *askers, struct error *error)
{
    const uint64_t now_ms = steady_ms();

    if (askers->asked_ms != 0 && now_ms < askers->asked_ms + SIGNED_LEAST_MS) {
        return error_set(error, STATUS_UNREACHABLE,
                         "a contract was asked for its signature just now: try again");
    }
    askers->asked_ms = now_ms;
    return STATUS_OK;
}

static enum status ask_contract(struct askers *askers, const struct ask_claim *claim,
                                struct error *error)
{
    const struct game_bytes signature = {claim->signature, claim->signature_size};
    enum status status;

    (void)pthread_mutex_lock(&askers->following);
    status = take_turn(askers, error);
    if (status == STATUS_OK) {
        status =
            ledger_get_signed(askers->ledger, &claim->account, &claim->digest, &signature, error);
    }
    (void)pthread_mutex_unlock(&askers->following);
    return status;
}

/* *asked: a contract was, or waits for its turn; no event changes its word. */
static enum status admit_party(struct askers *askers, struct address *party, bool *asked,
                               const char *text, uint64_t step, uint64_t now_s, struct error *error)
{
    struct ask_claim claim = {.signature_size = 0};
    enum status status;

    error_init(error);
    (void)pthread_mutex_lock(&askers->lock);
    status = judge_ask(askers, party, &claim, text, step, now_s, error);
    (void)pthread_mutex_unlock(&askers->lock);
    *asked = status == STATUS_OK && claim.signature_size > 0;
    return *asked ? ask_contract(askers, &claim, error) : status;
}

/* What is refused may be allowed by events that are not read yet. */
enum status askers_admit(struct askers *askers, struct address *party, const char *text,
                         uint64_t step, uint64_t now_s, struct error *error)
{
    enum status status;
    bool asked;

    if (text == NULL) {
        return error_set(error, STATUS_REFUSED,
                         "an ask about a trace is signed by a party of the job, in the "
                         "header " ASK_HEADER);
    }
    status = admit_party(askers, party, &asked, text, step, now_s, error);
    if (status == STATUS_OK || asked) {
        return status;
    }
    follow_after(askers, FOLLOW_LEAST_MS);
    return admit_party(askers, party, &asked, text, step, now_s, error);
}

/* ---- vouches -------------------------------------------------------------------- */

/* STATUS_OK: a key has signed it, or *asks: the keeper's contract may have. */
static enum status judge_vouch(const struct askers *askers, struct address *keeper, bool *asks,
                               const struct vouch *vouch, struct error *error)
{
    const struct job_record *record = &askers->record;

    if (!askers->is_read) {
        return error_set(error, STATUS_UNREACHABLE,
                         "the ledger, which says who the keeper is, cannot be read now");
    }
    if (address_is_zero(&record->terms.keeper) || !job_record_is_open(record, &vouch->segment)) {
        return error_set(error, STATUS_REFUSED,
                         "no segment of that hash is open in a job that has a keeper");
    }
    *keeper = record->terms.keeper;
    *asks = false;
    if (vouch_check(vouch, &askers->place, &record->key, keeper) == VERDICT_VALID) {
        return STATUS_OK;
    }
    *asks = !ledger_is_embedded(askers->options.url);
    return *asks ? STATUS_OK
                 : error_set(error, STATUS_REFUSED, "the job's keeper has not signed that");
}

/* *asks: a contract was asked, or waits for its turn. */
static enum status admit_vouch(struct askers *askers, bool *asks, const struct vouch *vouch,
                               struct error *error)
{
    struct address keeper;
    enum status status;

    error_init(error);
    *asks = false;
    (void)pthread_mutex_lock(&askers->lock);
    status = judge_vouch(askers, &keeper, asks, vouch, error);
    (void)pthread_mutex_unlock(&askers->lock);
    if (status == STATUS_OK && *asks) {
        (void)pthread_mutex_lock(&askers->following);
        status = take_turn(askers, error);
        if (status == STATUS_OK) {
            status = vouch_ask(vouch, askers->ledger, &askers->record.key, &keeper, error);
        }
        (void)pthread_mutex_unlock(&askers->following);
    }
    return status;
}

enum status askers_admit_vouch(struct askers *askers, const struct vouch *vouch,
                               struct error *error)
{
    bool asks;
    enum status status = admit_vouch(askers, &asks, vouch, error);

    if (status == STATUS_OK || asks) {
        return status;
    }
    follow_after(askers, FOLLOW_LEAST_MS);
    return admit_vouch(askers, &asks, vouch, error);
}
