/* job_pairs.c - see job_pairs.h. */
#include "client/tokens/job_pairs.h"

#include <string.h>

enum status job_pairs_read(struct model_options *model, const struct options *options,
                           struct error *error)
{
    if (!options_given(options, "dpo")) {
        return STATUS_OK;
    }
    model->preference = options_real(options, "dpo");
    if (!(model->preference > 0.0)) {
        return error_set(error, STATUS_USAGE, "--dpo %g: it must be above 0", model->preference);
    }
    if (model->evaluation) {
        return error_set(error, STATUS_USAGE, "--inference learns nothing, so it has no --dpo");
    }
    if (options_flagged(options, "calibrate") &&
        strcmp(options_text(options, "calibrate"), "none") != 0) {
        return error_set(error, STATUS_USAGE,
                         "--calibrate with --dpo: model and reference must have the same products; "
                         "--bits 22 makes them finer");
    }
    return STATUS_OK;
}

enum status job_pairs_check(bool pairs, const struct model_options *model,
                            const struct options *options, const char *folder, struct error *error)
{
    if (pairs && model->preference == 0.0) {
        (void)error_set(error, STATUS_USAGE, "%s has pairs of answers, chosen and rejected",
                        folder);
        error_advise(error, "train on them with --base FOLDER --dpo 0.1");
        return STATUS_USAGE;
    }
    if (model->preference == 0.0) {
        return STATUS_OK;
    }
    if (!pairs) {
        (void)error_set(error, STATUS_USAGE, "--dpo: the rows of %s are no pairs", folder);
        error_advise(error, "pack lines with 'chosen' and 'rejected'");
        return STATUS_USAGE;
    }
    if (model->batch % 2 != 0) {
        return error_set(error, STATUS_USAGE,
                         "--batch %u: with --dpo a batch has whole pairs, two rows each",
                         model->batch);
    }
    if (options_text(options, "eval") != NULL) {
        return error_set(error, STATUS_USAGE,
                         "--eval with --dpo: there is no held-out figure of pairs");
    }
    return STATUS_OK;
}

void job_pairs_show(struct sheet *sheet, const struct job_facts *facts)
{
    if (facts->pairs) {
        sheet_print(sheet,
                    "pairs        rows 2i and 2i+1 are a chosen and a rejected answer; a step "
                    "makes two forwards more, of the reference, and keeps nothing of them\n");
    }
}
