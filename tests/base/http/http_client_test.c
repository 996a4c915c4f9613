/*
 * Goal: after http_client_set() libcurl goes to http and https and to nothing else.
 * Method: a readable file, and addresses where nobody listens. The error tells a refused kind of
 * address from one that was tried.
 */
#include "base/http/http_client.h"

#include <stdio.h>

#include "tests/support/test.h"

static CURLcode tried(const char *url, bool http_only)
{
    struct http_client client = {.reach = HTTP_REACH_ANY};
    CURLcode result;

    assert_int_equal(http_client_open(&client, NULL), STATUS_OK);
    if (http_only) {
        assert_true(http_client_set(&client, url, 1000, 0));
    }
    assert_int_equal(curl_easy_setopt(client.curl, CURLOPT_URL, url), CURLE_OK);
    assert_int_equal(curl_easy_setopt(client.curl, CURLOPT_NOBODY, 1L), CURLE_OK);
    assert_int_equal(curl_easy_setopt(client.curl, CURLOPT_PROXY, ""), CURLE_OK);
    result = curl_easy_perform(client.curl);
    http_client_close(&client);
    return result;
}

static void test_http_and_https_are_tried(void **state)
{
    (void)state;
    assert_int_equal(tried("http://127.0.0.1:1/", true), CURLE_COULDNT_CONNECT);
    assert_int_equal(tried("https://127.0.0.1:1/", true), CURLE_COULDNT_CONNECT);
}

static void test_a_file_of_this_machine_is_refused(void **state)
{
    (void)state;
    assert_int_equal(tried("file:///proc/self/status", false), CURLE_OK);
    assert_int_equal(tried("file:///proc/self/status", true), CURLE_UNSUPPORTED_PROTOCOL);
}

static void test_every_other_kind_is_refused(void **state)
{
    static const char *const others[] = {"ftp", "ftps", "dict", "gopher", "tftp", "telnet", "smtp"};

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        char url[64];

        (void)snprintf(url, sizeof(url), "%s://127.0.0.1:1/", others[i]);
        assert_int_equal(tried(url, true), CURLE_UNSUPPORTED_PROTOCOL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http_and_https_are_tried),
        cmocka_unit_test(test_a_file_of_this_machine_is_refused),
        cmocka_unit_test(test_every_other_kind_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
