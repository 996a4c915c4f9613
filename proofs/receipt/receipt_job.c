/* receipt_job.c - see receipt_job.h. */
#include "proofs/receipt/receipt_job.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "base/io/file.h"
#include "proofs/commit/commit.h"
#include "proofs/hash/sha256.h"
#include "proofs/job/first_state.h"
#include "proofs/model/frozen.h"
#include "proofs/model/model_root.h"
#include "proofs/run/run.h"

static enum status hash_config(struct receipt_base *base, struct error *error)
{
    struct file_bytes bytes = {0};
    char path[FILE_PATH_MAX];

    TRY(file_path_join(path, sizeof(path), error, base->folder, BASE_CONFIG_NAME));
    TRY(file_read(&bytes, error, path, BASE_CONFIG_SIZE_MAX));
    sha256(&base->config_hash, bytes.data, bytes.size);
    file_bytes_release(&bytes);
    return STATUS_OK;
}

enum status receipt_base_open(struct receipt_base *base, const char *folder, const char *name,
                              struct error *error)
{
    enum status status;
    uint32_t count;

    *base = (struct receipt_base){.folder = folder, .name = name != NULL ? name : folder};
    TRY_OUT(base_config_read(&base->config, folder, error));
    TRY_OUT(hash_config(base, error));
    TRY_OUT(weights_open(&base->weights, folder, error));
    TRY_OUT(model_root(&base->root, &count, &base->weights, error));
out:
    if (status != STATUS_OK) {
        receipt_base_close(base);
    }
    return status;
}

void receipt_base_close(struct receipt_base *base)
{
    weights_close(&base->weights);
    *base = (struct receipt_base){0};
}

bool receipt_base_is(const struct receipt_base *base, const struct receipt *receipt,
                     struct error *error)
{
    const bool weights = !digest_equal(&base->root, &receipt->model_root);
    const struct digest *found = weights ? &base->root : &base->config_hash;
    const struct digest *named = weights ? &receipt->model_root : &receipt->config;
    char texts[2][HEX_SIZE(DIGEST_SIZE)];

    if (digest_equal(found, named)) {
        return true;
    }
    hex_encode(texts[0], found->bytes, DIGEST_SIZE);
    hex_encode(texts[1], named->bytes, DIGEST_SIZE);
    (void)error_set(error, STATUS_REFUSED,
                    "the %s of %s: %s is %.16s..., and the receipt says %.16s...",
                    weights ? "weights" : "config.json", base->name,
                    weights ? "their root" : "its SHA-256", texts[0], texts[1]);
    return false;
}

bool receipt_base_takes(const struct receipt_base *base, const struct receipt *receipt,
                        struct error *error)
{
    const struct receipt_row *row = &receipt->row;
    const uint32_t vocabulary = base->config.model.vocabulary;

    if (row->count > receipt_base_longest(base)) {
        (void)error_set(error, STATUS_REFUSED,
                        "a row of %u tokens, on a multiple of 16 %u, and the model takes %u",
                        row->count, receipt_row_length(row),
                        base_config_length(&base->config, RECEIPT_TOKENS_MAX));
        return false;
    }
    if (row->top_k > vocabulary) {
        (void)error_set(error, STATUS_REFUSED, "a choice among %u tokens, and the model has %u",
                        row->top_k, vocabulary);
        return false;
    }
    for (uint32_t i = 0; i < row->count; i++) {
        if (row->tokens[i] >= vocabulary) {
            (void)error_set(error, STATUS_REFUSED,
                            "token %u of the row is %u, and the model has %u", i, row->tokens[i],
                            vocabulary);
            return false;
        }
    }
    return true;
}

uint32_t receipt_base_longest(const struct receipt_base *base)
{
    return base_config_length(&base->config, RECEIPT_TOKENS_MAX) / 16 * 16;
}

static enum status build_receipt(struct model *model, const struct receipt *receipt,
                                 const struct receipt_base *base, struct error *error)
{
    struct model_options options = base->config.model;

    options.length = receipt_row_length(&receipt->row);
    TRY(base_config_check_length(&base->config, options.length, error));
    options.embedding_type = frozen_embedding_type(&base->weights, &options);
    options.lora = (struct lora){.find = frozen_find, .files = &base->weights};
    options.precision = (struct precision){22, 0};
    options.evaluation = true;
    options.batch = options.accumulate = options.steps = 1;
    options.warmup = 0;
    options.seed = receipt->row.seed;
    options.receipt = &receipt->row;
    TRY(model_build(model, &options, error));
    return first_state_check_frozen(&base->weights, model->tape, model->frozen, model->frozen_count,
                                    error);
}

enum status receipt_job(struct job **job, struct model *model, const struct receipt *receipt,
                        const struct receipt_base *base, const struct job_terms *given,
                        struct error *error)
{
    struct job_terms terms = given != NULL ? *given : (struct job_terms){0};
    struct digest *roots = NULL;
    struct model built = {0};
    enum status status;

    TRY_OUT(build_receipt(&built, receipt, base, error));
    terms.steps = terms.segment_length = 1;
    terms.model = terms.model != NULL ? terms.model : model_name(&built.options);
    TRY_OUT(run_file_roots(&terms, &roots, built.tape, &base->folder, 1, error));
    TRY_OUT(job_from_model(job, &built, &terms, error));
out:
    free(roots);
    if (status == STATUS_OK && model != NULL) {
        *model = built;
        return STATUS_OK;
    }
    model_release(&built);
    return status;
}

/* States are the number of steps, and how many conditions hold. */
void receipt_true_root(struct digest *root, const struct job *job, const struct receipt *receipt)
{
    const struct tape *tape = job->tape;
    struct digest items[2];

    for (uint32_t i = 0; i < 2; i++) {
        const struct tensor *state = &tape->tensors[tape->states[i].before];
        const uint32_t value =
            state->dtype == DTYPE_U32 ? 1 : receipt_row_conditions(&receipt->row);

        commit_tensor_root(&items[i], COMMIT_TENSOR, state, &value, 1);
    }
    commit_list_root(root, COMMIT_STATE, 0, items, 2);
}
