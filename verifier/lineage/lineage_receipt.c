/* lineage_receipt.c - see lineage_receipt.h. */
#include "verifier/lineage/lineage_receipt.h"

#include "base/hex.h"
#include "proofs/receipt/receipt_check.h"

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

static void say_verdict(struct lineage *lineage, struct lineage_item *item,
                        const struct lineage_item *model, const struct receipt *receipt,
                        const struct receipt_verdict *verdict)
{
    if (!verdict->proven) {
        lineage_parts_say(lineage, LINEAGE_REFUTED, item->path, "%s", verdict->why.text);
        return;
    }
    (void)json_object_set_new(json_array_get(item->files, 0), "proven", json_true());
    lineage_parts_say(lineage, LINEAGE_PROVEN, item->path,
                      "%s answered so: one step holds the %u tokens of the answer to the rule, %u "
                      "of %u conditions",
                      model->path, receipt_answer(receipt), verdict->held, verdict->conditions);
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
    if (model == NULL) {
        hex_encode(root, receipt.model_root.bytes, DIGEST_SIZE);
        lineage_parts_say(lineage, LINEAGE_REFUTED, item->path,
                          "is about the model with the root %s, and none that was given has it",
                          root);
        goto out;
    }
    model->roles |= LINEAGE_ASKED;
    TRY_OUT(receipt_check(&verdict, &receipt, model->path, lineage->options->machine, &why));
    say_verdict(lineage, item, model, &receipt, &verdict);
out:
    receipt_release(&receipt);
    if (status == STATUS_NO_MEMORY) {
        *error = why;
        return status;
    }
    if (status != STATUS_OK) {
        lineage_parts_blame(lineage, item->path, &why);
    }
    return STATUS_OK;
}
