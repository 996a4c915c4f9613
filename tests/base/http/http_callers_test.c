/*
 * Goal: a caller that comes to a full server finds room, and it is made by the network that holds
 * most, by who has not asked yet; who sends or reads too slowly has to go; who asked and reads
 * stays. Method: callers with addresses of every kind and sockets that lead to nobody; the time is
 * given.
 */
#include "base/http/http_callers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/test.h"

#define NETWORKS 16
#define EACH     16
#define ROOM     (NETWORKS * EACH)

static const struct http_limits limits = {.room = ROOM,
                                          .per_network = EACH,
                                          .head_ms = 10000,
                                          .pace_ms = 10000,
                                          .trickle = 256,
                                          .bytes_max = 1000};

/* Somebody at the other end of a socket. */
struct guest {
    struct http_caller *caller;
    int ours;
    int theirs;
};

static struct guest come(struct http_callers *callers, const char *address, uint64_t now_ms)
{
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct guest guest;
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    guest.ours = pair[0];
    guest.theirs = pair[1];
    if (inet_pton(AF_INET, address, &four.sin_addr) == 1) {
        guest.caller = http_callers_come(callers, pair[0], (const struct sockaddr *)&four, now_ms);
    } else {
        assert_int_equal(inet_pton(AF_INET6, address, &six.sin6_addr), 1);
        guest.caller = http_callers_come(callers, pair[0], (const struct sockaddr *)&six, now_ms);
    }
    assert_non_null(guest.caller);
    return guest;
}

static bool is_away(struct guest guest)
{
    char byte;

    return recv(guest.theirs, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
}

static uint32_t count_away(const struct guest *all, uint32_t count)
{
    uint32_t away = 0;

    for (uint32_t i = 0; i < count; i++) {
        away += is_away(all[i]);
    }
    return away;
}

static void leave(const struct guest *all, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        (void)close(all[i].ours);
        (void)close(all[i].theirs);
    }
}

static void test_networks_that_fill_the_server_make_room(void **state)
{
    struct http_callers *callers = http_callers_new(&limits);
    struct guest all[ROOM];
    struct guest honest;
    char address[40];

    (void)state;
    for (uint32_t i = 0; i < ROOM; i++) {
        (void)snprintf(address, sizeof(address), "10.0.0.%u", i % NETWORKS);
        all[i] = come(callers, address, i);
        if (i % 3 == 0) {
            http_callers_turn(callers, all[i].caller, HTTP_TURN_ANSWER, 0, i);
        }
    }
    assert_int_equal(count_away(all, ROOM), 0);
    honest = come(callers, "192.0.2.1", ROOM);
    assert_true(is_away(all[1])); /* the oldest that has not asked */
    for (uint32_t i = 0; i < 40; i++) {
        (void)snprintf(address, sizeof(address), "192.0.2.%u", 2 + i);
        (void)come(callers, address, ROOM);
        assert_int_equal(count_away(all, ROOM), 2 + i);
        assert_false(is_away(honest));
        assert_false(is_away(all[0])); /* it has asked, and reads */
    }
    leave(all, ROOM);
    http_callers_free(callers);
}

/* 2001:db8:1::/64 is one network however many addresses it has; another /64 is another. */
static void test_an_ipv6_network_counts_once(void **state)
{
    struct http_callers *callers = http_callers_new(&limits);
    struct guest first = come(callers, "2001:db8:1::1", 0);
    struct guest other = come(callers, "2001:db8:2::1", 0);
    char address[40];

    (void)state;
    for (uint32_t i = 1; i < EACH; i++) {
        (void)snprintf(address, sizeof(address), "2001:db8:1::%x:1", i);
        (void)come(callers, address, i);
    }
    assert_false(is_away(first));
    (void)come(callers, "2001:db8:1::ffff:1", EACH);
    assert_true(is_away(first));
    assert_false(is_away(other));
    http_callers_free(callers);
}

static void test_a_network_whose_callers_all_asked_gets_no_more(void **state)
{
    struct http_callers *callers = http_callers_new(&limits);
    struct guest all[EACH];

    (void)state;
    for (uint32_t i = 0; i < EACH; i++) {
        all[i] = come(callers, "192.0.2.1", i);
        http_callers_turn(callers, all[i].caller, HTTP_TURN_ANSWER, 0, i);
    }
    assert_true(is_away(come(callers, "::ffff:192.0.2.1", EACH)));
    assert_int_equal(count_away(all, EACH), 0);
    http_callers_free(callers);
}

static void test_headers_that_take_too_long_end_the_call(void **state)
{
    struct http_callers *callers = http_callers_new(&limits);
    struct guest slow = come(callers, "192.0.2.1", 0);
    struct guest waits = come(callers, "192.0.2.2", 0);

    (void)state;
    http_callers_turn(callers, waits.caller, HTTP_TURN_WORK, 0, 0);
    http_callers_look(callers, 10000);
    assert_false(is_away(slow));
    http_callers_look(callers, 10001);
    assert_true(is_away(slow));
    http_callers_look(callers, 1000000);
    assert_false(is_away(waits)); /* it waits for us */
    http_callers_free(callers);
}

/* One sends 400 bytes a second, one 100. */
static void test_who_sends_less_than_a_trickle_has_to_go(void **state)
{
    struct http_callers *callers = http_callers_new(&limits);
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(place);
    int server = socket(AF_INET, SOCK_STREAM, 0);
    int ours[2];
    int theirs[2];
    struct guest all[2];
    char bytes[4000] = {0};

    (void)state;
    assert_int_equal(bind(server, (struct sockaddr *)&place, size), 0);
    assert_int_equal(listen(server, 2), 0);
    assert_int_equal(getsockname(server, (struct sockaddr *)&place, &size), 0);
    for (int i = 0; i < 2; i++) {
        theirs[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(theirs[i], (struct sockaddr *)&place, size), 0);
        ours[i] = accept(server, NULL, NULL);
        all[i] = (struct guest){http_callers_come(callers, ours[i], (struct sockaddr *)&place, 0),
                                ours[i], theirs[i]};
        http_callers_turn(callers, all[i].caller, HTTP_TURN_BODY, 0, 0);
        assert_int_equal(send(theirs[i], bytes, i == 0 ? 4000 : 1000, 0), i == 0 ? 4000 : 1000);
        assert_int_equal(recv(ours[i], bytes, i == 0 ? 4000 : 1000, MSG_WAITALL),
                         i == 0 ? 4000 : 1000);
    }
    http_callers_look(callers, 10000);
    assert_false(is_away(all[0]));
    assert_true(is_away(all[1]));
    http_callers_look(callers, 20000); /* nothing more came */
    assert_true(is_away(all[0]));
    leave(all, 2);
    (void)close(server);
    http_callers_free(callers);
}

static void test_an_answer_of_any_size_is_given(void **state)
{
    struct http_callers *callers = http_callers_new(&limits);
    struct guest first = come(callers, "192.0.2.1", 0);
    struct guest second = come(callers, "192.0.2.2", 0);

    (void)state;
    http_callers_turn(callers, first.caller, HTTP_TURN_ANSWER, limits.bytes_max, 0);
    http_callers_turn(callers, first.caller, HTTP_TURN_HEAD, 0, 0);
    assert_false(is_away(first));
    http_callers_turn(callers, first.caller, HTTP_TURN_ANSWER, 1, 0);
    http_callers_turn(callers, second.caller, HTTP_TURN_ANSWER, 2 * limits.bytes_max, 0);
    assert_true(is_away(first));
    assert_false(is_away(second));
    http_callers_go(callers, first.caller);
    http_callers_go(callers, second.caller);
    http_callers_free(callers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_networks_that_fill_the_server_make_room),
        cmocka_unit_test(test_an_ipv6_network_counts_once),
        cmocka_unit_test(test_a_network_whose_callers_all_asked_gets_no_more),
        cmocka_unit_test(test_headers_that_take_too_long_end_the_call),
        cmocka_unit_test(test_who_sends_less_than_a_trickle_has_to_go),
        cmocka_unit_test(test_an_answer_of_any_size_is_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
