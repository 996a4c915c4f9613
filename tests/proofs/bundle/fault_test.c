/*
 * Goal: whichever allocation or system call fails while a bundle is written, read, packed or
 * unpacked, there is an error with a message, no partial file, no leak and nothing lost; or the
 * work succeeds all the same.
 *
 * Method: the linker wraps the calls of our code; sqlite3 and jansson get failing functions by
 * their own interfaces. A first run of each scene counts its calls. Then each call fails alone, and
 * each with all after it: no memory, EIO, a disk that is full in the middle of a write. After each
 * run the test counts descriptors and allocations, looks at the folder, and does the work again
 * without faults.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "proofs/bundle/bundle_pack.h"
#include "proofs/commit/state_root.h"
#include "proofs/format/dataset.h"
#include "proofs/format/key_file.h"
#include "proofs/job/job_file.h"
#include "proofs/job/tape_file.h"
#include "tests/support/numeric/small_job.h"
#include "tests/support/proofs/npy_writer.h"
#include "tests/support/test.h"

#define FILE_MAX (1u << 20)
#define STEPS    7

/* ---- what fails, and when ------------------------------------------------- */

enum fault {
    FAULT_NONE,
    FAULT_MEMORY,
    FAULT_IO,
    FAULT_FULL, /* of the calls, only those that write */
    FAULT_KINDS,
};

static _Atomic int armed;
static _Atomic long left; /* calls until the one that fails */
static _Atomic bool fired;
static _Atomic long living; /* allocations of our code */
static bool from_then_on;
static int fault_now; /* for messages */
static long call_now;

static bool fails(enum fault kind)
{
    long now;

    if (armed != (int)kind) {
        return false;
    }
    now = atomic_fetch_sub(&left, 1);
    if (now == 1 || (now < 1 && from_then_on)) {
        fired = true;
        errno = kind == FAULT_MEMORY ? ENOMEM : kind == FAULT_FULL ? ENOSPC : EIO;
        return true;
    }
    return false;
}

static void arm(enum fault kind, long calls)
{
    left = calls;
    fired = false;
    armed = kind;
}

/* ---- our code's calls ----------------------------------------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
int __real_open(const char *path, int flags, ...);
ssize_t __real_read(int descriptor, void *bytes, size_t size);
ssize_t __real_pread(int descriptor, void *bytes, size_t size, off_t offset);
ssize_t __real_write(int descriptor, const void *bytes, size_t size);
int __real_close(int descriptor);
int __real_fchmod(int descriptor, mode_t mode);
int __real_fstat(int descriptor, struct stat *info);
int __real_lstat(const char *path, struct stat *info);
int __real_rename(const char *from, const char *to);
int __real_renameat2(int from_folder, const char *from, int to_folder, const char *to,
                     unsigned flags);
int __real_link(const char *from, const char *to);
int __real_mkdir(const char *path, mode_t mode);
char *__real_realpath(const char *path, char *resolved);
int __real_flock(int descriptor, int what);
DIR *__real_opendir(const char *path);
ZSTD_CCtx *__real_ZSTD_createCCtx(void);
ZSTD_DCtx *__real_ZSTD_createDCtx(void);
EVP_CIPHER_CTX *__real_EVP_CIPHER_CTX_new(void);

static void *counted(void *memory)
{
    living += memory != NULL;
    return memory;
}

void *__wrap_malloc(size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *memory, size_t size)
{
    if (fails(FAULT_MEMORY)) {
        return NULL;
    }
    return memory == NULL ? counted(__real_malloc(size)) : __real_realloc(memory, size);
}

void __wrap_free(void *memory)
{
    living -= memory != NULL;
    __real_free(memory);
}

int __wrap_open(const char *path, int flags, ...)
{
    if (fails(FAULT_IO) || ((flags & O_CREAT) != 0 && fails(FAULT_FULL))) {
        return -1;
    }
    return __real_open(path, flags, 0644);
}

ssize_t __wrap_read(int descriptor, void *bytes, size_t size)
{
    return fails(FAULT_IO) ? -1 : __real_read(descriptor, bytes, size);
}

ssize_t __wrap_pread(int descriptor, void *bytes, size_t size, off_t offset)
{
    return fails(FAULT_IO) ? -1 : __real_pread(descriptor, bytes, size, offset);
}

ssize_t __wrap_write(int descriptor, const void *bytes, size_t size)
{
    if (fails(FAULT_IO)) {
        return -1;
    }
    if (fails(FAULT_FULL)) {
        /* Half of the bytes still fit; the next byte does not. */
        left = from_then_on ? left : 1;
        return size > 1 ? __real_write(descriptor, bytes, size / 2) : -1;
    }
    return __real_write(descriptor, bytes, size);
}

/* Nobody cuts the power of a test. */
int __wrap_fsync(int descriptor)
{
    (void)descriptor;
    return fails(FAULT_IO) ? -1 : 0;
}

int __wrap_close(int descriptor)
{
    bool failed = fails(FAULT_IO);

    return __real_close(descriptor) != 0 || failed ? -1 : 0;
}

int __wrap_fchmod(int descriptor, mode_t mode)
{
    return fails(FAULT_IO) ? -1 : __real_fchmod(descriptor, mode);
}

int __wrap_fstat(int descriptor, struct stat *info)
{
    return fails(FAULT_IO) ? -1 : __real_fstat(descriptor, info);
}

int __wrap_lstat(const char *path, struct stat *info)
{
    return fails(FAULT_IO) ? -1 : __real_lstat(path, info);
}

int __wrap_rename(const char *from, const char *to)
{
    return fails(FAULT_IO) ? -1 : __real_rename(from, to);
}

int __wrap_renameat2(int from_folder, const char *from, int to_folder, const char *to,
                     unsigned flags)
{
    return fails(FAULT_IO) ? -1 : __real_renameat2(from_folder, from, to_folder, to, flags);
}

int __wrap_link(const char *from, const char *to)
{
    return fails(FAULT_IO) ? -1 : __real_link(from, to);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    return fails(FAULT_IO) || fails(FAULT_FULL) ? -1 : __real_mkdir(path, mode);
}

char *__wrap_realpath(const char *path, char *resolved)
{
    return fails(FAULT_IO) ? NULL : __real_realpath(path, resolved);
}

/* What the C library's own checks make of it. */
char *__wrap___realpath_chk(const char *path, char *resolved, size_t size)
{
    (void)size;
    return __wrap_realpath(path, resolved);
}

int __wrap_flock(int descriptor, int what)
{
    return fails(FAULT_IO) ? -1 : __real_flock(descriptor, what);
}

DIR *__wrap_opendir(const char *path)
{
    return fails(FAULT_IO) ? NULL : __real_opendir(path);
}

ZSTD_CCtx *__wrap_ZSTD_createCCtx(void)
{
    return fails(FAULT_MEMORY) ? NULL : __real_ZSTD_createCCtx();
}

ZSTD_DCtx *__wrap_ZSTD_createDCtx(void)
{
    return fails(FAULT_MEMORY) ? NULL : __real_ZSTD_createDCtx();
}

EVP_CIPHER_CTX *__wrap_EVP_CIPHER_CTX_new(void)
{
    return fails(FAULT_MEMORY) ? NULL : __real_EVP_CIPHER_CTX_new();
}

/* ---- sqlite3's calls ------------------------------------------------------- */

static sqlite3_mem_methods memory_of_sqlite;
static ssize_t (*pread_of_sqlite)(int, void *, size_t, off64_t);
static ssize_t (*pwrite_of_sqlite)(int, const void *, size_t, off64_t);
static int (*open_of_sqlite)(const char *, int, int);
static int (*truncate_of_sqlite)(int, off_t);

static void *sqlite_malloc(int size)
{
    return fails(FAULT_MEMORY) ? NULL : memory_of_sqlite.xMalloc(size);
}

static void *sqlite_realloc(void *memory, int size)
{
    return fails(FAULT_MEMORY) ? NULL : memory_of_sqlite.xRealloc(memory, size);
}

static int sqlite_open(const char *path, int flags, int mode)
{
    return fails(FAULT_IO) ? -1 : open_of_sqlite(path, flags, mode);
}

static ssize_t sqlite_pread(int descriptor, void *bytes, size_t size, off64_t offset)
{
    return fails(FAULT_IO) ? -1 : pread_of_sqlite(descriptor, bytes, size, offset);
}

static ssize_t sqlite_pwrite(int descriptor, const void *bytes, size_t size, off64_t offset)
{
    if (fails(FAULT_IO)) {
        return -1;
    }
    if (fails(FAULT_FULL)) {
        left = from_then_on ? left : 1;
        return size > 1 ? pwrite_of_sqlite(descriptor, bytes, size / 2, offset) : -1;
    }
    return pwrite_of_sqlite(descriptor, bytes, size, offset);
}

static int sqlite_truncate(int descriptor, off_t size)
{
    return fails(FAULT_IO) ? -1 : truncate_of_sqlite(descriptor, size);
}

static void set_system_call(const char *name, sqlite3_syscall_ptr call, void *before,
                            size_t before_size)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    sqlite3_syscall_ptr old = vfs->xGetSystemCall(vfs, name);

    assert_true(old != NULL);
    memcpy(before, &old, before_size);
    assert_int_equal(vfs->xSetSystemCall(vfs, name, call), SQLITE_OK);
}

static int intercept(void **state)
{
    sqlite3_mem_methods methods;

    (void)state;
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory_of_sqlite), SQLITE_OK);
    methods = memory_of_sqlite;
    methods.xMalloc = sqlite_malloc;
    methods.xRealloc = sqlite_realloc;
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &methods), SQLITE_OK);
    assert_int_equal(sqlite3_initialize(), SQLITE_OK);
    set_system_call("open", (sqlite3_syscall_ptr)sqlite_open, &open_of_sqlite,
                    sizeof(open_of_sqlite));
    set_system_call("pread64", (sqlite3_syscall_ptr)sqlite_pread, &pread_of_sqlite,
                    sizeof(pread_of_sqlite));
    set_system_call("pwrite64", (sqlite3_syscall_ptr)sqlite_pwrite, &pwrite_of_sqlite,
                    sizeof(pwrite_of_sqlite));
    set_system_call("ftruncate", (sqlite3_syscall_ptr)sqlite_truncate, &truncate_of_sqlite,
                    sizeof(truncate_of_sqlite));
    json_set_alloc_funcs(malloc, free);
    return 0;
}

/* ---- the stage -------------------------------------------------------------- */

static const struct encryption_key the_key = {{1, 2, 3}};
static const struct encryption_key *key; /* of the scene: NULL or the_key */
static struct buffer job_bytes;
static struct digest roots[STEPS]; /* after each step */
static struct run machine_at_3;
static struct run machine_at_7;
static struct run machine_to_fill;

static const char *stage(const char *name)
{
    static char paths[8][600];
    static int next;
    char *path = paths[next++ % 8];

    (void)snprintf(path, sizeof(paths[0]), "%s/stage%s%s", test_temp_dir(), *name ? "/" : "", name);
    return path;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void clear_stage(void)
{
    (void)nftw(stage(""), remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    assert_int_equal(mkdir(stage(""), 0755), 0);
}

static int count_entries(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    int count = 0;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return count;
}

/* No partial file in this folder. */
static void check_no_parts(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strstr(entry->d_name, ".part-") != NULL || strstr(entry->d_name, ".import-") != NULL) {
            fail_msg("%s is left in %s", entry->d_name, path);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

static void run_to(struct run *run, const struct job *job, int steps)
{
    small_run_open(run, job, isa_best(), 1, false);
    small_run_begin(run);
    for (int i = 0; i < steps; i++) {
        small_run_step(run);
        assert_int_equal(state_root_of(&roots[i], run->machine, NULL), STATUS_OK);
    }
}

static struct job *make_job(struct error *error)
{
    struct job *job = NULL;
    enum status status = job_parse(&job, job_bytes.data, job_bytes.size, error);

    return status == STATUS_OK ? job : NULL;
}

static struct bundle_step row(uint64_t step)
{
    return (struct bundle_step){.step = step, .root = roots[step], .loss_bits = (uint32_t)step};
}

/* This must work when nothing fails. */
static void insist(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("after fault %d at call %ld: %s", fault_now, call_now, error->text);
    }
}

/* No matter what it went through, the bundle has its own `steps` steps and no others. */
static void check_bundle(const char *path, uint64_t steps_least, uint64_t checkpoint)
{
    struct bundle *bundle = NULL;
    uint64_t count = 0;
    uint64_t at = 0;
    struct error error;
    enum status status;

    error_init(&error);
    insist(bundle_open(&bundle, path, BUNDLE_WRITE, &error), &error);
    if (bundle_is_encrypted(bundle)) {
        insist(bundle_unlock(bundle, &the_key, &error), &error);
    }
    insist(bundle_step_count(&count, bundle, &error), &error);
    assert_in_range(count, steps_least, STEPS);
    for (uint64_t i = 0; i < count; i++) {
        struct bundle_step entry;

        insist(bundle_step_read(&entry, bundle, i, &error), &error);
        assert_true(digest_equal(&entry.root, &roots[i]));
        assert_int_equal(entry.loss_bits, i);
    }
    while ((status = bundle_checkpoint_find(&at, bundle, at, NULL)) == STATUS_OK) {
        insist(bundle_checkpoint_check(bundle, at, &error), &error);
        checkpoint = at == checkpoint ? 0 : checkpoint;
        at++;
    }
    assert_int_equal(status, STATUS_NOT_FOUND);
    assert_int_equal(checkpoint, 0); /* the wanted one was among them */
    /* The run continues. */
    for (uint64_t i = count; i < STEPS; i++) {
        struct bundle_step entry = row(i);

        if (i == count) {
            insist(bundle_set_device(bundle, "after the fault", &error), &error);
        }
        insist(bundle_record(bundle, &entry, &error), &error);
    }
    insist(bundle_checkpoint_write(bundle, machine_at_7.machine, STEPS, &error), &error);
    bundle_close(bundle);
    check_no_parts(path);
}

/* ---- scenes ------------------------------------------------------------------ */

struct scene {
    const char *name;
    void (*prepare)(void);
    enum status (*play)(struct error *error);
    void (*check)(bool done); /* done: play returned STATUS_OK */
};

static enum status record(struct bundle *bundle, uint64_t from, uint64_t end, struct error *error)
{
    TRY(bundle_set_device(bundle, "a fault", error));
    for (uint64_t i = from; i < end; i++) {
        struct bundle_step entry = row(i);

        TRY(bundle_record(bundle, &entry, error));
    }
    return bundle_flush(bundle, error);
}

static enum status play_new(struct error *error)
{
    struct bundle *bundle = NULL;
    struct job *job = make_job(error);
    uint8_t lock[ENCRYPTION_LOCK_SIZE] = {0};
    enum status status;

    if (job == NULL) {
        return error->status;
    }
    TRY_OUT(
        bundle_create_encrypted(&bundle, stage("run"), job, key, key == NULL ? NULL : lock, error));
    TRY_OUT(record(bundle, 0, 3, error));
    TRY_OUT(bundle_checkpoint_write(bundle, machine_at_3.machine, 3, error));
    TRY_OUT(bundle_set_note(bundle, "data.0", "somewhere", error));
out:
    bundle_close(bundle);
    return status;
}

static void check_new(bool done)
{
    struct bundle *bundle = NULL;

    check_no_parts(stage("run"));
    check_no_parts(stage("run/checkpoints"));
    if (!file_exists(stage("run/job"))) {
        assert_false(done);
        assert_int_equal(
            bundle_create_encrypted(&bundle, stage("run"), make_job(NULL), key, NULL, NULL),
            STATUS_OK);
        bundle_close(bundle);
    }
    check_bundle(stage("run"), done ? 3 : 0, done ? 3 : 0);
}

/* Three steps and their checkpoint. */
static void prepare_run(void)
{
    struct error error;

    error_init(&error);
    assert_int_equal(play_new(&error), STATUS_OK);
}

static enum status open_unlocked(struct bundle **bundle, enum bundle_mode mode, struct error *error)
{
    enum status status = bundle_open(bundle, stage("run"), mode, error);

    return status == STATUS_OK && key != NULL ? bundle_unlock(*bundle, key, error) : status;
}

static enum status play_resume(struct error *error)
{
    struct bundle *bundle = NULL;
    uint64_t step = 0;
    enum status status;

    TRY_OUT(open_unlocked(&bundle, BUNDLE_WRITE, error));
    TRY_OUT(bundle_restore(&step, bundle, machine_to_fill.machine, 3, error));
    TRY_OUT(record(bundle, 3, STEPS, error));
    TRY_OUT(bundle_segment_sign(bundle, 0, (const uint8_t *)"signed", 6, error));
    TRY_OUT(bundle_checkpoint_write(bundle, machine_at_7.machine, STEPS, error));
    TRY_OUT(bundle_checkpoint_prune(bundle, 1, 0, error));
out:
    bundle_close(bundle);
    return status;
}

static void check_resume(bool done)
{
    check_no_parts(stage("run"));
    check_no_parts(stage("run/checkpoints"));
    check_bundle(stage("run"), done ? STEPS : 3, done ? STEPS : 0);
}

static enum status play_read(struct error *error)
{
    struct bundle *bundle = NULL;
    struct bundle_step entry;
    char text[FILE_PATH_MAX];
    uint64_t count = 0;
    uint64_t at = 0;
    enum status status;

    TRY_OUT(open_unlocked(&bundle, BUNDLE_READ, error));
    TRY_OUT(bundle_step_count(&count, bundle, error));
    for (uint64_t i = 0; i < count; i++) {
        TRY_OUT(bundle_step_read(&entry, bundle, i, error));
        assert_true(digest_equal(&entry.root, &roots[i]));
    }
    assert_int_equal(count, 3);
    TRY_OUT(bundle_note(text, bundle, "data.0", error));
    assert_string_equal(text, "somewhere");
    TRY_OUT(bundle_checkpoint_find(&at, bundle, 0, error));
    assert_int_equal(at, 3);
    TRY_OUT(bundle_checkpoint_check(bundle, 3, error));
out:
    bundle_close(bundle);
    return status;
}

static void check_read(bool done)
{
    (void)done;
    check_bundle(stage("run"), 3, 3);
}

static enum status play_export(struct error *error)
{
    struct bundle *bundle = NULL;
    enum status status;

    TRY_OUT(open_unlocked(&bundle, BUNDLE_READ, error));
    TRY_OUT(bundle_export(bundle, stage("run.tar.zst"), BUNDLE_PACK_ALL, error));
out:
    bundle_close(bundle);
    return status;
}

/* The file appears only when it is whole. */
static void check_export(bool done)
{
    struct bundle_import import = {.size_max = FILE_MAX, .key = key};
    struct error error;

    error_init(&error);
    check_no_parts(stage(""));
    assert_true(!done || file_exists(stage("run.tar.zst")));
    if (!file_exists(stage("run.tar.zst"))) {
        assert_int_equal(play_export(&error), STATUS_OK);
    }
    assert_int_equal(bundle_import(stage("again"), stage("run.tar.zst"), &import, NULL), STATUS_OK);
    check_bundle(stage("again"), 3, 3);
    check_bundle(stage("run"), 3, 3);
}

static void prepare_import(void)
{
    struct error error;

    error_init(&error);
    prepare_run();
    assert_int_equal(play_export(&error), STATUS_OK);
}

static enum status play_import(struct error *error)
{
    struct bundle_import import = {.size_max = FILE_MAX, .key = key};

    return bundle_import(stage("again"), stage("run.tar.zst"), &import, error);
}

static void check_import(bool done)
{
    struct error error;

    error_init(&error);
    check_no_parts(stage(""));
    assert_true(!done || file_exists(stage("again/job")));
    if (!file_exists(stage("again"))) {
        assert_int_equal(count_entries(stage("")), 2);
        assert_int_equal(play_import(&error), STATUS_OK);
    }
    check_bundle(stage("again"), 3, 3);
}

/* ---- files by themselves --------------------------------------------------------- */

static enum status play_writing(struct error *error)
{
    static const float numbers[] = {1.0f, 2.0f, 3.0f};
    struct npy npy = {.element = ELEMENT_F32, .rank = 2, .dims = {1, 3}};
    struct job *job = make_job(error);
    enum status status;

    if (job == NULL) {
        return error->status;
    }
    TRY_OUT(job_write(job, stage("a.job"), error));
    TRY_OUT(tape_file_write(stage("a.tape"), job->tape, error));
    TRY_OUT(tape_file_write_constants(stage("a.constants"), job->tape, job->constants, error));
    TRY_OUT(npy_write(stage("a.npy"), error, &npy, numbers));
    TRY_OUT(key_file_write(stage("a.key"), &the_key, error));
out:
    job_free(job);
    return status;
}

static enum status play_reading(struct error *error)
{
    struct job *job = NULL;
    struct tape *tape = NULL;
    struct encryption_key read;
    struct dataset dataset = {0};
    void **constants = NULL;
    uint32_t count = 0;
    enum status status;

    TRY_OUT(job_read(&job, stage("a.job"), error));
    TRY_OUT(tape_file_read(&tape, stage("a.tape"), error));
    TRY_OUT(tape_file_constants(&constants, &count, tape, stage("a.constants"), error));
    tape_file_free_constants(constants, count);
    TRY_OUT(dataset_open_samples(&dataset, error, stage("a.npy")));
    dataset_close(&dataset);
    TRY_OUT(key_file_read(&read, stage("a.key"), error));
    assert_memory_equal(&read, &the_key, sizeof(read));
out:
    job_free(job);
    tape_free(tape);
    return status;
}

static void check_writing(bool done)
{
    static const char *const names[] = {"a.job", "a.tape", "a.constants", "a.npy", "a.key"};
    struct error error;

    error_init(&error);
    check_no_parts(stage(""));
    /* The files that are there are whole: the missing ones are written again, over none. */
    for (size_t i = 0; i < 5; i++) {
        assert_true(!done || file_exists(stage(names[i])));
    }
    if (!done) {
        char command[900];

        (void)snprintf(command, sizeof(command), "mkdir '%s' && mv '%s'/a.* '%s' 2>/dev/null; true",
                       stage("old"), stage(""), stage("old"));
        /* NOLINTNEXTLINE(cert-env33-c): the commands and paths are the test's own. */
        assert_int_equal(system(command), 0);
        assert_int_equal(play_writing(&error), STATUS_OK);
        (void)snprintf(command, sizeof(command),
                       "cd '%s' && for f in old/*; do [ ! -e \"$f\" ] || cmp \"$f\" "
                       "\"${f#old/}\" || exit 1; done",
                       stage(""));
        /* NOLINTNEXTLINE(cert-env33-c): the commands and paths are the test's own. */
        assert_int_equal(system(command), 0);
    }
    assert_int_equal(play_reading(&error), STATUS_OK);
}

static void prepare_reading(void)
{
    struct error error;

    error_init(&error);
    assert_int_equal(play_writing(&error), STATUS_OK);
}

static void check_reading(bool done)
{
    struct error error;

    (void)done;
    error_init(&error);
    assert_int_equal(play_reading(&error), STATUS_OK);
}

/* ---- the play ---------------------------------------------------------------------- */

/* Plays with the given call failing; false: there are not so many calls. */
static bool play_with(const struct scene *scene, enum fault kind, long call)
{
    struct error error;
    enum status status;
    long living_before;
    int open_before;

    error_init(&error);
    fault_now = (int)kind;
    call_now = call;
    clear_stage();
    if (scene->prepare != NULL) {
        scene->prepare();
    }
    living_before = living;
    open_before = count_entries("/proc/self/fd");
    arm(kind, call);
    status = scene->play(&error);
    armed = FAULT_NONE;
    if (status != STATUS_OK && (error.status != status || error.text[0] == '\0')) {
        fail_msg("%s, fault %d at call %ld: no sentence", scene->name, kind, call);
    }
    if (living != living_before || count_entries("/proc/self/fd") != open_before) {
        fail_msg("%s, fault %d at call %ld: %ld allocations and %d descriptors are left (%s)",
                 scene->name, kind, call, living - living_before,
                 count_entries("/proc/self/fd") - open_before, error.text);
    }
    if (!fired && status != STATUS_OK) {
        fail_msg("%s without a fault: %s", scene->name, error.text);
    }
    scene->check(status == STATUS_OK);
    return fired;
}

static void play(const struct scene *scene)
{
    for (int kind = FAULT_MEMORY; kind < FAULT_KINDS; kind++) {
        long calls = 0;

        for (int way = 0; way < 2; way++) {
            long call = 1;

            from_then_on = way == 1;
            /* All of the first calls, then a share of the others, unless there is time. */
            while (play_with(scene, (enum fault)kind, call)) {
                calls++;
                call += test_soak_minutes() > 0 || call < 20 ? 1 : 1 + call / 8;
            }
        }
        print_message("%s, kind %d: %ld faults\n", scene->name, kind, calls);
        assert_true(calls > 0 || kind == FAULT_FULL);
    }
}

static void test_new_bundle_survives_every_fault(void **state)
{
    const struct scene scene = {"new", NULL, play_new, check_new};

    (void)state;
    key = NULL;
    play(&scene);
}

static void test_new_encrypted_bundle_survives_every_fault(void **state)
{
    const struct scene scene = {"new, encrypted", NULL, play_new, check_new};

    (void)state;
    key = &the_key;
    play(&scene);
}

static void test_resumed_bundle_survives_every_fault(void **state)
{
    const struct scene scene = {"resume", prepare_run, play_resume, check_resume};

    (void)state;
    key = NULL;
    play(&scene);
}

static void test_reader_survives_every_fault(void **state)
{
    const struct scene scene = {"read", prepare_run, play_read, check_read};

    (void)state;
    key = &the_key;
    play(&scene);
}

static void test_export_survives_every_fault(void **state)
{
    const struct scene scene = {"export", prepare_run, play_export, check_export};

    (void)state;
    key = NULL;
    play(&scene);
}

static void test_import_survives_every_fault(void **state)
{
    const struct scene scene = {"import", prepare_import, play_import, check_import};

    (void)state;
    key = &the_key;
    play(&scene);
}

static void test_files_survive_every_fault(void **state)
{
    const struct scene writing = {"writing", NULL, play_writing, check_writing};
    const struct scene reading = {"reading", prepare_reading, play_reading, check_reading};

    (void)state;
    play(&writing);
    play(&reading);
}

static int set_up(void **state)
{
    struct small_job_options options;
    struct job *job;

    if (intercept(state) != 0) {
        return -1;
    }
    small_job_defaults(&options);
    job = small_job_new(&options);
    buffer_init(&job_bytes, JOB_FILE_SIZE_MAX);
    assert_int_equal(job_encode(&job_bytes, job, NULL), STATUS_OK);
    run_to(&machine_at_3, job, 3);
    run_to(&machine_at_7, job, STEPS);
    run_to(&machine_to_fill, job, 0);
    *state = job;
    return 0;
}

static int tear_down(void **state)
{
    run_close(&machine_at_3);
    run_close(&machine_at_7);
    run_close(&machine_to_fill);
    buffer_release(&job_bytes);
    job_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_bundle_survives_every_fault),
        cmocka_unit_test(test_new_encrypted_bundle_survives_every_fault),
        cmocka_unit_test(test_resumed_bundle_survives_every_fault),
        cmocka_unit_test(test_reader_survives_every_fault),
        cmocka_unit_test(test_export_survives_every_fault),
        cmocka_unit_test(test_import_survives_every_fault),
        cmocka_unit_test(test_files_survive_every_fault),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
