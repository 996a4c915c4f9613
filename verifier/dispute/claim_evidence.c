/* claim_evidence.c - see claim_evidence.h. */
#include "verifier/dispute/claim_evidence.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"

enum {
    SHOWN_DIGITS = 16, /* of a hash, in a sentence */
};

enum status claim_evidence_open(struct claim_evidence *evidence, const char *path,
                                struct error *error)
{
    struct evidence_ruling ruling = {.answer = EVIDENCE_REFUSED};
    const struct evidence_file *file = &evidence->file;
    enum status status;

    (void)snprintf(evidence->path, sizeof(evidence->path), "%s", path);
    TRY_OUT(file_read(&evidence->bytes, error, path, EVIDENCE_FILE_SIZE_MAX));
    TRY_OUT(evidence_file_read(&evidence->file, evidence->bytes.data, evidence->bytes.size, error));
    status = evidence_judge(&ruling, &file->context, file->evidence, file->size, error);
out:
    if (status != STATUS_OK) {
        (void)error_wrap(error, "%s", path);
        return status;
    }
    switch (ruling.answer) {
    case EVIDENCE_UPHELD:
        return STATUS_OK;
    case EVIDENCE_NOT_GUILTY:
        return error_set(error, STATUS_REFUSED, "%s convicts nobody: it shows nothing wrong", path);
    case EVIDENCE_REFUSED:
        break;
    }
    return error_set(error, STATUS_REFUSED, "%s convicts nobody: %s", path,
                     evidence_reason_text(ruling.reason));
}

void claim_evidence_close(struct claim_evidence *evidence)
{
    file_bytes_release(&evidence->bytes);
    memset(evidence, 0, sizeof(*evidence));
}

/* "it is about THAT, and on the ledger stands THIS". */
static enum status other_standing(const struct claim_evidence *evidence, const char *what,
                                  const struct digest *theirs, const struct digest *standing,
                                  struct error *error)
{
    char a[HEX_SIZE(DIGEST_SIZE)];
    char b[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(a, theirs->bytes, DIGEST_SIZE);
    hex_encode(b, standing->bytes, DIGEST_SIZE);
    return error_set(error, STATUS_REFUSED,
                     "%s is about another %s: %.*s..., and on the ledger stands %.*s...",
                     evidence->path, what, SHOWN_DIGITS, a, SHOWN_DIGITS, b);
}

/* The segment roots that the states of the step stand under. */
static enum status fit_places(const struct claim_evidence *evidence,
                              const struct store_segment *segment, struct error *error)
{
    const struct evidence_file *file = &evidence->file;
    bool first = file->step % segment->terms.segment_steps == 0; /* of its segment */
    const struct digest *before = first ? &segment->previous : &segment->committed.root;

    if (!file->placed) {
        return STATUS_OK; /* the replay compares the states */
    }
    if (!digest_equal(&file->after.segment, &segment->committed.root)) {
        return other_standing(evidence, "run of this job, by its segment's root",
                              &file->after.segment, &segment->committed.root, error);
    }
    return file->step == 0 || digest_equal(&file->before.segment, before)
               ? STATUS_OK
               : other_standing(evidence, "run of this job, by the root of the segment before",
                                &file->before.segment, before, error);
}

enum status claim_evidence_fits(const struct claim_evidence *evidence,
                                const struct store_segment *segment, struct error *error)
{
    const struct evidence_file *file = &evidence->file;

    if (!digest_equal(&file->job_id, &segment->job_id)) {
        return other_standing(evidence, "job", &file->job_id, &segment->job_id, error);
    }
    return fit_places(evidence, segment, error);
}

enum status claim_evidence_agrees(const struct claim_evidence *evidence,
                                  const struct check_result *result, struct error *error)
{
    const struct evidence_context *context = &evidence->file.context;

    if (!digest_equal(&context->before, &result->pre_state)) {
        return other_standing(evidence, "state before the step", &context->before,
                              &result->pre_state, error);
    }
    return digest_equal(&context->after, &result->post_state)
               ? STATUS_OK
               : other_standing(evidence, "state after the step", &context->after,
                                &result->post_state, error);
}

enum status claim_evidence_keep(const struct claim_evidence *evidence, const char *cache,
                                const struct hash32 *claim, struct error *error)
{
    char folder[FILE_PATH_MAX];

    TRY(dispute_folder(folder, cache, claim, error));
    TRY(file_make_folder(folder, error, 0700));
    return dispute_keep(cache, claim, DISPUTE_FILE_EVIDENCE, evidence->bytes.data,
                        evidence->bytes.size, error);
}
