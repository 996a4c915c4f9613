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
    enum status status = passphrase_get(&passphrase, &source, error);

    if (status != STATUS_OK) {
        return status;
    }
    status = encryption_key_make(&encryption->key, error);
    if (status == STATUS_OK) {
        status = encryption_lock(encryption->lock, error, &encryption->key, passphrase->bytes, passphrase->size,
                                 ENCRYPTION_SCRYPT_LOG_N);
    }
    encryption->has_lock = true;
    passphrase_free(passphrase);
    return status;
}

enum status access_encryption_make(struct access_encryption *encryption, const struct options *options,
                             struct error *error)
{
    const char *key = options_text(options, "key");

    memset(encryption, 0, sizeof(*encryption));
    return key != NULL
               ? key_from_file(&encryption->key, key, error)
               : key_under_passphrase(encryption, options_text(options, "passphrase-file"), error);
}

static enum status unlock_by_passphrase(struct bundle *bundle, const char *file, bool asking,
                                        struct error *error)
{
    const struct passphrase_source source = {
        .file = file, .question = asking ? "Passphrase of the bundle: " : NULL};
    struct passphrase *passphrase;
    enum status status = passphrase_get(&passphrase, &source, error);

    if (status == STATUS_OK) {
        status = bundle_unlock_with(bundle, passphrase->bytes, passphrase->size, error);
        passphrase_free(passphrase);
    }
    return status;
}

static enum status unlock(struct bundle *bundle, const struct options *options, bool asking,
                          struct error *error)
{
    const char *path = options_text(options, "key");
    const char *file = options_text(options, "passphrase-file");
    struct encryption_key key;
    enum status status;

    if (!bundle_is_locked(bundle)) {
        return STATUS_OK;
    }
    if (path == NULL && file == NULL && !asking && getenv(PASSPHRASE_VARIABLE) == NULL) {
        return STATUS_OK;
    }
    if (path == NULL) {
        return unlock_by_passphrase(bundle, file, asking, error);
    }
    status = key_file_read(&key, path, error);
    if (status == STATUS_OK) {
        status = bundle_unlock(bundle, &key, error);
        encryption_key_wipe(&key);
    }
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
    enum status status = machine_options_default(machine, error);
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_size = sysconf(_SC_PAGESIZE);

    machine->thread_count = (int)options_number(options, "threads");
    if (machine->thread_count == 0) {
        machine->thread_count = omp_get_max_threads();
    }
    machine->memory_max = options_number(options, "memory-max");
    machine->device_memory = options_number(options, "device-memory");
    /* A stranger's job must not take the machine down: the system would promise any memory. */
    if (machine->memory_max == 0 && pages > 0 && page_size > 0) {
        machine->memory_max = (uint64_t)pages * (uint64_t)page_size;
    }
    return status == STATUS_OK
               ? machine_options_device(machine, options_text(options, "device"), error)
               : status;
}

struct data_paths {
    const char *paths[JOB_DATA_MAX];
    char kept[JOB_DATA_MAX][FILE_PATH_MAX];
};

static void note_name(char name[16], size_t index)
{
    (void)snprintf(name, 16, "data.%u", (unsigned)index);
}

static enum status ask_for_data(uint32_t wanted, struct error *error)
{
    (void)error_set(error, STATUS_USAGE, "where is the data of this job?");
    error_advise(error, wanted == 1 ? "name the file with --data"
                                    : "name the files with --data, once for each");
    return STATUS_USAGE;
}

static enum status remembered_data(struct data_paths *data, const struct job *job,
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
            return status == STATUS_NOT_FOUND ? ask_for_data(job->data_count, error) : status;
        }
        data->paths[i] = data->kept[i];
    }
    return STATUS_OK;
}

enum status access_run(struct run *run, const struct job *job, struct bundle *bundle,
                       const struct machine_options *machine, const struct options *options,
                       struct error *error)
{
    struct data_paths *data = calloc(1, sizeof(*data));
    size_t count = options_list_count(options, "data");
    enum status status = STATUS_OK;

    if (data == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the names of the data");
    }
    for (size_t i = 0; i < count && i < JOB_DATA_MAX; i++) {
        data->paths[i] = options_list_item(options, "data", i);
    }
    if (count == 0) {
        status = remembered_data(data, job, bundle, error);
        count = job->data_count;
    }
    if (status == STATUS_OK) {
        status = run_open(run, job, data->paths, count, machine, error);
    }
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
    struct data_paths *data = calloc(1, sizeof(*data));
    size_t count = options == NULL ? 0 : options_list_count(options, "data");
    struct encryption_key key;
    bool encrypted = bundle_is_encrypted(bundle);
    enum status status = STATUS_OK;

    *respond = NULL;
    if (data == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the names of the data");
    }
    for (size_t i = 0; i < count && i < JOB_DATA_MAX; i++) {
        data->paths[i] = options_list_item(options, "data", i);
    }
    if (count == 0) {
        status = remembered_data(data, bundle_job(bundle), bundle, error);
        count = bundle_job(bundle)->data_count;
    }
    if (status == STATUS_USAGE || bundle_is_locked(bundle)) {
        free(data);
        return STATUS_OK;
    }
    if (status == STATUS_OK && encrypted) {
        status = bundle_key(&key, bundle, error);
    }
    if (status == STATUS_OK) {
        status = respond_open(respond, bundle_path(bundle), encrypted ? &key : NULL, data->paths,
                              count, machine, error);
        encryption_key_wipe(&key);
    }
    free(data);
    return status;
}
