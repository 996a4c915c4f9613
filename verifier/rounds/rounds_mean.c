/* rounds_mean.c - the mean of a round; see rounds_parts.h. */
#include <string.h>

#include "proofs/bundle/bundle.h"
#include "proofs/rounds/round_trees.h"
#include "verifier/rounds/rounds_parts.h"

static struct round_mean mean_of(const struct rounds_check *check)
{
    return (struct round_mean){.rounds = &check->result->rounds,
                               .record = &check->record,
                               .tape = check->given[0]->tape,
                               .start = check->start,
                               .velocity = check->number == 1 ? NULL : check->velocity,
                               .folder = check->result->folder};
}

/* ---- from headers --------------------------------------------------------- */

static bool has_root(const struct job *job, const struct digest *root)
{
    for (uint32_t i = 0; i < job->data_count; i++) {
        if (digest_equal(&job->data_roots[i], root)) {
            return true;
        }
    }
    return false;
}

/* How the job of a bundle differs from the one that follows from the record. */
static const char *difference_of_means(const struct job *found, const struct job *wanted)
{
    bool same = found->data_count == wanted->data_count;

    for (uint32_t i = 0; i < wanted->data_count && same; i++) {
        same = has_root(found, &wanted->data_roots[i]);
    }
    if (!same) {
        return "it is the mean of other states";
    }
    if (memcmp(found->data_roots, wanted->data_roots,
               sizeof(*found->data_roots) * (size_t)wanted->data_count) != 0) {
        return "it adds the states in another order";
    }
    return digest_equal(&found->first_state_root, &wanted->first_state_root)
               ? "it computes something else"
               : "it begins with another state";
}

static bool is_wanted(struct rounds_check *check, const struct job *found, const struct job *wanted)
{
    if (!digest_equal(&found->id, &wanted->id)) {
        rounds_parts_say(check, FINDING_REFUTED, "the mean is not that of the record's states: %s",
                         difference_of_means(found, wanted));
        return false;
    }
    if (!digest_equal(&check->record.mean_job, &wanted->id)) {
        rounds_parts_say(check, FINDING_REFUTED, "its record names another mean");
        return false;
    }
    return true;
}

/* ---- its step ------------------------------------------------------------- */

static bool step_holds(struct rounds_check *check, struct bundle *bundle, char *const *paths)
{
    struct audit_result audited = {0};
    struct digest root;
    struct error none;
    bool holds = false;

    error_init(&none);
    audit(&audited, bundle, (const char *const *)paths, bundle_job(bundle)->data_count,
          check->options);
    if (audited.answer == AUDIT_CANNOT_TELL) {
        rounds_parts_say(check, FINDING_NOT_TOLD, "the mean: %s", audited.reason.text);
    } else if (audited.answer == AUDIT_REFUTED) {
        rounds_parts_say(check, FINDING_REFUTED,
                         "the mean is forged: its step was run again, and gives another state");
    } else if (bundle_state_root(&root, bundle, 1, &none) != STATUS_OK ||
               !digest_equal(&root, &check->record.mean_state)) {
        rounds_parts_say(check, FINDING_REFUTED, "its record names another state than the mean's");
    } else {
        rounds_parts_say(check, FINDING_PROVEN,
                         "the mean of %u states was made again and gave the same bits",
                         round_mean_count(&check->record));
        holds = true;
    }
    audit_result_release(&audited);
    return holds;
}

/* What the next round begins with. */
static enum status find_next(bool *holds, struct rounds_check *check, struct bundle *bundle,
                             struct error *error)
{
    const struct tape *tape = check->given[0]->tape;
    struct error why;
    char path[FILE_PATH_MAX];
    struct digest next;

    error_init(&why);
    TRY(bundle_checkpoint_path(path, bundle, 1, error));
    if (round_mean_trees(check->next, check->next_velocity, path, tape, &why) != STATUS_OK) {
        rounds_parts_blame(check, &why);
        *holds = false;
        return STATUS_OK;
    }
    TRY(round_trees_root(&next, check->next, tape, error));
    if (!digest_equal(&next, &check->record.next)) {
        rounds_parts_say(check, FINDING_REFUTED, "its record leads to another state than the mean");
        *holds = false;
    }
    return STATUS_OK;
}

enum status rounds_mean_check(bool *holds, struct rounds_check *check, struct error *error)
{
    const struct round_mean mean = mean_of(check);
    struct bundle *bundle = NULL;
    struct job *wanted = NULL;
    char **paths = NULL;
    char path[FILE_PATH_MAX];
    struct error why;
    enum status status;

    *holds = false;
    error_init(&why);
    if (round_mean_job(&wanted, &mean, &why) != STATUS_OK) {
        rounds_parts_blame(check, &why);
        return STATUS_OK;
    }
    TRY_OUT(rounds_path(path, check->result->folder, check->number, ROUND_MEAN_FOLDER, error));
    if (bundle_open(&bundle, path, BUNDLE_READ, &why) != STATUS_OK) {
        rounds_parts_blame(check, &why);
        status = STATUS_OK;
        goto out;
    }
    if (!is_wanted(check, bundle_job(bundle), wanted)) {
        status = STATUS_OK;
        goto out;
    }
    TRY_OUT(round_mean_paths(&paths, wanted, &mean, error));
    *holds = step_holds(check, bundle, paths);
    if (*holds) {
        status = find_next(holds, check, bundle, error);
    }
out:
    round_mean_paths_free(paths);
    bundle_close(bundle);
    job_free(wanted);
    return status;
}
