/* least_loss.c - see least_loss.h. */
#include "prover/commands/least_loss.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The steps after which the least held-out loss was found; and of those with a checkpoint.
 * UINT64_MAX: there are none. */
struct least_loss {
    uint64_t of_all;
    uint64_t of_kept;
};

static enum status look_for_best(struct least_loss *best, struct bundle *bundle,
                                 struct error *error)
{
    float least[2] = {INFINITY, INFINITY};
    uint64_t steps;

    *best = (struct least_loss){UINT64_MAX, UINT64_MAX};
    TRY(bundle_step_count(&steps, bundle, error));
    for (uint64_t after = 1; after <= steps; after++) {
        uint64_t found = UINT64_MAX;
        struct bundle_step step;
        float loss;

        TRY(bundle_step_read(&step, bundle, after - 1, error));
        memcpy(&loss, &step.held_out_bits, sizeof(loss));
        if (!step.evaluated) {
            continue;
        }
        if (loss < least[0]) {
            least[0] = loss;
            best->of_all = after;
        }
        if (loss < least[1] && bundle_checkpoint_find(&found, bundle, after, NULL) == STATUS_OK &&
            found == after) {
            least[1] = loss;
            best->of_kept = after;
        }
    }
    return STATUS_OK;
}

enum status least_loss_find(uint64_t *step, struct bundle *bundle, struct error *error)
{
    struct least_loss best;

    TRY(look_for_best(&best, bundle, error));
    if (best.of_all == UINT64_MAX) {
        (void)error_set(error, STATUS_NOT_FOUND, "--best: the run has no held-out loss");
        error_advise(error, "make the job with 'job new --eval FILE'");
        return STATUS_NOT_FOUND;
    }
    if (best.of_kept != best.of_all) {
        (void)error_set(error, STATUS_NOT_FOUND,
                        "--best: the least held-out loss was after %" PRIu64
                        " steps, and of them no checkpoint is kept",
                        best.of_all);
        if (best.of_kept != UINT64_MAX) {
            error_advise(error, "the best that is kept: --step %" PRIu64, best.of_kept);
        }
        return STATUS_NOT_FOUND;
    }
    *step = best.of_all;
    return STATUS_OK;
}
