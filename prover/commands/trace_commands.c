/*
 * trace_commands.c - `lockstep trace`: the root over everything that one step computes, any node of
 * its tree, the proof of any element, the check of such a proof, and the reply to any trace query
 * of a dispute.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/progress.h"
#include "base/text.h"
#include "engine/ops/real.h"
#include "proofs/commit/descriptor.h"
#include "proofs/dispute/fraud_proof.h"
#include "proofs/job/job_file.h"
#include "proofs/run/replay.h"
#include "prover/commands/access.h"
#include "prover/commands/commands.h"

/* ---- places ------------------------------------------------------------- */

/* Reads a number up to a character of ends or the text's end; false: none, or too large. */
static bool read_number(uint64_t *number, const char **at, const char *ends)
{
    return text_take_number(number, at, UINT64_MAX) && (**at == '\0' || strchr(ends, **at) != NULL);
}

static bool find_state(uint32_t *item, const struct tape *tape, const char *name, size_t length)
{
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const char *own = tape->tensors[tape->states[i].before].name;

        if (strlen(own) == length && strncmp(own, name, length) == 0) {
            *item = i;
            return true;
        }
    }
    return false;
}

static bool find_output(uint32_t *item, const struct tape *tape, const char *text, size_t length)
{
    const char *at = text;
    uint64_t number;
    uint64_t instance = 0;
    uint64_t output;
    struct op_turn maker;

    if (!read_number(&number, &at, "@.") ||
        (*at == '@' && (at++, !read_number(&instance, &at, "."))) || *at++ != '.' ||
        !read_number(&output, &at, "[") || at != text + length || number > UINT32_MAX ||
        instance > UINT32_MAX ||
        !descriptor_find_op(&maker, tape, (uint32_t)number, (uint32_t)instance) ||
        output >= tape->ops[maker.op].output_count) {
        return false;
    }
    *item = trace_item_of_output(tape, maker, (uint32_t)output);
    return true;
}

/* "37.0[12]" is element 12 of output 0 of operation 37, "37@5.0[12]" the same in micro-batch 5;
 * "wte.weight[12]" one of a state. */
static enum status read_place(struct trace_opening *opening, const struct tape *tape,
                              const char *text, struct error *error)
{
    size_t length = strcspn(text, "[");
    const char *at = text + length;
    bool good = find_output(&opening->item, tape, text, length) ||
                find_state(&opening->item, tape, text, length);

    opening->element = 0;
    if (good && *at == '[') {
        at++;
        good = read_number(&opening->element, &at, "]") && at[0] == ']' && at[1] == '\0';
    }
    if (!good) {
        (void)error_set(error, STATUS_USAGE, "'%s' is not a place in this trace", text);
        error_advise(error, "write OPERATION.OUTPUT[ELEMENT] or STATE[ELEMENT], as 37.0[12], of "
                            "micro-batch 5 37@5.0[12]; 'lockstep job show --program' lists them");
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

/* ---- tracing ------------------------------------------------------------ */

static const struct option_spec trace_options[] = {ACCESS_RUN_OPTIONS, ACCESS_KEY_OPTIONS};

/* A step of a bundle, traced. Zero-filled: none. */
struct traced {
    struct bundle *bundle;
    struct run run;
    struct stop stop;
    struct trace trace;
    uint64_t step;
};

static enum status read_argument(uint64_t *number, struct command_context *context, size_t index,
                                 uint64_t maximum, struct error *error)
{
    const char *text = context->options->arguments[index];
    const char *at = text;

    if (!read_number(number, &at, "") || *at != '\0' || *number > maximum) {
        return error_set(error, STATUS_USAGE, "'%s' is not a number up to %" PRIu64, text, maximum);
    }
    return STATUS_OK;
}

static enum status begin_trace(struct traced *traced, struct command_context *context,
                               const char *out, struct error *error)
{
    const struct options *options = context->options;
    struct machine_options machine;

    error_init(error);
    memset(traced, 0, sizeof(*traced));
    traced->stop.descriptor = -1;
    TRY(read_argument(&traced->step, context, 1, JOB_STEPS_MAX, error));
    TRY(stop_open(&traced->stop, error));
    TRY(bundle_open(&traced->bundle, options->arguments[0], BUNDLE_READ, error));
    TRY(access_unlock(traced->bundle, options, error));
    TRY(access_machine(&machine, context, error));
    return access_run(&traced->run, traced->bundle, &machine, options, out, error);
}

static enum status run_trace(struct traced *traced, struct trace_opening *openings, uint32_t count,
                             struct error *error)
{
    const struct replay_options options = {.threads = traced->run.options.thread_count,
                                           .stop = &traced->stop};

    return replay_trace(&traced->trace, &traced->run, traced->bundle, traced->step, openings, count,
                        &options, error);
}

static int end_trace(struct traced *traced, struct command_context *context, enum status status,
                     int code, struct error *error)
{
    trace_release(&traced->trace);
    run_close(&traced->run);
    bundle_close(traced->bundle);
    stop_close(&traced->stop);
    return status == STATUS_OK ? code : command_fail(context, error);
}

/* A fact, and a line that begins with what. */
static void add_digest(struct sheet *sheet, const char *name, const char *what,
                       const struct digest *digest)
{
    char text[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(text, digest->bytes, DIGEST_SIZE);
    sheet_set(sheet, name, json_string(text));
    sheet_print(sheet, "%s%s\n", what, text);
}

/* ---- trace root --------------------------------------------------------- */

static int show_root(struct command_context *context, const struct traced *traced)
{
    const struct trace *trace = &traced->trace;

    struct sheet sheet;

    sheet_init(&sheet);
    sheet_set(&sheet, "step", json_integer((json_int_t)traced->step));
    add_digest(&sheet, "trace_root", "trace root     ", &trace->root);
    add_digest(&sheet, "state_root_before", "state before   ", &trace->state_root);
    add_digest(&sheet, "state_root_after", "state after    ", &trace->next_root);
    sheet_merge(&sheet, json_pack("{s:I, s:I}", "items", (json_int_t)trace->list_count, "states",
                                  (json_int_t)trace->state_count));
    sheet_print(&sheet, "items          %u, of them %u states\n", trace->list_count,
                trace->state_count);
    return command_show(context, &sheet);
}

static int run_root(struct command_context *context)
{
    struct traced traced;
    struct error error;
    enum status status;
    int code = COMMAND_OK;

    TRY_OUT(begin_trace(&traced, context, NULL, &error));
    TRY_OUT(run_trace(&traced, NULL, 0, &error));
    code = show_root(context, &traced);
out:
    return end_trace(&traced, context, status, code, &error);
}

/* ---- trace node --------------------------------------------------------- */

static int run_node(struct command_context *context)
{
    struct traced traced;
    struct digest node;
    struct sheet sheet;
    uint64_t level = 0;
    uint64_t index = 0;
    struct error error;
    enum status status;
    int code = COMMAND_OK;

    TRY_OUT(begin_trace(&traced, context, NULL, &error));
    TRY_OUT(read_argument(&level, context, 2, MERKLE_DEPTH_MAX, &error));
    TRY_OUT(read_argument(&index, context, 3, MERKLE_LEAVES_MAX, &error));
    if (index > (trace_list_count(traced.run.job->tape) - 1) >> level) {
        TRY_OUT(error_set(&error, STATUS_USAGE,
                          "the tree over %u items has no node %" PRIu64 " on level %" PRIu64,
                          trace_list_count(traced.run.job->tape), index, level));
    }
    TRY_OUT(run_trace(&traced, NULL, 0, &error));
    trace_node(&node, &traced.trace, (uint32_t)level, index);
    sheet_init(&sheet);
    sheet_merge(&sheet, json_pack("{s:I, s:I, s:I}", "step", (json_int_t)traced.step, "level",
                                  (json_int_t)level, "index", (json_int_t)index));
    add_digest(&sheet, "node", "", &node);
    code = command_show(context, &sheet);
out:
    return end_trace(&traced, context, status, code, &error);
}

/* ---- trace open --------------------------------------------------------- */

static const struct option_spec open_options[] = {
    {.name = "out",
     .heading = "result",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "write the opening's bytes there",
     .command_line_only = true},
    ACCESS_RUN_OPTIONS,
    ACCESS_KEY_OPTIONS,
};

static void add_opening(struct sheet *sheet, const struct trace_opening *opening, uint32_t bits)
{
    uint8_t bytes[TRACE_OPENING_BYTES_MAX];
    char text[HEX_SIZE(TRACE_OPENING_BYTES_MAX)];
    char bits_text[12];
    size_t size = trace_opening_write(bytes, opening);

    hex_encode(text, bytes, size);
    (void)snprintf(bits_text, sizeof(bits_text), "0x%08x", bits);
    sheet_merge(sheet,
                json_pack("{s:I, s:I, s:s, s:s}", "item", (json_int_t)opening->item, "element",
                          (json_int_t)opening->element, "bits", bits_text, "opening", text));
    sheet_print(sheet, "item %u, element %" PRIu64 "\nbits %s", opening->item, opening->element,
                bits_text);
    if (opening->header[120] == DTYPE_F32) {
        sheet_print(sheet, ", which is %.9g\n", (double)real_from_bits(bits));
    } else {
        sheet_print(sheet, ", which is %" PRId32 "\n", (int32_t)bits);
    }
}

static int show_opening(struct command_context *context, const struct traced *traced,
                        const struct trace_opening *opening)
{
    const struct trace *trace = &traced->trace;
    struct digest root = trace->root;
    struct trace_place place;
    const char *what;
    bool inner;
    struct sheet sheet;
    uint32_t bits = 0;

    trace_place_of(&place, &trace->layout, opening->item, trace->list_count);
    inner = place.batch != TENSOR_NONE;
    what = inner ? "batch_root" : "trace_root";
    if (inner) {
        trace_batch_root(&root, trace, place.batch);
    }
    if (trace_opening_check(&bits, opening, &root, trace->tape) != VERDICT_VALID) {
        abort(); /* we have just made it */
    }
    sheet_init(&sheet);
    add_opening(&sheet, opening, bits);
    if (inner) {
        sheet_print(&sheet, "under the root of micro-batch %u, ", place.batch);
    }
    add_digest(&sheet, what, inner ? "" : "under the trace root ", &root);
    sheet_set(&sheet, "items", json_integer((json_int_t)place.count));
    sheet_print(&sheet, "of %u items\n", place.count);
    return command_show(context, &sheet);
}

static enum status save_opening(const char *path, const struct trace_opening *opening,
                                struct error *error)
{
    uint8_t bytes[TRACE_OPENING_BYTES_MAX];
    size_t size = trace_opening_write(bytes, opening);

    return path == NULL ? STATUS_OK : file_write_new(path, error, bytes, size, 0644);
}

static int run_open_element(struct command_context *context)
{
    struct trace_opening *opening = calloc(1, sizeof(*opening));
    struct traced traced;
    struct error error;
    enum status status;
    int code = COMMAND_OK;

    TRY_OUT(begin_trace(&traced, context, options_text(context->options, "out"), &error));
    if (opening == NULL) {
        TRY_OUT(error_set(&error, STATUS_NO_MEMORY, "no memory for an opening"));
    }
    TRY_OUT(read_place(opening, traced.run.job->tape, context->options->arguments[2], &error));
    TRY_OUT(run_trace(&traced, opening, 1, &error));
    TRY_OUT(save_opening(options_text(context->options, "out"), opening, &error));
    code = show_opening(context, &traced, opening);
out:
    free(opening);
    return end_trace(&traced, context, status, code, &error);
}

/* ---- trace reply -------------------------------------------------------- */

static const struct option_spec reply_options[] = {
    {.name = "out",
     .heading = "result",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "write the reply's bytes there",
     .command_line_only = true},
    ACCESS_RUN_OPTIONS,
    ACCESS_KEY_OPTIONS,
};

/* Appends the reply: docs/FORMATS.md, section 10.2. */
static enum status find_reply(struct buffer *reply, struct traced *traced,
                              const struct trace_query *query, struct error *error)
{
    const struct replay_options options = {.threads = traced->run.options.thread_count,
                                           .stop = &traced->stop};
    struct evidence_given given;
    struct trace_server server;
    enum status status;

    TRY(trace_query_check(query, traced->run.job->tape, error));
    TRY_OUT(
        replay_trace_server(&server, &traced->run, traced->bundle, traced->step, &options, error));
    run_given(&given, &traced->run);
    TRY_OUT(fraud_proof_reply(reply, &server, &given, query, NULL, error));
out:
    trace_server_close(&server);
    return status;
}

static int show_reply(struct command_context *context, const struct traced *traced,
                      const struct buffer *reply)
{
    char text[HEX_SIZE(TRACE_REPLY_BYTES_MAX)];
    struct sheet sheet;

    sheet_init(&sheet);
    hex_encode(text, reply->data, reply->size);
    sheet_merge(&sheet, json_pack("{s:I, s:s, s:s}", "step", (json_int_t)traced->step, "query",
                                  context->options->arguments[2], "reply", text));
    for (size_t at = 0; at < reply->size; at += DIGEST_SIZE) {
        sheet_print(&sheet, "%.*s\n", 2 * DIGEST_SIZE, text + 2 * at);
    }
    return command_show(context, &sheet);
}

static int run_reply(struct command_context *context)
{
    const char *path = options_text(context->options, "out");
    struct traced traced;
    struct buffer reply;
    struct error error;
    enum status status;
    struct trace_query query;
    int code = COMMAND_OK;

    buffer_init(&reply, TRACE_REPLY_BYTES_MAX);
    TRY_OUT(begin_trace(&traced, context, path, &error));
    if (trace_query_parse(&query, context->options->arguments[2]) != STATUS_OK) {
        status = error_set(&error, STATUS_USAGE, "'%.80s' is not a trace query",
                           context->options->arguments[2]);
        error_advise(&error, "list/trace, list/next, list/batch/NUMBER, node/trace/LEVEL/INDEX, "
                             "tensor/ITEM, tensor-node/ITEM/LEVEL/INDEX, or diverged");
        goto out;
    }
    TRY_OUT(find_reply(&reply, &traced, &query, &error));
    if (path != NULL) {
        TRY_OUT(file_write_new(path, &error, reply.data, reply.size, 0644));
    }
    code = show_reply(context, &traced, &reply);
out:
    buffer_release(&reply);
    return end_trace(&traced, context, status, code, &error);
}

/* ---- trace check -------------------------------------------------------- */

static const struct option_spec check_options[] = {
    {.name = "root",
     .kind = OPTION_TEXT,
     .value = "HEX",
     .required = true,
     .help = "the root of the trace, or of a micro-batch, that the opening is to stand under",
     .command_line_only = true},
    {.name = "job",
     .kind = OPTION_TEXT,
     .value = "JOB",
     .required = true,
     .help = "the job whose step was traced: it says how many items a trace has",
     .command_line_only = true},
};

/* Is the opened tensor the one that the job's program has there? */
static bool is_named_rightly(const struct trace_opening *opening, const struct tape *tape)
{
    const struct tensor *wanted = &tape->tensors[trace_tensor_at(tape, opening->item)];
    struct tensor tensor;
    enum commit_array kind;
    struct digest root;

    return commit_tensor_header_read(&tensor, &kind, &root, opening->header,
                                     opening->header_size) == STATUS_OK &&
           strcmp(tensor.name, wanted->name) == 0 && tensor.dtype == wanted->dtype &&
           tensor.rank == wanted->rank && tensor.count == wanted->count;
}

static enum status check_opening(uint32_t *bits, struct trace_opening *opening,
                                 struct command_context *context, struct error *error)
{
    const struct options *options = context->options;
    const char *root_text = options_text(options, "root");
    struct file_bytes bytes = {0};
    struct digest root;
    struct job *job = NULL;
    enum status status;

    status = hex_decode(root.bytes, DIGEST_SIZE, root_text, strlen(root_text));
    if (status != STATUS_OK) {
        return error_set(error, STATUS_USAGE, "'%.80s' is not a root of %d digits", root_text,
                         2 * DIGEST_SIZE);
    }
    TRY_OUT(job_read(&job, options_text(options, "job"), error));
    TRY_OUT(file_read(&bytes, error, options->arguments[0], TRACE_OPENING_BYTES_MAX));
    if (trace_opening_read(opening, bytes.data, bytes.size) != STATUS_OK) {
        TRY_OUT(error_set(error, STATUS_BAD_FORMAT, "%s is not an opening", options->arguments[0]));
    }
    if ((trace_opening_check(bits, opening, &root, job->tape) != VERDICT_VALID ||
         !is_named_rightly(opening, job->tape))) {
        TRY_OUT(error_set(error, STATUS_REFUSED,
                          "%s proves nothing about a step of this job under this root",
                          options->arguments[0]));
    }
out:
    file_bytes_release(&bytes);
    job_free(job);
    return status;
}

static int run_check(struct command_context *context)
{
    struct trace_opening *opening = calloc(1, sizeof(*opening));
    struct sheet sheet;
    struct error error;
    enum status status;
    uint32_t bits = 0;
    int code = COMMAND_OK;

    error_init(&error);
    status = opening == NULL ? error_set(&error, STATUS_NO_MEMORY, "no memory for an opening")
                             : check_opening(&bits, opening, context, &error);
    if (status == STATUS_OK) {
        sheet_init(&sheet);
        add_opening(&sheet, opening, bits);
        code = command_show(context, &sheet);
    } else {
        code = command_fail(context, &error);
    }
    free(opening);
    return code;
}

/* ---- the table ---------------------------------------------------------- */

#define OPTIONS_OF(table) .options = (table), .option_count = sizeof(table) / sizeof((table)[0])

static const struct command commands[] = {
    {.name = "root",
     .summary = "run a step again and print the root over everything it computes",
     .arguments = "BUNDLE STEP",
     .example = "lockstep trace root text.run 42",
     OPTIONS_OF(trace_options),
     .run = run_root},
    {.name = "node",
     .summary = "print one node of the tree over a step's tensors",
     .arguments = "BUNDLE STEP LEVEL INDEX",
     .example = "lockstep trace node text.run 42 6 0",
     OPTIONS_OF(trace_options),
     .run = run_node},
    {.name = "open",
     .summary = "prove one element that a step computes or begins with",
     .description =
         "PLACE is OPERATION.OUTPUT[ELEMENT], or STATE[ELEMENT] for a state before the "
         "step; 'lockstep job show --program' lists operations and states. Of operation 37 "
         "in micro-batch 5 it is 37@5.OUTPUT[ELEMENT].",
     .arguments = "BUNDLE STEP PLACE",
     .example = "lockstep trace open text.run 42 37.0[12] --out element.opening",
     OPTIONS_OF(open_options),
     .run = run_open_element},
    {.name = "reply",
     .summary = "reply to one trace query of a dispute about a step",
     .description = "QUERY is list/trace, list/next, node/trace/LEVEL/INDEX, tensor/ITEM, "
                    "tensor-node/ITEM/LEVEL/INDEX or diverged, as in a content tree.",
     .arguments = "BUNDLE STEP QUERY",
     .example = "lockstep trace reply text.run 42 tensor/17 --out tensor.reply",
     OPTIONS_OF(reply_options),
     .run = run_reply},
    {.name = "check",
     .summary = "check an opening of 'trace open' against a trace root",
     .description = "Exit code 0: the element is proven and shown; 1: it is not.",
     .arguments = "OPENING",
     .example = "lockstep trace check element.opening --root HEX --job text.job",
     OPTIONS_OF(check_options),
     .run = run_check},
};

const struct command_group trace_commands = {
    .name = "trace",
    .summary = "what one step computes, committed and opened",
    .commands = commands,
    .command_count = sizeof(commands) / sizeof(commands[0])};
