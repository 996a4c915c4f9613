/* prove.c - see prove.h. */
#include "client/generate/prove.h"

#include <stdlib.h>
#include <string.h>

enum status prove_open(struct prove *prove, const char *path, const char *folder,
                       struct error *error)
{
    *prove = (struct prove){.path = path};
    return receipt_base_open(&prove->base, folder, NULL, error);
}

void prove_close(struct prove *prove)
{
    receipt_base_close(&prove->base);
    receipt_release(&prove->receipt);
    *prove = (struct prove){0};
}

static int compare_tokens(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Rising, and each once. */
static void take_stops(struct receipt *receipt, const struct answer_stops *stops)
{
    uint32_t *kept = receipt->stops;
    uint32_t count = 0;

    _Static_assert(ANSWER_STOPS_MAX <= RECEIPT_STOPS_MAX, "a receipt names all that ends answers");
    memcpy(kept, stops->ids, stops->id_count * sizeof(*kept));
    qsort(kept, stops->id_count, sizeof(*kept), compare_tokens);
    for (uint32_t i = 0; i < stops->id_count; i++) {
        if (count == 0 || kept[i] != kept[count - 1]) {
            kept[count++] = kept[i];
        }
    }
    receipt->stop_count = count;
}

/* A rule that changes nothing is written as one that is off. */
static void take_rule(struct receipt_row *row, const struct sampler_rule *rule, uint32_t vocabulary)
{
    const bool draws = rule->temperature != 0.0f;

    row->temperature = draws ? rule->temperature : 0.0f;
    row->top_k = draws && rule->top_k <= vocabulary ? rule->top_k : 0;
    row->top_p = draws && rule->top_p < 1.0f ? rule->top_p : 1.0f;
    row->seed = draws ? rule->seed : 0;
}

enum status prove_take(struct prove *prove, const uint32_t *prompt, uint32_t prompt_count,
                       const uint32_t *answer, uint32_t answer_count,
                       const struct sampler_rule *rule, const struct answer_stops *stops,
                       struct error *error)
{
    struct receipt *receipt = &prove->receipt;

    receipt_release(receipt);
    TRY(receipt_init(receipt, prompt_count + answer_count, prompt_count, error));
    receipt->model_root = prove->base.root;
    receipt->config = prove->base.config_hash;
    memcpy(receipt->row.tokens, prompt, prompt_count * sizeof(*prompt));
    memcpy(receipt->row.tokens + prompt_count, answer, answer_count * sizeof(*answer));
    take_rule(&receipt->row, rule, prove->base.config.model.vocabulary);
    take_stops(receipt, stops);
    return STATUS_OK;
}

enum status prove_find(uint32_t *at, uint32_t *token, struct prove *prove,
                       const struct machine_options *machine, struct error *error)
{
    const struct receipt_row *row = &prove->receipt.row;
    const uint32_t count = receipt_answer(&prove->receipt);
    struct sampler_choice *choices = calloc(count, sizeof(*choices));
    enum status status;

    if (choices == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u choices", count);
    }
    TRY_OUT(receipt_choices(choices, &prove->receipt, &prove->base, machine, error));
    for (*at = 0; *at < count && choices[*at].token == row->tokens[row->prompt + *at]; ++*at) {
        row->thresholds_p[*at] = choices[*at].threshold_p;
        row->thresholds_k[*at] = choices[*at].threshold_k;
    }
    *token = *at < count ? choices[*at].token : 0;
    if (*token == RECEIPT_NO_CHOICE) {
        status = error_set(error, STATUS_REFUSED,
                           "no receipt: the step's logits at token %u are no numbers", *at);
    }
out:
    free(choices);
    return status;
}

enum status prove_write(struct prove *prove, const struct machine_options *machine,
                        struct error *error)
{
    struct receipt_verdict verdict;

    TRY(receipt_check_base(&verdict, &prove->receipt, &prove->base, machine, error));
    if (!verdict.proven) {
        *error = verdict.why;
        return error_wrap(error, "no receipt");
    }
    return receipt_write(&prove->receipt, error, prove->path);
}
