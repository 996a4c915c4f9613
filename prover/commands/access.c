/* access.c - see access.h. */
#include "prover/commands/access.h"

#include <libgen.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sandbox/sandbox.h"
#include "chain/keys/passphrase.h"
#include "proofs/format/key_file.h"

/* ---- keys --------------------------------------------------------------- */

void access_encryption_wipe(struct access_encryption *encryption)
{
    encryption_key_wipe(&encryption->key);
}

static enum status key_from_file(struct encryption_key *key, const char *path, struct error *error)
{
    if (file_exists(path)) {
        return key_file_read(key, path, error);
    }
    TRY(encryption_key_make(key, error));
    return key_file_write(path, key, error);
}

static enum status key_under_passphrase(struct access_encryption *encryption, const char *file,
                                        struct error *error)
{
    const struct passphrase_source source = {.option = "bundle-passphrase-file",
                                             .file = file,
                                             .question = "New passphrase for this bundle: ",
                                             .twice = true};
    struct passphrase *passphrase;
    enum status status;

    TRY(passphrase_get(&passphrase, &source, error));
    TRY_OUT(encryption_key_make(&encryption->key, error));
    TRY_OUT(encryption_lock(encryption->lock, error, &encryption->key, passphrase->bytes,
                            passphrase->size, ENCRYPTION_SCRYPT_LOG_N));
    encryption->has_lock = true;
out:
    passphrase_free(passphrase);
    return status;
}

enum status access_encryption_make(struct access_encryption *encryption,
                                   const struct options *options, struct error *error)
{
    const char *key = options_text(options, "bundle-key");

    memset(encryption, 0, sizeof(*encryption));
    return key != NULL ? key_from_file(&encryption->key, key, error)
                       : key_under_passphrase(
                             encryption, options_text(options, "bundle-passphrase-file"), error);
}

static enum status unlock_by_passphrase(struct bundle *bundle, const char *file, bool prompting,
                                        struct error *error)
{
    const struct passphrase_source source = {.option = "bundle-passphrase-file",
                                             .file = file,
                                             .question =
                                                 prompting ? "Passphrase of the bundle: " : NULL};
    struct passphrase *passphrase;
    enum status status;

    TRY(passphrase_get(&passphrase, &source, error));
    status = bundle_unlock_with(bundle, passphrase->bytes, passphrase->size, error);
    passphrase_free(passphrase);
    return status;
}

static enum status unlock_bundle(struct bundle *bundle, const struct options *options,
                                 bool prompting, struct error *error)
{
    const char *path = options_text(options, "bundle-key");
    const char *file = options_text(options, "bundle-passphrase-file");
    struct encryption_key key;
    enum status status;

    if (!bundle_is_locked(bundle)) {
        return STATUS_OK;
    }
    if (path == NULL && file == NULL && !prompting && getenv(PASSPHRASE_VARIABLE) == NULL) {
        return STATUS_OK;
    }
    if (path == NULL) {
        return unlock_by_passphrase(bundle, file, prompting, error);
    }
    TRY(key_file_read(&key, path, error));
    status = bundle_unlock(bundle, &key, error);
    encryption_key_wipe(&key);
    return status;
}

enum status access_unlock(struct bundle *bundle, const struct options *options, struct error *error)
{
    return unlock_bundle(bundle, options, true, error);
}

enum status access_unlock_if_given(struct bundle *bundle, const struct options *options,
                                   struct error *error)
{
    return unlock_bundle(bundle, options, false, error);
}

/* ---- runs --------------------------------------------------------------- */

enum status access_machine(struct machine_options *machine, const struct command_context *context,
                           struct error *error)
{
    const struct options *options = context->options;
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_size = sysconf(_SC_PAGESIZE);

    TRY(machine_options_default(machine, error));
    if (options_given(options, "isa")) {
        TRY(machine_options_isa(machine, options_text(options, "isa"), error));
        log_info(context->log, "machine", "computes with %s", isa_name(machine->isa));
    }
    machine->thread_count = (int)options_number(options, "threads");
    if (machine->thread_count == 0) {
        machine->thread_count = omp_get_max_threads();
    }
    machine->memory_max = options_number(options, "memory-max");
    machine->device_memory = options_number(options, "device-memory");
    /* The system promises any amount of memory: without a limit a job could take the machine
     * down. */
    if (machine->memory_max == 0 && pages > 0 && page_size > 0) {
        machine->memory_max = (uint64_t)pages * (uint64_t)page_size;
    }
    return machine_options_device(machine, options_text(options, "device"), context->log, error);
}

static enum status no_data(uint32_t wanted, struct error *error)
{
    (void)error_set(error, STATUS_USAGE, "where is the data of this job?");
    error_advise(error, wanted == 1 ? "name the file with --data"
                                    : "name the files with --data, once for each");
    return STATUS_USAGE;
}

/* The files of the options (NULL: there are none), else those that the bundle remembers. A job may
 * read none. */
enum status access_data(struct data_paths *paths, const struct job *job, struct bundle *bundle,
                        const struct options *options, struct error *error)
{
    const char *files[OPTION_LIST_MAX];
    size_t count = options == NULL ? 0 : options_list(files, options, "data");
    enum status status = STATUS_NOT_FOUND;

    if (count > 0 || job->data_count == 0) {
        return data_paths_of_files(paths, job->tape, files, count, error);
    }
    if (bundle != NULL) {
        status = data_paths_of_bundle(paths, job, bundle, error);
    }
    return status == STATUS_NOT_FOUND ? no_data(job->data_count, error) : status;
}

/* What this process may touch from now on, while it runs what may be a stranger's program. */
static void confine_process(struct bundle *bundle, const struct data_paths *paths, const char *out)
{
    struct sandbox_plan plan = {.network = false};
    char folder[FILE_PATH_MAX];

    for (uint32_t i = 0; i < paths->count; i++) {
        sandbox_add_read(&plan, paths->of[i]);
    }
    sandbox_add_write(&plan, bundle_path(bundle)); /* a reader shares the journal with its writer */
    if (out != NULL && strlen(out) < sizeof(folder)) { /* it is written when the step was run */
        memcpy(folder, out, strlen(out) + 1);
        sandbox_add_write(&plan, dirname(folder));
    }
    sandbox_begin(&plan);
}

enum status access_run(struct run *run, struct bundle *bundle,
                       const struct machine_options *machine, const struct options *options,
                       const char *out, struct error *error)
{
    const struct job *job = bundle_job(bundle);
    struct data_paths paths = {0};
    enum status status;

    TRY_OUT(access_data(&paths, job, bundle, options, error));
    if (machine->backend == NULL || machine->backend == &backend_cpu) {
        confine_process(bundle, &paths, out);
    }
    TRY_OUT(run_open(run, job, (const char *const *)paths.of, paths.count, machine, error));
out:
    data_paths_close(&paths);
    return status;
}

enum status access_remember(struct bundle *bundle, const struct options *options,
                            struct error *error)
{
    const char *files[OPTION_LIST_MAX];
    size_t count = options_list(files, options, "data");
    struct data_paths paths = {0};
    enum status status;

    if (count == 0) {
        return STATUS_OK;
    }
    TRY_OUT(data_paths_of_files(&paths, bundle_job(bundle)->tape, files, count, error));
    TRY_OUT(data_paths_remember(&paths, bundle, error));
out:
    data_paths_close(&paths);
    return status;
}

enum status access_respond(struct respond **respond, struct bundle *bundle,
                           const struct machine_options *machine, const struct options *options,
                           struct error *error)
{
    bool encrypted = bundle_is_encrypted(bundle);
    struct encryption_key key = {{0}};
    struct data_paths paths = {0};
    enum status status;

    *respond = NULL;
    status = access_data(&paths, bundle_job(bundle), bundle, options, error);
    if (status == STATUS_USAGE || bundle_is_locked(bundle)) {
        status = STATUS_OK;
        goto out;
    }
    TRY_OUT(status);
    if (encrypted) {
        TRY_OUT(bundle_key(&key, bundle, error));
    }
    TRY_OUT(respond_open(respond, bundle_path(bundle), encrypted ? &key : NULL,
                         (const char *const *)paths.of, paths.count, machine, error));
out:
    encryption_key_wipe(&key);
    data_paths_close(&paths);
    return status;
}
