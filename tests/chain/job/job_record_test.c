/*
 * Goal: the record of a job says what the ledger holds, also where an event leaves open which
 * segment it is about; it knows the vouches of a keeper, and of nobody else.
 * Method: events in the order in which a ledger tells them, made by hand.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "chain/game/ledger_backend.h"
#include "chain/job/job_record.h"
#include "chain/job/job_wait.h"
#include "tests/support/game/anvil.h"

enum {
    SEGMENTS = 2,
    DEADLINE_S = 100000,
};

static const struct hash32 job = {{7}};
static const struct address client = {{1}};
static const struct address solver = {{2}};
static const struct address verifier = {{3}};

struct telling {
    struct job_record record;
    struct address keeper;
    uint64_t number;
    bool whole;
};

static void tell(struct telling *telling, struct game_event event)
{
    struct ledger_entry entry = {.kind = LEDGER_EVENT,
                                 .number = ++telling->number,
                                 .height = telling->number,
                                 .time_s = telling->number};
    struct error error;

    error_init(&error);
    event.job = job;
    entry.event = event;
    assert_int_equal(job_record_take(&telling->record, &entry, &error), STATUS_OK);
}

/* A job whose only entry is the verifier's. */
static void begin(struct telling *telling)
{
    telling->number = 0;
    job_record_init(&telling->record, &job, &verifier);
    telling->record.whole = telling->whole;
    tell(telling, (struct game_event){.kind = GAME_OPENED,
                                      .account = client,
                                      .terms = {.steps = SEGMENTS,
                                                .segment_steps = 1,
                                                .seats = 1,
                                                .fee = 10,
                                                .reward = 100,
                                                .keeper = telling->keeper,
                                                .deadline_s = DEADLINE_S}});
    tell(telling, (struct game_event){.kind = GAME_ENLISTED, .account = verifier, .count = 1});
}

static void commit_for(struct telling *telling, uint32_t index, uint32_t generation, uint32_t panel)
{
    tell(telling, (struct game_event){.kind = GAME_COMMITTED,
                                      .index = index,
                                      .segment = {.index = index,
                                                  .generation = generation,
                                                  .root = {{(uint8_t)generation}},
                                                  .steps = 1,
                                                  .solver = solver,
                                                  .panel = panel}});
}

static void commit(struct telling *telling, uint32_t index, uint32_t generation)
{
    commit_for(telling, index, generation, 1);
}

/* Drawn, sealed and revealed in place 0. */
static void seat(struct telling *telling, uint32_t index, enum game_verdict verdict)
{
    struct game_event event = {.index = index, .account = verifier};

    event.kind = GAME_DRAWN;
    event.seal = (struct hash32){{9}};
    event.flag = true;
    tell(telling, event);
    event.kind = GAME_ROUND;
    event.to = 1;
    tell(telling, event);
    if (verdict == GAME_VERDICT_NONE) { /* it could not get the states */
        event.kind = GAME_SAID_UNSEEN;
        tell(telling, event);
        return;
    }
    event.kind = GAME_SEALED_VERDICT;
    tell(telling, event);
    event.kind = GAME_REVEALED;
    event.verdict = verdict;
    tell(telling, event);
}

static void announce(struct telling *telling, const struct address *account, const void *bytes,
                     size_t size)
{
    tell(telling, (struct game_event){
                      .kind = GAME_ANNOUNCED, .account = *account, .contact = {bytes, size}});
}

/* The same place of a void segment and of the one that stands: what is said in one counts there. */
static void test_verdicts_of_void_segments_count_nothing(void **state)
{
    struct telling telling = {0};

    (void)state;
    begin(&telling);
    tell(&telling, (struct game_event){.kind = GAME_ACCEPTED, .account = solver});
    commit(&telling, 0, 0);
    seat(&telling, 0, GAME_VERDICT_RIGHT);
    assert_int_equal(telling.record.segments[0].draw.rights, 1);
    tell(&telling, (struct game_event){.kind = GAME_CONVICTED, .account = solver});
    assert_int_equal(telling.record.seat_count, 0);
    tell(&telling, (struct game_event){.kind = GAME_DISPROVED, .account = client});
    tell(&telling, (struct game_event){.kind = GAME_ACCEPTED, .account = solver});
    commit(&telling, 0, 1);
    tell(&telling, (struct game_event){
                       .kind = GAME_ENLISTED, .account = verifier, .generation = 1, .count = 1});
    seat(&telling, 0, GAME_VERDICT_NONE);
    assert_int_equal(telling.record.segments[0].draw.rights, 0);
    assert_int_equal(telling.record.segments[0].draw.unseen, 1);
    assert_int_equal(telling.record.seat_count, 1); /* its entry is drawn again */
    tell(&telling, (struct game_event){.kind = GAME_FINALIZED});
    assert_int_equal(telling.record.seat_count, 0);
    job_record_free(&telling.record);
}

static void disprove(struct telling *telling, const struct game_segment *segment)
{
    tell(telling, (struct game_event){.kind = GAME_DISPROVED,
                                      .index = segment->index,
                                      .seal = game_segment_hash(&job, segment),
                                      .account = client});
}

/* The same entry said "right" in the same place of both: the segment's hash tells them apart. */
static void test_a_right_of_a_void_segment_is_disproved_alone(void **state)
{
    struct game_segment gone;
    struct telling telling = {0};

    (void)state;
    begin(&telling);
    tell(&telling, (struct game_event){.kind = GAME_ACCEPTED, .account = solver});
    commit(&telling, 0, 0);
    gone = telling.record.segments[0].committed;
    seat(&telling, 0, GAME_VERDICT_RIGHT);
    tell(&telling, (struct game_event){.kind = GAME_CONVICTED, .account = solver});
    tell(&telling, (struct game_event){.kind = GAME_ACCEPTED, .account = solver});
    commit(&telling, 0, 1);
    tell(&telling, (struct game_event){
                       .kind = GAME_ENLISTED, .account = verifier, .generation = 1, .count = 1});
    seat(&telling, 0, GAME_VERDICT_RIGHT);
    disprove(&telling, &gone);
    assert_int_equal(telling.record.segments[0].draw.rights, 1);
    assert_int_equal(telling.record.seats[0].state.phase, GAME_SEAT_REVEALED);
    disprove(&telling, &telling.record.segments[0].committed);
    assert_int_equal(telling.record.segments[0].draw.rights, 0);
    assert_int_equal(telling.record.seats[0].state.phase, GAME_SEAT_CLOSED);
    job_record_free(&telling.record);
}

/* What is void, and who sat there, is kept where the reader wants all of it, and only there. */
static void test_a_whole_record_keeps_what_is_over(void **state)
{
    static const struct digest states[1] = {{{5}}};
    struct game_event commit = {.kind = GAME_COMMITTED, .states = {states, 1}};

    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        struct telling telling = {0};
        const struct job_record *record = &telling.record;
        const struct game_bytes place = {(const uint8_t *)"http://solver:1", 15};

        telling.whole = whole != 0;
        begin(&telling);
        tell(&telling,
             (struct game_event){.kind = GAME_ACCEPTED, .account = solver, .contact = place});
        commit.segment = (struct game_segment){.steps = 1, .panel = 1, .solver = solver};
        tell(&telling, commit);
        tell(&telling, (struct game_event){.kind = GAME_DRAWN, .seal = {{1}}, .flag = true});
        tell(&telling, (struct game_event){.kind = GAME_ROUND, .seal = {{1}}, .to = 1});
        assert_int_equal(record->seat_count, 1);
        tell(&telling, (struct game_event){.kind = GAME_SEALED_VERDICT, .seal = {{9}}});
        assert_int_equal(record->seats[0].seal.bytes[0], 9);
        tell(&telling, (struct game_event){.kind = GAME_VOIDED, .account = solver});
        assert_int_equal(record->seat_count, 0);
        assert_int_equal(record->former_count, 1);
        assert_int_equal(record->void_count, whole);
        assert_int_equal(record->ended_count, whole);
        assert_int_equal(record->contact_count, whole);
        if (whole != 0) {
            assert_true(record->voids[0].is_void);
            assert_memory_equal(record->voids[0].states, states, sizeof(states));
            assert_int_equal(record->ended[0].state.phase, GAME_SEAT_CLOSED);
            assert_memory_equal(&record->ended[0].segment, &record->voids[0].hash, HASH32_SIZE);
            assert_string_equal(job_record_contact(record, &solver)->url, "http://solver:1");
        }
        job_record_free(&telling.record);
    }
}

/* Who has no part in a job takes no room from those who have, however many of them announce. */
static void test_strangers_crowd_out_nobody(void **state)
{
    static const struct address late = {{4}};
    struct telling telling = {.whole = true};
    struct address stranger = {{9}};

    (void)state;
    begin(&telling);
    for (uint32_t i = 0; i <= JOB_RECORD_CONTACTS_MAX; i++) {
        memcpy(&stranger.bytes[4], &i, sizeof(i));
        announce(&telling, &stranger, "http://stranger.example", 23);
    }
    assert_int_equal(telling.record.contact_count, 0);
    announce(&telling, &verifier, "http://verifier.example", 23);
    tell(&telling, (struct game_event){.kind = GAME_ACCEPTED,
                                       .account = solver,
                                       .contact = {(const uint8_t *)"http://solver:1", 15}});
    assert_non_null(job_record_contact(&telling.record, &verifier));
    assert_non_null(job_record_contact(&telling.record, &solver));
    job_record_free(&telling.record);

    /* Of entries that came and went: they had a part, and go when there is no room left. */
    begin(&telling);
    telling.record.contacts = calloc(JOB_RECORD_CONTACTS_MAX, sizeof(*telling.record.contacts));
    assert_non_null(telling.record.contacts);
    telling.record.contact_room = telling.record.contact_count = JOB_RECORD_CONTACTS_MAX;
    for (uint32_t i = 0; i < JOB_RECORD_CONTACTS_MAX; i++) {
        telling.record.contacts[i].owner = i == 7 ? verifier : stranger;
    }
    tell(&telling,
         (struct game_event){.kind = GAME_ENLISTED, .account = late, .entry = 1, .count = 1});
    announce(&telling, &late, "http://late.example", 19);
    assert_non_null(job_record_contact(&telling.record, &late));
    assert_int_equal(telling.record.contact_count, 2); /* and the verifier's, which has an entry */
    job_record_free(&telling.record);
}

/* An endpoint can tell of segments that are not there: none of them is read, or freed. */
static void test_what_cannot_be_is_refused(void **state)
{
    const struct game_event impossible[] = {{.kind = GAME_FINALIZED, .index = 1},
                                            {.kind = GAME_FINALIZED, .index = 1u << 30},
                                            {.kind = GAME_DRAWN, .index = 1}};
    struct telling telling = {.whole = true};

    (void)state;
    begin(&telling);
    tell(&telling, (struct game_event){.kind = GAME_ACCEPTED, .account = solver});
    commit(&telling, 0, 0);
    for (size_t i = 0; i < sizeof(impossible) / sizeof(impossible[0]); i++) {
        struct ledger_entry entry = {.kind = LEDGER_EVENT, .number = ++telling.number};
        struct error error;

        error_init(&error);
        entry.event = impossible[i];
        entry.event.job = job;
        assert_int_equal(job_record_take(&telling.record, &entry, &error), STATUS_BAD_FORMAT);
    }
    tell(&telling, (struct game_event){.kind = GAME_FINALIZED, .index = 0});
    tell(&telling, (struct game_event){.kind = GAME_RELEASED, .account = solver});
    assert_int_equal(telling.record.state.committed, 1);
    job_record_free(&telling.record);
}

/* The bonds of a panel that is gone are found again, those of this account; each until it was paid
 * out. */
static void test_bonds_outlive_their_panel(void **state)
{
    struct telling telling = {0};

    (void)state;
    begin(&telling);
    tell(&telling,
         (struct game_event){.kind = GAME_ENLISTED, .account = client, .entry = 1, .count = 2});
    tell(&telling,
         (struct game_event){.kind = GAME_ENLISTED, .account = verifier, .entry = 3, .count = 2});
    /* While the job is open the last entry takes the number of one that goes. */
    tell(&telling, (struct game_event){.kind = GAME_GONE, .entry = 1, .account = client});
    tell(&telling, (struct game_event){.kind = GAME_MOVED, .entry = 4, .to = 1});
    assert_int_equal(telling.record.state.entries, 4);
    assert_true(address_equal(&telling.record.entries[1].owner, &verifier));
    tell(&telling, (struct game_event){.kind = GAME_ACCEPTED, .account = solver});
    tell(&telling, (struct game_event){.kind = GAME_GONE, .entry = 0}); /* lost, for a lie */
    tell(&telling, (struct game_event){.kind = GAME_RELEASED, .account = solver, .amount = 7});
    assert_int_equal(telling.record.state.entries, 0);
    assert_int_equal(telling.record.former_count, 2);
    assert_int_equal(telling.record.former[0].number, 1);
    assert_int_equal(telling.record.former[1].number, 3);
    tell(&telling, (struct game_event){.kind = GAME_GONE, .entry = 1, .account = verifier});
    assert_int_equal(telling.record.former_count, 1);
    assert_int_equal(telling.record.former[0].number, 3);
    assert_true(telling.record.burned_stake == 7);
    job_record_free(&telling.record);
}

/* In, and out again: fees of rights, what burns, what the client puts back. */
static void test_the_pool_is_known_from_the_events(void **state)
{
    struct telling telling = {0};
    wei pool;

    (void)state;
    begin(&telling);
    pool = telling.record.pool;
    assert_true(pool == game_fees(&telling.record.terms, SEGMENTS));
    tell(&telling, (struct game_event){.kind = GAME_ACCEPTED, .account = solver});
    commit(&telling, 0, 0);
    seat(&telling, 0, GAME_VERDICT_RIGHT);
    tell(&telling, (struct game_event){.kind = GAME_FEE_PAID, .amount = 10});
    assert_true(telling.record.pool == pool - 10);
    tell(&telling, (struct game_event){.kind = GAME_FINALIZED, .amount = 100});
    commit(&telling, 1, 0);
    tell(&telling, (struct game_event){.kind = GAME_VOIDED,
                                       .account = solver,
                                       .index = 1,
                                       .amount = 200,
                                       .escrow = 100,
                                       .pool = 15});
    assert_true(telling.record.pool == pool - 25);
    assert_true(telling.record.burned_stake == 200);
    assert_true(telling.record.burned_escrow == 100);
    assert_true(telling.record.burned_pool == 15);
    assert_true(telling.record.state.barred);
    tell(&telling, (struct game_event){.kind = GAME_RESUMED, .escrow = 100, .pool = 15});
    assert_true(telling.record.pool == pool - 10);
    assert_false(telling.record.state.barred);
    job_record_free(&telling.record);
}

/* ---- vouches --------------------------------------------------------------------- */

static struct signer *signer_of(uint32_t number)
{
    struct secret_key key = anvil_key(number);
    struct error error;
    struct signer *signer = signer_new(&key, &error);

    assert_non_null(signer);
    return signer;
}

/* What an account says about a segment, signed by a key. */
static void announce_vouch(struct telling *telling, const struct signer *signer, uint32_t index,
                           const struct address *account)
{
    struct hash32 hash = game_segment_hash(&job, &telling->record.segments[index].committed);
    uint8_t bytes[VOUCH_SIZE];
    struct vouch vouch;
    struct error error;

    assert_int_equal(vouch_sign(&vouch, &telling->record.place, &job, &hash, signer, &error),
                     STATUS_OK);
    vouch_write(bytes, &vouch);
    announce(telling, account, bytes, sizeof(bytes));
}

static void test_only_the_keepers_word_is_a_vouch(void **state)
{
    struct signer *keeper = signer_of(1);
    struct signer *other = signer_of(2);
    struct telling telling = {.keeper = *signer_address(keeper)};
    struct job_segment segment;

    (void)state;
    begin(&telling);
    tell(&telling, (struct game_event){.kind = GAME_ACCEPTED, .account = solver});
    commit(&telling, 0, 0);
    commit(&telling, 1, 0);
    announce(&telling, &telling.keeper, "http://keeper.example:8000", 26);
    announce_vouch(&telling, other, 0, &telling.keeper); /* signed by another key */
    announce_vouch(&telling, keeper, 0, &verifier);      /* shown by another account */
    assert_false(telling.record.segments[0].has_vouch);
    announce_vouch(&telling, keeper, 1, &telling.keeper);
    assert_false(telling.record.segments[0].has_vouch);
    assert_true(telling.record.segments[1].has_vouch);
    assert_int_equal(telling.record.vouched_s, telling.number);
    segment = job_record_segment(&telling.record, 1);
    assert_true(segment.tally.vouched);
    assert_false(segment.noted);
    tell(&telling, (struct game_event){.kind = GAME_VOUCHED, .index = 1});
    segment = job_record_segment(&telling.record, 1);
    assert_true(segment.noted);
    job_record_free(&telling.record);
    signer_free(keeper);
    signer_free(other);
}

/* A keeper's word is about a commit: the next tenure's segment is another. */
static void test_a_vouch_of_a_void_segment_is_worth_nothing(void **state)
{
    struct signer *keeper = signer_of(1);
    struct telling telling = {.keeper = *signer_address(keeper)};
    static const struct ledger_backend embedded; /* no contracts */
    struct ledger ledger = {.backend = &embedded};
    struct vouch vouch;
    struct error error;
    struct hash32 hash;

    (void)state;
    error_init(&error);
    begin(&telling);
    ledger.game = telling.record.place;
    tell(&telling, (struct game_event){.kind = GAME_ACCEPTED, .account = solver});
    commit(&telling, 0, 0);
    hash = game_segment_hash(&job, &telling.record.segments[0].committed);
    assert_int_equal(vouch_sign(&vouch, &telling.record.place, &job, &hash, keeper, &error),
                     STATUS_OK);
    assert_int_equal(job_record_add_vouch(&telling.record, &ledger, &vouch, &error), STATUS_OK);
    tell(&telling, (struct game_event){.kind = GAME_RELEASED, .account = solver});
    tell(&telling, (struct game_event){.kind = GAME_ACCEPTED, .account = solver});
    commit(&telling, 0, 1);
    assert_false(telling.record.segments[0].has_vouch);
    assert_int_equal(job_record_add_vouch(&telling.record, &ledger, &vouch, &error),
                     STATUS_REFUSED);
    vouch.signature[5] ^= 1;
    assert_int_equal(job_record_add_vouch(&telling.record, &ledger, &vouch, &error),
                     STATUS_REFUSED);
    job_record_free(&telling.record);
    signer_free(keeper);
}

/* Behind the first leg that nobody vouched for all may burn. */
static void test_vouched_legs_in_front_cannot_burn(void **state)
{
    struct telling telling = {0};

    (void)state;
    begin(&telling);
    tell(&telling, (struct game_event){.kind = GAME_ACCEPTED, .account = solver});
    commit(&telling, 0, 0);
    commit(&telling, 1, 0);
    assert_int_equal(job_record_unvouched(&telling.record), 2);
    tell(&telling, (struct game_event){.kind = GAME_DRAWN, .index = 0, .flag = true});
    assert_int_equal(job_record_unvouched(&telling.record), 2);
    tell(&telling, (struct game_event){.kind = GAME_VOUCHED, .index = 0});
    assert_int_equal(job_record_unvouched(&telling.record), 1);
    tell(&telling, (struct game_event){.kind = GAME_DRAWN, .index = 1, .flag = true});
    assert_int_equal(job_record_unvouched(&telling.record), 1);
    tell(&telling, (struct game_event){.kind = GAME_VOUCHED, .index = 1});
    assert_int_equal(job_record_unvouched(&telling.record), 0);
    job_record_free(&telling.record);
}

/* ---- words ------------------------------------------------------------------------ */

static void see_words(struct telling *telling, const char *word, const char *part)
{
    struct job_wait wait;

    assert_true(job_wait_describe(&wait, &telling->record, telling->number));
    assert_string_equal(wait.word, word);
    if (strstr(wait.text, part) == NULL) {
        fail_msg("'%s' does not say '%s'", wait.text, part);
    }
}

static void test_people_are_told_what_to_do(void **state)
{
    struct telling telling = {0};
    struct job_wait wait;

    (void)state;
    begin(&telling);
    see_words(&telling, "solver", "lockstep job close");
    tell(&telling,
         (struct game_event){.kind = GAME_ACCEPTED, .account = solver, .time_s = DEADLINE_S});
    see_words(&telling, "commit", "the solver");
    commit(&telling, 0, 0);
    see_words(&telling, "undrawn", "segment 0");
    tell(&telling, (struct game_event){.kind = GAME_REFUSED, .time_s = DEADLINE_S - 1});
    assert_string_equal(job_status_phase(&telling.record), "refused");
    tell(&telling, (struct game_event){.kind = GAME_DRAWN, .index = 0});
    see_words(&telling, "held", "refusal");
    tell(&telling, (struct game_event){.kind = GAME_VOIDED, .escrow = 100, .pool = 4});
    assert_string_equal(job_status_phase(&telling.record), "barred");
    see_words(&telling, "client", "lockstep job resume");
    tell(&telling, (struct game_event){.kind = GAME_CLOSED});
    assert_false(job_wait_describe(&wait, &telling.record, telling.number));
    assert_true(job_wait_is_over(&telling.record));
    job_record_free(&telling.record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts_of_void_segments_count_nothing),
        cmocka_unit_test(test_a_right_of_a_void_segment_is_disproved_alone),
        cmocka_unit_test(test_a_whole_record_keeps_what_is_over),
        cmocka_unit_test(test_strangers_crowd_out_nobody),
        cmocka_unit_test(test_what_cannot_be_is_refused),
        cmocka_unit_test(test_bonds_outlive_their_panel),
        cmocka_unit_test(test_the_pool_is_known_from_the_events),
        cmocka_unit_test(test_only_the_keepers_word_is_a_vouch),
        cmocka_unit_test(test_a_vouch_of_a_void_segment_is_worth_nothing),
        cmocka_unit_test(test_vouched_legs_in_front_cannot_burn),
        cmocka_unit_test(test_people_are_told_what_to_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
