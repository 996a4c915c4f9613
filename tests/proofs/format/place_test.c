/*
 * Goal: an error about a bad file names the file and the byte where it goes wrong.
 *
 * Method: files of every format with one flaw at a known place, read as a command reads them; the
 * message must name the path and that place. Whether a reader finds a flaw at all is for its own
 * test.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/endian.h"
#include "proofs/bundle/bundle_pack.h"
#include "proofs/format/dataset.h"
#include "proofs/format/safetensors.h"
#include "proofs/hash/sha256.h"
#include "proofs/job/job_file.h"
#include "tests/support/numeric/small_job.h"
#include "tests/support/test.h"

#define FILE_MAX    (1u << 20)
#define BODY_DIGEST 88

static void check_sentence(const struct error *error, const char *path, const char *place)
{
    const char *at = strstr(error->text, place);
    size_t length = strlen(place);

    if (strstr(error->text, path) == NULL || at == NULL ||
        (at[length] >= '0' && at[length] <= '9')) {
        fail_msg("'%s' does not name %s and '%s'", error->text, path, place);
    }
}

static const char *put(const char *name, const void *bytes, size_t size)
{
    const char *path = small_path(name);

    assert_int_equal(file_write(path, NULL, bytes, size, 0644), STATUS_OK);
    return path;
}

/* ---- .npy --------------------------------------------------------------- */

static void check_npy(const char *text, size_t data_size, const char *place)
{
    uint8_t bytes[256] = "\x93NUMPY\x01\x00";
    struct dataset dataset;
    struct error error;
    const char *path;

    error_init(&error);
    endian_store_le16(bytes + 8, (uint16_t)strlen(text));
    memcpy(bytes + 10, text, strlen(text));
    path = put("bad.npy", bytes, 10 + strlen(text) + data_size);
    assert_int_equal(dataset_open_tokens(&dataset, &error, path, DTYPE_U32, 7), STATUS_BAD_FORMAT);
    check_sentence(&error, path, place);
}

static void test_npy_files_are_refused_at_a_byte(void **state)
{
    struct dataset dataset;
    struct error error;
    const char *path = put("short.npy", "\x93NUMPY\x07", 7);

    (void)state;
    error_init(&error);
    assert_int_equal(dataset_open_tokens(&dataset, &error, path, DTYPE_U32, 7), STATUS_BAD_FORMAT);
    check_sentence(&error, path, "byte 0");
    check_npy("['descr']\n", 0, "byte 10");
    check_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}\n", 7, "byte 66");
    check_npy("{'descr': '<f4', 'fortran_order': Fals, 'shape': (2,)}\n", 8, "byte 44");
    check_npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2,)}\n", 8, "byte 48");
    check_npy("{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}\n", 8, "byte 26");
    check_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2x)}\n", 8, "byte 62");
}

/* ---- safetensors -------------------------------------------------------- */

static void check_safetensors(const char *header, size_t data_size, const char *place)
{
    uint8_t bytes[1024] = {0};
    struct safetensors file;
    struct error error;
    const char *path;

    error_init(&error);
    endian_store_le64(bytes, strlen(header));
    memcpy(bytes + 8, header, strlen(header));
    path = put("bad.safetensors", bytes, 8 + strlen(header) + data_size);
    assert_int_not_equal(safetensors_open(&file, &error, path), STATUS_OK);
    check_sentence(&error, path, place);
}

static void test_safetensors_files_are_refused_at_a_byte(void **state)
{
    struct safetensors file;
    struct error error;
    const char *path = put("short.safetensors", "\x01\0\0\0\0", 5);

    (void)state;
    error_init(&error);
    assert_int_equal(safetensors_open(&file, &error, path), STATUS_BAD_FORMAT);
    check_sentence(&error, path, "byte 5");
    path = put("long.safetensors", "\xff\0\0\0\0\0\0\0{}", 10);
    assert_int_equal(safetensors_open(&file, &error, path), STATUS_BAD_FORMAT);
    check_sentence(&error, path, "byte 0");
    check_safetensors("[]", 0, "byte 8");
    check_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5,
                      "byte 66"); /* behind the four bytes that a has */
    check_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                      "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[2,6]}}",
                      6, "byte 117"); /* b overlaps a */
    check_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                      "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
                      12, "byte 124"); /* a hole before b */
    check_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                      "\"b\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[4,8]}}",
                      8, "byte 62"); /* the name of b */
    check_safetensors("{ \"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387905],"
                      "\"data_offsets\":[0,4]}}",
                      4, "byte 10");
    check_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],"
                      "\"data_offsets\":[9223372036854775804,9223372036854775807]}}",
                      4, "byte 9");
}

/* ---- jobs --------------------------------------------------------------- */

static struct job *small_job(void)
{
    struct small_job_options options;

    small_job_defaults(&options);
    return small_job_new(&options);
}

/* Changes bytes of a job, and its header so that it commits to them. */
static void check_job(const struct buffer *good, size_t at, const void *bytes, size_t size,
                      const char *place)
{
    uint8_t *copy = malloc(good->size);
    struct job *job = NULL;
    struct digest digest;
    struct error error;
    const char *path;

    error_init(&error);
    memcpy(copy, good->data, good->size);
    memcpy(copy + at, bytes, size);
    if (at >= JOB_HEADER_SIZE) {
        sha256(&digest, copy + JOB_HEADER_SIZE, good->size - JOB_HEADER_SIZE);
        memcpy(copy + BODY_DIGEST, digest.bytes, DIGEST_SIZE);
    }
    path = put("bad.job", copy, good->size);
    assert_int_not_equal(job_read(&job, path, &error), STATUS_OK);
    check_sentence(&error, path, place);
    free(copy);
}

static void test_jobs_are_refused_at_a_byte(void **state)
{
    static const uint8_t ones[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    struct job *job = small_job();
    struct buffer good;
    char place[32];

    (void)state;
    buffer_init(&good, FILE_MAX);
    assert_int_equal(job_encode(&good, job, NULL), STATUS_OK);
    check_job(&good, 0, "X", 1, "byte 0");
    check_job(&good, 12, ones, 8, "byte 8");                /* steps */
    check_job(&good, 56, ones, 8, "byte 56");               /* the program root */
    check_job(&good, BODY_DIGEST, ones, 8, "byte 88");      /* of what follows */
    check_job(&good, 120, ones, 8, "byte 120");             /* the constants */
    check_job(&good, JOB_HEADER_SIZE, ones, 8, "byte 216"); /* the size of the tape */
    check_job(&good, JOB_HEADER_SIZE + 8, ones, 8, "byte 224");
    check_job(&good, JOB_HEADER_SIZE + 8 + 24, "\0", 1, "byte 24"); /* a tensor, in the tape */
    (void)snprintf(place, sizeof(place), "byte %zu", good.size);
    check_job(&good, good.size - 9, ones, 1, place); /* is the first state given? */
    buffer_release(&good);
    job_free(job);
}

/* ---- bundles, packed and open -------------------------------------------- */

struct packed {
    uint8_t *tar;
    size_t size;
    size_t entries[4]; /* where headers begin: job, journal, two checkpoints */
    size_t sizes[4];
};

static void pack_small(struct packed *packed)
{
    struct bundle *bundle = small_bundle_new(small_path("run"), small_job(), NULL, 10);
    const char *path = small_path("run.tar.zst");
    ZSTD_DCtx *stream = ZSTD_createDCtx();
    struct file_bytes file;
    size_t at = 0;

    assert_int_equal(bundle_export(bundle, path, BUNDLE_PACK_ALL, NULL), STATUS_OK);
    bundle_close(bundle);
    assert_int_equal(file_read(&file, NULL, path, FILE_MAX), STATUS_OK);
    packed->tar = malloc(FILE_MAX);
    packed->size = ZSTD_decompressDCtx(stream, packed->tar, FILE_MAX, file.data, file.size);
    assert_false(ZSTD_isError(packed->size));
    for (int i = 0; i < 4; i++) {
        packed->entries[i] = at;
        packed->sizes[i] = strtoull((char *)packed->tar + at + 124, NULL, 8);
        at += 512 + (packed->sizes[i] + 511) / 512 * 512;
    }
    ZSTD_freeDCtx(stream);
    file_bytes_release(&file);
}

/* Imports the archive with size bytes at `at` replaced; the sentence names the place. */
static void check_import(struct packed *packed, size_t at, const void *bytes, size_t size,
                         size_t place)
{
    static uint8_t kept[512];
    struct bundle_import import = {.size_max = FILE_MAX};
    size_t room = ZSTD_compressBound(packed->size);
    uint8_t *file = malloc(room);
    struct error error;
    char text[64];
    const char *path;

    error_init(&error);
    memcpy(kept, packed->tar + at, size);
    memcpy(packed->tar + at, bytes, size);
    path = put("bad.tar.zst", file, ZSTD_compress(file, room, packed->tar, packed->size, 1));
    assert_int_not_equal(bundle_import(small_path("imported"), path, &import, &error), STATUS_OK);
    (void)snprintf(text, sizeof(text), "byte %zu of what is in it", place);
    check_sentence(&error, path, text);
    memcpy(packed->tar + at, kept, size);
    free(file);
}

static void mend_header(uint8_t *header)
{
    uint32_t sum = 0;

    memset(header + 148, ' ', 8);
    for (int i = 0; i < 512; i++) {
        sum += header[i];
    }
    (void)snprintf((char *)header + 148, 8, "%06o", sum);
}

/* A header of another name, and the same otherwise. */
static void check_name(struct packed *packed, int entry, const char *name)
{
    uint8_t header[512];

    memcpy(header, packed->tar + packed->entries[entry], 512);
    memset(header, 0, 100);
    memcpy(header, name, strlen(name));
    mend_header(header);
    check_import(packed, packed->entries[entry], header, 512, packed->entries[entry] + 512);
}

static void test_packed_bundles_are_refused_at_a_byte(void **state)
{
    struct packed packed;
    uint8_t bomb[512];
    size_t journal;

    (void)state;
    pack_small(&packed);
    journal = packed.entries[1] + 512;
    check_import(&packed, 300, "root", 4, 512); /* a header of another owner */
    check_name(&packed, 0, "../../etc/passwd");
    check_name(&packed, 0, "/job");
    check_name(&packed, 1, "job");
    check_name(&packed, 2, "checkpoints/../../x");
    check_name(&packed, 3, "checkpoints/000000000005.safetensors");
    check_import(&packed, 512 + 8, "\xff", 1, 512 + packed.sizes[0]); /* the job's rules */
    check_import(&packed, journal, "X", 1, journal + 69);
    /* A journal of more steps ends early, where its hash begins. */
    check_import(&packed, journal + 48, "\x0b", 1, journal + packed.sizes[1] - DIGEST_SIZE);
    /* A bomb: an entry of a terabyte is not unpacked beyond the limit. */
    memcpy(bomb, packed.tar + packed.entries[2], 512);
    memcpy(bomb + 124, "\x80\0\0\0\0\0\0\1\0\0\0\0", 12);
    mend_header(bomb);
    check_import(&packed, packed.entries[2], bomb, 512, packed.entries[2] + 512);
    /* A checkpoint that does not hash to its root is read to its end. */
    check_import(&packed, packed.entries[3] + 512 + packed.sizes[3] - 1, "\x55", 1,
                 packed.entries[3] + 512 + packed.sizes[3]);
    free(packed.tar);
}

static void test_cut_archive_is_refused_where_it_ends(void **state)
{
    struct bundle_import import = {.size_max = FILE_MAX};
    struct file_bytes file;
    struct error error;
    const char *path;

    (void)state;
    error_init(&error);
    assert_int_equal(file_read(&file, NULL, small_path("run.tar.zst"), FILE_MAX), STATUS_OK);
    path = put("cut.tar.zst", file.data, file.size / 2);
    assert_int_equal(bundle_import(small_path("imported"), path, &import, &error),
                     STATUS_BAD_FORMAT);
    check_sentence(&error, path, "of what is in it");
    import.size_max = 1000;
    path = small_path("run.tar.zst");
    assert_int_equal(bundle_import(small_path("imported"), path, &import, &error),
                     STATUS_OVER_LIMIT);
    check_sentence(&error, path, "byte 512 of what is in it");
    file_bytes_release(&file);
}

static void test_cut_checkpoint_is_refused_at_a_byte(void **state)
{
    struct bundle *bundle = NULL;
    struct file_bytes file;
    char path[FILE_PATH_MAX];
    struct error error;

    (void)state;
    error_init(&error);
    assert_int_equal(bundle_open(&bundle, small_path("run"), BUNDLE_READ, &error), STATUS_OK);
    assert_int_equal(bundle_checkpoint_path(path, bundle, 10, &error), STATUS_OK);
    assert_int_equal(file_read(&file, NULL, path, FILE_MAX), STATUS_OK);
    assert_int_equal(file_write(path, NULL, file.data, 7, 0644), STATUS_OK);
    assert_int_equal(bundle_checkpoint_check(bundle, 10, &error), STATUS_BAD_FORMAT);
    check_sentence(&error, path, "byte 7");
    assert_int_equal(file_write(path, NULL, file.data, 100, 0644), STATUS_OK);
    assert_int_equal(bundle_checkpoint_check(bundle, 10, &error), STATUS_BAD_FORMAT);
    check_sentence(&error, path, "byte 0"); /* where the header's size stands */
    file_bytes_release(&file);
    bundle_close(bundle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_npy_files_are_refused_at_a_byte),
        cmocka_unit_test(test_safetensors_files_are_refused_at_a_byte),
        cmocka_unit_test(test_jobs_are_refused_at_a_byte),
        cmocka_unit_test(test_packed_bundles_are_refused_at_a_byte),
        cmocka_unit_test(test_cut_archive_is_refused_where_it_ends),
        cmocka_unit_test(test_cut_checkpoint_is_refused_at_a_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
