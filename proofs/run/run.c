/* run.c - see run.h. */
#include "proofs/run/run.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/host.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/piece.h"
#include "proofs/run/data_paths.h"

#define SHAPE_TEXT_SIZE 200 /* eight numbers of 64 bits */

/* "(2000, 8, 8, 4)" */
static void write_shape(char text[SHAPE_TEXT_SIZE], uint64_t rows, const uint64_t *dims,
                        uint32_t rank)
{
    int used = snprintf(text, SHAPE_TEXT_SIZE, "(%" PRIu64, rows);

    for (uint32_t i = 0; i < rank && used > 0 && used < SHAPE_TEXT_SIZE; i++) {
        used += snprintf(text + used, SHAPE_TEXT_SIZE - (size_t)used, ", %" PRIu64, dims[i]);
    }
    if (used > 0 && used < SHAPE_TEXT_SIZE) {
        (void)snprintf(text + used, SHAPE_TEXT_SIZE - (size_t)used, ")");
    }
}

/* Rows of numbers take samples of any shape; a shape that the job binds takes only its own, or a
 * file of elements alone, which has none. */
static enum status check_shape(const struct dataset *dataset, const struct tensor *tensor,
                               const char *path, struct error *error)
{
    char found[SHAPE_TEXT_SIZE];
    char wanted[SHAPE_TEXT_SIZE];

    if (tensor->rank <= 2 || dataset->rank == 0 ||
        (dataset->rank == tensor->rank - 1 &&
         memcmp(dataset->dims, tensor->dims + 1, dataset->rank * sizeof(dataset->dims[0])) == 0)) {
        return STATUS_OK;
    }
    write_shape(found, dataset->rows, dataset->dims, dataset->rank);
    write_shape(wanted, tensor->dims[0], tensor->dims + 1, tensor->rank - 1);
    return error_set(error, STATUS_BAD_FORMAT, "%s has the shape %s; the job's '%s' has %s", path,
                     found, tensor->name, wanted);
}

enum status run_data_open(struct dataset *dataset, struct digest *root, const struct tensor *tensor,
                          const char *path, struct error *error)
{
    enum status status;

    TRY(dataset_open_tensor(dataset, error, path, tensor));
    if (dataset->count != tensor->count || dataset->dtype != tensor->dtype) {
        status = error_set(error, STATUS_BAD_FORMAT,
                           "%s holds %" PRIu64 " elements of type %s; the job's '%s' has %" PRIu64
                           " of type %s",
                           path, dataset->count, dtype_name(dataset->dtype), tensor->name,
                           tensor->count, dtype_name(tensor->dtype));
        dataset_close(dataset);
        return status;
    }
    status = check_shape(dataset, tensor, path, error);
    if (status != STATUS_OK) {
        dataset_close(dataset);
        return status;
    }
    if (root != NULL) {
        status = dataset_check_finite(dataset, error);
        if (status != STATUS_OK) {
            dataset_close(dataset);
            (void)error_wrap(error, "%s, '%s'", path, tensor->name);
            return status;
        }
        commit_tensor_root(root, COMMIT_DATA, tensor, dataset->data, 0);
        dataset_drop(dataset); /* the first step reads it again, piece by piece */
    }
    return STATUS_OK;
}

enum status run_data_pieces(int *descriptor, struct digest *root, const struct dataset *dataset,
                            const struct tensor *tensor, struct error *error)
{
    const size_t size = (size_t)piece_data_count(tensor) * DIGEST_SIZE;
    void *hashes = MAP_FAILED;

    *descriptor = memfd_create("pieces", MFD_CLOEXEC);
    if (*descriptor >= 0 && ftruncate(*descriptor, (off_t)size) == 0) {
        hashes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *descriptor, 0);
    }
    if (hashes == MAP_FAILED) {
        (void)error_set_errno(error, "no room for the hashes of the pieces of '%s'", tensor->name);
        if (*descriptor >= 0) {
            (void)close(*descriptor);
        }
        *descriptor = -1;
        return STATUS_NO_MEMORY;
    }
    piece_data_hashes(hashes, tensor, dataset->data);
    piece_data_root(root, tensor, hashes);
    (void)munmap(hashes, size);
    return STATUS_OK;
}

static enum status differing_root(const struct digest *root, const char *path,
                                  const struct tensor *tensor, struct error *error)
{
    char text[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(text, root->bytes, DIGEST_SIZE);
    (void)error_set(error, STATUS_REFUSED, "%s is not the job's '%s': its root is %.16s...", path,
                    tensor->name, text);
    error_advise(error, "'lockstep job show' names the root that the data must have");
    return STATUS_REFUSED;
}

/* Which files of data are hashed: all, or those that are not compared (NULL: all are). */
struct data_hashing {
    bool all;
    const bool *compared;
};

static enum status open_data(struct run *run, const char *const *paths, size_t path_count,
                             const struct data_hashing *hashing, struct error *error)
{
    const struct tape *tape = run->job->tape;
    const uint32_t count = run->job->data_count;

    if (path_count != count) {
        (void)error_set(error, STATUS_USAGE, "the job reads %u data files, and %zu are given",
                        count, path_count);
        error_advise(error, "name them with --data, once for each");
        return STATUS_USAGE;
    }
    run->data = calloc((size_t)count + 1, sizeof(*run->data));
    run->given = calloc((size_t)count + 1, sizeof(*run->given));
    if (run->data == NULL || run->given == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u files of data", count);
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const uint32_t at = run->data_count;
        struct digest root;
        bool hashed;

        if (tape->tensors[id].role != ROLE_DATA) {
            continue;
        }
        /* What the caller has compared is not hashed again: it may be large. */
        hashed = hashing->all || (hashing->compared != NULL && !hashing->compared[at]);
        TRY(run_data_open(&run->data[at], hashed ? &root : NULL, &tape->tensors[id], paths[at],
                          error));
        run->given[at] = run->data[at].data;
        /* Counted as soon as it is open: a failure closes what is counted. */
        run->data_count++;
        if (hashed && !digest_equal(&root, &run->job->data_roots[at])) {
            return differing_root(&root, paths[at], &tape->tensors[id], error);
        }
    }
    return STATUS_OK;
}

static enum status bind_data(struct run *run, struct error *error)
{
    const struct tape *tape = run->job->tape;
    const bool copied = run->machine->backend != &backend_cpu;
    uint32_t at = 0;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_DATA) {
            TRY(run->machine->backend->bind(run->machine, id, run->given[at], error));
            if (copied) {
                dataset_drop(&run->data[at]);
            }
            at++;
        }
    }
    return STATUS_OK;
}

static enum status write_constants(struct run *run, struct error *error)
{
    uint32_t at = 0;

    for (uint32_t id = 0; id < run->job->tape->tensor_count; id++) {
        if (run->job->tape->tensors[id].role == ROLE_CONSTANT) {
            TRY(run->machine->backend->write(run->machine, id, run->job->constants[at++], error));
        }
    }
    return STATUS_OK;
}

/* The pages of a frozen weight that the machine keeps in its own form. */
static void spare_pages(void *context, const void *bytes)
{
    const struct run *run = context;

    for (uint32_t i = 0; i < run->data_count; i++) {
        if (run->given[i] == bytes) {
            dataset_drop(&run->data[i]);
        }
    }
}

static enum status open_machine(struct run *run, const struct machine_options *options,
                                struct error *error)
{
    struct machine_options sparing = *options;

    sparing.spare = spare_pages;
    sparing.spare_context = run;
    TRY(machine_open(&run->machine, run->job->tape, &sparing, error));
    TRY(bind_data(run, error));
    return write_constants(run, error);
}

static enum status open_run(struct run *run, const struct job *job, const char *const *paths,
                            size_t path_count, const struct data_hashing *hashing,
                            const struct machine_options *options, struct error *error)
{
    enum status status;

    memset(run, 0, sizeof(*run));
    run->job = job;
    run->options = *options;
    held_out_of(&run->held_out, job);
    TRY_OUT(open_data(run, paths, path_count, hashing, error));
    TRY_OUT(open_machine(run, options, error));
out:
    if (status != STATUS_OK) {
        run_close(run);
    }
    return status;
}

enum status run_open(struct run *run, const struct job *job, const char *const *paths,
                     size_t path_count, const struct machine_options *options, struct error *error)
{
    const struct data_hashing hashing = {.all = true};

    return open_run(run, job, paths, path_count, &hashing, options, error);
}

enum status run_open_compared(struct run *run, const struct job *job, const char *const *paths,
                              size_t path_count, const bool *compared,
                              const struct machine_options *options, struct error *error)
{
    const struct data_hashing hashing = {.compared = compared};

    return open_run(run, job, paths, path_count, &hashing, options, error);
}

static void close_machine(struct machine **machine)
{
    if (*machine != NULL) {
        (*machine)->backend->close(*machine);
        *machine = NULL;
    }
}

void run_close(struct run *run)
{
    close_machine(&run->machine);
    for (uint32_t i = 0; i < run->data_count; i++) {
        dataset_close(&run->data[i]);
    }
    free(run->data);
    free(run->given);
    run->data = NULL;
    run->given = NULL;
    run->data_count = 0;
}

/* ---- another machine in its place ---------------------------------------- */

static enum status take_states(void **states, struct run *run, struct error *error)
{
    const struct tape *tape = run->job->tape;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        uint32_t id = tape->states[i].before;

        states[i] = malloc(commit_tensor_size(&tape->tensors[id]));
        if (states[i] == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for the state '%s'",
                             tape->tensors[id].name);
        }
        TRY(run->machine->backend->read(run->machine, id, states[i], error));
    }
    return STATUS_OK;
}

static enum status put_states(struct run *run, void *const *states, struct error *error)
{
    const struct tape *tape = run->job->tape;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        TRY(run->machine->backend->write(run->machine, tape->states[i].before, states[i], error));
    }
    return STATUS_OK;
}

enum status run_reopen(struct run *run, const struct machine_options *options, struct error *error)
{
    const struct tape *tape = run->job->tape;
    void **states = calloc((size_t)tape->state_count + 1, sizeof(*states));
    enum status status;

    if (states == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for states");
    }
    TRY_OUT(take_states(states, run, error));
    close_machine(&run->machine);
    run->options = *options;
    TRY_OUT(open_machine(run, options, error));
    TRY_OUT(put_states(run, states, error));
out:
    for (uint32_t i = 0; i < tape->state_count; i++) {
        free(states[i]);
    }
    free(states);
    return status;
}

enum status run_loss(uint32_t *bits, struct run *run, struct error *error)
{
    *bits = FLOAT_NAN_BITS;
    if (run->job->tape->loss == TENSOR_NONE) {
        return STATUS_OK;
    }
    return run->machine->backend->read(run->machine, run->job->tape->loss, bits, error);
}

enum status run_data_roots(struct digest **roots, uint32_t *count, const struct tape *tape,
                           const char *const *paths, struct error *error)
{
    uint32_t data = 0;

    *count = 0;
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        data += tape->tensors[id].role == ROLE_DATA;
    }
    *roots = calloc((size_t)data + 1, sizeof(**roots));
    if (*roots == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u roots", data);
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        struct dataset dataset;

        if (tape->tensors[id].role == ROLE_DATA) {
            TRY(run_data_open(&dataset, &(*roots)[*count], &tape->tensors[id], paths[*count],
                              error));
            dataset_close(&dataset);
            ++*count;
        }
    }
    return STATUS_OK;
}

enum status run_file_roots(struct job_terms *terms, struct digest **roots, const struct tape *tape,
                           const char *const *files, size_t count, struct error *error)
{
    struct data_paths paths = {0};
    enum status status;

    TRY_OUT(data_paths_of_files(&paths, tape, files, count, error));
    TRY_OUT(run_data_roots(roots, &terms->data_count, tape, (const char *const *)paths.of, error));
    terms->data_roots = *roots;
out:
    data_paths_close(&paths);
    return status;
}

enum status run_check_memory(const struct tape *tape, const struct machine_options *options,
                             const char *what, const char *advice, struct error *error)
{
    struct host host;
    uint64_t size = 0;

    TRY(machine_size(&size, tape, options, error));
    host_look(&host);
    if (host.memory_bytes == 0 || size <= host.memory_bytes) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_OVER_LIMIT,
                    "%s takes %.1f MiB of memory, and this machine has %.1f MiB", what,
                    (double)size / 1048576.0, (double)host.memory_bytes / 1048576.0);
    error_advise(error, "%s", advice);
    return STATUS_OVER_LIMIT;
}

enum status run_first_state(struct run *run, const struct first_state *first, struct error *error)
{
    const struct tape *tape = run->job->tape;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        const uint32_t id = tape->states[i].before;
        void *bytes = calloc(1, tape->tensors[id].count * dtype_size(tape->tensors[id].dtype));
        enum status status = STATUS_OK;

        if (bytes == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for the first state");
        }
        if (first != NULL) {
            status = first_state_read(bytes, first, i, error);
        } else {
            job_first_state(bytes, run->job, id);
        }
        if (status == STATUS_OK) {
            status = run->machine->backend->write(run->machine, id, bytes, error);
        }
        free(bytes);
        TRY(status);
    }
    return STATUS_OK;
}

enum status run_held_out(bool *evaluated, uint32_t *loss_bits, uint32_t *accuracy_bits,
                         struct run *run, uint64_t step, struct error *error)
{
    const struct held_out *held_out = &run->held_out;
    struct machine *machine = run->machine;

    *evaluated = held_out_is_due(held_out, step);
    *loss_bits = *accuracy_bits = FLOAT_NAN_BITS;
    if (!*evaluated) {
        return STATUS_OK;
    }
    TRY(machine->backend->read(machine, held_out->loss, loss_bits, error));
    return held_out->accuracy == TENSOR_NONE
               ? STATUS_OK
               : machine->backend->read(machine, held_out->accuracy, accuracy_bits, error);
}

void run_describe(char *text, size_t size, const struct machine_options *options)
{
    if (options->backend != NULL && options->backend != &backend_cpu) {
        (void)snprintf(text, size, "%s device %u", options->backend->name, options->device);
        return;
    }
    (void)snprintf(text, size, "cpu %s, %d thread%s", isa_name(options->isa), options->thread_count,
                   options->thread_count == 1 ? "" : "s");
}

void run_given(struct evidence_given *given, const struct run *run)
{
    *given = (struct evidence_given){.data = run->given,
                                     .data_roots = run->job->data_roots,
                                     .constants = (const void *const *)run->job->constants};
}
