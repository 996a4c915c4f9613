/*
 * Goal: what a stranger names leads to the public Internet and nowhere else, in every form in which
 * an address can be written; what the user names leads everywhere.
 * Method: the first and the last address of each range that is not public, and their neighbours.
 */
#include "base/http/http_reach.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

#include "tests/support/test.h"

static const char *refused(enum http_reach reach, const char *text)
{
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};

    if (inet_pton(AF_INET, text, &four.sin_addr) == 1) {
        return http_reach_refuses(reach, (const struct sockaddr *)&four);
    }
    assert_int_equal(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
    return http_reach_refuses(reach, (const struct sockaddr *)&six);
}

static const char *const inner[] = {
    "0.0.0.0",
    "0.255.255.255",
    "10.0.0.0",
    "10.255.255.255",
    "100.64.0.0",
    "100.127.255.255",
    "169.254.0.0",
    "169.254.169.254",
    "169.254.255.255",
    "172.16.0.0",
    "172.31.255.255",
    "192.0.0.0",
    "192.0.2.1",
    "192.168.0.0",
    "192.168.255.255",
    "198.18.0.0",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.7",
    "224.0.0.0",
    "239.255.255.255",
    "240.0.0.0",
    "255.255.255.255",
    "::",
    "::2",
    "::10.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:192.168.1.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::8.8.8.8",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:a00:1::1",
    "2002:c0a8:101::1",
    "fc00::",
    "fdff::1",
    "fe80::1",
    "febf::1",
    "fec0::1",
    "ff02::1",
};

static const char *const loopback[] = {"127.0.0.1",        "127.255.255.255", "::1",
                                       "::ffff:127.0.0.1", "::127.0.0.1",     "64:ff9b::127.0.0.1",
                                       "2002:7f00:1::1"};

static const char *const outer[] = {
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2001:4860:4860::8888",
    "2002:808:808::1",
    "fbff::1",
    "2a00::1",
};

#define COUNT(of) (sizeof(of) / sizeof((of)[0]))

static void test_addresses_that_are_not_public_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(inner); i++) {
        if (refused(HTTP_REACH_PUBLIC, inner[i]) == NULL ||
            refused(HTTP_REACH_LOOPBACK, inner[i]) == NULL) {
            fail_msg("%s is called", inner[i]);
        }
        assert_null(refused(HTTP_REACH_ANY, inner[i]));
    }
    for (size_t i = 0; i < COUNT(loopback); i++) {
        if (refused(HTTP_REACH_PUBLIC, loopback[i]) == NULL ||
            refused(HTTP_REACH_LOOPBACK, loopback[i]) != NULL) {
            fail_msg("%s", loopback[i]);
        }
    }
    for (size_t i = 0; i < COUNT(outer); i++) {
        if (refused(HTTP_REACH_PUBLIC, outer[i]) != NULL) {
            fail_msg("%s is not called", outer[i]);
        }
    }
}

static void test_other_families_are_refused(void **state)
{
    const struct sockaddr local = {.sa_family = AF_UNIX};

    (void)state;
    assert_non_null(http_reach_refuses(HTTP_REACH_PUBLIC, &local));
    assert_non_null(http_reach_refuses(HTTP_REACH_LOOPBACK, &local));
}

static void test_urls_that_say_more_than_a_place_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "ftp://a.example",
        "file:///etc/passwd",
        "http:/a.example",
        "http://a?",
        "http://a.example/?x=1",
        "http://a.example/#x",
        "http://u@a.example",
        "http://a ",
        "http://a\n.example",
        "http://u:p@a.example/v1",
        "http://a\\b",
        "http://\x7f",
        "http://\xc3\xa4",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (http_reach_bad_url(bad[i]) == NULL) {
            fail_msg("'%s' is taken", bad[i]);
        }
    }
    assert_null(http_reach_bad_url("http://a.example:7570/prefix/"));
    assert_null(http_reach_bad_url("https://[2a00::1]:443"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses_that_are_not_public_are_refused),
        cmocka_unit_test(test_other_families_are_refused),
        cmocka_unit_test(test_urls_that_say_more_than_a_place_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
