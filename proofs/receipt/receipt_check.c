/* receipt_check.c - see receipt_check.h. */
#include "proofs/receipt/receipt_check.h"

#include <stdlib.h>
#include <string.h>

#include "proofs/commit/element.h"
#include "proofs/run/data_paths.h"
#include "proofs/run/run.h"

/* A step that is watched: its logits are looked at slice by slice, and not kept. */
struct receipt_watch {
    const struct tape *tape;
    const struct model *model;
    const struct receipt_row *row;
    struct sampler sampler;
    struct sampler_choice *choices;
    uint32_t made; /* choices so far */
};

static bool wants_slice(const void *context, struct op_turn maker, uint32_t output)
{
    const struct receipt_watch *watch = context;
    const uint32_t tensor = watch->tape->ops[maker.op].outputs[output];

    for (uint32_t i = 0; i < watch->model->slice_count; i++) {
        if (watch->model->slices[i] == tensor) {
            return true;
        }
    }
    return false;
}

/* The slices come in the order of their positions: each is made behind the conditions of the one
 * before. */
static enum status see_slice(void *context, struct op_turn maker, uint32_t output,
                             const void *bytes, uint64_t size, struct error *error)
{
    struct receipt_watch *watch = context;
    const size_t row_size = watch->sampler.vocabulary * sizeof(float);
    const uint32_t answer = watch->row->count - watch->row->prompt;

    (void)error;
    if (!wants_slice(context, maker, output)) {
        return STATUS_OK;
    }
    for (uint64_t at = 0; at < size && watch->made < answer; at += row_size) {
        struct sampler_choice *choice = &watch->choices[watch->made++];
        const float *logits = (const float *)((const uint8_t *)bytes + at);

        if (element_all_finite(logits, watch->sampler.vocabulary)) {
            watch->sampler.drawn = watch->made - 1;
            sampler_next(choice, &watch->sampler, logits);
        } else {
            *choice = (struct sampler_choice){.token = RECEIPT_NO_CHOICE};
        }
    }
    return STATUS_OK;
}

static enum status read_held(uint32_t *held, struct run *run, struct error *error)
{
    const struct tape *tape = run->job->tape;
    int32_t found = 0;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        const uint32_t id = tape->states[i].before;

        if (strcmp(tape->tensors[id].name, "held") == 0) {
            TRY(run->machine->backend->read(run->machine, id, &found, error));
        }
    }
    *held = found > 0 ? (uint32_t)found : 0;
    return STATUS_OK;
}

/* Runs the step. choices NULL: it is not watched. */
static enum status run_step(uint32_t *held, struct sampler_choice *choices, const struct job *job,
                            const struct model *model, const struct receipt *receipt,
                            const struct receipt_base *base, const struct machine_options *machine,
                            struct error *error)
{
    const struct receipt_row *row = &receipt->row;
    const struct sampler_rule rule = {.temperature = row->temperature,
                                      .top_k = row->top_k,
                                      .top_p = row->top_p,
                                      .seed = row->seed};
    struct receipt_watch watch = {
        .tape = job->tape, .model = model, .row = row, .choices = choices};
    const struct observer observer = {.made = see_slice, .context = &watch, .wants = wants_slice};
    struct machine_options options = *machine;
    struct data_paths paths = {0};
    struct run run = {0};
    enum status status;

    options.trace = choices != NULL;
    TRY(sampler_init(&watch.sampler, &rule, base->config.model.vocabulary, error));
    TRY_OUT(run_check_memory(job->tape, &options, "the step of the receipt",
                             "take a larger machine", error));
    TRY_OUT(data_paths_of_files(&paths, job->tape, &base->folder, 1, error));
    TRY_OUT(run_open_compared(&run, job, (const char *const *)paths.of, paths.count, NULL, &options,
                              error));
    TRY_OUT(run_first_state(&run, NULL, error));
    TRY_OUT(run.machine->backend->step(run.machine, choices != NULL ? &observer : NULL, error));
    TRY_OUT(read_held(held, &run, error));
out:
    run_close(&run);
    data_paths_close(&paths);
    sampler_release(&watch.sampler);
    return status;
}

enum status receipt_choices(struct sampler_choice *choices, const struct receipt *receipt,
                            const struct receipt_base *base, const struct machine_options *machine,
                            struct error *error)
{
    struct model model = {0};
    struct job *job = NULL;
    uint32_t held = 0;
    enum status status;

    TRY_OUT(receipt_job(&job, &model, receipt, base, NULL, error));
    TRY_OUT(run_step(&held, choices, job, &model, receipt, base, machine, error));
out:
    job_free(job);
    model_release(&model);
    return status;
}

/* The first token that is not as the step has it. False: there is none. */
static bool find_other_token(struct error *why, const struct receipt *receipt,
                             const struct sampler_choice *choices)
{
    const struct receipt_row *row = &receipt->row;

    for (uint32_t i = 0; i < receipt_answer(receipt); i++) {
        const uint32_t token = row->tokens[row->prompt + i];

        if (choices[i].token == RECEIPT_NO_CHOICE) {
            (void)error_set(why, STATUS_REFUSED,
                            "the step's logits at token %u of the answer are no numbers", i);
            return true;
        }
        if (token != choices[i].token) {
            (void)error_set(why, STATUS_REFUSED,
                            "token %u of the answer is %u, and the step chooses %u", i, token,
                            choices[i].token);
            return true;
        }
    }
    return false;
}

/* The first threshold that is another. False: there is none. */
static bool find_other_threshold(struct error *why, const struct receipt *receipt,
                                 const struct sampler_choice *choices)
{
    const struct receipt_row *row = &receipt->row;

    for (uint32_t i = 0; i < receipt_answer(receipt); i++) {
        const bool by_p = row->thresholds_p[i] != choices[i].threshold_p;

        if (by_p || row->thresholds_k[i] != choices[i].threshold_k) {
            (void)error_set(why, STATUS_REFUSED,
                            "the threshold of top-%c at token %u of the answer is %.9g, and that "
                            "of the step %.9g",
                            by_p ? 'p' : 'k', i,
                            (double)(by_p ? row->thresholds_p[i] : row->thresholds_k[i]),
                            (double)(by_p ? choices[i].threshold_p : choices[i].threshold_k));
            return true;
        }
    }
    return false;
}

/* The step once more, by other instructions and watched, to say what is wrong. */
static enum status confirm_refuted(struct receipt_verdict *verdict, const struct job *job,
                                   const struct model *model, const struct receipt *receipt,
                                   const struct receipt_base *base,
                                   const struct machine_options *machine, struct error *error)
{
    struct sampler_choice *choices = calloc(receipt_answer(receipt), sizeof(*choices));
    struct machine_options other = *machine;
    uint32_t held = 0;
    enum status status;

    if (choices == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u choices",
                         receipt_answer(receipt));
    }
    machine_options_other(&other);
    TRY_OUT(run_step(&held, choices, job, model, receipt, base, &other, error));
    if (held != verdict->held) {
        status = error_set(error, STATUS_DEVICE,
                           "this machine finds %u conditions and, by other instructions, %u: it "
                           "computes wrongly",
                           verdict->held, held);
    } else if (!find_other_token(&verdict->why, receipt, choices) &&
               !find_other_threshold(&verdict->why, receipt, choices)) {
        (void)error_set(&verdict->why, STATUS_REFUSED, "%u of %u conditions hold", held,
                        verdict->conditions);
    }
out:
    free(choices);
    return status;
}

static enum status check_row(struct receipt_verdict *verdict, const struct receipt *receipt,
                             const struct receipt_base *base, const struct machine_options *machine,
                             struct error *error)
{
    struct model model = {0};
    struct job *job = NULL;
    enum status status;

    TRY_OUT(receipt_job(&job, &model, receipt, base, NULL, error));
    TRY_OUT(run_step(&verdict->held, NULL, job, &model, receipt, base, machine, error));
    verdict->proven = verdict->held == verdict->conditions;
    if (!verdict->proven) {
        TRY_OUT(confirm_refuted(verdict, job, &model, receipt, base, machine, error));
    }
out:
    job_free(job);
    model_release(&model);
    return status;
}

enum status receipt_check_base(struct receipt_verdict *verdict, const struct receipt *receipt,
                               const struct receipt_base *base,
                               const struct machine_options *machine, struct error *error)
{
    *verdict = (struct receipt_verdict){.conditions = receipt_row_conditions(&receipt->row)};
    error_init(&verdict->why);
    if (!receipt_base_is(base, receipt, &verdict->why) ||
        !receipt_base_takes(base, receipt, &verdict->why)) {
        return STATUS_OK;
    }
    return check_row(verdict, receipt, base, machine, error);
}

enum status receipt_check(struct receipt_verdict *verdict, const struct receipt *receipt,
                          const char *folder, const char *name,
                          const struct machine_options *machine, struct error *error)
{
    struct receipt_base base;
    enum status status;

    *verdict = (struct receipt_verdict){.proven = false};
    TRY(receipt_base_open(&base, folder, name, error));
    status = receipt_check_base(verdict, receipt, &base, machine, error);
    receipt_base_close(&base);
    return status;
}
