/*
 * sha256_bench.c - hashing for commitments against libcrypto's SHA-256, one thread.
 *
 * The peer is one stream of libcrypto over the same bytes, as "openssl speed" measures it. "leaves
 * by libcrypto" hashes the same 1,025-byte messages one after the other.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include "bench/support/bench.h"
#include "proofs/hash/merkle.h"
#include "proofs/hash/sha256.h"

#define LEAVES 8192
#define SIZE   ((size_t)LEAVES * MERKLE_LEAF_SIZE)

struct work {
    uint8_t *bytes;
    struct digest *digests;
    enum sha256_isa isa;
    int threads;
};

static void peer_stream(void *context)
{
    struct work *work = context;

    SHA256(work->bytes, SIZE, work->digests[0].bytes);
}

/* SHA256_Init() and not EVP: it allocates nothing per message, so the peer is at its best. */
static void peer_leaves(void *context)
{
    struct work *work = context;
    const uint8_t prefix = 0;

    for (size_t i = 0; i < LEAVES; i++) {
        SHA256_CTX hash;

        SHA256_Init(&hash);
        SHA256_Update(&hash, &prefix, 1);
        SHA256_Update(&hash, work->bytes + i * MERKLE_LEAF_SIZE, MERKLE_LEAF_SIZE);
        SHA256_Final(work->digests[i].bytes, &hash);
    }
}

static void our_leaves(void *context)
{
    struct work *work = context;

    sha256_many(work->digests, 0, work->bytes, MERKLE_LEAF_SIZE, LEAVES, work->isa);
}

static void our_stream(void *context)
{
    struct work *work = context;

    sha256(&work->digests[0], work->bytes, SIZE);
}

static void our_root(void *context)
{
    struct work *work = context;
    struct merkle_leaves leaves;

    merkle_leaves_init_bytes(&leaves, work->bytes, SIZE);
    leaves.threads = work->threads;
    merkle_root(&work->digests[0], &leaves);
}

static void compare(struct bench *bench, const char *name, void (*ours)(void *),
                    void (*peer)(void *), struct work *work)
{
    const struct bench_case one = {
        .name = name,
        .unit = "GB/s",
        .work = (double)SIZE / 1e9,
        .ours = ours,
        .peer = peer,
        .context = work,
    };

    bench_compare(bench, &one);
}

int main(int argc, char **argv)
{
    static const char *const names[SHA256_ISA_COUNT] = {
        "leaves, best",       "leaves, scalar", "leaves, AVX2", "leaves, SHA instructions",
        "leaves, SHA of ARM", "leaves, AVX-512"};
    static uint8_t bytes[SIZE];
    static struct digest digests[LEAVES];
    struct work work = {bytes, digests, SHA256_ISA_BEST, 1};
    struct bench bench;

    for (size_t i = 0; i < SIZE; i++) {
        work.bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    }
    bench_init(&bench, "sha256", "libcrypto, one stream", argc, argv);
    for (int isa = 0; isa < SHA256_ISA_COUNT; isa++) {
        if (sha256_isa_usable((enum sha256_isa)isa)) {
            work.isa = (enum sha256_isa)isa;
            compare(&bench, names[isa], our_leaves, peer_stream, &work);
        }
    }
    work.isa = SHA256_ISA_BEST;
    compare(&bench, "leaves, best (peer: leaves by libcrypto)", our_leaves, peer_leaves, &work);
    compare(&bench, "one stream", our_stream, peer_stream, &work);
    compare(&bench, "Merkle root, 1 thread", our_root, peer_stream, &work);
    work.threads = 2;
    compare(&bench, "Merkle root, 2 threads", our_root, peer_stream, &work);
    return bench_finish(&bench);
}
