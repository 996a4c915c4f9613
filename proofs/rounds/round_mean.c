/* round_mean.c - see round_mean.h. */
#include "proofs/rounds/round_mean.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tape/builder.h"
#include "proofs/bundle/bundle.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/state_root.h"
#include "proofs/job/job_make.h"
#include "proofs/rounds/round_trees.h"
#include "proofs/run/data_paths.h"
#include "proofs/run/run.h"

#define VELOCITY "outer."

uint32_t round_mean_count(const struct round_record *record)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < record->owner_count; i++) {
        count += record->owners[i].has_state;
    }
    return count;
}

static const struct tensor *tensor_of(const struct round_mean *mean, uint32_t state)
{
    return &mean->tape->tensors[mean->tape->states[state].before];
}

static bool takes_state(const struct round_mean *mean, uint32_t state)
{
    return round_trees_takes(mean->tape, state, mean->rounds->keep_moments);
}

/* Only what is trained takes the outer step. */
static bool has_velocity(const struct round_mean *mean, uint32_t state)
{
    return rounds_has_outer(mean->rounds) && first_state_is_parameter(mean->tape, state);
}

static bool velocity_name(char name[TENSOR_NAME_MAX + 1], const char *tensor)
{
    return round_trees_prefix(name, VELOCITY, tensor);
}

static enum status check_names(const struct round_mean *mean, struct error *error)
{
    for (uint32_t i = 0; i < mean->tape->state_count; i++) {
        const char *name = tensor_of(mean, i)->name;
        char longer[TENSOR_NAME_MAX + 1];

        if (takes_state(mean, i) && (!velocity_name(longer, name) ||
                                     !round_trees_name(longer, ROUNDS_OWNERS_MAX - 1, name))) {
            return error_set(error, STATUS_OVER_LIMIT, "the name '%s' is too long to be averaged",
                             name);
        }
    }
    return STATUS_OK;
}

/* ---- the program ---------------------------------------------------------- */

static uint32_t add_tensor(struct builder *builder, const char *name, const struct tensor *like,
                           enum role role)
{
    return build_tensor(builder, name, like->dtype, role, like->rank, like->dims);
}

/* data: of the first owner; those of the others follow, `stride` tensors apart. */
static uint32_t build_average(struct builder *builder, uint32_t data, uint32_t stride,
                              uint32_t count)
{
    uint32_t sum = data;

    for (uint32_t i = 1; i < count; i++) {
        sum = build_binary(builder, BINARY_ADD, sum, data + i * stride);
    }
    return build_scale(builder, sum, 1.0f / (float)count);
}

/* The next value of a parameter, and of its velocity. */
static uint32_t build_outer(struct builder *builder, const struct rounds *rounds, uint32_t start,
                            uint32_t velocity, uint32_t average)
{
    const float momentum = rounds_outer_momentum(rounds);
    uint32_t d = build_binary(builder, BINARY_SUB, start, average);
    uint32_t v = build_binary(builder, BINARY_ADD, build_scale(builder, velocity, momentum), d);
    uint32_t step = build_binary(builder, BINARY_ADD, d, build_scale(builder, v, momentum));

    build_after(builder, velocity, v);
    return build_binary(builder, BINARY_SUB, start,
                        build_scale(builder, step, rounds_outer_rate(rounds)));
}

struct mean_tensors {
    uint32_t *states;     /* for each state of the jobs' tape; those that are averaged */
    uint32_t *velocities; /* likewise */
    uint32_t first_data;
    uint32_t stride; /* data tensors of an owner */
};

static void add_tensors(struct mean_tensors *tensors, struct builder *builder,
                        const struct round_mean *mean)
{
    char name[TENSOR_NAME_MAX + 1];

    for (uint32_t i = 0; i < mean->tape->state_count; i++) {
        const struct tensor *like = tensor_of(mean, i);

        if (!takes_state(mean, i)) {
            continue;
        }
        tensors->states[i] = add_tensor(builder, like->name, like, ROLE_STATE);
        tensors->stride++;
        if (has_velocity(mean, i)) {
            (void)velocity_name(name, like->name);
            tensors->velocities[i] = add_tensor(builder, name, like, ROLE_STATE);
        }
    }
    tensors->first_data = UINT32_MAX;
    for (uint32_t owner = 0; owner < mean->record->owner_count; owner++) {
        for (uint32_t i = 0; i < mean->tape->state_count; i++) {
            if (mean->record->owners[owner].has_state && takes_state(mean, i)) {
                (void)round_trees_name(name, owner, tensor_of(mean, i)->name);

                uint32_t id = add_tensor(builder, name, tensor_of(mean, i), ROLE_DATA);

                tensors->first_data = id < tensors->first_data ? id : tensors->first_data;
            }
        }
    }
}

static void build_step_of_mean(struct mean_tensors *tensors, struct builder *builder,
                               const struct round_mean *mean)
{
    const uint32_t count = round_mean_count(mean->record);
    uint32_t data = tensors->first_data;

    for (uint32_t i = 0; i < mean->tape->state_count; i++) {
        uint32_t next;

        if (!takes_state(mean, i)) {
            continue;
        }
        next = build_average(builder, data++, tensors->stride, count);
        if (has_velocity(mean, i)) {
            next = build_outer(builder, mean->rounds, tensors->states[i], tensors->velocities[i],
                               next);
        }
        build_after(builder, tensors->states[i], next);
    }
}

static enum status make_tape(struct tape **tape, const struct round_mean *mean, struct error *error)
{
    struct mean_tensors tensors = {
        .states = calloc((size_t)mean->tape->state_count + 1, sizeof(uint32_t)),
        .velocities = calloc((size_t)mean->tape->state_count + 1, sizeof(uint32_t))};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    enum status status;

    if (tensors.states == NULL || tensors.velocities == NULL || builder == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for the program of a mean");
        goto out;
    }
    add_tensors(&tensors, builder, mean);
    build_step_of_mean(&tensors, builder, mean);
    status = builder_finish(tape, builder, error);
out:
    builder_free(builder);
    free(tensors.velocities);
    free(tensors.states);
    return status;
}

/* ---- its roots ------------------------------------------------------------ */

/* In the order of make_tape(): of the data, from the trees of the owners. */
static void find_data_roots(struct digest *roots, const struct round_mean *mean)
{
    uint32_t at = 0;

    for (uint32_t owner = 0; owner < mean->record->owner_count; owner++) {
        const struct round_owner *one = &mean->record->owners[owner];

        for (uint32_t i = 0; one->has_state && i < mean->tape->state_count; i++) {
            if (takes_state(mean, i)) {
                commit_tensor_root_of(&roots[at++], COMMIT_DATA, tensor_of(mean, i),
                                      &one->trees[i]);
            }
        }
    }
}

/* Of the first state, from the trees of the start and of the velocity. */
static enum status find_first_root(struct digest *root, const struct tape *made,
                                   const struct round_mean *mean, struct error *error)
{
    struct digest *trees = calloc((size_t)made->state_count + 1, sizeof(*trees));
    uint32_t at = 0;
    enum status status;

    if (trees == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the roots of a mean");
    }
    for (uint32_t i = 0; i < mean->tape->state_count; i++) {
        if (!takes_state(mean, i)) {
            continue;
        }
        trees[at++] = mean->start[i];
        if (has_velocity(mean, i) && mean->velocity != NULL) {
            trees[at++] = mean->velocity[i];
        } else if (has_velocity(mean, i)) {
            round_trees_zero(&trees[at++], tensor_of(mean, i));
        }
    }
    status = round_trees_root(root, trees, made, error);
    free(trees);
    return status;
}

static enum status check_trees(const struct round_mean *mean, struct error *error)
{
    for (uint32_t i = 0; i < mean->record->owner_count; i++) {
        const struct round_owner *one = &mean->record->owners[i];

        if (one->has_state && one->tree_count != mean->tape->state_count) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "the state of '%s' has %u trees, and the job %u tensors",
                             mean->record->names[i], one->tree_count, mean->tape->state_count);
        }
    }
    return round_mean_count(mean->record) > 0
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "no owner gave a state");
}

enum status round_mean_job(struct job **job, const struct round_mean *mean, struct error *error)
{
    struct job_terms terms = {
        .steps = 1, .segment_length = 1, .first_state_given = true, .model = "mean"};
    char title[JOB_TITLE_MAX + 1];
    struct digest *roots = NULL;
    struct tape *tape = NULL;
    enum status status;

    TRY(check_trees(mean, error));
    TRY(check_names(mean, error));
    (void)snprintf(title, sizeof(title), "round %u: the mean of %u states", mean->record->number,
                   round_mean_count(mean->record));
    terms.title = title;
    TRY_OUT(make_tape(&tape, mean, error));
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        terms.data_count += tape->tensors[id].role == ROLE_DATA;
    }
    roots = calloc((size_t)terms.data_count + 1, sizeof(*roots));
    TRY_OUT(roots == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory for roots") : STATUS_OK);
    find_data_roots(roots, mean);
    terms.data_roots = roots;
    TRY_OUT(find_first_root(&terms.first_state_root, tape, mean, error));
    status = job_from_tape(job, tape, calloc(1, sizeof(void *)), 0, &terms, error);
    tape = NULL; /* the job has it, also after a failure */
out:
    free(roots);
    tape_free(tape);
    return status;
}

/* ---- its data ------------------------------------------------------------- */

enum status round_mean_paths(char ***paths, const struct job *job, const struct round_mean *mean,
                             struct error *error)
{
    const uint32_t count = round_mean_count(mean->record);
    const uint32_t stride = count == 0 ? 0 : job->data_count / count;
    char **made = calloc((size_t)job->data_count + 1, sizeof(*made));
    uint32_t at = 0;
    enum status status = STATUS_OK;

    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the names of the states");
    }
    for (uint32_t owner = 0; owner < mean->record->owner_count; owner++) {
        char path[FILE_PATH_MAX];

        if (!mean->record->owners[owner].has_state) {
            continue;
        }
        TRY_OUT(rounds_owner_path(path, mean->folder, mean->record->number, owner, "safetensors",
                                  error));
        for (uint32_t i = 0; i < stride; i++) {
            made[at] = strdup(path);
            TRY_OUT(made[at] == NULL
                        ? error_set(error, STATUS_NO_MEMORY, "no memory for the names of states")
                        : STATUS_OK);
            at++;
        }
    }
out:
    if (status != STATUS_OK) {
        round_mean_paths_free(made);
        made = NULL;
    }
    *paths = made;
    return status;
}

void round_mean_paths_free(char **paths)
{
    for (uint32_t i = 0; paths != NULL && paths[i] != NULL; i++) {
        free(paths[i]);
    }
    free(paths);
}

/* ---- the step ------------------------------------------------------------- */

/* Reads a state of the mean's tape into the machine: from the start, or the mean before. */
static enum status write_state(struct run *run, uint32_t state, const struct safetensors *start,
                               const struct safetensors *before, struct error *error)
{
    const struct tape *tape = run->job->tape;
    const struct tensor *tensor = &tape->tensors[tape->states[state].before];
    const bool velocity = strncmp(tensor->name, VELOCITY, strlen(VELOCITY)) == 0;
    const struct safetensors *file = velocity ? before : start;
    const struct safetensors_entry *entry = NULL;
    void *bytes = calloc(1, tensor_size(tensor) + 1);
    enum status status = STATUS_OK;

    if (bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for '%s'", tensor->name);
    }
    if (file != NULL && safetensors_find(file, tensor->name) != NULL) {
        TRY_OUT(safetensors_find_tensor(&entry, file, tensor, error));
        TRY_OUT(safetensors_read(file, error, bytes, entry, tensor_size(tensor), 0));
    }
    status = run->machine->backend->write(run->machine, tape->states[state].before, bytes, error);
out:
    free(bytes);
    return status;
}

static enum status write_first(struct run *run, const char *start, const char *before,
                               struct error *error)
{
    struct safetensors first;
    struct safetensors last;
    enum status status;

    TRY(safetensors_open(&first, error, start));
    if (before != NULL) {
        status = safetensors_open(&last, error, before);
        if (status != STATUS_OK) {
            safetensors_close(&first);
            return status;
        }
    }
    status = STATUS_OK;
    for (uint32_t i = 0; i < run->job->tape->state_count && status == STATUS_OK; i++) {
        status = write_state(run, i, &first, before == NULL ? NULL : &last, error);
    }
    if (before != NULL) {
        safetensors_close(&last);
    }
    safetensors_close(&first);
    return status;
}

/* Checkpoint 0, the step, its root, checkpoint 1. */
static enum status take_step(struct bundle *bundle, struct run *run, struct error *error)
{
    struct bundle_step entry = {.loss_bits = FLOAT_NAN_BITS, .microjoules = BUNDLE_ENERGY_UNKNOWN};
    char device[BUNDLE_DEVICE_MAX];
    bool finite = false;

    run_describe(device, sizeof(device), &run->options);
    TRY(bundle_set_device(bundle, device, error));
    TRY(bundle_checkpoint_write(bundle, run->machine, 0, error));
    TRY(run->machine->backend->step(run->machine, NULL, error));
    TRY(state_root_find(&entry.root, &finite, run->machine, run->options.thread_count, error));
    if (!finite) {
        return error_set(error, STATUS_REFUSED,
                         "the mean holds a number that is not finite: the rounds end here");
    }
    TRY(bundle_record(bundle, &entry, error));
    TRY(bundle_flush(bundle, error));
    return bundle_checkpoint_write(bundle, run->machine, 1, error);
}

/* Takes job. */
static enum status make_bundle(const char *path, struct job *job, char *const *paths,
                               const char *start, const char *before, int threads,
                               struct error *error)
{
    struct data_paths remembered = {.of = (char **)(uintptr_t)paths, .count = job->data_count};
    struct bundle *bundle = NULL;
    struct run run = {0};
    struct machine_options machine;
    enum status status;

    TRY(bundle_create(&bundle, path, job, error));
    TRY_OUT(machine_options_default(&machine, error));
    machine.thread_count = threads == 0 ? machine.thread_count : threads;
    TRY_OUT(data_paths_remember(&remembered, bundle, error));
    TRY_OUT(run_open(&run, bundle_job(bundle), (const char *const *)paths, remembered.count,
                     &machine, error));
    TRY_OUT(write_first(&run, start, before, error));
    TRY_OUT(take_step(bundle, &run, error));
out:
    run_close(&run);
    bundle_close(bundle);
    return status;
}

/* Is the bundle whole, and of this job? */
static bool is_made(struct digest *root, const char *path, const struct job *job)
{
    struct bundle *bundle = NULL;
    uint64_t steps = 0;
    struct error none;
    bool made;

    error_init(&none);
    if (bundle_open(&bundle, path, BUNDLE_READ, &none) != STATUS_OK) {
        return false;
    }
    made = digest_equal(&bundle_job(bundle)->id, &job->id) &&
           bundle_step_count(&steps, bundle, &none) == STATUS_OK && steps == 1 &&
           bundle_checkpoint_check(bundle, 0, &none) == STATUS_OK &&
           bundle_checkpoint_check(bundle, 1, &none) == STATUS_OK &&
           bundle_state_root(root, bundle, 1, &none) == STATUS_OK;
    bundle_close(bundle);
    return made;
}

/* The path of the checkpoint after the mean's step. */
static enum status checkpoint_path(char path[FILE_PATH_MAX], const char *bundle_folder,
                                   struct error *error)
{
    struct bundle *bundle = NULL;
    enum status status;

    TRY(bundle_open(&bundle, bundle_folder, BUNDLE_READ, error));
    status = bundle_checkpoint_path(path, bundle, 1, error);
    bundle_close(bundle);
    return status;
}

enum status round_mean_make(struct digest *root, const struct round_mean *mean, const char *before,
                            int threads, struct error *error)
{
    char start[FILE_PATH_MAX];
    char path[FILE_PATH_MAX];
    char velocity[FILE_PATH_MAX];
    struct job *job = NULL;
    char **paths = NULL;
    enum status status = STATUS_OK;

    TRY(rounds_path(path, mean->folder, mean->record->number, ROUND_MEAN_FOLDER, error));
    TRY(rounds_path(start, mean->folder, mean->record->number, ROUND_START_FILE, error));
    TRY(round_mean_job(&job, mean, error));
    if (is_made(root, path, job)) {
        goto out;
    }
    file_remove_folder(path); /* what a crash left of it */
    TRY_OUT(round_mean_paths(&paths, job, mean, error));
    if (before != NULL) {
        TRY_OUT(checkpoint_path(velocity, before, error));
    }
    status = make_bundle(path, job, paths, start, before == NULL ? NULL : velocity, threads, error);
    job = NULL; /* the bundle had it */
    TRY_OUT(status);
    TRY_OUT(round_mean_job(&job, mean, error));
    if (!is_made(root, path, job)) {
        status = error_set(error, STATUS_IO, "%s is not what was written", path);
    }
out:
    round_mean_paths_free(paths);
    job_free(job);
    return status;
}

/* ---- what it holds -------------------------------------------------------- */

enum status round_mean_trees(struct digest *trees, struct digest *velocity, const char *checkpoint,
                             const struct tape *tape, struct error *error)
{
    struct tape renamed = *tape;
    enum status status;

    TRY(round_trees_read(trees, checkpoint, tape, UINT32_MAX, error));
    if (velocity == NULL) {
        return STATUS_OK;
    }
    renamed.tensors = malloc(sizeof(*renamed.tensors) * tape->tensor_count);
    if (renamed.tensors == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the names of a mean");
    }
    memcpy(renamed.tensors, tape->tensors, sizeof(*renamed.tensors) * tape->tensor_count);
    for (uint32_t i = 0; i < tape->state_count; i++) {
        struct tensor *tensor = &renamed.tensors[tape->states[i].before];

        (void)velocity_name(tensor->name, tape->tensors[tape->states[i].before].name);
    }
    status = round_trees_read(velocity, checkpoint, &renamed, UINT32_MAX, error);
    free(renamed.tensors);
    return status;
}
