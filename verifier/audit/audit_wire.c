/* audit_wire.c - see audit_wire.h. */
#include "verifier/audit/audit_wire.h"

#include <stdlib.h>
#include <string.h>

/* ---- pieces --------------------------------------------------------------- */

static void put_text(struct buffer *bytes, const char *text)
{
    buffer_add_u16(bytes, (uint16_t)strlen(text));
    buffer_add_text(bytes, text);
}

static void put_digest(struct buffer *bytes, const struct digest *digest)
{
    buffer_add(bytes, digest->bytes, DIGEST_SIZE);
}

static void put_double(struct buffer *bytes, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    buffer_add_u64(bytes, bits);
}

/* A text that does not fit or contains a zero byte makes the reader fail. */
static void get_text(char *text, size_t size, struct reader *reader)
{
    size_t length = reader_u16(reader);
    const uint8_t *bytes = reader_take(reader, length);

    if (bytes == NULL || length >= size || memchr(bytes, '\0', length) != NULL) {
        reader->failed = true;
        length = 0;
    }
    if (length > 0) {
        memcpy(text, bytes, length);
    }
    text[length] = '\0';
}

static double get_double(struct reader *reader)
{
    uint64_t bits = reader_u64(reader);
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* A number that is not below count makes the reader fail. */
static uint8_t get_below(struct reader *reader, uint8_t count)
{
    uint8_t value = reader_u8(reader);

    if (value >= count) {
        reader->failed = true;
        return 0;
    }
    return value;
}

static bool get_bool(struct reader *reader)
{
    return get_below(reader, 2) == 1;
}

/* ---- the finding ------------------------------------------------------------ */

static void put_finding(struct buffer *bytes, const struct fault_location *location)
{
    buffer_add_u8(bytes, (uint8_t)location->kind);
    buffer_add_u8(bytes, location->own_trace);
    put_digest(bytes, &location->trace_root);
    buffer_add_u8(bytes, location->op_known);
    buffer_add_u32(bytes, location->op);
    buffer_add_u32(bytes, location->output);
    put_text(bytes, location->op_name);
    put_text(bytes, location->instance);
    buffer_add_u8(bytes, location->tensor_known);
    put_text(bytes, location->tensor);
    buffer_add_u8(bytes, location->element_known);
    buffer_add_u64(bytes, location->element);
    buffer_add_u8(bytes, (uint8_t)location->dtype);
    buffer_add_u32(bytes, location->found);
    buffer_add_u8(bytes, location->wanted_known);
    buffer_add_u32(bytes, location->wanted);
    buffer_add_u64(bytes, location->proven_element);
    put_text(bytes, location->lacking);
    buffer_add_u32(bytes, (uint32_t)location->evidence_size);
    buffer_add(bytes, location->evidence, location->evidence_size);
}

static enum status get_evidence(struct fault_location *location, struct reader *reader,
                                struct error *error)
{
    size_t size = reader_u32(reader);
    const uint8_t *bytes = size > AUDIT_WIRE_EVIDENCE_MAX ? NULL : reader_take(reader, size);

    if (bytes == NULL || size == 0) {
        reader->failed |= size != 0;
        return STATUS_OK;
    }
    location->evidence = malloc(size);
    if (location->evidence == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for evidence");
    }
    memcpy(location->evidence, bytes, size);
    location->evidence_size = size;
    return STATUS_OK;
}

static enum status get_finding(struct fault_location *location, struct reader *reader,
                               struct error *error)
{
    location->kind = (enum evidence_kind)get_below(reader, EVIDENCE_NOT_FINITE + 1);
    location->own_trace = get_bool(reader);
    reader_copy(reader, location->trace_root.bytes, DIGEST_SIZE);
    location->op_known = get_bool(reader);
    location->op = reader_u32(reader);
    location->output = reader_u32(reader);
    get_text(location->op_name, sizeof(location->op_name), reader);
    get_text(location->instance, sizeof(location->instance), reader);
    location->tensor_known = get_bool(reader);
    get_text(location->tensor, sizeof(location->tensor), reader);
    location->element_known = get_bool(reader);
    location->element = reader_u64(reader);
    location->dtype = (enum dtype)get_below(reader, DTYPE_COUNT);
    location->found = reader_u32(reader);
    location->wanted_known = get_bool(reader);
    location->wanted = reader_u32(reader);
    location->proven_element = reader_u64(reader);
    get_text(location->lacking, sizeof(location->lacking), reader);
    return get_evidence(location, reader, error);
}

/* ---- the checkpoints --------------------------------------------------------- */

static void put_broken(struct buffer *bytes, const struct broken_checkpoint *broken)
{
    put_text(bytes, broken->name);
    put_text(bytes, broken->why);
}

static void get_broken(struct broken_checkpoint *broken, struct reader *reader)
{
    get_text(broken->name, sizeof(broken->name), reader);
    get_text(broken->why, sizeof(broken->why), reader);
}

static void put_checkpoints(struct buffer *bytes, const struct checkpoint_audit *checkpoints)
{
    buffer_add_u64(bytes, checkpoints->checked);
    buffer_add_u64(bytes, checkpoints->locked);
    buffer_add_u64(bytes, checkpoints->broken_count);
    for (size_t i = 0; i < BROKEN_CHECKPOINTS_MAX; i++) {
        put_broken(bytes, &checkpoints->broken[i]);
    }
    put_broken(bytes, &checkpoints->last);
}

static void get_checkpoints(struct checkpoint_audit *checkpoints, struct reader *reader)
{
    checkpoints->checked = reader_u64(reader);
    checkpoints->locked = reader_u64(reader);
    checkpoints->broken_count = reader_u64(reader);
    for (size_t i = 0; i < BROKEN_CHECKPOINTS_MAX; i++) {
        get_broken(&checkpoints->broken[i], reader);
    }
    get_broken(&checkpoints->last, reader);
}

/* ---- the result --------------------------------------------------------------- */

static void put_result(struct buffer *bytes, const struct audit_result *result)
{
    buffer_add_u8(bytes, (uint8_t)result->answer);
    put_digest(bytes, &result->job_id);
    buffer_add_u64(bytes, result->steps_of_job);
    buffer_add_u64(bytes, result->steps_journaled);
    buffer_add_u64(bytes, result->steps_wanted);
    buffer_add_u64(bytes, result->steps_due);
    buffer_add_u64(bytes, result->steps_checked);
    buffer_add_u8(bytes, (uint8_t)result->flaw);
    buffer_add_u64(bytes, result->wrong_step);
    put_digest(bytes, &result->wrong_root);
    put_digest(bytes, &result->true_root);
    put_text(bytes, result->reason.text);
    put_text(bytes, result->reason.advice);
    put_checkpoints(bytes, &result->checkpoints);
    put_finding(bytes, &result->location);
}

static enum status get_result(struct audit_result *result, struct reader *reader,
                              struct error *error)
{
    result->answer = (enum audit_answer)get_below(reader, AUDIT_PROVEN + 1);
    reader_copy(reader, result->job_id.bytes, DIGEST_SIZE);
    result->steps_of_job = reader_u64(reader);
    result->steps_journaled = reader_u64(reader);
    result->steps_wanted = reader_u64(reader);
    result->steps_due = reader_u64(reader);
    result->steps_checked = reader_u64(reader);
    result->flaw = (enum audit_flaw)get_below(reader, AUDIT_FLAW_NOT_DIVERGED + 1);
    result->wrong_step = reader_u64(reader);
    reader_copy(reader, result->wrong_root.bytes, DIGEST_SIZE);
    reader_copy(reader, result->true_root.bytes, DIGEST_SIZE);
    get_text(result->reason.text, sizeof(result->reason.text), reader);
    get_text(result->reason.advice, sizeof(result->reason.advice), reader);
    get_checkpoints(&result->checkpoints, reader);
    return get_finding(&result->location, reader, error);
}

/* ---- the page ------------------------------------------------------------------- */

static void put_report(struct buffer *bytes, const struct report *report)
{
    put_digest(bytes, &report->job_id);
    put_text(bytes, report->device);
    put_double(bytes, report->seconds);
    buffer_add_u64(bytes, report->cell_steps);
    buffer_add_u32(bytes, report->cell_count);
    for (uint32_t i = 0; i < report->cell_count; i++) {
        const struct report_cell *cell = &report->cells[i];

        buffer_add_u64(bytes, cell->first);
        buffer_add_u64(bytes, cell->count);
        buffer_add_u64(bytes, cell->journaled);
        buffer_add_u64(bytes, cell->checked);
        buffer_add_u8(bytes, cell->wrong);
        buffer_add_u64(bytes, cell->losses);
        put_double(bytes, cell->loss);
        put_double(bytes, cell->solver_time);
        put_double(bytes, cell->replay_time);
    }
}

static void get_report(struct report *report, struct reader *reader)
{
    reader_copy(reader, report->job_id.bytes, DIGEST_SIZE);
    get_text(report->device, sizeof(report->device), reader);
    report->seconds = get_double(reader);
    report->cell_steps = reader_u64(reader);
    report->cell_count = reader_u32(reader);
    if (report->cell_count > REPORT_POINTS_MAX) {
        reader->failed = true;
        report->cell_count = 0;
    }
    for (uint32_t i = 0; i < report->cell_count; i++) {
        struct report_cell *cell = &report->cells[i];

        cell->first = reader_u64(reader);
        cell->count = reader_u64(reader);
        cell->journaled = reader_u64(reader);
        cell->checked = reader_u64(reader);
        cell->wrong = get_bool(reader);
        cell->losses = reader_u64(reader);
        cell->loss = get_double(reader);
        cell->solver_time = get_double(reader);
        cell->replay_time = get_double(reader);
    }
}

/* ---- all of it --------------------------------------------------------------------- */

void audit_wire_write(struct buffer *bytes, const struct audit_result *result,
                      const struct report *report)
{
    put_result(bytes, result);
    buffer_add_u8(bytes, report != NULL);
    if (report != NULL) {
        put_report(bytes, report);
    }
}

enum status audit_wire_read(struct audit_result *result, struct report *report,
                            struct reader *reader, struct error *error)
{
    enum status status;

    memset(result, 0, sizeof(*result));
    error_init(&result->reason);
    status = get_result(result, reader, error);
    if (get_bool(reader) != (report != NULL)) {
        reader->failed = true;
    }
    if (report != NULL) {
        memset(report, 0, sizeof(*report));
        get_report(report, reader);
    }
    return status == STATUS_OK && reader->failed
               ? error_set(error, STATUS_BAD_FORMAT, "what a rank says of its audit is broken")
               : status;
}
