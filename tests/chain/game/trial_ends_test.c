/*
 * Goal: before the referee a trace begins in the state before its step and ends in the one after
 * it, and who says that a training diverged, or hides it, is held to it.
 * Method: on both ledgers at once (court.h): trace ends that do not fit, a divergence that was
 * hidden and one that was invented.
 */
#include <string.h>

#include "proofs/dispute/ledger_query.h"
#include "tests/support/dispute/exhibit.h"
#include "tests/support/game/court.h"
#include "tests/support/test.h"

/* ---- the ends of the trace ---------------------------------------------------------- */

static void state_evidence(struct buffer *evidence, const struct exhibit *exhibit,
                           const struct evidence_source *source, enum evidence_kind kind,
                           uint32_t number)
{
    struct error error;

    error_init(&error);
    buffer_init(evidence, GAME_PAYLOAD_MAX);
    assert_int_equal(evidence_write_state(evidence, exhibit->tape, source, kind, number, &error),
                     STATUS_OK);
}

/* The trace begins in another state than the one before the step. */
static void test_trace_that_begins_elsewhere_convicts(void **state)
{
    struct court *court = court_new();
    struct exhibit exhibit;
    struct exhibit_apart apart;
    struct buffer evidence;

    (void)state;
    exhibit_of_model(&exhibit, MODEL_MLP, 1);
    exhibit_begin_apart(&exhibit, &apart, 1);
    court_bring(court, &exhibit.context, 0, 0);
    state_evidence(&evidence, &exhibit, &exhibit.source, EVIDENCE_FIRST_STATE, 0);
    court_convict(court, &evidence, GAME_NOT_GUILTY);
    buffer_release(&evidence);
    state_evidence(&evidence, &exhibit, &exhibit.source, EVIDENCE_FIRST_STATE, 1);
    court_convict(court, &evidence, GAME_REFUSED_NOT);
    buffer_release(&evidence);
    exhibit_close(&exhibit);
    court_free(court);
}

/* The state after the step is not what the trace ends in. */
static void test_state_that_the_trace_does_not_lead_to_convicts(void **state)
{
    struct court *court = court_new();
    struct exhibit exhibit;
    struct buffer evidence;

    (void)state;
    exhibit_of_model(&exhibit, MODEL_MLP, 1);
    exhibit.record.after[2].bytes[0] ^= 1;
    commit_list_root(&exhibit.context.after, COMMIT_STATE, 0, exhibit.record.after,
                     exhibit.tape->state_count);
    state_evidence(&evidence, &exhibit, &exhibit.source, EVIDENCE_NEXT_STATE, 2);
    court_bring(court, &exhibit.context, 1, 1);
    court_convict(court, &evidence, GAME_REFUSED_NOT);
    buffer_release(&evidence);
    exhibit_close(&exhibit);
    court_free(court);
}

/* ---- divergence --------------------------------------------------------------------- */

static void set_state(struct exhibit *exhibit, uint32_t number, uint32_t element, uint32_t bits)
{
    uint32_t item = exhibit->record.places.of[exhibit->tape->states[number].after];

    memcpy(exhibit->record.kept[item] + 4 * (size_t)element, &bits, sizeof(bits));
    exhibit_changed(exhibit, item);
}

static void not_finite_evidence(struct buffer *evidence, const struct exhibit *exhibit,
                                uint32_t number)
{
    struct error error;

    error_init(&error);
    buffer_init(evidence, GAME_REPLY_MAX);
    assert_int_equal(
        evidence_write_not_finite(evidence, exhibit->tape, &exhibit->source, number, 290, &error),
        STATUS_OK);
}

static void test_divergence_that_was_hidden_convicts(void **state)
{
    static const uint32_t bits[] = {0x7f800000, 0xff800000, 0x7fc00000};
    struct court *court = court_new();
    struct exhibit exhibit;
    struct buffer evidence;
    uint32_t number;

    (void)state;
    exhibit_of_model(&exhibit, MODEL_GPT2, 1);
    number = exhibit_large_state(&exhibit);
    not_finite_evidence(&evidence, &exhibit, number);
    court_bring(court, &exhibit.context, 0, 2);
    court_convict(court, &evidence, GAME_NOT_GUILTY);
    buffer_release(&evidence);
    for (size_t i = 0; i < 3; i++) {
        set_state(&exhibit, number, 290, bits[i]);
        not_finite_evidence(&evidence, &exhibit, number);
        court_bring(court, &exhibit.context, 1, (uint32_t)i);
        court_convict(court, &evidence, GAME_REFUSED_NOT);
        court_compare(court);
        buffer_release(&evidence);
    }
    exhibit_close(&exhibit);
    court_free(court);
}

/* Who says that the training diverged must be able to show it. */
static void test_divergence_that_was_invented_convicts(void **state)
{
    struct court *court = court_new();
    struct exhibit exhibit;
    struct buffer evidence;
    struct buffer query_bytes;
    struct game_move query;
    struct game_move reply;
    uint32_t number;

    (void)state;
    exhibit_of_model(&exhibit, MODEL_GPT2, 1);
    number = exhibit_large_state(&exhibit);
    buffer_init(&query_bytes, GAME_PAYLOAD_MAX);
    assert_int_equal(ledger_query_write_plain(&query_bytes, exhibit.tape,
                                              &(struct trace_query){.kind = TRACE_QUERY_DIVERGED},
                                              NULL),
                     STATUS_OK);

    court_bring(court, &exhibit.context, 1, 2); /* only a job that ended there can be queried */
    query = court_move(court, GAME_QUERY, query_bytes.data, query_bytes.size);
    court_refused(court, &query, COURT_CLAIMANT, GAME_BAD_QUERY);

    exhibit.context.diverged = true;
    for (int honest = 0; honest < 2; honest++) {
        if (honest == 1) {
            set_state(&exhibit, number, 290, 0x7f800000);
        }
        court_bring(court, &exhibit.context, 1, 2);
        query = court_move(court, GAME_QUERY, query_bytes.data, query_bytes.size);
        court_done(court, &query, COURT_CLAIMANT);
        not_finite_evidence(&evidence, &exhibit, number);
        reply = court_move(court, GAME_REPLY, evidence.data, evidence.size);
        if (honest == 1) {
            court_done(court, &reply, COURT_SOLVER);
            court_convict(court, &evidence, GAME_BAD_EVIDENCE); /* it said so */
        } else {
            court_refused(court, &reply, COURT_SOLVER, GAME_BAD_REPLY);
        }
        wei owed = court_owed(court, honest == 1 ? COURT_SOLVER : COURT_CLAIMANT);

        court_timeout(court);
        assert_true(court_owed(court, honest == 1 ? COURT_SOLVER : COURT_CLAIMANT) > owed);
        court_compare(court);
        buffer_release(&evidence);
    }
    /* Earlier in the same segment nothing was said. */
    court_bring(court, &exhibit.context, 1, 1);
    query = court_move(court, GAME_QUERY, query_bytes.data, query_bytes.size);
    court_refused(court, &query, COURT_CLAIMANT, GAME_BAD_QUERY);
    buffer_release(&query_bytes);
    exhibit_close(&exhibit);
    court_free(court);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trace_that_begins_elsewhere_convicts),
        cmocka_unit_test(test_state_that_the_trace_does_not_lead_to_convicts),
        cmocka_unit_test(test_divergence_that_was_hidden_convicts),
        cmocka_unit_test(test_divergence_that_was_invented_convicts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
