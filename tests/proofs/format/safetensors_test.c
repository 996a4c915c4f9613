/*
 * Goal: safetensors files are read and written as the format has them, and no header can make us
 * read outside the data, twice the same byte, or more memory than the limits allow.
 * Method: a list of hostile headers, each refused with a sentence; round trips; every byte of a
 * good header changed and every truncation tried.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "proofs/format/safetensors.h"
#include "tests/support/test.h"

static enum status status_of(const char *header, uint64_t data_size)
{
    struct safetensors file;
    struct error error;
    enum status status;

    error_init(&error);
    status = safetensors_header_read(&file, &error, header, strlen(header), data_size);
    if (status == STATUS_OK) {
        safetensors_close(&file);
    } else {
        assert_int_equal(error.status, status);
        assert_true(error.text[0] != '\0');
    }
    return status;
}

#define A "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
#define B "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[8,11]}"

static void test_good_headers_are_read(void **state)
{
    (void)state;
    assert_int_equal(status_of("{}", 0), STATUS_OK);
    assert_int_equal(status_of("{" A "}", 8), STATUS_OK);
    assert_int_equal(status_of("{" B "," A "}   ", 11), STATUS_OK);
    assert_int_equal(status_of("{\"__metadata__\":{\"format\":\"pt\"}," A "}", 8), STATUS_OK);
    assert_int_equal(
        status_of("{\"s\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]}}", 8), STATUS_OK);
    assert_int_equal(
        status_of("{\"e\":{\"dtype\":\"F64\",\"shape\":[0,9],\"data_offsets\":[0,0]}," A "}", 8),
        STATUS_OK);
    assert_int_equal(
        status_of(
            "{\"\xc3\xa9t\xc3\xa9\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1),
        STATUS_OK);
}

static void test_hostile_headers_are_refused(void **state)
{
    static const struct {
        const char *header;
        uint64_t data_size;
    } bad[] = {
        {"", 0},
        {" {}", 0},
        {"[]", 0},
        {"{", 0},
        {"{}x", 0},
        {"{" A "," A "}", 8}, /* a name twice */
        {"{" A "}", 7},       /* behind the end */
        {"{" A "}", 9},       /* bytes of nobody */
        {"{" B "}", 11},      /* a hole at the start */
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
         12}, /* overlap */
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
         8}, /* the same bytes twice */
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", 8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,8]}}", 8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":{}}}", 8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0.0,8.0]}}", 8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", 8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}", 8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}", 8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387906],\"data_offsets\":[0,8]}}", 8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,2],\"data_offsets\":[0,8]}}",
         8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,8]}}", 8},
        {"{\"a\":{\"dtype\":\"f32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8},
        {"{\"a\":{\"dtype\":7,\"shape\":[2],\"data_offsets\":[0,8]}}", 8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"more\":1}}", 8},
        {"{\"a\":[]}", 8},
        {"{\"a\":null}", 0},
        {"{\"\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8},
        {"{\"a\\u001b[2J\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8},
        {"{\"a\\u0000\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8},
        {"{\"a\\u009b2J\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8},
        {"{\"\xff\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8},
        {"{\"__metadata__\":7}", 0},
        {"{\"__metadata__\":{\"a\":7}}", 0},
        {"{\"__metadata__\":{\"a\":{}}}", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (status_of(bad[i].header, bad[i].data_size) != STATUS_BAD_FORMAT) {
            fail_msg("not refused: %s", bad[i].header);
        }
    }
}

static void test_headers_above_the_limits_are_refused(void **state)
{
    char *header = malloc(SAFETENSORS_HEADER_MAX + 2);
    struct safetensors file;
    size_t at = 1;

    (void)state;
    assert_non_null(header);
    memset(header, ' ', SAFETENSORS_HEADER_MAX + 1);
    header[0] = '{';
    header[1] = '}';
    assert_int_equal(safetensors_header_read(&file, NULL, header, SAFETENSORS_HEADER_MAX + 1, 0),
                     STATUS_OVER_LIMIT);
    assert_int_equal(safetensors_header_read(&file, NULL, header, SAFETENSORS_HEADER_MAX, 0),
                     STATUS_OK);
    safetensors_close(&file);
    for (int i = 0; i <= SAFETENSORS_ENTRIES_MAX; i++) {
        at += (size_t)sprintf(header + at,
                              "%s\"t%d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}",
                              i == 0 ? "" : ",", i);
    }
    header[at++] = '}';
    assert_int_equal(safetensors_header_read(&file, NULL, header, at, 0), STATUS_OVER_LIMIT);
    memset(header, '[', SAFETENSORS_HEADER_MAX);
    memcpy(header, "{\"a\":", 5);
    assert_int_equal(safetensors_header_read(&file, NULL, header, SAFETENSORS_HEADER_MAX, 0),
                     STATUS_OVER_LIMIT);
    free(header);
}

static struct safetensors_entry entry_of(const char *name, enum element element, uint64_t a,
                                         uint64_t b)
{
    struct safetensors_entry entry = {.element = element, .rank = b == 0 ? 1 : 2, .dims = {a, b}};

    memcpy(entry.name, name, strlen(name));
    return entry;
}

static void write_sample(const char *path, const uint8_t *data, size_t size,
                         const struct encryption_key *key)
{
    struct safetensors_entry entries[] = {
        entry_of("h.0.attn.c_attn.weight", ELEMENT_F32, 6, 4),
        entry_of("step", ELEMENT_U32, 1, 0),
        entry_of("tokens", ELEMENT_U16, 5, 0),
        entry_of("empty", ELEMENT_U16, 0, 3),
        entry_of("flags", ELEMENT_U8, 3, 0),
    };
    const struct safetensors_text texts[] = {{"job", "00ff"}, {"note", "a \"quoted\"\nline"}};
    const struct safetensors_plan plan = {entries, 5, texts, 2, key, "checkpoints/1"};
    struct safetensors_writer writer;

    assert_int_equal(safetensors_writer_open_plan(&writer, NULL, path, &plan), STATUS_OK);
    assert_int_equal(writer.left, size);
    assert_int_equal(safetensors_writer_add(&writer, NULL, data, 7), STATUS_OK);
    assert_int_equal(safetensors_writer_add(&writer, NULL, data + 7, size - 7), STATUS_OK);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(safetensors_writer_keep(&writer, NULL), STATUS_OK);
    safetensors_writer_drop(&writer);
}

static void check_read_back(const char *name, const struct encryption_key *key)
{
    uint8_t data[96 + 4 + 10 + 3];
    uint8_t got[sizeof(data)];
    uint64_t seed = 1;
    char path[512];
    struct safetensors file;
    const struct safetensors_entry *entry;

    snprintf(path, sizeof(path), "%s/%s", test_temp_dir(), name);
    test_random_fill(&seed, data, sizeof(data));
    write_sample(path, data, sizeof(data), key);
    if (key == NULL) {
        assert_int_equal(safetensors_open(&file, NULL, path), STATUS_OK);
    } else {
        assert_int_equal(safetensors_open(&file, NULL, path), STATUS_BAD_FORMAT);
        assert_int_equal(safetensors_open_encrypted(&file, NULL, path, key, "checkpoints/2"),
                         STATUS_REFUSED);
        assert_int_equal(safetensors_open_encrypted(&file, NULL, path, key, "checkpoints/1"),
                         STATUS_OK);
    }
    assert_int_equal(file.entry_count, 5);
    assert_int_equal(file.data_offset % 8, 0);
    assert_string_equal(safetensors_metadata(&file, "note"), "a \"quoted\"\nline");
    assert_null(safetensors_metadata(&file, "other"));
    assert_null(safetensors_find(&file, "other"));
    entry = safetensors_find(&file, "tokens");
    assert_non_null(entry);
    assert_int_equal(entry->element, ELEMENT_U16);
    assert_int_equal(entry->size, 10);
    assert_int_equal(safetensors_read(&file, NULL, got, entry, 6, 3), STATUS_OK);
    assert_memory_equal(got, data + 96 + 4 + 3, 6);
    entry = safetensors_find(&file, "h.0.attn.c_attn.weight");
    assert_int_equal(entry->rank, 2);
    assert_int_equal(safetensors_read(&file, NULL, got, entry, 96, 0), STATUS_OK);
    assert_memory_equal(got, data, 96);
    safetensors_close(&file);
}

static void test_written_files_are_read_back(void **state)
{
    (void)state;
    check_read_back("a.safetensors", NULL);
}

static void test_encrypted_files_are_read_back_by_their_key(void **state)
{
    const struct encryption_key key = {{3, 1, 4}};

    (void)state;
    check_read_back("encrypted.safetensors", &key);
}

/* Every truncation is refused; a changed byte gives the same entries' sizes or an error. */
static void test_cut_and_changed_files_are_refused_or_stay_in_bounds(void **state)
{
    uint8_t data[113] = {0};
    char path[512];
    uint8_t bytes[2048];
    int descriptor;
    ssize_t size;

    (void)state;
    snprintf(path, sizeof(path), "%s/b.safetensors", test_temp_dir());
    write_sample(path, data, sizeof(data), NULL);
    descriptor = open(path, O_RDWR);
    assert_true(descriptor >= 0);
    size = read(descriptor, bytes, sizeof(bytes));
    assert_true(size > 0 && size < (ssize_t)sizeof(bytes));
    for (ssize_t at = 0; at < size - (ssize_t)sizeof(data); at++) {
        struct safetensors file;
        uint8_t changed = bytes[at] ^ 0x04;

        assert_int_equal(pwrite(descriptor, &changed, 1, at), 1);
        if (safetensors_open(&file, NULL, path) == STATUS_OK) {
            uint64_t total = 0;

            for (uint32_t i = 0; i < file.entry_count; i++) {
                total += file.entries[i].size;
            }
            assert_int_equal(total + file.data_offset, size);
            safetensors_close(&file);
        }
        assert_int_equal(pwrite(descriptor, &bytes[at], 1, at), 1);
    }
    for (ssize_t cut = size - 1; cut >= 0; cut--) {
        struct safetensors file;

        assert_int_equal(ftruncate(descriptor, cut), 0);
        assert_int_equal(safetensors_open(&file, NULL, path), STATUS_BAD_FORMAT);
    }
    close(descriptor);
}

static void test_files_that_cannot_be_written_are_refused(void **state)
{
    struct safetensors_entry entries[2] = {entry_of("a", ELEMENT_U8, 3, 0),
                                           entry_of("b", ELEMENT_F32, 1, 0)};
    const struct safetensors_plan plan = {.entries = entries, .entry_count = 2};
    struct safetensors_writer writer;
    char path[512];

    (void)state;
    snprintf(path, sizeof(path), "%s/c.safetensors", test_temp_dir());
    assert_int_equal(safetensors_writer_open_plan(&writer, NULL, path, &plan), STATUS_BAD_FORMAT);
    entries[0] = entry_of("b", ELEMENT_F32, 1, 0);
    assert_int_equal(safetensors_writer_open_plan(&writer, NULL, path, &plan), STATUS_BAD_FORMAT);
    entries[0] = entry_of("__metadata__", ELEMENT_F32, 1, 0);
    assert_int_equal(safetensors_writer_open_plan(&writer, NULL, path, &plan), STATUS_BAD_FORMAT);
    entries[0] = entry_of("a\"b", ELEMENT_F32, 1, 0);
    assert_int_equal(safetensors_writer_open_plan(&writer, NULL, path, &plan), STATUS_BAD_FORMAT);
    entries[0] = entry_of("a", ELEMENT_F32, UINT64_C(1) << 40, UINT64_C(1) << 40);
    assert_int_equal(safetensors_writer_open_plan(&writer, NULL, path, &plan), STATUS_OVER_LIMIT);
    entries[0] = entry_of("a", ELEMENT_F32, 1, 0);
    assert_int_equal(safetensors_writer_open_plan(&writer, NULL, "/nowhere/x", &plan), STATUS_IO);
    safetensors_writer_drop(&writer);
    assert_int_not_equal(access(path, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_headers_are_read),
        cmocka_unit_test(test_hostile_headers_are_refused),
        cmocka_unit_test(test_headers_above_the_limits_are_refused),
        cmocka_unit_test(test_written_files_are_read_back),
        cmocka_unit_test(test_encrypted_files_are_read_back_by_their_key),
        cmocka_unit_test(test_cut_and_changed_files_are_refused_or_stay_in_bounds),
        cmocka_unit_test(test_files_that_cannot_be_written_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
