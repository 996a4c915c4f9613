/* requirements.c - see requirements.h. */
#include "prover/train/requirements.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/io/file.h"
#include "base/io/progress.h"
#include "base/steady.h"
#include "engine/tape/builder.h"
#include "proofs/job/job_facts.h"

enum {
    MEASURE_SIDE = 512, /* rows, columns and length of the product that is measured */
};
#define MEASURE_SECONDS 0.2
#define MIB             1048576.0

/* ---- the rate ------------------------------------------------------------------- */

static enum status make_product(struct tape **tape, struct error *error)
{
    const uint64_t dims[2] = {MEASURE_SIDE, MEASURE_SIDE};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    enum status status;

    if (builder == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to measure this machine");
    }
    (void)build_step(builder);
    uint32_t a = build_tensor(builder, "a", DTYPE_F32, ROLE_STATE, 2, dims);
    uint32_t b = build_tensor(builder, "b", DTYPE_F32, ROLE_STATE, 2, dims);
    build_output(builder, "product", build_linear(builder, a, b));
    status = builder_finish(tape, builder, error);
    builder_free(builder);
    return status;
}

static enum status run_product(double *rate, struct machine *machine, struct error *error)
{
    const double work = (double)MEASURE_SIDE * MEASURE_SIDE * MEASURE_SIDE / 1e9;
    double passed = 0.0;
    uint32_t count = 0;
    double start;

    start = steady_seconds();
    while (passed < MEASURE_SECONDS) {
        TRY(machine->backend->step(machine, NULL, error));
        passed = steady_seconds() - start;
        count++;
    }
    *rate = work * count / passed;
    return STATUS_OK;
}

static enum status run_thrice(struct product_rate *rate, struct machine *machine,
                              struct error *error)
{
    double a, b, c;

    TRY(machine->backend->step(machine, NULL, error)); /* warms up */
    TRY(run_product(&a, machine, error));
    TRY(run_product(&b, machine, error));
    TRY(run_product(&c, machine, error));
    rate->least = fmin(a, fmin(b, c));
    rate->most = fmax(a, fmax(b, c));
    rate->middle = fmax(fmin(a, b), fmin(fmax(a, b), c));
    return STATUS_OK;
}

enum status requirements_measure(struct product_rate *rate, const struct machine_options *options,
                                 struct error *error)
{
    struct tape *tape = NULL;
    struct machine *machine = NULL;
    enum status status;

    *rate = (struct product_rate){0};
    TRY(make_product(&tape, error));
    TRY_OUT(machine_open(&machine, tape, options, error));
    status = run_thrice(rate, machine, error);
    machine->backend->close(machine);
out:
    tape_free(tape);
    return status;
}

/* ---- room ------------------------------------------------------------------------- */

/* The nearest folder at or above path that exists. */
static void standing_folder(char folder[FILE_PATH_MAX], const char *path)
{
    (void)snprintf(folder, FILE_PATH_MAX, "%s", path);
    while (!file_exists(folder)) {
        char *slash = strrchr(folder, '/');

        if (slash == NULL) {
            (void)snprintf(folder, FILE_PATH_MAX, ".");
        } else {
            slash[slash == folder ? 1 : 0] = '\0';
        }
        if (slash == NULL || slash == folder) {
            return;
        }
    }
}

/* Bytes of the present checkpoints: a resumed run needs no new room for them. */
static uint64_t written_in(const char *bundle)
{
    char folder[FILE_PATH_MAX];
    uint64_t bytes = 0;
    struct dirent *entry;
    DIR *files = NULL;

    if (file_path_join(folder, sizeof(folder), NULL, bundle, "checkpoints") == STATUS_OK) {
        files = opendir(folder);
    }
    while (files != NULL && (entry = readdir(files)) != NULL) {
        struct stat about;

        if (fstatat(dirfd(files), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(about.st_mode)) {
            bytes += (uint64_t)about.st_size;
        }
    }
    if (files != NULL) {
        (void)closedir(files);
    }
    return bytes;
}

static enum status check_disk(struct requirements *found, const char *path, uint64_t written,
                              struct error *error)
{
    char folder[FILE_PATH_MAX];
    struct statvfs disk;

    standing_folder(folder, path);
    if (statvfs(folder, &disk) != 0) {
        return error_set_errno(error, "cannot read the free space of %s", folder);
    }
    found->disk_free = (uint64_t)disk.f_bavail * disk.f_frsize + written;
    if (found->disk_needed <= found->disk_free) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_OVER_LIMIT,
                    "the run needs %.2f MiB of disk (checkpoints of %.2f MiB each), and %s has "
                    "%.2f MiB",
                    (double)found->disk_needed / MIB, (double)found->checkpoint_size / MIB, folder,
                    (double)found->disk_free / MIB);
    error_advise(error, "--keep N keeps only the newest checkpoints; --bundle names another disk");
    return STATUS_OVER_LIMIT;
}

/* A CPU holds all that a step needs; a GPU may compute it part by part. */
static enum status check_memory(struct requirements *found, const struct job *job,
                                const struct machine_options *machine, struct error *error)
{
    const bool on_cpu = machine->backend == NULL || machine->backend == &backend_cpu;
    struct tape_footprint footprint = tape_footprint(job->tape);
    uint64_t least = footprint.state + footprint.constant;

    found->memory = machine->memory_max;
    found->checkpoint_size = job_checkpoint_bytes(job);
    if (found->memory == 0) {
        return STATUS_OK;
    }
    if (on_cpu && least >= footprint.state && least <= found->memory) {
        TRY(machine_size(&least, job->tape, machine, error));
    }
    if (least >= footprint.state && least <= found->memory) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_OVER_LIMIT,
                    "a step of the job takes %.2f MiB of memory, and %.2f MiB are allowed here",
                    (double)least / MIB, (double)found->memory / MIB);
    error_advise(error, "--recompute takes less for activations; or take it on a larger machine, "
                        "or allow more with --memory-max");
    return STATUS_OVER_LIMIT;
}

/* ---- what the job requires --------------------------------------------------------- */

static enum status check_requirements(struct requirements *found, const struct job *job,
                                      const struct machine_options *machine, struct error *error)
{
    const struct job_requirements *wanted = &job->requirements;
    struct product_rate rate;

    if (wanted->memory > found->memory && found->memory != 0) {
        return error_set(error, STATUS_REFUSED,
                         "the job is for machines with %.2f MiB of memory, and this one has %.2f",
                         (double)wanted->memory / MIB, (double)found->memory / MIB);
    }
    if (wanted->compute_capability != 0 &&
        (machine->backend == NULL || machine->backend == &backend_cpu)) {
        return error_set(error, STATUS_REFUSED,
                         "the job is for CUDA devices of compute capability %u.%u, and this run "
                         "is on the CPU",
                         wanted->compute_capability / 10, wanted->compute_capability % 10);
    }
    if (wanted->contraction_rate != 0) {
        TRY(requirements_measure(&rate, machine, error));
        found->contraction_rate = rate.middle;
    }
    if (found->contraction_rate < (double)wanted->contraction_rate) {
        return error_set(error, STATUS_REFUSED,
                         "the job is for machines of %u * 10^9 multiply-adds a second, and this "
                         "one makes %.1f",
                         wanted->contraction_rate, found->contraction_rate);
    }
    return STATUS_OK;
}

enum status requirements_check(struct requirements *found, const struct job *job,
                               const struct machine_options *machine, const char *folder,
                               uint64_t keep, uint64_t every, bool ignore_requirements,
                               struct error *error)
{
    enum status status;

    memset(found, 0, sizeof(*found));
    TRY(check_memory(found, job, machine, error));
    found->disk_needed = job_bundle_bytes(job, keep, every);
    TRY(check_disk(found, folder, written_in(folder), error));
    if (ignore_requirements) {
        return STATUS_OK;
    }
    status = check_requirements(found, job, machine, error);
    if (status == STATUS_REFUSED) {
        error_advise(error, "the client needs the job in time: leave it, or take the risk with "
                            "--ignore-requirements");
    }
    return status;
}
