/* job_fetch.c - see job_fetch.h. */
#include "client/job_fetch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/io/file.h"
#include "base/io/progress.h"
#include "base/io/whole_file.h"
#include "base/steady.h"
#include "chain/codec/hex_data.h"
#include "chain/commands/commands.h"
#include "chain/commands/job_source.h"
#include "chain/job/job_states.h"
#include "proofs/bundle/checkpoint_file.h"
#include "proofs/bundle/model_export.h"
#include "proofs/mirror/piece_fetch.h"

const struct option_spec job_fetch_options[JOB_FETCH_OPTIONS] = {
    CHAIN_LEDGER_OPTIONS,
    JOB_SOURCE_OPTIONS,
    {.name = "out",
     .heading = "result",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .required = true,
     .help = "where the files go: model.safetensors, and the job file"},
    {.name = "segment",
     .often = true,
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = GAME_SEGMENTS_MAX,
     .help = "the state at the end of this segment (default: the last one that is final)",
     .command_line_only = true},
    {.name = "wait",
     .heading = "ledger",
     .often = true,
     .kind = OPTION_FLAG,
     .help = "stay until the job is closed, and fetch its last state then",
     .command_line_only = true},
    {.name = "hf",
     .heading = "result",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "also make a new folder of Hugging Face with the model, or with its adapters"},
    {.name = "base",
     .heading = "model",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "with --hf: the folder that the training began with"},
    {.name = "merge",
     .heading = "result",
     .kind = OPTION_FLAG,
     .help = "with --hf: add adapters to the weights"},
    {.name = "with-optimizer",
     .heading = "result",
     .kind = OPTION_FLAG,
     .help = "the whole state, as a checkpoint, to train on: three times as large with AdamW"},
};

const struct option_spec job_fetch_check_options[JOB_FETCH_CHECK_OPTIONS] = {
    CHAIN_LEDGER_OPTIONS,
    JOB_SOURCE_OPTIONS,
    {.name = "job-file",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "the job file (default: the file 'job' beside FILE, else a mirror's)"},
};

/* ---- what is fetched ----------------------------------------------------------------------- */

struct fetching {
    struct command_context *context;
    struct job_source source;
    struct job_states_place place;
    struct piece_fetch fetch;
    struct stop stop;
    struct progress progress;
    char path[FILE_PATH_MAX];
    bool final;
};

static enum status choose_state(struct fetching *fetching, struct error *error)
{
    const struct job_record *record = &fetching->source.record;
    const struct options *options = fetching->context->options;
    uint32_t segment = record->state.finalized - 1;

    if (options_given(options, "segment")) {
        segment = (uint32_t)options_number(options, "segment");
    } else if (record->state.finalized == 0) {
        (void)error_set(error, STATUS_NOT_FOUND, "no segment of this job is final yet");
        error_advise(error, "--segment N takes one that is committed: it may still turn out false");
        return STATUS_NOT_FOUND;
    }
    fetching->final = segment < record->state.finalized;
    return job_states_end(&fetching->place, fetching->source.ledger, record, segment, error);
}

static void show_progress(void *context, uint64_t bytes, uint64_t total)
{
    struct progress *progress = context;

    progress->total = total >> 10;
    progress_update(progress, bytes >> 10, "", steady_seconds());
}

static enum status fetch_state(struct fetching *fetching, struct error *error)
{
    const struct options *options = fetching->context->options;
    const char *folder = options_text(options, "out");
    bool whole = options_flag(options, "with-optimizer");
    char job[FILE_PATH_MAX];
    char name[40] = "model.safetensors";
    enum status status;

    if (whole) {
        /* The name of a checkpoint in a bundle: a run can resume from it. */
        (void)snprintf(name, sizeof(name), "%012" PRIu64 ".safetensors", fetching->place.step);
    }
    TRY(file_make_folder(folder, error, 0755));
    TRY(file_path_join(fetching->path, sizeof(fetching->path), error, folder, name));
    TRY(file_path_join(job, sizeof(job), error, folder, "job"));
    /* The job's tape says which tensors the state has, and so which hashes there are. */
    TRY(job_source_get(&fetching->source, job, error));
    fetching->fetch = (struct piece_fetch){.mirrors = &fetching->source.mirrors,
                                           .job = fetching->source.job,
                                           .step = fetching->place.step,
                                           .root = fetching->place.root,
                                           .whole = whole,
                                           .progress = show_progress,
                                           .context = &fetching->progress};
    progress_init(&fetching->progress, command_people(fetching->context) == NULL ? NULL : stderr,
                  "fetching", "KiB", 0, 0, steady_seconds());
    status = piece_fetch_run(&fetching->fetch, fetching->path, error);
    if (fetching->progress.drawn_s >= 0) {
        progress_finish(&fetching->progress,
                        status == STATUS_OK ? fetching->fetch.total >> 10
                                            : fetching->progress.rate_count,
                        "", steady_seconds());
    }
    return status;
}

/* ---- the command --------------------------------------------------------------------------- */

static int report_fetched(const struct fetching *fetching)
{
    struct command_context *context = fetching->context;
    const struct piece_fetch *fetch = &fetching->fetch;
    char root[HEX_SIZE(DIGEST_SIZE)];
    json_t *facts;

    hex_encode(root, fetching->place.root.bytes, DIGEST_SIZE);
    facts = json_pack("{s:s, s:s, s:I, s:I, s:b, s:I, s:I}", "file", fetching->path, "root", root,
                      "step", (json_int_t)fetching->place.step, "segment",
                      (json_int_t)fetching->place.segment, "final", (int)fetching->final, "bytes",
                      (json_int_t)fetch->total, "resumed", (json_int_t)fetch->resumed);
    job_source_report(&fetching->source, facts);
    if (command_people(context) != NULL) {
        job_source_report(&fetching->source, NULL);
    }
    return command_say(
        context, facts, "%s: the state before step %" PRIu64 ", root %.16s..., as committed%s\n",
        fetching->path, fetching->place.step, root,
        fetching->final ? " and final" : "; the segment is NOT final and may turn out false");
}

/* Makes a folder of Hugging Face of what was fetched, where that is asked for. */
static enum status export_model(const struct fetching *fetching, struct error *error)
{
    const struct options *options = fetching->context->options;
    struct model_export wanted = {.folder = options_text(options, "hf"),
                                  .base = options_text(options, "base"),
                                  .merge = options_flag(options, "merge"),
                                  .job = fetching->source.job,
                                  .step = fetching->place.step,
                                  .root = fetching->place.root};
    struct safetensors state;
    enum status status;

    if (wanted.folder == NULL) {
        return STATUS_OK;
    }
    TRY(safetensors_open(&state, error, fetching->path));
    wanted.state = &state;
    status = model_export(&wanted, error);
    safetensors_close(&state);
    return status;
}

int job_fetch_run(struct command_context *context)
{
    struct fetching *fetching = calloc(1, sizeof(*fetching));
    struct error error;
    enum status status;
    int code;

    error_init(&error);
    if (fetching == NULL) {
        (void)error_set(&error, STATUS_NO_MEMORY, "no memory to fetch");
        return command_fail(context, &error);
    }
    fetching->context = context;
    fetching->stop.descriptor = -1;
    TRY_OUT(
        job_source_open(&fetching->source, context->options->arguments[0], context, NULL, &error));
    TRY_OUT(stop_open(&fetching->stop, &error));
    if (options_flag(context->options, "wait")) {
        TRY_OUT(job_source_wait(&fetching->source, context, &fetching->stop, &error));
    }
    TRY_OUT(choose_state(fetching, &error));
    fetching->source.mirrors.stop = &fetching->stop;
    TRY_OUT(fetch_state(fetching, &error));
    TRY_OUT(export_model(fetching, &error));
out:
    /* JSON has the mirrors in the one object that a success prints, and a failure prints its
     * own. */
    if (status != STATUS_OK && command_people(context) != NULL) {
        job_source_report(&fetching->source, NULL);
    }
    code = status == STATUS_OK ? report_fetched(fetching) : command_fail(context, &error);
    stop_close(&fetching->stop);
    job_source_close(&fetching->source);
    free(fetching);
    return code;
}

/* ---- job check ----------------------------------------------------------------------------- */

/* The job file that the options name, the one beside the file, or a mirror's. */
static enum status find_job_file(struct job_source *source, const struct options *options,
                                 struct error *error)
{
    const char *file = options->arguments[1];
    const char *named = options_text(options, "job-file");
    const char *slash = strrchr(file, '/');
    char path[FILE_PATH_MAX];
    char folder[] = "/tmp/lockstep-XXXXXX";
    enum status status;

    (void)snprintf(path, sizeof(path), "%.*sjob", slash == NULL ? 0 : (int)(slash + 1 - file),
                   file);
    if (named != NULL || file_exists(path)) {
        return job_source_get(source, named != NULL ? named : path, error);
    }
    if (whole_file_make_part(folder, 0700, true) < 0) {
        return error_set_errno(error, "cannot make a folder below /tmp");
    }
    (void)snprintf(path, sizeof(path), "%s/job", folder);
    status = job_source_get(source, path, error);
    /* Only for as long as it takes to read it: nothing of a check stays behind. */
    (void)unlink(path);
    (void)rmdir(folder);
    return status;
}

static enum status find_state(struct job_states_place *place, struct job_source *source,
                              const struct safetensors *file, struct error *error)
{
    struct digest root;

    TRY(checkpoint_file_root(&root, file, source->job->tape, error));
    TRY(job_states_find(place, source->ledger, &source->record, &root, error));
    return checkpoint_file_says(file, source->job, place->step, &root)
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT,
                           "it holds the state before step %" PRIu64 ", and says something else",
                           place->step);
}

static enum status check_file(struct job_states_place *place, struct job_source *source,
                              const char *path, struct error *error)
{
    struct safetensors file;
    struct error why;
    enum status status;

    error_init(&why);
    status = safetensors_open(&file, &why, path);
    if (status == STATUS_OK) {
        status = find_state(place, source, &file, &why);
        safetensors_close(&file);
    }
    return status == STATUS_NOT_FOUND || status == STATUS_BAD_FORMAT || status == STATUS_OVER_LIMIT
               ? error_set(error, STATUS_REFUSED, "%.200s is no state of this job: %.200s", path,
                           why.text)
           : status != STATUS_OK ? error_set(error, status, "%s", why.text)
                                 : STATUS_OK;
}

int job_fetch_check(struct command_context *context)
{
    struct job_source *source = calloc(1, sizeof(*source));
    const char *const *arguments = (const char *const *)context->options->arguments;
    struct job_states_place place;
    char root[HEX_SIZE(DIGEST_SIZE)];
    struct error error;
    enum status status;
    bool final = false;

    error_init(&error);
    TRY_OUT(source == NULL ? error_set(&error, STATUS_NO_MEMORY, "no memory to check")
                           : job_source_open(source, arguments[0], context, NULL, &error));
    TRY_OUT(find_job_file(source, context->options, &error));
    TRY_OUT(check_file(&place, source, arguments[1], &error));
    /* The state follows from the ledger's root; whether it is final is a fact of now. */
    final = place.segment < source->record.state.finalized;
out:
    if (source != NULL) {
        job_source_close(source);
    }
    free(source);
    if (status != STATUS_OK) {
        return command_fail(context, &error);
    }
    hex_encode(root, place.root.bytes, DIGEST_SIZE);
    return command_say(context,
                       json_pack("{s:s, s:I, s:I, s:b}", "root", root, "step",
                                 (json_int_t)place.step, "segment", (json_int_t)place.segment,
                                 "final", (int) final),
                       "%s: the state before step %" PRIu64 ", %s segment %u, as committed%s\n",
                       arguments[1], place.step, place.end ? "the end of" : "within", place.segment,
                       final ? " and final" : "; the segment is NOT final and may turn out false");
}
