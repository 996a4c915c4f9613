/* federate_local.c - the jobs of a round run here, one after the other; see federation.h. */

#include "client/federate/federation.h"

/* A run that a kill left goes on; one that was not begun begins. */
static enum status train_here(json_t **answer, int *code, struct federate_round *round,
                              uint32_t owner, struct error *error)
{
    struct federation *federation = round->federation;
    const struct federate_owner *planned = &federation->plan.owners[owner];
    struct child_words words;
    char bundle[FILE_PATH_MAX];
    char job[FILE_PATH_MAX];
    char start[FILE_PATH_MAX];
    char begun[FILE_PATH_MAX];

    TRY(rounds_owner_path(bundle, federation->folder, round->number, owner, "run", error));
    TRY(rounds_owner_path(job, federation->folder, round->number, owner, "job", error));
    TRY(rounds_path(start, federation->folder, round->number, ROUND_START_FILE, error));
    TRY(file_path_join(begun, sizeof(begun), error, bundle, "job"));
    if (file_exists(begun)) {
        child_words_init(&words, "prover", "resume");
        child_words_add(&words, bundle);
    } else {
        child_words_init(&words, "prover", "run");
        child_words_add(&words, job);
        child_words_option(&words, "bundle", bundle);
    }
    if (round->jobs[owner]->first_state_given) {
        child_words_option(&words, "first-state", start);
    }
    for (size_t i = 0; i < planned->data_count; i++) {
        child_words_option(&words, "data", planned->data[i]);
    }
    child_words_given(&words, "threads", federation->options);
    child_words_flag(&words, "offline");
    child_words_flag(&words, "json");
    return federate_child_run(answer, code, &words, &federation->stop, error);
}

static enum status take_state(struct federate_round *round, uint32_t owner, struct error *error)
{
    const struct job *job = round->jobs[owner];
    struct bundle *bundle = NULL;
    struct digest root;
    char path[FILE_PATH_MAX];
    enum status status;

    TRY(rounds_owner_path(path, round->federation->folder, round->number, owner, "run", error));
    TRY(bundle_open(&bundle, path, BUNDLE_READ, error));
    TRY_OUT(bundle_checkpoint_check(bundle, job->steps, error));
    TRY_OUT(bundle_state_root(&root, bundle, job->steps, error));
    TRY_OUT(bundle_checkpoint_path(path, bundle, job->steps, error));
    status = federate_round_take(round, owner, path, &root, error);
out:
    bundle_close(bundle);
    return status;
}

static enum status run_owner(struct federate_round *round, uint32_t owner, struct error *error)
{
    struct round_owner *to = &round->record.owners[owner];
    json_t *answer = NULL;
    int code = 0;
    enum status status;

    command_tell(round->federation->context, "round %u: %s trains\n", round->number,
                 round->record.names[owner]);
    TRY(train_here(&answer, &code, round, owner, error));
    if (code == COMMAND_DIVERGED) {
        to->tries[0].end = ROUND_END_DIVERGED;
        to->try_count = 1;
        command_tell(round->federation->context, "round %u: the training of %s diverged\n",
                     round->number, round->record.names[owner]);
        status = federate_round_keep(round, owner, error);
    } else if (code != COMMAND_OK) {
        status = federate_child_why(answer, code, round->record.names[owner], error);
    } else {
        to->tries[0].end = ROUND_END_FINAL;
        to->try_count = 1;
        status = take_state(round, owner, error);
    }
    json_decref(answer);
    return status;
}

enum status federate_local_run(struct federate_round *round, struct error *error)
{
    for (uint32_t i = 0; i < round->record.owner_count; i++) {
        const struct round_owner *owner = &round->record.owners[i];

        if (!owner->has_state && owner->try_count == 0) {
            TRY(run_owner(round, i, error));
        }
    }
    return STATUS_OK;
}
