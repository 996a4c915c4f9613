/*
 * local_store.h - the state of the embedded ledger, in one sqlite3 file.
 *
 * Records have a kind and a key and are kept as ABI words, as in the contract's storage; a missing
 * record reads as zeros. The caller begins and commits (ledger_local.c). Several processes may
 * share the file.
 */
#ifndef CHAIN_LOCAL_LOCAL_STORE_H
#define CHAIN_LOCAL_LOCAL_STORE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/io/database.h"
#include "chain/game/game.h"

struct local_job {
    struct address solver;
    uint32_t phase; /* enum game_phase */
    uint32_t generation;
    uint32_t committed;
    uint64_t due_s;
    struct address client;
    uint32_t finalized;
    uint32_t open_claims;
    bool ended;
    uint32_t segments;
    struct game_terms terms;
};

struct local_tally {
    uint32_t round;
    uint32_t attested;
    uint32_t revealed;
    uint32_t open_claims;
    uint64_t start_s; /* 0: the commit's time */
    bool mandatory;
    struct hash32 seed; /* zero: not drawn */
};

struct local_attestation {
    uint32_t phase; /* enum game_attestation_phase */
    uint32_t round;
    struct hash32 value; /* the seal, then the trace root */
};

struct local_claim {
    struct address claimant;
    uint32_t phase; /* enum game_claim_phase */
    uint32_t turn;  /* enum game_turn */
    uint32_t generation;
    uint64_t deadline_s;
    uint32_t turns;
    struct hash32 job;
    struct hash32 segment;
    struct address attestor; /* zero: the solver is accused */
    struct digest trace_root;
};

/* What the referee remembers of a claim. */
struct local_trial {
    /* keccak256 of what was queried; after a reply of parts, partial_sums_reply_hash(); zero:
     * neither. */
    struct hash32 said;
};

struct local_account {
    wei purse; /* its own money */
    wei owed;  /* what it may withdraw */
};

struct local_store {
    struct database *sql; /* borrowed */
    struct error *error;
};

/* Makes the table if it is missing. */
MUST_CHECK enum status local_store_open(struct local_store *store, struct database *sql,
                                        struct error *error);

MUST_CHECK enum status local_get_job(struct local_store *store, struct local_job *job,
                                     const struct hash32 *key);
MUST_CHECK enum status local_put_job(struct local_store *store, const struct local_job *job,
                                     const struct hash32 *key);
MUST_CHECK enum status local_get_tally(struct local_store *store, struct local_tally *tally,
                                       const struct hash32 *segment);
MUST_CHECK enum status local_put_tally(struct local_store *store, const struct local_tally *tally,
                                       const struct hash32 *segment);
MUST_CHECK enum status local_get_attestation(struct local_store *store,
                                             struct local_attestation *attestation,
                                             const struct hash32 *segment,
                                             const struct address *attestor);
MUST_CHECK enum status local_put_attestation(struct local_store *store,
                                             const struct local_attestation *attestation,
                                             const struct hash32 *segment,
                                             const struct address *attestor);
MUST_CHECK enum status local_get_claim(struct local_store *store, struct local_claim *claim,
                                       const struct hash32 *key);
MUST_CHECK enum status local_put_claim(struct local_store *store, const struct local_claim *claim,
                                       const struct hash32 *key);
MUST_CHECK enum status local_get_trial(struct local_store *store, struct local_trial *trial,
                                       const struct hash32 *claim);
MUST_CHECK enum status local_put_trial(struct local_store *store, const struct local_trial *trial,
                                       const struct hash32 *claim);
MUST_CHECK enum status local_get_account(struct local_store *store, struct local_account *account,
                                         const struct address *address);
MUST_CHECK enum status local_put_account(struct local_store *store,
                                         const struct local_account *account,
                                         const struct address *address);

/* The hash of the segment that stands at index; the height of a seal, 0 for none. */
MUST_CHECK enum status local_get_segment(struct local_store *store, struct hash32 *hash,
                                         const struct hash32 *job, uint32_t index);
MUST_CHECK enum status local_put_segment(struct local_store *store, const struct hash32 *hash,
                                         const struct hash32 *job, uint32_t index);
MUST_CHECK enum status local_get_seal(struct local_store *store, uint64_t *height,
                                      const struct hash32 *seal);
MUST_CHECK enum status local_put_seal(struct local_store *store, uint64_t height,
                                      const struct hash32 *seal);

#endif /* CHAIN_LOCAL_LOCAL_STORE_H */
