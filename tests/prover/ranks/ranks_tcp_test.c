/*
 * Goal: ranks that share a secret meet and exchange messages over TCP; nobody else is heard; and
 * what is cut, late, replayed or of another place of the run ends it with the rank's number.
 *
 * Method: ranks are threads with sockets of this machine. Messages of many sizes between all of
 * four, bit by bit. Strangers call first: with junk, with silence, with another secret. Into a
 * connection that stands the test writes what no rank sent. Published vectors of CRC-32C and
 * HMAC-SHA-256, and every bit of a message's head changed once.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/version.h"
#include "prover/ranks/ranks_agree.h"
#include "prover/ranks/ranks_frame.h"
#include "prover/ranks/ranks_meet.h"
#include "prover/ranks/ranks_team.h"
#include "tests/support/test.h"

#define RANKS       4
#define MESSAGE_MAX 300000
#define STRANGERS   40
#define TURNS       4000
#define TURN_SIZE   300

struct one_rank {
    struct ranks_team team;
    uint32_t rank;
    uint32_t count;
    const char *secret;
    const char *at;
    int listener; /* of rank 0 */
    uint64_t wait_s;
    enum status status;
    struct error error;
};

/* ---- seals ------------------------------------------------------------------------------- */

static void test_seals_are_those_of_the_published_vectors(void **state)
{
    static const uint8_t wanted[DIGEST_SIZE] = {0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e,
                                                0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7,
                                                0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27, 0x39, 0x83,
                                                0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43};
    const struct ranks_key key = {.bytes =
                                      "Jefe"}; /* RFC 4231, case 2; shorter keys end in zeros */
    struct digest seal;

    (void)state;
    assert_int_equal(ranks_seal_crc("123456789", 9), 0xe3069283u); /* RFC 3720, B.4's polynomial */
    assert_int_equal(ranks_seal_crc("", 0), 0);
    ranks_seal_hmac(&seal, &key, "what do ya want ", 16, "for nothing?", 12);
    assert_memory_equal(seal.bytes, wanted, sizeof(wanted));
}

/* Bit by bit, as the polynomial says. */
static uint32_t crc_by_bits(const uint8_t *bytes, size_t size)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1u) != 0 ? 0x82f63b78u : 0u);
        }
    }
    return ~crc;
}

static void test_sums_of_any_length_and_place_are_the_polynomials(void **state)
{
    uint8_t bytes[96];

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * i * 37 + i * 11 + 5);
    }
    for (size_t at = 0; at < 16; at++) {
        for (size_t size = 0; at + size <= sizeof(bytes); size++) {
            assert_int_equal(ranks_seal_crc(bytes + at, size), crc_by_bits(bytes + at, size));
        }
    }
}

static void test_every_bit_of_a_message_is_sealed(void **state)
{
    const struct ranks_key key = {.bytes = "a key"};
    const struct ranks_frame frame = {
        .from = 1, .to = 2, .tag = 3, .step = 4, .number = 5, .size = 8};
    uint8_t head[RANKS_FRAME_SIZE];
    uint8_t bytes[8] = "payload";
    struct ranks_frame read;

    (void)state;
    ranks_frame_write(head, &frame, &key, bytes);
    assert_true(ranks_frame_read(&read, head));
    assert_true(ranks_frame_is_sealed(head, &key, bytes, sizeof(bytes)));
    assert_true(ranks_frame_is_whole(head, bytes, sizeof(bytes)));
    assert_int_equal(read.number, 5);
    assert_int_equal(read.step, 4);
    for (size_t bit = 0; bit < 8 * (sizeof(head) + sizeof(bytes)); bit++) {
        uint8_t *byte = bit / 8 < sizeof(head) ? &head[bit / 8] : &bytes[bit / 8 - sizeof(head)];

        *byte ^= (uint8_t)(1u << bit % 8);
        assert_false(ranks_frame_is_sealed(head, &key, bytes, sizeof(bytes)));
        *byte ^= (uint8_t)(1u << bit % 8);
    }
}

/* Written by fixtures/corpus/make_wires.py from docs/FORMATS.md. */
static void test_a_message_of_another_writer_reads_as_the_format_says(void **state)
{
    const struct ranks_key key = {.bytes = "the key of ranks_frame_fuzz"};
    uint8_t message[RANKS_FRAME_SIZE + 160];
    const uint8_t *bytes = message + RANKS_FRAME_SIZE;
    struct ranks_frame frame;
    FILE *file = fopen("fixtures/corpus/ranks_frame/sums", "rbe");

    (void)state;
    assert_non_null(file);
    assert_int_equal(fread(message, 1, sizeof(message), file), sizeof(message));
    (void)fclose(file);
    assert_true(ranks_frame_read(&frame, message));
    assert_true(ranks_frame_is_sealed(message, &key, bytes, 160));
    assert_true(ranks_frame_is_whole(message, bytes, 160));
    assert_int_equal(frame.from, 1);
    assert_int_equal(frame.to, 0);
    assert_int_equal(frame.tag, 1);
    assert_int_equal(frame.step, 7);
    assert_int_equal(frame.number, 9);
    assert_int_equal(frame.size, 160);
    assert_int_equal(frame.job.bytes[31], 31);
}

/* ---- meeting ----------------------------------------------------------------------------- */

static void *meet(void *context)
{
    struct one_rank *own = context;

    error_init(&own->error);
    own->status = ranks_tcp_open(&own->team, own->rank, own->count, &own->error);
    own->team.wait_least = own->wait_s == 0 ? 30 : own->wait_s;
    if (own->status == STATUS_OK) {
        own->status = own->rank == 0
                          ? ranks_meet_all(&own->team, own->listener, own->secret, -1, &own->error)
                          : ranks_meet_call(&own->team, own->at, own->secret, &own->error);
    }
    return NULL;
}

static void run_all(struct one_rank *ranks, uint32_t count, void *(*work)(void *context))
{
    pthread_t threads[RANKS];

    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, &ranks[i]), 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

static void begin(struct one_rank *ranks, uint32_t count, char at[RANKS_PLACE_MAX])
{
    struct error error;
    int listener;

    error_init(&error);
    assert_int_equal(ranks_meet_listen(&listener, at, "127.0.0.1:0", &error), STATUS_OK);
    for (uint32_t i = 0; i < count; i++) {
        ranks[i] = (struct one_rank){
            .rank = i, .count = count, .secret = "secret", .at = at, .listener = listener};
    }
}

static void open_all(struct one_rank *ranks, uint32_t count)
{
    static char at[RANKS_PLACE_MAX];

    begin(ranks, count, at);
    run_all(ranks, count, meet);
    for (uint32_t i = 0; i < count; i++) {
        if (ranks[i].status != STATUS_OK) {
            fail_msg("rank %u: %s", i, ranks[i].error.text);
        }
    }
}

static void close_all(struct one_rank *ranks, uint32_t count)
{
    (void)close(ranks[0].listener);
    for (uint32_t i = 0; i < count; i++) {
        ranks[i].team.lost = false; /* or each stays two seconds */
        ranks_team_close(&ranks[i].team);
    }
}

/* ---- exchanges --------------------------------------------------------------------------- */

static size_t size_between(uint32_t from, uint32_t to, uint32_t turn)
{
    return (from * 7919u + to * 104729u + turn * 31u) % MESSAGE_MAX;
}

static void *exchange_all(void *context)
{
    struct one_rank *own = context;
    uint8_t *out[RANKS];
    uint8_t *in[RANKS];

    for (uint32_t i = 0; i < RANKS; i++) {
        out[i] = malloc(MESSAGE_MAX);
        in[i] = malloc(MESSAGE_MAX);
    }
    for (uint32_t turn = 0; turn < 20 && own->status == STATUS_OK; turn++) {
        struct ranks_transfer transfers[2 * RANKS];
        uint32_t count = 0;

        for (uint32_t peer = 0; peer < RANKS; peer++) {
            const size_t sent = size_between(own->rank, peer, turn);

            if (peer == own->rank) {
                continue;
            }
            memset(out[peer], (int)(own->rank * 16 + peer + turn), sent);
            transfers[count++] = (struct ranks_transfer){
                .peer = peer, .tag = turn, .sends = true, .bytes = out[peer], .size = sent};
            transfers[count++] =
                (struct ranks_transfer){.peer = peer,
                                        .tag = turn,
                                        .bytes = in[peer],
                                        .size = size_between(peer, own->rank, turn)};
        }
        own->status =
            own->team.link.exchange(own->team.link.context, transfers, count, &own->error);
        for (uint32_t peer = 0; peer < RANKS && own->status == STATUS_OK; peer++) {
            const size_t got = size_between(peer, own->rank, turn);

            for (size_t i = 0; peer != own->rank && i < got; i++) {
                if (in[peer][i] != (uint8_t)(peer * 16 + own->rank + turn)) {
                    own->status = STATUS_BAD_FORMAT;
                }
            }
        }
        ranks_team_stepped(&own->team, 1000);
    }
    for (uint32_t i = 0; i < RANKS; i++) {
        free(out[i]);
        free(in[i]);
    }
    return NULL;
}

static void test_four_ranks_send_each_other_all_at_once(void **state)
{
    struct one_rank ranks[RANKS];

    (void)state;
    open_all(ranks, RANKS);
    run_all(ranks, RANKS, exchange_all);
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_int_equal(ranks[i].status, STATUS_OK);
        assert_int_equal(ranks[i].team.dropped, 0);
    }
    close_all(ranks, RANKS);
}

static void *exchange_many(void *context)
{
    struct one_rank *own = context;
    struct ranks_transfer *transfers = calloc(TURNS, sizeof(*transfers));
    const int least = 4096; /* a connection that often takes no first byte of a message */
    const int socket = own->team.peers[1 - own->rank].socket;
    uint8_t bytes[TURN_SIZE] = {0};

    (void)setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
    (void)setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));

    for (uint32_t i = 0; i < TURNS; i++) {
        transfers[i] = (struct ranks_transfer){.peer = 1 - own->rank,
                                               .tag = i,
                                               .sends = own->rank == 0,
                                               .bytes = bytes,
                                               .size = 1 + i % TURN_SIZE};
    }
    own->status = own->team.link.exchange(own->team.link.context, transfers, TURNS, &own->error);
    free(transfers);
    return NULL;
}

static void test_many_messages_to_one_slow_rank_keep_their_numbers(void **state)
{
    struct one_rank ranks[2];

    (void)state;
    open_all(ranks, 2);
    run_all(ranks, 2, exchange_many);
    for (uint32_t i = 0; i < 2; i++) {
        if (ranks[i].status != STATUS_OK) {
            fail_msg("rank %u: %s", i, ranks[i].error.text);
        }
    }
    close_all(ranks, 2);
}

/* ---- strangers --------------------------------------------------------------------------- */

static int call(const char *at)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    const int made = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)atoi(strrchr(at, ':') + 1));
    assert_int_equal(connect(made, (struct sockaddr *)&address, sizeof(address)), 0);
    return made;
}

static void test_callers_without_the_secret_are_dropped_and_counted(void **state)
{
    static char at[RANKS_PLACE_MAX];
    struct one_rank ranks[2];
    uint8_t junk[4096];
    int strangers[3];

    (void)state;
    begin(ranks, 2, at);
    for (int i = 0; i < 3; i++) {
        strangers[i] = call(at);
    }
    memset(junk, 0x5a, sizeof(junk));
    assert_int_equal(send(strangers[0], junk, sizeof(junk), 0), sizeof(junk));
    memcpy(junk, RANKS_FRAME_MAGIC, 8);
    assert_int_equal(send(strangers[1], junk, 60, 0), 60); /* and hangs up */
    (void)close(strangers[1]);
    run_all(ranks, 2, meet); /* the third says nothing for three seconds */
    assert_int_equal(ranks[0].status, STATUS_OK);
    assert_int_equal(ranks[1].status, STATUS_OK);
    assert_int_equal(ranks[0].team.dropped, 3);
    (void)close(strangers[0]);
    (void)close(strangers[2]);
    close_all(ranks, 2);
}

/* Each may be silent for three seconds; one after another they would take longer than a meeting.
 * The process may have few files, as the system's soft limit is. */
static void test_silent_strangers_hold_up_nobody(void **state)
{
    static char at[RANKS_PLACE_MAX];
    struct one_rank ranks[RANKS];
    int strangers[STRANGERS];
    struct rlimit before;
    struct rlimit few;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    begin(ranks, RANKS, at);
    for (int i = 0; i < STRANGERS; i++) {
        strangers[i] = call(at);
    }
    few = before;
    few.rlim_cur = (rlim_t)strangers[STRANGERS - 1] + 4;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (uint32_t i = 0; i < RANKS; i++) {
        ranks[i].wait_s = 10;
    }
    run_all(ranks, RANKS, meet);
    for (uint32_t i = 0; i < RANKS; i++) {
        if (ranks[i].status != STATUS_OK) {
            fail_msg("rank %u: %s", i, ranks[i].error.text);
        }
    }
    assert_int_equal(ranks[0].team.dropped, STRANGERS);
    for (int i = 0; i < STRANGERS; i++) {
        (void)close(strangers[i]);
    }
    close_all(ranks, RANKS);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void test_a_rank_with_another_secret_does_not_come_in(void **state)
{
    static char at[RANKS_PLACE_MAX];
    struct one_rank ranks[2];

    (void)state;
    begin(ranks, 2, at);
    ranks[1].secret = "another";
    ranks[0].wait_s = 2;
    run_all(ranks, 2, meet);
    assert_int_equal(ranks[0].status, STATUS_RANK_LOST);
    assert_non_null(strstr(ranks[0].error.text, "rank 1 of 2 has not come (dropped 1)"));
    assert_int_equal(ranks[1].status, STATUS_RANK_LOST);
    assert_non_null(strstr(ranks[1].error.advice, "one LOCKSTEP_RANKS_SECRET"));
    close_all(ranks, 2);
}

/* ---- what comes over a connection that stands -------------------------------------------- */

/* What rank 0 finds when it waits for eight bytes of rank 1 under tag 7. */
static enum status hear(struct one_rank *rank, uint8_t bytes[8])
{
    const struct ranks_transfer heard = {.peer = 1, .tag = 7, .bytes = bytes, .size = 8};

    error_init(&rank->error);
    return rank->team.link.exchange(rank->team.link.context, &heard, 1, &rank->error);
}

static void say(struct one_rank *rank, const struct ranks_frame *frame, const struct ranks_key *key)
{
    uint8_t message[RANKS_FRAME_SIZE + 8];

    memcpy(message + RANKS_FRAME_SIZE, "truthful", 8);
    ranks_frame_write(message, frame, key, message + RANKS_FRAME_SIZE);
    assert_int_equal(send(rank->team.peers[0].socket, message, sizeof(message), 0),
                     sizeof(message));
}

static void test_a_message_without_the_seal_is_dropped_and_counted(void **state)
{
    const struct ranks_key wrong = {.bytes = "wrong"};
    const struct ranks_frame frame = {.from = 1, .tag = 7, .size = 8};
    struct one_rank ranks[2];
    uint8_t bytes[8];

    (void)state;
    open_all(ranks, 2);
    say(&ranks[1], &frame, &wrong);
    say(&ranks[1], &frame, &ranks[1].team.key);
    assert_int_equal(hear(&ranks[0], bytes), STATUS_OK);
    assert_memory_equal(bytes, "truthful", 8);
    assert_int_equal(ranks[0].team.dropped, 1);
    say(&ranks[1], &frame, &ranks[1].team.key); /* the same message again */
    assert_int_equal(hear(&ranks[0], bytes), STATUS_RANK_LOST);
    assert_non_null(strstr(ranks[0].error.text, "rank 1 (127.0.0.1) is at another place"));
    close_all(ranks, 2);
}

static void check_other_place(const struct ranks_frame *frame, const char *text)
{
    struct one_rank ranks[2];
    uint8_t bytes[8];

    open_all(ranks, 2);
    say(&ranks[1], frame, &ranks[1].team.key);
    assert_int_equal(hear(&ranks[0], bytes), STATUS_RANK_LOST);
    if (strstr(ranks[0].error.text, text) == NULL) {
        fail_msg("'%s' does not say '%s'", ranks[0].error.text, text);
    }
    close_all(ranks, 2);
}

static void test_a_message_of_another_place_ends_the_run(void **state)
{
    const char *text = "rank 1 (127.0.0.1) is at another place of the run";

    (void)state;
    check_other_place(&(struct ranks_frame){.from = 1, .tag = 8, .size = 8}, text);
    check_other_place(&(struct ranks_frame){.from = 1, .tag = 7, .step = 1, .size = 8}, text);
    check_other_place(&(struct ranks_frame){.from = 1, .tag = 7, .job.bytes = {1}, .size = 8},
                      text);
    check_other_place(&(struct ranks_frame){.from = 2, .tag = 7, .size = 8}, text);
    check_other_place(&(struct ranks_frame){.from = 1, .tag = 7, .size = 7},
                      "sent what is no message of this place");
}

static void test_a_cut_message_and_a_silent_rank_end_the_run(void **state)
{
    struct one_rank ranks[2];
    uint8_t bytes[8];

    (void)state;
    open_all(ranks, 2);
    ranks[0].team.wait_least = 1;
    ranks_team_stepped(&ranks[0].team, 1000);
    assert_int_equal(hear(&ranks[0], bytes), STATUS_RANK_LOST);
    assert_non_null(strstr(ranks[0].error.text, "rank 1 (127.0.0.1) moved nothing for 1 s"));
    assert_int_equal(send(ranks[1].team.peers[0].socket, RANKS_FRAME_MAGIC, 8, 0), 8);
    (void)shutdown(ranks[1].team.peers[0].socket, SHUT_WR);
    assert_int_equal(hear(&ranks[0], bytes), STATUS_RANK_LOST);
    assert_non_null(strstr(ranks[0].error.text, "hung up in the middle of a message"));
    close_all(ranks, 2);
}

static void *say_late(void *context)
{
    const struct ranks_frame frame = {.from = 1, .tag = 7, .step = 1, .size = 8};
    struct one_rank *own = context;

    (void)usleep(2500000);
    say(own, &frame, &own->team.key);
    return NULL;
}

static void test_between_steps_a_rank_may_be_slower_than_the_limit(void **state)
{
    struct one_rank ranks[2];
    uint8_t bytes[8];
    const struct ranks_transfer heard = {
        .peer = 1, .tag = 7, .idle = true, .bytes = bytes, .size = 8};
    pthread_t late;

    (void)state;
    open_all(ranks, 2);
    ranks[0].team.wait_least = 1;
    ranks_team_stepped(&ranks[0].team, 1000);
    assert_int_equal(pthread_create(&late, NULL, say_late, &ranks[1]), 0);
    assert_int_equal(
        ranks[0].team.link.exchange(ranks[0].team.link.context, &heard, 1, &ranks[0].error),
        STATUS_OK);
    (void)pthread_join(late, NULL);
    close_all(ranks, 2);
}

/* Of three ranks two wait for each other; the third, from which neither wants anything, is gone. */
static void test_in_a_step_all_name_the_rank_that_is_gone(void **state)
{
    struct one_rank ranks[3];
    uint8_t bytes[8];

    (void)state;
    open_all(ranks, 3);
    (void)shutdown(ranks[2].team.peers[0].socket, SHUT_RDWR);
    assert_int_equal(hear(&ranks[0], bytes), STATUS_RANK_LOST);
    assert_non_null(strstr(ranks[0].error.text, "rank 2 (127.0.0.1) has hung up"));
    close_all(ranks, 3);
}

static void test_the_limit_follows_the_last_steps(void **state)
{
    struct ranks_team team = {.wait_least = RANKS_WAIT_LEAST};

    (void)state;
    assert_int_equal(ranks_team_limit(&team, NULL, 0),
                     600); /* the first step reads files for the first time */
    ranks_team_stepped(&team, UINT64_C(3) * 1000000000u);
    assert_int_equal(ranks_team_limit(&team, NULL, 0), 60);
    ranks_team_stepped(&team, UINT64_C(30) * 1000000000u);
    assert_int_equal(ranks_team_limit(&team, NULL, 0), 300);
    for (int i = 0; i < RANKS_STEPS_SEEN; i++) {
        ranks_team_stepped(&team, 1000000);
    }
    assert_int_equal(ranks_team_limit(&team, NULL, 0), 60);
}

/* ---- agreement --------------------------------------------------------------------------- */

static struct ranks_word forged;

static void *agree(void *context)
{
    struct one_rank *own = context;
    const struct digest job = {.bytes = {0xab}};
    struct ranks_word verdict;
    const struct ranks_transfer transfers[] = {
        {.tag = RANKS_TAG_HAVE, .sends = true, .bytes = &forged, .size = sizeof(forged)},
        {.tag = RANKS_TAG_VERDICT, .bytes = &verdict, .size = sizeof(verdict)}};

    error_init(&own->error);
    own->status = own->rank == 1
                      ? own->team.link.exchange(own->team.link.context, transfers, 2, &own->error)
                      : ranks_agree(&own->team, &job, STATUS_OK, &own->error);
    return NULL;
}

static void check_word(const char *version, uint32_t byte_order, const char *text)
{
    struct one_rank ranks[2];

    open_all(ranks, 2);
    forged = (struct ranks_word){.byte_order = byte_order, .job.bytes = {0xab}};
    (void)snprintf(forged.version, sizeof(forged.version), "%s", version);
    run_all(ranks, 2, agree);
    assert_int_equal(ranks[1].status, STATUS_OK);
    assert_int_equal(ranks[0].status, text == NULL ? STATUS_OK : STATUS_REFUSED);
    if (text != NULL && strstr(ranks[0].error.text, text) == NULL) {
        fail_msg("'%s' does not say '%s'", ranks[0].error.text, text);
    }
    close_all(ranks, 2);
}

static void test_other_versions_and_byte_orders_are_refused_by_name(void **state)
{
    (void)state;
    check_word(LOCKSTEP_VERSION, RANKS_BYTE_ORDER, NULL);
    check_word("0.0.7", RANKS_BYTE_ORDER, "rank 1 (127.0.0.1) runs version 0.0.7, and rank 0 runs");
    check_word(LOCKSTEP_VERSION, 0x04030201u,
               "rank 1 (127.0.0.1) is a machine of another byte order");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seals_are_those_of_the_published_vectors),
        cmocka_unit_test(test_sums_of_any_length_and_place_are_the_polynomials),
        cmocka_unit_test(test_every_bit_of_a_message_is_sealed),
        cmocka_unit_test(test_a_message_of_another_writer_reads_as_the_format_says),
        cmocka_unit_test(test_four_ranks_send_each_other_all_at_once),
        cmocka_unit_test(test_many_messages_to_one_slow_rank_keep_their_numbers),
        cmocka_unit_test(test_callers_without_the_secret_are_dropped_and_counted),
        cmocka_unit_test(test_silent_strangers_hold_up_nobody),
        cmocka_unit_test(test_a_rank_with_another_secret_does_not_come_in),
        cmocka_unit_test(test_a_message_without_the_seal_is_dropped_and_counted),
        cmocka_unit_test(test_a_message_of_another_place_ends_the_run),
        cmocka_unit_test(test_a_cut_message_and_a_silent_rank_end_the_run),
        cmocka_unit_test(test_between_steps_a_rank_may_be_slower_than_the_limit),
        cmocka_unit_test(test_in_a_step_all_name_the_rank_that_is_gone),
        cmocka_unit_test(test_the_limit_follows_the_last_steps),
        cmocka_unit_test(test_other_versions_and_byte_orders_are_refused_by_name),
    };

    test_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
