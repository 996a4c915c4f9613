/* bundle_state.c - checkpoints of a bundle: written, found, checked, loaded; see bundle.h. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "proofs/bundle_parts.h"
#include "proofs/safetensors.h"
#include "proofs/trace.h"

static enum status checkpoint_path(char *path, const struct bundle *bundle, uint64_t step,
                                   struct error *error)
{
    int length = snprintf(path, FILE_PATH_MAX, "%s/checkpoints/%012" PRIu64 ".safetensors",
                          bundle->path, step);

    if (length < 0 || length >= FILE_PATH_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "the path of '%s' is too long", bundle->path);
    }
    return STATUS_OK;
}

static uint64_t tensor_size(const struct tensor *tensor)
{
    return tensor->count * dtype_size(tensor->dtype);
}

/* ---- writing ------------------------------------------------------------ */

/* Wider types first, as the format wants them for alignment; else in the order of the states. */
static uint32_t order_states(uint32_t *order, const struct tape *tape)
{
    uint32_t count = 0;

    for (size_t size = 8; size > 0; size /= 2) {
        for (uint32_t i = 0; i < tape->state_count; i++) {
            if (dtype_size(tape->tensors[tape->states[i].before].dtype) == size) {
                order[count++] = tape->states[i].before;
            }
        }
    }
    return count;
}

static void describe(struct safetensors_entry *entry, const struct tensor *tensor)
{
    (void)snprintf(entry->name, sizeof(entry->name), "%s", tensor->name);
    entry->element = element_of_dtype(tensor->dtype);
    entry->rank = tensor->rank;
    memcpy(entry->dims, tensor->dims, sizeof(tensor->dims[0]) * tensor->rank);
}

static enum status add_state(struct safetensors_writer *writer, struct machine *machine,
                             uint32_t tensor, struct error *error)
{
    const struct tensor *shape = &machine->tape->tensors[tensor];
    const void *bytes = machine->backend->peek(machine, tensor);
    enum status status = STATUS_OK;
    void *copy = NULL;

    if (bytes == NULL) {
        copy = malloc(tensor_size(shape));
        if (copy == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for '%s'", shape->name);
        }
        status = machine->backend->read(machine, tensor, copy, error);
        bytes = copy;
    }
    if (status == STATUS_OK) {
        status = safetensors_writer_add(writer, error, bytes, tensor_size(shape));
    }
    free(copy);
    return status;
}

static enum status write_file(struct bundle *bundle, struct machine *machine, uint64_t step,
                              const struct digest *root, struct error *error)
{
    const struct tape *tape = bundle->job->tape;
    uint32_t *order = calloc((size_t)tape->state_count + 1, sizeof(*order));
    struct safetensors_entry *entries = calloc((size_t)tape->state_count + 1, sizeof(*entries));
    struct safetensors_writer writer;
    char path[FILE_PATH_MAX];
    char job_text[HEX_SIZE(DIGEST_SIZE)];
    char root_text[HEX_SIZE(DIGEST_SIZE)];
    char step_text[24];
    struct safetensors_text texts[3] = {
        {"lockstep.job", job_text}, {"lockstep.step", step_text}, {"lockstep.root", root_text}};
    enum status status = checkpoint_path(path, bundle, step, error);

    if (order == NULL || entries == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for a checkpoint");
    }
    if (status != STATUS_OK) {
        goto out;
    }
    hex_encode(job_text, bundle->job->id.bytes, DIGEST_SIZE);
    hex_encode(root_text, root->bytes, DIGEST_SIZE);
    (void)snprintf(step_text, sizeof(step_text), "%" PRIu64, step);
    (void)order_states(order, tape);
    for (uint32_t i = 0; i < tape->state_count; i++) {
        describe(&entries[i], &tape->tensors[order[i]]);
    }
    status = safetensors_writer_open(&writer, error, path, entries, tape->state_count, texts, 3);
    if (status != STATUS_OK) {
        goto out;
    }
    for (uint32_t i = 0; i < tape->state_count && status == STATUS_OK; i++) {
        status = add_state(&writer, machine, order[i], error);
    }
    if (status == STATUS_OK) {
        status = safetensors_writer_keep(&writer, error);
    } else {
        safetensors_writer_drop(&writer);
    }
out:
    free(order);
    free(entries);
    return status;
}

enum status bundle_checkpoint_write(struct bundle *bundle, struct machine *machine, uint64_t step,
                                    struct error *error)
{
    struct digest root;
    sqlite3_stmt *statement = NULL;
    enum status status = machine_state_root(&root, machine, error);

    if (status == STATUS_OK) {
        status = write_file(bundle, machine, step, &root, error);
    }
    if (status == STATUS_OK) {
        status = bundle_flush(bundle, error);
    }
    if (status == STATUS_OK) {
        status =
            journal_prepare(&statement, &bundle->journal, error,
                            "INSERT OR REPLACE INTO checkpoints VALUES (?, ?)", "id", step, &root);
    }
    return status == STATUS_OK ? journal_finish(&bundle->journal, statement, error) : status;
}

/* ---- loading ------------------------------------------------------------ */

static enum status load_tensor(const struct safetensors *file, struct machine *machine,
                               uint32_t tensor, struct error *error)
{
    const struct tensor *shape = &machine->tape->tensors[tensor];
    const struct safetensors_entry *entry = safetensors_find(file, shape->name);
    enum status status;
    void *bytes;

    if (entry == NULL || entry->element != element_of_dtype(shape->dtype) ||
        entry->size != tensor_size(shape)) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: no tensor '%s' of %" PRIu64 " elements %s",
                         file->path, shape->name, shape->count, dtype_name(shape->dtype));
    }
    bytes = malloc(tensor_size(shape));
    if (bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for '%s'", shape->name);
    }
    status = safetensors_read(file, error, bytes, entry, tensor_size(shape), 0);
    if (status == STATUS_OK) {
        status = machine->backend->write(machine, tensor, bytes, error);
    }
    free(bytes);
    return status;
}

static enum status check_root(struct machine *machine, const struct digest *wanted,
                              const char *what, struct error *error)
{
    struct digest root;
    enum status status = machine_state_root(&root, machine, error);

    if (status == STATUS_OK && !digest_equal(&root, wanted)) {
        return error_set(error, STATUS_BAD_FORMAT, "%s is not the state that was committed to",
                         what);
    }
    return status;
}

static enum status load_checkpoint(struct bundle *bundle, struct machine *machine, uint64_t step,
                                   const struct digest *root, struct error *error)
{
    struct safetensors file;
    char path[FILE_PATH_MAX];
    enum status status = checkpoint_path(path, bundle, step, error);

    if (status == STATUS_OK) {
        status = safetensors_open(&file, error, path);
    }
    if (status != STATUS_OK) {
        return status;
    }
    for (uint32_t i = 0; i < machine->tape->state_count && status == STATUS_OK; i++) {
        status = load_tensor(&file, machine, machine->tape->states[i].before, error);
    }
    safetensors_close(&file);
    return status == STATUS_OK ? check_root(machine, root, path, error) : status;
}

static enum status load_first_state(struct bundle *bundle, struct machine *machine,
                                    struct error *error)
{
    const struct tape *tape = bundle->job->tape;
    enum status status = STATUS_OK;

    if (bundle->job->first_state_given) {
        return error_set(error, STATUS_NOT_FOUND,
                         "the job's first state is given as a checkpoint, and it is not there");
    }
    for (uint32_t i = 0; i < tape->state_count && status == STATUS_OK; i++) {
        uint32_t tensor = tape->states[i].before;
        void *bytes = malloc(tensor_size(&tape->tensors[tensor]));

        if (bytes == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for '%s'",
                             tape->tensors[tensor].name);
        }
        job_first_state(bytes, bundle->job, tensor);
        status = machine->backend->write(machine, tensor, bytes, error);
        free(bytes);
    }
    return status == STATUS_OK
               ? check_root(machine, &bundle->job->first_state_root, "the first state", error)
               : status;
}

static enum status write_constants(struct bundle *bundle, struct machine *machine,
                                   struct error *error)
{
    const struct tape *tape = bundle->job->tape;
    enum status status = STATUS_OK;
    uint32_t at = 0;

    for (uint32_t id = 0; id < tape->tensor_count && status == STATUS_OK; id++) {
        if (tape->tensors[id].role == ROLE_CONSTANT) {
            status = machine->backend->write(machine, id, bundle->job->constants[at++], error);
        }
    }
    return status;
}

/* What the state before a step must hash to: a checkpoint's own word for it counts for nothing. */
static enum status committed_root(struct digest *root, struct bundle *bundle, uint64_t step,
                                  struct error *error)
{
    struct bundle_step entry;
    enum status status;

    if (step == 0) {
        *root = bundle->job->first_state_root;
        return STATUS_OK;
    }
    status = bundle_step_read(&entry, bundle, step - 1, error);
    *root = entry.root;
    return status;
}

enum status bundle_restore(uint64_t *step, struct bundle *bundle, struct machine *machine,
                           uint64_t most, struct error *error)
{
    struct journal *journal = &bundle->journal;
    sqlite3_stmt *statement = NULL;
    enum status status = write_constants(bundle, machine, error);

    if (status == STATUS_OK) {
        status = journal_prepare(&statement, journal, error,
                                 "SELECT step FROM checkpoints WHERE step <= ? "
                                 "ORDER BY step DESC",
                                 "i", most);
    }
    while (status == STATUS_OK) {
        struct digest root;

        status = journal_next(journal, statement, error);
        if (status == STATUS_OK) {
            status = journal_number(step, journal, statement, 0, JOB_STEPS_MAX, error);
        }
        if (status == STATUS_OK && committed_root(&root, bundle, *step, error) == STATUS_OK &&
            load_checkpoint(bundle, machine, *step, &root, error) == STATUS_OK) {
            (void)sqlite3_finalize(statement);
            return STATUS_OK;
        }
    }
    (void)sqlite3_finalize(statement);
    if (status != STATUS_NOT_FOUND) {
        return status;
    }
    *step = 0;
    return load_first_state(bundle, machine, error);
}

/* ---- retention ---------------------------------------------------------- */

static enum status remove_checkpoint(struct bundle *bundle, uint64_t step, struct error *error)
{
    sqlite3_stmt *statement = NULL;
    char path[FILE_PATH_MAX];
    enum status status = checkpoint_path(path, bundle, step, error);

    /* The entry goes first: a file without an entry is only waste, the reverse is a broken promise. */
    if (status == STATUS_OK) {
        status = journal_prepare(&statement, &bundle->journal, error,
                                 "DELETE FROM checkpoints WHERE step = ?", "i", step);
    }
    if (status == STATUS_OK) {
        status = journal_finish(&bundle->journal, statement, error);
    }
    if (status == STATUS_OK && unlink(path) != 0 && file_exists(path)) {
        status = error_set_errno(error, "cannot remove %s", path);
    }
    return status;
}

enum status bundle_checkpoint_prune(struct bundle *bundle, uint64_t keep, uint64_t every,
                                    struct error *error)
{
    uint64_t distance = every * bundle->job->segment_length;
    uint64_t seen = 0;
    uint64_t last = UINT64_MAX;
    enum status status = bundle_flush(bundle, error);

    while (status == STATUS_OK) {
        sqlite3_stmt *statement = NULL;
        uint64_t step = 0;

        status = journal_prepare(&statement, &bundle->journal, error,
                                 "SELECT step FROM checkpoints WHERE step < ? "
                                 "ORDER BY step DESC LIMIT 1",
                                 "i", last > INT64_MAX ? (uint64_t)INT64_MAX : last);
        if (status == STATUS_OK) {
            status = journal_next(&bundle->journal, statement, error);
        }
        if (status == STATUS_OK) {
            status = journal_number(&step, &bundle->journal, statement, 0, JOB_STEPS_MAX, error);
        }
        (void)sqlite3_finalize(statement);
        if (status != STATUS_OK) {
            break;
        }
        last = step;
        /* A first state that was given can be had from nowhere else. */
        bool wanted = seen++ < keep || (distance != 0 && step % distance == 0) ||
                      (step == 0 && bundle->job->first_state_given);
        if (!wanted) {
            status = remove_checkpoint(bundle, step, error);
        }
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}
