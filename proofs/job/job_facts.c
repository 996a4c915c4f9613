/* job_facts.c - see job_facts.h. */
#include "proofs/job/job_facts.h"

#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/strict_json.h"
#include "engine/ops/real.h"
#include "proofs/job/first_state.h"
#include "proofs/job/job_adapters.h"

enum {
    KEPT_LEAST = 3,
    JOURNAL_STEP = 256,     /* bytes of a step in the journal, with room to spare */
    CHECKPOINT_EXTRA = 256, /* bytes of a tensor's name and place in a checkpoint */
};

/* The job's program as it was written: one micro-batch. */
static const struct tape *written_tape(const struct job *job)
{
    return job->tape->brief != NULL ? job->tape->brief : job->tape;
}

static const struct op *find_kind(const struct tape *tape, enum op_kind kind)
{
    for (uint32_t at = 0; at < tape->op_count; at++) {
        if (tape->ops[at].kind == kind) {
            return &tape->ops[at];
        }
    }
    return NULL;
}

/* ---- sizes ----------------------------------------------------------------- */

/* Is the tensor what batches are drawn from? */
static bool is_drawn_from(const struct tape *tape, uint32_t id)
{
    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];

        if ((op->kind == OP_BATCH_TOKENS || op->kind == OP_BATCH_SAMPLES ||
             op->kind == OP_BATCH_ROWS) &&
            op->inputs[0] == id) {
            return true;
        }
    }
    return false;
}

static bool is_real(enum dtype dtype)
{
    return dtype == DTYPE_F32 || dtype == DTYPE_F16 || dtype == DTYPE_BF16;
}

static void count_numbers(struct job_facts *facts, const struct tape *tape)
{
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const uint64_t count = tape->tensors[tape->states[i].before].count;

        if (!facts->trains) {
            facts->numbers += count;
        } else if (first_state_is_parameter(tape, i)) {
            facts->parameters += count;
        }
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct tensor *tensor = &tape->tensors[id];

        if (tensor->role == ROLE_DATA && is_real(tensor->dtype) && !is_drawn_from(tape, id)) {
            facts->frozen += tensor->count;
        }
    }
}

/* Does an operation draw what stands one place ahead in rows, as the targets of tokens do? */
static bool has_targets(const struct tape *tape)
{
    for (uint32_t at = 0; at < tape->op_count; at++) {
        if (tape->ops[at].kind == OP_BATCH_ROWS &&
            tape->ops[at].attributes[BATCH_ROWS_AHEAD] == 1) {
            return true;
        }
    }
    return false;
}

/* How many models score the targets of a batch. */
static uint32_t count_losses(const struct tape *tape)
{
    uint32_t count = 0;

    for (uint32_t at = 0; at < tape->op_count; at++) {
        count += tape->ops[at].kind == OP_CROSS_ENTROPY;
    }
    return count;
}

static void find_rows(struct job_facts *facts, const struct job *job, const struct tape *tape,
                      const struct op *rows)
{
    const uint64_t length = (uint64_t)rows->attributes[BATCH_LENGTH];
    uint64_t drawn;

    facts->batch = (uint64_t)rows->attributes[BATCH_COUNT];
    drawn = job->steps * facts->micro_batches * facts->batch;
    if (has_targets(tape)) {
        facts->length = length;
        facts->tokens = drawn * length;
    } else {
        facts->samples = drawn;
    }
    facts->rows = tape->tensors[rows->inputs[0]].count / length;
    facts->pairs = rows->attributes[BATCH_ROWS_UNIT] == 2 && count_losses(tape) == 2;
    facts->in_order = rows->attributes[BATCH_ROWS_ORDER] == 0;
    if (!facts->in_order) {
        facts->epochs = drawn / facts->rows;
        facts->rows_of_next = drawn % facts->rows;
    }
}

/* The first batch that a model draws is what it learns from. */
static void find_batch(struct job_facts *facts, const struct job *job)
{
    const struct tape *tape = written_tape(job);
    const struct op *tokens = find_kind(tape, OP_BATCH_TOKENS);
    const struct op *samples = find_kind(tape, OP_BATCH_SAMPLES);
    const struct op *rows = find_kind(tape, OP_BATCH_ROWS);

    facts->micro_batches = job->tape->brief == NULL ? 1 : tape->repeat.times;
    if (rows != NULL) {
        find_rows(facts, job, tape, rows);
    } else if (tokens != NULL) {
        facts->batch = (uint64_t)tokens->attributes[BATCH_COUNT];
        facts->length = (uint64_t)tokens->attributes[BATCH_LENGTH];
        facts->tokens = job->steps * facts->micro_batches * facts->batch * facts->length;
    } else if (samples != NULL) {
        facts->batch = (uint64_t)samples->attributes[BATCH_COUNT];
        facts->samples = job->steps * facts->micro_batches * facts->batch;
    }
}

/* ---- how it learns ------------------------------------------------------------ */

/* The operation that makes the tensor, or NULL. */
static const struct op *maker_of(const struct tape *tape, uint32_t tensor)
{
    for (uint32_t at = tape->op_count; at > 0; at--) {
        for (uint32_t i = 0; i < tape->ops[at - 1].output_count; i++) {
            if (tape->ops[at - 1].outputs[i] == tensor) {
                return &tape->ops[at - 1];
            }
        }
    }
    return NULL;
}

static bool is_map(const struct op *op, enum map_function function)
{
    return op != NULL && op->kind == OP_MAP && op->attributes[MAP_FUNCTION] == function;
}

static bool is_binary(const struct op *op, enum binary_function function)
{
    return op != NULL && op->kind == OP_BINARY && op->attributes[BINARY_FUNCTION] == function;
}

/* The rates of the job's steps, of the schedule that makes the tensor. */
static void take_rates(struct job_facts *facts, const struct job *job, const struct op *schedule)
{
    const struct tape *tape = written_tape(job);
    const uint64_t columns = (uint64_t)schedule->attributes[SCHEDULE_COLUMNS];
    const float *table = job_constant(job, schedule->inputs[0]);
    uint64_t rows = tape->tensors[schedule->inputs[0]].count / columns;

    rows = rows < job->steps ? rows : job->steps;
    for (uint64_t row = 0; table != NULL && row < rows; row++) {
        double value = (double)table[row * columns + (uint64_t)schedule->attributes[1]];

        facts->rate_first = row == 0 ? value : facts->rate_first;
        facts->rate_most = value > facts->rate_most ? value : facts->rate_most;
        facts->rate_last = value;
        for (uint64_t i = 0; i < FACTS_RATES; i++) {
            facts->rates[i] = row == i * (rows - 1) / (FACTS_RATES - 1) ? value : facts->rates[i];
        }
    }
}

/* A rate: of a schedule, or of one so many times. */
static void find_rates(struct job_facts *facts, const struct job *job, uint32_t rate)
{
    const struct tape *tape = written_tape(job);
    const struct op *made = maker_of(tape, rate);
    double factor = 1.0;

    if (is_map(made, MAP_SCALE)) {
        factor = (double)real_from_bits((uint32_t)made->attributes[MAP_CONSTANT_BITS]);
        made = maker_of(tape, made->inputs[0]);
    }
    if (made == NULL || made->kind != OP_SCHEDULE ||
        tape->tensors[made->inputs[0]].role != ROLE_CONSTANT) {
        return;
    }
    if (facts->factor_most == 0.0) {
        take_rates(facts, job, made);
        facts->factor_least = facts->factor_most = factor;
    }
    facts->factor_least = factor < facts->factor_least ? factor : facts->factor_least;
    facts->factor_most = factor > facts->factor_most ? factor : facts->factor_most;
}

static void take_kind(struct job_facts *facts, const struct job *job, const struct op *op)
{
    const bool adamw = op->kind == OP_ADAMW;
    const double decay =
        (double)real_from_bits((uint32_t)op->attributes[adamw ? ADAMW_DECAY_BITS : SGD_DECAY_BITS]);

    if (adamw) {
        facts->optimizer = facts->optimizer == NULL ? "adamw" : facts->optimizer;
        facts->beta1 = (double)real_from_bits((uint32_t)op->attributes[ADAMW_BETA1_BITS]);
        facts->beta2 = (double)real_from_bits((uint32_t)op->attributes[ADAMW_BETA2_BITS]);
        facts->epsilon = (double)real_from_bits((uint32_t)op->attributes[ADAMW_EPSILON_BITS]);
    } else {
        facts->optimizer = "sgd";
        facts->momentum = (double)real_from_bits((uint32_t)op->attributes[SGD_MOMENTUM_BITS]);
    }
    find_rates(facts, job, op->inputs[adamw ? 4 : 3]); /* it stands behind the moments */
    facts->decay = decay > facts->decay ? decay : facts->decay;
}

/* The factor of the state in the sum that is its next value: beta2 of Lion, the momentum of
 * Muon. */
static double share_that_stays(const struct tape *tape, const char *moment)
{
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const struct op *sum = maker_of(tape, tape->states[i].after);
        const struct op *scale = is_binary(sum, BINARY_ADD) ? maker_of(tape, sum->inputs[0]) : NULL;

        if (strcmp(tape->tensors[tape->states[i].before].name, moment) == 0 && scale != NULL &&
            is_map(scale, MAP_SCALE)) {
            return (double)real_from_bits((uint32_t)scale->attributes[MAP_CONSTANT_BITS]);
        }
    }
    return 0.0;
}

/* p' = p - rate * (u + decay p), where u is a sign, or what engine/models/updates.c makes
 * orthogonal. */
static void take_written(struct job_facts *facts, const struct job *job, uint32_t before,
                         const struct op *op)
{
    const struct tape *tape = written_tape(job);
    const struct op *step = maker_of(tape, op->inputs[1]);
    char moment[TENSOR_NAME_MAX + 4];

    if (op->inputs[0] != before || !is_binary(step, BINARY_MUL)) {
        return;
    }
    const struct op *u = maker_of(tape, step->inputs[0]);
    const struct op *pull = is_binary(u, BINARY_ADD) ? maker_of(tape, u->inputs[1]) : NULL;

    if (is_map(pull, MAP_SCALE) && pull->inputs[0] == before) {
        double decay = (double)real_from_bits((uint32_t)pull->attributes[MAP_CONSTANT_BITS]);

        facts->decay = decay > facts->decay ? decay : facts->decay;
        u = maker_of(tape, u->inputs[0]);
    }
    if (!is_map(u, MAP_SIGN) && !is_map(u, MAP_SCALE)) {
        return;
    }
    (void)snprintf(moment, sizeof(moment), "m.%s", tape->tensors[before].name);
    if (is_map(u, MAP_SIGN)) {
        const struct op *sum = maker_of(tape, u->inputs[0]);
        const struct op *scale = is_binary(sum, BINARY_ADD) ? maker_of(tape, sum->inputs[0]) : NULL;

        facts->optimizer = "lion";
        facts->beta1 = is_map(scale, MAP_SCALE)
                           ? (double)real_from_bits((uint32_t)scale->attributes[MAP_CONSTANT_BITS])
                           : 0;
        facts->beta2 = share_that_stays(tape, moment);
    } else {
        facts->optimizer = "muon";
        facts->momentum = share_that_stays(tape, moment);
    }
    find_rates(facts, job, step->inputs[1]);
}

/* Makers are found by walking the tape, so that of many parameters a few are looked at. */
enum { WRITTEN_MOST = 64 };

static void find_optimizer(struct job_facts *facts, const struct job *job)
{
    const struct tape *tape = written_tape(job);
    uint32_t looked = 0;

    for (uint32_t at = 0; at < tape->op_count; at++) {
        if (tape->ops[at].kind == OP_ADAMW || tape->ops[at].kind == OP_SGD) {
            take_kind(facts, job, &tape->ops[at]);
        }
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const uint32_t before = tape->states[i].before;

        if (looked < WRITTEN_MOST && first_state_is_parameter(tape, i)) {
            const struct op *op = maker_of(tape, tape->states[i].after);

            looked++;
            if (is_binary(op, BINARY_SUB)) {
                take_written(facts, job, before, op);
            }
        }
    }
}

/* ---- what it trains -------------------------------------------------------------- */

static void find_adapters(struct job_facts *facts, const struct tape *tape)
{
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const struct tensor *tensor = &tape->tensors[tape->states[i].before];

        if (!first_state_is_parameter(tape, i)) {
            continue;
        }
        if (!job_adapter_is_part(tensor->name)) {
            facts->whole += tensor->count;
        } else if (job_adapter_is_a(tensor->name)) {
            facts->rank = tensor->dims[0];
        } else if (facts->adapters == 0.0) {
            facts->adapters = job_adapter_scale(tape, tensor->name);
        }
    }
    facts->whole = facts->rank == 0 ? 0 : facts->whole;
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        facts->masked = facts->masked || (tape->tensors[id].role == ROLE_DATA &&
                                          strcmp(tape->tensors[id].name, "mask") == 0);
    }
}

void job_facts(struct job_facts *facts, const struct job *job)
{
    const struct tape *tape = written_tape(job);
    const struct op *clip = find_kind(tape, OP_CLIP_FACTOR);
    const struct op *dropout = find_kind(tape, OP_DROPOUT);
    const struct op *quantize = find_kind(tape, OP_QUANTIZE);

    *facts = (struct job_facts){.trains = tape->loss != TENSOR_NONE};
    count_numbers(facts, tape);
    find_batch(facts, job);
    find_optimizer(facts, job);
    find_adapters(facts, tape);
    if (clip != NULL) {
        facts->clip = (double)real_from_bits((uint32_t)clip->attributes[CLIP_LIMIT_BITS]);
    }
    if (dropout != NULL) {
        facts->dropout = (double)dropout->attributes[DROPOUT_THRESHOLD] / 4294967296.0;
    }
    if (quantize != NULL) {
        facts->bits = (uint64_t)quantize->attributes[QUANTIZE_BITS];
        facts->block = (uint64_t)quantize->attributes[QUANTIZE_BLOCK];
    }
}

/* ---- a run on disk --------------------------------------------------------------- */

uint64_t job_checkpoint_bytes(const struct job *job)
{
    return tape_footprint(job->tape).state +
           (uint64_t)CHECKPOINT_EXTRA * (job->tape->state_count + 1u);
}

uint64_t job_keep_default(const struct job *job)
{
    uint64_t fit = JOB_KEPT_BYTES / job_checkpoint_bytes(job);

    if (fit >= job_segments(job)) {
        return 0;
    }
    return fit < KEPT_LEAST ? KEPT_LEAST : fit;
}

uint64_t job_bundle_bytes(const struct job *job, uint64_t keep, uint64_t every)
{
    uint64_t size = job_checkpoint_bytes(job);
    uint64_t segments = job_segments(job);
    uint64_t count = keep == 0 ? segments : keep + 1 + (every == 0 ? 0 : segments / every);

    /* One more while it is written, and one that a stop leaves. */
    count = (count < segments ? count : segments) + 2;
    return size > UINT64_MAX / count ? UINT64_MAX : size * count + job->steps * JOURNAL_STEP;
}

/* ---- the view for people ----------------------------------------------------------- */

static json_t *facts_json(const struct job *job)
{
    const uint64_t keep = job_keep_default(job);
    struct job_facts facts;

    job_facts(&facts, job);
    return json_pack(
        "{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s?, s:f, s:f, "
        "s:f, s:f, "
        "s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:f, s:I, s:b, s:I, s:I, s:I, s:b}",
        "trains", (int)facts.trains, "numbers", (json_int_t)facts.numbers, "parameters",
        (json_int_t)facts.parameters, "frozen_parameters", (json_int_t)facts.frozen, "batch",
        (json_int_t)facts.batch, "length", (json_int_t)facts.length, "micro_batches",
        (json_int_t)facts.micro_batches, "tokens", (json_int_t)facts.tokens, "samples",
        (json_int_t)facts.samples, "rows", (json_int_t)facts.rows, "epochs",
        (json_int_t)facts.epochs, "rows_of_next_epoch", (json_int_t)facts.rows_of_next, "bits",
        (json_int_t)facts.bits, "block", (json_int_t)facts.block, "optimizer", facts.optimizer,
        "rate_first", facts.rate_first, "rate_most", facts.rate_most, "rate_last", facts.rate_last,
        "beta1", facts.beta1, "beta2", facts.beta2, "epsilon", facts.epsilon, "momentum",
        facts.momentum, "decay", facts.decay, "clip", facts.clip, "dropout", facts.dropout,
        "rate_factor_least", facts.factor_least, "rate_factor_most", facts.factor_most,
        "adapter_rank", (json_int_t)facts.rank, "adapter_scale", facts.adapters, "whole_parameters",
        (json_int_t)facts.whole, "masked", (int)facts.masked, "checkpoint_bytes",
        (json_int_t)job_checkpoint_bytes(job), "checkpoints_kept", (json_int_t)keep, "bundle_bytes",
        (json_int_t)job_bundle_bytes(job, keep, 0), "pairs", (int)facts.pairs);
}

/* Of each data tensor, in the order of the roots: its name, type and dims. */
static json_t *shapes_json(json_t *names, json_t *types, const struct tape *tape)
{
    json_t *shapes = json_array();

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct tensor *tensor = &tape->tensors[id];

        if (tensor->role == ROLE_DATA) {
            json_t *dims = json_array();

            for (uint32_t i = 0; i < tensor->rank; i++) {
                (void)json_array_append_new(dims, json_integer((json_int_t)tensor->dims[i]));
            }
            (void)json_array_append_new(shapes, dims);
            (void)json_array_append_new(names, json_string(tensor->name));
            (void)json_array_append_new(types, json_string(dtype_name(tensor->dtype)));
        }
    }
    return shapes;
}

json_t *job_json(const struct job *job)
{
    struct tape_footprint footprint = tape_footprint(job->tape);
    struct tape_unlooped all = tape_unlooped(job->tape);
    json_t *data = json_array();
    json_t *names = json_array();
    json_t *types = json_array();
    json_t *shapes = shapes_json(names, types, job->tape);

    for (uint32_t i = 0; i < job->data_count; i++) {
        (void)json_array_append_new(data, strict_json_digest(job->data_roots[i].bytes));
    }
    return json_pack(
        "{s:o, s:s?, s:s?, s:o?, s:i, s:I, s:I, s:I, s:{s:I, s:i, s:i},"
        " s:{s:I, s:I, s:i, s:i, s:I, s:I, s:I, s:I},"
        " s:{s:o, s:o, s:o, s:o, s:o}, s:o, s:o, s:o, s:o, s:b}",
        "id", strict_json_digest(job->id.bytes), "title", job->title[0] == '\0' ? NULL : job->title,
        "model", job->model[0] == '\0' ? NULL : job->model, "facts", facts_json(job),
        "rules_version", (int)job->rules_version, "steps", (json_int_t)job->steps, "segment_length",
        (json_int_t)job->segment_length, "segments", (json_int_t)job_segments(job), "requirements",
        "memory_bytes", (json_int_t)job->requirements.memory, "compute_capability",
        (int)job->requirements.compute_capability, "contraction_rate",
        (int)job->requirements.contraction_rate, "program", "operations", (json_int_t)all.ops,
        "tensors", (json_int_t)all.tensors, "micro_batches",
        job->tape->brief == NULL ? 1 : (int)job->tape->brief->repeat.times, "states",
        (int)job->tape->state_count, "state_bytes", (json_int_t)footprint.state, "constant_bytes",
        (json_int_t)footprint.constant, "data_bytes", (json_int_t)footprint.data, "trace_bytes",
        (json_int_t)footprint.trace, "roots", "program",
        strict_json_digest(job->header + JOB_AT_PROGRAM), "body",
        strict_json_digest(job->header + JOB_AT_BODY), "constants",
        strict_json_digest(job->header + JOB_AT_CONSTANTS), "data",
        strict_json_digest(job->header + JOB_AT_DATA), "first_state",
        strict_json_digest(job->header + JOB_AT_FIRST_STATE), "data", data, "data_shapes", shapes,
        "data_names", names, "data_types", types, "first_state_given", (int)job->first_state_given);
}
