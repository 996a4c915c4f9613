/*
 * Goal: a first state that is given puts every parameter in its place, or is refused.
 *
 * Method: files as Hugging Face writes GPT-2 (names with and without "transformer.", masks and the
 * tied head beside them), our own checkpoints, and files of almost this model: parameters missing,
 * renamed, of another type or shape, layers too many, NaNs. Keys in files, good and bad.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/endian.h"
#include "proofs/bundle/bundle.h"
#include "proofs/commit/state_root.h"
#include "proofs/format/key_file.h"
#include "proofs/job/first_state.h"
#include "tests/support/numeric/small_job.h"
#include "tests/support/test.h"

#define ENTRIES_MAX 256

/* A file in the making. */
struct draft {
    struct safetensors_entry entries[ENTRIES_MAX];
    void *bytes[ENTRIES_MAX];
    uint32_t count;
};

static bool is_moment(const char *name)
{
    return strncmp(name, "m.", 2) == 0 || strncmp(name, "v.", 2) == 0 || strcmp(name, "step") == 0;
}

static void add(struct draft *draft, const char *name, enum element element, uint32_t rank,
                const uint64_t *dims)
{
    struct safetensors_entry *entry = &draft->entries[draft->count];
    uint64_t size = 0;
    uint64_t seed = draft->count;

    assert_true(draft->count < ENTRIES_MAX);
    memset(entry, 0, sizeof(*entry));
    (void)snprintf(entry->name, sizeof(entry->name), "%s", name);
    entry->element = element;
    entry->rank = rank;
    memcpy(entry->dims, dims, rank * sizeof(*dims));
    assert_true(element_array_size(&size, element, dims, rank));
    draft->bytes[draft->count] = malloc(size);
    test_random_fill(&seed, draft->bytes[draft->count], size);
    for (uint64_t i = 0; element == ELEMENT_F32 && i < size / 4; i++) {
        ((uint8_t *)draft->bytes[draft->count])[4 * i + 3] &= 0x3f; /* finite */
    }
    draft->count++;
}

/* Every parameter of the tape, with prefix before its name. */
static void draft_parameters(struct draft *draft, const struct tape *tape, const char *prefix)
{
    memset(draft, 0, sizeof(*draft));
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const struct tensor *tensor = &tape->tensors[tape->states[i].before];
        char name[2 * TENSOR_NAME_MAX];

        (void)snprintf(name, sizeof(name), "%s%s", prefix, tensor->name);
        if (!is_moment(tensor->name)) {
            add(draft, name, ELEMENT_F32, tensor->rank, tensor->dims);
        }
    }
}

static const char *write_draft(const struct draft *draft, const char *name)
{
    const char *path = small_path(name);
    struct draft *copy = malloc(sizeof(*copy));
    struct safetensors_writer writer;
    struct error error;

    error_init(&error);
    *copy = *draft;
    if (safetensors_writer_open(&writer, &error, path, copy->entries, copy->count, NULL, 0) !=
        STATUS_OK) {
        fail_msg("%s", error.text);
    }
    for (uint32_t i = 0; i < copy->count; i++) {
        assert_int_equal(
            safetensors_writer_add(&writer, NULL, copy->bytes[i], copy->entries[i].size),
            STATUS_OK);
    }
    assert_int_equal(safetensors_writer_keep(&writer, NULL), STATUS_OK);
    free(copy);
    return path;
}

static void draft_release(struct draft *draft)
{
    for (uint32_t i = 0; i < draft->count; i++) {
        free(draft->bytes[i]);
    }
}

static enum status root_of(struct digest *root, const struct tape *tape, const char *path,
                           struct error *error)
{
    struct first_state first = {0};
    enum status status;

    TRY_OUT(first_state_open(&first, tape, path, error));
    TRY_OUT(first_state_root(root, &first, error));
out:
    first_state_close(&first);
    return status;
}

static struct job *small_job(const struct digest *first_state)
{
    struct small_job_options options;

    small_job_defaults(&options);
    options.first_state = first_state;
    return small_job_new(&options);
}

static void test_parameters_are_found_under_both_names(void **state)
{
    static const uint64_t mask[] = {1, 1, 4, 4};
    static const uint64_t one[] = {1};
    struct job *job = small_job(NULL);
    struct draft plain;
    struct draft prefixed;
    struct digest roots[3];

    (void)state;
    draft_parameters(&plain, job->tape, "");
    draft_parameters(&prefixed, job->tape, "transformer.");
    assert_int_equal(root_of(&roots[0], job->tape, write_draft(&plain, "plain"), NULL), STATUS_OK);
    assert_int_equal(root_of(&roots[1], job->tape, write_draft(&prefixed, "prefixed"), NULL),
                     STATUS_OK);
    assert_true(digest_equal(&roots[0], &roots[1]));
    /* What other programs save beside them. */
    add(&prefixed, "lm_head.weight", ELEMENT_F32, 2, plain.entries[0].dims);
    memcpy(prefixed.bytes[prefixed.count - 1], prefixed.bytes[0],
           prefixed.entries[0].dims[0] * prefixed.entries[0].dims[1] * 4); /* the head is tied */
    add(&prefixed, "transformer.h.0.attn.bias", ELEMENT_F32, 4, mask);
    add(&prefixed, "transformer.h.0.attn.masked_bias", ELEMENT_F32, 1, one);
    assert_int_equal(root_of(&roots[2], job->tape, write_draft(&prefixed, "more"), NULL),
                     STATUS_OK);
    assert_true(digest_equal(&roots[0], &roots[2]));
    add(&plain, "lm_head.weight", ELEMENT_F32, 2, plain.entries[0].dims); /* another head */
    assert_int_equal(root_of(&roots[2], job->tape, write_draft(&plain, "untied"), NULL),
                     STATUS_REFUSED);
    draft_release(&plain);
    draft_release(&prefixed);
    job_free(job);
}

static void test_root_is_that_of_parameters_and_zeros(void **state)
{
    struct job *job = small_job(NULL);
    const struct tape *tape = job->tape;
    struct draft draft;
    struct commit_roots roots;
    struct digest expected;
    struct digest root;
    uint32_t at = 0;

    (void)state;
    draft_parameters(&draft, tape, "");
    commit_roots_init(&roots, COMMIT_STATE, 0);
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const struct tensor *tensor = &tape->tensors[tape->states[i].before];
        void *zeros = calloc(1, commit_tensor_size(tensor));

        commit_tensor_root(&root, COMMIT_TENSOR, tensor,
                           is_moment(tensor->name) ? zeros : draft.bytes[at++], 1);
        assert_int_equal(commit_roots_add(&roots, &root), STATUS_OK);
        free(zeros);
    }
    commit_roots_end(&roots, &expected);
    assert_int_equal(root_of(&root, tape, write_draft(&draft, "zeros"), NULL), STATUS_OK);
    assert_true(digest_equal(&root, &expected));
    draft_release(&draft);
    job_free(job);
}

static void check_refused(struct draft *draft, const struct tape *tape, const char *named)
{
    struct error error;
    struct digest root;

    error_init(&error);
    if (root_of(&root, tape, write_draft(draft, "refused"), &error) != STATUS_BAD_FORMAT ||
        strstr(error.text, named) == NULL) {
        fail_msg("%s: '%s'", named, error.text);
    }
}

static void test_states_of_almost_this_model_are_refused(void **state)
{
    struct job *job = small_job(NULL);
    struct draft draft;
    struct safetensors_entry kept;
    static const uint64_t dims[] = {8, 24};

    (void)state;
    draft_parameters(&draft, job->tape, "");
    for (uint32_t i = 0; i < draft.count; i++) {
        kept = draft.entries[i];
        /* Each parameter is missing once: it gets a name that is ignored. */
        (void)snprintf(draft.entries[i].name, sizeof(kept.name), "h.9.attn.bias");
        check_refused(&draft, job->tape, kept.name);
        draft.entries[i] = kept;
        /* Another shape of the same size. */
        draft.entries[i].rank = 3;
        draft.entries[i].dims[2] = 1;
        draft.entries[i].dims[1] = kept.rank == 1 ? 1 : kept.dims[1];
        check_refused(&draft, job->tape, kept.name);
        draft.entries[i] = kept;
        draft.entries[i].element = ELEMENT_I32;
        check_refused(&draft, job->tape, kept.name);
        draft.entries[i] = kept;
        ((uint8_t *)draft.bytes[i])[3] = 0x7f; /* a NaN or an infinity, with any mantissa */
        ((uint8_t *)draft.bytes[i])[2] |= 0x80;
        check_refused(&draft, job->tape, kept.name);
        ((uint8_t *)draft.bytes[i])[3] = 0;
    }
    add(&draft, "h.1.attn.c_attn.weight", ELEMENT_F32, 2, dims);
    check_refused(&draft, job->tape, "h.1.attn.c_attn.weight");
    draft_release(&draft);
    job_free(job);
}

static void test_both_names_at_once_are_refused(void **state)
{
    struct job *job = small_job(NULL);
    struct draft draft;

    (void)state;
    draft_parameters(&draft, job->tape, "");
    add(&draft, "transformer.wte.weight", ELEMENT_F32, 2, draft.entries[0].dims);
    check_refused(&draft, job->tape, "transformer.wte.weight");
    draft_release(&draft);
    job_free(job);
}

static void test_given_state_is_kept_as_the_checkpoint_before_step_0(void **state)
{
    struct job *job = small_job(NULL);
    struct draft draft;
    struct bundle *bundle = NULL;
    struct digest root;
    struct digest found;
    struct run run;
    const char *path;
    uint64_t step = 9;

    (void)state;
    draft_parameters(&draft, job->tape, "transformer.");
    path = write_draft(&draft, "given");
    assert_int_equal(root_of(&root, job->tape, path, NULL), STATUS_OK);
    assert_int_equal(bundle_create(&bundle, small_path("drawn"), job, NULL), STATUS_OK);
    assert_int_equal(bundle_give_first_state(bundle, path, NULL), STATUS_USAGE);
    bundle_close(bundle);

    assert_int_equal(bundle_create(&bundle, small_path("given run"), small_job(&root), NULL),
                     STATUS_OK);
    small_run_open(&run, bundle_job(bundle), isa_best(), 1, false);
    assert_int_equal(bundle_restore(&step, bundle, run.machine, 20, NULL), STATUS_NOT_FOUND);
    uint8_t *second = draft.bytes[1];
    assert_non_null(second);
    if (second != NULL) { /* the analyzer does not infer this from the line above */
        second[0] ^= 1;
    }
    assert_int_equal(bundle_give_first_state(bundle, write_draft(&draft, "other"), NULL),
                     STATUS_REFUSED);
    assert_int_equal(bundle_restore(&step, bundle, run.machine, 20, NULL), STATUS_NOT_FOUND);
    assert_int_equal(bundle_give_first_state(bundle, path, NULL), STATUS_OK);
    assert_int_equal(bundle_restore(&step, bundle, run.machine, 20, NULL), STATUS_OK);
    assert_int_equal(step, 0);
    assert_int_equal(state_root_of(&found, run.machine, NULL), STATUS_OK);
    assert_true(digest_equal(&found, &root));
    /* Pruning keeps this checkpoint: the bundle has the only copy. */
    assert_int_equal(bundle_set_device(bundle, "here", NULL), STATUS_OK);
    small_bundle_fill(bundle, &run, 0, 20);
    assert_int_equal(bundle_checkpoint_prune(bundle, 1, 0, NULL), STATUS_OK);
    assert_int_equal(bundle_checkpoint_find(&step, bundle, 0, NULL), STATUS_OK);
    assert_int_equal(step, 0);
    assert_int_equal(bundle_checkpoint_find(&step, bundle, 1, NULL), STATUS_OK);
    assert_int_equal(step, 20);
    run_close(&run);
    draft_release(&draft);
    bundle_close(bundle);
}

/* The end of one run is the beginning of another, with its moments and its step number. */
static void test_checkpoint_can_be_the_first_state_of_another_job(void **state)
{
    struct bundle *bundle = small_bundle_new(small_path("ends"), small_job(NULL), NULL, 20);
    struct digest root;
    struct digest wanted;
    char path[FILE_PATH_MAX];

    (void)state;
    assert_int_equal(bundle_checkpoint_path(path, bundle, 20, NULL), STATUS_OK);
    assert_int_equal(root_of(&root, bundle_job(bundle)->tape, path, NULL), STATUS_OK);
    assert_int_equal(bundle_state_root(&wanted, bundle, 20, NULL), STATUS_OK);
    assert_true(digest_equal(&root, &wanted));
    bundle_close(bundle);
}

/* ---- files of other kinds, and what is said of shapes -------------------- */

static void test_a_file_of_another_kind_is_named_and_can_be_converted(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *what;
        const char *advice;
    } kinds[] = {
        {"PK\003\004\0\0\010\010\0\0\0\0\0\0\0\0\0\0", 18, "PyTorch", "torch.load"},
        {"PK\003\004\024\0\0\0\0\0\0\0\0\0\0\0\0\0", 18, "PyTorch", "torch.load"},
        {"\200\002}q\0X\010\010\0\0\0\0weights", 19, "pickle", "torch.load"},
        {"GGUF\003\0\0\0\043\001\0\0\0\0\0\0", 16, "GGUF", ".safetensors"},
        {"\211HDF\r\n\032\n\0\0\0\0\0\010\010\0", 16, "HDF5", ".safetensors"},
        {"\223NUMPY\001\001v\0{'descr':", 19, ".npy", ".safetensors"},
        {"version https://git-lfs", 23, "Git LFS", ".safetensors"},
        {"{\"metadata\": {\"total_size\": 1}}", 32, "JSON", ".safetensors"},
    };
    struct job *job = small_job(NULL);
    const char *path = small_path("weights.bin");

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct digest root;
        struct error error;

        error_init(&error);
        assert_int_equal(file_write(path, NULL, kinds[i].bytes, kinds[i].size, 0600), STATUS_OK);
        assert_int_equal(root_of(&root, job->tape, path, &error), STATUS_BAD_FORMAT);
        if (strstr(error.text, kinds[i].what) == NULL || strstr(error.text, "header") != NULL ||
            strstr(error.advice, kinds[i].advice) == NULL ||
            strstr(error.advice, "safetensors") == NULL) {
            fail_msg("%s: '%s', '%s'", kinds[i].what, error.text, error.advice);
        }
    }
    job_free(job);
}

static void test_a_shape_that_does_not_fit_is_shown_beside_the_models(void **state)
{
    struct job *job = small_job(NULL);
    struct draft draft;
    char found[64];
    char wanted[64];
    uint32_t at = 0;
    struct safetensors_entry *entry;
    struct error error;
    struct digest root;

    (void)state;
    draft_parameters(&draft, job->tape, "");
    while (draft.entries[at].rank != 2 || draft.entries[at].dims[0] == draft.entries[at].dims[1]) {
        at++;
    }
    entry = &draft.entries[at];
    (void)snprintf(wanted, sizeof(wanted), "wants F32 [%d,%d]", (int)entry->dims[0],
                   (int)entry->dims[1]);
    (void)snprintf(found, sizeof(found), "is F32 [%d,%d]", (int)entry->dims[1],
                   (int)entry->dims[0]);
    entry->dims[0] ^= entry->dims[1];
    entry->dims[1] ^= entry->dims[0];
    entry->dims[0] ^= entry->dims[1];
    check_refused(&draft, job->tape, found);
    check_refused(&draft, job->tape, wanted);
    error_init(&error);
    assert_int_equal(root_of(&root, job->tape, write_draft(&draft, "turned"), &error),
                     STATUS_BAD_FORMAT);
    assert_non_null(strstr(error.advice, "transpose"));
    draft_release(&draft);
    job_free(job);
}

/* ---- keys in files ------------------------------------------------------ */

static enum status read_text(struct encryption_key *key, const char *text, mode_t mode)
{
    const char *path = small_path("text.key");

    assert_int_equal(file_write(path, NULL, text, strlen(text), mode), STATUS_OK);
    return key_file_read(key, path, NULL);
}

static void test_keys_are_read_back_and_kept_from_others(void **state)
{
    static const char good[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eFF";
    const char *path = small_path("one.key");
    char text[128];
    struct encryption_key key;
    struct encryption_key again;
    struct stat about;

    (void)state;
    assert_int_equal(read_text(&key, good, 0600), STATUS_OK);
    for (int i = 0; i < 31; i++) {
        assert_int_equal(key.bytes[i], i);
    }
    assert_int_equal(key.bytes[31], 0xff);
    (void)snprintf(text, sizeof(text), "%s\n", good);
    assert_int_equal(read_text(&again, text, 0400), STATUS_OK);
    assert_memory_equal(&key, &again, sizeof(key));
    assert_int_equal(key_file_write(path, &key, NULL), STATUS_OK);
    assert_int_equal(key_file_write(path, &key, NULL), STATUS_REFUSED);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_int_equal(key_file_read(&again, path, NULL), STATUS_OK);
    assert_memory_equal(&key, &again, sizeof(key));
    assert_int_equal(read_text(&key, good, 0640), STATUS_REFUSED);
    assert_int_equal(read_text(&key, good, 0604), STATUS_REFUSED);
    assert_int_equal(key_file_read(&key, small_path("no.key"), NULL), STATUS_NOT_FOUND);
    assert_int_equal(read_text(&key, "", 0600), STATUS_BAD_FORMAT);
    assert_int_equal(read_text(&key, good + 1, 0600), STATUS_BAD_FORMAT);
    (void)snprintf(text, sizeof(text), "%s ", good);
    assert_int_equal(read_text(&key, text, 0600), STATUS_BAD_FORMAT);
    (void)snprintf(text, sizeof(text), "%s\n\n", good);
    assert_int_equal(read_text(&key, text, 0600), STATUS_BAD_FORMAT);
    for (size_t at = 0; at < 64; at++) {
        static const char wrong[] = "/:@G`gx \n";

        for (size_t i = 0; i < sizeof(wrong) - 1; i++) {
            (void)snprintf(text, sizeof(text), "%s", good);
            text[at] = wrong[i];
            assert_int_equal(read_text(&key, text, 0600), STATUS_BAD_FORMAT);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters_are_found_under_both_names),
        cmocka_unit_test(test_root_is_that_of_parameters_and_zeros),
        cmocka_unit_test(test_states_of_almost_this_model_are_refused),
        cmocka_unit_test(test_both_names_at_once_are_refused),
        cmocka_unit_test(test_given_state_is_kept_as_the_checkpoint_before_step_0),
        cmocka_unit_test(test_checkpoint_can_be_the_first_state_of_another_job),
        cmocka_unit_test(test_a_file_of_another_kind_is_named_and_can_be_converted),
        cmocka_unit_test(test_a_shape_that_does_not_fit_is_shown_beside_the_models),
        cmocka_unit_test(test_keys_are_read_back_and_kept_from_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
