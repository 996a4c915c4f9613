/* views.c - see views.h. */
#include "tests/support/chain/views.h"

#include <string.h>

#include "tests/support/test.h"

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

void views_open(struct views *views, const char *path, const struct address *own)
{
    struct error error;

    error_init(&error);
    memset(views, 0, sizeof(*views));
    views->own = *own;
    check(store_open(&views->store, path, STORE_WRITE, &error), &error);
    check(store_begin(&views->store, &error), &error);
}

void views_close(struct views *views)
{
    struct error error;

    error_init(&error);
    check(store_end(&views->store, STATUS_OK, &error), &error);
    store_close(&views->store);
    board_release(&views->board);
}

/* ---- the two readers ------------------------------------------------------------ */

static void see_same_job(struct views *views, const struct job_record *record)
{
    struct store_job job;
    struct error error;

    error_init(&error);
    check(store_job(&views->store, &job, &record->key, &error), &error);
    assert_int_equal(job.state.phase, record->state.phase);
    assert_true(address_equal(&job.client, &record->client));
    assert_true(address_equal(&job.state.solver, &record->state.solver));
    assert_int_equal(job.state.generation, record->state.generation);
    assert_int_equal(job.state.segments, record->state.segments);
    assert_int_equal(job.state.committed, record->state.committed);
    assert_int_equal(job.state.drawn, record->state.drawn);
    assert_int_equal(job.state.leg_start, record->state.leg_start);
    assert_int_equal(job.state.finalized, record->state.finalized);
    assert_int_equal(job.state.entries, record->state.entries);
    assert_int_equal(job.state.unpaid, record->state.unpaid);
    assert_int_equal(job.state.due_s, record->state.due_s);
    assert_int_equal(job.state.refused_until_s, record->state.refused_until_s);
    assert_int_equal(job.state.barred, record->state.barred);
    views->compared++;
}

static void see_same_segment(struct views *views, const struct job_record *record, uint32_t index)
{
    const struct job_segment wanted = job_record_segment(record, index);
    struct store_segment found;
    struct job_segment state;
    struct hash32 hash;
    struct error error;

    error_init(&error);
    check(store_segment(&views->store, &found, &record->key, index, &error), &error);
    hash = game_segment_hash(&record->key, &record->segments[index].committed);
    assert_memory_equal(found.hash.bytes, hash.bytes, HASH32_SIZE);
    assert_memory_equal(found.draw.seed.bytes, record->segments[index].draw.seed.bytes,
                        HASH32_SIZE);
    state = store_segment_state(&found);
    state.terms = wanted.terms;
    assert_int_equal(state.commits.height, wanted.commits.height);
    assert_int_equal(state.commits.time_s, wanted.commits.time_s);
    assert_int_equal(state.over, wanted.over);
    assert_int_equal(state.panel, wanted.panel);
    assert_int_equal(state.start_s, wanted.start_s);
    assert_int_equal(state.refused_until_s, wanted.refused_until_s);
    assert_int_equal(state.tally.wanted, wanted.tally.wanted);
    assert_int_equal(state.tally.rights, wanted.tally.rights);
    assert_int_equal(state.tally.unseen, wanted.tally.unseen);
    assert_int_equal(state.tally.round, wanted.tally.round);
    assert_int_equal(state.tally.drawn, wanted.tally.drawn);
    assert_int_equal(state.tally.to, wanted.tally.to);
    assert_int_equal(state.open_claims, wanted.open_claims);
    assert_int_equal(state.job_claims, wanted.job_claims);
    assert_int_equal(state.drawn, wanted.drawn);
    assert_int_equal(state.next, wanted.next);
    assert_int_equal(state.covered, wanted.covered);
    assert_int_equal(state.noted, wanted.noted);
    assert_int_equal(state.final, wanted.final);
    assert_int_equal(state.first, wanted.first);
    views->compared++;
}

static void see_same_seat(struct views *views, const struct job_record *record,
                          const struct job_record_seat *seat)
{
    const struct hash32 hash =
        game_segment_hash(&record->key, &record->segments[seat->index].committed);
    struct store_seat found;
    struct error error;

    error_init(&error);
    check(store_seat(&views->store, &found, &hash, seat->place, &error), &error);
    assert_int_equal(found.state.entry, seat->state.entry);
    assert_true(address_equal(&found.owner, &seat->owner));
    assert_int_equal(found.state.phase, seat->state.phase);
    assert_int_equal(found.state.verdict, seat->state.verdict);
    views->compared++;
}

static void see_same_claim(struct views *views, const struct job_record_claim *claim)
{
    struct store_dispute found;
    struct error error;

    error_init(&error);
    check(store_dispute(&views->store, &found, &claim->key, &error), &error);
    assert_int_equal(found.index, claim->index);
    assert_int_equal(found.generation, claim->generation);
    assert_int_equal(found.step, claim->step);
    assert_true(found.state.rank == claim->state.rank);
    assert_int_equal(found.state.phase, claim->state.phase);
    assert_int_equal(found.state.phase != GAME_CLAIM_CLOSED, job_record_claim_is_open(claim));
    assert_int_equal(found.state.turn, claim->state.turn);
    assert_int_equal(found.state.turns, claim->state.turns);
    assert_int_equal(found.state.deadline_s, claim->state.deadline_s);
    assert_int_equal(found.state.outcome, claim->state.outcome);
    assert_true(address_equal(&found.state.lead, &claim->state.lead));
    views->compared++;
}

static void see_same(struct views *views, const struct job_record *record)
{
    see_same_job(views, record);
    for (uint32_t i = 0; i < record->state.committed; i++) {
        see_same_segment(views, record, i);
    }
    for (uint32_t i = 0; i < record->seat_count; i++) {
        see_same_seat(views, record, &record->seats[i]);
    }
    for (uint32_t i = 0; i < record->claim_count; i++) {
        see_same_claim(views, &record->claims[i]);
    }
}

void views_take(struct views *views, const struct game_event *event, uint64_t height,
                uint64_t time_s)
{
    const struct ledger_entry entry = {.kind = LEDGER_EVENT,
                                       .number = ++views->read,
                                       .height = height,
                                       .time_s = time_s,
                                       .event = *event};
    const struct job_record *record;
    struct error error;

    error_init(&error);
    check(board_take(&views->board, &entry, &error), &error);
    check(store_take(&views->store, &entry, &views->own, &error), &error);
    if (!job_event_is_of_claim(event->kind)) {
        record = board_find(&views->board, &event->job);
        if (record != NULL) {
            see_same(views, record);
        }
        return;
    }
    for (uint32_t i = 0; i < views->board.count; i++) {
        record = &views->board.jobs[i];
        if (record->claim_count > 0 &&
            hash32_equal(&record->claims[record->claim_count - 1].key, &event->claim)) {
            see_same(views, record);
        }
    }
}

/* ---- the ledger ------------------------------------------------------------------- */

static void see_same_tally(struct local_store *ledger, const struct hash32 *job,
                           const struct job_record_segment *segment)
{
    const struct job_reduced_segment *draw = &segment->draw;
    const struct hash32 hash = game_segment_hash(job, &segment->committed);
    struct local_tally tally;

    assert_int_equal(local_get(ledger, &tally, LOCAL_TALLY, &hash, 0), STATUS_OK);
    assert_int_equal(draw->covered, tally.covered);
    assert_int_equal(draw->rights, tally.rights);
    assert_int_equal(draw->unseen, tally.unseen);
    assert_int_equal(draw->vouched, tally.vouched);
    assert_int_equal(draw->round, tally.round);
    if (draw->covered) {
        assert_int_equal(draw->leg_start, tally.leg_start);
        assert_int_equal(draw->start_s, tally.start_s);
        assert_int_equal(draw->seats, tally.drawn);
    }
}

void views_compare(struct views *views, struct local_store *ledger, const struct hash32 *job)
{
    const struct job_record *record = board_find(&views->board, job);
    struct local_job kept;

    assert_non_null(record);
    see_same(views, record);
    assert_int_equal(local_get(ledger, &kept, LOCAL_JOB, job, 0), STATUS_OK);
    assert_int_equal(record->state.phase, kept.phase);
    assert_int_equal(record->state.generation, kept.generation);
    assert_int_equal(record->state.segments, kept.segments);
    assert_int_equal(record->state.committed, kept.committed);
    assert_int_equal(record->state.drawn, kept.drawn);
    assert_int_equal(record->state.leg_start, kept.leg_start);
    assert_int_equal(record->state.finalized, kept.finalized);
    assert_int_equal(record->state.entries, kept.entries);
    assert_int_equal(job_record_open_claims(record), kept.open_claims);
    assert_true(record->pool == kept.pool);
    assert_true(record->state.missing_escrow == kept.missing_escrow);
    assert_true(record->state.missing_pool == kept.missing_pool);
    assert_int_equal(record->state.barred, kept.barred);
    if (kept.phase == GAME_PHASE_RUNNING) {
        assert_true(address_equal(&record->state.solver, &kept.solver));
        assert_int_equal(record->state.due_s, kept.due_s);
        assert_int_equal(record->state.refused_until_s, kept.refused_until_s);
        assert_int_equal(record->state.ended, kept.ended);
    }
    for (uint32_t i = kept.finalized; i < kept.committed; i++) {
        see_same_tally(ledger, job, &record->segments[i]);
    }
}
