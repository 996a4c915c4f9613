/*
 * Goal: what is drawn again and again stands on a terminal of any size once; what others write
 * meanwhile stays above it; the end leaves the text, and the cursor in a fresh line below. Method:
 * a pseudo terminal, and a small terminal of our own that obeys what comes out of it.
 */
#include "base/io/screen.h"

#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests/support/test.h"

#define COLUMNS_MAX 100
#define ROWS_MAX    40

/* A terminal as it is seen; rows that leave at the top are forgotten. */
struct sight {
    FILE *stream;
    int master;
    unsigned columns;
    unsigned rows;
    unsigned x;
    unsigned y;
    char cells[ROWS_MAX][COLUMNS_MAX + 1];
};

static void clear_from(struct sight *sight, unsigned x, unsigned y, bool below)
{
    memset(sight->cells[y] + x, ' ', sight->columns - x);
    for (y++; below && y < sight->rows; y++) {
        memset(sight->cells[y], ' ', sight->columns);
    }
}

static void feed_line(struct sight *sight)
{
    if (++sight->y == sight->rows) {
        memmove(sight->cells[0], sight->cells[1], sizeof(sight->cells[0]) * (sight->rows - 1));
        sight->y--;
        memset(sight->cells[sight->y], ' ', sight->columns);
    }
}

/* Obeys one sequence behind ESC; returns its length. */
static size_t obey(struct sight *sight, const char *text)
{
    char *end;
    unsigned long number;

    assert_int_equal(text[0], '[');
    number = strtoul(text + 1, &end, 10);
    switch (*end) {
    case 'K':
        clear_from(sight, sight->x, sight->y, false);
        break;
    case 'J':
        if (number == 2) {
            clear_from(sight, 0, 0, true);
        } else {
            clear_from(sight, sight->x, sight->y, true);
        }
        break;
    case 'H':
        sight->x = sight->y = 0;
        break;
    case 'A':
        sight->y -= number < sight->y ? (unsigned)number : sight->y;
        break;
    default:
        fail_msg("an unknown sequence: %c", *end);
    }
    return (size_t)(end + 1 - text);
}

static void put(struct sight *sight, char letter)
{
    if (letter == '\r') {
        sight->x = 0;
    } else if (letter == '\n') {
        feed_line(sight);
    } else {
        if (sight->x == sight->columns) {
            sight->x = 0;
            feed_line(sight);
        }
        sight->cells[sight->y][sight->x++] = letter;
    }
}

/* Reads what was written to the terminal since: up to a bell of our own. */
static void look(struct sight *sight)
{
    char text[65536];
    size_t size = 0;

    fputc('\a', sight->stream);
    (void)fflush(sight->stream);
    do {
        ssize_t got = read(sight->master, text + size, sizeof(text) - size);

        assert_true(got > 0);
        size += (size_t)got;
    } while (text[size - 1] != '\a');
    text[size - 1] = '\0';
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '\033') {
            at += obey(sight, at + 1);
        } else {
            put(sight, *at);
        }
    }
}

static void resize(struct sight *sight, unsigned columns, unsigned rows)
{
    struct winsize window = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};

    sight->columns = columns;
    sight->rows = rows;
    assert_int_equal(ioctl(sight->master, TIOCSWINSZ, &window), 0);
}

static FILE *open_sight(struct sight *sight, unsigned columns, unsigned rows)
{
    struct winsize window = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};
    int slave;

    memset(sight, 0, sizeof(*sight));
    memset(sight->cells, ' ', sizeof(sight->cells));
    sight->columns = columns;
    sight->rows = rows;
    if (openpty(&sight->master, &slave, NULL, NULL, &window) != 0) {
        test_skip("no pseudo terminal here");
    }
    sight->stream = fdopen(slave, "w");
    assert_non_null(sight->stream);
    return sight->stream;
}

static void assert_row(struct sight *sight, unsigned y, const char *text)
{
    char row[COLUMNS_MAX + 1];

    (void)snprintf(row, sizeof(row), "%-*s", (int)sight->columns, text);
    sight->cells[y][sight->columns] = '\0';
    assert_string_equal(sight->cells[y], row);
}

static void test_text_is_drawn_in_its_place(void **state)
{
    struct sight sight;
    struct screen screen;
    FILE *stream = open_sight(&sight, 40, 10);

    (void)state;
    fputs("before\n", stream);
    screen_init(&screen, stream);
    assert_true(screen.terminal && screen.columns == 40 && screen.rows == 10);
    screen_draw(&screen, "a long first line\nsecond\nthird");
    look(&sight);
    screen_draw(&screen, "first\nsecond");
    fputs("a log line of another\n", stream);
    (void)fflush(stream);
    screen_draw(&screen, "one\ntwo\n");
    look(&sight);
    assert_row(&sight, 0, "before");
    assert_row(&sight, 1, "a log line of another");
    assert_row(&sight, 2, "");
    assert_row(&sight, 3, "one");
    assert_row(&sight, 4, "two");
    assert_row(&sight, 5, "");
    screen_finish(&screen, "the last\nword");
    look(&sight);
    assert_row(&sight, 2, "the last");
    assert_row(&sight, 3, "word");
    assert_row(&sight, 4, "");
    assert_int_equal(sight.y, 4);
    assert_int_equal(sight.x, 0);
    (void)fclose(stream);
    (void)close(sight.master);
}

static void test_what_does_not_fit_is_cut(void **state)
{
    struct sight sight;
    struct screen screen;
    FILE *stream = open_sight(&sight, 12, 6);

    (void)state;
    screen_init(&screen, stream);
    for (int i = 0; i < 5; i++) {
        screen_draw(&screen, "0123456789abcdef\n1\n2\n3\n4\n5\n6\n7");
    }
    look(&sight);
    assert_row(&sight, 0, "");
    assert_row(&sight, 1, "0123456789a");
    assert_row(&sight, 4, "3");
    assert_row(&sight, 5, "");
    resize(&sight, 30, 20);
    screen_draw(&screen, "0123456789abcdef\n1\n2\n3");
    look(&sight);
    assert_row(&sight, 1, "0123456789abcdef");
    assert_row(&sight, 4, "3");
    assert_row(&sight, 5, "");
    (void)fclose(stream);
    (void)close(sight.master);
}

static void test_a_pipe_gets_nothing(void **state)
{
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    struct screen screen;

    (void)state;
    screen_init(&screen, stream);
    assert_false(screen.terminal);
    screen_draw(&screen, "text");
    screen_finish(&screen, "text");
    (void)fclose(stream);
    assert_int_equal(size, 0);
    free(text);
}

static void test_the_first_variable_says_the_characters(void **state)
{
    struct sight sight;
    struct screen screen;
    FILE *stream = open_sight(&sight, 80, 24);

    (void)state;
    (void)setenv("LC_ALL", "", 1);
    (void)setenv("LC_CTYPE", "C.UTF-8", 1);
    (void)setenv("LANG", "C", 1);
    screen_init(&screen, stream);
    assert_true(screen.utf8);
    (void)setenv("LC_ALL", "C", 1);
    screen_init(&screen, stream);
    assert_false(screen.utf8);
    (void)fclose(stream);
    (void)close(sight.master);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_is_drawn_in_its_place),
        cmocka_unit_test(test_what_does_not_fit_is_cut),
        cmocka_unit_test(test_a_pipe_gets_nothing),
        cmocka_unit_test(test_the_first_variable_says_the_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
