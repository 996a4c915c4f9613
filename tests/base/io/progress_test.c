/*
 * Goal: progress appears at its intervals, with right numbers, on one row of a terminal; a signal
 * requests a stop and does not kill.
 * Method: time is passed in; a pseudo terminal; signals to ourselves.
 */
#include "base/io/progress.h"

#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/stop.h"
#include "tests/support/test.h"

static size_t lines_in(const char *text)
{
    size_t count = 0;

    for (; *text != '\0'; text++) {
        count += *text == '\n';
    }
    return count;
}

static void test_plain_lines_come_every_ten_seconds(void **state)
{
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    struct progress progress;

    (void)state;
    progress_init(&progress, stream, "training", "steps", 0, 1000, 100);
    for (unsigned i = 0; i <= 600; i++) {
        progress_update(&progress, i, "loss 3.14", 100 + i * 0.1);
    }
    fflush(stream);
    assert_int_equal(lines_in(text), 7); /* at 0, 10, ..., 60 seconds */
    assert_null(strchr(text, '\r'));
    progress_finish(&progress, 1000, NULL, 200);
    fflush(stream);
    assert_non_null(strstr(text, "training  [####################]  1000/1000  100.0 %  "
                                 "10 steps/s  eta 0:00\n"));
    assert_non_null(strstr(text, "  loss 3.14\n"));
    fclose(stream);
    free(text);
}

static void test_rate_and_eta_follow_the_work(void **state)
{
    char line[PROGRESS_LINE_MAX];
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    struct progress progress;

    (void)state;
    progress_init(&progress, stream, "hash", "MB", 50, 1050, 0); /* resumed at 50 */
    for (unsigned i = 1; i <= 100; i++) {
        progress_update(&progress, 50 + 5 * i, NULL, i);
    }
    progress_line(line, &progress, 550, NULL);
    assert_non_null(strstr(line, "  550/1050  52.4 %  5 MB/s  eta 1:40"));
    fclose(stream);
    free(text);
}

static void test_work_that_rests_tells_no_rate(void **state)
{
    struct progress progress = {.title = "training", .unit = "steps", .total = 60, .rate = 1e-71};
    char line[PROGRESS_LINE_MAX];

    (void)state;
    progress_line(line, &progress, 30, NULL);
    assert_non_null(strstr(line, "  30/60  50.0 %  0 steps/s  eta ?"));
    progress_line(line, &progress, 60, NULL);
    assert_non_null(strstr(line, "  60/60  100.0 %  0 steps/s  eta 0:00"));
}

static void test_unknown_total_has_no_share(void **state)
{
    char line[PROGRESS_LINE_MAX];
    struct progress progress;

    (void)state;
    progress_init(&progress, NULL, "watch", "blocks", 0, 0, 0);
    progress_line(line, &progress, 12, "evil \x1b[2J\n");
    assert_string_equal(line, "watch  12 blocks  0 blocks/s  evil \\u001b[2J\\n");
    progress_update(&progress, 1, NULL, 1); /* silent without a stream */
    progress_finish(&progress, 2, NULL, 2);
}

static void test_terminal_line_never_fills_the_row(void **state)
{
    struct winsize window = {.ws_col = 50, .ws_row = 24};
    struct progress progress;
    char line[PROGRESS_LINE_MAX];
    char drawn[512] = "";
    FILE *stream;
    int master;
    int slave;

    (void)state;
    if (openpty(&master, &slave, NULL, NULL, &window) != 0) {
        test_skip("no pseudo terminal here");
    }
    stream = fdopen(slave, "w");
    progress_init(&progress, stream, "training", "steps", 0, 1000000, 0);
    assert_true(progress.screen.terminal);
    progress_line(line, &progress, 999999, "a note that does not fit any more at all");
    assert_in_range(strlen(line), 30, 49);
    progress_update(&progress, 1, NULL, 0);
    progress_update(&progress, 2, NULL, 0.05); /* too soon */
    assert_true(read(master, drawn, sizeof(drawn) - 1) > 0);
    assert_int_equal(drawn[0], '\r');
    assert_null(strstr(drawn + 1, "\r\033[K"));
    fclose(stream);
    close(master);
}

static void test_narrow_terminal_loses_bar_then_whole_fields(void **state)
{
    static const char note[] = "loss 1.3132  committing 2.2 %  posting 0.2 %  final 0/60";
    const struct {
        unsigned columns;
        const char *line;
    } cases[] = {
        {130, "training  [####................]  657/3000  21.9 %  13.35 steps/s  eta 2:56  "
              "loss 1.3132  committing 2.2 %  posting 0.2 %"},
        {80, "training  [##........]  657/3000  21.9 %  13.35 steps/s  eta 2:56  loss 1.3132"},
        {72, "training  657/3000  21.9 %  13.35 steps/s  eta 2:56  loss 1.3132"},
        {60, "training  657/3000  21.9 %  13.35 steps/s  eta 2:56"},
        {40, "training  657/3000  21.9 %"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct progress progress = {.title = "training",
                                    .unit = "steps",
                                    .total = 3000,
                                    .screen.terminal = true,
                                    .screen.columns = cases[i].columns,
                                    .rate = 13.35};
        char line[PROGRESS_LINE_MAX];

        progress_line(line, &progress, 657, note);
        assert_string_equal(line, cases[i].line);
    }
}

static void test_window_that_shrinks_is_noticed(void **state)
{
    struct winsize window = {.ws_col = 120, .ws_row = 24};
    struct progress progress;
    FILE *stream;
    int master;
    int slave;

    (void)state;
    if (openpty(&master, &slave, NULL, NULL, &window) != 0) {
        test_skip("no pseudo terminal here");
    }
    stream = fdopen(slave, "w");
    progress_init(&progress, stream, "training", "steps", 0, 1000, 0);
    assert_int_equal(progress.screen.columns, 120);
    window.ws_col = 60;
    assert_int_equal(ioctl(master, TIOCSWINSZ, &window), 0);
    progress_update(&progress, 1, NULL, 1);
    assert_int_equal(progress.screen.columns, 60);
    fclose(stream);
    close(master);
}

static void test_signal_asks_and_does_not_end(void **state)
{
    struct stop stop;

    (void)state;
    assert_int_equal(stop_open(&stop, NULL), STATUS_OK);
    assert_false(stop_requested(&stop));
    assert_false(stop_wait(&stop, 0.01));
    assert_false(stop_requested(NULL));
    assert_int_equal(raise(SIGTERM), 0);
    assert_true(stop_requested(&stop));
    assert_int_equal(stop.signal, SIGTERM);
    assert_true(stop_requested(&stop)); /* and stays requested */
    assert_true(stop_wait(&stop, 100));
    stop_close(&stop);
    stop_close(&stop);
}

static void test_second_signal_ends_the_program(void **state)
{
    pid_t child = fork();
    int code;

    (void)state;
    if (child == 0) {
        struct stop stop;

        if (stop_open(&stop, NULL) != STATUS_OK) {
            _exit(1);
        }
        raise(SIGINT);
        if (!stop_requested(&stop)) {
            _exit(2);
        }
        raise(SIGINT);
        _exit(3);
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFSIGNALED(code));
    assert_int_equal(WTERMSIG(code), SIGINT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_lines_come_every_ten_seconds),
        cmocka_unit_test(test_rate_and_eta_follow_the_work),
        cmocka_unit_test(test_work_that_rests_tells_no_rate),
        cmocka_unit_test(test_unknown_total_has_no_share),
        cmocka_unit_test(test_terminal_line_never_fills_the_row),
        cmocka_unit_test(test_narrow_terminal_loses_bar_then_whole_fields),
        cmocka_unit_test(test_window_that_shrinks_is_noticed),
        cmocka_unit_test(test_signal_asks_and_does_not_end),
        cmocka_unit_test(test_second_signal_ends_the_program),
    };

    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
