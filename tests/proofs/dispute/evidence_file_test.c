/*
 * Goal: an evidence file says what it was given, is judged as its parts are, and any other bytes
 * are refused or are another file.
 * Method: files about an exhibit, with the states under segments made for the purpose; every byte
 * changed, every truncation, every wrong place. "evidence_file_test write FOLDER" writes the corpus
 * of the fuzz target instead.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/io/file.h"
#include "engine/rules/rule.h"
#include "proofs/dispute/evidence_file.h"
#include "tests/support/dispute/exhibit.h"
#include "tests/support/test.h"

#define STEPS   10
#define SEGMENT 4

/* A header with the roots of the exhibit. */
static void make_header(uint8_t header[JOB_HEADER_SIZE], const struct exhibit *exhibit)
{
    memset(header, 0, JOB_HEADER_SIZE);
    memcpy(header, "LSJOB\0\0\2", 8);
    endian_store_be32(header + 8, RULES_VERSION);
    endian_store_be64(header + 12, STEPS);
    endian_store_be64(header + 20, SEGMENT);
    memcpy(header + 56, exhibit->context.program.bytes, DIGEST_SIZE);
    memcpy(header + 120, exhibit->context.constants.bytes, DIGEST_SIZE);
    memcpy(header + 152, exhibit->context.data.bytes, DIGEST_SIZE);
    memcpy(header + 184, exhibit->context.before.bytes, DIGEST_SIZE);
}

/* The segment that holds this state after `step`; the others are anything. */
static void make_place(struct evidence_place *place, const struct digest *state,
                       const struct digest *before, uint64_t step)
{
    struct digest states[SEGMENT];
    struct digest hashes[SEGMENT];
    struct merkle_leaves leaves;
    uint64_t first = step - step % SEGMENT;
    uint64_t count = STEPS - first < SEGMENT ? STEPS - first : SEGMENT;

    for (uint64_t i = 0; i < count; i++) {
        memset(states[i].bytes, (int)(first + i), DIGEST_SIZE);
    }
    if (before != NULL && step % SEGMENT > 0) {
        states[step % SEGMENT - 1] = *before;
    }
    states[step % SEGMENT] = *state;
    for (uint64_t i = 0; i < count; i++) {
        merkle_leaf_hash(&hashes[i], states[i].bytes, DIGEST_SIZE);
    }
    merkle_leaves_init_hashes(&leaves, hashes, count);
    merkle_path_build(&place->path, &leaves, step % SEGMENT);
    commit_list_root(&place->segment, COMMIT_SEGMENT, first, states, count);
}

static void make_file(struct buffer *bytes, const struct exhibit *exhibit, uint64_t step,
                      bool placed, const struct buffer *evidence)
{
    struct evidence_file file = {.step = step,
                                 .context = exhibit->context,
                                 .placed = placed,
                                 .evidence = evidence->data,
                                 .size = evidence->size};

    make_header(file.header, exhibit);
    make_place(&file.after, &exhibit->context.after, NULL, step);
    if (step > 0) {
        make_place(&file.before, &exhibit->context.before, NULL, step - 1);
    }
    buffer_init(bytes, EVIDENCE_FILE_SIZE_MAX);
    assert_int_equal(evidence_file_write(bytes, &file, NULL), STATUS_OK);
}

static void small_exhibit(struct exhibit *exhibit, struct buffer *evidence, bool guilty)
{
    struct evidence_target target = {0};

    exhibit_of_kind(exhibit, OP_STEP_NEXT, MOOD_TAME, 3);
    exhibit_make_right(exhibit, &target);
    if (guilty) {
        exhibit_set(exhibit, &target, exhibit_get(exhibit, &target) + 1);
    }
    exhibit_evidence(evidence, exhibit, &target);
}

static void test_files_are_read_back_and_judged(void **state)
{
    (void)state;
    for (uint64_t step = 0; step < STEPS; step++) {
        for (int variant = 0; variant < 4; variant++) {
            struct exhibit exhibit;
            struct buffer evidence;
            struct buffer bytes;
            struct evidence_file file;
            struct evidence_ruling ruling;

            small_exhibit(&exhibit, &evidence, variant % 2 == 1);
            exhibit.context.diverged = step == STEPS - 1;
            make_file(&bytes, &exhibit, step, variant >= 2, &evidence);
            assert_int_equal(evidence_file_read(&file, bytes.data, bytes.size, NULL), STATUS_OK);
            assert_int_equal(file.step, step);
            assert_memory_equal(&file.context.program, &exhibit.context.program, DIGEST_SIZE);
            assert_memory_equal(&file.context.constants, &exhibit.context.constants, DIGEST_SIZE);
            assert_memory_equal(&file.context.data, &exhibit.context.data, DIGEST_SIZE);
            assert_memory_equal(&file.context.before, &exhibit.context.before, DIGEST_SIZE);
            assert_memory_equal(&file.context.after, &exhibit.context.after, DIGEST_SIZE);
            assert_memory_equal(&file.context.trace, &exhibit.context.trace, DIGEST_SIZE);
            assert_int_equal(file.context.diverged, exhibit.context.diverged);
            assert_int_equal(file.placed, variant >= 2);
            assert_int_equal(evidence_judge(&ruling, &file.context, file.evidence, file.size, NULL),
                             STATUS_OK);
            assert_int_equal(ruling.answer,
                             variant % 2 == 1 ? EVIDENCE_UPHELD : EVIDENCE_NOT_GUILTY);
            buffer_release(&bytes);
            buffer_release(&evidence);
            exhibit_close(&exhibit);
        }
    }
}

static void test_changed_and_cut_files_are_refused_or_other_files(void **state)
{
    struct exhibit exhibit;
    struct buffer evidence;
    struct buffer bytes;

    (void)state;
    small_exhibit(&exhibit, &evidence, true);
    make_file(&bytes, &exhibit, 5, true, &evidence);
    for (size_t at = 0; at < bytes.size; at++) {
        struct evidence_file file;
        struct evidence_ruling ruling = {.answer = EVIDENCE_REFUSED};

        bytes.data[at] ^= (uint8_t)(1 << at % 8);
        if (evidence_file_read(&file, bytes.data, bytes.size, NULL) == STATUS_OK) {
            assert_int_equal(evidence_judge(&ruling, &file.context, file.evidence, file.size, NULL),
                             STATUS_OK);
        }
        /* Of the header the ruling hangs on the program alone (this evidence has no constants or
         * data); the job id, which the reader compares, on all of it. The flags are claims. */
        bool program = at >= 8 + 56 && at < 8 + 88;
        bool loose = (at >= 8 + 12 && at < 224 && !program) || at == 328;

        if (ruling.answer == EVIDENCE_UPHELD && !loose) {
            fail_msg("byte %zu", at);
        }
        bytes.data[at] ^= (uint8_t)(1 << at % 8);
        assert_int_not_equal(evidence_file_read(&file, bytes.data, at, NULL), STATUS_OK);
    }
    buffer_release(&bytes);
    buffer_release(&evidence);
    exhibit_close(&exhibit);
}

static void test_states_elsewhere_are_refused(void **state)
{
    struct exhibit exhibit;
    struct buffer evidence;

    (void)state;
    small_exhibit(&exhibit, &evidence, true);
    for (uint64_t step = 0; step < STEPS; step++) {
        for (uint64_t other = 0; other < STEPS; other++) {
            struct buffer bytes;
            struct evidence_file file;

            make_file(&bytes, &exhibit, step, true, &evidence);
            endian_store_be64(bytes.data + 224, other);
            assert_int_equal(evidence_file_read(&file, bytes.data, bytes.size, NULL),
                             step == other ? STATUS_OK : STATUS_BAD_FORMAT);
            buffer_release(&bytes);
        }
    }
    buffer_release(&evidence);
    exhibit_close(&exhibit);
}

static void test_first_step_begins_in_the_first_state(void **state)
{
    struct exhibit exhibit;
    struct buffer evidence;
    struct buffer bytes;
    struct evidence_file file;

    (void)state;
    small_exhibit(&exhibit, &evidence, true);
    make_file(&bytes, &exhibit, 0, false, &evidence);
    bytes.data[8 + 184] ^= 1;
    assert_int_equal(evidence_file_read(&file, bytes.data, bytes.size, NULL), STATUS_BAD_FORMAT);
    bytes.data[8 + 184] ^= 1;
    bytes.data[8 + 11] = RULES_VERSION + 1;
    assert_int_equal(evidence_file_read(&file, bytes.data, bytes.size, NULL), STATUS_REFUSED);
    buffer_release(&bytes);
    buffer_release(&evidence);
    exhibit_close(&exhibit);
}

/* ---- the corpus --------------------------------------------------------- */

static void put(const char *folder, const char *name, uint8_t choice, const struct buffer *bytes)
{
    struct buffer out;
    char path[512];

    buffer_init(&out, EVIDENCE_FILE_SIZE_MAX);
    buffer_add_u8(&out, choice);
    buffer_add(&out, bytes->data, bytes->size);
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    (void)remove(path);
    if (file_write_new(path, NULL, out.data, out.size, 0644) != STATUS_OK) {
        fprintf(stderr, "cannot write %s\n", path);
        exit(1);
    }
    buffer_release(&out);
}

static int write_corpus(const char *folder)
{
    static const enum op_kind kinds[] = {OP_FILL, OP_CONTRACT, OP_QUANTIZE, OP_SOFTMAX};
    struct exhibit exhibit;
    struct buffer evidence;
    struct buffer bytes;

    for (int guilty = 0; guilty < 2; guilty++) {
        small_exhibit(&exhibit, &evidence, guilty == 1);
        put(folder, guilty == 1 ? "guilty" : "honest", (uint8_t)guilty, &evidence);
        make_file(&bytes, &exhibit, 5, guilty == 1, &evidence);
        put(folder, guilty == 1 ? "file-placed" : "file", 2, &bytes);
        buffer_release(&bytes);
        buffer_release(&evidence);
        for (int kind = EVIDENCE_FIRST_STATE; kind <= EVIDENCE_NEXT_STATE && guilty == 0; kind++) {
            buffer_init(&bytes, EVIDENCE_SIZE_MAX);
            if (evidence_write_state(&bytes, exhibit.tape, &exhibit.source,
                                     (enum evidence_kind)kind, 0, NULL) == STATUS_OK) {
                put(folder, kind == EVIDENCE_FIRST_STATE ? "first-state" : "next-state", 0, &bytes);
            }
            buffer_release(&bytes);
        }
        exhibit_close(&exhibit);
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct evidence_target target = {0};

        exhibit_of_kind(&exhibit, kinds[i], MOOD_TAME, 1);
        exhibit_evidence(&evidence, &exhibit, &target);
        /* The item alone in its program, which the target makes up; the path goes. */
        size_t path = (size_t)evidence.data[13] * DIGEST_SIZE;

        evidence.data[4] = 0;
        evidence.data[8] = 1;
        evidence.data[13] = 0;
        memmove(evidence.data + 14, evidence.data + 14 + path, evidence.size - 14 - path);
        evidence.size -= path;
        put(folder, op_kind_name(kinds[i]), 3, &evidence);
        buffer_release(&evidence);
        exhibit_close(&exhibit);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_are_read_back_and_judged),
        cmocka_unit_test(test_changed_and_cut_files_are_refused_or_other_files),
        cmocka_unit_test(test_states_elsewhere_are_refused),
        cmocka_unit_test(test_first_step_begins_in_the_first_state),
    };

    if (argc == 3 && strcmp(argv[1], "write") == 0) {
        return write_corpus(argv[2]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
