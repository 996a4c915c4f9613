/*
 * Goal: a job file is read back as it was written, and no other bytes are that job.
 *
 * Method: round trips of every model; every byte of a small file changed, every truncation; bytes
 * after the header changed and the header made to commit to them, so that the readers of tape,
 * constants and first state see them; structure-aware mutants; roots made a second time from parts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/io/file.h"
#include "engine/rules/rule.h"
#include "proofs/hash/sha256.h"
#include "proofs/job/job_file.h"
#include "proofs/job/job_make.h"
#include "proofs/job/tape_file.h"
#include "tests/support/numeric/small_job.h"
#include "tests/support/test.h"

#define MUTANTS_FULL 1000000
#define MUTANTS      3000
#define BODY_DIGEST  88
#define FILE_MAX     (1 << 20)

static struct buffer encode(const struct job *job)
{
    struct buffer bytes;
    struct error error;

    error_init(&error);
    buffer_init(&bytes, JOB_FILE_SIZE_MAX);
    assert_int_equal(job_encode(&bytes, job, &error), STATUS_OK);
    return bytes;
}

static struct buffer small_file(void)
{
    struct small_job_options options;
    struct buffer bytes;
    struct job *job;

    small_job_defaults(&options);
    job = small_job_new(&options);
    bytes = encode(job);
    job_free(job);
    return bytes;
}

static enum status parse(const uint8_t *bytes, size_t size)
{
    struct job *job = NULL;
    struct error error;
    enum status status;

    error_init(&error);
    status = job_parse(&job, bytes, size, &error);
    if (status == STATUS_OK) {
        job_free(job);
    } else {
        assert_int_equal(error.status, status);
        assert_true(error.text[0] != '\0');
    }
    return status;
}

/* As a forger does: the header commits to the changed body, so only its meaning can be wrong. */
static void mend(uint8_t *bytes, size_t size)
{
    struct digest digest;

    sha256(&digest, bytes + JOB_HEADER_SIZE, size - JOB_HEADER_SIZE);
    memcpy(bytes + BODY_DIGEST, digest.bytes, DIGEST_SIZE);
}

static void test_jobs_of_all_models_are_read_back(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct small_job_options options;
        struct job *again = NULL;
        struct error error;

        error_init(&error);
        small_job_of_kind(&options, (enum model_kind)kind);

        struct job *job = small_job_new(&options);
        struct buffer bytes = encode(job);

        assert_int_equal(job_parse(&again, bytes.data, bytes.size, &error), STATUS_OK);

        struct buffer second = encode(again);

        assert_int_equal(bytes.size, second.size);
        assert_memory_equal(bytes.data, second.data, bytes.size);
        assert_true(digest_equal(&job->id, &again->id));
        assert_int_equal(again->steps, SMALL_JOB_STEPS);
        assert_int_equal(job_segments(again), SMALL_JOB_STEPS / SMALL_JOB_SEGMENT);
        for (uint32_t i = 0; i < job->tape->state_count; i++) {
            uint32_t id = job->tape->states[i].before;
            size_t size = commit_tensor_size(&job->tape->tensors[id]);
            uint8_t *one = malloc(size);
            uint8_t *two = malloc(size);

            job_first_state(one, job, id);
            job_first_state(two, again, id);
            assert_memory_equal(one, two, size);
            free(one);
            free(two);
        }
        buffer_release(&bytes);
        buffer_release(&second);
        job_free(job);
        job_free(again);
    }
}

static void test_header_says_what_the_format_says(void **state)
{
    struct small_job_options options;
    struct digest digest;
    struct commit_roots roots;

    (void)state;
    small_job_defaults(&options);

    struct job *job = small_job_new(&options);
    struct buffer bytes = encode(job);

    assert_memory_equal(bytes.data, "LSJOB\0\0\2", 8);
    assert_int_equal(endian_load_be32(bytes.data + 8), RULES_VERSION);
    assert_int_equal(endian_load_be64(bytes.data + 12), SMALL_JOB_STEPS);
    assert_int_equal(endian_load_be64(bytes.data + 20), SMALL_JOB_SEGMENT);
    sha256(&digest, bytes.data + JOB_HEADER_SIZE, bytes.size - JOB_HEADER_SIZE);
    assert_memory_equal(bytes.data + BODY_DIGEST, digest.bytes, DIGEST_SIZE);
    commit_job_id(&digest, bytes.data, JOB_HEADER_SIZE);
    assert_true(digest_equal(&digest, &job->id));
    /* The first state's root, made from whole tensors. */
    commit_roots_init(&roots, COMMIT_STATE, 0);
    for (uint32_t i = 0; i < job->tape->state_count; i++) {
        const struct tensor *tensor = &job->tape->tensors[job->tape->states[i].before];
        uint8_t *element = malloc(commit_tensor_size(tensor));

        job_first_state(element, job, job->tape->states[i].before);
        commit_tensor_root(&digest, COMMIT_TENSOR, tensor, element, 1);
        assert_int_equal(commit_roots_add(&roots, &digest), STATUS_OK);
        free(element);
    }
    commit_roots_end(&roots, &digest);
    assert_memory_equal(bytes.data + 184, digest.bytes, DIGEST_SIZE);
    buffer_release(&bytes);
    job_free(job);
}

static void test_every_changed_byte_is_refused(void **state)
{
    struct buffer bytes = small_file();

    (void)state;
    assert_int_equal(parse(bytes.data, bytes.size), STATUS_OK);
    for (size_t at = 0; at < bytes.size; at++) {
        uint8_t kept = bytes.data[at];
        /* A change of a number in the header makes another job, not a damaged one. */
        bool is_term = (at >= 12 && at < 44) || (at >= 184 && at < JOB_HEADER_SIZE);

        bytes.data[at] ^= (uint8_t)(1 << at % 8);
        if (!is_term) {
            assert_int_not_equal(parse(bytes.data, bytes.size), STATUS_OK);
        }
        bytes.data[at] = kept;
    }
    buffer_release(&bytes);
}

/* A changed term gives another id: the change deceives nobody who knows the id. */
static void test_every_changed_bit_of_the_header_changes_the_id(void **state)
{
    struct buffer bytes = small_file();
    struct digest id;

    (void)state;
    commit_job_id(&id, bytes.data, JOB_HEADER_SIZE);
    for (size_t bit = 0; bit < JOB_HEADER_SIZE * 8; bit++) {
        struct digest other;

        bytes.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        commit_job_id(&other, bytes.data, JOB_HEADER_SIZE);
        assert_false(digest_equal(&id, &other));
        bytes.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    buffer_release(&bytes);
}

static void test_every_truncation_and_extension_is_refused(void **state)
{
    struct buffer bytes = small_file();

    (void)state;
    for (size_t size = 0; size < bytes.size; size++) {
        assert_int_not_equal(parse(bytes.data, size), STATUS_OK);
    }
    /* With a header that commits to the cut body the readers themselves must find the end. */
    for (size_t size = JOB_HEADER_SIZE; size < bytes.size; size += 7) {
        uint8_t *copy = malloc(size);

        memcpy(copy, bytes.data, size);
        mend(copy, size);
        assert_int_not_equal(parse(copy, size), STATUS_OK);
        free(copy);
    }
    buffer_add_u8(&bytes, 0);
    mend(bytes.data, bytes.size);
    assert_int_not_equal(parse(bytes.data, bytes.size), STATUS_OK);
    buffer_release(&bytes);
}

static enum status parse_mended(const struct buffer *bytes, size_t at, uint8_t value)
{
    uint8_t kept = bytes->data[at];
    enum status status;

    bytes->data[at] = value;
    mend(bytes->data, bytes->size);
    status = parse(bytes->data, bytes->size);
    bytes->data[at] = kept;
    mend(bytes->data, bytes->size);
    return status;
}

/* The last bytes: given (1), seed (8). */
static void test_state_that_is_given_has_no_seed(void **state)
{
    struct buffer bytes = small_file();
    size_t at = bytes.size - 9;

    (void)state;
    assert_int_equal(parse_mended(&bytes, at, 2), STATUS_BAD_FORMAT); /* given: 2 */
    assert_int_equal(parse_mended(&bytes, at, 1), STATUS_BAD_FORMAT); /* and drawn */
    assert_int_equal(parse_mended(&bytes, at + 8, 99), STATUS_OK);    /* any seed is good */
    buffer_release(&bytes);
}

/* The file of the small job with these texts, bytes and all, as a forger would write them. */
static enum status parse_with_texts(const char *texts, size_t size)
{
    struct buffer bytes = small_file();
    enum status status;

    buffer_add(&bytes, texts, size);
    mend(bytes.data, bytes.size);
    status = parse(bytes.data, bytes.size);
    buffer_release(&bytes);
    return status;
}

static void test_titles_are_bound_and_read_back(void **state)
{
    struct small_job_options options;
    struct buffer bytes;
    struct job *again = NULL;
    struct digest without;
    struct job *job;

    (void)state;
    small_job_defaults(&options);
    job = small_job_new(&options);
    without = job->id;
    memset(job->title, 'x', JOB_TITLE_MAX);
    (void)snprintf(job->model, sizeof(job->model), "gpt2 <b>&\"'");
    assert_int_equal(job_complete(job, NULL), STATUS_OK);
    assert_false(digest_equal(&job->id, &without));
    bytes = encode(job);
    assert_int_equal(job_parse(&again, bytes.data, bytes.size, NULL), STATUS_OK);
    assert_string_equal(again->title, job->title);
    assert_string_equal(again->model, job->model);
    assert_true(digest_equal(&again->id, &job->id));
    job->title[3] = '\x1b';
    assert_int_equal(job_complete(job, NULL), STATUS_BAD_FORMAT);
    buffer_release(&bytes);
    job_free(job);
    job_free(again);
}

static void test_false_titles_are_refused(void **state)
{
    static const struct {
        const char *texts;
        size_t size;
    } wrong[] = {{"\0\0", 2},    {"\1a", 2},      {"\3ab", 3},        {"\1a\1", 3},
                 {"\1a\0\0", 4}, {"\2a\n\0", 4},  {"\2 a\0", 4},      {"\2a \0", 4},
                 {"\2a\0\0", 4}, {"\1\177\0", 3}, {"\0\2\303\251", 4}};
    char large[90];

    (void)state;
    assert_int_equal(parse_with_texts("\1a\0", 3), STATUS_OK);
    assert_int_equal(parse_with_texts("\0\3a b", 5), STATUS_OK);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(parse_with_texts(wrong[i].texts, wrong[i].size), STATUS_BAD_FORMAT);
    }
    memset(large, 'a', sizeof(large));
    large[0] = JOB_TITLE_MAX + 1;
    large[JOB_TITLE_MAX + 2] = '\0';
    assert_int_equal(parse_with_texts(large, JOB_TITLE_MAX + 3), STATUS_BAD_FORMAT);
}

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_notes_are_bound_and_read_back(void **state)
{
    static const char *const good[] = {
        "first-step f32 0.0001 0.01 0\n", "at 0 a\nat 1 b.c\nend 1\n",
        "first-step f64 0 1e-06 2\nend 2\n", "first-step f32 0 0 0\nfrom a.b " HASH "\nat 0 a\n",
        "from a " HASH "\nfrom b " HASH "\n"};
    static const char *const wrong[] = {"at 0 a",
                                        "at 0\n",
                                        "at 0 \n",
                                        "at 00 a\n",
                                        "at 1 a\nat 0 b\n",
                                        "at 4000000000 a\n",
                                        "at 0 a b\n",
                                        "end 0 a\n",
                                        "\n",
                                        "first\n",
                                        "first-step f16 0 0 0\n",
                                        "first-step f32 0 0\n",
                                        "first-step f32 0 0 nan\n",
                                        "first-step f32 0 0 1e-6\n",
                                        "first-step f32 0 0 -1\n",
                                        "at 0 a\nfirst-step f32 0 0 0\n",
                                        "at 0 \303\251\n",
                                        "from a " HASH "0\n",
                                        "from " HASH "\n",
                                        "from a 0x" HASH "\n",
                                        "from a A" HASH "\n",
                                        "from a b " HASH "\n",
                                        "at 1 a\nfrom a " HASH "\n"};
    struct small_job_options options;
    struct job *again = NULL;
    struct buffer bytes;
    struct digest last;
    struct job *job;
    char texts[256];

    (void)state;
    small_job_defaults(&options);
    job = small_job_new(&options);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        last = job->id;
        free(job->notes);
        job->notes = strdup(good[i]);
        assert_int_equal(job_complete(job, NULL), STATUS_OK);
        assert_false(digest_equal(&job->id, &last));
        bytes = encode(job);
        assert_int_equal(job_parse(&again, bytes.data, bytes.size, NULL), STATUS_OK);
        assert_string_equal(again->notes, good[i]);
        assert_true(digest_equal(&again->id, &job->id));
        buffer_release(&bytes);
        job_free(again);
    }
    job_free(job);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const size_t size = strlen(wrong[i]);

        memcpy(texts, "\0\0\0\0\0", 5);
        texts[5] = (char)size;
        memcpy(texts + 6, wrong[i], size);
        assert_int_equal(parse_with_texts(texts, size + 6), STATUS_BAD_FORMAT);
    }
    assert_int_equal(parse_with_texts("\0\0\0\0\0\0", 6), STATUS_BAD_FORMAT);
    assert_int_equal(parse_with_texts("\0\0\0\0\0\7end 0\n", 12), STATUS_BAD_FORMAT);
    assert_int_equal(parse_with_texts("\0\0\0\0\0\6end 0\n", 12), STATUS_OK);
}

static void test_jobs_of_the_first_version_are_refused_by_a_sentence(void **state)
{
    struct buffer bytes = small_file();
    struct job *job = NULL;
    struct error error;

    (void)state;
    error_init(&error);
    endian_store_be32(bytes.data + 8, 1);
    assert_int_equal(job_parse(&job, bytes.data, bytes.size, &error), STATUS_REFUSED);
    assert_non_null(strstr(error.text, "version 1 of the rules"));
    bytes.data[7] = 1;
    assert_int_equal(job_parse(&job, bytes.data, bytes.size, &error), STATUS_REFUSED);
    assert_non_null(strstr(error.text, "version 1 of the format"));
    buffer_release(&bytes);
}

static void test_constants_that_are_not_finite_are_refused(void **state)
{
    struct small_job_options options;

    (void)state;
    small_job_defaults(&options);

    struct job *job = small_job_new(&options);
    uint32_t ids[8];
    uint32_t count = job_tensors(ids, 8, job, ROLE_CONSTANT);
    struct buffer bytes;

    for (uint32_t i = 0; i < count; i++) {
        if (job->tape->tensors[ids[i]].dtype == DTYPE_F32) {
            endian_store_le32(job->constants[i], UINT32_C(0x7fc00001));
        }
    }
    bytes = encode(job);
    mend(bytes.data, bytes.size);
    assert_int_equal(parse(bytes.data, bytes.size), STATUS_BAD_FORMAT);
    buffer_release(&bytes);
    job_free(job);
}

static void test_impossible_terms_are_refused(void **state)
{
    static const struct {
        size_t at;
        uint64_t value;
    } terms[] = {{12, 0}, {12, UINT64_C(1) << 32},   {12, UINT64_MAX},
                 {20, 0}, {20, SMALL_JOB_STEPS + 1}, {20, UINT64_MAX}};
    struct buffer bytes = small_file();

    (void)state;
    for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++) {
        uint64_t kept = endian_load_be64(bytes.data + terms[i].at);

        endian_store_be64(bytes.data + terms[i].at, terms[i].value);
        assert_int_equal(parse(bytes.data, bytes.size), STATUS_BAD_FORMAT);
        endian_store_be64(bytes.data + terms[i].at, kept);
    }
    endian_store_be32(bytes.data + 8, RULES_VERSION + 1);
    assert_int_equal(parse(bytes.data, bytes.size), STATUS_REFUSED);
    buffer_release(&bytes);
}

/* A forger changes numbers in the body that decide sizes, and any other byte. */
static void mutate(uint8_t *bytes, size_t *size, uint64_t *seed)
{
    size_t body = *size - JOB_HEADER_SIZE;
    size_t at = JOB_HEADER_SIZE + test_random_below(seed, body);
    size_t other = JOB_HEADER_SIZE + test_random_below(seed, body);
    size_t length = 1 + test_random_below(seed, 40);

    length = length < *size - at ? length : *size - at;
    length = length < *size - other ? length : *size - other;
    switch (test_random_below(seed, 7)) {
    case 0:
        bytes[at] ^= (uint8_t)(1 << test_random_below(seed, 8));
        break;
    case 1:
        bytes[at] = (uint8_t)test_random(seed);
        break;
    case 2:
        memmove(bytes + at, bytes + other, length);
        break;
    case 3:
        memset(bytes + at, test_random_below(seed, 2) == 0 ? 0 : 0xff, length);
        break;
    case 4:
        endian_store_be64(bytes + JOB_HEADER_SIZE, test_random_below(seed, 2 * body));
        break;
    case 5:
        bytes[JOB_HEADER_SIZE + 8 + 8 + test_random_below(seed, 16)] ^= 1; /* counts of the tape */
        break;
    default:
        memmove(bytes + at, bytes + at + length, *size - at - length);
        *size -= length;
        break;
    }
}

/* A forged body that is accepted is a whole job of its own: it writes back to the same bytes. */
static void check_canonical(const uint8_t *bytes, size_t size, const struct digest *id)
{
    struct job *job = NULL;

    if (job_parse(&job, bytes, size, NULL) == STATUS_OK) {
        struct buffer again = encode(job);

        assert_int_equal(again.size, size);
        assert_memory_equal(again.data, bytes, size);
        assert_false(digest_equal(&job->id, id));
        buffer_release(&again);
        job_free(job);
    }
}

static void test_mutants_are_never_the_job(void **state)
{
    uint64_t count = test_share(MUTANTS_FULL, MUTANTS);
    struct buffer bytes = small_file();
    uint8_t *mutant = malloc(bytes.size + 64);
    struct digest id;
    uint64_t seed = 11;

    (void)state;
    commit_job_id(&id, bytes.data, JOB_HEADER_SIZE);
    for (uint64_t i = 0; i < count; i++) {
        size_t size = bytes.size;

        memcpy(mutant, bytes.data, size);
        for (uint64_t changes = 1 + test_random_below(&seed, 3); changes > 0; changes--) {
            mutate(mutant, &size, &seed);
        }
        if (size == bytes.size && memcmp(mutant, bytes.data, size) == 0) {
            continue;
        }
        assert_int_not_equal(parse(mutant, size), STATUS_OK);
        mend(mutant, size);
        check_canonical(mutant, size, &id);
    }
    free(mutant);
    buffer_release(&bytes);
}

static void test_tape_and_constants_make_the_same_program_again(void **state)
{
    struct small_job_options options;
    struct tape *tape = NULL;
    void **constants = NULL;
    uint32_t count = 0;
    struct job *again = NULL;
    struct error error;

    (void)state;
    error_init(&error);
    small_job_defaults(&options);

    struct job *job = small_job_new(&options);
    const char *tape_path = small_path("program.tape");
    const char *constants_path = small_path("constants.safetensors");
    struct job_terms terms = {.steps = job->steps,
                              .segment_length = job->segment_length,
                              .data_roots = job->data_roots,
                              .data_count = job->data_count,
                              .first_state_given = true,
                              .first_state_root = job->first_state_root};

    assert_int_equal(tape_file_write(tape_path, job->tape, &error), STATUS_OK);
    assert_int_equal(tape_file_write(tape_path, job->tape, &error), STATUS_REFUSED);
    assert_int_equal(tape_file_write_constants(constants_path, job->tape, job->constants, &error),
                     STATUS_OK);
    assert_int_equal(tape_file_read(&tape, tape_path, &error), STATUS_OK);
    assert_int_equal(tape_file_constants(&constants, &count, tape, NULL, &error), STATUS_USAGE);
    assert_int_equal(tape_file_constants(&constants, &count, tape, constants_path, &error),
                     STATUS_OK);
    assert_int_equal(job_from_tape(&again, tape, constants, count, &terms, &error), STATUS_OK);
    /* Program, constants, data and first state are the same; only the source of the state
     * differs. */
    assert_memory_equal(job->header + 8, again->header + 8, 80);
    assert_memory_equal(job->header + 120, again->header + 120, 96);
    assert_false(digest_equal(&job->id, &again->id));
    assert_int_equal(job_write(again, small_path("again.job"), &error), STATUS_OK);
    assert_int_equal(job_write(again, small_path("again.job"), &error), STATUS_REFUSED);
    job_free(again);
    assert_int_equal(job_read(&again, small_path("again.job"), &error), STATUS_OK);
    assert_true(again->first_state_given);
    job_free(again);
    job_free(job);
}

static void test_tape_draws_its_first_state(void **state)
{
    struct small_job_options options;
    struct tape *tape = NULL;
    struct job_terms terms = {.steps = 1, .segment_length = 1};
    struct job *again = NULL;
    struct error error;
    void **constants;

    (void)state;
    error_init(&error);
    small_job_defaults(&options);

    struct job *job = small_job_new(&options);
    uint64_t size = tape_encoded_size(job->tape);
    uint8_t *encoded = malloc(size);

    tape_encode(encoded, job->tape);
    assert_int_equal(tape_parse(&tape, encoded, size, &error), STATUS_OK);
    constants = calloc(1, sizeof(*constants));
    assert_int_equal(job_from_tape(&again, tape, constants, 0, &terms, &error), STATUS_USAGE);
    assert_int_equal(tape_parse(&tape, encoded, size, &error), STATUS_OK);
    constants = calloc(job->constant_count, sizeof(*constants));
    for (uint32_t i = 0, id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_CONSTANT) {
            constants[i++] = calloc(1, commit_tensor_size(&tape->tensors[id]));
        }
    }
    terms.data_roots = job->data_roots;
    terms.data_count = 1;
    terms.seed = job->seed;
    assert_int_equal(job_from_tape(&again, tape, constants, job->constant_count, &terms, &error),
                     STATUS_OK);
    assert_true(digest_equal(&job->first_state_root, &again->first_state_root));
    free(encoded);
    job_free(again);
    job_free(job);
}

static void test_files_that_are_not_jobs_are_refused(void **state)
{
    struct job *job = NULL;
    struct error error;

    (void)state;
    error_init(&error);
    assert_int_equal(job_read(&job, small_path("none"), &error), STATUS_NOT_FOUND);
    assert_int_equal(job_read(&job, test_temp_dir(), &error), STATUS_REFUSED);
    assert_int_equal(job_read(&job, "fixtures/text/village.u8", &error), STATUS_BAD_FORMAT);
    assert_non_null(strstr(error.text, "village.u8"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs_of_all_models_are_read_back),
        cmocka_unit_test(test_header_says_what_the_format_says),
        cmocka_unit_test(test_every_changed_byte_is_refused),
        cmocka_unit_test(test_every_changed_bit_of_the_header_changes_the_id),
        cmocka_unit_test(test_every_truncation_and_extension_is_refused),
        cmocka_unit_test(test_state_that_is_given_has_no_seed),
        cmocka_unit_test(test_titles_are_bound_and_read_back),
        cmocka_unit_test(test_false_titles_are_refused),
        cmocka_unit_test(test_notes_are_bound_and_read_back),
        cmocka_unit_test(test_jobs_of_the_first_version_are_refused_by_a_sentence),
        cmocka_unit_test(test_constants_that_are_not_finite_are_refused),
        cmocka_unit_test(test_impossible_terms_are_refused),
        cmocka_unit_test(test_mutants_are_never_the_job),
        cmocka_unit_test(test_tape_and_constants_make_the_same_program_again),
        cmocka_unit_test(test_tape_draws_its_first_state),
        cmocka_unit_test(test_files_that_are_not_jobs_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
