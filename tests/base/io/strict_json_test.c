/*
 * Goal: JSON from outside is taken when it is plain and refused when it is clever.
 * Method: cases of RFC 8259's edges, depth at the limit, every cut of a good document.
 */
#include "base/io/strict_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "tests/support/test.h"

#define SIZE_MOST 4096

static enum status parse(const char *text)
{
    json_t *root;
    enum status status = strict_json_parse(&root, NULL, "test", text, strlen(text), SIZE_MOST, 4);

    assert_true((root != NULL) == (status == STATUS_OK));
    json_decref(root);
    return status;
}

static void test_what_others_accept_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "{",
                                      "{\"a\":1,}",
                                      "[1] x",
                                      "{\"a\":1,\"a\":2}",
                                      "{'a':1}",
                                      "[01]",
                                      "[+1]",
                                      "[.5]",
                                      "[NaN]",
                                      "[Infinity]",
                                      "[1e999]",
                                      "// c\n[1]",
                                      "[\"\\u0000\"]",
                                      "[\"\xff\"]",
                                      "\xef\xbb\xbf[]",
                                      "[\"a\nb\"]",
                                      "[9223372036854775808]",
                                      "\"text\"",
                                      "[\"\\ud800\"]"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(parse(bad[i]), STATUS_BAD_FORMAT);
    }
    assert_int_equal(parse("{\"a\":[1,2.5,\"x\",null,true]}"), STATUS_OK);
}

/* Behind a number or a literal jansson passes over it. */
static void test_a_nul_is_refused_wherever_it_is(void **state)
{
    static const char good[] = "{\"a\":[1,-2.5e3,true,false,null,\"x\"],\"b\":{}}";

    (void)state;
    assert_int_equal(parse(good), STATUS_OK);
    for (size_t at = 0; at <= strlen(good); at++) {
        char bytes[sizeof(good) + 1];
        json_t *root;

        memcpy(bytes, good, at);
        bytes[at] = '\0';
        memcpy(bytes + at + 1, good + at, strlen(good) - at);
        assert_int_equal(
            strict_json_parse(&root, NULL, "nul", bytes, strlen(good) + 1, SIZE_MOST, 4),
            STATUS_BAD_FORMAT);
        assert_null(root);
    }
}

static void test_depth_is_bounded_and_text_does_not_count(void **state)
{
    char *deep = malloc(200001);
    json_t *root;

    (void)state;
    assert_int_equal(parse("[[[[]]]]"), STATUS_OK);
    assert_int_equal(parse("[[[[[]]]]]"), STATUS_OVER_LIMIT);
    assert_int_equal(parse("[{\"a\":[{}]}]"), STATUS_OK);
    assert_int_equal(parse("[{\"a\":[{\"b\":[]}]}]"), STATUS_OVER_LIMIT);
    assert_int_equal(parse("[\"[[[[[[{{{{{\"]"), STATUS_OK);
    assert_int_equal(parse("[\"\\\"[[[[[[\"]"), STATUS_OK);
    assert_int_equal(parse("[\"\\\\\",[[[[]]]]]"), STATUS_OVER_LIMIT);
    assert_int_equal(parse("[[],[],[],[],[],[]]"), STATUS_OK);
    assert_non_null(deep);
    memset(deep, '[', 200000);
    deep[200000] = '\0';
    assert_int_equal(
        strict_json_parse(&root, NULL, "deep", deep, 200000, 200000, STRICT_JSON_DEPTH_MAX),
        STATUS_OVER_LIMIT);
    free(deep);
}

static void test_size_is_bounded(void **state)
{
    json_t *root;
    struct error error;

    (void)state;
    assert_int_equal(strict_json_parse(&root, &error, "reply", "[1,2]", 5, 4, 4),
                     STATUS_OVER_LIMIT);
    assert_string_equal(error.text, "reply: larger than 4 bytes");
    assert_int_equal(strict_json_parse(&root, &error, "reply", "[1,2]", 5, 5, 4), STATUS_OK);
    json_decref(root);
}

static void test_every_cut_document_is_refused(void **state)
{
    const char *good = "{\"id\":\"0x0aFf\",\"n\":12,\"on\":true,\"in\":{\"l\":[1,2,3]}}";

    (void)state;
    for (size_t size = 0; size < strlen(good); size++) {
        char *cut = malloc(size + 1);
        json_t *root;

        assert_non_null(cut);
        memcpy(cut, good, size);
        assert_int_equal(strict_json_parse(&root, NULL, "cut", cut, size, SIZE_MOST, 8),
                         STATUS_BAD_FORMAT);
        free(cut);
    }
}

static void test_fields_are_read_and_wrong_ones_named(void **state)
{
    const char *good = "{\"id\":\"0x0aFf\",\"n\":12,\"on\":true,\"in\":{\"l\":[1,2,3]},\"m\":-1}";
    static const char *const known[] = {"id", "n", "on", "in"};
    struct error error;
    uint8_t bytes[2];
    uint64_t number;
    const char *text;
    const json_t *inner;
    const json_t *list;
    json_t *root;
    bool flag;

    (void)state;
    assert_int_equal(strict_json_parse(&root, &error, "d", good, strlen(good), SIZE_MOST, 8),
                     STATUS_OK);
    assert_int_equal(strict_json_hex(root, &error, bytes, 2, "id"), STATUS_OK);
    assert_memory_equal(bytes, "\x0a\xff", 2);
    assert_int_equal(strict_json_hex(root, &error, bytes, 1, "id"), STATUS_BAD_FORMAT);
    assert_string_equal(error.text, "'id' is not 2 hexadecimal digits");
    assert_int_equal(strict_json_number(root, &error, &number, "n", 12), STATUS_OK);
    assert_int_equal(number, 12);
    assert_int_equal(strict_json_number(root, &error, &number, "n", 11), STATUS_OVER_LIMIT);
    assert_int_equal(number, 0);
    assert_int_equal(strict_json_number(root, &error, &number, "m", 11), STATUS_BAD_FORMAT);
    assert_int_equal(strict_json_flag(root, &error, &flag, "on"), STATUS_OK);
    assert_true(flag);
    assert_int_equal(strict_json_flag(root, &error, &flag, "n"), STATUS_BAD_FORMAT);
    assert_int_equal(strict_json_text(root, &error, &text, "id"), STATUS_OK);
    assert_int_equal(strict_json_text(root, &error, &text, "gone"), STATUS_BAD_FORMAT);
    assert_string_equal(error.text, "'gone' is missing");
    inner = json_object_get(root, "in");
    assert_int_equal(strict_json_array(inner, &error, &list, "l", 3), STATUS_OK);
    assert_int_equal(strict_json_array(inner, &error, &list, "l", 2), STATUS_OVER_LIMIT);
    assert_null(list);
    assert_int_equal(strict_json_only(root, &error, known, 4), STATUS_BAD_FORMAT);
    assert_string_equal(error.text, "unknown key 'm'");
    json_object_del(root, "m");
    assert_int_equal(strict_json_only(root, &error, known, 4), STATUS_OK);
    json_decref(root);
}

static void test_file_is_named_with_line_and_column(void **state)
{
    char path[FILE_PATH_MAX];
    struct error error;
    json_t *root;

    (void)state;
    assert_int_equal(file_path_join(path, sizeof(path), NULL, test_temp_dir(), "a.json"),
                     STATUS_OK);
    assert_int_equal(file_write(path, NULL, "{\n\"a\":,}", 8, 0600), STATUS_OK);
    assert_int_equal(strict_json_read(&root, &error, path, 100, 4), STATUS_BAD_FORMAT);
    assert_non_null(strstr(error.text, "a.json:2:"));
    assert_int_equal(strict_json_read(&root, &error, path, 7, 4), STATUS_OVER_LIMIT);
    assert_int_equal(strict_json_read(&root, &error, "/nowhere", 7, 4), STATUS_NOT_FOUND);
}

/* Whichever piece has no room, nothing is written that is not all of it. */
static void test_text_without_a_part_is_never_written(void **state)
{
    static const char good[] = "{\"a\":[1,2.5,null],\"b c\":{\"d\":\"\\u0001\\\\\"}}";
    struct buffer text;
    struct error error;
    json_t *root;

    (void)state;
    error_init(&error);
    assert_int_equal(strict_json_parse(&root, &error, "d", good, strlen(good), SIZE_MOST, 8),
                     STATUS_OK);
    for (size_t room = 0; room < strlen(good); room++) {
        buffer_init(&text, room);
        assert_int_equal(strict_json_write(&text, &error, root, JSON_COMPACT), STATUS_OVER_LIMIT);
        buffer_release(&text);
    }
    buffer_init(&text, strlen(good));
    assert_int_equal(strict_json_write(&text, &error, root, JSON_COMPACT), STATUS_OK);
    assert_string_equal(buffer_text(&text), good);
    buffer_release(&text);
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_others_accept_is_refused),
        cmocka_unit_test(test_a_nul_is_refused_wherever_it_is),
        cmocka_unit_test(test_depth_is_bounded_and_text_does_not_count),
        cmocka_unit_test(test_size_is_bounded),
        cmocka_unit_test(test_every_cut_document_is_refused),
        cmocka_unit_test(test_fields_are_read_and_wrong_ones_named),
        cmocka_unit_test(test_file_is_named_with_line_and_column),
        cmocka_unit_test(test_text_without_a_part_is_never_written),
    };

    return cmocka_run_group_tests_name("strict_json", tests, NULL, NULL);
}
