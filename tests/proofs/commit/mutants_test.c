/*
 * Goal: no opening or checkpoint that only resembles a valid one is accepted.
 *
 * Method: openings of leaves, items and groups of leaves are changed in ways that know their
 * structure (siblings exchanged, repeated and dropped with their counts, indexes moved, parts taken
 * from other valid openings) and in ways that do not (bits, bytes, cuts). Every opening that
 * differs from the good one must be refused: a true statement has one encoding. Then every bit of a
 * checkpoint of 64 KiB is flipped, and it is cut at every length.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/endian.h"
#include "proofs/commit/commit.h"
#include "proofs/format/safetensors.h"
#include "tests/support/proofs/merkle_multi.h"
#include "tests/support/test.h"

#define LEAVES       37
#define TENSOR_SIZE  (LEAVES * MERKLE_LEAF_SIZE - 100)
#define ITEMS        29
#define GROUP        6
#define PART_MAX     2048
#define MUTANTS_FULL 1000000
#define MUTANTS      40000

/* The parts of an opening; a part that is not used has size 0. */
struct opening {
    uint8_t header[COMMIT_TENSOR_HEADER_MAX + 8];
    size_t header_size;
    uint8_t item[MERKLE_LEAF_SIZE + 8];
    size_t item_size;
    uint8_t proof[PART_MAX];
    size_t proof_size;
    size_t siblings_at; /* in proof */
};

/* ---- what was committed to ---- */

static const struct tensor tensor = {
    .name = "weight", .dtype = DTYPE_U8, .rank = 1, .dims = {TENSOR_SIZE}, .count = TENSOR_SIZE};
static uint8_t tensor_bytes[TENSOR_SIZE];
static struct digest tensor_root;
static struct digest items[ITEMS];
static struct digest item_hashes[ITEMS];
static struct digest list_root;
static struct digest group_root;

static void commit_all(void)
{
    uint64_t seed = 5;
    struct merkle_leaves leaves;

    test_random_fill(&seed, tensor_bytes, sizeof(tensor_bytes));
    test_random_fill(&seed, items, sizeof(items));
    commit_tensor_root(&tensor_root, COMMIT_TENSOR, &tensor, tensor_bytes, 1);
    commit_list_root(&list_root, COMMIT_SEGMENT, 70, items, ITEMS);
    for (size_t i = 0; i < ITEMS; i++) {
        merkle_leaf_hash(&item_hashes[i], items[i].bytes, DIGEST_SIZE);
    }
    merkle_leaves_init_hashes(&leaves, item_hashes, ITEMS);
    merkle_root(&group_root, &leaves);
}

static void open_leaf(struct opening *opening, uint64_t index)
{
    struct merkle_leaves leaves;
    struct merkle_path path;
    struct digest leaves_root;
    size_t from = index * MERKLE_LEAF_SIZE;
    size_t left = TENSOR_SIZE - from;

    memset(opening, 0, sizeof(*opening));
    merkle_leaves_init_bytes(&leaves, tensor_bytes, TENSOR_SIZE);
    merkle_root(&leaves_root, &leaves);
    merkle_path_build(&path, &leaves, index);
    opening->header_size =
        commit_tensor_header(opening->header, COMMIT_TENSOR, &tensor, &leaves_root);
    memcpy(opening->item, tensor_bytes + from, left < MERKLE_LEAF_SIZE ? left : MERKLE_LEAF_SIZE);
    opening->item_size = MERKLE_LEAF_SIZE;
    opening->proof_size = merkle_path_write(opening->proof, &path);
    opening->siblings_at = 18;
}

static void open_item(struct opening *opening, uint64_t index)
{
    struct merkle_leaves leaves;
    struct merkle_path path;

    memset(opening, 0, sizeof(*opening));
    merkle_leaves_init_hashes(&leaves, item_hashes, ITEMS);
    merkle_path_build(&path, &leaves, index);
    memcpy(opening->item, items[index].bytes, DIGEST_SIZE);
    opening->item_size = DIGEST_SIZE;
    opening->proof_size = merkle_path_write(opening->proof, &path);
    opening->siblings_at = 18;
}

/* Leaves index, index + 2, index + 6, ... around the list; the items stand in a row. */
static void open_group(struct opening *opening, uint64_t index)
{
    uint64_t indexes[GROUP];
    struct digest siblings[MERKLE_MULTI_SIBLINGS(GROUP)];
    struct merkle_multi multi = {.indexes = indexes,
                                 .index_count = GROUP,
                                 .index_capacity = GROUP,
                                 .siblings = siblings,
                                 .sibling_capacity = MERKLE_MULTI_SIBLINGS(GROUP)};
    struct merkle_leaves leaves;

    memset(opening, 0, sizeof(*opening));
    for (uint64_t i = 0; i < GROUP; i++) {
        indexes[i] = index % 4 + i * (i + 1) / 2 + i / 3;
        memcpy(opening->item + i * DIGEST_SIZE, items[indexes[i]].bytes, DIGEST_SIZE);
    }
    merkle_leaves_init_hashes(&leaves, item_hashes, ITEMS);
    assert_int_equal(merkle_multi_build(&multi, &leaves), STATUS_OK);
    opening->item_size = (size_t)GROUP * DIGEST_SIZE;
    opening->proof_size = merkle_multi_bytes(&multi);
    merkle_multi_write(opening->proof, &multi);
    opening->siblings_at = 16 + 8 * GROUP;
}

/* ---- the verifiers ---- */

static enum verdict check_leaf(const struct opening *opening)
{
    struct merkle_path path;

    if (opening->item_size != MERKLE_LEAF_SIZE ||
        merkle_path_read(&path, opening->proof, opening->proof_size) != STATUS_OK) {
        return VERDICT_INVALID;
    }
    return commit_leaf_check(&tensor_root, opening->header, opening->header_size, opening->item,
                             &path);
}

static enum verdict check_item(const struct opening *opening)
{
    struct merkle_path path;

    if (opening->header_size != 0 ||
        merkle_path_read(&path, opening->proof, opening->proof_size) != STATUS_OK) {
        return VERDICT_INVALID;
    }
    return commit_item_check(&list_root, COMMIT_SEGMENT, 70, opening->item, opening->item_size,
                             &path);
}

static enum verdict check_group(const struct opening *opening)
{
    uint64_t indexes[2 * GROUP];
    struct digest siblings[MERKLE_MULTI_SIBLINGS(GROUP)];
    struct digest hashes[2 * GROUP];
    struct merkle_multi multi = {.indexes = indexes,
                                 .index_capacity = 2 * GROUP,
                                 .siblings = siblings,
                                 .sibling_capacity = MERKLE_MULTI_SIBLINGS(GROUP)};

    if (opening->header_size != 0 ||
        merkle_multi_read(&multi, opening->proof, opening->proof_size) != STATUS_OK ||
        multi.leaf_count != ITEMS ||
        opening->item_size != (size_t)multi.index_count * DIGEST_SIZE) {
        return VERDICT_INVALID;
    }
    for (uint32_t i = 0; i < multi.index_count; i++) {
        merkle_leaf_hash(&hashes[i], opening->item + (size_t)i * DIGEST_SIZE, DIGEST_SIZE);
    }
    return merkle_multi_check(&multi, hashes, &group_root);
}

struct kind {
    void (*open)(struct opening *opening, uint64_t index);
    enum verdict (*check)(const struct opening *opening);
    uint64_t places;
};

static const struct kind kinds[] = {
    {open_leaf, check_leaf, LEAVES}, {open_item, check_item, ITEMS}, {open_group, check_group, 4}};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* ---- the mutations ---- */

static void flip_bit(uint8_t *bytes, size_t size, uint64_t *seed)
{
    if (size > 0) {
        bytes[test_random_below(seed, size)] ^= (uint8_t)(1 << test_random_below(seed, 8));
    }
}

static void set_byte(uint8_t *bytes, size_t size, uint64_t *seed)
{
    static const uint8_t values[] = {0x00, 0x01, 0x7F, 0x80, 0xFF};

    if (size > 0) {
        bytes[test_random_below(seed, size)] = values[test_random_below(seed, sizeof(values))];
    }
}

static void resize(size_t *size, size_t size_max, uint64_t *seed)
{
    size_t change = 1 + test_random_below(seed, 40);

    if (test_random_below(seed, 2) == 0) {
        *size = *size > change ? *size - change : 0;
    } else {
        *size = *size + change < size_max ? *size + change : size_max;
    }
}

/* Adds a small number to one of the big-endian fields before the siblings. */
static void move_number(struct opening *opening, uint64_t *seed)
{
    static const int64_t steps[] = {-1, 1, -2, 2, 16, -16, 64, INT64_MIN};
    size_t at = 8 * test_random_below(seed, opening->siblings_at / 8);
    uint64_t value = endian_load_be64(opening->proof + at);

    endian_store_be64(opening->proof + at, value + (uint64_t)steps[test_random_below(seed, 8)]);
}

/* Exchanges, repeats, drops or doubles a sibling; the count in the proof follows. */
static void move_sibling(struct opening *opening, uint64_t *seed)
{
    size_t count = (opening->proof_size - opening->siblings_at) / DIGEST_SIZE;
    uint8_t *siblings = opening->proof + opening->siblings_at;
    /* The count stands in the last byte before what follows it: small enough for one byte. */
    uint8_t *count_byte = opening->siblings_at == 18 ? opening->proof + 17 : opening->proof + 15;
    struct digest kept;
    size_t from;
    size_t to;

    if (opening->proof_size < opening->siblings_at || count < 2) {
        return;
    }
    from = test_random_below(seed, count);
    to = test_random_below(seed, count);
    memcpy(&kept, siblings + from * DIGEST_SIZE, DIGEST_SIZE);
    switch (test_random_below(seed, 4)) {
    case 0:
        memmove(siblings + from * DIGEST_SIZE, siblings + to * DIGEST_SIZE, DIGEST_SIZE);
        memcpy(siblings + to * DIGEST_SIZE, &kept, DIGEST_SIZE);
        break;
    case 1:
        memcpy(siblings + to * DIGEST_SIZE, &kept, DIGEST_SIZE);
        break;
    case 2:
        memmove(siblings + from * DIGEST_SIZE, siblings + (from + 1) * DIGEST_SIZE,
                (count - from - 1) * DIGEST_SIZE);
        opening->proof_size -= DIGEST_SIZE;
        (*count_byte)--;
        break;
    default:
        memcpy(siblings + count * DIGEST_SIZE, &kept, DIGEST_SIZE);
        opening->proof_size += DIGEST_SIZE;
        (*count_byte)++;
        break;
    }
}

/* Takes one part from another valid opening, perhaps of another kind. */
static void take_part(struct opening *opening, uint64_t *seed)
{
    const struct kind *kind = &kinds[test_random_below(seed, KINDS)];
    struct opening other;

    kind->open(&other, test_random_below(seed, kind->places));
    switch (test_random_below(seed, 3)) {
    case 0:
        memcpy(opening->header, other.header, sizeof(other.header));
        opening->header_size = other.header_size;
        break;
    case 1:
        memcpy(opening->item, other.item, sizeof(other.item));
        opening->item_size = other.item_size;
        break;
    default:
        memcpy(opening->proof, other.proof, sizeof(other.proof));
        opening->proof_size = other.proof_size;
        opening->siblings_at = other.siblings_at;
        break;
    }
}

static void mutate(struct opening *opening, uint64_t *seed)
{
    switch (test_random_below(seed, 9)) {
    case 0:
        flip_bit(opening->header, opening->header_size, seed);
        break;
    case 1:
        flip_bit(opening->item, opening->item_size, seed);
        break;
    case 2:
        flip_bit(opening->proof, opening->proof_size, seed);
        break;
    case 3:
        set_byte(opening->header, opening->header_size, seed);
        break;
    case 4:
        set_byte(opening->proof, opening->siblings_at, seed);
        break;
    case 5:
        resize(&opening->proof_size, sizeof(opening->proof), seed);
        break;
    case 6:
        move_number(opening, seed);
        break;
    case 7:
        move_sibling(opening, seed);
        break;
    default:
        take_part(opening, seed);
        break;
    }
}

static bool same(const struct opening *left, const struct opening *right)
{
    return left->header_size == right->header_size && left->item_size == right->item_size &&
           left->proof_size == right->proof_size &&
           memcmp(left->header, right->header, left->header_size) == 0 &&
           memcmp(left->item, right->item, left->item_size) == 0 &&
           memcmp(left->proof, right->proof, left->proof_size) == 0;
}

/* A mutant may happen to be another valid opening (parts of one place, all taken over). */
static bool is_valid_elsewhere(const struct kind *kind, const struct opening *mutant)
{
    for (uint64_t place = 0; place < kind->places; place++) {
        struct opening good;

        kind->open(&good, place);
        if (same(&good, mutant)) {
            return true;
        }
    }
    return false;
}

static void test_mutants_of_openings_are_refused(void **state)
{
    uint64_t count = test_share(MUTANTS_FULL, MUTANTS);
    uint64_t seed = 6;
    struct opening good;
    const struct kind *kind = NULL;

    (void)state;
    commit_all();
    for (uint64_t i = 0; i < count; i++) {
        struct opening mutant;

        if (i % 100 == 0) {
            kind = &kinds[i / 100 % KINDS];
            kind->open(&good, test_random_below(&seed, kind->places));
            assert_int_equal(kind->check(&good), VERDICT_VALID);
        }
        mutant = good;
        for (uint64_t changes = 1 + test_random_below(&seed, 3); changes > 0; changes--) {
            mutate(&mutant, &seed);
        }
        if (kind->check(&mutant) == VERDICT_VALID && !is_valid_elsewhere(kind, &mutant)) {
            fail_msg("mutant %llu is accepted", (unsigned long long)i);
        }
    }
}

/* ---- a checkpoint ---- */

static const struct tensor parts[] = {
    {.name = "h.0.weight", .dtype = DTYPE_F32, .rank = 2, .dims = {100, 120}, .count = 12000},
    {.name = "h.0.bias", .dtype = DTYPE_F32, .rank = 1, .dims = {120}, .count = 120},
    {.name = "step", .dtype = DTYPE_U32, .rank = 0, .count = 1},
    {.name = "flags", .dtype = DTYPE_U8, .rank = 1, .dims = {16788}, .count = 16788},
};
#define PARTS (sizeof(parts) / sizeof(parts[0]))

/* The state root of a checkpoint, if it holds exactly these tensors. */
static enum verdict checkpoint_check(const char *path, const struct digest *root)
{
    static uint8_t bytes[1 << 16];
    struct safetensors file;
    struct digest roots[PARTS];
    struct digest got;
    enum verdict verdict = VERDICT_INVALID;

    if (safetensors_open(&file, NULL, path) != STATUS_OK) {
        return VERDICT_INVALID;
    }
    if (file.entry_count == PARTS) {
        verdict = VERDICT_VALID;
    }
    for (size_t i = 0; i < PARTS && verdict == VERDICT_VALID; i++) {
        const struct safetensors_entry *entry = safetensors_find(&file, parts[i].name);
        uint64_t size = commit_tensor_size(&parts[i]);

        if (entry == NULL || entry->element != element_of_dtype(parts[i].dtype) ||
            entry->rank != parts[i].rank || entry->size != size ||
            memcmp(entry->dims, parts[i].dims, sizeof(parts[i].dims)) != 0 ||
            safetensors_read(&file, NULL, bytes, entry, (size_t)size, 0) != STATUS_OK) {
            verdict = VERDICT_INVALID;
        } else {
            commit_tensor_root(&roots[i], COMMIT_TENSOR, &parts[i], bytes, 1);
        }
    }
    safetensors_close(&file);
    if (verdict == VERDICT_VALID) {
        commit_list_root(&got, COMMIT_STATE, 0, roots, PARTS);
        verdict = digest_equal(&got, root) ? VERDICT_VALID : VERDICT_INVALID;
    }
    return verdict;
}

static void write_checkpoint(const char *path, struct digest *root)
{
    static uint8_t bytes[1 << 16];
    struct safetensors_entry entries[PARTS] = {0};
    const struct safetensors_plan plan = {.entries = entries, .entry_count = PARTS};
    struct safetensors_writer writer;
    struct digest roots[PARTS];
    uint64_t seed = 8;

    for (size_t i = 0; i < PARTS; i++) {
        memcpy(entries[i].name, parts[i].name, strlen(parts[i].name));
        entries[i].element = element_of_dtype(parts[i].dtype);
        entries[i].rank = parts[i].rank;
        memcpy(entries[i].dims, parts[i].dims, sizeof(parts[i].dims));
    }
    assert_int_equal(safetensors_writer_open_plan(&writer, NULL, path, &plan), STATUS_OK);
    for (size_t i = 0; i < PARTS; i++) {
        size_t size = (size_t)commit_tensor_size(&parts[i]);

        test_random_fill(&seed, bytes, size);
        commit_tensor_root(&roots[i], COMMIT_TENSOR, &parts[i], bytes, 1);
        assert_int_equal(safetensors_writer_add(&writer, NULL, bytes, size), STATUS_OK);
    }
    assert_int_equal(safetensors_writer_keep(&writer, NULL), STATUS_OK);
    commit_list_root(root, COMMIT_STATE, 0, roots, PARTS);
}

static void test_flipped_and_cut_checkpoints_are_detected(void **state)
{
    static uint8_t bytes[1 << 17];
    struct digest root;
    char path[512];
    int descriptor;
    size_t size;
    uint64_t step;

    (void)state;
    snprintf(path, sizeof(path), "%s/state.safetensors", test_temp_dir());
    write_checkpoint(path, &root);
    assert_int_equal(checkpoint_check(path, &root), VERDICT_VALID);
    descriptor = open(path, O_RDWR);
    assert_true(descriptor >= 0);
    size = (size_t)read(descriptor, bytes, sizeof(bytes));
    assert_in_range(size, 1 << 16, sizeof(bytes) - 1);
    step = size * 8 / test_share(size * 8, 8000);
    for (uint64_t bit = 0; bit < size * 8; bit += bit < 4096 ? 1 : step) {
        uint8_t changed = bytes[bit / 8] ^ (uint8_t)(1 << bit % 8);

        assert_int_equal(pwrite(descriptor, &changed, 1, (off_t)(bit / 8)), 1);
        assert_int_equal(checkpoint_check(path, &root), VERDICT_INVALID);
        assert_int_equal(pwrite(descriptor, &bytes[bit / 8], 1, (off_t)(bit / 8)), 1);
    }
    assert_int_equal(checkpoint_check(path, &root), VERDICT_VALID);
    step = size / test_share(size, 2000);
    for (size_t cut = size - 1;; cut -= cut > 1000 ? step : 1) {
        assert_int_equal(ftruncate(descriptor, (off_t)cut), 0);
        assert_int_equal(checkpoint_check(path, &root), VERDICT_INVALID);
        if (cut == 0) {
            break;
        }
    }
    close(descriptor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutants_of_openings_are_refused),
        cmocka_unit_test(test_flipped_and_cut_checkpoints_are_detected),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
