/*
 * Goal: the trace of a step commits to every byte that the step makes, and an opening proves one
 * element of it and nothing else.
 * Method: all items hashed a second time by libcrypto straight from RFC 6962 and docs/FORMATS.md;
 * both ends of the trace against the states of a fast machine; every instruction set and several
 * threads; an opening of every item of every small model; every bit of some openings flipped,
 * every byte of others, structure-aware mutants; the whole state with NaNs put into it.
 */
#include <omp.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "proofs/commit/trace.h"
#include "tests/support/numeric/small_job.h"
#include "tests/support/test.h"

#define MUTANTS_FULL 1000000
#define MUTANTS      60000
#define STEPS_BEFORE 2

/* ---- hashing, a second time --------------------------------------------- */

static struct digest hash_of(const void *a, size_t a_size, const void *b, size_t b_size)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    struct digest digest;

    assert_int_equal(EVP_DigestInit_ex(context, EVP_sha256(), NULL), 1);
    assert_int_equal(EVP_DigestUpdate(context, a, a_size), 1);
    assert_int_equal(EVP_DigestUpdate(context, b, b_size), 1);
    assert_int_equal(EVP_DigestFinal_ex(context, digest.bytes, NULL), 1);
    EVP_MD_CTX_free(context);
    return digest;
}

/* RFC 6962, section 2.1, over leaf hashes. */
static struct digest tree_of(const struct digest *hashes, uint64_t count)
{
    struct digest halves[2];
    uint64_t k = 1;

    if (count == 1) {
        return hashes[0];
    }
    while (2 * k < count) {
        k *= 2;
    }
    halves[0] = tree_of(hashes, k);
    halves[1] = tree_of(hashes + k, count - k);
    return hash_of("\1", 1, halves, sizeof(halves));
}

static struct digest oracle_tensor(const struct tensor *tensor, const uint8_t *bytes)
{
    uint64_t size = tensor->count * dtype_size(tensor->dtype);
    uint64_t count = (size + 1023) / 1024;
    struct digest *hashes = malloc(count * sizeof(*hashes));
    uint8_t header[124] = "lockstep.tensor.v1";
    size_t name_size = strlen(tensor->name);
    struct digest top;

    for (uint64_t i = 0; i < count; i++) {
        uint8_t leaf[1024] = {0};

        memcpy(leaf, bytes + i * 1024, size - i * 1024 < 1024 ? size - i * 1024 : 1024);
        hashes[i] = hash_of("\0", 1, leaf, sizeof(leaf));
    }
    top = tree_of(hashes, count);
    free(hashes);
    memcpy(header + 32, top.bytes, 32);
    endian_store_be64(header + 64, size);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        endian_store_be64(header + 72 + 8 * (size_t)i, tensor->dims[i]);
    }
    header[120] = (uint8_t)tensor->dtype;
    header[121] = (uint8_t)tensor->rank;
    endian_store_be16(header + 122, (uint16_t)name_size);
    return hash_of(header, sizeof(header), tensor->name, name_size);
}

static struct digest oracle_list(const char *tag, const struct digest *items, uint64_t count)
{
    struct digest *hashes = malloc(count * sizeof(*hashes));
    uint8_t header[80] = {0};
    struct digest top;

    for (uint64_t i = 0; i < count; i++) {
        hashes[i] = hash_of("\0", 1, items[i].bytes, 32);
    }
    top = tree_of(hashes, count);
    free(hashes);
    memcpy(header, tag, strlen(tag));
    memcpy(header + 32, top.bytes, 32);
    endian_store_be64(header + 72, count);
    return hash_of(header, sizeof(header), NULL, 0);
}

static struct digest oracle_state(struct machine *machine)
{
    const struct tape *tape = machine->tape;
    struct digest *items = malloc(tape->state_count * sizeof(*items));
    struct digest root;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        uint32_t id = tape->states[i].before;

        items[i] = oracle_tensor(&tape->tensors[id], machine->backend->peek(machine, id));
    }
    root = oracle_list("lockstep.state.v1", items, tape->state_count);
    free(items);
    return root;
}

/* ---- runs --------------------------------------------------------------- */

static void open_before(struct run *run, const struct job *job, enum isa isa, int threads,
                        bool trace)
{
    small_run_open(run, job, isa, threads, trace);
    small_run_begin(run);
    for (int i = 0; i < STEPS_BEFORE; i++) {
        if (trace) {
            struct trace ignored;

            assert_int_equal(trace_run(&ignored, run->machine, NULL, 0, NULL), STATUS_OK);
            trace_release(&ignored);
        } else {
            small_run_step(run);
        }
    }
}

/* Keeps what a step makes: digests by the oracle, and every element of every output. */
struct recording {
    const struct tape *tape;
    struct digest *items;
    uint8_t **bytes;
    uint32_t count;
};

static enum status keep(void *context, struct op_turn maker, uint32_t output, const void *bytes,
                        uint64_t size, struct error *error)
{
    struct recording *recording = context;
    const struct tensor *tensor =
        &recording->tape->tensors[recording->tape->ops[maker.op].outputs[output]];

    (void)error;
    assert_int_equal(trace_item_of_output(recording->tape, maker, output), recording->count);
    recording->items[recording->count] = oracle_tensor(tensor, bytes);
    recording->bytes[recording->count] = malloc(size);
    memcpy(recording->bytes[recording->count++], bytes, size);
    return STATUS_OK;
}

static void record_step(struct recording *recording, struct run *run)
{
    const struct tape *tape = run->job->tape;
    struct observer observer = {.made = keep, .context = recording};

    recording->tape = tape;
    recording->items = calloc(trace_item_count(tape), sizeof(*recording->items));
    recording->bytes = calloc(trace_item_count(tape), sizeof(*recording->bytes));
    recording->count = tape->state_count;
    for (uint32_t i = 0; i < tape->state_count; i++) {
        uint32_t id = tape->states[i].before;
        const struct tensor *tensor = &tape->tensors[id];
        uint64_t size = tensor->count * dtype_size(tensor->dtype);
        const void *bytes = run->machine->backend->peek(run->machine, id);

        recording->items[i] = oracle_tensor(tensor, bytes);
        recording->bytes[i] = malloc(size);
        memcpy(recording->bytes[i], bytes, size);
    }
    assert_int_equal(run->machine->backend->step(run->machine, &observer, NULL), STATUS_OK);
    assert_int_equal(recording->count, trace_item_count(tape));
}

static void recording_release(struct recording *recording)
{
    for (uint32_t i = 0; i < recording->count; i++) {
        free(recording->bytes[i]);
    }
    free(recording->bytes);
    free(recording->items);
}

static uint32_t bits_of(const struct tensor *tensor, const uint8_t *bytes, uint64_t element)
{
    switch (dtype_size(tensor->dtype)) {
    case 1:
        return bytes[element];
    case 2:
        return tensor->dtype == DTYPE_I16
                   ? (uint32_t)(int32_t)(int16_t)endian_load_le16(bytes + 2 * element)
                   : endian_load_le16(bytes + 2 * element);
    default:
        return endian_load_le32(bytes + 4 * element);
    }
}

/* ---- traces ------------------------------------------------------------- */

static void check_trace(const struct job *job)
{
    struct recording recording;
    struct digest root;
    struct run recorded;
    struct run traced;
    struct run fast;
    struct trace trace;

    open_before(&recorded, job, isa_best(), 2, true);
    open_before(&traced, job, isa_best(), 2, true);
    open_before(&fast, job, isa_best(), 1, false);
    record_step(&recording, &recorded);
    root = oracle_state(fast.machine);
    assert_int_equal(trace_run(&trace, traced.machine, NULL, 0, NULL), STATUS_OK);
    assert_int_equal(trace.item_count, recording.count);
    assert_memory_equal(trace.items, recording.items, recording.count * sizeof(struct digest));
    assert_true(digest_equal(&trace.state_root, &root));
    root = oracle_list("lockstep.trace.v1", recording.items, recording.count);
    assert_true(digest_equal(&trace.root, &root));
    small_run_step(&fast);
    root = oracle_state(fast.machine);
    assert_true(digest_equal(&trace.next_root, &root));
    assert_int_equal(state_root_of(&root, traced.machine, NULL), STATUS_OK);
    assert_true(digest_equal(&trace.next_root, &root));
    trace_release(&trace);
    recording_release(&recording);
    run_close(&recorded);
    run_close(&traced);
    run_close(&fast);
}

static void test_trace_equals_a_second_hashing_of_every_output(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct small_job_options options;
        struct job *job;

        small_job_of_kind(&options, (enum model_kind)kind);
        job = small_job_new(&options);
        check_trace(job);
        job_free(job);
    }
}

static void test_trace_is_the_same_on_every_machine(void **state)
{
    struct small_job_options options;
    struct digest first = {{0}};
    bool is_first = true;
    struct job *job;

    (void)state;
    small_job_of_kind(&options, MODEL_GPT2);
    job = small_job_new(&options);
    for (int isa = 0; isa < ISA_COUNT; isa++) {
        for (int threads = 1; threads <= 3 && isa_available((enum isa)isa); threads++) {
            struct trace trace;
            struct run run;

            open_before(&run, job, (enum isa)isa, threads, true);
            assert_int_equal(trace_run(&trace, run.machine, NULL, 0, NULL), STATUS_OK);
            if (!is_first) {
                assert_true(digest_equal(&first, &trace.root));
            }
            first = trace.root;
            is_first = false;
            trace_release(&trace);
            run_close(&run);
        }
    }
    job_free(job);
}

static void test_nodes_are_those_of_the_tree(void **state)
{
    struct small_job_options options;
    struct trace trace;
    struct run run;
    struct job *job;

    (void)state;
    small_job_of_kind(&options, MODEL_MLP);
    job = small_job_new(&options);
    open_before(&run, job, isa_best(), 2, true);
    assert_int_equal(trace_run(&trace, run.machine, NULL, 0, NULL), STATUS_OK);

    struct digest *hashes = malloc(trace.item_count * sizeof(*hashes));

    for (uint32_t i = 0; i < trace.item_count; i++) {
        hashes[i] = hash_of("\0", 1, trace.items[i].bytes, 32);
    }
    for (uint32_t level = 0; level < 20; level++) {
        for (uint64_t index = 0; index << level < trace.item_count; index++) {
            uint64_t first = index << level;
            uint64_t count = trace.item_count - first < UINT64_C(1) << level
                                 ? trace.item_count - first
                                 : UINT64_C(1) << level;
            struct digest expected = tree_of(hashes + first, count);
            struct digest node;

            trace_node(&node, &trace, level, index);
            assert_true(digest_equal(&node, &expected));
        }
    }
    free(hashes);
    trace_release(&trace);
    run_close(&run);
    job_free(job);
}

/* ---- micro-batches -------------------------------------------------------- */

/* Counts what passes of a micro-batch's own list. */
struct passed {
    uint32_t list_count;
    uint32_t listed;
    uint32_t inner;
};

static enum status count_passed(void *context, uint32_t item, const struct tensor *tensor,
                                const void *bytes, struct error *error)
{
    struct passed *passed = context;

    (void)tensor;
    (void)bytes;
    (void)error;
    *(item < passed->list_count ? &passed->listed : &passed->inner) += 1;
    return STATUS_OK;
}

static bool wants_nothing(const void *context, uint32_t item)
{
    (void)context;
    (void)item;
    return false;
}

/* The root is that of a step whose lists are all made, and what it does not need is not shown. */
static void check_micro_batches(const struct job *job, enum isa isa)
{
    const uint32_t list_count = trace_list_count(job->tape);
    struct passed passed = {.list_count = list_count};
    const struct trace_watcher watcher = {
        .pass = count_passed, .context = &passed, .wants = wants_nothing};
    struct trace one;
    struct trace all;
    struct run run;

    open_before(&run, job, isa, 2, true);
    assert_int_equal(trace_watch(&one, run.machine, &watcher, NULL), STATUS_OK);
    assert_int_equal(passed.listed, list_count);
    assert_int_equal(passed.inner, 0);
    run_close(&run);
    open_before(&run, job, ISA_SCALAR, 1, true);
    assert_int_equal(trace_watch_all(&all, run.machine, NULL, NULL), STATUS_OK);
    run_close(&run);
    assert_true(trace_item_count(job->tape) > list_count);
    assert_true(digest_equal(&one.root, &all.root));
    assert_true(digest_equal(&one.next_root, &all.next_root));
    assert_memory_equal(one.items, all.items, list_count * sizeof(*one.items));
    trace_release(&one);
    trace_release(&all);
}

static void test_trace_root_needs_only_the_lists_of_micro_batches(void **state)
{
    static const uint32_t shapes[][2] = {{2, 2}, {4, 1}, {6, 3}};

    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct small_job_options options;
        struct job *job;

        small_job_of_kind(&options, i == 0 ? MODEL_GPT2 : MODEL_MLP);
        options.model.accumulate = shapes[i][0];
        options.model.group = shapes[i][1];
        job = small_job_new(&options);
        check_micro_batches(job, isa_best());
        check_micro_batches(job, ISA_SCALAR);
        job_free(job);
    }
}

/* ---- openings ----------------------------------------------------------- */

static void check_written(const struct trace_opening *opening, const struct trace *trace,
                          uint32_t bits)
{
    static struct trace_opening again;
    uint8_t bytes[TRACE_OPENING_BYTES_MAX];
    size_t size = trace_opening_write(bytes, opening);
    struct tape longer = *trace->tape;
    uint32_t got = 0;

    longer.state_count++;
    assert_int_equal(trace_opening_read(&again, bytes, size), STATUS_OK);
    assert_int_equal(trace_opening_check(&got, &again, &trace->root, trace->tape), VERDICT_VALID);
    assert_int_equal(got, bits);
    assert_int_equal(trace_opening_check(&got, &again, &trace->root, &longer), VERDICT_INVALID);
    assert_int_equal(trace_opening_check(&got, &again, &trace->state_root, trace->tape),
                     VERDICT_INVALID);
}

static enum verdict check_bytes(const uint8_t *bytes, size_t size, const struct trace *trace)
{
    static struct trace_opening opening;
    uint32_t bits;

    return trace_opening_read(&opening, bytes, size) == STATUS_OK
               ? trace_opening_check(&bits, &opening, &trace->root, trace->tape)
               : VERDICT_INVALID;
}

/* Bytes that no opening of that element needs are none: each is checked somewhere. */
static void check_flips(const struct trace_opening *opening, const struct trace *trace,
                        uint32_t step)
{
    uint8_t bytes[TRACE_OPENING_BYTES_MAX + 1];
    size_t size = trace_opening_write(bytes, opening);

    for (size_t bit = 0; bit < size * 8; bit += step) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        /* The element's number within its leaf says what is asked, not what is proven. */
        if (check_bytes(bytes, size, trace) == VERDICT_VALID) {
            assert_in_range(bit, 32, 95);
            assert_int_not_equal(endian_load_be64(bytes + 4), opening->element);
        }
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t cut = 0; cut < size; cut += step) {
        assert_int_equal(check_bytes(bytes, cut, trace), VERDICT_INVALID);
    }
    bytes[size] = 0;
    assert_int_equal(check_bytes(bytes, size + 1, trace), VERDICT_INVALID);
}

/* One opening of every item: the last element of even items, any other of odd ones. */
static struct trace_opening *place_openings(const struct tape *tape, uint32_t count)
{
    struct trace_opening *openings = calloc(count, sizeof(*openings));
    uint64_t seed = count;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t elements = tape->tensors[trace_tensor_at(tape, i)].count;

        openings[i].item = i;
        openings[i].element = i % 2 == 0 ? elements - 1 : test_random_below(&seed, elements);
    }
    return openings;
}

static void check_openings(const struct job *job, bool flips)
{
    uint32_t count = trace_item_count(job->tape);
    struct trace_opening *openings = place_openings(job->tape, count);
    struct recording recording;
    struct run recorded;
    struct run traced;
    struct trace trace;

    open_before(&recorded, job, isa_best(), 2, true);
    open_before(&traced, job, isa_best(), 2, true);
    record_step(&recording, &recorded);
    assert_int_equal(trace_run(&trace, traced.machine, openings, count, NULL), STATUS_OK);
    for (uint32_t i = 0; i < count; i++) {
        const struct tensor *tensor = &job->tape->tensors[trace_tensor_at(job->tape, i)];
        uint32_t bits = 0;

        assert_int_equal(trace_opening_check(&bits, &openings[i], &trace.root, job->tape),
                         VERDICT_VALID);
        assert_int_equal(bits, bits_of(tensor, recording.bytes[i], openings[i].element));
        check_written(&openings[i], &trace, bits);
        if (flips && i % 41 == 0) {
            check_flips(&openings[i], &trace, i == 41 ? 1 : 13);
        }
    }
    trace_release(&trace);
    recording_release(&recording);
    run_close(&recorded);
    run_close(&traced);
    free(openings);
}

static void test_every_item_can_be_opened(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct small_job_options options;
        struct job *job;

        small_job_of_kind(&options, (enum model_kind)kind);
        job = small_job_new(&options);
        check_openings(job, false);
        job_free(job);
    }
}

static void test_flipped_bits_of_openings_are_refused(void **state)
{
    struct small_job_options options;
    struct job *job;

    (void)state;
    small_job_defaults(&options);
    job = small_job_new(&options);
    check_openings(job, true);
    job_free(job);
}

static void test_places_that_are_not_there_are_refused(void **state)
{
    struct small_job_options options;
    struct trace_opening *opening = calloc(1, sizeof(*opening));
    struct error error;
    struct trace trace;
    struct run run;
    struct job *job;

    (void)state;
    error_init(&error);
    small_job_defaults(&options);
    job = small_job_new(&options);
    small_run_open(&run, job, isa_best(), 1, true);
    small_run_begin(&run);
    opening->item = trace_item_count(job->tape);
    assert_int_equal(trace_run(&trace, run.machine, opening, 1, &error), STATUS_USAGE);
    opening->item = 0;
    opening->element = job->tape->tensors[trace_tensor_at(job->tape, 0)].count;
    assert_int_equal(trace_run(&trace, run.machine, opening, 1, &error), STATUS_USAGE);
    run_close(&run);
    job_free(job);
    free(opening);
}

/* ---- mutants ------------------------------------------------------------ */

/* Where the parts of an opening begin: leaf, header and the two paths, with their lengths. */
struct layout {
    size_t header;
    size_t paths[2];
    size_t size;
};

static struct layout layout_of(const uint8_t *bytes, size_t size)
{
    struct layout layout = {.header = 12 + MERKLE_LEAF_SIZE, .size = size};

    layout.paths[0] = layout.header + 2 + endian_load_be16(bytes + layout.header);
    layout.paths[1] = layout.paths[0] + 2 + endian_load_be16(bytes + layout.paths[0]);
    return layout;
}

static void swap_siblings(uint8_t *bytes, const struct layout *layout, uint64_t *seed)
{
    size_t path = layout->paths[test_random_below(seed, 2)];
    uint16_t count = endian_load_be16(bytes + path + 2 + 16);
    uint8_t kept[32];
    uint8_t *siblings = bytes + path + 2 + 18;

    if (count < 2) {
        return;
    }

    uint64_t a = test_random_below(seed, count);
    uint64_t b = test_random_below(seed, count);

    memcpy(kept, siblings + 32 * a, 32);
    memmove(siblings + 32 * a, siblings + 32 * b, 32);
    memcpy(siblings + 32 * b, kept, 32);
}

static void mutate(uint8_t *bytes, size_t *size, const uint8_t *other, size_t other_size,
                   uint64_t *seed)
{
    struct layout layout = layout_of(bytes, *size);
    struct layout foreign = layout_of(other, other_size);
    size_t at;

    switch (test_random_below(seed, 8)) {
    case 0:
        bytes[12 + test_random_below(seed, *size - 12)] ^=
            (uint8_t)(1 << test_random_below(seed, 8));
        break;
    case 1:
        endian_store_be32(bytes, endian_load_be32(bytes) + (test_random_below(seed, 2) ? 1 : -1u));
        break;
    case 2:
        endian_store_be64(bytes + 4, endian_load_be64(bytes + 4) + test_random_below(seed, 4096));
        break;
    case 3:
        memcpy(bytes + 12, other + 12, MERKLE_LEAF_SIZE);
        break;
    case 4:
        swap_siblings(bytes, &layout, seed);
        break;
    case 5: /* indexes and counts of a path */
        at = layout.paths[test_random_below(seed, 2)] + 2 + test_random_below(seed, 18);
        bytes[at] = (uint8_t)(bytes[at] + 1 + test_random_below(seed, 4));
        break;
    case 6: /* a whole path of another opening */
        at = layout.paths[1];
        memcpy(bytes + at, other + foreign.paths[1], foreign.size - foreign.paths[1]);
        *size = at + foreign.size - foreign.paths[1];
        break;
    default:
        at = layout.header + 2 + 32 + test_random_below(seed, 92);
        bytes[at] ^= (uint8_t)(1 << test_random_below(seed, 8));
        break;
    }
}

/* What is accepted must say what the opening of that very place says. */
static bool says_the_truth(const uint8_t *bytes, size_t size, const struct recording *recording,
                           const struct trace *trace)
{
    static struct trace_opening opening;
    uint32_t bits = 0;

    if (trace_opening_read(&opening, bytes, size) != STATUS_OK ||
        trace_opening_check(&bits, &opening, &trace->root, trace->tape) != VERDICT_VALID) {
        return true;
    }

    const struct tensor *tensor =
        &recording->tape->tensors[trace_tensor_at(recording->tape, opening.item)];

    return opening.element < tensor->count &&
           bits == bits_of(tensor, recording->bytes[opening.item], opening.element);
}

static void test_mutants_of_openings_prove_nothing_false(void **state)
{
    uint64_t mutants = test_share(MUTANTS_FULL, MUTANTS);
    struct small_job_options options;
    struct recording recording;
    struct run recorded;
    struct run traced;
    struct trace trace;
    uint64_t seed = 17;

    (void)state;
    small_job_defaults(&options);

    struct job *job = small_job_new(&options);
    uint32_t count = trace_item_count(job->tape);
    struct trace_opening *openings = place_openings(job->tape, count);

    open_before(&recorded, job, isa_best(), 2, true);
    open_before(&traced, job, isa_best(), 2, true);
    record_step(&recording, &recorded);
    assert_int_equal(trace_run(&trace, traced.machine, openings, count, NULL), STATUS_OK);
    for (uint64_t i = 0; i < mutants; i++) {
        uint8_t bytes[2 * TRACE_OPENING_BYTES_MAX];
        uint8_t other[TRACE_OPENING_BYTES_MAX];
        size_t size = trace_opening_write(bytes, &openings[test_random_below(&seed, count)]);
        size_t other_size = trace_opening_write(other, &openings[test_random_below(&seed, count)]);

        mutate(bytes, &size, other, other_size, &seed);
        assert_true(says_the_truth(bytes, size, &recording, &trace));
    }
    trace_release(&trace);
    recording_release(&recording);
    run_close(&recorded);
    run_close(&traced);
    job_free(job);
    free(openings);
}

/* ---- the whole state ---------------------------------------------------- */

static const void *nowhere(struct machine *machine, uint32_t tensor)
{
    (void)machine;
    (void)tensor;
    return NULL;
}

static void test_state_root_is_one_by_every_hasher(void **state)
{
    struct small_job_options options;
    struct backend far;
    struct digest expected;
    struct run run;
    struct job *job;

    (void)state;
    small_job_defaults(&options);
    options.model.vocabulary = 4097; /* tensors of several pieces, the last one short */
    options.model.width = 24;
    options.model.heads = 2;
    job = small_job_new(&options);
    small_run_open(&run, job, isa_best(), 2, false);
    small_run_begin(&run);
    expected = oracle_state(run.machine);
    assert_memory_equal(expected.bytes, job->first_state_root.bytes, DIGEST_SIZE);
    for (int threads = 0; threads <= 5; threads++) {
        struct digest root;
        bool finite = false;

        assert_int_equal(state_root_find(&root, &finite, run.machine, threads, NULL), STATUS_OK);
        assert_true(finite && digest_equal(&root, &expected));
        /* A machine whose memory is elsewhere. */
        far = *run.machine->backend;
        far.peek = nowhere;
        run.machine->backend = &far;
        finite = false;
        assert_int_equal(state_root_find(&root, &finite, run.machine, threads, NULL), STATUS_OK);
        assert_true(finite && digest_equal(&root, &expected));
        run.machine->backend = &backend_cpu;
    }
    run_close(&run);
    job_free(job);
}

/* What a machine holds, to the last bit of every state: parameters, moments, and the step. */
static void test_every_bit_of_a_state_changes_its_root(void **state)
{
    struct small_job_options options;
    struct digest expected;
    struct run run;
    struct job *job;

    (void)state;
    small_job_defaults(&options);
    job = small_job_new(&options);
    small_run_open(&run, job, isa_best(), 1, false);
    small_run_begin(&run);
    small_run_step(&run);
    assert_int_equal(state_root_find(&expected, NULL, run.machine, 1, NULL), STATUS_OK);
    for (uint32_t i = 0; i < job->tape->state_count; i++) {
        uint32_t id = job->tape->states[i].before;
        uint64_t bits = 8 * commit_tensor_size(&job->tape->tensors[id]);
        uint8_t *bytes = (uint8_t *)(uintptr_t)run.machine->backend->peek(run.machine, id);
        uint64_t step = bits / test_share(bits, bits < 400 ? bits : 400);

        for (uint64_t bit = 0; bit < bits; bit += step) {
            struct digest root;

            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_int_equal(state_root_find(&root, NULL, run.machine, 1, NULL), STATUS_OK);
            assert_false(digest_equal(&root, &expected));
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
    run_close(&run);
    job_free(job);
}

static void test_state_root_tells_of_every_nan_and_infinity(void **state)
{
    static const uint32_t values[] = {0x7fc00000, 0x7f800000, 0xff800000, 0xffffffff, 0x7f800001};
    struct small_job_options options;
    struct run run;
    struct job *job;

    (void)state;
    small_job_defaults(&options);
    options.model.vocabulary = 4097;
    options.model.width = 24;
    options.model.heads = 2;
    job = small_job_new(&options);
    small_run_open(&run, job, isa_best(), 2, false);
    small_run_begin(&run);
    for (uint32_t i = 0; i < job->tape->state_count; i++) {
        uint32_t id = job->tape->states[i].before;
        const struct tensor *tensor = &job->tape->tensors[id];
        uint64_t places[] = {0, tensor->count / 2, 65535, 65536, tensor->count - 1};
        uint32_t *bytes = (uint32_t *)(uintptr_t)run.machine->backend->peek(run.machine, id);

        for (size_t place = 0; place < 5; place++) {
            bool finite;
            struct digest root;
            uint32_t kept;

            if (places[place] >= tensor->count) {
                continue;
            }
            kept = bytes[places[place]];
            bytes[places[place]] = values[(i + place) % 5];
            assert_int_equal(state_root_find(&root, &finite, run.machine, 2, NULL), STATUS_OK);
            assert_int_equal(finite, tensor->dtype != DTYPE_F32);
            bytes[places[place]] = kept;
        }
    }
    run_close(&run);
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trace_equals_a_second_hashing_of_every_output),
        cmocka_unit_test(test_trace_is_the_same_on_every_machine),
        cmocka_unit_test(test_nodes_are_those_of_the_tree),
        cmocka_unit_test(test_trace_root_needs_only_the_lists_of_micro_batches),
        cmocka_unit_test(test_every_item_can_be_opened),
        cmocka_unit_test(test_flipped_bits_of_openings_are_refused),
        cmocka_unit_test(test_places_that_are_not_there_are_refused),
        cmocka_unit_test(test_mutants_of_openings_prove_nothing_false),
        cmocka_unit_test(test_state_root_is_one_by_every_hasher),
        cmocka_unit_test(test_every_bit_of_a_state_changes_its_root),
        cmocka_unit_test(test_state_root_tells_of_every_nan_and_infinity),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
