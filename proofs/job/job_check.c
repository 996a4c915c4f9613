/* job_check.c - see job_check.h. */
#include "proofs/job/job_check.h"

#include <stdlib.h>
#include <string.h>

#include "engine/rules/rule.h"
#include "proofs/commit/element.h"
#include "proofs/job/job_notes.h"

enum status job_check_rules(const struct job *job, struct error *error)
{
    if (job->rules_version != RULES_VERSION) {
        return error_set(error, STATUS_REFUSED,
                         "the job is made for version %u of the rules; this program knows %d",
                         job->rules_version, RULES_VERSION);
    }
    return STATUS_OK;
}

enum status job_check_text(const char *text, const char *what, struct error *error)
{
    size_t size = strnlen(text, JOB_TITLE_MAX + 1);

    if (size > JOB_TITLE_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "the %s has more than %d bytes", what,
                         JOB_TITLE_MAX);
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] < ' ' || text[i] > '~') {
            return error_set(error, STATUS_BAD_FORMAT,
                             "byte %zu of the %s is no printable ASCII character", i, what);
        }
    }
    if (size > 0 && (text[0] == ' ' || text[size - 1] == ' ')) {
        return error_set(error, STATUS_BAD_FORMAT, "the %s begins or ends with a blank", what);
    }
    return STATUS_OK;
}

enum status job_check_terms(const struct job *job, struct error *error)
{
    uint32_t data = job_tensors(NULL, 0, job, ROLE_DATA);

    TRY(job_check_rules(job, error));
    TRY(job_check_text(job->title, "title", error));
    TRY(job_check_text(job->model, "name of the model", error));
    TRY(job_notes_check(job->notes, job->tape, error));
    if (job->steps == 0 || job->steps > JOB_STEPS_MAX || job->segment_length == 0 ||
        job->segment_length > job->steps) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%llu steps in segments of %llu: there must be 1 to %llu steps, and a "
                         "segment no longer than all of them",
                         (unsigned long long)job->steps, (unsigned long long)job->segment_length,
                         (unsigned long long)JOB_STEPS_MAX);
    }
    /* Micro-batches are counted through all steps: their number has the same bound. */
    if (job->tape->brief != NULL && job->steps > JOB_STEPS_MAX / job->tape->brief->repeat.times) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%llu steps of %u micro-batches: together there must be at most %llu",
                         (unsigned long long)job->steps, job->tape->brief->repeat.times,
                         (unsigned long long)JOB_STEPS_MAX);
    }
    if (data != job->data_count) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%u roots of data for a tape with %u data tensors", job->data_count, data);
    }
    /* A step without a state leaves nothing to commit to; one with inputs cannot be run by a
     * stranger. */
    if (job->tape->state_count == 0) {
        return error_set(error, STATUS_BAD_FORMAT, "the tape has no state to commit to");
    }
    if (job_tensors(NULL, 0, job, ROLE_INPUT) != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "the tape needs inputs that no job gives");
    }
    return STATUS_OK;
}

enum status job_check_constants(const struct job *job, struct error *error)
{
    uint32_t at = 0;

    for (uint32_t id = 0; id < job->tape->tensor_count; id++) {
        const struct tensor *tensor = &job->tape->tensors[id];

        if (tensor->role != ROLE_CONSTANT) {
            continue;
        }
        if (tensor->dtype == DTYPE_F32 && !element_all_finite(job->constants[at], tensor->count)) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "the constant '%s' holds a NaN or an infinity", tensor->name);
        }
        at++;
    }
    return STATUS_OK;
}

/* ---- the first state ---------------------------------------------------- */

static enum status check_draws(const struct job *job, struct error *error)
{
    const struct tape *tape = job->tape;
    const char *zero = NULL;
    bool nonzero = false;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        const struct tensor *state = &tape->tensors[tape->states[i].before];

        if (tape->states[i].init.kind == INIT_NONE) {
            (void)error_set(error, STATUS_REFUSED,
                            "the tape has no rule by which '%s' is drawn, and no first state is "
                            "given",
                            state->name);
            error_advise(error, "give one: --first-state FILE.safetensors");
            return STATUS_REFUSED;
        }
        nonzero = nonzero || init_is_nonzero(&tape->states[i].init);
        if (state->dtype == DTYPE_F32 && zero == NULL) {
            zero = state->name;
        }
    }
    if (zero != NULL && !nonzero) {
        (void)error_set(error, STATUS_REFUSED,
                        "every number of the first state is zero, from '%s' on: nothing would be "
                        "trained",
                        zero);
        error_advise(error, "give a first state: --first-state FILE.safetensors");
        return STATUS_REFUSED;
    }
    return STATUS_OK;
}

/* ---- the schedule ------------------------------------------------------- */

/* The steps of the job, as a state counts them that the schedule at `op` reads: a counter of
 * micro-batches rises with each of them. */
static uint64_t counted_steps(const struct job *job, const struct op *op)
{
    const struct tape *brief = job->tape->brief;

    for (uint32_t i = 0; brief != NULL && i < brief->repeat.carry_count; i++) {
        if (brief->repeat.carries[i].start == op->inputs[1]) {
            return job->steps * brief->repeat.times;
        }
    }
    return job->steps;
}

static enum status check_schedules(const struct job *job, struct error *error)
{
    const struct tape *tape = job->tape;

    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];
        const struct tensor *table = &tape->tensors[op->inputs[0]];
        uint64_t steps;
        uint64_t rows;

        if (op->kind != OP_SCHEDULE || tape->tensors[op->inputs[1]].role != ROLE_STATE) {
            continue;
        }
        rows = table->count / (uint64_t)op->attributes[SCHEDULE_COLUMNS];
        steps = counted_steps(job, op);
        if (rows < steps) {
            return error_set(error, STATUS_REFUSED,
                             "operation %u (schedule) reads '%s', which ends after %llu of the "
                             "job's %llu steps",
                             at, table->name, (unsigned long long)rows, (unsigned long long)steps);
        }
    }
    return STATUS_OK;
}

/* ---- gradients ---------------------------------------------------------- */

/* Bits of a tensor. */
enum {
    FROM_DATA = 1, /* it depends on the data, or an update made it */
    TO_LOSS = 2,   /* the loss depends on it */
};

/* What a turn of a loop hands on, the next one is given. True: that was news. */
static bool mark_turns(uint8_t *marks, const struct tape *tape, uint8_t bit)
{
    bool news = false;

    for (uint32_t i = 0; i < tape->loop_carry_count; i++) {
        const struct loop_carry *carry = &tape->loop_carries[i];
        const uint32_t from = bit == FROM_DATA ? carry->out : carry->in;
        const uint32_t to = bit == FROM_DATA ? carry->in : carry->out;
        const uint8_t more = marks[from] & bit & ~marks[to];

        marks[to] |= more;
        news = news || more != 0;
    }
    return news;
}

/* A state that a step makes of the data is of the data in the next. True: that was news. */
static bool mark_states(uint8_t *marks, const struct tape *tape)
{
    bool news = false;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        const struct state_pair *pair = &tape->states[i];
        const uint8_t more = marks[pair->after] & FROM_DATA & ~marks[pair->before];

        marks[pair->before] |= more;
        news = news || more != 0;
    }
    return news;
}

static void mark_from_data(uint8_t *marks, const struct tape *tape)
{
    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];
        uint8_t read = 0;

        for (uint32_t i = 0; i < op->input_count; i++) {
            read |= marks[op->inputs[i]] & FROM_DATA;
        }
        if (op->kind == OP_SGD || op->kind == OP_ADAMW) {
            read = FROM_DATA; /* a gradient was found, if only a constant: a critic's last bias */
        }
        for (uint32_t i = 0; i < op->output_count; i++) {
            marks[op->outputs[i]] |= read;
        }
    }
}

static void mark_to_loss(uint8_t *marks, const struct tape *tape)
{
    for (uint32_t at = tape->op_count; at > 0; at--) {
        const struct op *op = &tape->ops[at - 1];
        uint8_t made = 0;

        for (uint32_t i = 0; i < op->output_count; i++) {
            made |= marks[op->outputs[i]] & TO_LOSS;
        }
        for (uint32_t i = 0; i < op->input_count; i++) {
            marks[op->inputs[i]] |= made;
        }
    }
}

static void mark_tensors(uint8_t *marks, const struct tape *tape)
{
    bool news;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        marks[id] = tape->tensors[id].role == ROLE_DATA ? FROM_DATA : 0;
    }
    do {
        mark_from_data(marks, tape);
        news = mark_turns(marks, tape, FROM_DATA);
        news = mark_states(marks, tape) || news;
    } while (news);
    marks[tape->loss] |= TO_LOSS;
    do {
        mark_to_loss(marks, tape);
    } while (mark_turns(marks, tape, TO_LOSS));
}

/* A parameter is a binary32 state that the loss depends on. It learns when its next value depends
 * on the data or an update makes it. Where none does, the job evaluates. */
static enum status check_parameters(const struct job *job, const uint8_t *marks,
                                    struct error *error)
{
    const struct tape *tape = job->tape;
    const char *idle = NULL;
    bool trains = false;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        const struct state_pair *pair = &tape->states[i];

        if (tape->tensors[pair->before].dtype != DTYPE_F32 ||
            (marks[pair->before] & TO_LOSS) == 0) {
            continue;
        }
        if ((marks[pair->after] & FROM_DATA) != 0) {
            trains = true;
        } else if (idle == NULL) {
            idle = tape->tensors[pair->before].name;
        }
    }
    if (trains && idle != NULL) {
        (void)error_set(error, STATUS_REFUSED,
                        "no gradient reaches the parameter '%s', which the loss depends on", idle);
        error_advise(error, "what is never trained belongs to the data or the constants");
        return STATUS_REFUSED;
    }
    return STATUS_OK;
}

static enum status check_gradients(const struct job *job, struct error *error)
{
    enum status status;
    uint8_t *marks;

    if (job->tape->loss == TENSOR_NONE) {
        return STATUS_OK;
    }
    marks = malloc((size_t)job->tape->tensor_count + 1);
    if (marks == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to check a program");
    }
    mark_tensors(marks, job->tape);
    status = check_parameters(job, marks, error);
    free(marks);
    return status;
}

enum status job_check_program(const struct job *job, struct error *error)
{
    if (!job->first_state_given) {
        TRY(check_draws(job, error));
    }
    TRY(check_schedules(job, error));
    return check_gradients(job, error);
}
