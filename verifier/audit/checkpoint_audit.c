/* checkpoint_audit.c - see checkpoint_audit.h. */
#include "verifier/audit/checkpoint_audit.h"

#include <stdio.h>
#include <string.h>

#include "base/io/file.h"

static enum status describe_broken(struct broken_checkpoint *broken, const struct bundle *bundle,
                                   uint64_t step, const char *why, struct error *error)
{
    char path[FILE_PATH_MAX];

    TRY(bundle_checkpoint_path(path, bundle, step, error));
    (void)snprintf(broken->name, sizeof(broken->name), "%.39s", strrchr(path, '/') + 1);
    (void)snprintf(broken->why, sizeof(broken->why), "%.511s", why);
    return STATUS_OK;
}

/* Keeps the earliest of the broken ones: names are as long as each other, and sort by step. */
static void keep_broken(struct checkpoint_audit *audit, const struct broken_checkpoint *broken)
{
    size_t kept = audit->broken_count < BROKEN_CHECKPOINTS_MAX ? (size_t)audit->broken_count
                                                               : BROKEN_CHECKPOINTS_MAX;
    size_t at = kept;

    audit->broken_count++;
    while (at > 0 && strcmp(audit->broken[at - 1].name, broken->name) > 0) {
        at--;
    }
    if (at < BROKEN_CHECKPOINTS_MAX) {
        size_t moved = kept < BROKEN_CHECKPOINTS_MAX ? kept - at : kept - at - 1;

        memmove(&audit->broken[at + 1], &audit->broken[at], moved * sizeof(*broken));
        audit->broken[at] = *broken;
    }
}

/* The checkpoint at or after `from`; UINT64_MAX: there is none. */
static enum status find_checkpoint(uint64_t *step, struct bundle *bundle, uint64_t from,
                                   struct error *error)
{
    struct error none;
    enum status status;

    error_init(&none);
    status = bundle_checkpoint_find(step, bundle, from, &none);
    if (status == STATUS_NOT_FOUND) {
        *step = UINT64_MAX;
        return STATUS_OK;
    }
    if (status != STATUS_OK) {
        *error = none;
    }
    return status;
}

static enum status check_one(struct checkpoint_audit *audit, struct bundle *bundle, uint64_t step,
                             bool last, struct error *error)
{
    struct broken_checkpoint broken;
    uint64_t again = UINT64_MAX;
    struct error why;
    enum status status;

    if (bundle_is_locked(bundle)) {
        audit->locked++;
        return STATUS_OK;
    }
    error_init(&why);
    status = bundle_checkpoint_check(bundle, step, &why);
    if (status == STATUS_OK) {
        audit->checked++;
        return STATUS_OK;
    }
    if (status == STATUS_NO_MEMORY) {
        *error = why;
        return status;
    }
    TRY(find_checkpoint(&again, bundle, step, error));
    if (again != step) {
        return STATUS_OK; /* a run that goes on has just removed it */
    }
    TRY(describe_broken(&broken, bundle, step, why.text, error));
    if (last) {
        audit->last = broken;
    } else {
        keep_broken(audit, &broken);
    }
    return STATUS_OK;
}

enum status checkpoint_audit_run(struct checkpoint_audit *audit, struct bundle *bundle, bool whole,
                                 struct stop *stop, struct error *error)
{
    uint64_t steps_of_job = bundle_job(bundle)->steps;
    uint64_t newest = UINT64_MAX;
    uint64_t number = 0;
    uint64_t step = UINT64_MAX;

    memset(audit, 0, sizeof(*audit));
    TRY(find_checkpoint(&step, bundle, 0, error));
    for (; step != UINT64_MAX; number++) {
        uint64_t next = UINT64_MAX;

        TRY(find_checkpoint(&next, bundle, step + 1, error));
        if (stop != NULL && stop_requested(stop)) {
            return error_set(error, STATUS_STOPPED, "stopped while checkpoints were hashed");
        }
        TRY(check_one(audit, bundle, step, next == UINT64_MAX && (!whole || step == steps_of_job),
                      error));
        newest = step;
        step = next;
    }
    if (number > 0 && whole && newest != steps_of_job) {
        TRY(describe_broken(&audit->last, bundle, steps_of_job, "the bundle does not have it",
                            error));
    }
    return STATUS_OK;
}
