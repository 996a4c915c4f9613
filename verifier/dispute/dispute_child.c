/* dispute_child.c - see dispute_child.h. */
#include "verifier/dispute/dispute_child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/dispute/evidence_file.h"
#include "verifier/dispute/dispute_next.h"

/* ---- the step ------------------------------------------------------------------- */

static enum status keep_move(const struct dispute *dispute, const struct dispute_move *move,
                             struct error *error)
{
    char name[DISPUTE_NAME_MAX];
    char path[FILE_PATH_MAX];
    struct buffer bytes;
    enum status status;

    buffer_init(&bytes, DISPUTE_MOVE_MAX);
    dispute_move_write(&bytes, move);
    dispute_move_name(name, dispute->turn, dispute->attempt);
    TRY_OUT(buffer_check(&bytes, error, "a move"));
    TRY_OUT(dispute_path(path, dispute, name, error));
    status = file_write(path, error, bytes.data, bytes.size, 0600);
out:
    buffer_release(&bytes);
    return status;
}

static enum status fill_step(struct dispute_step *step, const struct dispute *dispute,
                             const struct check_step *at, struct error *error)
{
    *step = (struct dispute_step){
        .run = at->run,
        .stands = at->stands,
        .file_max = at->request->file_max / 2,
        .context = {.before = at->pre_state, .after = at->post_state, .diverged = at->is_last},
        .source = {.fetch = at->fetch, .job = at->request->job_id, .step = at->step}};
    TRY(evidence_context_of_job(&step->context, at->run->job->header, error));
    TRY(dispute_batch_root(&step->context.batch, dispute, error));
    TRY(dispute_path(step->source.reply, dispute, DISPUTE_FILE_REPLY, error));
    return dispute_path(step->source.walk, dispute, DISPUTE_FILE_WALK, error);
}

static enum status find_move(struct check_step *at, struct dispute *dispute,
                             struct dispute_step *step, struct error *error)
{
    struct dispute_move move = {.kind = DISPUTE_WAIT};
    struct buffer payload;
    enum status status;

    buffer_init(&payload, GAME_PAYLOAD_MAX);
    TRY_OUT(dispute_load(dispute, at->request->folder, error));
    TRY_OUT(fill_step(step, dispute, at, error));
    TRY_OUT(dispute_next(&move.kind, &payload, dispute, step, error));
    move.payload = payload.data;
    move.payload_size = payload.size;
    status = keep_move(dispute, &move, error);
out:
    at->runs = step->own.runs;
    dispute_step_close(step);
    buffer_release(&payload);
    return status;
}

static enum status visit_step(struct check_step *at, struct error *error)
{
    struct dispute *dispute = calloc(1, sizeof(*dispute));
    struct dispute_step *step = calloc(1, sizeof(*step));
    enum status status = dispute == NULL || step == NULL
                             ? error_set(error, STATUS_NO_MEMORY, "no memory for a dispute")
                             : find_move(at, dispute, step, error);

    free(dispute);
    free(step);
    return status;
}

/* An earlier child has run the step. */
static bool knows_step(const struct check_request *request)
{
    char path[FILE_PATH_MAX];
    struct error none;

    error_init(&none);
    return file_path_join(path, sizeof(path), &none, request->folder, DISPUTE_FILE_TRACE) ==
               STATUS_OK &&
           file_exists(path);
}

const struct check_visitor dispute_child = {knows_step, visit_step};
