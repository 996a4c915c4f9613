/*
 * Goal: a job that reads no data is run, traced, audited and probed like any other.
 *
 * Method: a tape of one state that shrinks, as a job; the program itself on it.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "engine/tape/builder.h"
#include "proofs/job/job_file.h"
#include "proofs/job/job_make.h"

static void write_job(const char *path)
{
    static const uint64_t dims[2] = {4, 64};
    const struct job_terms terms = {.steps = 4, .segment_length = 2};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    const uint32_t w = build_tensor(builder, "w", DTYPE_F32, ROLE_STATE, 2, dims);
    const uint32_t loss = build_mean(builder, build_mul(builder, w, w, 1));
    struct tape *tape = NULL;
    struct job *job = NULL;
    struct buffer bytes;
    struct error error;
    FILE *file;

    error_init(&error);
    build_init(builder, w, (struct init){.kind = INIT_NORMAL, .value_bits = UINT32_C(0x3f000000)});
    build_output(builder, "loss", loss);
    build_loss(builder, loss);
    build_after(builder, w, build_scale(builder, w, 0.5f));
    (void)build_step(builder);
    assert_int_equal(builder_finish(&tape, builder, &error), STATUS_OK);
    builder_free(builder);
    assert_int_equal(job_from_tape(&job, tape, NULL, 0, &terms, &error), STATUS_OK);
    buffer_init(&bytes, JOB_FILE_SIZE_MAX);
    assert_int_equal(job_encode(&bytes, job, &error), STATUS_OK);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.data, 1, bytes.size, file), bytes.size);
    assert_int_equal(fclose(file), 0);
    buffer_release(&bytes);
    job_free(job);
}

/* What the program says to standard output and standard error. */
static void expect(const char *words, int wanted_code, const char *wanted)
{
    char command[2048];
    char said[16384];
    FILE *pipe;
    size_t size;

    (void)snprintf(command, sizeof(command), "cd %s && %s %s 2>&1", test_temp_dir(), test_program(),
                   words);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    size = fread(said, 1, sizeof(said) - 1, pipe);
    said[size] = '\0';
    if (WEXITSTATUS(pclose(pipe)) != wanted_code || strstr(said, wanted) == NULL) {
        fail_msg("%s: %s", words, said);
    }
    assert_null(strstr(said, "nan"));
}

static void test_a_job_without_data_is_run_and_audited(void **state)
{
    char path[1024];

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/none.job", test_temp_dir());
    write_job(path);
    expect("prover run none.job --offline --bundle none", 0, "trained after 4 of 4 steps");
    expect("trace root none 1", 0, "state after");
    expect("audit none", 0, "proven");
    expect("prover probe none.job --bundle .", 0, "takes the job        yes");
    expect("prover run none.job --offline --bundle other --data none.job", 3,
           "the job reads 0 data files, and 1 are given");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job_without_data_is_run_and_audited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
