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
    char state[FILE_PATH_MAX];
};

/* What the command line does not name. */
struct wanted_files {
    bool data;
    bool state;
};

/* Before any of it is fetched. */
static enum status check_size(const struct wanted_files *wanted, const struct job *job,
                              uint64_t data_most, struct error *error)
{
    uint64_t data = wanted->data ? job_source_data_size(job) : 0;
    uint64_t state = wanted->state ? job_source_first_state_size(job) : 0;

    if (data <= data_most && state <= data_most - data) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_REFUSED,
                    "the job has %.1f MB of data and %.1f MB of first state to fetch, and %.1f MB "
                    "are fetched at most (--fetch-max)",
                    (double)data / 1e6, (double)state / 1e6, (double)data_most / 1e6);
    error_advise(error, "--fetch-max BYTES allows more");
    return STATUS_REFUSED;
}

static enum status get_data(struct picked_up *picked, struct command_context *context,
                            struct error *error)
{
    struct job_source *source = &picked->source;

    if (source->job->data_count > DATA_MAX) {
        (void)error_set(error, STATUS_OVER_LIMIT,
                        "the job has %u data tensors; at most %d are "
                        "fetched",
                        source->job->data_count, DATA_MAX);
        error_advise(error, "get the files from the client and name them with --data");
        return STATUS_OVER_LIMIT;
    }
    for (uint32_t i = 0; i < source->job->data_count; i++) {
        log_info(context->log, "fetch", "data %u of %u", i + 1, source->job->data_count);
        TRY(job_source_get_data(picked->data[i], source, i, picked->prefix, error));
        TRY(options_set(&picked->options, "data", picked->data[i], error));
    }
    return STATUS_OK;
}

static enum status get_state(struct picked_up *picked, struct command_context *context,
                             bool takes_state, struct error *error)
{
    log_info(context->log, "fetch", "the first state");
    TRY(job_source_get_first_state(picked->state, &picked->source, picked->prefix, error));
    return takes_state ? options_set(&picked->options, "first-state", picked->state, error)
                       : STATUS_OK;
}

static enum status pick_up(struct picked_up *picked, struct command_context *context,
                           uint64_t data_most, bool takes_state, struct error *error)
{
    const char *bundle = options_text(context->options, "bundle");
    struct job_source *source = &picked->source;
    struct wanted_files wanted;

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
    wanted.data = options_list_count(context->options, "data") == 0;
    wanted.state = source->job->first_state_given &&
                   !(takes_state && options_given(context->options, "first-state"));
    TRY(check_size(&wanted, source->job, data_most, error));
    TRY(wanted.data ? get_data(picked, context, error) : STATUS_OK);
    return wanted.state ? get_state(picked, context, takes_state, error) : STATUS_OK;
}

bool run_by_key_wanted(const struct command_context *context)
{
    const char *text = context->options->arguments[0];

    return strncmp(text, "0x", 2) == 0 && !file_exists(text);
}

int run_by_key(struct command_context *context, int (*run)(struct command_context *context),
               uint64_t data_most, bool takes_state)
{
    struct command_context inner = *context;
    struct picked_up *picked;
    struct error error;
    enum status status;
    int code;

    error_init(&error);
    picked = calloc(1, sizeof(*picked));
    status = picked == NULL ? error_set(&error, STATUS_NO_MEMORY, "no memory to fetch a job")
                            : pick_up(picked, context, data_most, takes_state, &error);
    if (picked != NULL) {
        job_source_report(&picked->source, NULL);
        job_source_close(&picked->source);
        inner.options = &picked->options;
    }
    code = status == STATUS_OK ? run(&inner) : command_fail(context, &error);
    free(picked);
    return code;
}
