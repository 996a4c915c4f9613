/* held_job.c - see held_job.h. */
#include "prover/node/held_job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/strict_json.h"
#include "base/io/whole_file.h"
#include "chain/codec/hex_data.h"
#include "chain/game/terms.h"
#include "proofs/job/job_file.h"

#define END_SIZE_MAX   4096
#define AGAIN_FIRST_MS 2000u
#define AGAIN_MOST_MS  600000u
#define FAILURES_MAX   4 /* a quarter of a minute */

const char *held_state_word(enum held_state state)
{
    static const char *const words[] = {[HELD_TAKING] = "taking",
                                        [HELD_TRAINING] = "training",
                                        [HELD_WAITING] = "waiting",
                                        [HELD_PAID] = "paid",
                                        [HELD_LOST] = "lost"};

    return words[state];
}

/* ---- the folder -------------------------------------------------------------------- */

static enum status folder_of(char path[FILE_PATH_MAX], const char *jobs, const struct hash32 *key,
                             const char *ending, struct error *error)
{
    char text[HEX_DATA_SIZE(HASH32_SIZE) + 8];
    size_t size;

    hex_write(text, key->bytes, HASH32_SIZE, false);
    size = strlen(text);
    (void)snprintf(text + size, sizeof(text) - size, "%s", ending);
    return file_path_join(path, FILE_PATH_MAX, error, jobs, text);
}

static enum status fill_bundle(const char *run, const struct held_terms *terms,
                               const struct hash32 *key, const struct game_terms *shown,
                               const struct shelf_item *item, struct error *error)
{
    struct bundle *bundle = NULL;
    struct session session;
    struct job *job = NULL;
    enum status status;

    TRY(job_read(&job, item->path, error));
    status = terms_check(shown, job, error);
    if (status != STATUS_OK) {
        job_free(job);
        return status;
    }
    session_share(&session, terms->account, terms->ledger, key);
    TRY(bundle_create(&bundle, run, job, error)); /* takes the job */
    TRY_OUT(session_remember(&session, bundle, error));
    TRY_OUT(item->state == NULL ? STATUS_OK : bundle_give_first_state(bundle, item->state, error));
    /* For the child and for the server of the bundle. */
    TRY_OUT(data_paths_remember(&item->data, bundle, error));
    TRY_OUT(bundle_flush(bundle, error));
out:
    bundle_close(bundle);
    return status;
}

enum status held_job_make(const struct held_terms *terms, const struct hash32 *key,
                          const struct game_terms *shown, const struct shelf_item *item,
                          struct error *error)
{
    char folder[FILE_PATH_MAX];
    char part[FILE_PATH_MAX];
    char run[FILE_PATH_MAX];
    enum status status;

    TRY(folder_of(folder, terms->jobs, key, "", error));
    TRY(folder_of(part, terms->jobs, key, ".part", error));
    if (file_exists(folder)) {
        return error_set(error, STATUS_REFUSED, "%s is there already", folder);
    }
    file_remove_folder(part);
    TRY(file_make_folder(part, error, 0700));
    TRY_OUT(file_path_join(run, sizeof(run), error, part, "run"));
    TRY_OUT(fill_bundle(run, terms, key, shown, item, error));
    if (rename(part, folder) != 0) {
        TRY_OUT(error_set_errno(error, "cannot name %s", folder));
    }
    status = whole_file_sync_folder(folder, error);
out:
    if (status != STATUS_OK) {
        file_remove_folder(part);
    }
    return status;
}

/* ---- opening -------------------------------------------------------------------------- */

static enum status open_respond(struct respond **respond, struct held_job *job,
                                const struct machine_options *machine, struct error *error)
{
    struct data_paths paths = {0};
    enum status status;

    *respond = NULL;
    TRY_OUT(data_paths_of_bundle(&paths, bundle_job(job->bundle), job->bundle, error));
    TRY_OUT(respond_open(respond, job->run, NULL, (const char *const *)paths.of, paths.count,
                         machine, error));
out:
    data_paths_close(&paths);
    return status;
}

static enum status begin_session(struct held_job *job, const struct held_terms *terms,
                                 struct error *error)
{
    struct session_plan plan = {.accept = true,
                                .collect = true,
                                .policy = {.limits = *terms->policy, .pace = job->pace},
                                .allow_list = terms->allow_list,
                                .contact = terms->contact,
                                .known = terms->known,
                                .ahead = terms->ahead};

    TRY(open_respond(&plan.respond, job, terms->machine, error));
    return session_start(&job->session, job->bundle, &plan, terms->log, error);
}

enum status held_job_open(struct held_job *job, const struct held_terms *terms,
                          const struct hash32 *key, const struct policy_pace *pace,
                          struct error *error)
{
    memset(job, 0, sizeof(*job));
    job->key = *key;
    job->pace = *pace;
    session_share(&job->session, terms->account, terms->ledger, key);
    TRY(folder_of(job->folder, terms->jobs, key, "", error));
    TRY(file_path_join(job->run, sizeof(job->run), error, job->folder, "run"));
    TRY(file_path_join(job->log, sizeof(job->log), error, job->folder, "train.log"));
    TRY(bundle_open(&job->bundle, job->run, BUNDLE_READ, error));
    loss_curve_init(&job->curve, bundle_job(job->bundle)->steps);
    TRY(bundle_step_count(&job->steps_drawn, job->bundle, error));
    TRY(loss_curve_recall(&job->curve, job->bundle, error));
    return begin_session(job, terms, error);
}

void held_job_close(struct held_job *job)
{
    session_close(&job->session);
    bundle_close(job->bundle);
    memset(job, 0, sizeof(*job));
}

/* ---- a round ------------------------------------------------------------------------------ */

static enum status read_journal(struct held_job *job, bool *whole, struct error *error)
{
    uint64_t diverged = UINT64_MAX;

    TRY(bundle_step_count(&job->steps, job->bundle, error));
    TRY(bundle_diverged(&diverged, job->bundle, error));
    *whole = job->steps >= bundle_job(job->bundle)->steps || diverged != UINT64_MAX;
    for (; job->steps_drawn < job->steps; job->steps_drawn++) {
        struct bundle_step step;

        TRY(bundle_step_read(&step, job->bundle, job->steps_drawn, error));
        loss_curve_add(&job->curve, &step);
    }
    return STATUS_OK;
}

static enum held_state state_of(const struct held_job *job, bool trained)
{
    const struct solver_view *view = &job->session.view;

    return view->collected                                                     ? HELD_PAID
           : (view->lost_for_good || view->contradicted) && view->pending == 0 ? HELD_LOST
           : !view->ours && job->given_up                                      ? HELD_LOST
           : !view->ours && !view->behind                                      ? HELD_TAKING
           : trained || view->phase == GAME_PHASE_CLOSED                       ? HELD_WAITING
                                                                               : HELD_TRAINING;
}

static enum status go_round(struct held_job *job, struct error *error)
{
    bool trained = false;

    TRY(read_journal(job, &trained, error));
    TRY(session_add(&job->session, error));
    TRY(session_round(&job->session, error));
    solver_show(&job->standing, job->session.solver);
    job->was_ours |= job->session.view.ours;
    if (job->session.view.read) {
        job->state = state_of(job, trained);
    }
    (void)snprintf(job->trouble, sizeof(job->trouble), "%s", job->session.view.trouble);
    if (job->given_up) {
        (void)snprintf(job->trouble, sizeof(job->trouble),
                       "its training failed %u times in a row, and it is given back: see %.200s",
                       job->failures, job->log);
    }
    return STATUS_OK;
}

enum status held_job_round(struct held_job *job, struct error *error)
{
    enum status status = go_round(job, error);

    if (status == STATUS_OK || status == STATUS_NO_MEMORY || status == STATUS_GONE) {
        return status;
    }
    (void)snprintf(job->trouble, sizeof(job->trouble), "%.390s", error->text);
    error_init(error);
    return STATUS_OK;
}

void held_job_failed(struct held_job *job, int code, uint64_t now_ms, const struct log *log)
{
    uint32_t shift;
    uint64_t wait_ms;

    job->failures = job->steps > job->failed_at ? 1 : job->failures + 1;
    job->failed_at = job->steps;
    shift = job->failures < 10 ? job->failures - 1 : 9;
    wait_ms = (uint64_t)AGAIN_FIRST_MS << shift;
    job->again_ms = now_ms + (wait_ms < AGAIN_MOST_MS ? wait_ms : AGAIN_MOST_MS);
    log_warn(log, "solver", "the training of %s ended with exit code %d: see %s", job->folder, code,
             job->log);
    if (job->failures >= FAILURES_MAX && !job->given_up) {
        job->given_up = true;
        log_warn(log, "solver", "%s is given back after %u failures without one more step",
                 job->folder, job->failures);
        session_give_up(&job->session);
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

enum status held_job_end(struct held_job *job, struct error *error)
{
    const struct solver_view *view = &job->session.view;
    struct buffer text;
    char path[FILE_PATH_MAX];
    char reward[WEI_TEXT_SIZE];
    json_t *end = NULL;
    enum status status;

    if (job->state == HELD_LOST && !job->given_up && (!job->was_ours || job->steps == 0)) {
        file_remove_folder(job->folder);
        return STATUS_OK;
    }
    wei_print_plain(reward, view->reward);
    end = json_pack("{s:s, s:i, s:i, s:s, s:s, s:I}", "state", held_state_word(job->state),
                    "segments", (int)view->segments, "final", (int)view->finalized,
                    "segment_reward_wei", reward, "why", job->trouble, "ended",
                    (json_int_t)view->now_s);
    buffer_init(&text, END_SIZE_MAX);
    TRY_OUT(strict_json_write(&text, error, end, JSON_COMPACT));
    TRY_OUT(file_path_join(path, sizeof(path), error, job->folder, "end"));
    TRY_OUT(file_write(path, error, text.data, text.size, 0600));
out:
    buffer_release(&text);
    json_decref(end);
    return status;
}

bool held_job_is_known(const char *jobs, const struct hash32 *key)
{
    char folder[FILE_PATH_MAX];

    return folder_of(folder, jobs, key, "", NULL) == STATUS_OK && file_exists(folder);
}

enum status held_job_read_end(json_t **end, const char *jobs, const char *name, struct error *error)
{
    char folder[FILE_PATH_MAX];
    char path[FILE_PATH_MAX];

    *end = NULL;
    TRY(file_path_join(folder, sizeof(folder), error, jobs, name));
    TRY(file_path_join(path, sizeof(path), error, folder, "end"));
    return file_exists(path) ? strict_json_read(end, error, path, END_SIZE_MAX, 2) : STATUS_OK;
}
