/*
 * Goal: what a node remembers is told in lines that people can read: in columns, in their units,
 * and in keys that other commands take; and nothing of a long sentence is lost.
 * Method: rows as the node's views make them, printed into memory and compared whole.
 */
#include "verifier/status/view_table.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

static void assert_printed(void (*print)(FILE *, const char *, const json_t *), const char *title,
                           const char *rows, const char *wanted)
{
    json_t *made = json_loads(rows, 0, NULL);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(made);
    assert_non_null(out);
    print(out, title, made);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, wanted);
    free(text);
    json_decref(made);
}

#define HASH "a18446ab0f226ecaaf5158020c719f32e9f973c72a9aa29b9107934ace1b0588"

static void test_columns_are_in_line(void **state)
{
    (void)state;
    assert_printed(view_table_print, "not_told",
                   "[{\"job\": \"" HASH "\", \"segment\": 7, \"state\": \"tried again\"},"
                   " {\"job\": \"" HASH "\", \"segment\": 12345678, \"state\": \"skipped\"}]",
                   "not told\n"
                   "  job              segment  state\n"
                   "  0xa18446ab0f22         7  tried again\n"
                   "  0xa18446ab0f22  12345678  skipped\n");
}

static void test_empty_columns_are_left_out_and_long_cells_are_whole(void **state)
{
    (void)state;
    assert_printed(
        view_table_print, "moves",
        "[{\"move\": \"draw\", \"trouble\": \"\", \"reason\": null},"
        " {\"move\": \"tell\", \"trouble\": \"a sentence that is far too long to stand in"
        " a column\", \"reason\": null}]",
        "moves\n"
        "  move\n"
        "  draw\n"
        "  tell\n"
        "      trouble: a sentence that is far too long to stand in a column\n");
    assert_printed(view_table_print, "moves", "[]", "");
}

static void test_facts_have_their_units(void **state)
{
    (void)state;
    assert_printed(view_facts_print, "facts",
                   "[{\"name\": \"alive_ms\", \"value\": 1795295772448},"
                   " {\"name\": \"compute_ns\", \"value\": 24185185627},"
                   " {\"name\": \"rounds_s\", \"value\": 0},"
                   " {\"name\": \"steps\", \"value\": 450}]",
                   "facts\n"
                   "  alive           2026-11-21 21:16:12 UTC\n"
                   "  compute         24.2 s\n"
                   "  rounds          0\n"
                   "  steps           450\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_are_in_line),
        cmocka_unit_test(test_empty_columns_are_left_out_and_long_cells_are_whole),
        cmocka_unit_test(test_facts_have_their_units),
    };

    return cmocka_run_group_tests_name("view_table", tests, NULL, NULL);
}
