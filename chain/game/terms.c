/* terms.c - see terms.h. */
#include "chain/game/terms.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/hex.h"
#include "chain/codec/hex_data.h"
#include "proofs/commit/commit.h"

/* Where the header of a job has its roots: docs/FORMATS.md. */
enum {
    PROGRAM_ROOT_AT = 56,
    DATA_ROOT_AT = 152,
    FIRST_STATE_ROOT_AT = 184,
};

enum status terms_of_job(struct game_terms *terms, const struct job *job, struct error *error)
{
    if (job->segment_length > GAME_STATES_MAX || job_segments(job) > GAME_SEGMENTS_MAX) {
        (void)error_set(error, STATUS_REFUSED,
                        "a ledger takes at most %u segments of at most %u steps; this job has "
                        "%" PRIu64 " of %" PRIu64,
                        GAME_SEGMENTS_MAX, GAME_STATES_MAX, job_segments(job), job->segment_length);
        error_advise(error, "make the job with --segment-steps %u or less", GAME_STATES_MAX);
        return STATUS_REFUSED;
    }
    terms->job_id = job->id;
    memcpy(terms->program_root.bytes, job->header + PROGRAM_ROOT_AT, DIGEST_SIZE);
    memcpy(terms->data_root.bytes, job->header + DATA_ROOT_AT, DIGEST_SIZE);
    terms->first_state_root = job->first_state_root;
    terms->steps = job->steps;
    terms->segment_steps = (uint32_t)job->segment_length;
    return STATUS_OK;
}

static enum status refuse_terms(const char *what, struct error *error)
{
    (void)error_set(error, STATUS_REFUSED,
                    "the terms on the ledger are not those of the job file: %s differs", what);
    error_advise(error, "its solver could be convicted of what was never agreed: leave it");
    return STATUS_REFUSED;
}

enum status terms_check_header(const struct game_terms *terms,
                               const uint8_t header[GAME_JOB_HEADER_SIZE], struct error *error)
{
    struct digest job_id;

    commit_job_id(&job_id, header, GAME_JOB_HEADER_SIZE);
    if (!digest_equal(&terms->job_id, &job_id)) {
        return refuse_terms("the id of the job", error);
    }
    if (memcmp(terms->program_root.bytes, header + PROGRAM_ROOT_AT, DIGEST_SIZE) != 0) {
        return refuse_terms("the root of the program", error);
    }
    if (memcmp(terms->data_root.bytes, header + DATA_ROOT_AT, DIGEST_SIZE) != 0) {
        return refuse_terms("the root of the data", error);
    }
    return memcmp(terms->first_state_root.bytes, header + FIRST_STATE_ROOT_AT, DIGEST_SIZE) == 0
               ? STATUS_OK
               : refuse_terms("the root of the first state", error);
}

enum status terms_check(const struct game_terms *terms, const struct job *job, struct error *error)
{
    struct game_terms ours;

    TRY(terms_of_job(&ours, job, error));
    TRY(terms_check_header(terms, job->header, error));
    if (terms->steps != ours.steps) {
        return refuse_terms("the number of steps", error);
    }
    return terms->segment_steps == ours.segment_steps
               ? STATUS_OK
               : refuse_terms("the length of a segment", error);
}

/* ---- for people --------------------------------------------------------------- */

void terms_period(char text[TERMS_PERIOD_SIZE], uint64_t seconds)
{
    static const struct {
        uint64_t seconds;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    size_t i = 0;

    while (i < 3 && (seconds == 0 || seconds % units[i].seconds != 0)) {
        i++;
    }
    (void)snprintf(text, TERMS_PERIOD_SIZE, "%" PRIu64 "%c", seconds / units[i].seconds,
                   units[i].unit);
}

void terms_time(char text[TERMS_TIME_SIZE], uint64_t time_s)
{
    time_t time = (time_t)time_s;
    struct tm parts;

    if (gmtime_r(&time, &parts) == NULL ||
        strftime(text, TERMS_TIME_SIZE, "%Y-%m-%d %H:%M UTC", &parts) == 0) {
        (void)snprintf(text, TERMS_TIME_SIZE, "%" PRIu64, time_s);
    }
}

/* ---- finding ------------------------------------------------------------------ */

struct wanted_job {
    const char *prefix; /* without 0x; NULL: by id */
    const struct digest *job_id;
};

static bool fits(const struct wanted_job *wanted, const struct game_event *event)
{
    char text[HEX_DATA_SIZE(HASH32_SIZE)];

    if (wanted->job_id != NULL && !digest_equal(&event->terms.job_id, wanted->job_id)) {
        return false;
    }
    if (wanted->prefix == NULL) {
        return true;
    }
    hex_write(text, event->job.bytes, HASH32_SIZE, false);
    return strncasecmp(text, wanted->prefix, strlen(wanted->prefix)) == 0;
}

/* Without a name, an open job is meant. */
static enum status look_if_open(bool *open, struct ledger *ledger, const struct hash32 *key,
                                struct error *error)
{
    struct ledger_job job = {0};
    enum status status = ledger_get_job(ledger, &job, key, error);

    *open = status == STATUS_OK && job.phase == GAME_PHASE_OPEN;
    return status;
}

static enum status count_hit(uint32_t *count, uint32_t *open_count, struct hash32 *key,
                             struct game_terms *terms, struct ledger *ledger,
                             const struct game_event *event, struct error *error)
{
    bool open = false;

    TRY(look_if_open(&open, ledger, &event->job, error));
    if (*count == 0 || (open && *open_count == 0)) {
        *key = event->job;
        *terms = event->terms;
    }
    (*count)++;
    *open_count += open;
    return STATUS_OK;
}

static enum status read_wanted(struct wanted_job *wanted, const char *text, struct error *error)
{
    wanted->prefix = text;
    if (text == NULL) {
        return STATUS_OK;
    }
    wanted->prefix += strncasecmp(text, "0x", 2) == 0 ? 2 : 0;
    if (strspn(wanted->prefix, "0123456789abcdefABCDEF") != strlen(wanted->prefix) ||
        strlen(wanted->prefix) < TERMS_KEY_LEAST || strlen(wanted->prefix) > 2 * HASH32_SIZE) {
        return error_set(error, STATUS_USAGE,
                         "'%.80s' is neither the key of a job nor its first %d digits or more",
                         text, TERMS_KEY_LEAST);
    }
    return STATUS_OK;
}

enum status terms_find(struct hash32 *key, struct game_terms *terms, struct ledger *ledger,
                       const char *text, const struct digest *job_id, struct error *error)
{
    struct wanted_job wanted = {.job_id = job_id};
    struct ledger_entry entry = {0};
    struct game_terms ignored;
    uint32_t count = 0;
    uint32_t open_count = 0;
    enum status status;

    TRY(read_wanted(&wanted, text, error));
    TRY(ledger_catch_up(ledger, error));
    while ((status = ledger_next_of(ledger, &entry, entry.number, GAME_OPENED, error)) ==
           STATUS_OK) {
        if (fits(&wanted, &entry.event)) {
            status = count_hit(&count, &open_count, key, terms == NULL ? &ignored : terms, ledger,
                               &entry.event, error);
            if (status != STATUS_OK) {
                break;
            }
        }
    }
    if (status != STATUS_NOT_FOUND) {
        return status;
    }
    if (count == 0) {
        (void)error_set(error, STATUS_NOT_FOUND, "this job is not on the ledger");
        error_advise(error,
                     "'lockstep job list' shows what is, 'lockstep job open' puts one there");
        return ledger_missing(ledger, error);
    }
    if (open_count > 1 || (open_count == 0 && count > 1)) {
        (void)error_set(error, STATUS_REFUSED, "%u jobs on the ledger fit",
                        open_count > 1 ? open_count : count);
        error_advise(error, "name one by its key: 'lockstep job list' shows them");
        return STATUS_REFUSED;
    }
    return STATUS_OK;
}
