/* self_test.c - see self_test.h. */
#include "verifier/check/self_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/ops/philox.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/state_root.h"
#include "proofs/job/job_make.h"
#include "proofs/run/run.h"

enum {
    STEPS = 8,
    SEGMENT = 4,
    TOKENS = 4096,
    VOCABULARY = 64,
    MEMORY_MB = 1024,
    MIRROR_TIMEOUT_S = 5,
    CHECK_TIME_S = 120,
};

/* What a round does to its run. */
enum trick {
    TRICK_NONE,     /* must be proven */
    TRICK_FALSE,    /* one element of one step, one unit in the last place: must be refuted there */
    TRICK_WITHHOLD, /* the segment's first state is missing: CANNOT_TELL */
    TRICK_DISAGREE, /* the second replay is made to disagree: a fault of the machine */
    TRICK_COUNT,
};

struct round {
    const struct self_test_options *options;
    uint64_t number;
    enum trick trick;
    uint32_t step; /* of the job: the false one */
    struct digest roots[STEPS];
    struct check_request *request;
    char bundle[FILE_PATH_MAX];
    char data[FILE_PATH_MAX];
};

static uint32_t draw_below(const struct round *round, uint32_t what, uint32_t limit)
{
    struct philox_block block = philox_draw(round->number, what, UINT32_MAX, round->options->seed);

    return (uint32_t)philox_below(&block, limit);
}

/* ---- a job and a run of it ------------------------------------------------ */

static enum status write_data(const struct round *round, struct error *error)
{
    uint8_t tokens[TOKENS];

    for (uint32_t i = 0; i < TOKENS; i++) {
        struct philox_block block =
            philox_draw(i, (uint32_t)round->number, UINT32_MAX - 1, round->options->seed);

        tokens[i] = (uint8_t)philox_below(&block, VOCABULARY);
    }
    return file_write(round->data, error, tokens, sizeof(tokens), 0600);
}

static enum status make_job(struct job **job, const struct round *round, struct error *error)
{
    struct digest root;
    struct job_terms terms = {
        .steps = STEPS, .segment_length = SEGMENT, .data_roots = &root, .data_count = 1};
    struct model_options options;
    struct dataset dataset;
    struct model model;
    enum status status;

    model_options_default(&options, MODEL_GPT2);
    options.batch = 1;
    options.length = options.positions = 8;
    options.layers = 1;
    options.heads = 1;
    options.width = 8;
    options.vocabulary = VOCABULARY;
    options.steps = STEPS;
    options.warmup = 2;
    options.seed = round->options->seed + round->number;
    options.data_count = TOKENS;
    options.data_dtype = DTYPE_U8;
    status = model_build(&model, &options, error);
    if (status != STATUS_OK) {
        return status;
    }
    status = run_data_open(&dataset, &root, &model.tape->tensors[model.data], round->data, error);
    if (status == STATUS_OK) {
        dataset_close(&dataset);
        status = job_from_model(job, &model, &terms, error);
    }
    model_release(&model);
    return status;
}

/* Flips the last bit of one element of one binary32 state. */
static enum status falsify_state(struct run *run, const struct round *round, struct error *error)
{
    const struct tape *tape = run->job->tape;
    uint32_t first = draw_below(round, 1, tape->state_count);
    uint32_t id = TENSOR_NONE;
    enum status status;
    uint32_t *bits;

    for (uint32_t i = 0; i < tape->state_count && id == TENSOR_NONE; i++) {
        uint32_t candidate = tape->states[(first + i) % tape->state_count].before;

        id = tape->tensors[candidate].dtype == DTYPE_F32 ? candidate : TENSOR_NONE;
    }
    bits = malloc(commit_tensor_size(&tape->tensors[id]));
    if (bits == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a false step");
    }
    TRY_OUT(run->machine->backend->read(run->machine, id, bits, error));
    bits[draw_below(round, 2, (uint32_t)tape->tensors[id].count)] ^= 1;
    TRY_OUT(run->machine->backend->write(run->machine, id, bits, error));
out:
    free(bits);
    return status;
}

static enum status run_steps(struct round *round, struct bundle *bundle, struct run *run,
                             struct error *error)
{
    bool falsifies = round->trick == TRICK_FALSE || round->trick == TRICK_DISAGREE;
    uint64_t at = 0;

    TRY(bundle_restore(&at, bundle, run->machine, STEPS, error));
    for (uint32_t step = 0; step < STEPS; step++) {
        struct bundle_step entry = {.step = step, .microjoules = BUNDLE_ENERGY_UNKNOWN};

        TRY(run->machine->backend->step(run->machine, NULL, error));
        if (falsifies && step == round->step) {
            TRY(falsify_state(run, round, error));
        }
        TRY(state_root_of(&entry.root, run->machine, error));
        TRY(run_loss(&entry.loss_bits, run, error));
        TRY(bundle_record(bundle, &entry, error));
        if ((step + 1) % SEGMENT == 0) {
            TRY(bundle_checkpoint_write(bundle, run->machine, step + 1, error));
        }
        round->roots[step] = entry.root;
    }
    return STATUS_OK;
}

static enum status train_bundle(struct round *round, struct digest *job_id, struct error *error)
{
    const char *paths[] = {round->data};
    struct machine_options machine;
    struct bundle *bundle = NULL;
    struct job *job = NULL;
    struct run run = {0};
    enum status status;

    TRY_OUT(write_data(round, error));
    TRY_OUT(machine_options_default(&machine, error));
    TRY_OUT(make_job(&job, round, error));
    machine.thread_count = (int)round->options->threads;
    *job_id = job->id;
    TRY_OUT(bundle_create(&bundle, round->bundle, job, error));
    TRY_OUT(run_open(&run, bundle_job(bundle), paths, 1, &machine, error));
    TRY_OUT(run_steps(round, bundle, &run, error));
out:
    run_close(&run);
    bundle_close(bundle);
    return status;
}

/* ---- the check ------------------------------------------------------------ */

static enum status withhold_state(const struct round *round, struct error *error)
{
    char path[FILE_PATH_MAX + 64];

    (void)snprintf(path, sizeof(path), "%s/checkpoints/%012d.safetensors", round->bundle, SEGMENT);
    return unlink(path) == 0 ? STATUS_OK : error_set_errno(error, "cannot remove %s", path);
}

static void fill_request(struct round *round, const struct digest *job_id)
{
    struct check_request *request = round->request;
    bool alone = round->trick == TRICK_WITHHOLD;

    memset(request, 0, sizeof(*request));
    request->job_id = *job_id;
    request->steps = STEPS;
    request->segment_steps = SEGMENT;
    request->index = round->step / SEGMENT;
    request->reach = STEPS / SEGMENT;
    for (uint32_t i = 0; i <= request->index; i++) {
        struct check_segment *segment = &request->segments[request->segment_count++];

        segment->steps = SEGMENT;
        memcpy(segment->states, &round->roots[i * SEGMENT], SEGMENT * sizeof(round->roots[0]));
        commit_list_root(&segment->root, COMMIT_SEGMENT, (uint64_t)i * SEGMENT,
                         &round->roots[i * SEGMENT], SEGMENT);
    }
    if (alone) { /* only the segment is in reach; its first state is gone */
        request->segments[0] = request->segments[request->index];
        request->segment_count = 1;
    }
    memset(request->seed.bytes, (int)draw_below(round, 3, 255) + 1, HASH32_SIZE);
    request->proven = draw_below(round, 5, GAME_LEAVES) + 1;
    request->disagree = round->trick == TRICK_DISAGREE;
    (void)snprintf(request->cache, sizeof(request->cache), "%.3900s/cache", round->options->folder);
    request->mirror_count = 1;
    (void)snprintf(request->mirrors[0], FILE_PATH_MAX, "%s", round->bundle);
    request->data_count = 1;
    (void)snprintf(request->data[0], FILE_PATH_MAX, "%s", round->data);
    request->memory_max = (uint64_t)MEMORY_MB << 20;
    request->file_max = (uint64_t)MEMORY_MB << 20;
    request->mirror_timeout_s = MIRROR_TIMEOUT_S;
    request->processor_s = CHECK_TIME_S;
    request->threads = round->options->threads;
    (void)snprintf(request->device, sizeof(request->device), "%s",
                   round->options->device == NULL ? "cpu" : round->options->device);
    request->device_memory = round->options->device_memory;
}

static enum status wait_for(struct check_result *result, const struct round *round,
                            struct error *error)
{
    const struct check_port *checks = &round->options->checks;
    enum status status = checks->start(checks->context, round->number + 1, round->request, error);

    while (status == STATUS_OK) {
        struct timespec pause = {0, 2000000};
        uint64_t number = 0;

        status = checks->take(checks->context, &number, result, error);
        if (status == STATUS_OK) {
            return STATUS_OK;
        }
        if (status == STATUS_NOT_FOUND) {
            status = stop_requested(round->options->stop)
                         ? error_set(error, STATUS_STOPPED, "stopped")
                         : STATUS_OK;
            (void)nanosleep(&pause, NULL);
        }
    }
    return status;
}

/* Does the wanted leaf stand where the seed draws it? */
static bool is_proof(const struct check_request *request, const struct check_result *result)
{
    const struct check_segment *segment = &request->segments[request->segment_count - 1];
    const struct game_right *right = &result->rights[request->proven - 1];
    const struct leaf_proof_place place = {right->step, right->tensor, right->leaf};
    struct leaf_proof proof;
    struct error error;

    error_init(&error);
    return result->has_leaves &&
           leaf_proof_read(&proof, result->proof, result->proof_size, &error) == STATUS_OK &&
           leaf_proof_check(&proof, &segment->root, (uint64_t)request->index * SEGMENT,
                            segment->steps, &place) == VERDICT_VALID;
}

static bool is_right(const struct round *round, const struct check_result *result)
{
    bool there = result->index == round->step / SEGMENT && result->step == round->step % SEGMENT;

    switch (round->trick) {
    case TRICK_NONE:
        return result->outcome == CHECK_PROVEN && is_proof(round->request, result);
    case TRICK_FALSE:
        return result->outcome == CHECK_REFUTED && there && result->flaw == CHECK_FLAW_STATE;
    case TRICK_WITHHOLD:
        return result->outcome == CHECK_CANNOT_TELL;
    case TRICK_DISAGREE:
        return result->outcome == CHECK_FAULT && there;
    case TRICK_COUNT:
        break;
    }
    return false;
}

/* ---- rounds --------------------------------------------------------------- */

static void empty_folder(const char *path, int depth)
{
    DIR *folder = opendir(path);
    struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char inner[FILE_PATH_MAX];

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            snprintf(inner, sizeof(inner), "%.3800s/%s", path, entry->d_name) >=
                (int)sizeof(inner)) {
            continue;
        }
        if (unlink(inner) != 0 && depth > 0) {
            empty_folder(inner, depth - 1);
            (void)rmdir(inner);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

static void count_answer(struct self_test_result *result, const struct round *round,
                         const struct check_result *answer)
{
    uint64_t *const counts[] = {&result->cannot_tell, &result->proven, &result->refuted,
                                &result->fault};
    char line[sizeof(result->first_wrong)];

    (*counts[answer->outcome])++;
    if (is_right(round, answer)) {
        return;
    }
    (void)snprintf(line, sizeof(line),
                   "round %" PRIu64 " of seed %" PRIu64 ", trick %d at step %u: the answer was %s"
                   " at segment %u step %u: %.200s",
                   round->number, round->options->seed, (int)round->trick, round->step,
                   check_outcome_name(answer->outcome), answer->index, answer->step,
                   answer->reason);
    if (result->wrong++ == 0) {
        memcpy(result->first_wrong, line, sizeof(line));
    }
    if (round->options->on_wrong != NULL) {
        round->options->on_wrong(round->options->context, line);
    }
}

static enum status one_round(struct self_test_result *result, struct round *round,
                             struct error *error)
{
    struct check_result *answer = malloc(sizeof(*answer));
    struct digest job_id;
    enum status status;

    TRY_OUT(answer == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory")
                           : file_make_folder(round->options->folder, error, 0700));
    empty_folder(round->options->folder, 3);
    round->trick = (enum trick)draw_below(round, 0, TRICK_COUNT);
    round->step = draw_below(round, 4, STEPS);
    if (round->trick == TRICK_WITHHOLD) {
        round->step = SEGMENT + round->step % SEGMENT;
    }
    TRY_OUT(train_bundle(round, &job_id, error));
    if (round->trick == TRICK_WITHHOLD) {
        TRY_OUT(withhold_state(round, error));
    }
    fill_request(round, &job_id);
    TRY_OUT(wait_for(answer, round, error));
    count_answer(result, round, answer);
out:
    free(answer);
    return status;
}

enum status self_test(struct self_test_result *result, const struct self_test_options *options,
                      struct error *error)
{
    struct round *round = calloc(1, sizeof(*round));
    enum status status = STATUS_OK;

    memset(result, 0, sizeof(*result));
    if (round == NULL || (round->request = calloc(1, sizeof(*round->request))) == NULL) {
        free(round);
        return error_set(error, STATUS_NO_MEMORY, "no memory for a self-test");
    }
    round->options = options;
    (void)snprintf(round->bundle, sizeof(round->bundle), "%.3900s/run", options->folder);
    (void)snprintf(round->data, sizeof(round->data), "%.3900s/tokens.u8", options->folder);
    while (status == STATUS_OK && (options->rounds == 0 || round->number < options->rounds)) {
        status = one_round(result, round, error);
        round->number++;
        if (status == STATUS_OK && stop_requested(options->stop)) {
            status = STATUS_STOPPED;
        }
    }
    empty_folder(options->folder, 3);
    free(round->request);
    free(round);
    return status == STATUS_STOPPED ? STATUS_OK : status;
}
