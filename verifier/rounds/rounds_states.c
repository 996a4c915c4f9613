/* rounds_states.c - the states that owners gave, and their bundles; see rounds_parts.h. */
#include <inttypes.h>
#include <stdlib.h>

#include "proofs/rounds/round_trees.h"
#include "proofs/run/data_paths.h"
#include "verifier/rounds/rounds_parts.h"

static const struct tape *tape_of(const struct rounds_check *check)
{
    return check->given[0]->tape;
}

/* ---- the file ------------------------------------------------------------- */

/* The trees of the record give the root; the file has these trees. */
static enum status check_file(struct rounds_check *check, uint32_t owner, struct error *error)
{
    const struct round_owner *one = &check->record.owners[owner];
    const struct tape *tape = tape_of(check);
    const char *name = check->record.names[owner];
    struct digest *trees = calloc((size_t)tape->state_count + 1, sizeof(*trees));
    char path[FILE_PATH_MAX];
    struct digest root;
    struct error why;
    enum status status = STATUS_OK;

    error_init(&why);
    if (trees == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the trees of a state");
    }
    if (one->tree_count != tape->state_count) {
        rounds_parts_say(check, FINDING_REFUTED,
                         "the state of %s has %u trees, and its job %u "
                         "tensors",
                         name, one->tree_count, tape->state_count);
        goto out;
    }
    TRY_OUT(round_trees_root(&root, one->trees, tape, error));
    if (!digest_equal(&root, &one->state)) {
        rounds_parts_say(check, FINDING_REFUTED,
                         "the trees of %s do not give the state that its job came to", name);
        goto out;
    }
    TRY_OUT(
        rounds_owner_path(path, check->result->folder, check->number, owner, "safetensors", error));
    if (round_trees_read(trees, path, tape, owner, &why) != STATUS_OK) {
        rounds_parts_blame(check, &why);
        goto out;
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (round_trees_takes(tape, i, check->result->rounds.keep_moments) &&
            !digest_equal(&trees[i], &one->trees[i])) {
            rounds_parts_say(check, FINDING_REFUTED,
                             "%s holds another state than the job of %s came to: '%s' differs",
                             path, name, tape->tensors[tape->states[i].before].name);
            goto out;
        }
    }
    rounds_parts_say(check, FINDING_PROVEN, "the state of %s has the root that its record says",
                     name);
out:
    free(trees);
    return status;
}

/* ---- the bundle ----------------------------------------------------------- */

static void say_audit(struct rounds_check *check, const char *name,
                      const struct audit_result *audited)
{
    switch (audited->answer) {
    case AUDIT_PROVEN:
        rounds_parts_say(check, FINDING_PROVEN,
                         "%" PRIu64 " steps of %s were run again and gave the same bits",
                         audited->steps_checked, name);
        return;
    case AUDIT_REFUTED:
        rounds_parts_say(check, FINDING_REFUTED, "step %" PRIu64 " of %s %s", audited->wrong_step,
                         name, check_flaw_words(audited->flaw));
        return;
    case AUDIT_CANNOT_TELL:
        rounds_parts_say(check, FINDING_NOT_TOLD, "%s: %s", name, audited->reason.text);
        return;
    }
}

/* Whose last state is the one of the record. */
static bool closes_with(struct rounds_check *check, uint32_t owner, struct bundle *bundle)
{
    const struct round_owner *one = &check->record.owners[owner];
    struct digest root;
    struct error none;

    error_init(&none);
    if (!digest_equal(&bundle_job(bundle)->id, &one->job)) {
        rounds_parts_say(check, FINDING_REFUTED, "the bundle of %s is of another job",
                         check->record.names[owner]);
        return false;
    }
    if (bundle_state_root(&root, bundle, bundle_job(bundle)->steps, &none) != STATUS_OK ||
        !digest_equal(&root, &one->state)) {
        rounds_parts_say(check, FINDING_REFUTED,
                         "the bundle of %s does not end with the state that the record says",
                         check->record.names[owner]);
        return false;
    }
    return true;
}

static void check_bundle(struct rounds_check *check, uint32_t owner, const char *path)
{
    struct audit_result audited = {0};
    struct data_paths data = {0};
    struct bundle *bundle = NULL;
    struct error why;
    enum status status;

    error_init(&why);
    TRY_OUT(bundle_open(&bundle, path, BUNDLE_READ, &why));
    if (!closes_with(check, owner, bundle)) {
        goto out;
    }
    status = data_paths_of_bundle(&data, bundle_job(bundle), bundle, &why);
    if (status == STATUS_NOT_FOUND) {
        rounds_parts_say(check, FINDING_NOT_TOLD,
                         "the bundle of %s does not say where its "
                         "rows are",
                         check->record.names[owner]);
        status = STATUS_OK;
        goto out;
    }
    TRY_OUT(status);
    audit(&audited, bundle, (const char *const *)data.of, data.count, check->options);
    say_audit(check, check->record.names[owner], &audited);
out:
    if (status != STATUS_OK) {
        rounds_parts_blame(check, &why);
    }
    audit_result_release(&audited);
    data_paths_close(&data);
    bundle_close(bundle);
}

/* ---- all of them ---------------------------------------------------------- */

static void say_trust(struct rounds_check *check, uint32_t owner)
{
    rounds_parts_say(check, FINDING_TRUSTED, "that the job of %s came to that state: %s",
                     check->record.names[owner],
                     check->result->rounds.place[0] == '\0'
                         ? "its bundle is not there"
                         : "its ledger knows, and --transactions asks it");
}

enum status rounds_states_check(struct rounds_check *check, struct error *error)
{
    for (uint32_t i = 0; i < check->record.owner_count; i++) {
        char bundle[FILE_PATH_MAX];
        bool there;

        if (!check->record.owners[i].has_state) {
            continue;
        }
        TRY(check_file(check, i, error));
        TRY(rounds_owner_path(bundle, check->result->folder, check->number, i, "run", error));
        there = file_exists(bundle);
        if (there) {
            check_bundle(check, i, bundle);
        } else if (check->ledger == NULL) {
            say_trust(check, i);
        }
    }
    return STATUS_OK;
}
