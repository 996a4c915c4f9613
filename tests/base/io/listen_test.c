/*
 * Goal: a place to listen at is read from text strictly, and its URL calls it. Method: texts with
 * one fault each; sockets that are bound.
 */
#include "tests/support/test.h"

#include <string.h>
#include <unistd.h>

#include "base/io/listen.h"

static void test_place_is_an_address_and_a_port(void **state)
{
    static const char *const bad[] = {
        "",      ":",    "x",   "127.0.0.1:",  "1.2.3.4:x", "::1:80", "127.0.0.1:65536",
        "1:2:3", "[]:1", ":80", "127.0.0.1:-1"};
    struct listen_place place;
    struct error error;

    (void)state;
    error_init(&error);
    assert_int_equal(listen_place_read(&place, "7571", &error), STATUS_OK);
    assert_string_equal(place.address, "127.0.0.1");
    assert_int_equal(place.port, 7571);
    assert_int_equal(listen_place_read(&place, "[::1]:80", &error), STATUS_OK);
    assert_string_equal(place.address, "::1");
    assert_false(listen_place_is_any(&place));
    assert_int_equal(listen_place_read(&place, "0.0.0.0:0", &error), STATUS_OK);
    assert_true(listen_place_is_any(&place));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(listen_place_read(&place, bad[i], &error), STATUS_USAGE);
    }
}

static void test_url_of_a_place_names_scheme_and_brackets(void **state)
{
    static const struct {
        const char *text;
        bool tls;
        const char *url;
    } rows[] = {{"127.0.0.1:7570", false, "http://127.0.0.1:7570"},
                {"[::1]:80", true, "https://[::1]:80"}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct listen_place place;
        char url[LISTEN_URL_MAX];

        assert_int_equal(listen_place_read(&place, rows[i].text, NULL), STATUS_OK);
        listen_place_url(url, &place, rows[i].tls);
        assert_string_equal(url, rows[i].url);
    }
}

static void test_socket_is_of_the_family_of_the_address(void **state)
{
    struct listen_place place = {.address = "127.0.0.1", .port = 0};
    struct sockaddr_storage socket_address;
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);

    (void)state;
    assert_int_equal(listen_place_socket(&socket_address, &place, NULL), STATUS_OK);
    assert_int_equal(socket_address.ss_family, AF_INET);
    assert_int_equal(bind(descriptor, (struct sockaddr *)&socket_address, sizeof(socket_address)),
                     0);
    (void)close(descriptor);
    (void)strcpy(place.address, "::1");
    assert_int_equal(listen_place_socket(&socket_address, &place, NULL), STATUS_OK);
    assert_int_equal(socket_address.ss_family, AF_INET6);
    (void)strcpy(place.address, "localhost");
    assert_int_equal(listen_place_socket(&socket_address, &place, NULL), STATUS_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place_is_an_address_and_a_port),
        cmocka_unit_test(test_url_of_a_place_names_scheme_and_brackets),
        cmocka_unit_test(test_socket_is_of_the_family_of_the_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
