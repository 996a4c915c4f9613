/*
 * Goal: each splitter cuts as its published expression does, and classes are those of Unicode 14.0.
 * Method: libonig 6.9.8, whose tables are of that version, runs the expression over every code
 * point in several surroundings, and over random strings of the characters that expressions speak
 * of. A test skips where the library is not installed.
 */
#include "data/text/splitter.h"

#include <dlfcn.h>
#include <string.h>

#include "data/text/unicode.h"
#include "data/text/utf8.h"
#include "tests/support/test.h"

#define TEXT_SIZE 256

/* What of oniguruma.h is asked for. */
struct onig {
    int (*new)(void **regex, const uint8_t *pattern, const uint8_t *end, unsigned option,
               void *encoding, void *syntax, void *info);
    int (*match)(void *regex, const uint8_t *text, const uint8_t *end, const uint8_t *at,
                 void *region, unsigned option);
    void (*free)(void *regex);
    const char *(*version)(void);
    void *encoding;
    void *syntax;
};

static struct onig load(void)
{
    void *library = dlopen("libonig.so.5", RTLD_NOW);
    struct onig onig = {0};

    if (library == NULL) {
        test_skip("libonig5 is not installed");
    }
    *(void **)&onig.new = dlsym(library, "onig_new");
    *(void **)&onig.match = dlsym(library, "onig_match");
    *(void **)&onig.free = dlsym(library, "onig_free");
    *(void **)&onig.version = dlsym(library, "onig_version");
    onig.encoding = dlsym(library, "OnigEncodingUTF8");
    onig.syntax = dlsym(library, "OnigSyntaxOniguruma");
    if (strncmp(onig.version(), "6.9.8", 5) != 0) {
        test_skip("libonig is %s; only 6.9.8 has the tables of Unicode 14.0", onig.version());
    }
    return onig;
}

static void *compile(const struct onig *onig, const char *expression)
{
    const uint8_t *pattern = (const uint8_t *)expression;
    void *regex = NULL;
    uint8_t info[256];

    assert_int_equal(onig->new (&regex, pattern, pattern + strlen(expression), 0, onig->encoding,
                                onig->syntax, info),
                     0);
    return regex;
}

/* Both cut the text at the same places. */
static void check(const struct onig *onig, void *regex, enum splitter splitter, const uint8_t *text,
                  size_t size)
{
    size_t at = 0;

    while (at < size) {
        size_t end = splitter_next(splitter, text, size, at);
        int length = onig->match(regex, text, text + size, text + at, NULL, 0);

        if (length <= 0 || end != at + (size_t)length) {
            fail_msg("%s: '%.*s' is cut at %zu, not %zu + %d", splitter_name(splitter), (int)size,
                     (const char *)text, end, at, length);
        }
        at = end;
    }
}

/* Words in which X is the code point. */
static const char *const surroundings[] = {"aX",  "Xa",      " X",   "X ",  "'X",  "1X2",
                                           "X.X", " Xb'X\n", "\nXX", "AXb", "  X", "X\r\nX"};

static size_t place(uint8_t text[TEXT_SIZE], const char *around, uint32_t code)
{
    size_t size = 0;

    for (; *around != '\0'; around++) {
        if (*around == 'X') {
            size += utf8_write(text + size, code);
        } else {
            text[size++] = (uint8_t)*around;
        }
    }
    return size;
}

static void test_all_code_points_are_cut_as_by_libonig(void **state)
{
    const struct onig onig = load();
    const char *expression;
    enum splitter splitter = SPLITTER_NONE;
    uint8_t text[TEXT_SIZE];

    (void)state;
    for (size_t i = 0; (expression = splitter_expression(i, &splitter)) != NULL; i++) {
        void *regex = compile(&onig, expression);

        for (uint32_t code = 0; code < UNICODE_CODE_POINTS; code++) {
            const size_t count = sizeof(surroundings) / sizeof(surroundings[0]);
            /* All, where letters are; else one in turn. */
            const size_t step = code < 0x3000 || test_soak_minutes() > 0 ? 1 : count;

            if (code >= 0xd800 && code < 0xe000) {
                continue;
            }
            for (size_t around = step == 1 ? 0 : code % count; around < count; around += step) {
                check(&onig, regex, splitter, text, place(text, surroundings[around], code));
            }
        }
        onig.free(regex);
    }
}

static void test_random_strings_are_cut_as_by_libonig(void **state)
{
    static const uint32_t codes[] = {
        ' ',   ' ',    ' ',   '\n', '\r',    '\t',  'a',   'B',  's',  'S',    'l',    'L',   '\'',
        '\'',  '1',    '2',   '/',  '.',     0x17f, 0x301, 0xa0, 0x85, 0x3000, 0x4e2d, 0x1c5, 0x2b0,
        0x660, 0x2028, 0x345, 0xdf, 0x1f600, 0x378, 'r',   'e',  'v',  'm',    't',    'd'};
    const struct onig onig = load();
    const char *expression;
    enum splitter splitter = SPLITTER_NONE;
    uint64_t seed = 7;

    (void)state;
    for (size_t i = 0; (expression = splitter_expression(i, &splitter)) != NULL; i++) {
        void *regex = compile(&onig, expression);

        for (uint64_t n = test_share(1000000, 60000); n > 0; n--) {
            uint8_t text[TEXT_SIZE];
            size_t size = 0;

            for (uint64_t left = 1 + test_random_below(&seed, 20); left > 0; left--) {
                size += utf8_write(
                    text + size, codes[test_random_below(&seed, sizeof(codes) / sizeof(codes[0]))]);
            }
            check(&onig, regex, splitter, text, size);
        }
        onig.free(regex);
    }
}

static void test_classes_are_those_of_libonig(void **state)
{
    static const char *const names[] = {"\\A\\p{L}\\z", "\\A\\p{N}\\z",           "\\A\\p{M}\\z",
                                        "\\A\\s\\z",    "\\A[\\p{Lu}\\p{Lt}]\\z", "\\A\\p{Ll}\\z"};
    const struct onig onig = load();
    void *regexes[6];

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        regexes[i] = compile(&onig, names[i]);
    }
    for (uint32_t code = 0; code < UNICODE_CODE_POINTS; code++) {
        enum unicode_class class = unicode_class(code);
        const bool ours[6] = {unicode_is_letter(class), class == UNICODE_NUMBER,
                              class == UNICODE_MARK,    class == UNICODE_SPACE,
                              class == UNICODE_UPPER,   class == UNICODE_LOWER};
        uint8_t text[UTF8_BYTES_MAX];
        size_t size;

        if (code >= 0xd800 && code < 0xe000) {
            continue;
        }
        size = utf8_write(text, code);
        for (size_t i = 0; i < 6; i++) {
            if ((onig.match(regexes[i], text, text + size, text, NULL, 0) > 0) != ours[i]) {
                fail_msg("U+%04X and %s", code, names[i]);
            }
        }
    }
    for (size_t i = 0; i < 6; i++) {
        onig.free(regexes[i]);
    }
}

static void test_known_text_is_cut_where_it_should_be(void **state)
{
    static const char *const pieces[] = {
        "It", "'s", " ", "123", "45", " ", " cafe", "\xcc\x81\r\n\n", " ", " \xe4\xb8\xad",
        "/x", " \t"};
    static const char text[] = "It's 12345  cafe\xcc\x81\r\n\n  \xe4\xb8\xad/x \t";
    size_t at = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        size_t end = splitter_next(SPLITTER_CL100K, (const uint8_t *)text, sizeof(text) - 1, at);

        assert_int_equal(end - at, strlen(pieces[i]));
        assert_memory_equal(text + at, pieces[i], end - at);
        at = end;
    }
    assert_int_equal(at, sizeof(text) - 1);
    assert_int_equal(splitter_of("\\w+"), SPLITTER_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes_are_those_of_libonig),
        cmocka_unit_test(test_all_code_points_are_cut_as_by_libonig),
        cmocka_unit_test(test_random_strings_are_cut_as_by_libonig),
        cmocka_unit_test(test_known_text_is_cut_where_it_should_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
