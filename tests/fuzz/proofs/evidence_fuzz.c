/*
 * evidence_fuzz.c - any bytes as evidence. The first byte chooses the case.
 *
 * 0 and 1: evidence about a small step with one wrong element. Evidence cannot be forged: if it is
 * upheld, it is about that element, or about the state that differs from the trace. 2: an evidence
 * file. 3: 32 bytes of a trace root, then evidence under a program of its own, whose program item
 * is put under the root, so that hostile descriptors reach the rules.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "proofs/dispute/evidence_file.h"
#include "tests/support/dispute/exhibit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void insist(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "evidence fuzz: %s\n", what);
        abort();
    }
}

static void judge_small(const uint8_t *data, size_t size, bool guilty)
{
    struct exhibit exhibit;
    struct evidence_target target = {0};
    struct evidence_ruling ruling;

    exhibit_of_kind(&exhibit, OP_STEP_NEXT, MOOD_TAME, 3);
    exhibit_make_right(&exhibit, &target);
    if (guilty) {
        exhibit_set(&exhibit, &target, exhibit_get(&exhibit, &target) + 1);
    }
    ruling = exhibit_judge(&exhibit, data, size);
    insist(guilty || ruling.answer != EVIDENCE_UPHELD, "an honest one is found guilty");
    insist((ruling.answer == EVIDENCE_REFUSED) == (ruling.reason != EVIDENCE_FINE),
           "a ruling without its reason");
    exhibit_close(&exhibit);
}

static void read_back(const uint8_t *data, size_t size)
{
    struct evidence_file file;
    struct evidence_ruling ruling;
    struct buffer again;

    if (evidence_file_read(&file, data, size, NULL) != STATUS_OK) {
        return;
    }
    buffer_init(&again, EVIDENCE_FILE_SIZE_MAX);
    insist(evidence_file_write(&again, &file, NULL) == STATUS_OK, "a file that is not written");
    insist(again.size == size && memcmp(again.data, data, size) == 0, "another file");
    buffer_release(&again);
    insist(evidence_judge(&ruling, &file.context, file.evidence, file.size, NULL) == STATUS_OK,
           "no memory");
}

/* One item in the program, and one in the trace: the descriptor's first operand. */
static void judge_strange(const uint8_t *data, size_t size)
{
    struct evidence_context context = {0};
    struct evidence_ruling ruling;
    struct digest tree;

    if (size < 16 + 32) {
        return;
    }
    size_t descriptor = endian_load_be16(data + 14);

    if (data[13] == 0 && 16 + descriptor + 32 <= size) {
        struct digest root;

        merkle_leaf_hash(&root, data + 16, descriptor);
        commit_list_root_of(&context.program, COMMIT_PROGRAM, endian_load_be32(data + 9),
                            endian_load_be32(data + 5), &root);
        memcpy(tree.bytes, data + 16 + descriptor, DIGEST_SIZE);
        commit_list_root_of(&context.trace, COMMIT_TRACE, 0, endian_load_be32(data + 9), &tree);
    }
    insist(evidence_judge(&ruling, &context, data, size, NULL) == STATUS_OK, "no memory");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    switch (data[0] % 4) {
    case 0:
    case 1:
        judge_small(data + 1, size - 1, data[0] % 4 == 1);
        break;
    case 2:
        read_back(data + 1, size - 1);
        break;
    default:
        judge_strange(data + 1, size - 1);
        break;
    }
    return 0;
}
