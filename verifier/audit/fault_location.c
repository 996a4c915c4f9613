/* fault_location.c - see fault_location.h. */
#include "verifier/audit/fault_location.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/real.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/descriptor.h"
#include "proofs/commit/element.h"
#include "proofs/dispute/evidence_file.h"
#include "proofs/run/replay.h"
#include "verifier/audit/accused.h"
#include "verifier/dispute/dispute_next.h"

/* Of the trace's file in the temporary folder: a longer trace is run again instead. */
#define TRACE_FILE_MAX ((uint64_t)2 << 30)

struct seeker {
    struct fault_location *location;
    struct bundle *bundle;
    const struct fault_location_request *wish;
    struct run run;
    struct dispute dispute; /* that no ledger knows of */
    struct dispute_step step;
    struct accused accused;
    uint32_t state; /* that differs, when the evidence is about a state after the step */
    uint8_t *truth; /* our own bytes of it */
    struct buffer evidence;
};

static const struct tape *tape_of(const struct seeker *seeker)
{
    return bundle_job(seeker->bundle)->tape;
}

/* ---- words --------------------------------------------------------------- */

const char *fault_location_kind_name(enum evidence_kind kind)
{
    static const char *const names[] = {"none",       "element",    "first-state",
                                        "next-state", "not-finite", "part"};

    return names[kind];
}

void fault_location_value(char text[FAULT_LOCATION_VALUE_MAX], enum dtype dtype, uint32_t bits)
{
    if (dtype == DTYPE_F32) {
        (void)snprintf(text, FAULT_LOCATION_VALUE_MAX, "%.9g", (double)real_from_bits(bits));
    } else if (dtype == DTYPE_I16 || dtype == DTYPE_I32) {
        (void)snprintf(text, FAULT_LOCATION_VALUE_MAX, "%" PRId32, (int32_t)bits);
    } else {
        (void)snprintf(text, FAULT_LOCATION_VALUE_MAX, "%" PRIu32, bits);
    }
}

void fault_location_bits(char text[FAULT_LOCATION_VALUE_MAX], enum dtype dtype, uint32_t bits)
{
    int digits = (int)dtype_size(dtype) * 2;

    (void)snprintf(text, FAULT_LOCATION_VALUE_MAX, "0x%0*x", digits,
                   digits == 8 ? bits : bits & ((UINT32_C(1) << (4 * digits)) - 1));
}

void fault_location_place(char text[FAULT_LOCATION_TEXT_MAX], const struct fault_location *location)
{
    char element[40] = "";
    char tensor[TENSOR_NAME_MAX + 40] = "an unknown tensor";

    if (location->element_known) {
        (void)snprintf(element, sizeof(element), "element %" PRIu64 " of ", location->element);
    }
    if (location->tensor_known && location->tensor[0] != '\0') {
        (void)snprintf(tensor, sizeof(tensor), "'%s'", location->tensor);
    } else if (location->op_known) {
        (void)snprintf(tensor, sizeof(tensor), "output %u of operation %u", location->output,
                       location->op);
    }
    (void)snprintf(text, FAULT_LOCATION_TEXT_MAX, "%s%s", element, tensor);
}

static void note_lack(struct seeker *seeker, const char *what, const struct error *error)
{
    struct fault_location *location = seeker->location;

    if (location->lacking[0] == '\0') {
        (void)snprintf(location->lacking, sizeof(location->lacking), "%s%s%.700s", what,
                       error == NULL ? "" : ": ", error == NULL ? "" : error->text);
    }
}

/* ---- naming what differs ------------------------------------------------- */

/* The number of a join is behind those of the operations. */
static void name_op(struct fault_location *location, const struct tape *tape, uint32_t item)
{
    uint32_t instance;
    struct op_turn maker;

    location->op_known = true;
    trace_output_at(&maker, &location->output, tape, item);
    location->op = descriptor_of_op(&instance, tape, maker);
    (void)snprintf(location->op_name, sizeof(location->op_name), "%s",
                   op_kind_name(tape->ops[maker.op].kind));
    if (tape->brief == NULL) {
        return;
    }
    if (location->op >= tape->brief->op_count) {
        (void)snprintf(location->instance, sizeof(location->instance), "join %u of groups",
                       instance);
    } else if (location->op >= tape->brief->repeat.first &&
               location->op - tape->brief->repeat.first < tape->brief->repeat.op_count) {
        (void)snprintf(location->instance, sizeof(location->instance), "micro-batch %u", instance);
    }
}

static void name_item(struct seeker *seeker, uint32_t item)
{
    struct fault_location *location = seeker->location;
    const struct tape *tape = tape_of(seeker);
    const struct tensor *tensor = &tape->tensors[trace_tensor_at(tape, item)];

    if (item >= tape->state_count) {
        name_op(location, tape, item);
    }
    location->tensor_known = true;
    location->dtype = tensor->dtype;
    (void)snprintf(location->tensor, sizeof(location->tensor), "%s", tensor->name);
}

/* The first of count elements that differ; they stand behind `first` others of their tensor. */
static void name_element(struct fault_location *location, const uint8_t *theirs,
                         const uint8_t *ours, uint64_t first, uint64_t count)
{
    size_t width = dtype_size(location->dtype);

    for (uint64_t i = 0; i < count; i++) {
        if (memcmp(theirs + i * width, ours + i * width, width) != 0) {
            location->element_known = location->wanted_known = true;
            location->element = first + i;
            location->found = element_bits(theirs + i * width, location->dtype);
            location->wanted = element_bits(ours + i * width, location->dtype);
            return;
        }
    }
}

/* An output's leaf of the accused's trace against ours, which is kept since the proof was
 * written. */
static void name_leaf(struct seeker *seeker)
{
    const struct trace_walk *walk = &seeker->step.walk;
    const struct trace_server_tensor *own = trace_server_tensor(&seeker->step.own, walk->item);
    struct fault_location *location = seeker->location;
    uint64_t start = walk->leaf * MERKLE_LEAF_SIZE;
    uint64_t left;

    name_item(seeker, walk->item);
    if (own != NULL && start < own->size) {
        left = own->size - start < MERKLE_LEAF_SIZE ? own->size - start : MERKLE_LEAF_SIZE;
        name_element(location, walk->leaf_bytes, own->bytes + start,
                     start / dtype_size(location->dtype), left / dtype_size(location->dtype));
    }
}

/* A state after the step. Ours is copied: the machine is needed to read the accused's. */
static enum status name_state(struct seeker *seeker, uint32_t state, struct error *error)
{
    struct trace_server *own = &seeker->step.own;
    uint32_t item = own->next_items[state];
    const struct trace_server_tensor *kept;

    name_item(seeker, item);
    (void)snprintf(seeker->location->tensor, sizeof(seeker->location->tensor), "%s",
                   tape_of(seeker)->tensors[tape_of(seeker)->states[state].before].name);
    TRY(trace_server_keep(own, &item, 1, error));
    kept = trace_server_tensor(own, item);
    if (kept == NULL || seeker->accused.after == NULL) {
        return STATUS_OK;
    }
    seeker->state = state;
    seeker->truth = malloc(kept->size);
    if (seeker->truth == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a state");
    }
    memcpy(seeker->truth, kept->bytes, kept->size);
    return STATUS_OK;
}

/* After the trace server: which element of the state differs. */
static enum status compare_state(struct seeker *seeker, struct error *error)
{
    const struct tape *tape = tape_of(seeker);
    const struct tensor *tensor = &tape->tensors[tape->states[seeker->state].before];
    uint8_t *bytes = malloc(commit_tensor_size(tensor));
    enum status status;

    if (bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a state");
    }
    TRY_OUT(accused_read_state(bytes, &seeker->accused, &seeker->run, seeker->state, error));
    name_element(seeker->location, bytes, seeker->truth, 0, tensor->count);
out:
    free(bytes);
    return status;
}

/* ---- the evidence -------------------------------------------------------- */

/* Where the state after `step` stands, when its segment is complete in the journal. */
static enum status find_place(struct evidence_place *place, bool *found, struct bundle *bundle,
                              uint64_t step, struct error *error)
{
    uint64_t length = bundle_job(bundle)->segment_length;
    uint64_t first = step - step % length;
    uint64_t end = job_segment_end(bundle_job(bundle), step / length);
    struct digest *hashes = calloc(end - first + 1, sizeof(*hashes));
    struct merkle_leaves leaves;
    uint64_t count = 0;
    enum status status =
        hashes == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory for the roots of a segment")
                       : bundle_segment_root(&place->segment, bundle, step / length, error);

    while (status == STATUS_OK && first + count < end) {
        struct digest root;

        status = bundle_state_root(&root, bundle, first + count + 1, error);
        if (status == STATUS_NOT_FOUND) {
            status = STATUS_OK; /* the run diverged before */
            break;
        }
        merkle_leaf_hash(&hashes[count++], root.bytes, DIGEST_SIZE);
    }
    *found = status == STATUS_OK && step - first < count;
    if (*found) {
        merkle_leaves_init_hashes(&leaves, hashes, count);
        merkle_path_build(&place->path, &leaves, step - first);
    }
    free(hashes);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status find_places(struct evidence_file *file, const struct seeker *seeker,
                               struct error *error)
{
    bool placed = false;
    bool before = true;

    TRY(find_place(&file->after, &placed, seeker->bundle, file->step, error));
    if (placed && file->step > 0) {
        TRY(find_place(&file->before, &before, seeker->bundle, file->step - 1, error));
    }
    file->placed = placed && before;
    return STATUS_OK;
}

/* Judges the file as a stranger will. */
static enum status judge_file(struct fault_location *location, const struct buffer *bytes,
                              struct error *error)
{
    struct evidence_ruling ruling = {.answer = EVIDENCE_REFUSED};
    struct evidence_file file;

    TRY(evidence_file_read(&file, bytes->data, bytes->size, error));
    TRY(evidence_judge(&ruling, &file.context, file.evidence, file.size, error));
    if (ruling.answer != EVIDENCE_UPHELD) {
        return error_set(error, STATUS_DEVICE, "the evidence does not convict here: %s",
                         evidence_reason_text(ruling.reason));
    }
    location->evidence = malloc(bytes->size);
    if (location->evidence == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for evidence");
    }
    memcpy(location->evidence, bytes->data, bytes->size);
    location->evidence_size = bytes->size;
    return STATUS_OK;
}

static enum status write_file(struct seeker *seeker, enum evidence_kind kind, struct error *error)
{
    struct evidence_file file = {.step = seeker->wish->step,
                                 .context = {.before = seeker->step.own.trace.state_root,
                                             .after = seeker->wish->after,
                                             .trace = seeker->location->trace_root,
                                             .batch = seeker->step.walk.accused.batch_root},
                                 .evidence = seeker->evidence.data,
                                 .size = seeker->evidence.size};
    struct buffer bytes;
    enum status status;

    buffer_init(&bytes, EVIDENCE_FILE_SIZE_MAX);
    memcpy(file.header, bundle_job(seeker->bundle)->header, sizeof(file.header));
    TRY_OUT(find_places(&file, seeker, error));
    TRY_OUT(evidence_file_write(&bytes, &file, error));
    status = judge_file(seeker->location, &bytes, error);
out:
    seeker->location->kind = status == STATUS_OK ? kind : (enum evidence_kind)0;
    buffer_release(&bytes);
    return status;
}

/* ---- the dispute --------------------------------------------------------- */

/* What the accused is shown, when trace is the root of its trace. */
static enum status ask_next(struct seeker *seeker, enum dispute_kind *kind,
                            const struct digest *trace, struct error *error)
{
    seeker->location->trace_root = seeker->dispute.trace_root = *trace;
    buffer_clear(&seeker->evidence);
    return dispute_next(kind, &seeker->evidence, &seeker->dispute, &seeker->step, error);
}

/* With the accused's trace as far as anybody has it, else with the true one. *found: there is
 * evidence. */
static enum status seek_fault(struct seeker *seeker, bool *found, struct error *error)
{
    struct fault_location *location = seeker->location;
    bool named = seeker->wish->source_count > 0;
    enum dispute_kind kind = DISPUTE_QUERY;
    struct digest trace;
    struct error passed_over;
    enum status status;

    error_init(&passed_over);
    status = trace_source_root(&trace, &seeker->step.source, tape_of(seeker), &passed_over);
    if (status == STATUS_OK) {
        status = ask_next(seeker, &kind, &trace, &passed_over);
        location->own_trace = status == STATUS_OK && kind == DISPUTE_EVIDENCE;
    }
    if (location->own_trace) {
        *found = true;
        return STATUS_OK;
    }
    TRY(ask_next(seeker, &kind, &seeker->step.own.trace.root, error));
    *found = kind == DISPUTE_EVIDENCE;
    note_lack(
        seeker,
        *found ? "the operation is the one that makes the state: the solver's own trace is not at "
                 "hand, and the evidence takes the true one. A solver who answers a claim with "
                 "another is walked on the ledger; with --trace-from the walk is made here"
               : "only the root of the state after the step is at hand: to know which tensor and "
                 "element differ, and for evidence, get a checkpoint of that state, or name what "
                 "answers for the solver's trace with --trace-from",
        named ? &passed_over : NULL);
    return STATUS_OK;
}

/* The evidence is written: what it is about gets its name. */
static enum status convict_element(struct seeker *seeker, struct error *error)
{
    static const enum evidence_kind kinds[] = {
        [TRACE_WALK_ELEMENT] = EVIDENCE_ELEMENT,
        [TRACE_WALK_FIRST_STATE] = EVIDENCE_FIRST_STATE,
        [TRACE_WALK_NEXT_STATE] = EVIDENCE_NEXT_STATE,
    };
    const struct trace_walk *walk = &seeker->step.walk;

    if (walk->end == TRACE_WALK_ELEMENT) {
        seeker->location->proven_element = seeker->step.element;
        name_leaf(seeker);
    }
    if (walk->end == TRACE_WALK_FIRST_STATE) {
        name_item(seeker, walk->item);
        note_lack(seeker,
                  "the element: the trace begins in another state, whose bytes were not asked "
                  "for",
                  NULL);
    }
    TRY(write_file(seeker, kinds[walk->end], error));
    if (walk->end == TRACE_WALK_NEXT_STATE) {
        TRY(name_state(seeker, walk->item, error));
        if (seeker->truth == NULL) {
            note_lack(seeker,
                      "the element: the bundle has no checkpoint of the state after the step",
                      NULL);
        }
    }
    return STATUS_OK;
}

/* The state is true and holds a number that ends a job. */
static enum status convict_went_on(struct seeker *seeker, struct error *error)
{
    struct fault_location *location = seeker->location;
    const struct trace_server *own = &seeker->step.own;
    enum dispute_kind kind = DISPUTE_WAIT;
    const struct trace_server_tensor *kept;
    uint32_t state = 0;

    TRY(ask_next(seeker, &kind, &own->trace.root, error));
    if (kind != DISPUTE_EVIDENCE) {
        return error_set(error, STATUS_NOT_FOUND, "all numbers of the next state are finite");
    }
    TRY(write_file(seeker, EVIDENCE_NOT_FINITE, error));
    location->element = seeker->step.element;
    state = seeker->step.state;
    TRY(name_state(seeker, state, error));
    kept = trace_server_tensor(own, own->next_items[state]);
    if (kept != NULL) {
        location->element_known = true;
        location->found = element_bits(
            kept->bytes + location->element * dtype_size(location->dtype), location->dtype);
    }
    free(seeker->truth); /* nothing differs */
    seeker->truth = NULL;
    return STATUS_OK;
}

/* The dispute as the journal and the bundle give it. The folder is the cache of what is fetched, so
 * the trace is kept there. */
static enum status prepare_dispute(struct seeker *seeker, struct error *error)
{
    const struct job *job = bundle_job(seeker->bundle);
    struct dispute_step *step = &seeker->step;

    seeker->dispute = (struct dispute){.ours = true};
    (void)snprintf(seeker->dispute.folder, sizeof(seeker->dispute.folder), "%s",
                   seeker->wish->cache);
    *step = (struct dispute_step){.run = &seeker->run,
                                  .stands = true,
                                  .file_max = TRACE_FILE_MAX,
                                  .whole = true,
                                  .context = {.after = seeker->wish->after},
                                  .source = {.fetch = seeker->accused.fetch,
                                             .alone = true,
                                             .job = job->id,
                                             .step = seeker->wish->step,
                                             .states = seeker->accused.after}};
    TRY(bundle_state_root(&step->context.before, seeker->bundle, seeker->wish->step, error));
    TRY(evidence_context_of_job(&step->context, job->header, error));
    return dispute_step_open(step, &seeker->dispute, error);
}

static enum status seek_falsehood(struct seeker *seeker, struct error *error)
{
    const struct fault_location_request *wish = seeker->wish;
    const struct replay_options replay = {.threads = wish->machine->thread_count,
                                          .stop = wish->stop};
    bool found = false;
    enum status status = STATUS_OK;

    TRY(accused_open(&seeker->accused, seeker->bundle, wish->step, wish->cache, wish->sources,
                     wish->source_count, error));
    TRY(run_open(&seeker->run, bundle_job(seeker->bundle), wish->paths, wish->path_count,
                 wish->machine, error));
    if (!wish->went_on) {
        TRY(accused_find_state(&seeker->accused, &seeker->run, error));
    }
    TRY(replay_reach(&seeker->run, seeker->bundle, wish->step, &replay, error));
    TRY_OUT(prepare_dispute(seeker, error));
    if (wish->went_on) {
        TRY_OUT(convict_went_on(seeker, error));
    } else {
        TRY_OUT(seek_fault(seeker, &found, error));
        if (found) {
            TRY_OUT(convict_element(seeker, error));
        }
    }
out:
    dispute_step_close(&seeker->step);
    TRY(status);
    return seeker->truth == NULL ? STATUS_OK : compare_state(seeker, error);
}

void fault_location_make(struct fault_location *location, struct bundle *bundle,
                         const struct fault_location_request *wish)
{
    struct seeker *seeker = calloc(1, sizeof(*seeker));
    struct error error;
    enum status status;

    error_init(&error);
    memset(location, 0, sizeof(*location));
    if (seeker == NULL) {
        (void)snprintf(location->lacking, sizeof(location->lacking), "no memory to look into it");
        return;
    }
    *seeker = (struct seeker){.location = location, .bundle = bundle, .wish = wish};
    buffer_init(&seeker->evidence, EVIDENCE_FILE_SIZE_MAX);
    status = seek_falsehood(seeker, &error);
    if (status != STATUS_OK) {
        note_lack(seeker, "the step could not be looked into", &error);
    }
    run_close(&seeker->run);
    accused_close(&seeker->accused);
    buffer_release(&seeker->evidence);
    free(seeker->truth);
    free(seeker);
}

void fault_location_release(struct fault_location *location)
{
    free(location->evidence);
    memset(location, 0, sizeof(*location));
}
