/* lineage_run.c - see lineage_run.h. */
#include "verifier/lineage/lineage_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/io/strict_json.h"
#include "proofs/job/first_state.h"
#include "proofs/model/model_root.h"
#include "verifier/audit/citation.h"
#include "verifier/lineage/lineage_origin.h"
#include "verifier/lineage/lineage_rows.h"

struct run_check {
    struct lineage *lineage;
    struct lineage_item *run;
    const struct job *job;
    size_t changed; /* the item that likely is its base, and was changed; SIZE_MAX: none */
    bool complete;  /* all data was found */
};

/* Says the item's card that it came of this run? Then it is hardly what the run began with. */
static bool comes_of(const struct lineage_item *item, const struct job *job)
{
    return item->card.job_known && digest_equal(&item->card.job, &job->id);
}

/* ---- the weights below it --------------------------------------------------------- */

/* How a model compares with the weights that a job reads as data. */
struct weights_match {
    uint32_t named;
    uint32_t equal;
    const struct tensor *other; /* the first that has another root; or NULL */
};

static enum status match_weights(struct weights_match *match, const struct run_check *check,
                                 const struct lineage_item *item, struct error *error)
{
    const struct tape *tape = check->job->tape;
    uint32_t number = 0;

    *match = (struct weights_match){0};
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct tensor *tensor = &tape->tensors[id];
        const struct weights_entry *entry;
        struct digest root = {0};
        bool same;

        if (tensor->role != ROLE_DATA) {
            continue;
        }
        number++;
        entry = weights_find_plain(&item->weights, tensor->name);
        if (entry == NULL) {
            continue;
        }
        if (safetensors_entry_fits(entry->entry, tensor)) {
            TRY(model_tensor_root(&root, COMMIT_DATA, tensor, entry, error));
        }
        same = digest_equal(&root, &check->job->data_roots[number - 1]);
        match->named++;
        match->equal += same;
        match->other = same || match->other != NULL ? match->other : tensor;
    }
    return STATUS_OK;
}

/* The model whose weights are all the job's; else the one that most likely was, and was changed. */
static enum status find_base(struct run_check *check, struct error *error)
{
    const struct lineage *lineage = check->lineage;
    struct weights_match best = {0};
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < lineage->count; i++) {
        const struct lineage_item *item = &lineage->items[i];
        struct weights_match match;
        bool likelier;

        if (item->kind != LINEAGE_MODEL) {
            continue;
        }
        TRY(match_weights(&match, check, item, error));
        likelier =
            found == SIZE_MAX ||
            (match.other == NULL &&
             (best.other != NULL || !lineage_origin_is(&lineage->items[found], check->job))) ||
            (best.other != NULL && comes_of(&lineage->items[found], check->job) &&
             !comes_of(item, check->job));
        if (match.named > 0 && likelier) {
            best = match;
            found = i;
        }
    }
    if (found != SIZE_MAX && best.other == NULL) {
        check->run->base = found;
        lineage->items[found].roles |= LINEAGE_BASE;
    } else if (found != SIZE_MAX) {
        check->changed = found;
        findings_say(&check->lineage->findings, FINDING_REFUTED, lineage->items[found].path,
                     "is not what %s stands on: '%s' has another root", check->run->path,
                     best.other->name);
    }
    return STATUS_OK;
}

/* ---- data ------------------------------------------------------------------------- */

/* The file of the item that holds the tensor; false: it holds it not. */
static bool find_tensor(char path[FILE_PATH_MAX], const struct run_check *check, size_t at,
                        const struct tensor *tensor, const struct digest *wanted)
{
    const struct lineage_item *item = &check->lineage->items[at];
    const struct weights_entry *entry;
    struct dataset dataset;
    struct digest root;

    if (item->kind == LINEAGE_ROWS) {
        return lineage_rows_find(path, item, wanted);
    }
    if (at == check->run->base) {
        entry = weights_find_plain(&item->weights, tensor->name);
        (void)snprintf(path, FILE_PATH_MAX, "%s",
                       entry == NULL ? "" : weights_path(&item->weights, entry));
        return entry != NULL;
    }
    /* A file of another size or type is none. */
    if (item->kind == LINEAGE_TOKENS &&
        run_data_open(&dataset, &root, tensor, item->path, NULL) == STATUS_OK) {
        dataset_close(&dataset);
        (void)snprintf(path, FILE_PATH_MAX, "%s", item->path);
        return digest_equal(&root, wanted);
    }
    return false;
}

static enum status bind_tensor(struct run_check *check, uint32_t number,
                               const struct tensor *tensor, struct error *error)
{
    struct lineage *lineage = check->lineage;
    const bool changed = check->changed != SIZE_MAX &&
                         weights_find_plain(&lineage->items[check->changed].weights, tensor->name);

    for (size_t i = 0; i < lineage->count; i++) {
        char path[FILE_PATH_MAX];

        if (find_tensor(path, check, i, tensor, &check->job->data_roots[number])) {
            lineage->items[i].roles |= lineage->items[i].kind == LINEAGE_MODEL ? 0u : LINEAGE_DATA;
            return data_paths_set(&check->run->data, number, path, error);
        }
    }
    check->complete = false;
    if (!changed) {
        findings_say(&lineage->findings, FINDING_MISSING, check->run->path,
                     "no file that was given is its data '%s'", tensor->name);
    }
    return STATUS_OK;
}

static enum status bind_data(struct run_check *check, struct error *error)
{
    const struct tape *tape = check->job->tape;
    uint32_t number = 0;

    TRY(data_paths_open(&check->run->data, check->job->data_count, error));
    TRY(find_base(check, error));
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_DATA && number < check->job->data_count) {
            TRY(bind_tensor(check, number, &tape->tensors[id], error));
            number++;
        }
    }
    return STATUS_OK;
}

/* ---- the first state ----------------------------------------------------------------- */

static bool is_first_state(const struct run_check *check, const char *path)
{
    struct first_state first = {0};
    struct digest root;
    bool same = false;

    if (first_state_open(&first, check->job->tape, path, NULL) == STATUS_OK) {
        same = first_state_root(&root, &first, NULL) == STATUS_OK &&
               digest_equal(&root, &check->job->first_state_root);
    }
    first_state_close(&first);
    return same;
}

/* Is it a checkpoint of that run, which is then the stage before? */
static bool is_stage(const struct run_check *check, const struct lineage_item *other)
{
    uint64_t step = 0;

    while (other != check->run && !bundle_is_encrypted(other->bundle) &&
           bundle_checkpoint_find(&step, other->bundle, step, NULL) == STATUS_OK) {
        char path[FILE_PATH_MAX];

        if (bundle_checkpoint_path(path, other->bundle, step, NULL) == STATUS_OK &&
            is_first_state(check, path)) {
            return true;
        }
        step++;
    }
    return false;
}

static bool has_weights(const struct lineage_item *item)
{
    return item->kind == LINEAGE_MODEL || item->kind == LINEAGE_ADAPTERS ||
           item->kind == LINEAGE_STATE;
}

/* What it begins with: the first that computes as the job says, or else the first. SIZE_MAX: it is
 * not there. */
static size_t find_first_state(const struct run_check *check)
{
    const struct lineage *lineage = check->lineage;
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < lineage->count; i++) {
        const struct lineage_item *item = &lineage->items[i];

        if (found != SIZE_MAX && !lineage_origin_is(item, check->job)) {
            continue;
        }
        if ((has_weights(item) && is_first_state(check, item->path)) ||
            (item->kind == LINEAGE_RUN && is_stage(check, item))) {
            found = i;
            if (lineage_origin_is(item, check->job)) {
                break;
            }
        }
    }
    return found;
}

static void bind_first_state(struct run_check *check)
{
    struct lineage *lineage = check->lineage;
    struct lineage_item *run = check->run;
    const struct lineage_item *candidate = NULL;

    run->first = find_first_state(check);
    if (run->first != SIZE_MAX) {
        lineage->items[run->first].roles |= LINEAGE_BASE;
        run->base = run->base == SIZE_MAX ? run->first : run->base;
        findings_say(&lineage->findings, FINDING_PROVEN, run->path, "begins with the weights of %s",
                     lineage->items[run->first].path);
        return;
    }
    for (size_t i = 0; i < lineage->count && candidate == NULL; i++) {
        const struct lineage_item *item = &lineage->items[i];

        candidate = has_weights(item) && !comes_of(item, check->job) ? item : NULL;
    }
    if (candidate == NULL) {
        findings_say(&lineage->findings, FINDING_MISSING, run->path,
                     "the weights that it begins with were not given");
    } else {
        findings_say(&lineage->findings, FINDING_REFUTED, candidate->path,
                     "is not what %s begins with, nor is any other that was given", run->path);
    }
}

/* ---- the steps -------------------------------------------------------------------- */

static void say_steps(struct lineage *lineage, const struct lineage_item *run)
{
    const struct audit_result *audit = &run->audit;

    findings_say(&lineage->findings, FINDING_PROVEN, run->path,
                 "%" PRIu64 " of %" PRIu64 " steps were run again and gave the same bits",
                 audit->steps_checked, audit->steps_of_job);
    if (audit->ended[0] != '\0') {
        findings_say(&lineage->findings, FINDING_PROVEN, run->path, "%s", audit->ended);
    } else if (audit->steps_journaled < audit->steps_of_job) {
        findings_say(&lineage->findings, FINDING_MISSING, run->path, "the last %" PRIu64 " steps",
                     audit->steps_of_job - audit->steps_journaled);
    }
    if (audit->steps_checked < audit->steps_journaled) {
        findings_say(&lineage->findings, FINDING_TRUSTED, run->path,
                     "%" PRIu64 " steps, which were not run again",
                     audit->steps_journaled - audit->steps_checked);
    }
}

static void say_audit(struct lineage *lineage, struct lineage_item *run)
{
    const struct audit_result *result = &run->audit;

    switch (result->answer) {
    case AUDIT_PROVEN:
        say_steps(lineage, run);
        lineage_run_figures(lineage, run, result->steps_journaled);
        return;
    case AUDIT_REFUTED:
        findings_say(&lineage->findings, FINDING_REFUTED, run->path, "step %" PRIu64 " %s",
                     result->wrong_step, check_flaw_words(result->flaw));
        return;
    case AUDIT_CANNOT_TELL:
        findings_say(&lineage->findings, FINDING_NOT_TOLD, run->path, "%s", result->reason.text);
        return;
    }
}

static const struct lineage_item *item_of(const struct lineage *lineage, const char *path)
{
    for (size_t i = 0; i < lineage->count && path != NULL; i++) {
        const struct lineage_item *item = &lineage->items[i];
        const size_t length = strlen(item->path);

        if (strncmp(path, item->path, length) == 0 &&
            (path[length] == '\0' || path[length] == '/' || item->path[length - 1] == '/')) {
            return item;
        }
    }
    return NULL;
}

/* The number of the data tensor that is called so; the job's count of them: there is none. */
static uint32_t data_called(const struct job *job, const char *name)
{
    uint32_t number = 0;

    for (uint32_t id = 0; id < job->tape->tensor_count && number < job->data_count; id++) {
        if (job->tape->tensors[id].role == ROLE_DATA) {
            if (strcmp(job->tape->tensors[id].name, name) == 0) {
                return number;
            }
            number++;
        }
    }
    return job->data_count;
}

/*
 * Is what it looks at not what it learns from? The same numbers are found by their roots. Else only
 * rows that were made again have no example on both sides.
 */
static void say_held_out(const struct run_check *check)
{
    static const char before[] = "held_out.";
    const struct tape *tape = check->job->tape;
    uint32_t number = 0;
    uint32_t pairs = 0;
    uint32_t equal = 0;
    bool apart = true;

    for (uint32_t id = 0; id < tape->tensor_count && number < check->job->data_count; id++) {
        const char *name = tape->tensors[id].name;
        uint32_t learned;

        if (tape->tensors[id].role != ROLE_DATA) {
            continue;
        }
        learned = strncmp(name, before, strlen(before)) == 0
                      ? data_called(check->job, name + strlen(before))
                      : check->job->data_count;
        if (learned < check->job->data_count) {
            const struct lineage_item *rows = item_of(check->lineage, check->run->data.of[number]);

            pairs++;
            equal +=
                digest_equal(&check->job->data_roots[number], &check->job->data_roots[learned]);
            apart = apart && rows != NULL && rows->followed &&
                    rows == item_of(check->lineage, check->run->data.of[learned]);
        }
        number++;
    }
    if (pairs > 0 && equal == pairs) {
        findings_say(&check->lineage->findings, FINDING_REFUTED, check->run->path,
                     "its held-out figures are of the data that it learns from");
    } else if (!apart) {
        findings_say(&check->lineage->findings, FINDING_TRUSTED, check->run->path,
                     "that it learns from nothing that its held-out figures are of");
    }
}

/* What it stands on, said once of each. */
static void say_data(struct lineage *lineage, const struct lineage_item *run)
{
    for (size_t i = 0; i < lineage->count; i++) {
        const struct lineage_item *item = &lineage->items[i];
        bool used = false;

        for (uint32_t at = 0; at < run->data.count && !used; at++) {
            const struct lineage_item *holder = item_of(lineage, run->data.of[at]);

            used = holder != NULL && holder == item;
        }
        if (used && item->kind == LINEAGE_TOKENS) {
            findings_say(&lineage->findings, FINDING_PROVEN, run->path, "reads the numbers of %s",
                         item->path);
            findings_say(&lineage->findings, FINDING_TRUSTED, item->path,
                         "how it was made: only rows of 'lockstep data pack' have a manifest");
        } else if (used) {
            findings_say(&lineage->findings, FINDING_PROVEN, run->path,
                         item->kind == LINEAGE_ROWS ? "reads the rows of %s"
                                                    : "stands on the weights of %s",
                         item->path);
        }
    }
}

enum status lineage_run_check(struct lineage *lineage, size_t run, struct error *error)
{
    struct lineage_item *item = &lineage->items[run];
    struct run_check check = {.lineage = lineage,
                              .run = item,
                              .job = bundle_job(item->bundle),
                              .changed = SIZE_MAX,
                              .complete = true};

    item->roles |= LINEAGE_TRAINING;
    if (bundle_is_encrypted(item->bundle)) {
        findings_say(&lineage->findings, FINDING_NOT_TOLD, item->path,
                     "is encrypted: its owner makes a plain one with 'bundle export' and "
                     "'bundle import'");
        return STATUS_OK;
    }
    TRY(bind_data(&check, error));
    if (check.job->first_state_given) {
        bind_first_state(&check);
    }
    lineage_origin_check(lineage, item);
    if (!check.complete) {
        findings_say(&lineage->findings, FINDING_NOT_TOLD, item->path,
                     "was not run again: what it reads is not all there");
        return STATUS_OK;
    }
    say_data(lineage, item);
    say_held_out(&check);
    audit(&item->audit, item->bundle, (const char *const *)item->data.of, item->data.count,
          lineage->options->audit);
    say_audit(lineage, item);
    return STATUS_OK;
}

/* ---- figures ----------------------------------------------------------------------- */

/* The solver's words of a look, once of each. */
static void say_told(struct lineage *lineage, const struct lineage_item *run, const json_t *figures,
                     uint64_t steps)
{
    char loss[LINEAGE_LOSS_MAX];
    const json_t *said;
    char says[ERROR_TEXT_MAX];
    size_t i;

    (void)snprintf(says, sizeof(says),
                   "the held-out loss %s of the state after %" PRIu64
                   " steps: not all of the steps that give it were run again",
                   lineage_parts_loss(loss, figures), steps);
    json_array_foreach(lineage->findings.lists[FINDING_TRUSTED], i, said)
    {
        if (strcmp(strict_json_text_or(said, "file", ""), run->path) == 0 &&
            strcmp(strict_json_text_or(said, "says", ""), says) == 0) {
            return;
        }
    }
    findings_say(&lineage->findings, FINDING_TRUSTED, run->path, "%s", says);
}

void lineage_run_figures(struct lineage *lineage, const struct lineage_item *run, uint64_t steps)
{
    json_t *figures = citation_held_out(run->bundle, steps);
    json_t *other;
    size_t i;

    json_array_foreach(lineage->figures, i, other)
    {
        if (strcmp(strict_json_text_or(other, "run", ""), run->path) == 0 &&
            strict_json_number_or_0(other, "state_after") == (int64_t)steps) {
            json_decref(figures);
            return;
        }
    }
    if (figures == NULL) {
        findings_say(&lineage->findings, FINDING_MISSING, run->path,
                     "held-out figures of the state after %" PRIu64 " steps", steps);
        return;
    }
    if (!citation_ran(figures, &run->audit, run->bundle, steps)) {
        say_told(lineage, run, figures, steps);
        json_decref(figures);
        return;
    }
    (void)json_object_set_new(figures, "run", findings_text(run->path));
    (void)json_object_set_new(figures, "state_after", json_integer((json_int_t)steps));
    (void)json_array_append_new(lineage->figures, figures);
}

enum status lineage_run_newest(uint64_t *step, struct bundle *bundle, struct error *error)
{
    uint64_t at;

    TRY(bundle_checkpoint_find(step, bundle, 0, error));
    while (bundle_checkpoint_find(&at, bundle, *step + 1, NULL) == STATUS_OK) {
        *step = at;
    }
    return STATUS_OK;
}
