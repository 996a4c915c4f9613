/*
 * Goal: one event is one line, no matter what a stranger puts into it; JSON lines are JSON. Method:
 * every byte, every two-byte sequence, broken UTF-8, terminal escapes; lines are read back.
 */
#include "base/io/log.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

struct captured {
    char *text;
    size_t size;
    FILE *stream;
};

static void capture(struct captured *captured)
{
    captured->stream = open_memstream(&captured->text, &captured->size);
    assert_non_null(captured->stream);
    fflush(captured->stream); /* text and size are only valid after a flush */
}

static void captured_free(struct captured *captured)
{
    fclose(captured->stream);
    free(captured->text);
}

static void test_plain_line_names_level_and_area(void **state)
{
    struct captured captured;
    struct log log;

    (void)state;
    capture(&captured);
    log_init(&log, captured.stream, LOG_LEVEL_INFO, LOG_FORMAT_PLAIN);
    log_info(&log, "prover", "segment %d committed", 12);
    assert_int_equal(captured.text[10], 'T');
    assert_string_equal(captured.text + 20, " info prover: segment 12 committed\n");
    captured_free(&captured);
}

static void test_less_important_lines_are_dropped(void **state)
{
    struct captured captured;
    struct log log;

    (void)state;
    capture(&captured);
    log_init(&log, captured.stream, LOG_LEVEL_WARN, LOG_FORMAT_PLAIN);
    log_info(&log, "a", "no");
    log_debug(&log, "a", "no");
    log_error(NULL, "a", "nowhere");
    assert_int_equal(captured.size, 0);
    log_warn(&log, "a", "yes");
    log_error(&log, "a", "yes");
    assert_int_not_equal(captured.size, 0);
    captured_free(&captured);
}

static void test_hostile_text_stays_one_json_line(void **state)
{
    (void)state;
    for (unsigned first = 1; first < 256; first++) {
        for (unsigned second = 0; second < 256; second++) {
            char hostile[] = {'<', (char)first, (char)second, '\0', '\0'};
            struct captured captured;
            struct log log;
            json_t *line;

            capture(&captured);
            log_init(&log, captured.stream, LOG_LEVEL_INFO, LOG_FORMAT_JSON);
            log_info(&log, "net", "%s", hostile);
            assert_ptr_equal(strchr(captured.text, '\n'), captured.text + captured.size - 1);
            line = json_loads(captured.text, JSON_REJECT_DUPLICATES, NULL);
            assert_non_null(line);
            json_decref(line);
            captured_free(&captured);
        }
    }
}

static void test_terminal_escapes_do_not_pass(void **state)
{
    char out[128];

    (void)state;
    log_escape(out, sizeof(out), "a\x1b[2Jb\x7f\rc\n\t", 0);
    assert_string_equal(out, "a\\u001b[2Jb\\u007f\\u000dc\\n\\t");
    /* C1 control (CSI) and the mark that reverses reading direction, both valid UTF-8. */
    log_escape(out, sizeof(out), "\xc2\x9b-\xe2\x80\xae", 0);
    assert_null(strstr(out, "\xc2\x9b"));
    assert_null(strstr(out, "\xe2\x80\xae"));
}

static void test_only_well_formed_utf8_passes(void **state)
{
    /* Overlong, surrogate, beyond U+10FFFF, cut short, lone continuation: RFC 3629. */
    static const char *const bad[] = {
        "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80", "\xff"};
    char out[64];

    (void)state;
    log_escape(out, sizeof(out), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x92", 0);
    assert_string_equal(out, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x92");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        log_escape(out, sizeof(out), bad[i], 0);
        assert_memory_equal(out, "\xef\xbf\xbd", 3);
    }
}

static void test_escape_never_writes_past_its_room(void **state)
{
    (void)state;
    for (size_t size = 0; size < 40; size++) {
        char *out = malloc(size + 1);

        assert_non_null(out);
        memset(out, 'Z', size + 1);
        (void)log_escape(out, size, "a\x01\"\xf0\x9f\x94\x92\xff\nbcdefg", 1);
        assert_int_equal(out[size], 'Z');
        if (size > 0) {
            assert_true(strlen(out) < size);
        }
        free(out);
    }
}

static void test_long_message_is_cut_and_shows_it(void **state)
{
    char *message = malloc(3 * LOG_MESSAGE_MAX);
    struct captured captured;
    struct log log;

    (void)state;
    assert_non_null(message);
    memset(message, '\x01', 3 * LOG_MESSAGE_MAX);
    message[3 * LOG_MESSAGE_MAX - 1] = '\0';
    capture(&captured);
    log_init(&log, captured.stream, LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    log_info(&log, "net", "%s", message);
    assert_string_equal(captured.text + captured.size - 6, "...\"}\n");
    captured_free(&captured);
    free(message);
}

static void test_level_names_are_read_back(void **state)
{
    enum log_level level;

    (void)state;
    assert_int_equal(log_level_parse(&level, "debug"), 0);
    assert_int_equal(level, LOG_LEVEL_DEBUG);
    assert_int_equal(log_level_parse(&level, "error"), 0);
    assert_int_equal(level, LOG_LEVEL_ERROR);
    assert_int_not_equal(log_level_parse(&level, "loud"), 0);
    assert_int_not_equal(log_level_parse(&level, ""), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_line_names_level_and_area),
        cmocka_unit_test(test_less_important_lines_are_dropped),
        cmocka_unit_test(test_hostile_text_stays_one_json_line),
        cmocka_unit_test(test_terminal_escapes_do_not_pass),
        cmocka_unit_test(test_only_well_formed_utf8_passes),
        cmocka_unit_test(test_escape_never_writes_past_its_room),
        cmocka_unit_test(test_long_message_is_cut_and_shows_it),
        cmocka_unit_test(test_level_names_are_read_back),
    };

    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
