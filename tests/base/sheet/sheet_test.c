/*
 * Goal: a page, a text and JSON of a sheet say the same; people can read it: in columns, in their
 * units, and in keys that other commands take; nothing of a long sentence is lost; and no words of
 * a sheet are markup or steer a terminal, wherever they stand.
 * Method: sheets are written whole and compared. Every kind of block, and every style, gets hostile
 * words.
 */
#include "base/sheet/sheet.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/sheet/sheet_rows.h"
#include "tests/support/test.h"

#define HASH    "a18446ab0f226ecaaf5158020c719f32e9f973c72a9aa29b9107934ace1b0588"
#define HOSTILE "<script>alert(1)</script>\"'&\x1b[2J\n"

static void assert_text(const struct sheet *sheet, const char *wanted)
{
    struct buffer text;

    buffer_init(&text, SHEET_SIZE_MAX);
    sheet_text_write(&text, sheet);
    assert_int_equal(text.status, STATUS_OK);
    assert_string_equal(buffer_text(&text), wanted);
    buffer_release(&text);
}

static void assert_rows(void (*add)(struct sheet *, const char *, const json_t *),
                        const char *title, const char *rows, const char *wanted)
{
    json_t *made = json_loads(rows, 0, NULL);
    struct sheet sheet;

    assert_non_null(made);
    sheet_init(&sheet);
    add(&sheet, title, made);
    assert_text(&sheet, wanted);
    sheet_release(&sheet);
    json_decref(made);
}

/* ---- text ---------------------------------------------------------------------------- */

static void test_columns_are_in_line(void **state)
{
    (void)state;
    assert_rows(sheet_rows, "not_told",
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
    assert_rows(sheet_rows, "moves",
                "[{\"move\": \"draw\", \"trouble\": \"\", \"reason\": null},"
                " {\"move\": \"tell\", \"trouble\": \"a sentence that is far too long to stand in"
                " a column\", \"reason\": null}]",
                "moves\n"
                "  move\n"
                "  draw\n"
                "  tell\n"
                "      trouble: a sentence that is far too long to stand in a column\n");
    assert_rows(sheet_rows, "moves", "[]", "");
}

static void test_facts_have_their_units(void **state)
{
    (void)state;
    assert_rows(sheet_row_facts, "facts",
                "[{\"name\": \"alive_ms\", \"value\": 1795295772448},"
                " {\"name\": \"compute_ns\", \"value\": 24185185627},"
                " {\"name\": \"line_bytes_s\", \"value\": 18304132},"
                " {\"name\": \"rounds_s\", \"value\": 0},"
                " {\"name\": \"steps\", \"value\": 450}]",
                "facts\n"
                "  alive    2026-11-21 21:16:12 UTC\n"
                "  compute  24.2 s\n"
                "  line     18.3 MB/s\n"
                "  rounds   0\n"
                "  steps    450\n");
}

static void test_printed_lines_are_as_printf_writes_them(void **state)
{
    struct sheet sheet;

    (void)state;
    sheet_init(&sheet);
    sheet_print(&sheet, "%d\t%s", 7, "a job");
    sheet_print(&sheet, ", its end\n\nand\nlast %s\n", "\x1b[2J");
    sheet_print(&sheet, "%s", "");
    assert_text(&sheet, "7\ta job, its end\n\nand\nlast \\u001b[2J\n");
    sheet_release(&sheet);
}

/* ---- one value ----------------------------------------------------------------------- */

static void test_page_text_and_json_say_the_same(void **state)
{
    struct sheet sheet;
    struct buffer out;

    (void)state;
    sheet_init(&sheet);
    sheet_merge(&sheet, json_pack("{s:i, s:s}", "steps", 42, "state", "proven"));
    sheet_set(&sheet, "root", json_string("abcd"));
    sheet_add(&sheet, SHEET_FACT, "Steps", "%d", 42);
    sheet_add(&sheet, SHEET_FACT, "Is", "proven");
    sheet_begin(&sheet, SHEET_FACT, "Root");
    sheet_words(&sheet, SHEET_CODE, "abcd");
    assert_text(&sheet, "  Steps  42\n  Is     proven\n  Root   abcd\n");
    buffer_init(&out, SHEET_SIZE_MAX);
    sheet_json_write(&out, &sheet);
    assert_string_equal(buffer_text(&out), "{\"steps\":42,\"state\":\"proven\",\"root\":\"abcd\"}");
    buffer_clear(&out);
    sheet_page_write(&out, &sheet, 0);
    assert_non_null(strstr(buffer_text(&out),
                           "<table class=\"values\">\n"
                           "<tr><th scope=\"row\">Steps</th><td class=\"own\">42</td></tr>\n"
                           "<tr><th scope=\"row\">Is</th><td class=\"own\">proven</td></tr>\n"
                           "<tr><th scope=\"row\">Root</th><td class=\"own\"><code>abcd</code>"
                           "</td></tr>\n</table>\n"));
    buffer_release(&out);
    sheet_release(&sheet);
}

/* A result that is not whole must not look like one; what people read can still be. */
static void test_facts_that_cannot_be_made_are_told(void **state)
{
    struct buffer out;
    struct sheet sheet;

    (void)state;
    sheet_init(&sheet);
    sheet_add(&sheet, SHEET_FACT, "Steps", "%d", 42);
    sheet_merge(&sheet, NULL); /* what json_pack() gives of bytes that are no text */
    buffer_init(&out, SHEET_SIZE_MAX);
    sheet_json_write(&out, &sheet);
    assert_int_equal(out.status, STATUS_NO_MEMORY);
    buffer_release(&out);
    assert_text(&sheet, "  Steps  42\n");
    sheet_release(&sheet);
}

/* ---- hostile words --------------------------------------------------------------------- */

/* Hostile words in every block, in every style that words and lines can have. */
static void add_hostile(struct sheet *sheet)
{
    static const enum sheet_style styles[] = {SHEET_PLAIN, SHEET_DIM, SHEET_STRONG, SHEET_CODE,
                                              SHEET_KEY};
    static const uint8_t marks[] = {0, 1};
    const struct sheet_squares squares = {.name = HOSTILE,
                                          .unit = HOSTILE,
                                          .marks = marks,
                                          .count = 2,
                                          .each = 2,
                                          .total = 4,
                                          .words = {HOSTILE, HOSTILE}};
    struct sheet_plot plot = {
        .unit = HOSTILE,
        .first = HOSTILE,
        .last = HOSTILE,
        .count = 2,
        .series_count = 2,
        .series = {{HOSTILE, SHEET_FORM_BARS, {1, 2}}, {HOSTILE, SHEET_FORM_POINTS, {1, NAN}}}};

    for (int kind = 0; kind < SHEET_WORDS; kind++) {
        if (kind == SHEET_SQUARES || kind == SHEET_PLOT) {
            continue;
        }
        sheet_begin(sheet, (enum sheet_kind)kind, HOSTILE);
        for (size_t i = 0; i < sizeof(styles) / sizeof(styles[0]); i++) {
            sheet_words(sheet, styles[i], "%s", HOSTILE);
        }
        sheet_when(sheet, SHEET_DIM, 1, 2);
    }
    sheet_begin_line(sheet, SHEET_ILL);
    sheet_link(sheet, "#" HOSTILE, HOSTILE);
    sheet_field(sheet, HOSTILE, HOSTILE, HOSTILE);
    sheet_choice(sheet, HOSTILE, HOSTILE);
    sheet_option(sheet, HOSTILE, HOSTILE, true);
    sheet_squares(sheet, &squares);
    sheet_plot(sheet, &plot);
}

/* Each tag is one of ours, which have no quotes of others in them: its attributes are whole. */
static void assert_tags_are_ours(const char *page)
{
    const char *at = strstr(page, "</style>");

    assert_non_null(at);
    while ((at = strchr(at, '<')) != NULL) {
        const char *end = strchr(at, '>');
        size_t quotes = 0;

        assert_non_null(end);
        for (const char *c = at; c < end; c++) {
            quotes += *c == '"';
            assert_true(*c != '\'' && *c != '\x1b');
            assert_true(c == at || *c != '<');
        }
        assert_int_equal(quotes % 2, 0);
        at = end;
    }
    assert_null(strstr(page, "<script"));
    assert_null(strstr(page, "&\""));
    assert_non_null(strstr(page, "&#60;script&#62;alert(1)"));
}

static void test_no_words_are_markup(void **state)
{
    struct sheet sheet;
    struct buffer page;
    struct error error;

    (void)state;
    error_init(&error);
    sheet_init(&sheet);
    add_hostile(&sheet);
    assert_int_equal(sheet_check(&sheet, &error), STATUS_OK);
    buffer_init(&page, SHEET_SIZE_MAX);
    sheet_page_write(&page, &sheet, 0);
    assert_int_equal(page.status, STATUS_OK);
    assert_tags_are_ours(buffer_text(&page));
    buffer_release(&page);
    sheet_release(&sheet);
}

static void test_no_words_steer_a_terminal(void **state)
{
    struct sheet sheet;
    struct buffer text;

    (void)state;
    sheet_init(&sheet);
    add_hostile(&sheet);
    buffer_init(&text, SHEET_SIZE_MAX);
    sheet_text_write(&text, &sheet);
    assert_int_equal(text.status, STATUS_OK);
    assert_null(strchr(buffer_text(&text), '\x1b'));
    assert_non_null(strstr(buffer_text(&text), "\\u001b[2J\\n"));
    buffer_release(&text);
    sheet_release(&sheet);
}

static void test_figures_are_for_prometheus_alone(void **state)
{
    static const char wanted[] =
        "# HELP jobs Jobs, by phase.\n# TYPE jobs gauge\n"
        "jobs{phase=\"open\"} 3\n"
        "jobs{phase=\"a\\\"b\\\\c\\nd?\",kind=\"x\"} 18446744073709551615\n"
        "# HELP alive Since 1970.\n# TYPE alive counter\nalive 0.5\n";
    struct sheet sheet;
    struct buffer text;

    (void)state;
    sheet_init(&sheet);
    sheet_add(&sheet, SHEET_TITLE, NULL, "Jobs");
    sheet_metric(&sheet, "jobs", "gauge", "Jobs, by phase.");
    sheet_sample(&sheet, "%d", 3);
    sheet_sample_label(&sheet, "phase", "open");
    sheet_sample(&sheet, "%" PRIu64, UINT64_MAX);
    sheet_sample_label(&sheet, "phase", "a\"b\\c\nd\x1b");
    sheet_sample_label(&sheet, "kind", "x");
    sheet_figure(&sheet, "alive", "counter", "Since 1970.", 0.5);
    sheet_add(&sheet, SHEET_FOOTER, NULL, "the end");
    assert_text(&sheet, "Jobs\n");
    buffer_init(&text, SHEET_SIZE_MAX);
    sheet_metrics_write(&text, &sheet);
    assert_int_equal(text.status, STATUS_OK);
    assert_string_equal(buffer_text(&text), wanted);
    buffer_clear(&text);
    sheet_page_write(&text, &sheet, 0);
    assert_null(strstr(buffer_text(&text), "alive"));
    buffer_release(&text);
    sheet_release(&sheet);
}

/* The curve has the rows that the other lines leave, and no line is wider than the window. */
static void test_a_screen_is_filled_and_not_passed(void **state)
{
    static const uint8_t marks[] = {2, 2, 1, 5, 1, 0};
    static const struct sheet_squares squares = {
        .name = "segments",
        .marks = marks,
        .count = 6,
        .words = {"to come", "open", "final", "", "", "lost"},
        .counts = {1, 2, 2, 0, 0, 1}};
    static const struct sheet_screen window = {40, 14, false};
    static struct curve loss;
    static const char wanted[] = "job       0x12\\u001b[2J runs\n"
                                 "        9 |o**\n"
                                 "    6.333 |   ****\n"
                                 "          |       *****\n"
                                 "        1 |            **o\n"
                                 "          +----------------------------\n"
                                 "           0     o held-out      step 2\n"
                                 "segments  ##=x=.\n"
                                 "          . 1 to come  = 2 open  # 2\n"
                                 "          final  x 1 lost\n"
                                 "money     one two three four five six\n"
                                 "          seven eight nine\n";
    struct sheet sheet;
    struct buffer text;

    (void)state;
    curve_init(&loss, 2);
    curve_add(&loss, 0, 9);
    curve_add(&loss, 1, 1);
    sheet_init(&sheet);
    sheet_add(&sheet, SHEET_DETAIL, "job", "0x12\x1b[2J runs");
    sheet_curve(&sheet, &loss, &loss);
    sheet_squares(&sheet, &squares);
    sheet_add(&sheet, SHEET_DETAIL, "money", "one two three four five six seven eight nine");
    buffer_init(&text, SHEET_SIZE_MAX);
    sheet_screen_write(&text, &sheet, &window);
    assert_int_equal(text.status, STATUS_OK);
    assert_string_equal(buffer_text(&text), wanted);
    buffer_release(&text);
    sheet_release(&sheet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_are_in_line),
        cmocka_unit_test(test_empty_columns_are_left_out_and_long_cells_are_whole),
        cmocka_unit_test(test_facts_have_their_units),
        cmocka_unit_test(test_printed_lines_are_as_printf_writes_them),
        cmocka_unit_test(test_page_text_and_json_say_the_same),
        cmocka_unit_test(test_facts_that_cannot_be_made_are_told),
        cmocka_unit_test(test_no_words_are_markup),
        cmocka_unit_test(test_no_words_steer_a_terminal),
        cmocka_unit_test(test_figures_are_for_prometheus_alone),
        cmocka_unit_test(test_a_screen_is_filled_and_not_passed),
    };

    return cmocka_run_group_tests_name("sheet", tests, NULL, NULL);
}
