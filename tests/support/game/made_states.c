/* made_states.c - see made_states.h. */
#include "tests/support/game/made_states.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "proofs/commit/commit.h"
#include "proofs/commit/descriptor.h"
#include "proofs/commit/leaf_proof.h"

enum {
    TENSORS_MAX = 3,
    ELEMENTS_MAX = 700,
    PROGRAM_ROOT_AT = 56, /* in the header of a job */
    DATA_ROOT_AT = 152,
    FIRST_STATE_AT = 184,
};

static const uint32_t elements[TENSORS_MAX] = {300, ELEMENTS_MAX, 1};

/* Where SPARSE and FROZEN states have the element that may be another. */
enum {
    LIVE_TENSOR = 1,
    LIVE_LEAF = 0,
    LIVE_ELEMENT = 0,
};

/* A root that nobody made is that of a full state. */
static enum made_shape shape_of(uint32_t state)
{
    return state < MADE_SHAPES * MADE_STATES ? (enum made_shape)(state / MADE_STATES) : MADE_FULL;
}

static uint32_t elements_of(enum made_shape shape, uint32_t tensor)
{
    return shape == MADE_TINY ? 1 : elements[tensor];
}

uint32_t made_tensors(enum made_shape shape)
{
    return shape == MADE_TINY ? 1 : TENSORS_MAX;
}

bool made_leaf_changes(enum made_shape shape, uint32_t tensor, uint64_t leaf)
{
    return shape == MADE_FULL || shape == MADE_TINY ||
           (shape == MADE_SPARSE && tensor == LIVE_TENSOR && leaf == LIVE_LEAF);
}

static struct tensor tensor_of(enum made_shape shape, uint32_t number)
{
    uint32_t count = elements_of(shape, number);
    struct tensor tensor = {
        .dtype = DTYPE_U32, .role = ROLE_STATE, .rank = 1, .dims = {count}, .count = count};

    (void)snprintf(tensor.name, sizeof(tensor.name), "made%u", number);
    return tensor;
}

uint64_t made_leaves(enum made_shape shape, uint32_t tensor)
{
    struct tensor made = tensor_of(shape, tensor);

    return leaf_proof_leaves(&made);
}

/* Does this state have an element of its own there? */
static bool is_live(uint32_t state, uint32_t number, uint32_t element)
{
    bool is_there = number == LIVE_TENSOR && element == LIVE_ELEMENT;

    switch (shape_of(state)) {
    case MADE_SPARSE:
        return is_there;
    case MADE_FROZEN:
        return is_there && state % MADE_STATES >= MADE_LIES;
    case MADE_FULL:
    case MADE_TINY:
    case MADE_SHAPES:
        break;
    }
    return true;
}

static void fill(uint32_t data[ELEMENTS_MAX], uint32_t state, uint32_t number)
{
    const uint32_t still = made_state(shape_of(state), 0);

    for (uint32_t i = 0; i < elements_of(shape_of(state), number); i++) {
        data[i] = 1 + (is_live(state, number, i) ? state : still) * 1000003 + number * 10007 + i;
    }
}

static struct digest tensor_root(uint32_t state, uint32_t number)
{
    struct tensor tensor = tensor_of(shape_of(state), number);
    uint32_t data[ELEMENTS_MAX];
    struct digest root;

    fill(data, state, number);
    commit_tensor_root(&root, COMMIT_TENSOR, &tensor, data, 1);
    return root;
}

struct digest made_state_root(uint32_t state)
{
    uint32_t tensors = made_tensors(shape_of(state));
    struct digest roots[TENSORS_MAX];
    struct digest root;

    for (uint32_t i = 0; i < tensors; i++) {
        roots[i] = tensor_root(state, i);
    }
    commit_list_root(&root, COMMIT_STATE, 0, roots, tensors);
    return root;
}

uint32_t made_state_of(const struct digest *root)
{
    static struct digest roots[MADE_SHAPES * MADE_STATES];
    static bool known;
    uint32_t state = 0;

    for (uint32_t i = 0; i < MADE_SHAPES * MADE_STATES && !known; i++) {
        roots[i] = made_state_root(i);
    }
    known = true;
    while (state < MADE_SHAPES * MADE_STATES && !digest_equal(&roots[state], root)) {
        state++;
    }
    return state;
}

static struct leaf_proof_place place_of(const struct hash32 *seed, const struct game_hashes *states,
                                        uint32_t which)
{
    enum made_shape shape = shape_of(made_state_of(&states->hashes[0]));
    struct leaf_proof_place place = {.step = game_right_step(seed, which, states->count),
                                     .tensor = game_right_tensor(seed, which, made_tensors(shape))};

    place.leaf = game_right_leaf(seed, which, made_leaves(shape, place.tensor));
    return place;
}

static void read_leaf(uint8_t leaf[MERKLE_LEAF_SIZE], uint32_t state,
                      const struct leaf_proof_place *place)
{
    uint32_t data[ELEMENTS_MAX] = {0};
    size_t size = elements_of(shape_of(state), place->tensor) * sizeof(data[0]);
    size_t at = (size_t)place->leaf * MERKLE_LEAF_SIZE;

    fill(data, state, place->tensor);
    memset(leaf, 0, MERKLE_LEAF_SIZE);
    memcpy(leaf, (const uint8_t *)data + at,
           size - at < MERKLE_LEAF_SIZE ? size - at : MERKLE_LEAF_SIZE);
}

void made_right(struct game_right *right, uint8_t leaf[MERKLE_LEAF_SIZE], const struct hash32 *seed,
                const struct game_hashes *states, uint32_t which)
{
    struct leaf_proof_place place = place_of(seed, states, which);

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
    struct leaf_proof_place place = place_of(seed, states, which);
    uint32_t state = made_state_of(&states->hashes[place.step]);
    uint32_t tensors = made_tensors(shape_of(state));
    struct tensor tensor = tensor_of(shape_of(state), place.tensor);
    struct digest roots[TENSORS_MAX];
    uint8_t label[DESCRIPTOR_LABEL_MAX];
    size_t label_size = descriptor_label(label, &tensor);
    uint8_t leaf[MERKLE_LEAF_SIZE];
    uint32_t data[ELEMENTS_MAX];
    struct merkle_leaves leaves;
    struct merkle_path path;

    for (uint32_t i = 0; i < tensors; i++) {
        roots[i] = tensor_root(state, i);
    }
    build_item_path(&path, states->hashes, states->count, place.step);
    add_path(bytes, &path);
    buffer_add_u32(bytes, tensors);
    build_item_path(&path, roots, tensors, place.tensor);
    add_path(bytes, &path);
    buffer_add_u8(bytes, (uint8_t)label_size);
    buffer_add(bytes, label, label_size);
    fill(data, state, place.tensor);
    merkle_leaves_init_bytes(&leaves, data, tensor.count * sizeof(data[0]));
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
        memcpy(shown->pre_state.bytes, header + FIRST_STATE_AT, DIGEST_SIZE);
    }
}

void made_job(uint8_t header[GAME_JOB_HEADER_SIZE], struct digest *job_id, uint32_t first_state)
{
    struct digest first = made_state_root(first_state);

    for (uint32_t i = 0; i < GAME_JOB_HEADER_SIZE; i++) {
        header[i] = (uint8_t)(i * 7 + 1);
    }
    memcpy(header + FIRST_STATE_AT, first.bytes, DIGEST_SIZE);
    commit_job_id(job_id, header, GAME_JOB_HEADER_SIZE);
}

void made_job_terms(struct game_terms *terms, uint32_t first_state)
{
    uint8_t header[GAME_JOB_HEADER_SIZE];

    made_job(header, &terms->job_id, first_state);
    memcpy(terms->program_root.bytes, header + PROGRAM_ROOT_AT, DIGEST_SIZE);
    memcpy(terms->data_root.bytes, header + DATA_ROOT_AT, DIGEST_SIZE);
    memcpy(terms->first_state_root.bytes, header + FIRST_STATE_AT, DIGEST_SIZE);
}
