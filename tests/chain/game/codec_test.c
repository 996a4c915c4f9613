/*
 * Goal: every move, event and refusal has one encoding, and hostile bytes are refused.
 * Method: random values of every kind are written, read and written again; each word of an encoding
 * is damaged in several ways and each prefix is cut off: what is still read writes back to the same
 * bytes. Lists of accounts of every length up to 40 admit their members alone. That selectors and
 * topics are the contracts', history_test.c shows.
 *
 * "codec_test write FOLDER" writes seeds for tests/fuzz/chain/game_fuzz.c.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/io/file.h"
#include "chain/codec/hex_data.h"
#include "chain/game/allow_list.h"
#include "chain/game/game.h"
#include "tests/support/chain/move_reader.h"

enum {
    ROUNDS = 40,
    STATES = 7,
    PAYLOAD = 100,
    ACCOUNTS = 40,
};

struct made {
    uint64_t random;
    struct digest states[STATES];
    uint8_t bytes[PAYLOAD];
};

static uint32_t below(struct made *made, uint32_t limit)
{
    return (uint32_t)test_random_below(&made->random, limit);
}

static struct game_bytes some_bytes(struct made *made)
{
    return (struct game_bytes){made->bytes, below(made, PAYLOAD)};
}

static void fill_path(struct made *made, struct merkle_path *path)
{
    test_random_fill(&made->random, path, sizeof(*path));
    path->sibling_count = below(made, 4);
}

/* Random everywhere, but in what has a range or points somewhere. */
static void make_move(struct made *made, struct game_move *move, enum game_move_kind kind)
{
    test_random_fill(&made->random, move, sizeof(*move));
    test_random_fill(&made->random, made->states, sizeof(made->states));
    test_random_fill(&made->random, made->bytes, sizeof(made->bytes));
    move->kind = kind;
    move->diverged = below(made, 2) == 1;
    move->segment.diverged = below(made, 2) == 1;
    move->shown.segment.diverged = below(made, 2) == 1;
    move->shown.previous.diverged = below(made, 2) == 1;
    move->states = (struct game_hashes){made->states, below(made, STATES)};
    move->path = (struct game_hashes){made->states, below(made, STATES)};
    move->contact = some_bytes(made);
    move->proof = some_bytes(made);
    move->vouch = some_bytes(made);
    move->queried = some_bytes(made);
    move->payload = some_bytes(made);
    fill_path(made, &move->shown.pre_path);
    fill_path(made, &move->shown.post_path);
}

static void make_event(struct made *made, struct game_event *event, enum game_event_kind kind)
{
    test_random_fill(&made->random, event, sizeof(*event));
    test_random_fill(&made->random, made->states, sizeof(made->states));
    event->kind = kind;
    event->verdict = below(made, 3);
    event->phase = below(made, 5);
    event->turn = below(made, 2);
    event->outcome = below(made, 3);
    event->flag = below(made, 2) == 1;
    event->segment.diverged = below(made, 2) == 1;
    event->states = (struct game_hashes){made->states, 1 + below(made, STATES)};
    event->segment.steps = event->states.count;
    event->contact = some_bytes(made);
    event->payload = some_bytes(made);
}

/* ---- moves ------------------------------------------------------------------------ */

static void expect_same_or_refused(const uint8_t *bytes, size_t size)
{
    struct game_move move;
    uint8_t *again;
    size_t again_size;

    if (game_move_decode(&move, bytes, size) != STATUS_OK) {
        return;
    }
    again = malloc(game_move_size(&move));
    assert_non_null(again);
    game_move_encode(again, &again_size, &move);
    assert_int_equal(again_size, size);
    assert_memory_equal(again, bytes, size);
    free(again);
}

static void damage_move(struct made *made, uint8_t *bytes, size_t size)
{
    static const uint8_t bad[] = {0x01, 0x20, 0x80, 0xff};

    for (size_t cut = 0; cut < size; cut += 1 + below(made, 40)) {
        struct game_move move;

        assert_int_equal(game_move_decode(&move, bytes, cut), STATUS_BAD_FORMAT);
    }
    for (size_t at = 0; at < size; at += 1 + below(made, 8)) {
        uint8_t old = bytes[at];

        bytes[at] ^= bad[below(made, sizeof(bad))];
        expect_same_or_refused(bytes, size);
        bytes[at] = old;
    }
}

static void test_every_move_has_one_encoding(void **state)
{
    struct made made = {.random = 1};
    struct game_move *moves = calloc(2, sizeof(*moves));

    (void)state;
    assert_non_null(moves);
    for (uint32_t i = 0; i < ROUNDS * GAME_MOVE_KINDS; i++) {
        uint8_t *bytes;
        size_t size;

        make_move(&made, &moves[0], (enum game_move_kind)(i % GAME_MOVE_KINDS));
        assert_true(game_move_fits(&moves[0]));
        bytes = malloc(game_move_size(&moves[0]) + 1);
        assert_non_null(bytes);
        game_move_encode(bytes, &size, &moves[0]);
        assert_int_equal(size, game_move_size(&moves[0]));
        assert_int_equal(game_move_decode(&moves[1], bytes, size), STATUS_OK);
        assert_int_equal(moves[1].kind, moves[0].kind);
        expect_same_or_refused(bytes, size);
        damage_move(&made, bytes, size);
        bytes[size] = 0;
        assert_int_equal(game_move_decode(&moves[1], bytes, size + 1), STATUS_BAD_FORMAT);
        free(bytes);
    }
    free(moves);
}

/* ---- events ----------------------------------------------------------------------- */

static void expect_same_log(const struct game_log *log)
{
    uint8_t bytes[GAME_LOG_SIZE_MAX];
    struct game_event event;
    struct game_log again;

    if (game_event_decode(&event, log) != STATUS_OK) {
        return;
    }
    game_event_encode(&again, bytes, &event);
    assert_int_equal(again.topic_count, log->topic_count);
    assert_memory_equal(again.topics, log->topics, sizeof(log->topics));
    assert_int_equal(again.data.size, log->data.size);
    assert_memory_equal(again.data.bytes, log->data.bytes, log->data.size);
}

static void test_every_event_has_one_encoding(void **state)
{
    struct made made = {.random = 2};
    struct game_event *events = calloc(2, sizeof(*events));

    (void)state;
    assert_non_null(events);
    for (uint32_t i = 0; i < ROUNDS * GAME_EVENT_KINDS; i++) {
        uint8_t bytes[GAME_LOG_SIZE_MAX];
        struct game_log log;
        size_t size;

        make_event(&made, &events[0], (enum game_event_kind)(i % GAME_EVENT_KINDS));
        game_event_encode(&log, bytes, &events[0]);
        size = log.data.size;
        assert_int_equal(game_event_decode(&events[1], &log), STATUS_OK);
        assert_int_equal(events[1].kind, events[0].kind);
        expect_same_log(&log);
        for (size_t at = 0; at < size; at += 1 + below(&made, 8)) {
            uint8_t old = bytes[at];

            bytes[at] ^= (uint8_t)(1u << below(&made, 8));
            expect_same_log(&log);
            bytes[at] = old;
            log.data.size = at;
            assert_int_equal(game_event_decode(&events[1], &log), STATUS_BAD_FORMAT);
            log.data.size = size;
        }
        log.topics[0].bytes[0] ^= 1;
        assert_int_equal(game_event_decode(&events[1], &log), STATUS_NOT_FOUND);
    }
    free(events);
}

/* A ledger that lists more states than steps, or a contact that is too long, is not believed. */
static void test_events_out_of_range_are_refused(void **state)
{
    static uint8_t contact[GAME_CONTACT_MAX + 1];
    uint8_t bytes[GAME_LOG_SIZE_MAX];
    struct made made = {.random = 3};
    struct game_event event;
    struct game_event seen;
    struct game_log log;

    (void)state;
    make_event(&made, &event, GAME_COMMITTED);
    event.segment.steps++;
    game_event_encode(&log, bytes, &event);
    assert_int_equal(game_event_decode(&seen, &log), STATUS_BAD_FORMAT);
    make_event(&made, &event, GAME_ANNOUNCED);
    event.contact = (struct game_bytes){contact, GAME_CONTACT_MAX};
    game_event_encode(&log, bytes, &event);
    assert_int_equal(game_event_decode(&seen, &log), STATUS_OK);
    event.contact.size++;
    game_event_encode(&log, bytes, &event);
    assert_int_equal(game_event_decode(&seen, &log), STATUS_BAD_FORMAT);
    make_event(&made, &event, GAME_RULED);
    event.outcome = GAME_LAPSED + 1;
    game_event_encode(&log, bytes, &event);
    assert_int_equal(game_event_decode(&seen, &log), STATUS_BAD_FORMAT);
}

/* ---- refusals ---------------------------------------------------------------------- */

static void test_every_refusal_is_read_as_written(void **state)
{
    (void)state;
    for (int kind = 1; kind < GAME_REFUSAL_KINDS; kind++) {
        struct game_refusal refusal = {.kind = (enum game_refusal_kind)kind, .number = 77};
        struct game_refusal seen;
        uint8_t bytes[GAME_REVERT_SIZE + 1];
        size_t size;

        game_refusal_encode(bytes, &size, &refusal);
        game_refusal_decode(&seen, bytes, size);
        assert_int_equal(seen.kind, kind);
        assert_true(strlen(game_refusal_text(seen.kind)) > 10);
        game_refusal_decode(&seen, bytes, size - 1);
        assert_int_equal(seen.kind, GAME_REFUSED_NOT);
        bytes[size] = 0;
        game_refusal_decode(&seen, bytes, size + 1);
        assert_int_equal(seen.kind, GAME_REFUSED_NOT);
    }
    /* "Not in a phase that has this move" says nothing to whom it happens. */
    assert_non_null(strstr(game_refusal_text(GAME_WRONG_PHASE), "gone on, or is not there yet"));
}

/* ---- allow-lists -------------------------------------------------------------------- */

static void test_a_list_admits_its_members_alone(void **state)
{
    struct address accounts[ACCOUNTS];
    struct address stranger = {{9}};
    uint64_t random = 4;

    (void)state;
    test_random_fill(&random, accounts, sizeof(accounts));
    for (uint32_t count = 1; count <= ACCOUNTS; count++) {
        struct hash32 root;

        allow_list_root(&root, accounts, count);
        for (uint32_t i = 0; i < ACCOUNTS; i++) {
            struct digest path[GAME_ALLOW_MAX];
            struct game_hashes siblings = {path, 0};
            bool is_member = i < count;

            allow_list_path(path, &siblings.count, accounts, count, is_member ? i : 0);
            assert_int_equal(allow_list_admits(&root, &accounts[i], &siblings), is_member);
            assert_false(allow_list_admits(&root, &stranger, &siblings));
            if (siblings.count > 0) {
                path[siblings.count - 1].bytes[3] ^= 1;
                assert_false(allow_list_admits(&root, &accounts[i], &siblings));
                siblings.count--;
                assert_false(allow_list_admits(&root, &accounts[i], &siblings));
            }
        }
    }
    assert_true(allow_list_admits(&(struct hash32){{0}}, &stranger, &(struct game_hashes){0}));
}

/* A node is never taken for an account: a leaf has one word, a node two. */
static void test_a_path_that_is_too_long_admits_nobody(void **state)
{
    struct digest path[GAME_ALLOW_MAX + 1] = {{{1}}};
    struct address account = {{1}};
    struct hash32 root;

    (void)state;
    allow_list_root(&root, &account, 1);
    assert_true(allow_list_admits(&root, &account, &(struct game_hashes){path, 0}));
    assert_false(
        allow_list_admits(&root, &account, &(struct game_hashes){path, GAME_ALLOW_MAX + 1}));
}

/* ---- amounts ------------------------------------------------------------------------ */

static void test_amounts_are_those_of_the_terms(void **state)
{
    struct game_terms terms = {.steps = 1000,
                               .segment_steps = 10,
                               .reward = 200,
                               .fee = 7,
                               .stake = 3000,
                               .bond = 40,
                               .seats = 2,
                               .coverage_ppm = 200000};

    (void)state;
    assert_int_equal(game_segment_count(&terms), 100);
    assert_true(game_segment_fees(&terms) == 42);
    /* 3 + 100 * 20 % * 3 / 2 = 33 segments. */
    assert_true(game_escrow(&terms) == 100 * 200 + 33 * 42);
    assert_true(game_price(&terms, 2) == 2 * 200 + 2 * 42);
    terms.coverage_ppm = GAME_PPM;
    assert_true(game_fees(&terms, 100) == 100 * 42);
    /* One segment more than are open, and not more than there is. */
    assert_true(game_void_price(&terms, 0) == 200 && game_void_price(&terms, 13) == 2800);
    assert_true(game_void_price(&terms, GAME_OPEN_MAX) == 3000);
    assert_true(game_claim_bond(&terms, 0) == 40 && game_claim_bond(&terms, 15) == 190);
    terms.segment_steps = GAME_STATES_MAX + 1;
    assert_int_equal(game_segment_count(&terms), 0);
}

static void test_what_ends_a_job_wants_three_rights(void **state)
{
    struct game_segment segment = {.index = 8};
    struct game_terms terms = {.seats = 2};

    (void)state;
    assert_int_equal(game_wanted_rights(&terms, &segment, 10), 2);
    assert_int_equal(game_wanted_rights(&terms, &segment, 9), 3);
    segment.diverged = true;
    assert_int_equal(game_wanted_rights(&terms, &segment, 10), 3);
    terms.seats = 5;
    assert_int_equal(game_wanted_rights(&terms, &segment, 10), 5);
    terms.seats = 0;
    assert_int_equal(game_wanted_rights(&terms, &segment, 10), 0);
}

/* ---- vouches ------------------------------------------------------------------------ */

/* By an implementation of EIP-712 in another language (tests/support/keccak.py has its hash). */
static void test_a_vouch_is_bound_to_its_place(void **state)
{
    struct game_place place = {uint256_of(31337), {{0x11}}};
    struct hash32 job = {{0x22}};
    struct hash32 segment = {{0x33}};
    struct hash32 digest = game_vouch_digest(&place, &job, &segment);
    struct hash32 other;
    char text[2 * HASH32_SIZE + 1];

    (void)state;
    hex_write(text, digest.bytes, HASH32_SIZE, false);
    assert_string_equal(text, "cae01fcd6ec16d819fb79298661dfbc91a0ff28e3d5c2fb1a86eafee3c49e85a");
    other = game_vouch_digest(&place, &segment, &job);
    assert_false(hash32_equal(&digest, &other));
    place.chain = uint256_of(1);
    other = game_vouch_digest(&place, &job, &segment);
    assert_false(hash32_equal(&digest, &other));
    place = (struct game_place){uint256_of(31337), {{0x12}}};
    other = game_vouch_digest(&place, &job, &segment);
    assert_false(hash32_equal(&digest, &other));
}

/* ---- seeds of game_fuzz ------------------------------------------------------------- */

static void write_seed(const char *folder, const char *kind, const char *name,
                       const struct buffer *bytes)
{
    struct error error;
    char path[600];
    char *place;

    error_init(&error);
    (void)snprintf(path, sizeof(path), "%s/%s_%s", folder, kind, name);
    while ((place = strchr(path, ' ')) != NULL) {
        *place = '_';
    }
    assert_int_equal(file_write(path, &error, bytes->data, bytes->size, 0644), STATUS_OK);
}

static void write_seeds(const char *folder)
{
    static struct game_event event;
    static struct game_move move;
    struct made made = {.random = 5};
    struct buffer bytes;

    buffer_init(&bytes, GAME_MOVE_SIZE_MAX);
    for (int kind = 0; kind < GAME_MOVE_KINDS; kind++) {
        static uint8_t written[GAME_MOVE_SIZE_MAX];
        size_t size;

        make_move(&made, &move, (enum game_move_kind)kind);
        game_move_encode(written, &size, &move);
        buffer_clear(&bytes);
        buffer_add(&bytes, written, size);
        write_seed(folder, "move", game_move_name(move.kind), &bytes);
    }
    for (int kind = 0; kind < GAME_EVENT_KINDS; kind++) {
        uint8_t data[GAME_LOG_SIZE_MAX];
        struct game_log log;

        make_event(&made, &event, (enum game_event_kind)kind);
        game_event_encode(&log, data, &event);
        buffer_clear(&bytes);
        buffer_add_u8(&bytes, (uint8_t)log.topic_count);
        buffer_add(&bytes, log.topics, log.topic_count * sizeof(log.topics[0]));
        buffer_add(&bytes, log.data.bytes, log.data.size);
        write_seed(folder, "event", game_event_name(event.kind), &bytes);
    }
    buffer_release(&bytes);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_move_has_one_encoding),
        cmocka_unit_test(test_every_event_has_one_encoding),
        cmocka_unit_test(test_events_out_of_range_are_refused),
        cmocka_unit_test(test_every_refusal_is_read_as_written),
        cmocka_unit_test(test_a_list_admits_its_members_alone),
        cmocka_unit_test(test_a_path_that_is_too_long_admits_nobody),
        cmocka_unit_test(test_amounts_are_those_of_the_terms),
        cmocka_unit_test(test_what_ends_a_job_wants_three_rights),
        cmocka_unit_test(test_a_vouch_is_bound_to_its_place),
    };

    if (argc == 3 && strcmp(argv[1], "write") == 0) {
        write_seeds(argv[2]);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
