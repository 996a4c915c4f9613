/* proofs.c - see proofs.h. */
#include "engine/cuda/selftest/proofs.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/steady.h"
#include "engine/cuda/device/loader.h"
#include "engine/cuda/selftest/selftest.h"

#define GRACE_S   5.0
#define LOOK_NS   1000000
#define REPEATS   4 /* of a proof */
#define CHILDREN  2 /* at once */
#define KEY_MAX   (DEVICE_NAME_MAX + 128)
#define LINE_MAX_ (KEY_MAX + VARIANT_COUNT + 3)
#define LINES_MAX 32 /* devices, drivers and plugins that are remembered */

static const char letters[PROOF_COUNT] = {'-', 's', 'w', 'l', 'd', 'h'};

uint32_t proofs_barred(const struct proofs *proofs)
{
    uint32_t barred = 0;

    for (uint32_t variant = 0; variant < VARIANT_COUNT; variant++) {
        barred |= proofs->found[variant] > PROOF_SOUND ? 1u << variant : 0;
    }
    return barred;
}

const char *proofs_words(enum proof proof)
{
    static const char *const words[PROOF_COUNT] = {"not tried",
                                                   "the bits of the rules",
                                                   "other bits than the rules",
                                                   "it trapped or failed",
                                                   "its process ended",
                                                   "it did not end"};

    return words[proof];
}

/* ---- children ---------------------------------------------------------------- */

/* What a child leaves behind, in memory that both have. */
struct child_report {
    struct device_facts facts;
    uint32_t opened;
    uint32_t proof[CHILDREN];
};

struct trial {
    const struct device_calls *calls;
    int ordinal;
    enum kernel_variant variant; /* VARIANT_COUNT: only the facts are wanted */
    uint32_t barred;
    struct child_report *report;
};

static enum proof prove_variant(const struct trial *trial, struct device *device)
{
    /* Once is not enough: threads that race may give the right bits most times. */
    for (uint32_t i = 0; i < REPEATS; i++) {
        bool right = false;

        if (selftest_try(&right, trial->calls, device, &trial->report->facts, trial->variant,
                         trial->barred) != DEVICE_OK) {
            return PROOF_LOST;
        }
        if (!right) {
            return PROOF_WRONG;
        }
    }
    return PROOF_SOUND;
}

static _Noreturn void be_child(const struct trial *trial, uint32_t child)
{
    struct child_report *report = trial->report;
    struct device *device = NULL;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (trial->calls->open(&device, &report->facts, trial->ordinal) != DEVICE_OK) {
        _exit(0);
    }
    /* What a child finds it writes into shared memory as it goes, so that a crash leaves what was
     * found. */
    report->opened = 1;
    if (trial->variant != VARIANT_COUNT) {
        report->proof[child] = prove_variant(trial, device);
    }
    trial->calls->close(device);
    _exit(0);
}

static bool ends_by(pid_t child, int *status, double end)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};
    pid_t ended;

    while ((ended = waitpid(child, status, WNOHANG)) == 0 && steady_seconds() < end) {
        (void)nanosleep(&look, NULL);
    }
    return ended == child;
}

/* How the child ended; one that a driver holds is left behind. */
static enum proof await_child(pid_t child, const uint32_t *reported, double end)
{
    int status = 0;

    if (!ends_by(child, &status, end)) {
        (void)kill(child, SIGKILL);
        (void)ends_by(child, &status, steady_seconds() + GRACE_S);
        return PROOF_HUNG;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? (enum proof) * reported : PROOF_DIED;
}

/* The worst that `count` children found; PROOF_NONE where one did not start. */
static enum proof run_children(const struct trial *trial, uint32_t count, double limit_s)
{
    const double end = steady_seconds() + limit_s;
    enum proof worst = PROOF_NONE;
    pid_t children[CHILDREN];

    memset(trial->report->proof, 0, sizeof(trial->report->proof));
    for (uint32_t i = 0; i < count; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            be_child(trial, i);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const enum proof found =
            children[i] < 0 ? PROOF_NONE : await_child(children[i], &trial->report->proof[i], end);

        worst = found > worst ? found : worst;
    }
    return worst;
}

/* ---- memory -------------------------------------------------------------------- */

/* A device, its driver and the plugin's file: what a finding holds for. */
static void key_of(char key[KEY_MAX], const struct device_calls *calls,
                   const struct device_facts *facts)
{
    char driver[LOADER_DRIVER_MAX];
    struct stat file = {.st_size = 0};
    Dl_info info = {.dli_fname = NULL};
    void *place;

    loader_driver(driver);
    /* POSIX promises that a function's address fits a void pointer; ISO C has no cast for it. */
    memcpy(&place, &calls->open, sizeof(place));
    if (dladdr(place, &info) == 0 || info.dli_fname == NULL || stat(info.dli_fname, &file) != 0) {
        file.st_size = 0;
    }
    (void)snprintf(key, KEY_MAX, "%s %d, driver %s %d, plugin %lld %lld", facts->name,
                   facts->capability, driver, facts->driver, (long long)file.st_size,
                   (long long)file.st_mtim.tv_sec);
    for (char *at = key; *at != '\0'; at++) {
        *at = *at >= ' ' && *at <= '~' ? *at : '?';
    }
}

/* Where it is remembered; false: nowhere. */
static bool path_of(char path[FILE_PATH_MAX])
{
    const char *named = getenv("LOCKSTEP_CUDA_PROOFS");
    struct error ignored;

    error_init(&ignored);
    if (named != NULL && named[0] != '\0') {
        return (size_t)snprintf(path, FILE_PATH_MAX, "%s", named) < FILE_PATH_MAX;
    }
    return file_place(path, FILE_PATH_MAX, &ignored, FILE_PLACE_STATE, "cuda-proofs") == STATUS_OK;
}

/* The line "KEY<tab>LETTERS" of the key, up to its letters; NULL: none. */
static const char *find_line(const char *text, const char *key)
{
    const size_t length = strlen(key);

    for (const char *line = text; line != NULL && *line != '\0';
         line = strchr(line, '\n'), line = line == NULL ? NULL : line + 1) {
        if (strncmp(line, key, length) == 0 && line[length] == '\t') {
            return line + length + 1;
        }
    }
    return NULL;
}

static void read_line(struct proofs *proofs, const char *text, const char *key)
{
    const char *found = find_line(text, key);

    for (uint32_t variant = 0; found != NULL && variant < VARIANT_COUNT; variant++) {
        const char *letter = memchr(letters, found[variant], sizeof(letters));

        if (letter == NULL) {
            return;
        }
        proofs->found[variant] = (uint8_t)(letter - letters);
    }
}

/* This finding first, then the earlier ones of other keys, as many as are kept. */
static void remember_finding(const char *path, const char *text, const char *key,
                             const struct proofs *proofs)
{
    char all[LINES_MAX * LINE_MAX_ + 1];
    char folder[FILE_PATH_MAX];
    struct error ignored;
    size_t used = (size_t)snprintf(all, sizeof(all), "%s\t", key);
    uint32_t lines = 1;

    error_init(&ignored);
    for (uint32_t variant = 0; variant < VARIANT_COUNT; variant++) {
        all[used++] = letters[proofs->found[variant]];
    }
    all[used++] = '\n';
    for (const char *line = text; *line != '\0' && lines < LINES_MAX; lines++) {
        const size_t size = strcspn(line, "\n");

        if (size < LINE_MAX_ && find_line(line, key) != line + strlen(key) + 1) {
            memcpy(all + used, line, size);
            used += size;
            all[used++] = '\n';
        }
        line += size + (line[size] == '\n');
    }
    (void)snprintf(folder, sizeof(folder), "%s", path);
    if (strrchr(folder, '/') != NULL) {
        *strrchr(folder, '/') = '\0';
        if (file_make_folder(folder, &ignored, 0700) != STATUS_OK) {
            return; /* then it is found again each time */
        }
    }
    if (file_write(path, &ignored, all, used, 0600) != STATUS_OK) {
        return;
    }
}

static bool is_off(const struct device_calls *calls)
{
    const char *named = getenv("LOCKSTEP_CUDA_PROOFS");

    return calls->can_trap == 0 || (named != NULL && strcmp(named, "off") == 0);
}

/* What the file has, for the caller to release; nothing where there is none. */
static void read_all(struct file_bytes *bytes, char path[FILE_PATH_MAX])
{
    struct error ignored;

    error_init(&ignored);
    if (!path_of(path)) {
        path[0] = '\0';
    } else if (file_read(bytes, &ignored, path, LINES_MAX * LINE_MAX_) != STATUS_OK) {
        bytes->data = NULL;
    }
}

static const char *text_of(const struct file_bytes *bytes)
{
    return bytes->data == NULL ? "" : (const char *)bytes->data;
}

void proofs_recall(struct proofs *proofs, const struct device_calls *calls,
                   const struct device_facts *facts)
{
    struct file_bytes bytes = {.data = NULL};
    char path[FILE_PATH_MAX];
    char key[KEY_MAX];

    if (is_off(calls) || proofs->found[VARIANT_PLAIN] != PROOF_NONE) {
        return;
    }
    key_of(key, calls, facts);
    read_all(&bytes, path);
    read_line(proofs, text_of(&bytes), key);
    file_bytes_release(&bytes);
}

/* ---- all ------------------------------------------------------------------------- */

static void find_with(struct proofs *proofs, struct trial *trial, uint32_t wanted, double limit_s)
{
    struct file_bytes bytes = {.data = NULL};
    char path[FILE_PATH_MAX];
    char key[KEY_MAX];
    bool changed = false;

    trial->variant = VARIANT_COUNT;
    (void)run_children(trial, 1, limit_s);
    if (trial->report->opened == 0) {
        return;
    }
    key_of(key, trial->calls, &trial->report->facts);
    read_all(&bytes, path);
    read_line(proofs, text_of(&bytes), key);
    for (uint32_t variant = 0; variant < VARIANT_COUNT; variant++) {
        if ((wanted & selftest_offered(&trial->report->facts)) >> variant & 1 &&
            proofs->found[variant] == PROOF_NONE) {
            trial->variant = (enum kernel_variant)variant;
            trial->barred = ~wanted | proofs_barred(proofs);
            proofs->found[variant] = (uint8_t)run_children(trial, CHILDREN, limit_s);
            changed = true;
        }
    }
    if (changed && path[0] != '\0') {
        remember_finding(path, text_of(&bytes), key, proofs);
    }
    file_bytes_release(&bytes);
}

void proofs_find(struct proofs *proofs, const struct device_calls *calls, int ordinal,
                 uint32_t wanted, double limit_s)
{
    struct trial trial = {.calls = calls, .ordinal = ordinal};

    *proofs = (struct proofs){.found = {0}};
    if (is_off(calls)) {
        return;
    }
    trial.report = mmap(NULL, sizeof(*trial.report), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (trial.report != MAP_FAILED) {
        find_with(proofs, &trial, wanted, limit_s);
        (void)munmap(trial.report, sizeof(*trial.report));
    }
}
