/* federate_round.c - one round, from its first state to its record; see federation.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/strict_json.h"
#include "client/federate/federation.h"
#include "proofs/bundle/checkpoint_file.h"
#include "proofs/job/job_file.h"
#include "proofs/rounds/round_job.h"
#include "proofs/rounds/round_trees.h"

enum {
    PROGRESS_SIZE_MAX = 16 << 20,
    PROGRESS_DEPTH = 4,
};

#define PROGRESS "json"

static const struct tape *tape_of(const struct federate_round *round)
{
    return round->federation->plan.owners[0].job->tape;
}

/* ---- what a round begins with --------------------------------------------- */

static enum status read_start(struct federate_round *round, struct error *error)
{
    struct federation *federation = round->federation;
    const struct federate_plan *plan = &federation->plan;
    char path[FILE_PATH_MAX];

    TRY(rounds_path(path, federation->folder, round->number, "", error));
    TRY(file_make_folder(path, error, 0755));
    TRY(rounds_path(path, federation->folder, round->number, ROUND_START_FILE, error));
    if (!file_exists(path) && round->number == 1) {
        TRY(round_trees_begin(path, plan->owners[0].job, plan->first_state, error));
    }
    TRY(round_trees_read(round->start, path, tape_of(round), UINT32_MAX, error));
    return round_trees_root(&round->record.start, round->start, tape_of(round), error);
}

/* The record before, the root that it leads to, and the velocity there. */
static enum status read_before(struct federate_round *round, struct error *error)
{
    struct federation *federation = round->federation;
    struct round_record before;
    struct digest *unused = NULL;
    struct bundle *bundle = NULL;
    char path[FILE_PATH_MAX];
    enum status status;

    if (round->number == 1) {
        round->record.previous = federation->rounds.id;
        return digest_equal(&round->record.start, &federation->plan.owners[0].job->first_state_root)
                   ? STATUS_OK
                   : error_set(error, STATUS_BAD_FORMAT,
                               "the first state of the rounds is not that of the jobs");
    }
    TRY_OUT(round_record_read(&before, federation->folder, round->number - 1, error));
    round->record.previous = before.sha256;
    if (!digest_equal(&before.next, &round->record.start)) {
        status = error_set(error, STATUS_BAD_FORMAT,
                           "round %u does not begin with the state that round %u led to",
                           round->number, round->number - 1);
        goto out;
    }
    if (rounds_has_outer(&federation->rounds)) {
        unused = calloc((size_t)tape_of(round)->state_count + 1, sizeof(*unused));
        round->velocity = calloc((size_t)tape_of(round)->state_count + 1, sizeof(*unused));
        TRY_OUT(unused == NULL || round->velocity == NULL
                    ? error_set(error, STATUS_NO_MEMORY, "no memory for a velocity")
                    : STATUS_OK);
        TRY_OUT(rounds_path(path, federation->folder, round->number - 1, ROUND_MEAN_FOLDER, error));
        TRY_OUT(bundle_open(&bundle, path, BUNDLE_READ, error));
        TRY_OUT(bundle_checkpoint_path(path, bundle, 1, error));
        status = round_mean_trees(unused, round->velocity, path, tape_of(round), error);
    }
out:
    bundle_close(bundle);
    free(unused);
    round_record_release(&before);
    return status;
}

/* The job of each owner in this round, also as a file. */
static enum status make_job(struct federate_round *round, uint32_t owner, struct error *error)
{
    struct federation *federation = round->federation;
    struct job *there = NULL;
    char path[FILE_PATH_MAX];

    TRY(round_job_make(&round->jobs[owner], federation->plan.owners[owner].job, round->number,
                       &round->record.start, error));
    TRY(rounds_owner_path(path, federation->folder, round->number, owner, "job", error));
    if (!file_exists(path)) {
        return job_write(round->jobs[owner], path, error);
    }
    TRY(job_read(&there, path, error));

    const bool same = digest_equal(&there->id, &round->jobs[owner]->id);

    job_free(there);
    return same ? STATUS_OK
                : error_set(error, STATUS_REFUSED, "%s is another job than the plan's", path);
}

/* ---- the progress of an owner --------------------------------------------- */

enum status federate_round_keep(struct federate_round *round, uint32_t owner, struct error *error)
{
    json_t *json = round_owner_json(&round->record.owners[owner], round->record.names[owner]);
    struct buffer text;
    char path[FILE_PATH_MAX];
    enum status status;

    buffer_init(&text, PROGRESS_SIZE_MAX);
    TRY_OUT(
        rounds_owner_path(path, round->federation->folder, round->number, owner, PROGRESS, error));
    TRY_OUT(strict_json_line(&text, error, json));
    status = file_write(path, error, text.data, text.size, 0644);
out:
    buffer_release(&text);
    json_decref(json);
    return status;
}

static enum status read_progress(struct federate_round *round, uint32_t owner, struct error *error)
{
    const char *wanted = round->federation->rounds.owners[owner].name;
    struct round_owner *to = &round->record.owners[owner];
    char path[FILE_PATH_MAX];
    json_t *json = NULL;
    enum status status = STATUS_OK;

    TRY(rounds_owner_path(path, round->federation->folder, round->number, owner, PROGRESS, error));
    if (file_exists(path)) {
        TRY(strict_json_read(&json, error, path, PROGRESS_SIZE_MAX, PROGRESS_DEPTH));
        status = round_owner_read(to, round->record.names[owner], json, error);
        json_decref(json);
        TRY(status);
        if (!digest_equal(&to->job, &round->jobs[owner]->id) ||
            strcmp(round->record.names[owner], wanted) != 0) {
            return error_set(error, STATUS_BAD_FORMAT, "%s is of another job", path);
        }
    }
    to->job = round->jobs[owner]->id;
    memcpy(round->record.names[owner], wanted, strlen(wanted) + 1);
    return status;
}

/* ---- what an owner gives -------------------------------------------------- */

enum status federate_round_take(struct federate_round *round, uint32_t owner,
                                const char *checkpoint, const struct digest *wanted,
                                struct error *error)
{
    struct federation *federation = round->federation;
    struct round_owner *to = &round->record.owners[owner];
    const struct tape *tape = round->jobs[owner]->tape;
    struct safetensors file;
    char path[FILE_PATH_MAX];
    enum status status;

    free(to->trees);
    to->tree_count = tape->state_count;
    to->trees = calloc((size_t)tape->state_count + 1, sizeof(*to->trees));
    if (to->trees == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the trees of a state");
    }
    TRY(round_trees_read(to->trees, checkpoint, tape, UINT32_MAX, error));
    TRY(round_trees_root(&to->state, to->trees, tape, error));
    if (!digest_equal(&to->state, wanted)) {
        return error_set(error, STATUS_BAD_FORMAT, "%s is not the state that was committed to",
                         checkpoint);
    }
    TRY(rounds_owner_path(path, federation->folder, round->number, owner, "safetensors", error));
    TRY(safetensors_open(&file, error, checkpoint));
    status = round_trees_give(path, &file, tape, owner, federation->rounds.keep_moments, error);
    safetensors_close(&file);
    TRY(status);
    to->has_state = true;
    command_tell(federation->context, "round %u: %s gave its state\n", round->number,
                 round->record.names[owner]);
    return federate_round_keep(round, owner, error);
}

/* ---- the mean ------------------------------------------------------------- */

static struct round_mean mean_of(const struct federate_round *round)
{
    return (struct round_mean){.rounds = &round->federation->rounds,
                               .record = &round->record,
                               .tape = tape_of(round),
                               .start = round->start,
                               .velocity = round->velocity,
                               .folder = round->federation->folder};
}

/* Writes what the next round begins with, after the last one too: it is the trained state. */
static enum status write_next(struct federate_round *round, struct error *error)
{
    struct federation *federation = round->federation;
    struct digest *trees = calloc((size_t)tape_of(round)->state_count + 1, sizeof(*trees));
    struct bundle *bundle = NULL;
    struct safetensors file;
    char path[FILE_PATH_MAX];
    bool open = false;
    enum status status;

    TRY_OUT(trees == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory for a state")
                          : STATUS_OK);
    TRY_OUT(rounds_path(path, federation->folder, round->number, ROUND_MEAN_FOLDER, error));
    TRY_OUT(bundle_open(&bundle, path, BUNDLE_READ, error));
    TRY_OUT(bundle_checkpoint_open(&file, bundle, 1, error));
    open = true;
    TRY_OUT(rounds_path(path, federation->folder, round->number + 1, "", error));
    TRY_OUT(file_make_folder(path, error, 0755));
    TRY_OUT(rounds_path(path, federation->folder, round->number + 1, ROUND_START_FILE, error));
    TRY_OUT(round_trees_go_on(path, &file, tape_of(round), federation->rounds.keep_moments, error));
    TRY_OUT(round_trees_read(trees, path, tape_of(round), UINT32_MAX, error));
    status = round_trees_root(&round->record.next, trees, tape_of(round), error);
out:
    if (open) {
        safetensors_close(&file);
    }
    bundle_close(bundle);
    free(trees);
    return status;
}

static enum status end_round(struct federate_round *round, struct error *error)
{
    struct federation *federation = round->federation;
    const struct round_mean mean = mean_of(round);
    char before[FILE_PATH_MAX];
    struct job *job = NULL;

    if (round_mean_count(&round->record) < federation->rounds.quorum) {
        return error_set(error, STATUS_REFUSED,
                         "round %u has the states of %u owners, and the "
                         "quorum is %u",
                         round->number, round_mean_count(&round->record),
                         federation->rounds.quorum);
    }
    TRY(round_mean_job(&job, &mean, error));
    round->record.mean_job = job->id;
    job_free(job);
    TRY(rounds_path(before, federation->folder, round->number - 1, ROUND_MEAN_FOLDER, error));
    TRY(round_mean_make(&round->record.mean_state, &mean, round->velocity == NULL ? NULL : before,
                        (int)options_number(federation->options, "threads"), error));
    TRY(write_next(round, error));
    return round_record_write(&round->record, federation->folder, error);
}

/* ---- a round -------------------------------------------------------------- */

static enum status begin_round(struct federate_round *round, struct error *error)
{
    const struct federation *federation = round->federation;

    round->start = calloc((size_t)tape_of(round)->state_count + 1, sizeof(*round->start));
    if (round->start == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a round");
    }
    round->record.rounds = federation->rounds.id;
    round->record.number = round->number;
    round->record.owner_count = federation->rounds.owner_count;
    TRY(read_start(round, error));
    TRY(read_before(round, error));
    for (uint32_t i = 0; i < round->record.owner_count; i++) {
        TRY(make_job(round, i, error));
        TRY(read_progress(round, i, error));
    }
    return STATUS_OK;
}

enum status federate_round_run(struct federation *federation, uint32_t number, struct error *error)
{
    struct federate_round *round = calloc(1, sizeof(*round));
    char root[HEX_SIZE(DIGEST_SIZE)];
    enum status status;

    if (round == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a round");
    }
    round->federation = federation;
    round->number = number;
    TRY_OUT(begin_round(round, error));
    TRY_OUT(federation->ledger == NULL ? federate_local_run(round, error)
                                       : federate_ledger_run(round, error));
    TRY_OUT(end_round(round, error));
    hex_encode(root, round->record.mean_state.bytes, DIGEST_SIZE);
    command_tell(federation->context, "round %u: the mean of %u states has the root %.16s...\n",
                 number, round_mean_count(&round->record), root);
out:
    for (uint32_t i = 0; i < ROUNDS_OWNERS_MAX; i++) {
        job_free(round->jobs[i]);
        job_record_free(&round->looks[i]);
    }
    round_record_release(&round->record);
    free(round->start);
    free(round->velocity);
    free(round);
    return status;
}
