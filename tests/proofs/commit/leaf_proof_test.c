/*
 * Goal: the proof of a drawn leaf proves that leaf of that state and nothing else.
 * Method: every tensor and leaf of the states of a small run, proven and read back; the leaf
 * against the machine's bytes; other places, other roots; every bit of a proof flipped; every cut.
 */
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/leaf_proof.h"
#include "proofs/commit/state_root.h"
#include "tests/support/numeric/small_job.h"
#include "tests/support/test.h"

#define STEPS 5

struct fixture {
    struct job *job;
    struct run run;
    struct digest states[STEPS];
    struct digest segment;
};

/* The machine holds the state after `step` in the end, and the states after the others are random
 * bytes: nothing here looks at them. */
static void open_fixture(struct fixture *fixture, uint32_t step)
{
    struct small_job_options options;
    struct error error;

    error_init(&error);
    small_job_defaults(&options);
    fixture->job = small_job_new(&options);
    small_run_open(&fixture->run, fixture->job, ISA_SCALAR, 1, false);
    small_run_begin(&fixture->run);
    for (uint32_t i = 0; i < STEPS; i++) {
        memset(&fixture->states[i], (int)(17 * i + 1), DIGEST_SIZE);
    }
    for (uint32_t i = 0; i <= step; i++) {
        small_run_step(&fixture->run);
    }
    assert_int_equal(state_root_of(&fixture->states[step], fixture->run.machine, &error),
                     STATUS_OK);
    commit_list_root(&fixture->segment, COMMIT_SEGMENT, 10, fixture->states, STEPS);
}

static void close_fixture(struct fixture *fixture)
{
    run_close(&fixture->run);
    job_free(fixture->job);
}

static enum verdict check(const struct fixture *fixture, const uint8_t *bytes, size_t size,
                          const struct leaf_proof_place *place)
{
    struct leaf_proof proof;
    struct error error;

    error_init(&error);
    return leaf_proof_read(&proof, bytes, size, &error) == STATUS_OK
               ? leaf_proof_check(&proof, &fixture->segment, 10, STEPS, place)
               : VERDICT_INVALID;
}

static void test_every_leaf_has_its_proof(void **state)
{
    (void)state;
    for (uint32_t step = 0; step < STEPS; step += 2) {
        struct leaf_proof_place place = {.step = step};
        struct fixture fixture;
        struct buffer bytes;
        struct error error;

        error_init(&error);
        open_fixture(&fixture, step);
        buffer_init(&bytes, LEAF_PROOF_SIZE_MAX);
        for (; place.tensor < fixture.job->tape->state_count; place.tensor++) {
            uint32_t id = fixture.job->tape->states[place.tensor].before;
            const struct tensor *tensor = &fixture.job->tape->tensors[id];
            const uint8_t *there = fixture.run.machine->backend->peek(fixture.run.machine, id);
            uint64_t size = commit_tensor_size(tensor);

            for (place.leaf = 0; place.leaf < leaf_proof_leaves(tensor); place.leaf++) {
                uint64_t at = place.leaf * MERKLE_LEAF_SIZE;
                size_t used = size - at < MERKLE_LEAF_SIZE ? size - at : MERKLE_LEAF_SIZE;
                struct leaf_proof_place other = place;
                uint8_t leaf[MERKLE_LEAF_SIZE];

                buffer_clear(&bytes);
                assert_int_equal(leaf_proof_write(&bytes, &place, fixture.states, STEPS,
                                                  fixture.run.machine, &error),
                                 STATUS_OK);
                assert_int_equal(leaf_proof_leaf(leaf, &place, fixture.run.machine, &error),
                                 STATUS_OK);
                assert_memory_equal(bytes.data + bytes.size - MERKLE_LEAF_SIZE, leaf,
                                    MERKLE_LEAF_SIZE);
                assert_memory_equal(leaf, there + at, used);
                assert_int_equal(check(&fixture, bytes.data, bytes.size, &place), VERDICT_VALID);
                other.tensor++;
                assert_int_equal(check(&fixture, bytes.data, bytes.size, &other), VERDICT_INVALID);
                other = place;
                other.leaf++;
                assert_int_equal(check(&fixture, bytes.data, bytes.size, &other), VERDICT_INVALID);
                other = place;
                other.step++;
                assert_int_equal(check(&fixture, bytes.data, bytes.size, &other), VERDICT_INVALID);
            }
            assert_int_not_equal(leaf_proof_write(&bytes, &place, fixture.states, STEPS,
                                                  fixture.run.machine, &error),
                                 STATUS_OK);
        }
        buffer_release(&bytes);
        close_fixture(&fixture);
    }
}

static void test_mutants_of_a_proof_are_refused(void **state)
{
    struct leaf_proof_place place = {.step = 2, .tensor = 1};
    struct fixture fixture;
    struct buffer bytes;
    struct error error;
    uint8_t *mutant;

    (void)state;
    error_init(&error);
    open_fixture(&fixture, 2);
    buffer_init(&bytes, LEAF_PROOF_SIZE_MAX);
    assert_int_equal(
        leaf_proof_write(&bytes, &place, fixture.states, STEPS, fixture.run.machine, &error),
        STATUS_OK);
    mutant = malloc(bytes.size + 1);
    for (size_t bit = 0; bit < 8 * bytes.size; bit++) {
        memcpy(mutant, bytes.data, bytes.size);
        mutant[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(check(&fixture, mutant, bytes.size, &place), VERDICT_INVALID);
    }
    memcpy(mutant, bytes.data, bytes.size);
    mutant[bytes.size] = 0;
    for (size_t size = 0; size <= bytes.size + 1; size++) {
        assert_int_equal(check(&fixture, mutant, size, &place),
                         size == bytes.size ? VERDICT_VALID : VERDICT_INVALID);
    }
    free(mutant);
    buffer_release(&bytes);
    close_fixture(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_leaf_has_its_proof),
                                       cmocka_unit_test(test_mutants_of_a_proof_are_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
