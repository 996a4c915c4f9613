/* ranks_launch.c - see ranks_launch.h. */
#include "prover/commands/ranks_launch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/io/log.h"
#include "base/io/spawn.h"
#include "base/steady.h"
#include "engine/ranks/rank_step.h"
#include "proofs/run/run.h"
#include "prover/confined/confined_child.h"
#include "prover/ranks/ranks_agree.h"
#include "prover/ranks/ranks_machine.h"
#include "prover/ranks/ranks_mpi.h"
#include "prover/ranks/ranks_team.h"

enum {
    WORDS_MAX = 1024,
    LINE_SIZE_MAX = 1 << 20, /* bytes of this process's command line */
    END_MS = 10000,
    QUARTERS = 2, /* of the memory that a machine may take: sums beside it */
};

/* ---- which rank -------------------------------------------------------------------------- */

enum status ranks_launch_read(struct ranks_launch *launch, struct machine_options *machine,
                              const struct options *options, struct error *error)
{
    struct ranks_place *place = &launch->place;

    TRY(ranks_place_read(place, options_text(options, "ranks"), options_text(options, "ranks-at"),
                         error));
    launch->cross_check = options_number(options, "cross-check");
    if (options_given(options, "cross-check") &&
        (place->rank_count == 1 || launch->cross_check == 0)) {
        return error_set(error, STATUS_USAGE,
                         "--cross-check takes a number of steps, and two ranks at least");
    }
    if (place->rank_count == 1) {
        return STATUS_OK;
    }
    if (place->launched) { /* it would call a dead rank 0 for a minute */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (place->starter != 0 && getppid() != place->starter) { /* it died before that */
            return error_set(error, STATUS_RANK_LOST, "rank 0, which started this rank, is gone");
        }
    }
    /* The ranks of one machine share its cores; each has a GPU of its own. */
    if (place->local_count > 1 && !options_given(options, "threads")) {
        machine->thread_count /= (int)place->local_count;
        machine->thread_count = machine->thread_count < 1 ? 1 : machine->thread_count;
    }
    if (machine->backend == &backend_cuda && strcmp(options_text(options, "device"), "cuda") == 0) {
        machine->device = place->local;
    }
    return STATUS_OK;
}

enum status ranks_launch_check(const struct ranks_launch *launch, const struct job *job,
                               const struct machine_options *machine, const struct log *log,
                               struct error *error)
{
    struct rank_wire wire;

    if (launch->place.rank_count == 1) {
        return STATUS_OK;
    }
    if (machine->device_count > 1 || machine->device_memory != 0) {
        return error_set(error, STATUS_USAGE,
                         "a rank computes on one device, with all of its "
                         "memory: leave --device-memory out");
    }
    TRY(rank_step_wire(&wire, job->tape, launch->place.rank_count, error));
    if (wire.spare > 0 && launch->place.rank == 0) {
        log_info(log, "ranks",
                 "%u of %u ranks are spare: the job has %u groups of micro-batches, and these "
                 "ranks hold shards of the states only",
                 wire.spare, launch->place.rank_count, wire.groups);
    }
    return STATUS_OK;
}

/* ---- rank 0 ------------------------------------------------------------------------------ */

/* This process's own command line, which the others run too. *line: the caller frees it. */
static enum status read_words(const char *words[WORDS_MAX], char **line, struct error *error)
{
    FILE *file = fopen("/proc/self/cmdline", "re");
    uint32_t count = 0;
    size_t size = 0;

    *line = malloc(LINE_SIZE_MAX);
    if (file != NULL && *line != NULL) {
        size = fread(*line, 1, LINE_SIZE_MAX, file);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    if (size == 0 || size == LINE_SIZE_MAX || (*line)[size - 1] != '\0') {
        return error_set(error, STATUS_IO, "this program cannot read its own command line");
    }
    for (size_t at = 0; at < size && count + 1 < WORDS_MAX; count++) {
        words[count] = *line + at;
        at += strlen(*line + at) + 1;
    }
    words[count] = NULL;
    return STATUS_OK;
}

static enum status start_others(struct ranks_launch *launch, const char *at, struct error *error)
{
    const char *words[WORDS_MAX];
    char *line = NULL;
    enum status status;

    launch->others = calloc(launch->place.rank_count, sizeof(*launch->others));
    if (launch->others == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u ranks",
                         launch->place.rank_count);
    }
    TRY_OUT(read_words(words, &line, error));
    for (uint32_t rank = 1; rank < launch->place.rank_count; rank++) {
        TRY_OUT(ranks_place_tell(&launch->place, rank, at, error));
        TRY_OUT(spawn_program(
            &launch->others[launch->other_count], SPAWN_SELF, words,
            &(struct spawn_files){.input = -1, .output = STDERR_FILENO, .further = -1}, error));
        launch->other_count++;
    }
out:
    ranks_place_forget();
    free(line);
    return status;
}

enum status ranks_launch_begin(struct ranks_launch *launch, struct error *error)
{
    char at[RANKS_PLACE_MAX];
    const char *secret;

    if (launch->place.rank_count == 1 || launch->place.mpi != RANKS_MPI_NONE) {
        return STATUS_OK;
    }
    TRY(ranks_place_secret(&secret, &launch->place, error));
    TRY(ranks_meet_listen(&launch->listener, at, launch->place.at, error));
    return launch->place.launches ? start_others(launch, at, error) : STATUS_OK;
}

void ranks_launch_met(struct ranks_launch *launch)
{
    if (launch->listener >= 0) {
        (void)close(launch->listener);
        launch->listener = -1;
    }
}

void ranks_launch_end(struct ranks_launch *launch)
{
    const uint64_t end_ms = steady_ms() + END_MS;

    ranks_launch_met(launch);
    /* All end by themselves; those that do not have that long together. */
    for (uint32_t i = 0; i < launch->other_count; i++) {
        const uint64_t now_ms = steady_ms();

        (void)spawn_end(&launch->others[i], 0, now_ms < end_ms ? (uint32_t)(end_ms - now_ms) : 0);
    }
    free(launch->others);
    launch->others = NULL;
    launch->other_count = 0;
}

/* ---- the others -------------------------------------------------------------------------- */

static enum status follow_run(struct ranks_team *team, const char *checkpoints,
                              const struct job *job, const struct data_paths *data,
                              const struct machine_options *machine, struct error *error)
{
    const struct ranks_machine_plan plan = {
        .team = team, .job = job->id, .own = *machine, .folder = checkpoints};
    const struct machine_options options = ranks_machine_options(&plan);
    struct run run = {.machine = NULL};
    enum status status =
        run_open(&run, job, (const char *const *)data->of, data->count, &options, error);

    if (status != STATUS_OK) {
        return team->agreed ? status : ranks_agree(team, &job->id, status, error);
    }
    status = ranks_machine_follow(run.machine, error);
    run_close(&run);
    return status;
}

static enum status meet_others(struct ranks_team *team, const struct ranks_place *place,
                               struct error *error)
{
    const char *secret;

    if (place->mpi != RANKS_MPI_NONE) {
        return ranks_mpi_open(team, place, error);
    }
    TRY(ranks_place_secret(&secret, place, error));
    TRY(ranks_tcp_open(team, place->rank, place->rank_count, error));
    return ranks_meet_call(team, place->at, secret, error);
}

enum status ranks_launch_follow(const struct ranks_launch *launch, const char *bundle,
                                const struct job *job, const struct data_paths *data,
                                const struct machine_options *machine, struct error *error)
{
    const struct ranks_place *place = &launch->place;
    struct confined_plan confined = {.follows = true,
                                     .machine = *machine,
                                     .on_cuda = machine->backend == &backend_cuda,
                                     .ranks = place->rank_count,
                                     .cross_check = launch->cross_check,
                                     .mpi = place->mpi,
                                     .data_count = data->count};
    struct ranks_team team = {.peers = NULL};
    enum status status;

    /* Rank 0 has made the bundle before it meets anybody: this rank may write to files in its
     * folder of checkpoints. */
    TRY_OUT(file_path_join(confined.folder, sizeof(confined.folder), error, bundle,
                           BUNDLE_CHECKPOINTS));
    TRY_OUT(meet_others(&team, place, error));
    confined_child_confine(&confined, (const char *const *)data->of, QUARTERS);
    status = follow_run(&team, confined.folder, job, data, machine, error);
out:
    ranks_team_close(&team);
    return status == STATUS_OK ? status : error_wrap(error, "rank %u", place->rank);
}
