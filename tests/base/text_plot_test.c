/*
 * Goal: a plot shows each value where it belongs, at every size; braille shows the same dots as
 * ASCII does in eight times the cells; no line is wider than it was told.
 * Method: a small picture by hand; random curves, with values that are no numbers, at all sizes.
 */
#include "base/text_plot.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#define MARGIN 11 /* the numbers and the axis */

static struct curve *make_curve(uint64_t total)
{
    struct curve *curve = malloc(sizeof(*curve));

    assert_non_null(curve);
    curve_init(curve, total);
    return curve;
}

static void test_a_small_picture(void **state)
{
    struct curve *line = make_curve(20);
    struct curve *points = make_curve(20);
    struct buffer text;

    (void)state;
    for (uint64_t step = 0; step < 20; step++) {
        curve_add(line, step, 20 - (double)step);
    }
    curve_add(points, 10, 13);
    buffer_init(&text, 1 << 16);
    text_plot_write(&text,
                    &(struct text_plot){.line = line, .points = points, .columns = 31, .rows = 7});
    assert_string_equal(buffer_text(&text), "       20 |***\n"
                                            "          |   *****  o\n"
                                            "     10.5 |        ****\n"
                                            "          |            *****\n"
                                            "        1 |                 ***\n"
                                            "          +--------------------\n"
                                            "           0 o held-out step 20\n");
    buffer_release(&text);
    free(points);
    free(line);
}

static void test_means_are_those_of_the_steps(void **state)
{
    static const uint64_t totals[] = {1, 2, 7, 100, CURVE_CELLS - 1, CURVE_CELLS, 10000, 99991};
    uint64_t seed = 1;

    (void)state;
    for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
        struct curve *curve = make_curve(totals[i]);
        double sum = 0;
        double mean;

        for (uint64_t step = 0; step < totals[i]; step++) {
            double value = (double)test_random_below(&seed, 1000);

            curve_add(curve, step, value);
            sum += value;
        }
        assert_int_equal(curve->end, totals[i]);
        assert_int_equal(curve_shown(curve), totals[i]);
        assert_true(curve_part(&mean, curve, totals[i], 0, 1));
        assert_true(fabs(mean - sum / (double)totals[i]) < 1e-9 * (1 + mean));
        free(curve);
    }
}

static void test_what_is_no_number_is_left_out(void **state)
{
    struct curve *curve = make_curve(1000);
    struct buffer text;
    double mean;

    (void)state;
    curve_add(curve, 1, NAN);
    curve_add(curve, 2, INFINITY);
    curve_add(curve, 3, -INFINITY);
    curve_add(curve, 1000, 1);
    curve_add(curve, UINT64_MAX, 1);
    assert_int_equal(curve->end, 0);
    assert_false(curve_part(&mean, curve, 1000, 0, 1));
    buffer_init(&text, 1 << 16);
    text_plot_write(&text, &(struct text_plot){.line = curve, .columns = 80, .rows = 10});
    assert_int_equal(text.size, 0);
    curve_add(curve, 999, (double)FLT_MAX);
    curve_add(curve, 10, -(double)FLT_MAX);
    text_plot_write(&text, &(struct text_plot){.line = curve, .columns = 80, .rows = 10});
    assert_non_null(strstr(buffer_text(&text), "3.403e+38 |"));
    buffer_release(&text);
    free(curve);
}

static void test_a_young_training_fills_the_width(void **state)
{
    struct curve *curve = make_curve(1600);

    (void)state;
    curve_add(curve, 5, 1);
    assert_int_equal(curve_shown(curve), 100);
    curve_add(curve, 120, 1);
    assert_int_equal(curve_shown(curve), 200);
    curve_add(curve, 800, 1);
    assert_int_equal(curve_shown(curve), 1600);
    free(curve);
}

/* ---- every size -------------------------------------------------------------------- */

static unsigned characters(const char *line, size_t size)
{
    unsigned count = 0;

    for (size_t i = 0; i < size; i++) {
        count += ((unsigned char)line[i] & 0xc0) != 0x80;
    }
    return count;
}

static void check_widths(const struct buffer *text, unsigned columns, unsigned rows)
{
    unsigned lines = 0;

    for (const char *line = buffer_text(text); *line != '\0'; lines++) {
        size_t size = strcspn(line, "\n");

        assert_int_equal(line[size], '\n');
        assert_true(characters(line, size) <= columns);
        line += size + 1;
    }
    assert_int_equal(lines, rows);
}

/* The dots of a drawing; each line of text begins with MARGIN characters. */
static void read_dots(char *dots, const struct text_plot *plot, unsigned wide, unsigned tall)
{
    static const unsigned bits[8] = {0, 1, 2, 6, 3, 4, 5, 7}; /* down the columns */
    unsigned columns = (plot->columns - MARGIN) * wide;
    struct buffer text;
    const char *at;

    buffer_init(&text, 1 << 18);
    text_plot_write(&text, plot);
    check_widths(&text, plot->columns, plot->rows);
    memset(dots, ' ', (size_t)columns * (plot->rows - TEXT_PLOT_ROWS_MORE) * tall);
    at = buffer_text(&text);
    for (unsigned row = 0; row < plot->rows - TEXT_PLOT_ROWS_MORE; row++) {
        for (unsigned skipped = 0; skipped < MARGIN;) {
            skipped += ((unsigned char)*++at & 0xc0) != 0x80;
        }
        for (unsigned x = 0; *at != '\n'; x++) {
            unsigned code = *at == '*' ? 1 : 0;

            if ((unsigned char)*at == 0xe2) {
                code = ((unsigned char)at[1] & 3u) << 6 | ((unsigned char)at[2] & 0x3fu);
                at += 2;
            }
            at++;
            for (unsigned dot = 0; dot < wide * tall; dot++) {
                if ((code >> bits[dot] & 1) != 0) {
                    dots[(row * tall + dot % tall) * columns + x * wide + dot / tall] = '*';
                }
            }
        }
        at++;
    }
    buffer_release(&text);
}

static void test_braille_shows_the_dots_of_ascii(void **state)
{
    uint64_t seed = 2;

    (void)state;
    for (uint64_t i = 0; i < test_share(3000, 300); i++) {
        struct curve *curve = make_curve(1 + test_random_below(&seed, 5000));
        unsigned columns = 13 + (unsigned)test_random_below(&seed, 90);
        unsigned rows = TEXT_PLOT_ROWS_MIN + (unsigned)test_random_below(&seed, 12);
        char *small = calloc(8, (size_t)columns * rows);
        char *large = calloc(8, (size_t)columns * rows);

        for (uint64_t k = 0; k < 1 + test_random_below(&seed, 200); k++) {
            curve_add(curve, test_random_below(&seed, curve->total),
                      ldexp((double)test_random_below(&seed, 1000), (int)(k % 3)));
        }
        read_dots(small,
                  &(struct text_plot){.line = curve,
                                      .columns = columns + MARGIN,
                                      .rows = rows + TEXT_PLOT_ROWS_MORE,
                                      .braille = true},
                  2, 4);
        read_dots(large,
                  &(struct text_plot){.line = curve,
                                      .columns = 2 * columns + MARGIN,
                                      .rows = 4 * rows + TEXT_PLOT_ROWS_MORE},
                  1, 1);
        assert_memory_equal(small, large, (size_t)8 * columns * rows);
        assert_non_null(memchr(small, '*', (size_t)8 * columns * rows));
        free(large);
        free(small);
        free(curve);
    }
}

static void test_every_size_is_kept(void **state)
{
    struct curve *curve = make_curve(300);
    struct buffer text;
    uint64_t seed = 3;

    (void)state;
    for (uint64_t step = 0; step < 300; step++) {
        curve_add(curve, step, (double)test_random_below(&seed, 9) - 4);
    }
    buffer_init(&text, 1 << 18);
    for (unsigned columns = 0; columns < 2 * TEXT_PLOT_COLUMNS_MAX; columns += 7) {
        for (unsigned rows = 0; rows < 2 * TEXT_PLOT_ROWS_MAX; rows += 3) {
            bool drawn = columns >= TEXT_PLOT_COLUMNS_MIN &&
                         rows >= TEXT_PLOT_ROWS_MIN + TEXT_PLOT_ROWS_MORE;

            buffer_clear(&text);
            text_plot_write(&text, &(struct text_plot){.line = curve,
                                                       .points = curve,
                                                       .columns = columns,
                                                       .rows = rows,
                                                       .braille = columns % 2 == 0});
            check_widths(&text, columns,
                         !drawn                      ? 0
                         : rows < TEXT_PLOT_ROWS_MAX ? rows
                                                     : TEXT_PLOT_ROWS_MAX);
        }
    }
    buffer_release(&text);
    free(curve);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_small_picture),
        cmocka_unit_test(test_means_are_those_of_the_steps),
        cmocka_unit_test(test_what_is_no_number_is_left_out),
        cmocka_unit_test(test_a_young_training_fills_the_width),
        cmocka_unit_test(test_braille_shows_the_dots_of_ascii),
        cmocka_unit_test(test_every_size_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
