/*
 * Goal: the page of an audit says what was checked and nothing else, stands alone, and shows a
 * stranger's words as words.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/io/file.h"
#include "engine/rules/rule.h"
#include "tests/support/numeric/small_job.h"
#include "verifier/audit/report.h"

static char *page_of(const struct report *report, size_t count)
{
    const char *path = small_path("page.html");
    struct file_bytes bytes;
    struct error error;
    char *text;

    error_init(&error);
    assert_int_equal(report_write(path, report, count, &error), STATUS_OK);
    assert_int_equal(file_read(&bytes, &error, path, 1u << 20), STATUS_OK);
    text = strdup((const char *)bytes.data);
    file_bytes_release(&bytes);
    assert_non_null(text);
    return text;
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    while ((text = strstr(text, part)) != NULL) {
        count++;
        text++;
    }
    return count;
}

static void begin(struct report *report, const char *title, uint64_t steps)
{
    struct job job = {.steps = steps};

    report_begin(report, title, &job);
    report->result.steps_of_job = steps;
}

static void test_report_cells_cover_each_step_once(void **state)
{
    static const uint64_t counts[] = {1, 2, 599, 600, 601, 1199, 1201, 1000003};
    static struct report report;

    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        uint64_t next = 0;

        begin(&report, "r", counts[i]);
        assert_in_range(report.cell_count, 1, REPORT_POINTS_MAX);
        for (uint32_t cell = 0; cell < report.cell_count; cell++) {
            assert_int_equal(report.cells[cell].first, next);
            assert_true(report.cells[cell].count > 0);
            next += report.cells[cell].count;
        }
        assert_int_equal(next, counts[i]);
    }
}

static void test_report_only_what_was_run_again_is_marked_checked(void **state)
{
    static struct report report;
    struct bundle_step entry = {.step = 3};
    struct check_figures figures = {.loss_bits = 0x3f800000};
    const struct audit_step is_true = {&entry, &figures, 1000};
    const struct audit_step is_false = {&entry, NULL, 1000};
    char *page;

    (void)state;
    begin(&report, "r", 10);
    report.cells[3].journaled = report.cells[4].journaled = report.cells[5].journaled = 1;
    report_step(&report, &is_true);
    entry.step = 4;
    report_step(&report, &is_false);
    entry.step = 400; /* a step of no cell is nobody's */
    report_step(&report, &is_true);
    assert_int_equal(report_mark(&report.cells[2]), REPORT_NOT_RUN);
    assert_int_equal(report_mark(&report.cells[3]), REPORT_CHECKED);
    assert_int_equal(report_mark(&report.cells[4]), REPORT_WRONG);
    assert_int_equal(report_mark(&report.cells[5]), REPORT_NOT_CHECKED);
    page = page_of(&report, 1);
    assert_int_equal(count_of(page, "<i class=\"m2\" title=\"step 3: run again: the same"), 1);
    assert_int_equal(count_of(page, "<i class=\"m5\" title=\"step 4: run again: other bits"), 1);
    assert_int_equal(count_of(page, "<i class=\"m1\" title="), 1);
    assert_int_equal(count_of(page, "<i class=\"m0\" title="), 7);
    assert_int_equal(count_of(page, ": 7 not run, 1 not checked, 1 run again: the same bits"), 1);
    free(page);
}

/* A curve is that of the replay; the solver's words about other steps stand beside it as such. */
static void test_report_plots_what_was_replayed_and_not_what_was_said(void **state)
{
    static struct report report;
    char *page;

    (void)state;
    begin(&report, "r", 10);
    for (uint64_t i = 3; i <= 5; i++) {
        struct bundle_step entry = {.step = i};
        struct check_figures figures = {.loss_bits = 0x3f800000 + (uint32_t)(i << 20)};
        const struct audit_step is_true = {&entry, &figures, 1000};

        report.cells[i].journaled = report.cells[i].loss.count = 1;
        report.cells[i].loss.value = 7100;
        report_step(&report, &is_true);
    }
    page = page_of(&report, 1);
    assert_null(strstr(page, "7100"));
    free(page);
    report.cells[6].journaled = report.cells[6].loss.count = 1;
    report.cells[6].loss.value = 7100;
    page = page_of(&report, 1);
    assert_non_null(strstr(page, "7100"));
    assert_non_null(strstr(page, "the solver&#39;s words, not checked"));
    free(page);
}

/* Squares of several steps, of which all, one and none were run again. */
static void test_report_a_square_checked_in_part_is_told_apart(void **state)
{
    static struct report report;
    struct bundle_step entry = {.step = 0};
    struct check_figures figures = {.loss_bits = 0x3f800000};
    const struct audit_step is_true = {&entry, &figures, 1000};
    char *page;

    (void)state;
    begin(&report, "r", 4 * (uint64_t)REPORT_POINTS_MAX);
    assert_int_equal(report.cell_steps, 4);
    for (entry.step = 0; entry.step < 5; entry.step++) {
        report_step(&report, &is_true);
    }
    page = page_of(&report, 1);
    assert_int_equal(count_of(page, "title=\"steps 0 to 3: run again: the same bits\""), 1);
    assert_int_equal(count_of(page, "title=\"steps 4 to 7: some of them run again"), 1);
    assert_int_equal(count_of(page, "title=\"steps 2396 to 2399: not run\""), 1);
    assert_int_equal(count_of(page, "A square is 4 steps."), 1);
    free(page);
}

/* A few steps that take a hundred times as long do not flatten the plot. */
static void test_report_a_few_long_steps_are_counted_not_plotted(void **state)
{
    static struct report report;
    char *page;

    (void)state;
    begin(&report, "r", 100);
    for (uint32_t i = 0; i < 100; i++) {
        report.cells[i].journaled = 1;
        report.cells[i].solver_time = i % 50 == 7 ? 200 : 2;
    }
    page = page_of(&report, 1);
    assert_int_equal(count_of(page, "the highest at 200 ms"), 1);
    assert_int_equal(count_of(page, "<span>3 ms</span></div>"), 1);
    free(page);
    for (uint32_t i = 0; i < 100; i++) {
        report.cells[i].solver_time = i < 50 ? 2 : 200;
    }
    page = page_of(&report, 1);
    assert_int_equal(count_of(page, "above the plot"), 0);
    assert_int_equal(count_of(page, "<span>200 ms</span></div>"), 1);
    free(page);
}

static void test_report_of_many_bundles_begins_with_a_list(void **state)
{
    static struct report reports[3];
    char *page;

    (void)state;
    for (int i = 0; i < 3; i++) {
        begin(&reports[i], i == 1 ? "b<i>" : "a", 5);
    }
    reports[1].result.answer = AUDIT_REFUTED;
    page = page_of(reports, 3);
    assert_non_null(
        strstr(page, "<tr><td>refuted</td><td class=\"own\"><a href=\"#b1\">b&#60;i&#62;</a>"));
    assert_int_equal(count_of(page, "<h2 id=\"b"), 3);
    free(page);
    page = page_of(reports, 1);
    assert_null(strstr(page, "<a href"));
    free(page);
}

static void test_report_foreign_text_is_escaped(void **state)
{
    static struct report reports[2];
    char *page;

    (void)state;
    begin(&reports[0], "<script>alert('x')</script>&\"\n", 5);
    (void)error_set(&reports[0].result.reason, STATUS_BAD_FORMAT, "<img src=x>");
    page = page_of(reports, 2); /* the second could not even be opened */
    assert_null(strstr(page, "<script"));
    assert_null(strstr(page, "<img"));
    assert_non_null(strstr(page, "&#60;script"));
    assert_int_equal(count_of(page, "<h2 id=\"b"), 2);
    assert_int_equal(count_of(page, "</h2>"), 2);
    free(page);
}

static void test_report_stands_alone(void **state)
{
    static struct report report;
    char *page;

    (void)state;
    begin(&report, "r", 5);
    page = page_of(&report, 1);
    assert_null(strstr(page, "http"));
    assert_null(strstr(page, "src="));
    assert_null(strstr(page, "url("));
    assert_null(strstr(page, "@import"));
    free(page);
}

static void test_report_losses_that_are_not_finite_are_not_plotted(void **state)
{
    static struct report report;
    struct small_job_options options;
    struct bundle *bundle;
    struct error error;
    char *page;

    (void)state;
    error_init(&error);
    small_job_diverging(&options);
    bundle = small_bundle_new(small_path("run"), small_job_new(&options), NULL, 3);
    report_begin(&report, "run", bundle_job(bundle));
    report.result.steps_of_job = bundle_job(bundle)->steps;
    assert_int_equal(report_journal(&report, bundle, &error), STATUS_OK);
    assert_int_equal(report.cells[0].journaled, 1);
    page = page_of(&report, 1);
    assert_null(strstr(page, "nan"));
    assert_null(strstr(page, "inf"));
    free(page);
    bundle_close(bundle);
}

static void test_report_names_a_broken_checkpoint(void **state)
{
    static struct report report;
    char *page;

    (void)state;
    begin(&report, "r", 10);
    report.result.checkpoints = (struct checkpoint_audit){.checked = 2,
                                                          .broken_count = 1,
                                                          .broken[0] = {"4.safetensors", "<cut>"},
                                                          .last = {"10.safetensors", "not there"}};
    page = page_of(&report, 1);
    assert_int_equal(count_of(page, "Checkpoint <code>4.safetensors</code> is broken: &#60;cut"),
                     1);
    assert_int_equal(count_of(page, "The last checkpoint <code>10.safetensors</code>"), 1);
    free(page);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report_cells_cover_each_step_once),
        cmocka_unit_test(test_report_only_what_was_run_again_is_marked_checked),
        cmocka_unit_test(test_report_plots_what_was_replayed_and_not_what_was_said),
        cmocka_unit_test(test_report_a_square_checked_in_part_is_told_apart),
        cmocka_unit_test(test_report_a_few_long_steps_are_counted_not_plotted),
        cmocka_unit_test(test_report_of_many_bundles_begins_with_a_list),
        cmocka_unit_test(test_report_foreign_text_is_escaped),
        cmocka_unit_test(test_report_stands_alone),
        cmocka_unit_test(test_report_losses_that_are_not_finite_are_not_plotted),
        cmocka_unit_test(test_report_names_a_broken_checkpoint),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
