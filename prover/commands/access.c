/* access.c - see access.h. */
#include "prover/commands/access.h"

#include <limits.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    const struct passphrase_source source = {
        .file = file, .question = "New passphrase for this bundle: ", .twice = true};
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
    const char *key = options_text(options, "key");

    memset(encryption, 0, sizeof(*encryption));
    return key != NULL
               ? key_from_file(&encryption->key, key, error)
               : key_under_passphrase(encryption, options_text(options, "passphrase-file"), error);
}

static enum status unlock_by_passphrase(struct bundle *bundle, const char *file, bool prompting,
                                        struct error *error)
{
    const struct passphrase_source source = {
        .file = file, .question = prompting ? "Passphrase of the bundle: " : NULL};
    struct passphrase *passphrase;
    enum status status;

    TRY(passphrase_get(&passphrase, &source, error));
    status = bundle_unlock_with(bundle, passphrase->bytes, passphrase->size, error);
    passphrase_free(passphrase);
    return status;
}

static enum status unlock(struct bundle *bundle, const struct options *options, bool prompting,
                          struct error *error)
{
    const char *path = options_text(options, "key");
    const char *file = options_text(options, "passphrase-file");
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
    return unlock(bundle, options, true, error);
}

enum status access_unlock_if_given(struct bundle *bundle, const struct options *options,
                                   struct error *error)
{
    return unlock(bundle, options, false, error);
}

/* ---- runs --------------------------------------------------------------- */

enum status access_machine(struct machine_options *machine, const struct options *options,
                           struct error *error)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_size = sysconf(_SC_PAGESIZE);

    TRY(machine_options_default(machine, error));
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
    return machine_options_device(machine, options_text(options, "device"), error);
}

struct run_data_paths {
    const char *paths[JOB_DATA_MAX];
    char kept[JOB_DATA_MAX][FILE_PATH_MAX];
};

static void note_name(char name[16], size_t index)
{
    (void)snprintf(name, 16, "data.%u", (unsigned)index);
}

static enum status no_data(uint32_t wanted, struct error *error)
{
    (void)error_set(error, STATUS_USAGE, "where is the data of this job?");
    error_advise(error, wanted == 1 ? "name the file with --data"
                                    : "name the files with --data, once for each");
    return STATUS_USAGE;
}

static enum status remembered_data(struct run_data_paths *data, const struct job *job,
                                   struct bundle *bundle, struct error *error)
{
    for (uint32_t i = 0; i < job->data_count; i++) {
        enum status status = STATUS_NOT_FOUND;
        char name[16];

        note_name(name, i);
        if (bundle != NULL) {
            status = bundle_note(data->kept[i], bundle, name, error);
        }
        if (status != STATUS_OK) {
            return status == STATUS_NOT_FOUND ? no_data(job->data_count, error) : status;
        }
        data->paths[i] = data->kept[i];
    }
    return STATUS_OK;
}

/* The paths of the options (NULL: there are none), else those that the bundle remembers. */
static enum status find_data(struct run_data_paths *data, size_t *count, const struct job *job,
                             struct bundle *bundle, const struct options *options,
                             struct error *error)
{
    *count = options == NULL ? 0 : options_list_count(options, "data");
    for (size_t i = 0; i < *count && i < JOB_DATA_MAX; i++) {
        data->paths[i] = options_list_item(options, "data", i);
    }
    if (*count == 0) {
        *count = job->data_count;
        return remembered_data(data, job, bundle, error);
    }
    return STATUS_OK;
}

static enum status make_paths(struct run_data_paths **data, struct error *error)
{
    *data = calloc(1, sizeof(**data));
    return *data == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory for the names of the data")
                         : STATUS_OK;
}

enum status access_run(struct run *run, const struct job *job, struct bundle *bundle,
                       const struct machine_options *machine, const struct options *options,
                       struct error *error)
{
    struct run_data_paths *data;
    size_t count = 0;
    enum status status;

    TRY(make_paths(&data, error));
    TRY_OUT(find_data(data, &count, job, bundle, options, error));
    TRY_OUT(run_open(run, job, data->paths, count, machine, error));
out:
    free(data);
    return status;
}

enum status access_remember(struct bundle *bundle, const struct options *options,
                            struct error *error)
{
    size_t count = options_list_count(options, "data");

    for (size_t i = 0; i < count && i < JOB_DATA_MAX; i++) {
        const char *path = options_list_item(options, "data", i);
        char whole[PATH_MAX];
        char name[16];

        if (realpath(path, whole) == NULL) {
            return error_set_errno(error, "cannot find the data %s", path);
        }
        note_name(name, i);
        TRY(bundle_set_note(bundle, name, whole, error));
    }
    return STATUS_OK;
}

enum status access_respond(struct respond **respond, struct bundle *bundle,
                           const struct machine_options *machine, const struct options *options,
                           struct error *error)
{
    bool encrypted = bundle_is_encrypted(bundle);
    struct encryption_key key = {{0}};
    struct run_data_paths *data;
    size_t count = 0;
    enum status status;

    *respond = NULL;
    TRY(make_paths(&data, error));
    status = find_data(data, &count, bundle_job(bundle), bundle, options, error);
    if (status == STATUS_USAGE || bundle_is_locked(bundle)) {
        status = STATUS_OK;
        goto out;
    }
    TRY_OUT(status);
    if (encrypted) {
        TRY_OUT(bundle_key(&key, bundle, error));
    }
    TRY_OUT(respond_open(respond, bundle_path(bundle), encrypted ? &key : NULL, data->paths, count,
                         machine, error));
out:
    encryption_key_wipe(&key);
    free(data);
    return status;
}
