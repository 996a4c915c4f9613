/*
 * verdict_db.h - the verdict database: what this node has ever found, written before anything is
 * signed.
 *
 * One row for each step that was judged, by chain, contract, job, segment, and what was committed:
 * the state before the segment and its root. A row is on disk before verdict_db_enter() returns. A
 * row that contradicts one that is there is refused, whoever asks and whatever else was lost: a
 * step cannot become true and false, a traced step cannot get another trace, and a segment that was
 * refuted is never proven. So whoever signs only what the book has taken cannot sign two statements
 * that contradict each other.
 *
 * The file is locked for one process: a second node with the same book is refused. It also keeps
 * a secret of the node's, from which salts and secret samples are drawn, and whether this machine
 * was found at fault: what must not be said must be remembered as well as what was.
 */
#ifndef VERIFIER_STORE_VERDICT_DB_H
#define VERIFIER_STORE_VERDICT_DB_H

#include <jansson.h>

#include "base/digest.h"
#include "chain/game/ledger.h"

#define VERDICT_DB_EXPORT_SIZE_MAX ((size_t)256 << 20)
#define VERDICT_DB_FAULT_MAX       512

enum verdict_db_verdict {
    VERDICT_DB_PROVEN = 1,
    VERDICT_DB_REFUTED = 2,
};

struct verdict_db_entry {
    struct ledger_place place;
    struct hash32 job;
    uint32_t segment;
    struct digest before; /* the state root that the segment begins with, */
    struct digest root;   /* and its own, as they were committed */
    uint32_t step;        /* counted within the segment */
    enum verdict_db_verdict verdict;
    struct digest pre_state; /* REFUTED: as they were committed */
    struct digest post_state;
    struct digest trace_root; /* PROVEN: of that step */
};

struct verdict_db;

/* Makes the file when it is missing. STATUS_REFUSED: another process has it. */
MUST_CHECK enum status verdict_db_open(struct verdict_db **verdicts, const char *path,
                                       struct error *error);
void verdict_db_close(struct verdict_db *verdicts); /* NULL is fine */

/* STATUS_OK: it is in the book, now or since before. STATUS_REFUSED: it contradicts the book. */
MUST_CHECK enum status verdict_db_enter(struct verdict_db *verdicts,
                                        const struct verdict_db_entry *entry, struct error *error);

/* Reads the row of entry's place, job, segment, before, root and step. STATUS_NOT_FOUND: there is
 * none. */
MUST_CHECK enum status verdict_db_find(struct verdict_db_entry *entry, struct verdict_db *verdicts,
                                       struct error *error);

/* The proven row of entry's place, job, segment, root and step, whatever the segment begins with.
 * STATUS_NOT_FOUND: there is none, or more than one. */
MUST_CHECK enum status verdict_db_find_proven(struct verdict_db_entry *entry,
                                              struct verdict_db *verdicts, struct error *error);

/* keccak256(the book's secret, words, bytes): the same for ever, and nobody else's guess. */
struct hash32 verdict_db_derive(const struct verdict_db *verdicts, const char *words,
                                const void *bytes, size_t size);

/* Why nothing is to be signed on this machine; empty: no fault was found, or it was looked into. It
 * is on disk before verdict_db_set_fault() returns, and no part of an export: it is the machine's.
 */
MUST_CHECK enum status verdict_db_fault(struct verdict_db *verdicts,
                                        char text[VERDICT_DB_FAULT_MAX], struct error *error);
MUST_CHECK enum status verdict_db_set_fault(struct verdict_db *verdicts, const char *text,
                                            struct error *error);

/* All rows and the secret; *view is the caller's. Whoever reads it can foresee secret samples. */
MUST_CHECK enum status verdict_db_export(json_t **view, struct verdict_db *verdicts,
                                         struct error *error);

/* Takes all rows of an export or, if one contradicts, none. An empty book takes the secret too. */
MUST_CHECK enum status verdict_db_import(uint64_t *added, struct verdict_db *verdicts,
                                         const json_t *view, struct error *error);

#endif /* VERIFIER_STORE_VERDICT_DB_H */
