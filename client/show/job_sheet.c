/* job_sheet.c - see job_sheet.h. */
#include "client/show/job_sheet.h"

#include <inttypes.h>

#include "base/hex.h"
#include "proofs/job/job_facts.h"
#include "proofs/job/job_precision.h"

/* What is read, and as what pictures. */
static void print_shapes(struct sheet *sheet, const struct job *job)
{
    const struct tape *tape = job->tape;
    uint32_t at = 0;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct tensor *tensor = &tape->tensors[id];

        if (tensor->role == ROLE_DATA) {
            char root[HEX_SIZE(DIGEST_SIZE)];

            sheet_print(sheet, "  %-10s %s (%" PRIu64, tensor->name, dtype_name(tensor->dtype),
                        tensor->dims[0]);
            for (uint32_t i = 1; i < tensor->rank; i++) {
                sheet_print(sheet, ", %" PRIu64, tensor->dims[i]);
            }
            hex_encode(root, job->data_roots[at++].bytes, DIGEST_SIZE);
            sheet_print(sheet, "), root %.16s...\n", root);
        }
    }
    for (uint32_t i = 0; i < tape->op_count; i++) {
        if (tape->ops[i].kind == OP_IM2COL) {
            const int64_t *image = tape->ops[i].attributes;

            sheet_print(sheet,
                        "  pictures   %" PRId64 " high, %" PRId64 " wide, %" PRId64 " channels\n",
                        image[IMAGE_HEIGHT], image[IMAGE_WIDTH], image[IMAGE_CHANNELS]);
            return;
        }
    }
}

static void print_memory(struct sheet *sheet, const struct step_memory *memory)
{
    char text[STEP_MEMORY_TEXT];

    step_memory_text(text, memory->cpu);
    sheet_print(sheet, "a step       on a CPU   %s; the data stays in its files\n", text);
    if (memory->data_hoist < memory->data) {
        sheet_print(sheet, "             of which it reads %.2f MiB, with --hoist %.2f MiB\n",
                    (double)memory->data / 1048576.0, (double)memory->data_hoist / 1048576.0);
    }
    step_memory_text(text, memory->gpu);
    sheet_print(sheet, "             on a GPU   %s\n", text);
}

/* Whole rows and how often, or windows. */
static void print_rows(struct sheet *sheet, const struct job_facts *facts)
{
    const uint64_t step = facts->micro_batches * facts->batch;

    if (facts->rows == 0) {
        sheet_print(sheet,
                    "windows      of %" PRIu64 " tokens, drawn from any place with replacement\n",
                    facts->length);
        return;
    }
    if (facts->in_order) {
        sheet_print(sheet, "rows         %" PRIu64 " of %" PRIu64 " tokens, in their order\n",
                    facts->rows, facts->length);
        return;
    }
    sheet_print(sheet, "rows         %" PRIu64 " of %" PRIu64 " tokens, each %" PRIu64 " time%s",
                facts->rows, facts->length, facts->epochs, facts->epochs == 1 ? "" : "s");
    if (facts->rows_of_next == 0) {
        sheet_print(sheet, "\n");
    } else if (facts->rows_of_next < step) {
        sheet_print(sheet, "; the last step takes %" PRIu64 " rows of the next epoch\n",
                    facts->rows_of_next);
    } else {
        sheet_print(sheet, ", and %" PRIu64 " once more\n", facts->rows_of_next);
    }
}

/* All weights, or adapters and what is trained whole beside them. */
static void print_trained(struct sheet *sheet, const struct job_facts *facts)
{
    if (facts->optimizer == NULL) {
        return;
    }
    if (facts->rank == 0) {
        sheet_print(sheet, "trains       all weights\n");
        return;
    }
    sheet_print(sheet, "trains       adapters of rank %" PRIu64 ", which count %.6g times",
                facts->rank, facts->adapters);
    if (facts->dropout > 0.0) {
        sheet_print(sheet, ", with a dropout of %.6g", facts->dropout);
    }
    if (facts->whole > 0) {
        sheet_print(sheet, "; %" PRIu64 " weights beside them", facts->whole);
    }
    sheet_print(sheet, "\n");
}

static void print_batch(struct sheet *sheet, const struct job_facts *facts)
{
    if (facts->batch == 0) {
        return;
    }
    if (facts->length == 0) {
        sheet_print(sheet, "a batch      %" PRIu64 " samples, %" PRIu64 " times a step\n",
                    facts->batch, facts->micro_batches);
        return;
    }
    sheet_print(sheet,
                "a batch      %" PRIu64 " sequences of %" PRIu64 " tokens, %" PRIu64
                " times a step%s\n",
                facts->batch, facts->length, facts->micro_batches,
                facts->masked ? "; a mask says which tokens count" : "");
}

static void print_rates(struct sheet *sheet, const struct job_facts *facts)
{
    sheet_print(sheet, "rate         ");
    for (int i = 0; i < FACTS_RATES; i++) {
        sheet_print(sheet, "%s%.6g", i == 0 ? "" : ", ", facts->rates[i]);
    }
    sheet_print(sheet, " at each quarter of the steps; %.6g at most\n", facts->rate_most);
    if (facts->factor_least != 1.0 || facts->factor_most != 1.0) {
        sheet_print(sheet, "             single tensors learn %.6g to %.6g times as fast\n",
                    facts->factor_least, facts->factor_most);
    }
}

/* The optimizer and its numbers; what a tape does not say is left out. */
static void print_recipe(struct sheet *sheet, const struct job_facts *facts)
{
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"beta1", facts->beta1},         {"beta2", facts->beta2},
                   {"epsilon", facts->epsilon},     {"momentum", facts->momentum},
                   {"decay at most", facts->decay}, {"clip", facts->clip}};

    print_trained(sheet, facts);
    print_batch(sheet, facts);
    if (facts->optimizer == NULL) {
        return;
    }
    sheet_print(sheet, "optimizer    %s", facts->optimizer);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (numbers[i].value != 0.0) {
            sheet_print(sheet, ", %s %.6g", numbers[i].name, numbers[i].value);
        }
    }
    sheet_print(sheet, "\n");
    print_rates(sheet, facts);
}

void job_sheet_print(struct sheet *sheet, const struct job *job, const struct step_memory *memory)
{
    struct tape_footprint footprint = tape_footprint(job->tape);
    const struct tape *brief = job->tape->brief;
    const uint64_t keep = job_keep_default(job);
    struct buffer precision;
    struct job_facts facts;
    char id[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(id, job->id.bytes, DIGEST_SIZE);
    sheet_print(sheet, "job          %s\n", id);
    if (job->title[0] != '\0') {
        sheet_print(sheet, "title        %s\n", job->title);
    }
    job_facts(&facts, job);
    sheet_print(sheet, "model        %s%s%" PRIu64 " parameters\n", job->model,
                job->model[0] == '\0' ? "" : "; ", facts.parameters);
    if (facts.tokens + facts.samples > 0) {
        sheet_print(sheet, "learns from  %" PRIu64 " %s\n", facts.tokens + facts.samples,
                    facts.tokens > 0 ? "tokens" : "samples");
    }
    if (facts.tokens > 0) {
        print_rows(sheet, &facts);
    }
    print_recipe(sheet, &facts);
    sheet_print(sheet, "steps        %" PRIu64 " in %" PRIu64 " segments of %" PRIu64 "\n",
                job->steps, job_segments(job), job->segment_length);
    if (brief != NULL) {
        sheet_print(sheet,
                    "program      %u operations on %u tensors; %u micro-batches of %u of them, in "
                    "groups of %u\n",
                    brief->op_count, brief->tensor_count, brief->repeat.times,
                    brief->repeat.op_count, brief->repeat.group);
    } else {
        sheet_print(sheet, "program      %u operations on %u tensors\n", job->tape->op_count,
                    job->tape->tensor_count);
    }
    sheet_print(sheet, "state        %u tensors, %.2f MiB; a checkpoint is as large\n",
                job->tape->state_count, (double)footprint.state / 1048576.0);
    sheet_print(sheet, "a run        %.2f MiB on disk, with ",
                (double)job_bundle_bytes(job, keep, 0) / 1048576.0);
    if (keep == 0) {
        sheet_print(sheet, "all checkpoints\n");
    } else {
        sheet_print(sheet, "the newest %" PRIu64 " checkpoints\n", keep);
    }
    sheet_print(sheet, "data         %u tensor%s, %.2f MiB\n", job->data_count,
                job->data_count == 1 ? "" : "s", (double)footprint.data / 1048576.0);
    print_shapes(sheet, job);
    hex_encode(id, job->first_state_root.bytes, DIGEST_SIZE);
    sheet_print(sheet, "first state  %s, root %.16s...\n",
                job->first_state_given ? "given as a checkpoint" : "drawn from the seed", id);
    sheet_print(sheet, "rules        version %u\n", job->rules_version);
    buffer_init(&precision, SHEET_SIZE_MAX);
    job_precision_print(&precision, job->tape);
    sheet_print(sheet, "%s", buffer_text(&precision));
    buffer_release(&precision);
    print_memory(sheet, memory);
    if (job->requirements.memory != 0) {
        sheet_print(sheet, "needs        %.2f MiB of memory\n",
                    (double)job->requirements.memory / 1048576.0);
    }
}
