/* commit.c - see commit.h. */
#include "proofs/commit/commit.h"

#include <assert.h>
#include <string.h>

#include "base/endian.h"
#include "proofs/hash/sha256.h"

#define TAG_SIZE 32

/* docs/FORMATS.md, tags: 32 bytes, the text filled up with zeros. */
static const char array_tags[2][TAG_SIZE] = {
    [COMMIT_TENSOR] = "lockstep.tensor.v1",
    [COMMIT_DATA] = "lockstep.data.v1",
};
static const char list_tags[COMMIT_LIST_COUNT][TAG_SIZE] = {
    [COMMIT_STATE] = "lockstep.state.v1", [COMMIT_SEGMENT] = "lockstep.segment.v1",
    [COMMIT_TRACE] = "lockstep.trace.v1", [COMMIT_PROGRAM] = "lockstep.program.v1",
    [COMMIT_BATCH] = "lockstep.batch.v1",
};
/* The name of a tensor from a data header, which holds no name. */
static const char data_name[] = "data";
static const char job_tag[TAG_SIZE] = "lockstep.job.v1";

/* The engine's number of a type is its number in the header: types may be added, never
 * renumbered. */
_Static_assert(DTYPE_F32 == 0 && DTYPE_U8 == 1 && DTYPE_U16 == 2 && DTYPE_U32 == 3 &&
                   DTYPE_I16 == 4 && DTYPE_I32 == 5 && DTYPE_F16 == 6 && DTYPE_BF16 == 7,
               "dtype numbers are in every tensor root");
_Static_assert(TENSOR_RANK_MAX <= COMMIT_DIMS_MAX, "the header has six dims");

uint64_t commit_tensor_size(const struct tensor *tensor)
{
    return tensor->count * dtype_size(tensor->dtype);
}

/* The names that a tape may give: 1 to TENSOR_NAME_MAX letters, digits and any of . _ - / */
static bool name_sound(const char *name)
{
    size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                 "0123456789._-/");

    return length > 0 && length <= TENSOR_NAME_MAX && name[length] == '\0';
}

bool commit_tensor_sound(const struct tensor *tensor)
{
    uint64_t count = 1;

    if ((unsigned)tensor->dtype >= DTYPE_COUNT || tensor->rank > TENSOR_RANK_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (tensor->dims[i] == 0 || tensor->dims[i] > TENSOR_COUNT_MAX / count) {
            return false;
        }
        count *= tensor->dims[i];
    }
    return tensor->count == count && name_sound(tensor->name);
}

/* docs/FORMATS.md, tensor header: behind the tag, and the name behind all. */
enum {
    TENSOR_LEAVES = TAG_SIZE, /* the root of the leaves */
    TENSOR_BYTES = 64,
    TENSOR_DIMS = 72, /* six, of eight bytes each; those that a tensor lacks are zero */
    TENSOR_DTYPE = 120,
    TENSOR_RANK = 121,
    TENSOR_NAME_SIZE = 122
};

size_t commit_tensor_header(uint8_t bytes[COMMIT_TENSOR_HEADER_MAX], enum commit_array kind,
                            const struct tensor *tensor, const struct digest *leaves_root)
{
    size_t name_size = kind == COMMIT_DATA ? 0 : strlen(tensor->name);

    assert(commit_tensor_sound(tensor));
    memcpy(bytes, array_tags[kind], TAG_SIZE);
    memcpy(bytes + TENSOR_LEAVES, leaves_root->bytes, DIGEST_SIZE);
    endian_store_be64(bytes + TENSOR_BYTES, commit_tensor_size(tensor));
    for (uint32_t i = 0; i < COMMIT_DIMS_MAX; i++) {
        endian_store_be64(bytes + TENSOR_DIMS + 8 * (size_t)i,
                          i < tensor->rank ? tensor->dims[i] : 0);
    }
    bytes[TENSOR_DTYPE] = (uint8_t)tensor->dtype;
    bytes[TENSOR_RANK] = (uint8_t)tensor->rank;
    endian_store_be16(bytes + TENSOR_NAME_SIZE, (uint16_t)name_size);
    memcpy(bytes + COMMIT_TENSOR_HEADER_MIN, tensor->name, name_size);
    return COMMIT_TENSOR_HEADER_MIN + name_size;
}

size_t commit_labelled_header(uint8_t bytes[COMMIT_TENSOR_HEADER_MAX], enum commit_array kind,
                              const void *label, size_t label_size,
                              const struct digest *leaves_root)
{
    assert(label_size <= COMMIT_TENSOR_HEADER_MAX - TAG_SIZE - DIGEST_SIZE);
    memcpy(bytes, array_tags[kind], TAG_SIZE);
    memcpy(bytes + TAG_SIZE, leaves_root->bytes, DIGEST_SIZE);
    memcpy(bytes + TAG_SIZE + DIGEST_SIZE, label, label_size);
    return TAG_SIZE + DIGEST_SIZE + label_size;
}

enum status commit_tensor_header_read(struct tensor *tensor, enum commit_array *kind,
                                      struct digest *leaves_root, const uint8_t *bytes, size_t size)
{
    uint8_t again[COMMIT_TENSOR_HEADER_MAX];

    if (size < COMMIT_TENSOR_HEADER_MIN || size > COMMIT_TENSOR_HEADER_MAX) {
        return STATUS_BAD_FORMAT;
    }
    *kind = memcmp(bytes, array_tags[COMMIT_DATA], TAG_SIZE) == 0 ? COMMIT_DATA : COMMIT_TENSOR;
    memset(tensor, 0, sizeof(*tensor));
    memcpy(leaves_root->bytes, bytes + TENSOR_LEAVES, DIGEST_SIZE);
    tensor->dtype = (enum dtype)bytes[TENSOR_DTYPE];
    tensor->rank = bytes[TENSOR_RANK];
    tensor->role = *kind == COMMIT_DATA ? ROLE_DATA : ROLE_TEMPORARY;
    if (tensor->rank > TENSOR_RANK_MAX || bytes[TENSOR_DTYPE] >= DTYPE_COUNT) {
        return STATUS_BAD_FORMAT;
    }
    tensor->count = endian_load_be64(bytes + TENSOR_BYTES) / dtype_size(tensor->dtype);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        tensor->dims[i] = endian_load_be64(bytes + TENSOR_DIMS + 8 * (size_t)i);
    }
    if (*kind == COMMIT_DATA) {
        memcpy(tensor->name, data_name, sizeof(data_name));
    } else {
        memcpy(tensor->name, bytes + COMMIT_TENSOR_HEADER_MIN, size - COMMIT_TENSOR_HEADER_MIN);
    }
    if (!commit_tensor_sound(tensor)) {
        return STATUS_BAD_FORMAT;
    }
    /* One tensor has one header: refuses bytes that commit_tensor_header() would not write. */
    if (commit_tensor_header(again, *kind, tensor, leaves_root) != size ||
        memcmp(again, bytes, size) != 0) {
        return STATUS_BAD_FORMAT;
    }
    return STATUS_OK;
}

void commit_tensor_root_of(struct digest *root, enum commit_array kind, const struct tensor *tensor,
                           const struct digest *leaves_root)
{
    uint8_t header[COMMIT_TENSOR_HEADER_MAX];

    sha256(root, header, commit_tensor_header(header, kind, tensor, leaves_root));
}

void commit_labelled_root(struct digest *root, enum commit_array kind, const void *label,
                          size_t label_size, const struct digest *leaves_root)
{
    struct sha256 hash;

    sha256_init_scalar(&hash);
    sha256_add(&hash, array_tags[kind], TAG_SIZE);
    sha256_add(&hash, leaves_root->bytes, DIGEST_SIZE);
    sha256_add(&hash, label, label_size);
    sha256_end(&hash, root);
}

void commit_tensor_root(struct digest *root, enum commit_array kind, const struct tensor *tensor,
                        const void *data, int threads)
{
    struct merkle_leaves leaves;
    struct digest leaves_root;

    merkle_leaves_init_bytes(&leaves, data, commit_tensor_size(tensor));
    leaves.threads = threads;
    merkle_root(&leaves_root, &leaves);
    commit_tensor_root_of(root, kind, tensor, &leaves_root);
}

void commit_stream_init(struct commit_stream *stream, enum commit_array kind,
                        const struct tensor *tensor)
{
    assert(commit_tensor_sound(tensor));
    stream->tensor = tensor;
    stream->kind = kind;
    merkle_stream_init(&stream->stream);
}

void commit_stream_add(struct commit_stream *stream, const void *data, size_t data_size,
                       int threads)
{
    enum status status;

    assert(data_size <= commit_tensor_size(stream->tensor) - stream->stream.size);
    status = merkle_stream_add(&stream->stream, data, data_size, threads);
    assert(status == STATUS_OK); /* a sound tensor is far smaller than the largest tree */
}

void commit_stream_root(const struct commit_stream *stream, struct digest *root)
{
    struct digest leaves_root;

    assert(stream->stream.size == commit_tensor_size(stream->tensor));
    merkle_stream_root(&stream->stream, &leaves_root);
    commit_tensor_root_of(root, stream->kind, stream->tensor, &leaves_root);
}

/* May the field at 64 of such a list be other than zero? */
static bool first_fits(enum commit_list kind, uint64_t first)
{
    return first == 0 || kind == COMMIT_SEGMENT || kind == COMMIT_PROGRAM || kind == COMMIT_BATCH;
}

/* docs/FORMATS.md, list header: behind the tag. */
enum { LIST_ITEMS = TAG_SIZE, LIST_FIRST = 64, LIST_COUNT = 72 };

void commit_list_header(uint8_t bytes[COMMIT_LIST_HEADER_SIZE], enum commit_list kind,
                        uint64_t first, uint64_t count, const struct digest *items_root)
{
    assert(first_fits(kind, first));
    memcpy(bytes, list_tags[kind], TAG_SIZE);
    memcpy(bytes + LIST_ITEMS, items_root->bytes, DIGEST_SIZE);
    endian_store_be64(bytes + LIST_FIRST, first);
    endian_store_be64(bytes + LIST_COUNT, count);
}

void commit_roots_init(struct commit_roots *roots, enum commit_list kind, uint64_t first)
{
    roots->kind = kind;
    roots->first = first;
    merkle_builder_init(&roots->builder);
}

enum status commit_roots_add_bytes(struct commit_roots *roots, const void *item, size_t item_size)
{
    struct digest hash;

    merkle_leaf_hash(&hash, item, item_size);
    return merkle_builder_add(&roots->builder, &hash, 1);
}

enum status commit_roots_add(struct commit_roots *roots, const struct digest *item)
{
    return commit_roots_add_bytes(roots, item->bytes, DIGEST_SIZE);
}

void commit_list_root_of(struct digest *root, enum commit_list kind, uint64_t first, uint64_t count,
                         const struct digest *items_root)
{
    uint8_t header[COMMIT_LIST_HEADER_SIZE];

    commit_list_header(header, kind, first, count, items_root);
    sha256_scalar(root, header, sizeof(header));
}

void commit_roots_end(const struct commit_roots *roots, struct digest *root)
{
    struct digest items_root;

    merkle_builder_root(&roots->builder, &items_root);
    commit_list_root_of(root, roots->kind, roots->first, roots->builder.leaf_count, &items_root);
}

void commit_list_root(struct digest *root, enum commit_list kind, uint64_t first,
                      const struct digest *items, uint64_t count)
{
    struct commit_roots roots;

    commit_roots_init(&roots, kind, first);
    for (uint64_t i = 0; i < count; i++) {
        enum status status = commit_roots_add(&roots, &items[i]);

        assert(status == STATUS_OK); /* the limit is far above what fits into memory */
    }
    commit_roots_end(&roots, root);
}

/* docs/FORMATS.md, job id: SHA-256 of tag (32), size (8), the job's bytes. */
void commit_job_id(struct digest *id, const void *job, size_t job_size)
{
    struct sha256 hash;
    uint8_t size[8];

    endian_store_be64(size, job_size);
    sha256_init(&hash, SHA256_ISA_BEST);
    sha256_add(&hash, job_tag, sizeof(job_tag));
    sha256_add(&hash, size, sizeof(size));
    sha256_add(&hash, job, job_size);
    sha256_end(&hash, id);
}

/* Is all of the leaf after the last byte of the tensor zero? */
static bool padding_is_zero(const uint8_t *leaf, uint64_t leaf_index, uint64_t byte_count)
{
    uint64_t start = leaf_index * MERKLE_LEAF_SIZE;

    for (uint64_t i = 0; i < MERKLE_LEAF_SIZE; i++) {
        if (start + i >= byte_count && leaf[i] != 0) {
            return false;
        }
    }
    return true;
}

enum verdict commit_leaf_check(const struct digest *root, const uint8_t *header, size_t header_size,
                               const uint8_t leaf[MERKLE_LEAF_SIZE], const struct merkle_path *path)
{
    struct tensor tensor;
    enum commit_array kind;
    struct digest leaves_root;
    struct digest hash;

    if (commit_tensor_header_read(&tensor, &kind, &leaves_root, header, header_size) != STATUS_OK) {
        return VERDICT_INVALID;
    }
    sha256(&hash, header, header_size);
    if (!digest_equal(&hash, root)) {
        return VERDICT_INVALID;
    }

    uint64_t size = commit_tensor_size(&tensor);

    if (path->leaf_count != (size + MERKLE_LEAF_SIZE - 1) / MERKLE_LEAF_SIZE ||
        !padding_is_zero(leaf, path->leaf_index, size)) {
        return VERDICT_INVALID;
    }
    merkle_leaf_hash(&hash, leaf, MERKLE_LEAF_SIZE);
    return merkle_path_check(path, &hash, &leaves_root);
}

enum verdict commit_item_check(const struct digest *root, enum commit_list kind, uint64_t first,
                               const void *item, size_t item_size, const struct merkle_path *path)
{
    struct digest hash;
    struct digest items_root;

    if (!first_fits(kind, first)) {
        return VERDICT_INVALID;
    }
    merkle_leaf_hash(&hash, item, item_size);
    if (merkle_path_root(&items_root, path, &hash) != VERDICT_VALID) {
        return VERDICT_INVALID;
    }
    commit_list_root_of(&hash, kind, first, path->leaf_count, &items_root);
    return digest_equal(&hash, root) ? VERDICT_VALID : VERDICT_INVALID;
}
