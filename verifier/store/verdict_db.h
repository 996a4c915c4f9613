/*
 * verdict_db.h - every verdict of this node, on disk before the node signs anything about it.
 *
 * It has one row for each segment that was judged, by chain, contract, job, index and commitment
 * (the state before the segment, its root, and whether the training is said to end there), and one
 * for each verdict that was sealed in a place of a draw. A row is on disk before the call returns.
 * A row that contradicts an older one is refused: no segment becomes right and false, no place gets
 * two verdicts. A node that signs only what the database took cannot contradict itself.
 *
 * Each row has a sum over its cells. What is damaged is set aside when the file is opened; what is
 * sound stays (verdict_tables.h).
 *
 * The file is locked for one process, so a second node with it is refused. It also holds the node's
 * secret, the source of salts and secret samples, and whether this machine was found at fault.
 */
#ifndef VERIFIER_STORE_VERDICT_DB_H
#define VERIFIER_STORE_VERDICT_DB_H

#include <jansson.h>

#include "base/digest.h"
#include "chain/game/ledger.h"

#define VERDICT_DB_EXPORT_SIZE_MAX ((size_t)256 << 20)
#define VERDICT_DB_FAULT_MAX       512

/* What was found about a segment: right, or false at a step. */
struct verdict_db_entry {
    struct ledger_place place;
    struct hash32 job;
    uint32_t segment;
    struct digest before;      /* the committed state root before the segment, */
    struct digest root;        /* and its own committed root */
    bool diverged;             /* the training is said to end with it */
    enum game_verdict verdict; /* RIGHT or FALSE */
    uint32_t step;             /* FALSE: counted within the segment, */
    struct digest pre_state;   /* and the committed states around it */
    struct digest post_state;
};

/* What was sealed in a place. */
struct verdict_db_seal {
    struct ledger_place place;
    struct hash32 segment; /* its hash */
    struct hash32 seed;    /* of the draw */
    uint32_t seat;
    enum game_verdict verdict;
    uint32_t step;             /* FALSE */
    struct game_leaves leaves; /* RIGHT */
};

struct verdict_db;

/* Makes the file when it is missing. STATUS_REFUSED: another process has it. */
MUST_CHECK enum status verdict_db_open(struct verdict_db **verdicts, const char *path,
                                       struct error *error);
void verdict_db_close(struct verdict_db *verdicts); /* NULL is fine */

/* What became of a damaged file when it was opened; empty: it was sound. */
const char *verdict_db_damage(const struct verdict_db *verdicts);

/* STATUS_OK: the row is there, new or old. STATUS_REFUSED: it contradicts an older row. */
MUST_CHECK enum status verdict_db_enter(struct verdict_db *verdicts,
                                        const struct verdict_db_entry *entry, struct error *error);

/* Reads the row of entry's place, job, segment, before, root and diverged. STATUS_NOT_FOUND: there
 * is none. */
MUST_CHECK enum status verdict_db_find(struct verdict_db_entry *entry, struct verdict_db *verdicts,
                                       struct error *error);

/* The same for the verdict of a place. Find: by place, segment, seed and seat. */
MUST_CHECK enum status verdict_db_seal(struct verdict_db *verdicts,
                                       const struct verdict_db_seal *seal, struct error *error);
MUST_CHECK enum status verdict_db_find_seal(struct verdict_db_seal *seal,
                                            struct verdict_db *verdicts, struct error *error);

/* keccak256(the secret, words, bytes): always the same, and nobody else can guess it. */
struct hash32 verdict_db_derive(const struct verdict_db *verdicts, const char *words,
                                const void *bytes, size_t size);

/* Why this machine must not sign; empty: it may. On disk before verdict_db_set_fault() returns; not
 * in an export, since it is about the machine. */
MUST_CHECK enum status verdict_db_fault(struct verdict_db *verdicts,
                                        char text[VERDICT_DB_FAULT_MAX], struct error *error);
MUST_CHECK enum status verdict_db_set_fault(struct verdict_db *verdicts, const char *text,
                                            struct error *error);

/* All rows and the secret; *view is the caller's. Who reads it can foresee secret samples. */
MUST_CHECK enum status verdict_db_export(json_t **view, struct verdict_db *verdicts,
                                         struct error *error);

/* Takes all rows of an export, or none if one contradicts. An empty database takes the secret
 * too. */
MUST_CHECK enum status verdict_db_import(uint64_t *added, struct verdict_db *verdicts,
                                         const json_t *view, struct error *error);

#endif /* VERIFIER_STORE_VERDICT_DB_H */
