/* leaf_proof.c - see leaf_proof.h. */
#include "proofs/commit/leaf_proof.h"

#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/descriptor.h"
#include "proofs/commit/state_root.h"

#define COUNT_SIZE 8 /* a label begins with the tensor's number of bytes */

static uint64_t leaves_of(uint64_t size)
{
    return (size + MERKLE_LEAF_SIZE - 1) / MERKLE_LEAF_SIZE;
}

uint64_t leaf_proof_leaves(const struct tensor *tensor)
{
    return leaves_of(commit_tensor_size(tensor));
}

/* ---- writing --------------------------------------------------------------------- */

struct opening {
    uint64_t index;
    uint8_t *leaf;
    struct merkle_path *path; /* NULL: not wanted */
};

static enum status take_leaf(void *context, const struct tensor *tensor, const void *bytes,
                             struct error *error)
{
    const struct opening *opening = context;
    uint64_t size = commit_tensor_size(tensor);
    uint64_t at = opening->index * MERKLE_LEAF_SIZE;
    struct merkle_leaves leaves;

    if (opening->index >= leaves_of(size)) {
        return error_set(error, STATUS_USAGE, "'%s' has no such leaf", tensor->name);
    }
    memset(opening->leaf, 0, MERKLE_LEAF_SIZE);
    memcpy(opening->leaf, (const uint8_t *)bytes + at,
           size - at < MERKLE_LEAF_SIZE ? size - at : MERKLE_LEAF_SIZE);
    if (opening->path != NULL) {
        merkle_leaves_init_bytes(&leaves, bytes, size);
        merkle_path_build(opening->path, &leaves, opening->index);
    }
    return STATUS_OK;
}

static enum status open_leaf(struct opening *opening, const struct leaf_proof_place *place,
                             struct machine *machine, struct error *error)
{
    const struct tape *tape = machine->tape;

    return place->tensor < tape->state_count
               ? state_root_visit(machine, tape->states[place->tensor].before, take_leaf, opening,
                                  error)
               : error_set(error, STATUS_USAGE, "the state has no such tensor");
}

enum status leaf_proof_leaf(uint8_t leaf[MERKLE_LEAF_SIZE], const struct leaf_proof_place *place,
                            struct machine *machine, struct error *error)
{
    struct opening opening = {.index = place->leaf, .leaf = leaf};

    return open_leaf(&opening, place, machine, error);
}

static enum status take_root(void *context, const struct tensor *tensor, const void *bytes,
                             struct error *error)
{
    struct digest root;

    (void)error;
    commit_tensor_root(&root, COMMIT_TENSOR, tensor, bytes, 0);
    merkle_leaf_hash(context, root.bytes, DIGEST_SIZE);
    return STATUS_OK;
}

static void add_path(struct buffer *bytes, const struct merkle_path *path)
{
    buffer_add_u8(bytes, (uint8_t)path->sibling_count);
    buffer_add(bytes, path->siblings, path->sibling_count * sizeof(path->siblings[0]));
}

/* The path of one of count items, which are hashes of leaves. */
static void add_item_path(struct buffer *bytes, const struct digest *hashes, uint32_t count,
                          uint32_t item)
{
    struct merkle_leaves leaves;
    struct merkle_path path;

    merkle_leaves_init_hashes(&leaves, hashes, count);
    merkle_path_build(&path, &leaves, item);
    add_path(bytes, &path);
}

static void add_label(struct buffer *bytes, const struct tensor *tensor)
{
    uint8_t label[DESCRIPTOR_LABEL_MAX];
    size_t size = descriptor_label(label, tensor);

    buffer_add_u8(bytes, (uint8_t)size);
    buffer_add(bytes, label, size);
}

enum status leaf_proof_write(struct buffer *bytes, const struct leaf_proof_place *place,
                             const struct digest *states, uint32_t steps, struct machine *machine,
                             struct error *error)
{
    const struct tape *tape = machine->tape;
    uint32_t most = tape->state_count > steps ? tape->state_count : steps;
    struct digest *hashes = calloc(most, sizeof(*hashes));
    uint8_t leaf[MERKLE_LEAF_SIZE];
    struct merkle_path path;
    struct opening opening = {.index = place->leaf, .leaf = leaf, .path = &path};
    enum status status;

    if (hashes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the proof of a leaf");
    }
    TRY_OUT(open_leaf(&opening, place, machine, error));
    for (uint32_t i = 0; i < steps; i++) {
        merkle_leaf_hash(&hashes[i], states[i].bytes, DIGEST_SIZE);
    }
    add_item_path(bytes, hashes, steps, place->step);
    for (uint32_t i = 0; i < tape->state_count; i++) {
        TRY_OUT(state_root_visit(machine, tape->states[i].before, take_root, &hashes[i], error));
    }
    buffer_add_u32(bytes, tape->state_count);
    add_item_path(bytes, hashes, tape->state_count, place->tensor);
    add_label(bytes, &tape->tensors[tape->states[place->tensor].before]);
    add_path(bytes, &path);
    buffer_add(bytes, leaf, MERKLE_LEAF_SIZE);
    status = buffer_check(bytes, error, "the proof of a leaf");
out:
    free(hashes);
    return status;
}

/* ---- checking -------------------------------------------------------------------- */

static void read_path(struct reader *reader, struct merkle_path *path)
{
    uint32_t count = reader_u8(reader);

    reader->failed = reader->failed || count > MERKLE_DEPTH_MAX;
    path->sibling_count = reader->failed ? 0 : count;
    reader_copy(reader, path->siblings, path->sibling_count * sizeof(path->siblings[0]));
}

static uint64_t count_of(const uint8_t *label)
{
    struct reader reader;

    reader_init(&reader, label, COUNT_SIZE);
    return reader_u64(&reader);
}

enum status leaf_proof_read(struct leaf_proof *proof, const uint8_t *bytes, size_t size,
                            struct error *error)
{
    struct reader reader;

    memset(proof, 0, sizeof(*proof));
    reader_init(&reader, bytes, size);
    read_path(&reader, &proof->of_state);
    proof->tensors = reader_u32(&reader);
    read_path(&reader, &proof->of_tensor);
    proof->label_size = reader_u8(&reader);
    proof->label = reader_take(&reader, proof->label_size);
    read_path(&reader, &proof->of_leaf);
    proof->leaf = reader_take(&reader, MERKLE_LEAF_SIZE);
    TRY(reader_end(&reader, error, "the proof of a leaf"));
    if (proof->tensors == 0 || proof->label_size < DESCRIPTOR_LABEL_MIN ||
        proof->label_size > DESCRIPTOR_LABEL_MAX || count_of(proof->label) == 0 ||
        count_of(proof->label) > COMMIT_TENSOR_BYTES_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "the proof of a leaf is about no tensor");
    }
    proof->leaves = leaves_of(count_of(proof->label));
    return STATUS_OK;
}

/* The root of the tree in which a leaf with this hash stands at index. */
static bool climb_path(struct digest *root, struct merkle_path *path, uint64_t index,
                       uint64_t count, const struct digest *hash)
{
    path->leaf_index = index;
    path->leaf_count = count;
    return index < count && merkle_path_root(root, path, hash) == VERDICT_VALID;
}

/* Replaces an item by the root of the list that it stands in. */
static bool climb_list(struct digest *item, struct merkle_path *path, enum commit_list kind,
                       uint64_t first, uint64_t index, uint64_t count)
{
    struct digest hash;
    struct digest tree;

    merkle_leaf_hash(&hash, item->bytes, DIGEST_SIZE);
    if (!climb_path(&tree, path, index, count, &hash)) {
        return false;
    }
    commit_list_root_of(item, kind, first, count, &tree);
    return true;
}

enum verdict leaf_proof_check(struct leaf_proof *proof, const struct digest *segment,
                              uint64_t first, uint32_t steps, const struct leaf_proof_place *place)
{
    struct digest item;
    struct digest tree;

    merkle_leaf_hash(&item, proof->leaf, MERKLE_LEAF_SIZE);
    if (!climb_path(&tree, &proof->of_leaf, place->leaf, proof->leaves, &item)) {
        return VERDICT_INVALID;
    }
    commit_labelled_root(&item, COMMIT_TENSOR, proof->label, proof->label_size, &tree);
    return climb_list(&item, &proof->of_tensor, COMMIT_STATE, 0, place->tensor, proof->tensors) &&
                   climb_list(&item, &proof->of_state, COMMIT_SEGMENT, first, place->step, steps) &&
                   digest_equal(&item, segment)
               ? VERDICT_VALID
               : VERDICT_INVALID;
}
