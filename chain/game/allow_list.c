/* allow_list.c - see allow_list.h. */
#include "chain/game/allow_list.h"

#include <assert.h>
#include <string.h>

#include "chain/codec/abi.h"

static struct hash32 leaf_of(const struct address *account)
{
    uint8_t bytes[ABI_WORD_SIZE];
    struct byte_writer writer;

    byte_writer_init(&writer, bytes, sizeof(bytes));
    abi_put_address(&writer, account);
    return keccak256(bytes, sizeof(bytes));
}

static struct hash32 node_of(const struct hash32 *one, const struct hash32 *other)
{
    bool in_order = memcmp(one->bytes, other->bytes, HASH32_SIZE) < 0;
    struct hash32 pair[2] = {in_order ? *one : *other, in_order ? *other : *one};

    return keccak256(pair, sizeof(pair));
}

bool allow_list_admits(const struct hash32 *root, const struct address *account,
                       const struct game_hashes *path)
{
    struct hash32 node = leaf_of(account);

    if (hash32_is_zero(root)) {
        return true;
    }
    if (path->count > GAME_ALLOW_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < path->count; i++) {
        struct hash32 sibling;

        memcpy(sibling.bytes, path->hashes[i].bytes, HASH32_SIZE);
        node = node_of(&node, &sibling);
    }
    return hash32_equal(&node, root);
}

/* The node over the accounts from index * 2^level, of which there is at least one. */
static struct hash32 subtree_root(const struct address *accounts, uint32_t count, uint32_t level,
                                  uint32_t index)
{
    struct hash32 pending[GAME_ALLOW_MAX];
    uint32_t first = index << level;
    uint32_t end = count - first > (1u << level) ? first + (1u << level) : count;
    uint32_t done = 0;
    struct hash32 node;
    bool risen = false;

    /* As a binary counter adds: pending[k] covers 2^k accounts while bit k of done is set. */
    for (uint32_t i = first; i < end; i++, done++) {
        node = leaf_of(&accounts[i]);
        for (uint32_t k = 0; ((done >> k) & 1) != 0; k++) {
            node = node_of(&pending[k], &node);
        }
        pending[__builtin_ctz(done + 1)] = node;
    }
    for (uint32_t k = 0; k < GAME_ALLOW_MAX && (done >> k) != 0; k++) {
        if (((done >> k) & 1) != 0) {
            node = risen ? node_of(&pending[k], &node) : pending[k];
            risen = true;
        }
    }
    return node;
}

static uint32_t height_of(uint32_t count)
{
    uint32_t height = 0;

    while ((1u << height) < count) {
        height++;
    }
    return height;
}

void allow_list_root(struct hash32 *root, const struct address *accounts, uint32_t count)
{
    assert(count > 0 && count <= ALLOW_LIST_ACCOUNTS_MAX);
    *root = subtree_root(accounts, count, height_of(count), 0);
}

void allow_list_path(struct digest path[GAME_ALLOW_MAX], uint32_t *sibling_count,
                     const struct address *accounts, uint32_t count, uint32_t index)
{
    assert(index < count && count <= ALLOW_LIST_ACCOUNTS_MAX);
    *sibling_count = 0;
    for (uint32_t level = 0; level < height_of(count); level++) {
        uint32_t sibling = (index >> level) ^ 1;

        if ((sibling << level) < count) {
            struct hash32 node = subtree_root(accounts, count, level, sibling);

            memcpy(path[(*sibling_count)++].bytes, node.bytes, DIGEST_SIZE);
        }
    }
}
