/* lineage_receipt.c - see lineage_receipt.h. */
#include "verifier/lineage/lineage_receipt.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/hex.h"
#include "proofs/receipt/receipt_check.h"
#include "proofs/receipt/receipt_state.h"

static struct lineage_item *find_model(const struct lineage *lineage, const struct digest *root)
{
    for (size_t i = 0; i < lineage->count; i++) {
        struct lineage_item *item = &lineage->items[i];

        if (item->kind == LINEAGE_MODEL && item->root_tag != NULL &&
            digest_equal(&item->root, root)) {
            return item;
        }
    }
    return NULL;
}

static void say_verdict(struct lineage *lineage, struct lineage_item *item, const char *model,
                        const struct receipt *receipt, const struct receipt_verdict *verdict)
{
    if (!verdict->proven) {
        findings_say(&lineage->findings, FINDING_REFUTED, item->path, "%s", verdict->why.text);
        return;
    }
    (void)json_object_set_new(json_array_get(item->files, 0), "proven", json_true());
    findings_say(&lineage->findings, FINDING_PROVEN, item->path,
                 "%s answered so: one step holds the %u tokens of the answer to the rule, %u "
                 "of %u conditions",
                 model, receipt_answer(receipt), verdict->held, verdict->conditions);
}

/* Holds it to a state of the run. */
static enum status check_state(struct lineage *lineage, struct lineage_item *item,
                               struct lineage_item *run, const struct receipt *receipt,
                               const struct receipt_state *state, struct error *why)
{
    struct receipt_verdict verdict;
    char name[FILE_PATH_MAX];

    run->roles |= LINEAGE_ASKED;
    (void)snprintf(name, sizeof(name), "%.3000s, the state after %" PRIu64 " steps,", run->path,
                   state->step);
    TRY(receipt_check(&verdict, receipt, state->folder, run->path, lineage->options->machine, why));
    say_verdict(lineage, item, name, receipt, &verdict);
    return STATUS_OK;
}

/*
 * Is it of a state of a run that was given? *status: of the step. A run whose states cannot all be
 * written is no fault of the receipt: where no other has its state, that is said, and it counts as
 * found.
 */
static bool check_runs(enum status *status, struct lineage *lineage, struct lineage_item *item,
                       const struct receipt *receipt, struct error *why)
{
    char untold[ERROR_TEXT_MAX] = "";

    *status = STATUS_OK;
    for (size_t i = 0; i < lineage->count; i++) {
        struct lineage_item *run = &lineage->items[i];
        const char *base = run->base == SIZE_MAX ? NULL : lineage->items[run->base].path;
        struct receipt_state state;
        struct error broken;
        bool found;

        if (run->kind != LINEAGE_RUN || bundle_is_encrypted(run->bundle)) {
            continue;
        }
        error_init(&broken);
        if (receipt_state_find(&state, &found, run->path, base, receipt, &broken) != STATUS_OK) {
            if (untold[0] == '\0') {
                (void)snprintf(untold, sizeof(untold), "%.200s could not be asked: %.600s",
                               run->path, broken.text);
            }
        } else if (found) {
            *status = check_state(lineage, item, run, receipt, &state, why);
            receipt_state_close(&state);
            return true;
        }
    }
    if (untold[0] != '\0') {
        findings_say(&lineage->findings, FINDING_NOT_TOLD, item->path, "%s", untold);
    }
    return untold[0] != '\0';
}

enum status lineage_receipt_check(struct lineage *lineage, struct lineage_item *item,
                                  struct error *error)
{
    struct receipt_verdict verdict;
    struct lineage_item *model;
    struct receipt receipt = {0};
    char root[HEX_SIZE(DIGEST_SIZE)];
    struct error why;
    enum status status;

    item->roles |= LINEAGE_ANSWER;
    error_init(&why);
    TRY_OUT(receipt_read(&receipt, &why, item->path));
    model = find_model(lineage, &receipt.model_root);
    if (model == NULL &&
        (check_runs(&status, lineage, item, &receipt, &why) || status != STATUS_OK)) {
        goto out;
    }
    if (model == NULL) {
        hex_encode(root, receipt.model_root.bytes, DIGEST_SIZE);
        findings_say(&lineage->findings, FINDING_REFUTED, item->path,
                     "is about the model with the root %s, and none that was given has it", root);
        goto out;
    }
    model->roles |= LINEAGE_ASKED;
    TRY_OUT(receipt_check(&verdict, &receipt, model->path, NULL, lineage->options->machine, &why));
    say_verdict(lineage, item, model->path, &receipt, &verdict);
out:
    receipt_release(&receipt);
    return lineage_parts_end(lineage, item->path, status, &why, error);
}
