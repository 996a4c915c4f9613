/* calibrate.c - see calibrate.h. */
#include "proofs/run/calibrate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/contraction.h"
#include "engine/ops/element.h"
#include "proofs/run/channel_rule.h"
#include "proofs/run/data_paths.h"

enum {
    SHIFT_NAME_MAX = TENSOR_NAME_MAX - 13, /* of a weight, before ".gradients" */
    SAMPLES = 8,                           /* rows of each operand whose products are computed */
    ROWS_MEASURED = 512                    /* of each batch, at most */
};
#define GAIN 0.9 /* what a shift must leave of the error, at most */
#define NONE UINT32_MAX

/* One operand: what a QUANTIZE reads. Batches of one axis differ only by their sequences, so they
 * are measured together; those of the other are heads. */
struct measured {
    uint64_t heads;
    uint64_t k;
    uint64_t rows;            /* of a batch */
    uint64_t samples;         /* rows, of each head */
    struct channel *channels; /* heads * k; NULL: not looked at */
    float *numbers;           /* heads * samples * k */
};

struct watch {
    const struct tape *tape;
    struct measured *operands; /* per operation */
    uint32_t *makers;          /* per tensor: the operation that makes it, or NONE */
    uint32_t *first_reader;    /* per tensor: a QUANTIZE that is looked at, or NONE */
    uint32_t *next_reader;     /* per operation */
};

/* ---- which products ------------------------------------------------------------- */

static const struct op *quantize_of(const struct watch *watch, const struct op *contract, int side)
{
    return &watch->tape->ops[watch->makers[contract->inputs[side == 0 ? 0 : 2]]];
}

static uint32_t place_of(const struct watch *watch, const struct op *op)
{
    return (uint32_t)(op - watch->tape->ops);
}

/* Does a softmax make it, or the gradient of a loss? Then K runs over tokens, or over targets: it
 * has other numbers in each step. */
static bool of_softmax(const struct watch *watch, const struct op *quantize)
{
    uint32_t maker = watch->makers[quantize->inputs[0]];
    enum op_kind kind;

    if (maker != NONE && watch->tape->ops[maker].kind == OP_DROPOUT) {
        maker = watch->makers[watch->tape->ops[maker].inputs[0]];
    }
    kind = maker == NONE ? OP_QUANTIZE : watch->tape->ops[maker].kind;
    return kind == OP_SOFTMAX || kind == OP_SOFTMAX_GRAD || kind == OP_CROSS_ENTROPY_GRAD;
}

static bool is_weight(const struct watch *watch, const struct op *quantize)
{
    enum role role = watch->tape->tensors[quantize->inputs[0]].role;

    return role == ROLE_STATE || role == ROLE_DATA || role == ROLE_CONSTANT;
}

static bool is_over_channels(const struct watch *watch, const struct op *op)
{
    const struct op *a;
    const struct op *b;

    if (op->kind != OP_CONTRACT || op->attributes[CONTRACT_K] < 2) {
        return false;
    }
    a = quantize_of(watch, op, 0);
    b = quantize_of(watch, op, 1);
    if (a == b || quantize_is_shifted(a) || of_softmax(watch, a) || of_softmax(watch, b)) {
        return false;
    }
    return is_weight(watch, b) || op->attributes[CONTRACT_CAUSAL] != 0 ||
           op->attributes[CONTRACT_DIMS] * op->attributes[CONTRACT_DIMS + 1] > 1;
}

static enum status open_operand(struct watch *watch, const struct op *op, struct error *error)
{
    const int64_t *dims = &op->attributes[QUANTIZE_DIMS];
    const uint32_t at = place_of(watch, op);
    struct measured *operand = &watch->operands[at];

    if (operand->channels != NULL) {
        return STATUS_OK;
    }
    operand->heads = (uint64_t)dims[1];
    operand->k = (uint64_t)(dims[4] * dims[5]);
    operand->rows = (uint64_t)(dims[2] * dims[3]);
    operand->samples = operand->rows < SAMPLES ? operand->rows : SAMPLES;
    operand->channels = calloc(operand->heads * operand->k, sizeof(*operand->channels));
    operand->numbers =
        calloc(operand->heads * operand->samples * operand->k, sizeof(*operand->numbers));
    if (operand->channels == NULL || operand->numbers == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to calibrate a product");
    }
    watch->next_reader[at] = watch->first_reader[op->inputs[0]];
    watch->first_reader[op->inputs[0]] = at;
    return STATUS_OK;
}

static enum status open_watch(struct watch *watch, const struct tape *tape, struct error *error)
{
    const size_t ops = (size_t)tape->op_count + 1;
    const size_t tensors = (size_t)tape->tensor_count + 1;

    *watch = (struct watch){.tape = tape};
    watch->operands = calloc(ops, sizeof(*watch->operands));
    watch->makers = malloc(tensors * sizeof(*watch->makers));
    watch->first_reader = malloc(tensors * sizeof(*watch->first_reader));
    watch->next_reader = malloc(ops * sizeof(*watch->next_reader));
    if (watch->operands == NULL || watch->makers == NULL || watch->first_reader == NULL ||
        watch->next_reader == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to calibrate a job");
    }
    memset(watch->makers, 0xff, tensors * sizeof(*watch->makers));             /* NONE */
    memset(watch->first_reader, 0xff, tensors * sizeof(*watch->first_reader)); /* NONE */
    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];

        for (uint32_t i = 0; i < op->output_count; i++) {
            watch->makers[op->outputs[i]] = at;
        }
        if (is_over_channels(watch, op)) {
            TRY(open_operand(watch, quantize_of(watch, op, 0), error));
            TRY(open_operand(watch, quantize_of(watch, op, 1), error));
        }
    }
    return STATUS_OK;
}

static void close_watch(struct watch *watch)
{
    for (uint32_t at = 0; watch->operands != NULL && at < watch->tape->op_count; at++) {
        free(watch->operands[at].channels);
        free(watch->operands[at].numbers);
    }
    free(watch->operands);
    free(watch->makers);
    free(watch->first_reader);
    free(watch->next_reader);
}

/* ---- their numbers ---------------------------------------------------------------- */

static float number_at(const void *bytes, enum dtype dtype, uint64_t at)
{
    if (dtype == DTYPE_F32) {
        return ((const float *)bytes)[at];
    }
    return real_from_bits(element_cast(dtype, DTYPE_F32, ((const uint16_t *)bytes)[at]));
}

static void measure_row(struct measured *operand, const struct op *op, uint64_t batch,
                        uint64_t head, uint64_t row, float *copy, enum dtype dtype,
                        const void *bytes)
{
    const int64_t *dims = &op->attributes[QUANTIZE_DIMS];
    const int64_t *strides = &op->attributes[QUANTIZE_STRIDES];
    const uint64_t base = batch * (uint64_t)strides[0] + head * (uint64_t)strides[1] +
                          row / (uint64_t)dims[3] * (uint64_t)strides[2] +
                          row % (uint64_t)dims[3] * (uint64_t)strides[3];
    struct channel *channels = operand->channels + head * operand->k;

    for (uint64_t k = 0; k < operand->k; k++) {
        const uint64_t at = base + k / (uint64_t)dims[5] * (uint64_t)strides[4] +
                            k % (uint64_t)dims[5] * (uint64_t)strides[5];
        const float number = number_at(bytes, dtype, at);
        const double size = fabs((double)number);

        channels[k].largest = size > channels[k].largest ? size : channels[k].largest;
        channels[k].squares += size * size;
        if (copy != NULL) {
            copy[k] = number;
        }
    }
}

/* Rows evenly spread, and among them the samples, of the first sequence. */
static void measure_rows(struct measured *operand, const struct op *op, enum dtype dtype,
                         const void *bytes)
{
    const uint64_t stride = operand->rows / ROWS_MEASURED + 1;
    const uint64_t batches = (uint64_t)op->attributes[QUANTIZE_DIMS];

    for (uint64_t i = 0; i < batches * operand->heads; i++) {
        const uint64_t head = i % operand->heads;

        for (uint64_t row = 0; row < operand->rows; row += stride) {
            measure_row(operand, op, i / operand->heads, head, row, NULL, dtype, bytes);
        }
    }
    for (uint64_t i = 0; i < operand->heads * operand->samples; i++) {
        const uint64_t sample = i % operand->samples;

        measure_row(operand, op, 0, i / operand->samples, sample * operand->rows / operand->samples,
                    operand->numbers + i * operand->k, dtype, bytes);
    }
}

static void see_tensor(struct watch *watch, uint32_t tensor, const void *bytes)
{
    const enum dtype dtype = watch->tape->tensors[tensor].dtype;

    for (uint32_t at = watch->first_reader[tensor]; at != NONE; at = watch->next_reader[at]) {
        measure_rows(&watch->operands[at], &watch->tape->ops[at], dtype, bytes);
    }
}

static enum status made_output(void *context, struct op_turn maker, uint32_t output,
                               const void *bytes, uint64_t size, struct error *error)
{
    struct watch *watch = context;

    (void)size;
    (void)error;
    see_tensor(watch, watch->tape->ops[maker.op].outputs[output], bytes);
    return STATUS_OK;
}

/* What no operation makes is seen before the step, the rest when it is made. */
static enum status watch_step(struct watch *watch, struct run *run, const struct first_state *first,
                              struct error *error)
{
    const struct observer observer = {.made = made_output, .context = watch};
    uint32_t data = 0;

    TRY(run_first_state(run, first, error));
    for (uint32_t id = 0; id < watch->tape->tensor_count; id++) {
        const enum role role = watch->tape->tensors[id].role;

        if (role == ROLE_DATA) {
            see_tensor(watch, id, run->given[data++]);
        } else if (!role_is_made(role)) {
            see_tensor(watch, id, run->machine->backend->peek(run->machine, id));
        }
    }
    return run->machine->backend->step(run->machine, &observer, error);
}

/* ---- what is chosen --------------------------------------------------------------- */

/* The products of all samples; c has k shifts for each head, or is NULL. */
static struct product_error error_of(const struct watch *watch, const struct op *contract,
                                     const int16_t *c)
{
    const struct measured *a = &watch->operands[place_of(watch, quantize_of(watch, contract, 0))];
    const struct measured *b = &watch->operands[place_of(watch, quantize_of(watch, contract, 1))];
    struct product_error sum = {0};

    for (uint64_t head = 0; head < a->heads; head++) {
        for (uint64_t i = 0; i < a->samples * b->samples; i++) {
            product_error_add(&sum, a->numbers + (head * a->samples + i / b->samples) * a->k,
                              b->numbers + (head * b->samples + i % b->samples) * b->k, a->k,
                              c == NULL ? NULL : c + head * a->k,
                              (uint32_t)contract->attributes[CONTRACT_BITS],
                              (uint32_t)contract->attributes[CONTRACT_BLOCK]);
        }
    }
    return sum;
}

/* The products over channels with one first operand. */
struct group {
    uint32_t *at;      /* operations */
    uint32_t *numbers; /* of the products */
    uint32_t count;
};

static double relative_error(const struct product_error *sum)
{
    return sum->exact > 0.0 ? sum->ours / sum->exact : 0.0;
}

static bool is_frozen(const struct watch *watch, uint32_t at)
{
    const struct op *b = quantize_of(watch, &watch->tape->ops[at], 1);

    return watch->tape->tensors[b->inputs[0]].role == ROLE_DATA;
}

/* Where the group has frozen weights, they alone choose: an adapter begins at random and moves. */
static bool has_a_say(const struct watch *watch, const struct group *group, uint32_t i)
{
    bool frozen = false;

    for (uint32_t j = 0; j < group->count; j++) {
        frozen = frozen || is_frozen(watch, group->at[j]);
    }
    return !frozen || is_frozen(watch, group->at[i]);
}

/* What the products of a group are off by; c as in error_of(). */
static double error_of_group(const struct watch *watch, const struct group *group, const int16_t *c)
{
    double all = 0.0;

    for (uint32_t i = 0; i < group->count; i++) {
        if (has_a_say(watch, group, i)) {
            const struct product_error sum = error_of(watch, &watch->tape->ops[group->at[i]], c);

            all += relative_error(&sum);
        }
    }
    return all;
}

/* The second operands of a group, as if they were one. */
static void join_channels(struct channel *both, const struct watch *watch,
                          const struct group *group, uint64_t count)
{
    for (uint32_t i = 0; i < group->count; i++) {
        const struct op *op = &watch->tape->ops[group->at[i]];
        const struct measured *b = &watch->operands[place_of(watch, quantize_of(watch, op, 1))];

        for (uint64_t k = 0; k < count && has_a_say(watch, group, i); k++) {
            both[k].largest = fmax(both[k].largest, b->channels[k].largest);
            both[k].squares += b->channels[k].squares;
        }
    }
}

/* The shifts of a group, for each head, the better of two; *gained: they are worth it. */
static enum status find_shift(int16_t *c, bool *gained, const struct watch *watch,
                              const struct group *group, struct error *error)
{
    const struct op *first = &watch->tape->ops[group->at[0]];
    const struct measured *a = &watch->operands[place_of(watch, quantize_of(watch, first, 0))];
    const uint64_t count = a->heads * a->k;
    struct channel *both = calloc(count, sizeof(*both));
    int16_t *tried = calloc(count, sizeof(*tried));
    enum status status = STATUS_OK;
    double least = -1.0;

    *gained = false;
    if (both == NULL || tried == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory to calibrate a product");
        goto out;
    }
    join_channels(both, watch, group, count);
    for (int h_alone = 0; h_alone < 2; h_alone++) {
        bool any = false;

        for (uint64_t head = 0; head < a->heads; head++) {
            bool worth = false;

            TRY_OUT(channel_rule(tried + head * a->k, &worth, a->channels + head * a->k,
                                 both + head * a->k, a->k, h_alone == 1, error));
            any = any || worth;
        }
        /* The error without shifts is found only when some channel would be shifted: it costs
         * products. */
        if (any && least < 0.0) {
            /* Shifts that leave more than GAIN of the error are not worth an operand; squared, as
             * errors are. */
            least = GAIN * GAIN * error_of_group(watch, group, NULL);
        }
        const double left = any ? error_of_group(watch, group, tried) : 0.0;

        if (any && left < least) {
            memcpy(c, tried, count * sizeof(*c));
            least = left;
            *gained = true;
        }
    }
out:
    free(both);
    free(tried);
    return status;
}

/* "SCOPE.NAME.channels", or ".gradients" behind the loss; a product of two temporaries has its
 * number. */
static void name_shift(char name[TENSOR_NAME_MAX + 1], const struct watch *watch,
                       const struct group *group)
{
    const struct tape *tape = watch->tape;
    const struct op *op = &tape->ops[group->at[0]];
    const struct op *b = quantize_of(watch, op, 1);
    const char *weight = tape->tensors[b->inputs[0]].name;
    const uint32_t loss = tape->loss == TENSOR_NONE ? NONE : watch->makers[tape->loss];
    const char *end = strrchr(weight, '.');
    int length =
        end != NULL && strcmp(end, ".weight") == 0 ? (int)(end - weight) : (int)strlen(weight);

    if (is_weight(watch, b)) {
        (void)snprintf(name, TENSOR_NAME_MAX + 1, "%.*s.%s",
                       length > SHIFT_NAME_MAX ? SHIFT_NAME_MAX : length, weight,
                       group->at[0] > loss ? "gradients" : "channels");
    } else {
        (void)snprintf(name, TENSOR_NAME_MAX + 1, "product.%u.%s", group->numbers[0],
                       group->at[0] > loss ? "gradients" : "channels");
    }
}

/* Copies the shifts of the heads for each sequence of the batch. */
static enum status add_shift(struct calibration *calibration, const struct watch *watch,
                             const struct group *group, const int16_t *c, struct error *error)
{
    const struct op *op = &watch->tape->ops[group->at[0]];
    const struct measured *a = &watch->operands[place_of(watch, quantize_of(watch, op, 0))];
    const uint64_t batches = (uint64_t)op->attributes[CONTRACT_DIMS];
    const uint64_t count = a->heads * a->k;
    struct calibrated_shift *shift = &calibration->shifts[calibration->shift_count];

    *shift = (struct calibrated_shift){.count = batches * count};
    shift->c = malloc(shift->count * sizeof(*shift->c));
    if (shift->c == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to calibrate a product");
    }
    for (uint64_t batch = 0; batch < batches; batch++) {
        memcpy(shift->c + batch * count, c, count * sizeof(*c));
    }
    name_shift(shift->name, watch, group);
    for (uint32_t i = 0; i < group->count; i++) {
        calibration->products[group->numbers[i]].shift = calibration->shift_count;
    }
    calibration->shift_count++;
    return STATUS_OK;
}

static enum status choose_for_group(struct calibration *calibration, const struct watch *watch,
                                    const struct group *group, struct error *error)
{
    const struct op *first = &watch->tape->ops[group->at[0]];
    const struct measured *a = &watch->operands[place_of(watch, quantize_of(watch, first, 0))];
    int16_t *c = calloc(a->heads * a->k, sizeof(*c));
    bool gained = false;
    enum status status;

    if (c == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to calibrate a product");
    }
    TRY_OUT(find_shift(c, &gained, watch, group, error));
    if (gained) {
        TRY_OUT(add_shift(calibration, watch, group, c, error));
    }
    for (uint32_t i = 0; i < group->count; i++) {
        const struct op *op = &watch->tape->ops[group->at[i]];
        const struct product_error sum = error_of(watch, op, gained ? c : NULL);

        if (sum.ours > sum.bfloat16 && op->attributes[CONTRACT_BITS] < 22 &&
            contraction_window(22, op->attributes[CONTRACT_K]) >= 0) {
            calibration->products[group->numbers[i]].bits = 22;
        }
    }
out:
    free(c);
    return status;
}

/* The products over channels from operation `at` on that share its first operand. */
static void find_group(struct group *group, bool *taken, const struct watch *watch, uint32_t at,
                       uint32_t number)
{
    const uint32_t quantize = watch->makers[watch->tape->ops[at].inputs[0]];

    group->count = 0;
    for (; at < watch->tape->op_count; at++) {
        const struct op *op = &watch->tape->ops[at];

        if (op->kind != OP_CONTRACT) {
            continue;
        }
        if (watch->makers[op->inputs[0]] == quantize && is_over_channels(watch, op)) {
            taken[number] = true;
            group->at[group->count] = at;
            group->numbers[group->count++] = number;
        }
        number++;
    }
}

static enum status choose_all(struct calibration *calibration, const struct watch *watch,
                              struct error *error)
{
    const struct tape *tape = watch->tape;
    struct group group = {.count = 0};
    uint32_t number = 0;
    bool *taken;
    enum status status = STATUS_OK;

    group.at = calloc((size_t)tape->op_count + 1, sizeof(*group.at));
    group.numbers = calloc((size_t)tape->op_count + 1, sizeof(*group.numbers));
    taken = calloc((size_t)tape->op_count + 1, sizeof(*taken));
    calibration->products = calloc((size_t)tape->op_count + 1, sizeof(*calibration->products));
    calibration->shifts = calloc((size_t)tape->op_count + 1, sizeof(*calibration->shifts));
    if (group.at == NULL || group.numbers == NULL || taken == NULL ||
        calibration->products == NULL || calibration->shifts == NULL) {
        TRY_OUT(error_set(error, STATUS_NO_MEMORY, "no memory to calibrate a job"));
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        calibration->products[at].shift = CALIBRATION_NONE;
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        if (tape->ops[at].kind != OP_CONTRACT) {
            continue;
        }
        /* Products with one first operand share its shifts: they are chosen together, once. */
        if (!taken[number] && is_over_channels(watch, &tape->ops[at])) {
            find_group(&group, taken, watch, at, number);
            TRY_OUT(choose_for_group(calibration, watch, &group, error));
        }
        number++;
    }
    calibration->product_count = number;
out:
    free(group.at);
    free(group.numbers);
    free(taken);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------ */

enum status calibrate(struct calibration *calibration, const struct job *job,
                      const char *const *paths, size_t path_count, const struct first_state *first,
                      struct error *error)
{
    struct machine_options options;
    struct watch watch = {0};
    struct run run = {0};
    enum status status;

    *calibration = (struct calibration){0};
    TRY(machine_options_default(&options, error));
    options.trace = true;
    TRY(run_check_memory(job->tape, &options, "the step that calibrates the job",
                         "make the job on a larger machine, or with --calibrate none", error));
    TRY_OUT(open_watch(&watch, job->tape, error));
    TRY_OUT(run_open_compared(&run, job, paths, path_count, NULL, &options, error));
    TRY_OUT(watch_step(&watch, &run, first, error));
    run_close(&run);
    TRY_OUT(choose_all(calibration, &watch, error));
out:
    run_close(&run);
    close_watch(&watch);
    return status;
}

void calibration_release(struct calibration *calibration)
{
    for (uint32_t i = 0; i < calibration->shift_count; i++) {
        free(calibration->shifts[i].c);
    }
    free(calibration->shifts);
    free(calibration->products);
    *calibration = (struct calibration){0};
}

enum status calibrate_model(struct calibration *calibration, const struct model_options *given,
                            const struct job_terms *terms, const char *const *files, size_t count,
                            const char *first_state, struct error *error)
{
    struct model_options options = *given;
    struct first_state first = {0};
    struct data_paths paths = {0};
    struct model model = {0};
    struct job *job = NULL;
    enum status status;

    options.optimizer = OPTIMIZER_SGD;
    options.accumulate = 1;
    options.group = 0;
    TRY_OUT(model_build(&model, &options, error));
    TRY_OUT(job_from_model(&job, &model, terms, error));
    TRY_OUT(data_paths_of_files(&paths, job->tape, files, count, error));
    if (job->first_state_given) {
        TRY_OUT(first_state_open(&first, job->tape, first_state, error));
    }
    TRY_OUT(calibrate(calibration, job, (const char *const *)paths.of, paths.count,
                      job->first_state_given ? &first : NULL, error));
out:
    first_state_close(&first);
    data_paths_close(&paths);
    job_free(job);
    model_release(&model);
    return status;
}
