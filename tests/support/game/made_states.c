/* made_states.c - see made_states.h. */
#include "tests/support/game/made_states.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "proofs/commit/commit.h"
#include "proofs/commit/descriptor.h"
#include "proofs/commit/leaf_proof.h"

enum {
    TENSORS = 3,
    ELEMENTS_MAX = 700,
    FIRST_STATE_AT = 184, /* in the header of a job */
};

static const uint32_t elements[TENSORS] = {300, ELEMENTS_MAX, 1};

static struct tensor tensor_of(uint32_t number)
{
    struct tensor tensor = {.dtype = DTYPE_U32,
                            .role = ROLE_STATE,
                            .rank = 1,
                            .dims = {elements[number]},
                            .count = elements[number]};

    (void)snprintf(tensor.name, sizeof(tensor.name), "made%u", number);
    return tensor;
}

static void fill(uint32_t data[ELEMENTS_MAX], uint32_t state, uint32_t number)
{
    for (uint32_t i = 0; i < elements[number]; i++) {
        data[i] = 1 + state * 1000003 + number * 10007 + i;
    }
}

static struct digest tensor_root(uint32_t state, uint32_t number)
{
    struct tensor tensor = tensor_of(number);
    uint32_t data[ELEMENTS_MAX];
    struct digest root;

    fill(data, state, number);
    commit_tensor_root(&root, COMMIT_TENSOR, &tensor, data, 1);
    return root;
}

struct digest made_state_root(uint32_t state)
{
    struct digest roots[TENSORS];
    struct digest root;

    for (uint32_t i = 0; i < TENSORS; i++) {
        roots[i] = tensor_root(state, i);
    }
    commit_list_root(&root, COMMIT_STATE, 0, roots, TENSORS);
    return root;
}

uint32_t made_state_of(const struct digest *root)
{
    static struct digest roots[MADE_STATES];
    static bool known;

    for (uint32_t i = 0; i < MADE_STATES && !known; i++) {
        roots[i] = made_state_root(i);
    }
    known = true;
    for (uint32_t i = 0; i < MADE_STATES; i++) {
        if (digest_equal(&roots[i], root)) {
            return i;
        }
    }
    return MADE_STATES;
}

static struct leaf_proof_place place_of(const struct hash32 *seed, uint32_t steps, uint32_t which)
{
    struct leaf_proof_place place = {.step = game_right_step(seed, which, steps),
                                     .tensor = game_right_tensor(seed, which, TENSORS)};
    struct tensor tensor = tensor_of(place.tensor);

    place.leaf = game_right_leaf(seed, which, leaf_proof_leaves(&tensor));
    return place;
}

static void read_leaf(uint8_t leaf[MERKLE_LEAF_SIZE], uint32_t state,
                      const struct leaf_proof_place *place)
{
    uint32_t data[ELEMENTS_MAX] = {0};
    size_t size = elements[place->tensor] * sizeof(data[0]);
    size_t at = (size_t)place->leaf * MERKLE_LEAF_SIZE;

    fill(data, state, place->tensor);
    memset(leaf, 0, MERKLE_LEAF_SIZE);
    memcpy(leaf, (const uint8_t *)data + at,
           size - at < MERKLE_LEAF_SIZE ? size - at : MERKLE_LEAF_SIZE);
}

void made_right(struct game_right *right, uint8_t leaf[MERKLE_LEAF_SIZE], const struct hash32 *seed,
                const struct game_hashes *states, uint32_t which)
{
    struct leaf_proof_place place = place_of(seed, states->count, which);

    read_leaf(leaf, made_state_of(&states->hashes[place.step]), &place);
    *right = (struct game_right){place.step, place.tensor, place.leaf, leaf};
}

struct hash32 made_right_hash(const struct address *owner, const struct hash32 *seed,
                              const struct hash32 *segment_hash, const struct game_hashes *states,
                              uint32_t which)
{
    uint8_t leaf[MERKLE_LEAF_SIZE];
    struct game_right right;

    made_right(&right, leaf, seed, states, which);
    return game_right_hash(owner, seed, segment_hash, &right);
}

static void add_path(struct buffer *bytes, const struct merkle_path *path)
{
    buffer_add_u8(bytes, (uint8_t)path->sibling_count);
    buffer_add(bytes, path->siblings, path->sibling_count * sizeof(path->siblings[0]));
}

static void build_item_path(struct merkle_path *path, const struct digest *items, uint32_t count,
                            uint32_t item)
{
    struct digest hashes[GAME_STATES_MAX];
    struct merkle_leaves leaves;

    assert(count <= GAME_STATES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        merkle_leaf_hash(&hashes[i], items[i].bytes, DIGEST_SIZE);
    }
    merkle_leaves_init_hashes(&leaves, hashes, count);
    merkle_path_build(path, &leaves, item);
}

void made_leaf_proof(struct buffer *bytes, const struct hash32 *seed,
                     const struct game_hashes *states, uint32_t which)
{
    struct leaf_proof_place place = place_of(seed, states->count, which);
    uint32_t state = made_state_of(&states->hashes[place.step]);
    struct tensor tensor = tensor_of(place.tensor);
    struct digest roots[TENSORS];
    uint8_t label[DESCRIPTOR_LABEL_MAX];
    size_t label_size = descriptor_label(label, &tensor);
    uint8_t leaf[MERKLE_LEAF_SIZE];
    uint32_t data[ELEMENTS_MAX];
    struct merkle_leaves leaves;
    struct merkle_path path;

    for (uint32_t i = 0; i < TENSORS; i++) {
        roots[i] = tensor_root(state, i);
    }
    build_item_path(&path, states->hashes, states->count, place.step);
    add_path(bytes, &path);
    buffer_add_u32(bytes, TENSORS);
    build_item_path(&path, roots, TENSORS, place.tensor);
    add_path(bytes, &path);
    buffer_add_u8(bytes, (uint8_t)label_size);
    buffer_add(bytes, label, label_size);
    fill(data, state, place.tensor);
    merkle_leaves_init_bytes(&leaves, data, elements[place.tensor] * sizeof(data[0]));
    merkle_path_build(&path, &leaves, place.leaf);
    add_path(bytes, &path);
    read_leaf(leaf, state, &place);
    buffer_add(bytes, leaf, sizeof(leaf));
}

void made_states_case(struct game_case *shown, const uint8_t header[GAME_JOB_HEADER_SIZE],
                      const struct game_segment *segment, const struct game_hashes *states,
                      const struct game_segment *previous,
                      const struct game_hashes *previous_states, uint32_t step)
{
    memset(shown, 0, sizeof(*shown));
    memcpy(shown->job_header, header, GAME_JOB_HEADER_SIZE);
    shown->segment = *segment;
    shown->step = step;
    if (step < states->count) {
        shown->post_state = states->hashes[step];
        build_item_path(&shown->post_path, states->hashes, states->count, step);
    }
    if (step > 0 && step <= states->count) {
        shown->pre_state = states->hashes[step - 1];
        build_item_path(&shown->pre_path, states->hashes, states->count, step - 1);
    } else if (previous != NULL && previous_states->count > 0) {
        shown->previous = *previous;
        shown->pre_state = previous_states->hashes[previous_states->count - 1];
        build_item_path(&shown->pre_path, previous_states->hashes, previous_states->count,
                        previous_states->count - 1);
    } else {
        shown->pre_state = made_state_root(0);
    }
}

void made_job(uint8_t header[GAME_JOB_HEADER_SIZE], struct digest *job_id)
{
    struct digest first = made_state_root(0);

    for (uint32_t i = 0; i < GAME_JOB_HEADER_SIZE; i++) {
        header[i] = (uint8_t)(i * 7 + 1);
    }
    memcpy(header + FIRST_STATE_AT, first.bytes, DIGEST_SIZE);
    commit_job_id(job_id, header, GAME_JOB_HEADER_SIZE);
}
