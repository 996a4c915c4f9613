/*
 * Goal: the commitments of fixtures/commitments stay as they are, so that reader.py, contracts and
 * old bundles agree with this program.
 *
 * Method: a fixed seed makes everything again, which is compared with the files byte for byte.
 * After a deliberate change of a format (a new tag) LOCKSTEP_WRITE_FIXTURES=1 writes the files.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/file.h"
#include "proofs/commit/commit.h"
#include "proofs/format/safetensors.h"
#include "tests/support/proofs/merkle_multi.h"
#include "tests/support/proofs/npy_writer.h"
#include "tests/support/test.h"

#define FOLDER       "fixtures/commitments/"
#define TENSORS      5
#define STATES       11
#define ITEMS_MAX    16
#define DATA_MAX     6000
#define OPENED       1 /* the tensor whose leaf is opened: three leaves, the last one short */
#define OPENED_LEAF  2
#define FIXTURE_MAX  (1u << 20)
#define SEGMENT_STEP 1100

static const struct tensor tensors[TENSORS] = {
    {.name = "step", .dtype = DTYPE_U32, .rank = 0, .count = 1},
    {.name = "h.0.mlp.weight", .dtype = DTYPE_F32, .rank = 2, .dims = {25, 26}, .count = 650},
    {.name = "scale/row-0", .dtype = DTYPE_F32, .rank = 1, .dims = {256}, .count = 256},
    {.name = "q_exponent", .dtype = DTYPE_I16, .rank = 3, .dims = {2, 3, 5}, .count = 30},
    {.name = "flags", .dtype = DTYPE_U8, .rank = 1, .dims = {1025}, .count = 1025},
};

static uint8_t tensor_data[TENSORS][DATA_MAX];

static void fill_tensors(void)
{
    uint64_t seed = 2026;

    for (size_t i = 0; i < TENSORS; i++) {
        test_random_fill(&seed, tensor_data[i], (size_t)commit_tensor_size(&tensors[i]));
    }
}

static json_t *hex_of(const void *bytes, size_t size)
{
    char text[HEX_SIZE(DATA_MAX)];

    assert_true(size <= DATA_MAX);
    hex_encode(text, bytes, size);
    return json_string(text);
}

static void set(json_t *object, const char *key, json_t *value)
{
    assert_int_equal(json_object_set_new(object, key, value), 0);
}

static void set_digest(json_t *object, const char *key, const struct digest *digest)
{
    set(object, key, hex_of(digest->bytes, DIGEST_SIZE));
}

static json_t *path_hex(const struct merkle_path *path)
{
    uint8_t bytes[MERKLE_PATH_BYTES_MAX];

    return hex_of(bytes, merkle_path_write(bytes, path));
}

static json_t *digests_json(const struct digest *digests, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        assert_int_equal(json_array_append_new(array, hex_of(digests[i].bytes, DIGEST_SIZE)), 0);
    }
    return array;
}

/* The path of one item of a list of roots. */
static json_t *item_json(const struct digest *items, size_t count, size_t index)
{
    struct digest hashes[ITEMS_MAX];
    struct merkle_leaves leaves;
    struct merkle_path path;
    json_t *json = json_object();

    for (size_t i = 0; i < count; i++) {
        merkle_leaf_hash(&hashes[i], items[i].bytes, DIGEST_SIZE);
    }
    merkle_leaves_init_hashes(&leaves, hashes, count);
    merkle_path_build(&path, &leaves, index);
    set_digest(json, "item", &items[index]);
    set(json, "path", path_hex(&path));
    return json;
}

static json_t *state_json(struct digest *root)
{
    struct digest roots[TENSORS];
    json_t *json = json_object();
    json_t *order = json_array();

    for (size_t i = 0; i < TENSORS; i++) {
        commit_tensor_root(&roots[i], COMMIT_TENSOR, &tensors[i], tensor_data[i], 1);
        assert_int_equal(json_array_append_new(order, json_string(tensors[i].name)), 0);
    }
    commit_list_root(root, COMMIT_STATE, 0, roots, TENSORS);
    set(json, "file", json_string("state.safetensors"));
    set(json, "order", order);
    set(json, "tensor_roots", digests_json(roots, TENSORS));
    set_digest(json, "root", root);
    set(json, "opening", item_json(roots, TENSORS, OPENED));
    return json;
}

static json_t *leaf_json(void)
{
    const struct tensor *tensor = &tensors[OPENED];
    uint64_t size = commit_tensor_size(tensor);
    struct merkle_leaves leaves;
    struct merkle_path path;
    struct digest leaves_root;
    uint8_t header[COMMIT_TENSOR_HEADER_MAX];
    uint8_t leaf[MERKLE_LEAF_SIZE] = {0};
    json_t *json = json_object();

    merkle_leaves_init_bytes(&leaves, tensor_data[OPENED], size);
    merkle_root(&leaves_root, &leaves);
    merkle_path_build(&path, &leaves, OPENED_LEAF);
    memcpy(leaf, tensor_data[OPENED] + (size_t)OPENED_LEAF * MERKLE_LEAF_SIZE,
           (size_t)size - (size_t)OPENED_LEAF * MERKLE_LEAF_SIZE);
    set(json, "tensor", json_string(tensor->name));
    set(json, "header",
        hex_of(header, commit_tensor_header(header, COMMIT_TENSOR, tensor, &leaves_root)));
    set(json, "leaf", hex_of(leaf, sizeof(leaf)));
    set(json, "path", path_hex(&path));
    return json;
}

/* A list of made-up roots. */
static json_t *roots_json(enum commit_list kind, uint64_t first, size_t count, uint64_t seed)
{
    struct digest items[ITEMS_MAX];
    struct digest root;
    json_t *json = json_object();

    test_random_fill(&seed, items, sizeof(items));
    commit_list_root(&root, kind, first, items, count);
    set(json, "first", json_integer((json_int_t)first));
    set(json, "items", digests_json(items, count));
    set_digest(json, "root", &root);
    set(json, "opening", item_json(items, count, count - 1));
    return json;
}

static json_t *program_json(void)
{
    struct commit_roots roots;
    struct digest root;
    json_t *json = json_object();
    json_t *items = json_array();
    uint64_t seed = 3;

    commit_roots_init(&roots, COMMIT_PROGRAM, 29);
    for (size_t i = 0; i < 7; i++) {
        uint8_t descriptor[200];
        size_t size = 31 * i % 200; /* one is empty, one has the size of a node's two children */

        test_random_fill(&seed, descriptor, sizeof(descriptor));
        size = i == 6 ? 64 : size;
        assert_int_equal(commit_roots_add_bytes(&roots, descriptor, size), STATUS_OK);
        assert_int_equal(json_array_append_new(items, hex_of(descriptor, size)), 0);
    }
    commit_roots_end(&roots, &root);
    set(json, "first", json_integer(29));
    set(json, "items", items);
    set_digest(json, "root", &root);
    return json;
}

static json_t *multi_json(void)
{
    struct digest hashes[ITEMS_MAX];
    uint64_t indexes[] = {0, 3, 4, 12};
    struct digest siblings[MERKLE_MULTI_SIBLINGS(4)];
    uint8_t bytes[DATA_MAX];
    struct merkle_multi multi = {.indexes = indexes,
                                 .index_count = 4,
                                 .index_capacity = 4,
                                 .siblings = siblings,
                                 .sibling_capacity = MERKLE_MULTI_SIBLINGS(4)};
    struct merkle_leaves leaves;
    struct digest root;
    json_t *json = json_object();
    uint64_t seed = 4;

    test_random_fill(&seed, hashes, sizeof(hashes));
    merkle_leaves_init_hashes(&leaves, hashes, 13);
    merkle_root(&root, &leaves);
    assert_int_equal(merkle_multi_build(&multi, &leaves), STATUS_OK);
    merkle_multi_write(bytes, &multi);
    set(json, "leaf_hashes", digests_json(hashes, 13));
    set(json, "proof", hex_of(bytes, merkle_multi_bytes(&multi)));
    set_digest(json, "root", &root);
    return json;
}

static json_t *job_json(void)
{
    static const char job[] = "not a job, but bytes";
    struct digest id;
    json_t *json = json_object();

    commit_job_id(&id, job, strlen(job));
    set(json, "bytes", hex_of(job, strlen(job)));
    set_digest(json, "id", &id);
    return json;
}

static void data_tokens(uint16_t tokens[1500])
{
    for (size_t i = 0; i < 1500; i++) {
        tokens[i] = (uint16_t)(i * i % 50257);
    }
}

static json_t *data_json(void)
{
    const struct tensor tensor = {
        .name = "data", .dtype = DTYPE_U16, .rank = 2, .dims = {3, 500}, .count = 1500};
    uint16_t tokens[1500];
    struct digest root;
    json_t *json = json_object();

    data_tokens(tokens);
    commit_tensor_root(&root, COMMIT_DATA, &tensor, tokens, 1);
    set(json, "file", json_string("tokens.npy"));
    set_digest(json, "root", &root);
    return json;
}

static void write_state(const char *path)
{
    struct safetensors_entry entries[TENSORS] = {0};
    const struct safetensors_plan plan = {.entries = entries, .entry_count = TENSORS};
    struct safetensors_writer writer;

    for (size_t i = 0; i < TENSORS; i++) {
        memcpy(entries[i].name, tensors[i].name, strlen(tensors[i].name));
        entries[i].element = element_of_dtype(tensors[i].dtype);
        entries[i].rank = tensors[i].rank;
        memcpy(entries[i].dims, tensors[i].dims, sizeof(tensors[i].dims));
    }
    assert_int_equal(safetensors_writer_open_plan(&writer, NULL, path, &plan), STATUS_OK);
    for (size_t i = 0; i < TENSORS; i++) {
        assert_int_equal(safetensors_writer_add(&writer, NULL, tensor_data[i],
                                                (size_t)commit_tensor_size(&tensors[i])),
                         STATUS_OK);
    }
    assert_int_equal(safetensors_writer_keep(&writer, NULL), STATUS_OK);
}

static void write_tokens(const char *path)
{
    struct npy npy = {.element = ELEMENT_U16, .rank = 2, .dims = {3, 500}};
    uint16_t tokens[1500];

    data_tokens(tokens);
    assert_int_equal(npy_write(path, NULL, &npy, tokens), STATUS_OK);
}

static void write_vectors(const char *path)
{
    json_t *json = json_object();
    struct digest root;
    char *text;

    set(json, "state", state_json(&root));
    set(json, "leaf", leaf_json());
    set(json, "data", data_json());
    set(json, "segment", roots_json(COMMIT_SEGMENT, SEGMENT_STEP, STATES, 1));
    set(json, "trace", roots_json(COMMIT_TRACE, 0, ITEMS_MAX, 2));
    set(json, "batch", roots_json(COMMIT_BATCH, 5, ITEMS_MAX, 6));
    set(json, "program", program_json());
    set(json, "job", job_json());
    set(json, "multi", multi_json());
    text = json_dumps(json, JSON_INDENT(1));
    json_decref(json);
    assert_non_null(text);
    assert_int_equal(file_write(path, NULL, text, strlen(text), 0644), STATUS_OK);
    free(text);
}

/* Makes the file again and compares it with the fixture. */
static void check_fixture(const char *name, void (*write)(const char *path))
{
    char made_path[512];
    char kept_path[512];
    struct file_bytes made;
    struct file_bytes kept;

    snprintf(kept_path, sizeof(kept_path), FOLDER "%s", name);
    if (getenv("LOCKSTEP_WRITE_FIXTURES") != NULL) {
        write(kept_path);
    }
    snprintf(made_path, sizeof(made_path), "%s/%s", test_temp_dir(), name);
    write(made_path);
    assert_int_equal(file_read(&made, NULL, made_path, FIXTURE_MAX), STATUS_OK);
    assert_int_equal(file_read(&kept, NULL, kept_path, FIXTURE_MAX), STATUS_OK);
    assert_int_equal(made.size, kept.size);
    assert_memory_equal(made.data, kept.data, made.size);
    file_bytes_release(&made);
    file_bytes_release(&kept);
}

static void test_commitments_are_those_of_the_fixtures(void **state)
{
    (void)state;
    fill_tensors();
    check_fixture("vectors.json", write_vectors);
    check_fixture("state.safetensors", write_state);
    check_fixture("tokens.npy", write_tokens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commitments_are_those_of_the_fixtures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
