/*
 * Goal: a held-out loss that is no finite number is said to be none, in the certificate and in the
 * lines that people cite, and never printed as a number.
 * Method: such figures as citation_held_out() gives them, beside others that are finite.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/io/file.h"
#include "tests/support/test.h"
#include "verifier/audit/citation.h"
#include "verifier/lineage/certificate.h"
#include "verifier/lineage/lineage_parts.h"

static json_t *figures_of(json_t *loss, const char *bits)
{
    return json_pack("{s:s, s:i, s:i, s:s, s:o}", "run", "tune.run", "state_after", 8,
                     "after_steps", 8, "loss_bits", bits, "loss", loss);
}

static void test_a_loss_that_is_not_finite_is_no_number_in_the_certificate(void **state)
{
    struct lineage lineage = {.figures = json_array()};
    struct file_bytes page = {0};
    char path[FILE_PATH_MAX];
    char *text;

    (void)state;
    assert_int_equal(findings_init(&lineage.findings, NULL), STATUS_OK);
    (void)json_array_append_new(lineage.figures, figures_of(json_null(), "7fc00000"));
    (void)json_array_append_new(lineage.figures, figures_of(json_real(2.5), "40200000"));
    (void)snprintf(path, sizeof(path), "%s/page.html", test_temp_dir());
    assert_int_equal(certificate_page(path, &lineage, NULL), STATUS_OK);
    assert_int_equal(file_read(&page, NULL, path, 1 << 20), STATUS_OK);
    text = calloc(1, page.size + 1);
    assert_non_null(text);
    memcpy(text, page.data, page.size);
    assert_non_null(strstr(text, "loss that is no finite number (bits 7fc00000), found after 8"));
    assert_non_null(strstr(text, "loss 2.500000, found after 8"));
    assert_null(strstr(text, "0.000000"));
    free(text);
    file_bytes_release(&page);
    findings_release(&lineage.findings);
    json_decref(lineage.figures);
}

static void test_a_loss_that_is_not_finite_is_cited_as_none(void **state)
{
    json_t *entry = json_pack("{s:{s:n, s:i}}", "held_out", "loss", "after_steps", 8);
    char value[CITATION_VALUE_MAX];
    const char *label;
    bool said = false;

    (void)state;
    for (size_t i = 0; citation_line(&label, value, entry, i); i++) {
        if (label != NULL && strcmp(label, "Held-out loss") == 0) {
            assert_string_equal(value, "no finite number");
            said = true;
        }
    }
    assert_true(said);
    json_decref(entry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_loss_that_is_not_finite_is_no_number_in_the_certificate),
        cmocka_unit_test(test_a_loss_that_is_not_finite_is_cited_as_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
