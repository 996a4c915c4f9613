/* run_by_key.c - see run_by_key.h. */
#include "prover/commands/run_by_key.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "chain/codec/hex_data.h"
#include "chain/commands/job_source.h"
#include "proofs/commit/commit.h"

enum {
    DATA_MAX = 16,
};

/* What is fetched lies beside the bundle, under names that begin as the bundle's; where none is
 * named, as the key. */
struct picked_up {
    struct job_source source;
    struct options options; /* those of the command line, and the files */
    char key[HEX_DATA_SIZE(HASH32_SIZE)];
    char prefix[FILE_PATH_MAX];
    char job[FILE_PATH_MAX + 8];
    const char *arguments[1];
    char data[DATA_MAX][FILE_PATH_MAX];
};

/* Before any of it is fetched. */
static enum status check_size(const struct job *job, uint64_t data_most, struct error *error)
{
    uint64_t size = 0;

    for (uint32_t i = 0; i < job->tape->tensor_count; i++) {
        const struct tensor *tensor = &job->tape->tensors[i];
        uint64_t more = tensor->role == ROLE_DATA ? commit_tensor_size(tensor) : 0;

        size = more > UINT64_MAX - size ? UINT64_MAX : size + more;
    }
    if (size <= data_most) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_REFUSED,
                    "the job has %" PRIu64 " MiB of data, and %" PRIu64 " are fetched at most",
                    size >> 20, data_most >> 20);
    error_advise(error, "--fetch-most BYTES allows more");
    return STATUS_REFUSED;
}

static enum status pick_up(struct picked_up *picked, struct command_context *context,
                           uint64_t data_most, struct error *error)
{
    const char *bundle = options_text(context->options, "bundle");
    struct job_source *source = &picked->source;

    TRY(job_source_open(source, context->options->arguments[0], context, NULL, error));
    hex_write(picked->key, source->record.key.bytes, HASH32_SIZE, true);
    (void)snprintf(picked->prefix, sizeof(picked->prefix), "%.*s", bundle == NULL ? 14 : INT_MAX,
                   bundle == NULL ? picked->key : bundle);
    (void)snprintf(picked->job, sizeof(picked->job), "%s.job", picked->prefix);
    TRY(job_source_get(source, picked->job, error));
    picked->options = *context->options;
    picked->arguments[0] = picked->job;
    picked->options.arguments = picked->arguments;
    TRY(options_set(&picked->options, "job-key", picked->key, error));
    if (options_list_count(context->options, "data") > 0) {
        return STATUS_OK;
    }
    if (source->job->data_count > DATA_MAX) {
        (void)error_set(error, STATUS_OVER_LIMIT,
                        "the job has %u data tensors; at most %d are "
                        "fetched",
                        source->job->data_count, DATA_MAX);
        error_advise(error, "get the files from the client and name them with --data");
        return STATUS_OVER_LIMIT;
    }
    TRY(check_size(source->job, data_most, error));
    for (uint32_t i = 0; i < source->job->data_count; i++) {
        log_info(context->log, "fetch", "data %u of %u", i + 1, source->job->data_count);
        TRY(job_source_get_data(picked->data[i], source, i, picked->prefix, error));
        TRY(options_set(&picked->options, "data", picked->data[i], error));
    }
    return STATUS_OK;
}

bool run_by_key_wanted(const struct command_context *context)
{
    const char *text = context->options->arguments[0];

    return strncmp(text, "0x", 2) == 0 && !file_exists(text);
}

int run_by_key(struct command_context *context, int (*run)(struct command_context *context),
               uint64_t data_most)
{
    struct command_context inner = *context;
    struct picked_up *picked;
    struct error error;
    enum status status;
    int code;

    error_init(&error);
    picked = calloc(1, sizeof(*picked));
    status = picked == NULL ? error_set(&error, STATUS_NO_MEMORY, "no memory to fetch a job")
                            : pick_up(picked, context, data_most, &error);
    if (picked != NULL) {
        job_source_report(&picked->source, NULL);
        job_source_close(&picked->source);
        inner.options = &picked->options;
    }
    code = status == STATUS_OK ? run(&inner) : command_fail(context, &error);
    free(picked);
    return code;
}
