/*
 * Goal: a signed report reads back, and not a byte of it can be changed.
 * Method: a report of made-up audits; every byte of its text changed in every bit, cut, and added;
 * other canonical texts with a true signature of something else; a report without a signature.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"
#include "verifier/audit/signed_report.h"

static struct signer *signer_of(uint8_t last)
{
    struct secret_key key = {{0}};
    struct error error;
    struct signer *signer;

    error_init(&error);
    key.bytes[sizeof(key.bytes) - 1] = last;
    signer = signer_new(&key, &error);
    assert_non_null(signer);
    return signer;
}

static void write_report(struct buffer *text, const struct signer *signer, int steps)
{
    json_t *audits = json_pack("[{s:s, s:i, s:f, s:[s]}]", "bundle", "text \xc3\xa9", "steps",
                               steps, "loss", 1.0 / 3.0, "not_checked", "the data");
    struct error error;

    error_init(&error);
    buffer_init(text, SIGNED_REPORT_SIZE_MAX);
    assert_int_equal(signed_report_write(text, audits, "2026-11-28T14:05:00Z", signer, &error),
                     STATUS_OK);
    json_decref(audits);
}

static enum status read_report(struct address *who, const void *text, size_t size)
{
    struct error error;
    json_t *report;
    enum status status;

    error_init(&error);
    status = signed_report_read(&report, who, text, size, &error);
    assert_true((report != NULL) == (status == STATUS_OK));
    json_decref(report);
    return status;
}

static void test_a_report_reads_back_and_names_its_signer(void **state)
{
    struct signer *signer = signer_of(7);
    struct address who;
    struct buffer text;

    (void)state;
    write_report(&text, signer, 12);
    assert_int_equal(read_report(&who, text.data, text.size), STATUS_OK);
    assert_true(address_equal(&who, signer_address(signer)));
    buffer_release(&text);
    write_report(&text, NULL, 12);
    assert_int_equal(read_report(&who, text.data, text.size), STATUS_OK);
    assert_true(address_is_zero(&who));
    buffer_release(&text);
    signer_free(signer);
}

static void test_every_changed_byte_is_found(void **state)
{
    struct signer *signer = signer_of(7);
    struct address who;
    struct buffer text;
    uint8_t *changed;

    (void)state;
    write_report(&text, signer, 12);
    changed = malloc(text.size + 1);
    assert_non_null(changed);
    for (size_t at = 0; at < text.size; at++) {
        for (int bit = 0; bit < 8; bit++) {
            memcpy(changed, text.data, text.size);
            changed[at] ^= (uint8_t)(1 << bit);
            assert_int_not_equal(read_report(&who, changed, text.size), STATUS_OK);
        }
        assert_int_not_equal(read_report(&who, text.data, at), STATUS_OK);
        memcpy(changed, text.data, at);
        changed[at] = ' ';
        memcpy(changed + at + 1, text.data + at, text.size - at);
        assert_int_not_equal(read_report(&who, changed, text.size + 1), STATUS_OK);
    }
    free(changed);
    buffer_release(&text);
    signer_free(signer);
}

/* The end of one report, from its signature on, behind the beginning of another. */
static void test_a_signature_of_another_report_is_refused(void **state)
{
    struct signer *signer = signer_of(7);
    struct address who;
    struct buffer one;
    struct buffer other;
    const char *from;
    const char *into;

    (void)state;
    write_report(&one, signer, 12);
    write_report(&other, signer, 13);
    from = strstr(buffer_text(&one), "\"signature\"");
    into = strstr(buffer_text(&other), "\"signature\"");
    assert_non_null(from);
    assert_non_null(into);
    memcpy(other.data + (into - (const char *)other.data), from, strlen(from));
    assert_int_equal(read_report(&who, other.data, other.size), STATUS_REFUSED);
    buffer_release(&one);
    buffer_release(&other);
    signer_free(signer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_report_reads_back_and_names_its_signer),
        cmocka_unit_test(test_every_changed_byte_is_found),
        cmocka_unit_test(test_a_signature_of_another_report_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
