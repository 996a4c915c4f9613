/*
 * Goal: a bundle comes out of its file as it went in, and nothing else comes out of any file.
 *
 * Method: round trips of plain, encrypted, diverged, given and unfinished runs, byte for byte;
 * every byte and truncation of a file; archives made by hand with links, foreign paths, exchanged,
 * repeated and oversized entries, false journals and bombs; structure-aware mutants. After every
 * refusal the folder beside the target is as empty as before.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/endian.h"
#include "proofs/bundle/bundle_pack.h"
#include "proofs/bundle/pack_journal.h"
#include "proofs/commit/state_root.h"
#include "proofs/hash/sha256.h"
#include "tests/support/memory_file.h"
#include "tests/support/numeric/small_job.h"
#include "tests/support/test.h"

#define PACK_MAX     (4u << 20)
#define SIZE_MAX_OK  (64u << 20)
#define MUTANTS_FULL 1000000
#define MUTANTS      600

static const struct encryption_key the_key = {{3, 1, 4, 1, 5}};
static const struct encryption_key other_key = {{2, 7, 1, 8, 2}};

static struct job *small_job(void)
{
    struct small_job_options options;

    small_job_defaults(&options);
    return small_job_new(&options);
}

/* Every import goes into this folder; a refused one must leave it empty. */
static const char *inbox(void)
{
    const char *path = small_path("inbox");

    (void)mkdir(path, 0755);
    return path;
}

static size_t count_entries(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    size_t count = 0;

    while ((entry = readdir(folder)) != NULL) {
        count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    }
    (void)closedir(folder);
    return count;
}

static enum status import_file(const char *name, const char *file, struct bundle_import *import)
{
    char folder[800];
    struct error error;
    enum status status;
    size_t before = count_entries(inbox());

    error_init(&error);
    (void)snprintf(folder, sizeof(folder), "%s/%s", inbox(), name);
    status = bundle_import(folder, file, import, &error);
    assert_int_equal(count_entries(inbox()), before + (status == STATUS_OK));
    assert_true(status == STATUS_OK || (error.status == status && error.text[0] != '\0'));
    return status;
}

static void discard(const char *name)
{
    char command[900];

    (void)snprintf(command, sizeof(command), "rm -rf '%s/%s'", inbox(), name);
    /* NOLINTNEXTLINE(cert-env33-c): the commands and paths are the test's own. */
    assert_int_equal(system(command), 0);
}

/* ---- round trips -------------------------------------------------------- */

static struct file_bytes load(const char *path)
{
    struct file_bytes bytes;

    assert_int_equal(file_read(&bytes, NULL, path, PACK_MAX), STATUS_OK);
    return bytes;
}

static void check_same_file(const char *left, const char *right)
{
    struct file_bytes a = load(left);
    struct file_bytes b = load(right);

    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
    file_bytes_release(&a);
    file_bytes_release(&b);
}

/* Imports and exports again; the second file equals the first. */
static void check_round_trip(struct bundle *bundle, const char *name,
                             const struct encryption_key *key, uint32_t checkpoints)
{
    struct bundle_import import = {.size_max = SIZE_MAX_OK, .key = key};
    struct bundle *again = NULL;
    char folder[800];
    char file[600];
    char second[600];

    (void)snprintf(file, sizeof(file), "%s.tar.zst", small_path(name));
    (void)snprintf(second, sizeof(second), "%s-2.tar.zst", small_path(name));
    (void)snprintf(folder, sizeof(folder), "%s/%s", inbox(), name);
    assert_int_equal(bundle_export(bundle, file, BUNDLE_PACK_ALL, NULL), STATUS_OK);
    assert_int_equal(bundle_export(bundle, file, BUNDLE_PACK_ALL, NULL), STATUS_REFUSED);
    assert_int_equal(import_file(name, file, &import), STATUS_OK);
    assert_int_equal(import.checkpoints, checkpoints);
    assert_int_equal(import.unchecked,
                     bundle_is_encrypted(bundle) && key == NULL ? checkpoints : 0);
    assert_int_equal(import_file(name, file, &import), STATUS_REFUSED);
    assert_int_equal(bundle_open(&again, folder, BUNDLE_WRITE, NULL), STATUS_OK);
    assert_int_equal(bundle_is_encrypted(again), bundle_is_encrypted(bundle));
    assert_int_equal(bundle_export(again, second, BUNDLE_PACK_ALL, NULL), STATUS_OK);
    check_same_file(file, second);
    bundle_close(again);
}

static void check_goes_on(const char *name, const struct encryption_key *key, uint64_t from)
{
    struct bundle *bundle = NULL;
    struct digest root;
    struct digest wanted;
    char folder[800];
    struct run run;
    uint64_t step;
    struct job *job = small_job();

    (void)snprintf(folder, sizeof(folder), "%s/%s", inbox(), name);
    assert_int_equal(bundle_open(&bundle, folder, BUNDLE_WRITE, NULL), STATUS_OK);
    assert_int_equal(key == NULL ? STATUS_OK : bundle_unlock(bundle, key, NULL), STATUS_OK);
    assert_int_equal(bundle_set_device(bundle, "another machine", NULL), STATUS_OK);
    small_run_open(&run, bundle_job(bundle), isa_best(), 1, false);
    assert_int_equal(bundle_restore(&step, bundle, run.machine, 20, NULL), STATUS_OK);
    assert_int_equal(step, from);
    small_bundle_fill(bundle, &run, step, 20);
    run_close(&run);
    /* The end is that of a run that never moved. */
    small_run_open(&run, job, isa_best(), 1, false);
    small_run_begin(&run);
    for (int i = 0; i < 20; i++) {
        small_run_step(&run);
    }
    assert_int_equal(state_root_of(&wanted, run.machine, NULL), STATUS_OK);
    assert_int_equal(bundle_state_root(&root, bundle, 20, NULL), STATUS_OK);
    assert_true(digest_equal(&root, &wanted));
    run_close(&run);
    job_free(job);
    bundle_close(bundle);
}

static void test_unfinished_run_goes_on_where_it_is_unpacked(void **state)
{
    struct bundle *bundle = small_bundle_new(small_path("unfinished"), small_job(), NULL, 12);

    (void)state;
    assert_int_equal(bundle_segment_sign(bundle, 0, (const uint8_t *)"one", 3, NULL), STATUS_OK);
    assert_int_equal(bundle_segment_sign(bundle, 1, (const uint8_t *)"two", 3, NULL), STATUS_OK);
    assert_int_equal(bundle_set_note(bundle, "data.0", "/my/private/folder", NULL), STATUS_OK);
    check_round_trip(bundle, "unfinished", NULL, 3);
    bundle_close(bundle);
    check_goes_on("unfinished", NULL, 12);
}

static void test_run_without_a_step_is_packed_too(void **state)
{
    struct bundle *bundle = NULL;

    (void)state;
    assert_int_equal(bundle_create(&bundle, small_path("unborn"), small_job(), NULL), STATUS_OK);
    check_round_trip(bundle, "unborn", NULL, 0);
    bundle_close(bundle);
    check_goes_on("unborn", NULL, 0);
}

static void test_diverged_run_stays_diverged(void **state)
{
    struct bundle *bundle = small_bundle_new(small_path("diverged"), small_job(), NULL, 7);
    struct bundle *again = NULL;
    char folder[800];
    uint64_t step = 0;

    (void)state;
    assert_int_equal(bundle_set_diverged(bundle, 6, NULL), STATUS_OK);
    assert_int_equal(bundle_segment_sign(bundle, 1, (const uint8_t *)"end", 3, NULL), STATUS_OK);
    check_round_trip(bundle, "diverged", NULL, 2);
    bundle_close(bundle);
    (void)snprintf(folder, sizeof(folder), "%s/diverged", inbox());
    assert_int_equal(bundle_open(&again, folder, BUNDLE_READ, NULL), STATUS_OK);
    assert_int_equal(bundle_diverged(&step, again, NULL), STATUS_OK);
    assert_int_equal(step, 6);
    bundle_close(again);
}

static void test_encrypted_bundle_stays_encrypted(void **state)
{
    struct bundle_import import = {.size_max = SIZE_MAX_OK, .key = &other_key};
    struct bundle *bundle = small_bundle_new(small_path("encrypted"), small_job(), &the_key, 12);
    char file[600];

    (void)state;
    check_round_trip(bundle, "encrypted", &the_key, 3);
    bundle_close(bundle);
    check_goes_on("encrypted", &the_key, 12);
    /* Importers without the key, who cannot check it, and with a wrong key. */
    assert_int_equal(bundle_open(&bundle, small_path("encrypted"), BUNDLE_READ, NULL), STATUS_OK);
    check_round_trip(bundle, "locked", NULL, 3);
    bundle_close(bundle);
    (void)snprintf(file, sizeof(file), "%s.tar.zst", small_path("locked"));
    assert_int_equal(import_file("wrong key", file, &import), STATUS_REFUSED);
    check_goes_on("locked", &the_key, 12);
}

static void test_locked_key_travels_along(void **state)
{
    struct bundle_import import = {
        .size_max = SIZE_MAX_OK, .passphrase = "sesame", .passphrase_size = 6};
    uint8_t lock[ENCRYPTION_LOCK_SIZE];
    struct bundle *bundle = NULL;
    struct run run;
    char file[600];

    (void)state;
    assert_int_equal(encryption_lock(lock, NULL, &the_key, "sesame", 6, 10), STATUS_OK);
    assert_int_equal(
        bundle_create_encrypted(&bundle, small_path("travel"), small_job(), &the_key, lock, NULL),
        STATUS_OK);
    small_run_open(&run, bundle_job(bundle), isa_best(), 1, false);
    small_run_begin(&run);
    small_bundle_fill(bundle, &run, 0, 5);
    run_close(&run);
    check_round_trip(bundle, "travel", NULL, 1);
    bundle_close(bundle);
    (void)snprintf(file, sizeof(file), "%s.tar.zst", small_path("travel"));
    assert_int_equal(import_file("with passphrase", file, &import), STATUS_OK);
    assert_int_equal(import.unchecked, 0);
    import.passphrase = "sesamy";
    assert_int_equal(import_file("wrong passphrase", file, &import), STATUS_REFUSED);
}

static void test_chosen_checkpoints_are_packed(void **state)
{
    static const struct {
        enum bundle_pack_checkpoints which;
        uint32_t count;
    } ways[] = {{BUNDLE_PACK_ALL, 4}, {BUNDLE_PACK_LAST, 1}, {BUNDLE_PACK_NONE, 0}};
    struct bundle *bundle = small_bundle_new(small_path("chosen"), small_job(), NULL, 20);

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct bundle_import import = {.size_max = SIZE_MAX_OK};
        char name[32];

        (void)snprintf(name, sizeof(name), "chosen %zu", i);
        assert_int_equal(bundle_export(bundle, small_path(name), ways[i].which, NULL), STATUS_OK);
        assert_int_equal(import_file(name, small_path(name), &import), STATUS_OK);
        assert_int_equal(import.checkpoints, ways[i].count);
    }
    bundle_close(bundle);
}

static void test_damaged_checkpoint_is_not_sent(void **state)
{
    struct bundle *bundle = small_bundle_new(small_path("unsound"), small_job(), NULL, 5);
    char path[FILE_PATH_MAX];

    (void)state;
    assert_int_equal(bundle_checkpoint_path(path, bundle, 5, NULL), STATUS_OK);
    assert_int_equal(truncate(path, 6000), 0);
    assert_int_equal(bundle_export(bundle, small_path("unsound.zst"), BUNDLE_PACK_ALL, NULL),
                     STATUS_BAD_FORMAT);
    assert_false(file_exists(small_path("unsound.zst")));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(bundle_export(bundle, small_path("unsound.zst"), BUNDLE_PACK_ALL, NULL),
                     STATUS_BAD_FORMAT);
    assert_false(file_exists(small_path("unsound.zst")));
    bundle_close(bundle);
}

/* ---- files that are changed ------------------------------------------------ */

/* A small packed file, and the archive in it. */
struct packed {
    struct file_bytes file;
    uint8_t *tar;
    size_t tar_size;
};

static void pack_small(struct packed *packed, const char *name, const struct encryption_key *key)
{
    struct bundle *bundle = small_bundle_new(small_path(name), small_job(), key, 10);
    char file[600];

    (void)snprintf(file, sizeof(file), "%s.zst", small_path(name));
    assert_int_equal(bundle_segment_sign(bundle, 0, (const uint8_t *)"sig", 3, NULL), STATUS_OK);
    assert_int_equal(bundle_export(bundle, file, BUNDLE_PACK_ALL, NULL), STATUS_OK);
    bundle_close(bundle);
    packed->file = load(file);
    packed->tar = malloc(PACK_MAX);

    ZSTD_DCtx *stream = ZSTD_createDCtx();

    packed->tar_size =
        ZSTD_decompressDCtx(stream, packed->tar, PACK_MAX, packed->file.data, packed->file.size);
    assert_false(ZSTD_isError(packed->tar_size));
    ZSTD_freeDCtx(stream);
}

static void packed_release(struct packed *packed)
{
    file_bytes_release(&packed->file);
    free(packed->tar);
}

static enum status import_bytes(const char *name, const uint8_t *bytes, size_t size,
                                uint64_t size_max)
{
    struct bundle_import import = {.size_max = size_max};
    char archive[MEMORY_FILE_PATH_MAX];
    char folder[800];
    size_t before = count_entries(inbox());
    int descriptor = memory_file_open(archive, bytes, size);
    enum status status;

    (void)snprintf(folder, sizeof(folder), "%s/%s", inbox(), name);
    status = bundle_import(folder, archive, &import, NULL);
    (void)close(descriptor);
    assert_int_equal(count_entries(inbox()), before + (status == STATUS_OK));
    return status;
}

/* Packs any tar and imports it. */
static enum status import_tar(const char *name, const uint8_t *tar, size_t tar_size)
{
    size_t room = ZSTD_compressBound(tar_size);
    uint8_t *bytes = malloc(room);
    size_t size = ZSTD_compress(bytes, room, tar, tar_size, 1);
    enum status status = import_bytes(name, bytes, size, SIZE_MAX_OK);

    free(bytes);
    return status;
}

static void test_every_changed_byte_and_every_cut_is_refused(void **state)
{
    struct packed packed;
    size_t step;

    (void)state;
    pack_small(&packed, "changed", NULL);
    step = packed.file.size / test_share(packed.file.size, 600);
    for (size_t at = 0; at < packed.file.size; at += at < 60 ? 1 : step) {
        packed.file.data[at] ^= (uint8_t)(1 << at % 8);
        if (import_bytes("changed", packed.file.data, packed.file.size, SIZE_MAX_OK) == STATUS_OK) {
            /* A few bits of zstd mean nothing: a file with one of them changed imports as
             * before. */
            struct packed same = packed;

            same.tar = malloc(PACK_MAX);
            same.tar_size = ZSTD_decompress(same.tar, PACK_MAX, packed.file.data, packed.file.size);
            assert_int_equal(same.tar_size, packed.tar_size);
            assert_memory_equal(same.tar, packed.tar, packed.tar_size);
            free(same.tar);
            discard("changed");
        }
        packed.file.data[at] ^= (uint8_t)(1 << at % 8);
    }
    for (size_t cut = 0; cut < packed.file.size; cut += step) {
        assert_int_not_equal(import_bytes("changed", packed.file.data, cut, SIZE_MAX_OK),
                             STATUS_OK);
    }
    assert_int_not_equal(
        import_bytes("changed", packed.file.data, packed.file.size - 1, SIZE_MAX_OK), STATUS_OK);
    assert_int_equal(import_bytes("changed", packed.file.data, packed.file.size, SIZE_MAX_OK),
                     STATUS_OK);
    packed_release(&packed);
}

static void test_bytes_and_frames_after_the_end_are_refused(void **state)
{
    struct packed packed;
    uint8_t *longer = malloc(2 * PACK_MAX);
    size_t size;

    (void)state;
    pack_small(&packed, "longer", NULL);
    memcpy(longer, packed.file.data, packed.file.size);
    longer[packed.file.size] = 0;
    size = packed.file.size;
    assert_int_equal(import_bytes("longer", longer, size + 1, SIZE_MAX_OK), STATUS_BAD_FORMAT);
    /* A second frame, and a skippable one, which zstd itself would skip. */
    memcpy(longer + size, packed.file.data, size);
    assert_int_equal(import_bytes("longer", longer, 2 * size, SIZE_MAX_OK), STATUS_BAD_FORMAT);
    memcpy(longer + size, "\x50\x2a\x4d\x18\x00\x00\x00\x00", 8);
    assert_int_equal(import_bytes("longer", longer, size + 8, SIZE_MAX_OK), STATUS_BAD_FORMAT);
    memcpy(longer, packed.tar, packed.tar_size);
    memset(longer + packed.tar_size, 0, 512);
    assert_int_equal(import_tar("longer", longer, packed.tar_size + 512), STATUS_BAD_FORMAT);
    assert_int_equal(import_tar("longer", longer, packed.tar_size - 512), STATUS_BAD_FORMAT);
    assert_int_equal(import_tar("longer", longer, packed.tar_size - 1024), STATUS_BAD_FORMAT);
    assert_int_equal(import_tar("longer", longer, packed.tar_size), STATUS_OK);
    free(longer);
    packed_release(&packed);
}

static void test_more_than_is_allowed_is_not_unpacked(void **state)
{
    struct packed packed;

    (void)state;
    pack_small(&packed, "limit", NULL);
    assert_int_equal(import_bytes("limit", packed.file.data, packed.file.size, packed.tar_size - 1),
                     STATUS_OVER_LIMIT);
    assert_int_equal(import_bytes("limit", packed.file.data, packed.file.size, 1000),
                     STATUS_OVER_LIMIT);
    assert_int_equal(import_bytes("limit", packed.file.data, packed.file.size, packed.tar_size),
                     STATUS_OK);
    packed_release(&packed);
}

/* ---- entries made by hand ------------------------------------------------- */

struct entry {
    size_t at; /* of the header */
    uint64_t size;
    size_t whole; /* with header and padding */
};

static struct entry entry_at(const uint8_t *tar, size_t at)
{
    struct entry entry = {.at = at};

    for (int i = 0; i < 11; i++) {
        entry.size = entry.size * 8 + (uint64_t)(tar[at + 124 + (size_t)i] - '0');
    }
    entry.whole = 512 + (entry.size + 511) / 512 * 512;
    return entry;
}

/* job, journal and two checkpoints; then the end. */
static void find_entries(struct entry entries[5], const uint8_t *tar)
{
    size_t at = 0;

    for (int i = 0; i < 4; i++) {
        entries[i] = entry_at(tar, at);
        at += entries[i].whole;
    }
    entries[4] = (struct entry){.at = at, .whole = 1024};
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

static void test_changed_headers_are_refused(void **state)
{
    static const struct {
        size_t at;
        const char *bytes;
        size_t size;
    } changes[] = {
        {0, "/job\0", 5},
        {0, "../job\0", 7},
        {0, "./job\0", 6},
        {0, "JOB", 3},
        {0, "job\0x", 5},
        {0, "\0", 1},
        {100, "0000755", 7},
        {108, "0000001", 7},
        {116, "0000001", 7},
        {136, "00000000001", 11},
        {156, "\0", 1},
        {156, "1", 1},
        {156, "2", 1},
        {156, "5", 1},
        {156, "6", 1},
        {156, "x", 1},
        {156, "g", 1},
        {156, "L", 1},
        {157, "/etc/passwd", 11},
        {257, "ustar  ", 8},
        {265, "root", 4},
        {297, "root", 4},
        {345, "..", 2},
        {500, "\1", 1},
        {124, "77777777777", 11},
        {124, "\x80\0\0\0\1", 5},
        {124, "\xff\xff\xff\xff", 4},
        {124, "           ", 11},
        {124, "0000000000 ", 11},
    };
    struct packed packed;

    (void)state;
    pack_small(&packed, "headers", NULL);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        uint8_t kept[512];

        memcpy(kept, packed.tar, 512);
        memcpy(packed.tar + changes[i].at, changes[i].bytes, changes[i].size);
        mend_header(packed.tar);
        if (import_tar("headers", packed.tar, packed.tar_size) == STATUS_OK) {
            fail_msg("change %zu is accepted", i);
        }
        memcpy(packed.tar, kept, 512);
    }
    packed_release(&packed);
}

/* Entries by number in another order: -1 ends it. */
static enum status import_order(const struct packed *packed, const int *order)
{
    uint8_t *tar = malloc(2 * PACK_MAX);
    struct entry entries[5];
    size_t size = 0;
    enum status status;

    find_entries(entries, packed->tar);
    for (int i = 0; order[i] >= 0; i++) {
        memcpy(tar + size, packed->tar + entries[order[i]].at, entries[order[i]].whole);
        size += entries[order[i]].whole;
    }
    status = import_tar("order", tar, size);
    free(tar);
    return status;
}

static void test_entries_in_another_order_are_refused(void **state)
{
    static const int orders[][8] = {
        {1, 0, 2, 3, 4, -1},
        {0, 2, 1, 3, 4, -1},
        {0, 1, 3, 2, 4, -1},
        {0, 0, 1, 2, 3, 4, -1},
        {0, 1, 1, 2, 3, 4, -1},
        {0, 1, 2, 2, 3, 4, -1},
        {0, 1, 2, 3, 0, 4, -1},
        {0, 4, -1},
        {4, -1},
        {1, 4, -1},
        {2, 3, 4, -1},
        {0, 1, 2, 3, -1},
        {0, 1, 2, 4, 3, 4, -1},
    };
    static const int good[][8] = {{0, 1, 2, 4, -1}, {0, 1, 3, 4, -1}, {0, 1, 4, -1}};
    struct packed packed;

    (void)state;
    pack_small(&packed, "order of entries", NULL);
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        assert_int_not_equal(import_order(&packed, orders[i]), STATUS_OK);
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(import_order(&packed, good[i]), STATUS_OK);
        discard("order");
    }
    packed_release(&packed);
}

static void test_checkpoints_that_do_not_belong_are_refused(void **state)
{
    static const char *const names[] = {
        "checkpoints/000000000011.safetensors",
        "checkpoints/000000000004.safetensors",
        "checkpoints/000000000000.safetensors",
        "checkpoints/999999999999.safetensors",
        "checkpoints/00000000005.safetensors",
        "checkpoints/+00000000005.safetensors",
        "checkpoints/000000000005.safetensors.part-abcdef",
        "checkpoints/../../../evil",
        "checkpoints/",
        "key.lock",
        "lock",
        "journal.db",
    };
    struct entry entries[5];
    struct packed packed;

    (void)state;
    pack_small(&packed, "foreign", NULL);
    find_entries(entries, packed.tar);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        uint8_t kept[512];
        uint8_t *header = packed.tar + entries[2].at;

        memcpy(kept, header, 512);
        memset(header, 0, 100);
        memcpy(header, names[i], strlen(names[i]));
        mend_header(header);
        if (import_tar("foreign", packed.tar, packed.tar_size) == STATUS_OK) {
            fail_msg("%s is accepted", names[i]);
        }
        memcpy(header, kept, 512);
    }
    packed_release(&packed);
}

/* A terabyte of zeros is a few kilobytes of zstd. */
static void test_bombs_are_refused_before_they_go_off(void **state)
{
    struct entry entries[5];
    struct packed packed;
    uint8_t *header;
    uint8_t kept[512];

    (void)state;
    pack_small(&packed, "bomb", NULL);
    find_entries(entries, packed.tar);
    for (int i = 0; i < 4; i++) {
        header = packed.tar + entries[i].at;
        memcpy(kept, header, 512);
        (void)snprintf((char *)header + 124, 12, "%011o", 077777777); /* 16 MiB */
        mend_header(header);
        assert_int_not_equal(import_tar("bomb", packed.tar, packed.tar_size), STATUS_OK);
        memcpy(header, kept, 512);
    }
    /* A journal that announces more steps than the job has. */
    endian_store_be64(packed.tar + entries[1].at + 512 + 41, UINT64_C(1) << 40);
    assert_int_equal(import_tar("bomb", packed.tar, packed.tar_size), STATUS_BAD_FORMAT);
    packed_release(&packed);
}

static void test_frame_that_wants_much_memory_is_refused(void **state)
{
    struct packed packed;
    uint8_t *bytes = malloc(PACK_MAX);
    ZSTD_CCtx *stream = ZSTD_createCCtx();
    ZSTD_inBuffer in;
    ZSTD_outBuffer out = {bytes, PACK_MAX, 0};

    (void)state;
    pack_small(&packed, "window", NULL);
    in = (ZSTD_inBuffer){packed.tar, packed.tar_size, 0};
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(stream, ZSTD_c_windowLog, 28)));
    while (ZSTD_compressStream2(stream, &out, &in, ZSTD_e_continue) != 0 || in.pos < in.size) {
    }
    assert_int_equal(ZSTD_compressStream2(stream, &out, &in, ZSTD_e_end), 0);
    assert_int_equal(import_bytes("window", bytes, out.pos, SIZE_MAX_OK), STATUS_BAD_FORMAT);
    ZSTD_freeCCtx(stream);
    free(bytes);
    packed_release(&packed);
}

#define STEP_SIZE (DIGEST_SIZE + BUNDLE_STEP_BYTES)

/* ---- journals that say something else ---------------------------------------- */

static void refuse_journal(struct packed *packed)
{
    assert_int_not_equal(import_tar("journal", packed->tar, packed->tar_size), STATUS_OK);
}

/* The hash that ends the journal, made again. */
static void mend_journal(uint8_t *tar, const struct entry *journal)
{
    const size_t size = (size_t)journal->size - DIGEST_SIZE;
    uint8_t *bytes = tar + journal->at + 512;

    sha256((struct digest *)(bytes + size), bytes, size);
}

/* A change by somebody who also makes the right hash. */
static void check_journal_change(struct packed *packed, size_t at, const void *bytes, size_t size)
{
    struct entry entries[5];
    uint8_t kept[64];
    uint8_t *changed;

    find_entries(entries, packed->tar);
    changed = packed->tar + entries[1].at + 512 + at;
    memcpy(kept, changed, size);
    memcpy(changed, bytes, size);
    mend_journal(packed->tar, &entries[1]);
    refuse_journal(packed);
    memcpy(changed, kept, size);
    mend_journal(packed->tar, &entries[1]);
}

/* Also where no root covers it: a loss, a time, the name of a device. */
static void test_a_flipped_bit_of_a_journal_is_refused(void **state)
{
    struct entry entries[5];
    struct packed packed;

    (void)state;
    pack_small(&packed, "flipped", NULL);
    find_entries(entries, packed.tar);
    for (size_t at = 0; at < entries[1].size; at += 7) {
        uint8_t *byte = packed.tar + entries[1].at + 512 + at;

        *byte ^= (uint8_t)(1u << (at % 8));
        refuse_journal(&packed);
        *byte ^= (uint8_t)(1u << (at % 8));
    }
    packed_release(&packed);
}

static void test_false_journals_are_refused(void **state)
{
    static const uint8_t ones[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    static const uint8_t zero[8];
    static const size_t device = PACK_JOURNAL_HEAD;
    size_t steps;
    size_t segments;
    struct packed packed;

    (void)state;
    pack_small(&packed, "journal", NULL);
    steps = device + 2 + strlen("a small test");
    segments = steps + (size_t)10 * STEP_SIZE;
    check_journal_change(&packed, 0, "X", 1);
    check_journal_change(&packed, 7, "\1", 1);
    check_journal_change(&packed, 8, ones, 8);  /* another job */
    check_journal_change(&packed, 40, "\1", 1); /* encrypted, it says */
    check_journal_change(&packed, 40, "\2", 1);
    check_journal_change(&packed, 41, ones, 8); /* steps */
    check_journal_change(&packed, 41, zero, 8);
    check_journal_change(&packed, 48, "\11", 1);
    check_journal_change(&packed, 49, zero, 8); /* diverged at step 0, and went on */
    check_journal_change(&packed, 57, ones, 4); /* devices */
    check_journal_change(&packed, 57, zero, 4);
    check_journal_change(&packed, 61, ones, 8); /* segments */
    check_journal_change(&packed, 68, "\2", 1);
    check_journal_change(&packed, 68, "\0", 1);
    check_journal_change(&packed, device, ones, 2); /* the length of a name */
    check_journal_change(&packed, device + 4, "\n", 1);
    check_journal_change(&packed, steps + (size_t)4 * STEP_SIZE, ones, 1); /* a checkpoint's */
    check_journal_change(&packed, steps + 40, zero, 4); /* an accuracy, of no evaluation */
    check_journal_change(&packed, steps + 44, ones, 1); /* a time above 2^63 */
    check_journal_change(&packed, steps + 68, ones, 8); /* a device that there is not */
    check_journal_change(&packed, steps + 75, "\1", 1);
    check_journal_change(&packed, steps + STEP_SIZE, ones, 1); /* a root of a signed segment */
    check_journal_change(&packed, segments + 7, "\4", 1);      /* a segment that there is not */
    check_journal_change(&packed, segments + 7, "\1", 1);      /* whose root is another */
    check_journal_change(&packed, segments + 8, ones, 1);
    check_journal_change(&packed, segments + 40, zero, 2); /* signatures */
    check_journal_change(&packed, segments + 40, ones, 2);
    check_journal_change(&packed, segments + 41, "\2", 1);
    packed_release(&packed);
}

/* ---- mutants ------------------------------------------------------------ */

#define DEVICE      "a small test"
#define STEPS       10
#define STEPS_AT    (PACK_JOURNAL_HEAD + 2 + sizeof(DEVICE) - 1)
#define SEGMENTS_AT (STEPS_AT + (size_t)STEPS * STEP_SIZE)

/* The body of the job, and the header made to commit to it again: another job, as a forger does. */
static void forge_job(uint8_t *tar, const struct entry *job, uint64_t *seed)
{
    uint8_t *bytes = tar + job->at + 512;
    struct digest digest;

    bytes[JOB_HEADER_SIZE + test_random_below(seed, job->size - JOB_HEADER_SIZE)] ^=
        (uint8_t)(1 << test_random_below(seed, 8));
    sha256(&digest, bytes + JOB_HEADER_SIZE, (size_t)job->size - JOB_HEADER_SIZE);
    memcpy(bytes + 88, digest.bytes, DIGEST_SIZE);
}

/* Parts of a kind change places: roots or rows of steps, or the contents of the checkpoints. */
static void exchange(uint8_t *tar, const struct entry *entries, uint64_t *seed)
{
    uint8_t *steps = tar + entries[1].at + 512 + STEPS_AT;
    uint8_t *left = steps + STEP_SIZE * test_random_below(seed, STEPS);
    uint8_t *right = steps + STEP_SIZE * test_random_below(seed, STEPS);
    size_t size = test_random_below(seed, 2) == 0 ? DIGEST_SIZE : STEP_SIZE;

    if (test_random_below(seed, 3) == 0) {
        left = tar + entries[2].at + 512;
        right = tar + entries[3].at + 512;
        size = (size_t)entries[2].size;
    }
    for (size_t i = 0; i < size; i++) {
        uint8_t kept = left[i];

        left[i] = right[i];
        right[i] = kept;
    }
}

/* entries is where everything was before any change. */
static void mutate(uint8_t *tar, size_t *size, const struct entry *entries, uint64_t *seed)
{
    const struct entry *entry = &entries[test_random_below(seed, 4)];
    size_t content = entry->at + 512;
    size_t at = content + test_random_below(seed, entry->size);

    switch (test_random_below(seed, 9)) {
    case 0:
        tar[at] ^= (uint8_t)(1 << test_random_below(seed, 8));
        break;
    case 1: /* the journal's head */
        tar[entries[1].at + 512 + 40 + test_random_below(seed, 29)] = (uint8_t)test_random(seed);
        break;
    case 2: /* a header, and its sum made right again */
        tar[entry->at + test_random_below(seed, 148)] ^= (uint8_t)(1 << test_random_below(seed, 8));
        mend_header(tar + entry->at);
        break;
    case 3: /* the size of an entry by a few bytes */
        (void)snprintf((char *)tar + entry->at + 124, 12, "%011llo",
                       (unsigned long long)(entry->size + test_random_below(seed, 9) - 4));
        mend_header(tar + entry->at);
        break;
    case 4: /* a run of bytes from elsewhere */
        memmove(tar + at, tar + test_random_below(seed, *size - 100), 64);
        break;
    case 5: /* padding */
        tar[entry->at + entry->whole - 1] ^= 1;
        break;
    case 6:
        forge_job(tar, &entries[0], seed);
        break;
    case 7:
        exchange(tar, entries, seed);
        break;
    default:
        if (*size == entries[4].at + entries[4].whole) {
            memmove(tar + entry->at, tar + entry->at + entry->whole,
                    *size - entry->at - entry->whole);
            *size -= entry->whole;
        }
        break;
    }
}

/*
 * Is this byte of the journal bound by a root? Names of devices, losses, times and signatures are
 * not, nor are roots of steps that neither a checkpoint nor the signed first segment reaches.
 */
static bool is_bound(size_t at, bool has_last_checkpoint)
{
    if (at < STEPS_AT) {
        return at < PACK_JOURNAL_HEAD + 2;
    }
    if (at >= SEGMENTS_AT) {
        return at < SEGMENTS_AT + 8 + DIGEST_SIZE + 2;
    }
    at -= STEPS_AT;
    if (at % STEP_SIZE >= DIGEST_SIZE) {
        return false;
    }
    return at / STEP_SIZE < 5 || (at / STEP_SIZE == STEPS - 1 && has_last_checkpoint);
}

/* An accepted file has the same job, the same checkpoints or none, and the same journal wherever
 * a root binds it. */
static void check_bound(const uint8_t *tar, size_t size, const struct packed *packed,
                        const struct entry *entries)
{
    size_t at = entries[2].at;
    size_t journal = entries[1].at + 512;
    bool last = false;

    assert_memory_equal(tar, packed->tar, journal);
    for (int i = 2; i < 4; i++) {
        if (at + entries[i].whole <= size &&
            memcmp(tar + at, packed->tar + entries[i].at, entries[i].whole) == 0) {
            at += entries[i].whole;
            last = i == 3;
        }
    }
    assert_int_equal(at + entries[4].whole, size);
    for (size_t i = 0; i < entries[1].size; i++) {
        if (tar[journal + i] != packed->tar[journal + i] && is_bound(i, last)) {
            fail_msg("byte %zu of the journal is another", i);
        }
    }
}

/* An accepted file is a whole bundle: packed again it gives the same bytes. */
static void check_accepted(const uint8_t *tar, size_t size)
{
    struct bundle *bundle = NULL;
    char folder[800];
    char file[600];
    struct file_bytes bytes;
    uint8_t *again = malloc(PACK_MAX);

    (void)snprintf(folder, sizeof(folder), "%s/mutant", inbox());
    (void)snprintf(file, sizeof(file), "%s", small_path("mutant.zst"));
    (void)unlink(file);
    assert_int_equal(bundle_open(&bundle, folder, BUNDLE_READ, NULL), STATUS_OK);
    assert_int_equal(bundle_export(bundle, file, BUNDLE_PACK_ALL, NULL), STATUS_OK);
    bundle_close(bundle);
    bytes = load(file);
    assert_int_equal(ZSTD_decompress(again, PACK_MAX, bytes.data, bytes.size), size);
    assert_memory_equal(again, tar, size);
    file_bytes_release(&bytes);
    free(again);
    discard("mutant");
}

static void test_mutants_are_refused_or_say_the_same(void **state)
{
    uint64_t count = test_share(MUTANTS_FULL, MUTANTS);
    struct entry entries[5];
    struct packed packed;
    uint8_t *tar = malloc(2 * PACK_MAX);
    uint64_t seed = 23;

    (void)state;
    pack_small(&packed, "mutants", NULL);
    find_entries(entries, packed.tar);
    assert_int_equal(entries[1].size, SEGMENTS_AT + 8 + DIGEST_SIZE + 2 + 3 + DIGEST_SIZE);
    for (uint64_t i = 0; i < count; i++) {
        size_t size = packed.tar_size;

        memcpy(tar, packed.tar, size);
        for (uint64_t changes = 1 + test_random_below(&seed, 3); changes > 0; changes--) {
            mutate(tar, &size, entries, &seed);
        }
        mend_journal(tar, &entries[1]); /* or nothing but the hash would be tried */
        if (import_tar("mutant", tar, size) == STATUS_OK) {
            check_bound(tar, size, &packed, entries);
            check_accepted(tar, size);
        }
    }
    free(tar);
    packed_release(&packed);
}

static void test_archive_is_an_ordinary_tar(void **state)
{
    char command[1600];

    (void)state;
    /* NOLINTNEXTLINE(cert-env33-c): the commands and paths are the test's own. */
    if (system("tar --version >/dev/null 2>&1 && zstd --version >/dev/null 2>&1") != 0) {
        test_skip("tar or zstd is not installed");
    }

    struct bundle *bundle = small_bundle_new(small_path("ordinary"), small_job(), NULL, 10);

    assert_int_equal(bundle_export(bundle, small_path("ordinary.zst"), BUNDLE_PACK_ALL, NULL),
                     STATUS_OK);
    bundle_close(bundle);
    (void)snprintf(command, sizeof(command),
                   "mkdir %s && tar --zstd -xf %s -C %s && cmp %s/job %s/job && "
                   "cmp %s/checkpoints/000000000010.safetensors "
                   "%s/checkpoints/000000000010.safetensors",
                   small_path("untarred"), small_path("ordinary.zst"), small_path("untarred"),
                   small_path("untarred"), small_path("ordinary"), small_path("untarred"),
                   small_path("ordinary"));
    /* NOLINTNEXTLINE(cert-env33-c): the commands and paths are the test's own. */
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unfinished_run_goes_on_where_it_is_unpacked),
        cmocka_unit_test(test_run_without_a_step_is_packed_too),
        cmocka_unit_test(test_diverged_run_stays_diverged),
        cmocka_unit_test(test_encrypted_bundle_stays_encrypted),
        cmocka_unit_test(test_locked_key_travels_along),
        cmocka_unit_test(test_chosen_checkpoints_are_packed),
        cmocka_unit_test(test_damaged_checkpoint_is_not_sent),
        cmocka_unit_test(test_every_changed_byte_and_every_cut_is_refused),
        cmocka_unit_test(test_bytes_and_frames_after_the_end_are_refused),
        cmocka_unit_test(test_more_than_is_allowed_is_not_unpacked),
        cmocka_unit_test(test_changed_headers_are_refused),
        cmocka_unit_test(test_entries_in_another_order_are_refused),
        cmocka_unit_test(test_checkpoints_that_do_not_belong_are_refused),
        cmocka_unit_test(test_bombs_are_refused_before_they_go_off),
        cmocka_unit_test(test_frame_that_wants_much_memory_is_refused),
        cmocka_unit_test(test_false_journals_are_refused),
        cmocka_unit_test(test_a_flipped_bit_of_a_journal_is_refused),
        cmocka_unit_test(test_mutants_are_refused_or_say_the_same),
        cmocka_unit_test(test_archive_is_an_ordinary_tar),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
