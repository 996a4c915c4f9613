/*
 * Goal: a job reads any number of frozen tensors of 16 and 32 bits as data, wherever they lie, and
 * no others.
 *
 * Method: a small net whose base is frozen, more tensors than one file gives, from .safetensors,
 * .npy-less files and both; results against the same net with the widened base; files that lack a
 * tensor, hold another, a NaN, or are given twice.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "engine/ops/element.h"
#include "engine/tape/builder.h"
#include "proofs/commit/commit.h"
#include "proofs/format/safetensors.h"
#include "proofs/job/job_file.h"
#include "proofs/job/job_make.h"
#include "proofs/run/data_paths.h"
#include "proofs/run/run.h"
#include "tests/support/numeric/small_job.h"
#include "tests/support/test.h"

enum {
    SIDE = 8,
    LAYERS = 12,
    DATA = LAYERS + 2, /* and a table, and the words that are looked up */
    STEPS = 3,
};

static const enum dtype types[3] = {DTYPE_BF16, DTYPE_F16, DTYPE_F32};

/* wide: the base is of binary32, with the same numbers. */
static struct tape *make_tape(bool wide)
{
    static const uint64_t dims[2] = {SIDE, SIDE};
    static const uint64_t one[1] = {1};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    uint32_t words = build_tensor(builder, "words", DTYPE_U32, ROLE_DATA, 1, dims);
    uint32_t table =
        build_tensor(builder, "table", wide ? DTYPE_F32 : DTYPE_BF16, ROLE_DATA, 2, dims);
    uint32_t adapter = build_tensor(builder, "adapter", DTYPE_F32, ROLE_STATE, 2, dims);
    uint32_t y = build_linear(builder, build_gather(builder, table, words), adapter);
    struct tape *tape = NULL;
    uint32_t gradient;
    uint32_t loss;

    build_init(builder, adapter, (struct init){INIT_UNIFORM, real_to_bits(0.5f)});
    for (int i = 0; i < LAYERS; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "layer.%d", i);
        y = build_linear(
            builder, y,
            build_tensor(builder, name, wide ? DTYPE_F32 : types[i % 3], ROLE_DATA, 2, dims));
    }
    loss = build_mean(builder, build_mul(builder, y, y, 1));
    build_output(builder, "loss", loss);
    build_loss(builder, loss);
    build_gradients(builder, &gradient, loss, &adapter, 1);
    build_after(builder, adapter,
                build_add(builder, adapter,
                          build_mul(builder, gradient, build_fill(builder, -0.1f, 1, one),
                                    (uint64_t)SIDE * SIDE),
                          1));
    assert_int_equal(builder_finish(&tape, builder, NULL), STATUS_OK);
    builder_free(builder);
    return tape;
}

static uint32_t value(uint32_t number, const struct tensor *tensor, uint64_t i)
{
    uint64_t random = number * UINT64_C(1000) + i;
    float x = (float)((double)(test_random(&random) >> 40) * 0x1p-23 - 1.0);

    /* The same numbers of 8 bits in every type. */
    return tensor->dtype == DTYPE_U32 ? (uint32_t)(i * 5 % SIDE)
                                      : element_cast(DTYPE_BF16, DTYPE_F32, element_to_bf16(x));
}

/* The elements of data tensor `number`. */
static void *values(const struct tensor *tensor, uint32_t number)
{
    uint8_t *bytes = calloc(tensor->count, dtype_size(tensor->dtype));

    for (uint64_t i = 0; i < tensor->count; i++) {
        uint32_t bits = value(number, tensor, i);

        bits = dtype_is_half(tensor->dtype) ? element_cast(DTYPE_F32, tensor->dtype, bits) : bits;
        memcpy(bytes + i * dtype_size(tensor->dtype), &bits, dtype_size(tensor->dtype));
    }
    return bytes;
}

struct base {
    struct job *job;
    void *bytes[DATA];
    uint32_t ids[DATA];
};

static void base_open(struct base *base, bool wide)
{
    struct tape *tape = make_tape(wide);
    struct digest roots[DATA];
    const struct job_terms terms = {
        .steps = STEPS, .segment_length = 1, .data_roots = roots, .data_count = DATA, .seed = 3};
    struct error error;
    uint32_t at = 0;

    error_init(&error);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_DATA) {
            base->ids[at] = id;
            base->bytes[at] = values(&tape->tensors[id], at);
            commit_tensor_root(&roots[at], COMMIT_DATA, &tape->tensors[id], base->bytes[at], 1);
            at++;
        }
    }
    assert_int_equal(at, DATA);
    if (job_from_tape(&base->job, tape, calloc(1, sizeof(void *)), 0, &terms, &error) !=
        STATUS_OK) {
        fail_msg("%s", error.text);
    }
}

static void base_close(struct base *base)
{
    for (int i = 0; i < DATA; i++) {
        free(base->bytes[i]);
    }
    job_free(base->job);
}

static const struct tensor *tensor_of(const struct base *base, int at)
{
    return &base->job->tape->tensors[base->ids[at]];
}

/* A file of the tensors `first` to before `end`; wider types come first. */
static const char *write_named(const char *name, const struct base *base, int first, int end)
{
    struct safetensors_entry entries[DATA];
    struct safetensors_writer writer;
    const char *path = small_path(name);
    uint32_t count = 0;
    int order[DATA];

    for (int size = 4; size >= 2; size -= 2) {
        for (int i = first; i < end; i++) {
            if ((int)dtype_size(tensor_of(base, i)->dtype) == size) {
                order[count] = i;
                safetensors_describe(&entries[count++], tensor_of(base, i));
            }
        }
    }
    (void)remove(path);
    assert_int_equal(safetensors_writer_open(&writer, NULL, path, entries, count, NULL, 0),
                     STATUS_OK);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(safetensors_writer_add(&writer, NULL, base->bytes[order[i]],
                                                tensor_size(tensor_of(base, order[i]))),
                         STATUS_OK);
    }
    assert_int_equal(safetensors_writer_keep(&writer, NULL), STATUS_OK);
    return path;
}

static const char *write_plain(const char *name, const struct base *base, int at)
{
    const char *path = small_path(name);

    assert_int_equal(
        file_write(path, NULL, base->bytes[at], tensor_size(tensor_of(base, at)), 0644), STATUS_OK);
    return path;
}

static enum status open_with(struct run *run, const struct base *base, const char *const *files,
                             size_t count, struct error *error)
{
    const struct machine_options options = {.isa = isa_best(), .thread_count = 2};
    struct data_paths paths = {0};
    enum status status;

    error_init(error);
    *run = (struct run){0};
    TRY_OUT(data_paths_of_files(&paths, base->job->tape, files, count, error));
    TRY_OUT(run_open(run, base->job, (const char *const *)paths.of, paths.count, &options, error));
out:
    data_paths_close(&paths);
    return status;
}

static void refused(const struct base *base, const char *const *files, size_t count,
                    enum status expected, const char *words)
{
    struct error error;
    struct run run;

    assert_int_equal(open_with(&run, base, files, count, &error), expected);
    if (strstr(error.text, words) == NULL) {
        fail_msg("'%s' does not say '%s'", error.text, words);
    }
    run_close(&run);
}

/* The adapter and the loss after the steps. */
static void train(uint32_t after[SIDE * SIDE + 1], const struct base *base,
                  const char *const *files, size_t count)
{
    const struct tape *tape = base->job->tape;
    struct error error;
    struct run run;

    if (open_with(&run, base, files, count, &error) != STATUS_OK || run.machine == NULL) {
        fail_msg("%s", error.text);
        return;
    }
    job_first_state(after, base->job, tape->states[0].before);
    assert_int_equal(
        run.machine->backend->write(run.machine, tape->states[0].before, after, &error), STATUS_OK);
    for (int i = 0; i < STEPS; i++) {
        assert_int_equal(run.machine->backend->step(run.machine, NULL, &error), STATUS_OK);
    }
    assert_int_equal(run.machine->backend->read(run.machine, tape->states[0].before, after, &error),
                     STATUS_OK);
    assert_int_equal(run_loss(&after[SIDE * SIDE], &run, &error), STATUS_OK);
    run_close(&run);
}

/* ---- tests --------------------------------------------------------------- */

static void test_frozen_tensors_come_from_any_files(void **state)
{
    uint32_t expected[SIDE * SIDE + 1];
    uint32_t got[SIDE * SIDE + 1];
    const char *files[DATA];
    struct base base;
    struct base wide;

    (void)state;
    base_open(&base, false);
    base_open(&wide, true);
    files[0] = write_named("wide.safetensors", &wide, 0, DATA);
    train(expected, &wide, files, 1);
    files[0] = write_named("all.safetensors", &base, 0, DATA);
    train(got, &base, files, 1);
    assert_memory_equal(got, expected, sizeof(got)); /* widening is exact */
    files[0] = write_plain("words", &base, 0);       /* the others by their names, in two shards */
    files[1] = write_named("b.safetensors", &base, 5, DATA);
    files[2] = write_named("a.safetensors", &base, 1, 5);
    train(got, &base, files, 3);
    assert_memory_equal(got, expected, sizeof(got));
    for (int i = 0; i < DATA; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "plain.%d", i);
        files[i] = strdup(write_plain(name, &base, i));
    }
    train(got, &base, files, DATA);
    assert_memory_equal(got, expected, sizeof(got));
    for (int i = 0; i < DATA; i++) {
        free((void *)(uintptr_t)files[i]);
    }
    base_close(&base);
    base_close(&wide);
}

static void test_other_frozen_tensors_are_refused_by_name(void **state)
{
    const char *files[2];
    struct base base;
    uint16_t *layer;

    (void)state;
    base_open(&base, false);
    files[0] = write_named("part.safetensors", &base, 0, DATA - 1);
    refused(&base, files, 1, STATUS_USAGE, "1 data files, and 0 are given");
    files[1] = files[0]; /* which is no harm */
    refused(&base, files, 2, STATUS_USAGE, "1 data files, and 0 are given");
    files[1] = write_named("again.safetensors", &base, 3, 5);
    refused(&base, files, 2, STATUS_USAGE, "names no data tensor of the job that no earlier");
    layer = base.bytes[5]; /* bf16: (5 - 2) % 3 */
    assert_int_equal(tensor_of(&base, 5)->dtype, DTYPE_BF16);
    layer[7] ^= 1;
    files[0] = write_named("lie.safetensors", &base, 0, DATA);
    refused(&base, files, 1, STATUS_REFUSED, "is not the job's 'layer.3'");
    layer[7] = 0x7f80;
    files[0] = write_named("nan.safetensors", &base, 0, DATA);
    refused(&base, files, 1, STATUS_BAD_FORMAT, "layer.3");
    base_close(&base);
    base_open(&base, true); /* the same names in another type */
    files[0] = write_named("wide.safetensors", &base, 0, DATA);
    base_close(&base);
    base_open(&base, false);
    refused(&base, files, 1, STATUS_BAD_FORMAT, "'table' of the type and shape");
    base_close(&base);
}

static void test_jobs_with_many_data_tensors_are_written_and_read(void **state)
{
    struct buffer bytes;
    struct job *again = NULL;
    struct error error;
    struct base base;

    (void)state;
    error_init(&error);
    base_open(&base, false);
    buffer_init(&bytes, JOB_FILE_SIZE_MAX);
    assert_int_equal(job_encode(&bytes, base.job, &error), STATUS_OK);
    assert_int_equal(job_parse(&again, bytes.data, bytes.size, &error), STATUS_OK);
    assert_int_equal(again->data_count, DATA);
    assert_memory_equal(again->data_roots, base.job->data_roots, DATA * sizeof(struct digest));
    assert_memory_equal(&again->id, &base.job->id, sizeof(again->id));
    job_free(again);
    for (size_t size = bytes.size - 9; size > bytes.size - 9 - DIGEST_SIZE * DATA; size -= 7) {
        assert_int_not_equal(job_parse(&again, bytes.data, size, &error), STATUS_OK);
    }
    buffer_release(&bytes);
    base_close(&base);
}

/* What the bundle remembers are the files that people named. */
static void test_bundle_remembers_where_its_data_is(void **state)
{
    struct data_paths paths = {0};
    struct data_paths again = {0};
    struct bundle *bundle = NULL;
    const char *files[2];
    struct error error;
    struct base base;
    char whole[4096];

    (void)state;
    error_init(&error);
    base_open(&base, false);
    files[0] = write_named("noted.safetensors", &base, 1, DATA);
    files[1] = write_plain("noted.words", &base, 0);
    assert_int_equal(data_paths_of_files(&paths, base.job->tape, files, 2, &error), STATUS_OK);
    assert_int_equal(bundle_create(&bundle, small_path("bundle"), base.job, &error), STATUS_OK);
    assert_int_equal(data_paths_of_bundle(&again, bundle_job(bundle), bundle, &error),
                     STATUS_NOT_FOUND);
    data_paths_close(&again);
    assert_int_equal(data_paths_remember(&paths, bundle, &error), STATUS_OK);
    assert_int_equal(data_paths_of_bundle(&again, bundle_job(bundle), bundle, &error), STATUS_OK);
    for (int i = 0; i < DATA; i++) {
        assert_non_null(realpath(files[i == 0], whole));
        assert_string_equal(again.of[i], whole);
    }
    data_paths_close(&again);
    data_paths_close(&paths);
    bundle_close(bundle);
    base.job = NULL; /* the bundle's */
    base_close(&base);
}

static void test_files_are_given_by_name_in_any_order(void **state)
{
    static const char *const named[] = {"layer.3=c", "b", "words=a", "x=d", "layer.0=w=3",
                                        "0",         "1", "2",       "4",   "5",
                                        "6",         "7", "8",       "9"};
    static const char *const twice[] = {"words=a", "words=b"};
    struct tape *tape = make_tape(false);
    struct data_paths paths = {0};
    struct error error;

    (void)state;
    error_init(&error);
    /* "x" is no tensor: "x=d" is a file like others. */
    assert_int_equal(data_paths_of_files(&paths, tape, named, DATA, &error), STATUS_OK);
    assert_string_equal(paths.of[0], "a");
    assert_string_equal(paths.of[1], "b");
    assert_string_equal(paths.of[2], "w=3");
    assert_string_equal(paths.of[3], "x=d");
    assert_string_equal(paths.of[5], "c");
    assert_string_equal(paths.of[DATA - 1], "9");
    data_paths_close(&paths);
    assert_int_equal(data_paths_of_files(&paths, tape, twice, 2, &error), STATUS_USAGE);
    assert_non_null(strstr(error.text, "another file has that name"));
    data_paths_close(&paths);
    tape_free(tape);
}

static void write_empty(const char *folder, const char *name)
{
    char path[FILE_PATH_MAX];

    assert_int_equal(file_path_join(path, sizeof(path), NULL, folder, name), STATUS_OK);
    assert_int_equal(file_write(path, NULL, "", 0, 0600), STATUS_OK);
}

static bool ends_with(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL && strcmp(slash + 1, name) == 0;
}

/* Programs that find data by its root look into each file of a folder. */
static void test_folders_are_spread_into_their_files(void **state)
{
    static const char *const of_rows[] = {"tokens.u16", "mask.u8", "reach.u32",
                                          "held-out-tokens.u16", "held-out-mask.u8"};
    const char *folder = test_temp_dir();
    const char *names[] = {"a.u8", folder, "/nowhere", "b.safetensors"};
    struct data_paths paths;

    (void)state;
    write_empty(folder, "manifest.json");
    write_empty(folder, "notes.txt");
    for (size_t i = 0; i < 5; i++) {
        write_empty(folder, of_rows[i]);
    }
    assert_int_equal(data_paths_spread(&paths, names, 4, NULL), STATUS_OK);
    assert_int_equal(paths.count, 8);
    assert_string_equal(paths.of[0], "a.u8");
    for (size_t i = 0; i < 5; i++) {
        assert_true(ends_with(paths.of[1 + i], of_rows[i]));
    }
    assert_string_equal(paths.of[6], "/nowhere");
    assert_string_equal(paths.of[7], "b.safetensors");
    data_paths_close(&paths);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frozen_tensors_come_from_any_files),
        cmocka_unit_test(test_files_are_given_by_name_in_any_order),
        cmocka_unit_test(test_other_frozen_tensors_are_refused_by_name),
        cmocka_unit_test(test_jobs_with_many_data_tensors_are_written_and_read),
        cmocka_unit_test(test_folders_are_spread_into_their_files),
        cmocka_unit_test(test_bundle_remembers_where_its_data_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
