/*
 * game.h - the game of a job: its terms, moves, events and refusals, and their bytes.
 *
 * Both ledgers use them: a move is the calldata of the contract, an event one of its logs, a
 * refusal what it reverts with. docs/PROTOCOL.md has the rules, chain/contracts/IRegistry.sol the
 * same names. Decoding is strict and safe on hostile bytes; nothing here allocates.
 */
#ifndef CHAIN_GAME_GAME_H
#define CHAIN_GAME_GAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/status.h"
#include "chain/codec/address.h"
#include "chain/codec/keccak.h"
#include "chain/codec/uint256.h"
#include "chain/codec/wei.h"
#include "proofs/hash/merkle.h"

#define GAME_SEGMENTS_MAX  ((1u << 24) - 1)
#define GAME_PERIOD_MAX    ((1u << 24) - 1)
#define GAME_TIME_MAX      ((UINT64_C(1) << 40) - 1)
#define GAME_ATTESTORS_MAX 64
#define GAME_PPM           1000000
#define GAME_TURNS_MAX     64
#define GAME_LATE_SHARE    8
#define GAME_TOPICS_MAX    4
#define GAME_REVERT_SIZE   36 /* at most: a selector and one word */

#define GAME_MOVE_SIZE_MAX   (127 * 1024) /* bytes of any move */
#define GAME_LOG_SIZE_MAX    (17 * 1024)  /* bytes of any event's data */
#define GAME_PAYLOAD_MAX     (124 * 1024) /* query or evidence, within a move */
#define GAME_QUERIED_MAX     320
#define GAME_REPLY_MAX       (16 * 1024 + 512)
#define GAME_JOB_HEADER_SIZE 216 /* of a job: docs/FORMATS.md, section 5 */

enum game_phase {
    GAME_PHASE_NONE,
    GAME_PHASE_OPEN,
    GAME_PHASE_RUNNING,
    GAME_PHASE_CLOSED,
};

enum game_claim_phase {
    GAME_CLAIM_NONE,
    GAME_CLAIM_CALLED,
    GAME_CLAIM_TRIED,
    GAME_CLAIM_CLOSED,
};

enum game_turn {
    GAME_TURN_CLAIMANT,
    GAME_TURN_ACCUSED,
};

enum game_attestation_phase {
    GAME_ATTESTATION_NONE,
    GAME_ATTESTATION_SEALED,
    GAME_ATTESTATION_REVEALED,
    GAME_ATTESTATION_CLOSED,
};

struct game_terms {
    struct digest job_id;
    struct digest program_root;
    struct digest data_root;
    struct digest first_state_root;
    uint64_t salt;
    uint64_t steps;
    uint32_t segment_steps;
    wei segment_reward;
    wei attest_fee;
    wei stake;
    wei claim_bond;
    wei attest_bond;
    uint32_t attestors;
    uint32_t coverage_ppm;
    uint32_t segment_period_s;
    uint32_t attest_period_s;
    uint32_t reveal_period_s;
    uint32_t claim_period_s;
    uint32_t response_period_s;
    uint64_t deadline_s;
};

/* A committed segment. The ledger keeps only its hash: a move about it shows all of it. */
struct game_segment {
    uint32_t index;
    uint32_t generation;
    struct digest root;
    uint32_t steps;
    uint64_t time_s;
    uint64_t height;
    struct address solver;
};

/* Bytes of any length, borrowed. */
struct game_bytes {
    const uint8_t *bytes;
    size_t size;
};

/*
 * What a claim is about. The ledger keeps only hashes of it, so every move of the claimant shows it
 * to the referee. Of the paths only the siblings are shown: their places follow from the rest.
 */
struct game_case {
    struct address client; /* of the job: with its header and the salt, its key */
    uint64_t salt;
    uint8_t job_header[GAME_JOB_HEADER_SIZE];
    struct game_segment segment;
    struct game_segment previous; /* the one before; zero for segment 0 and when step > 0 */
    uint32_t step;                /* within the segment; of an attestor: the one it drew */
    struct digest pre_state;
    struct digest post_state;
    struct merkle_path pre_path;  /* under the root of the segment that the step before is in */
    struct merkle_path post_path; /* of post_state under the segment's root */
};

enum game_move_kind {
    GAME_OPEN,
    GAME_CANCEL,
    GAME_ACCEPT,
    GAME_COMMIT,
    GAME_COMMIT_DIVERGED,
    GAME_ANSWER,
    GAME_DRAW,
    GAME_ATTEST,
    GAME_REVEAL,
    GAME_SEAL_CLAIM,
    GAME_CLAIM,
    GAME_ACCUSE,
    GAME_PASS_TURN,
    GAME_RULE,
    GAME_TIMEOUT,
    GAME_LAPSE,
    GAME_RENEW,
    GAME_FINALIZE,
    GAME_SETTLE,
    GAME_RELEASE,
    GAME_EXPIRE,
    GAME_WITHDRAW,
    /* Before the referee: on a chain they go to its contract. */
    GAME_QUERY,
    GAME_REPLY,
    GAME_CONVICT,
    GAME_MOVE_KINDS,
};

/* Which fields count depends on the kind, as the contract's functions say. */
struct game_move {
    enum game_move_kind kind;
    wei value; /* sent along */
    /* Of the job; of the claim for ANSWER, PASS_TURN, RULE, TIMEOUT, LAPSE and the referee's. */
    struct hash32 key;
    struct game_terms terms;
    struct game_segment segment;
    uint32_t index;
    uint32_t steps;     /* of COMMIT_DIVERGED; the step of CLAIM, counted within the segment */
    struct digest root; /* a segment's, or the trace root of ANSWER and REVEAL */
    struct digest pre_state;
    struct digest post_state;
    struct hash32 seal;
    struct hash32 salt;
    struct address account; /* the attestor of ACCUSE and SETTLE; where WITHDRAW pays to */
    uint32_t turn;
    bool upheld;
    struct game_case shown;    /* QUERY, CONVICT */
    struct game_bytes queried; /* REPLY: as in the event QUERIED */
    struct game_bytes payload; /* the query of QUERY, the data of REPLY, the evidence of CONVICT */
};

enum game_event_kind {
    GAME_OPENED,
    GAME_CANCELLED,
    GAME_ACCEPTED,
    GAME_COMMITTED,
    GAME_DRAWN,
    GAME_ATTESTED,
    GAME_REVEALED,
    GAME_RENEWED,
    GAME_SETTLED,
    GAME_SEALED,
    GAME_CLAIMED,
    GAME_ACCUSED,
    GAME_ANSWERED,
    GAME_TURN_PASSED,
    GAME_RULED,
    GAME_LAPSED,
    GAME_CONVICTED,
    GAME_FINALIZED,
    GAME_RELEASED,
    GAME_CLOSED,
    GAME_WITHDRAWN,
    /* Of the referee. */
    GAME_QUERIED,
    GAME_REPLIED,
    GAME_EVENT_KINDS,
};

struct game_event {
    enum game_event_kind kind;
    struct hash32 job;
    struct hash32 claim;
    struct game_terms terms;     /* OPENED */
    struct game_segment segment; /* COMMITTED, without the height: that is the block's */
    /* Of the segment; CONVICTED, CLOSED: the first that is not final. */
    uint32_t index;
    uint32_t step;
    struct address account; /* client, solver, attestor, claimant, owner: who the event is about */
    struct address other;   /* payee of SETTLED, target of WITHDRAWN, attestor of ACCUSED */
    struct digest root;     /* the trace root of REVEALED and ANSWERED */
    struct digest pre_state;
    struct digest post_state;
    struct hash32 seal; /* of ATTESTED and SEALED; the seed of DRAWN */
    uint64_t time_s;    /* until when the next move must come; when, for RENEWED */
    wei amount;
    uint32_t turn;
    bool flag;                 /* diverged, mandatory, upheld */
    struct game_bytes payload; /* of QUERIED and REPLIED */
};

/* The number of WRONG_CASE: which part of the case is not what was committed. */
enum game_case_part {
    GAME_CASE_JOB = 1, /* client, salt and header are not the job of the claim */
    GAME_CASE_SEGMENT,
    GAME_CASE_SUBJECT, /* step and states are not those of the claim, or not the step drawn */
    GAME_CASE_PREVIOUS,
    GAME_CASE_PRE_STATE,
    GAME_CASE_POST_STATE,
};

enum game_refusal_kind {
    GAME_REFUSED_NOT, /* not a refusal of the game */
    GAME_BAD_TERMS,
    GAME_WRONG_VALUE,
    GAME_JOB_EXISTS,
    GAME_WRONG_PHASE,
    GAME_NOT_YOURS,
    GAME_WRONG_INDEX,
    GAME_WRONG_SEGMENT,
    GAME_WRONG_STEPS,
    GAME_ZERO_ROOT,
    GAME_ZERO_ADDRESS,
    GAME_TOO_EARLY,
    GAME_TOO_LATE,
    GAME_SELF_DEALING,
    GAME_FULL,
    GAME_ALREADY_ATTESTED,
    GAME_NOT_SEALED,
    GAME_NOT_REVEALED,
    GAME_WRONG_REVEAL,
    GAME_COVERAGE_MISSING,
    GAME_NOT_NEEDED,
    GAME_CLAIMS_OPEN,
    GAME_CLAIM_EXISTS,
    GAME_NOT_LAPSED,
    GAME_OUT_OF_TURNS,
    GAME_NOTHING_OWED,
    GAME_WITHDRAW_FAILED,
    GAME_WRONG_TURN,
    GAME_WRONG_CASE,
    GAME_BAD_QUERY,
    GAME_NOT_QUERIED,
    GAME_BAD_REPLY,
    GAME_BAD_EVIDENCE,
    GAME_NOT_GUILTY,
    GAME_REFUSAL_KINDS,
};

struct game_refusal {
    enum game_refusal_kind kind;
    wei number;             /* what was expected, where the kind says so */
    struct address account; /* NOT_YOURS */
};

struct game_log {
    struct hash32 topics[GAME_TOPICS_MAX];
    uint32_t topic_count;
    struct game_bytes data; /* at most GAME_LOG_SIZE_MAX */
};

/* ---- bytes ------------------------------------------------------------------ */

/* Does the move fit into GAME_MOVE_SIZE_MAX? Only a move with a payload may not. */
bool game_move_fits(const struct game_move *move);
size_t game_move_size(const struct game_move *move);

/* bytes has game_move_size(); the move fits. */
void game_move_encode(uint8_t *bytes, size_t *size, const struct game_move *move);

/* The move borrows from bytes. Only what game_move_encode() would write is decoded. */
MUST_CHECK enum status game_move_decode(struct game_move *move, const uint8_t *bytes, size_t size);

/* Is it a move of the referee's contract? */
bool game_move_is_of_referee(enum game_move_kind kind);

/* The log's data go to bytes, which has GAME_LOG_SIZE_MAX. */
void game_event_encode(struct game_log *log, uint8_t *bytes, const struct game_event *event);

/* The event borrows from the log's data. STATUS_NOT_FOUND: another kind of log. STATUS_BAD_FORMAT:
 * one of our kinds, and malformed. */
MUST_CHECK enum status game_event_decode(struct game_event *event, const struct game_log *log);

/* bytes has GAME_REVERT_SIZE. */
void game_refusal_encode(uint8_t *bytes, size_t *size, const struct game_refusal *refusal);

/* kind is GAME_REFUSED_NOT if the bytes are no refusal of the game. */
void game_refusal_decode(struct game_refusal *refusal, const uint8_t *bytes, size_t size);

/* A sentence, and what to do about it. */
const char *game_refusal_text(enum game_refusal_kind kind);

const char *game_move_name(enum game_move_kind kind);   /* "commit" */
const char *game_event_name(enum game_event_kind kind); /* "committed" */

/* ---- keys ------------------------------------------------------------------- */

/* Where a game is played. What names or signs something there means nothing anywhere else. */
struct game_place {
    struct uint256 chain;    /* its id; embedded: the number in the ledger's name */
    struct address registry; /* zero: embedded */
};

struct hash32 game_job_key(const struct game_place *place, const struct address *client,
                           const struct digest *job_id, uint64_t salt);
struct hash32 game_segment_hash(const struct hash32 *job, const struct game_segment *segment);
struct hash32 game_attest_seal(const struct address *attestor, const struct hash32 *segment_hash,
                               const struct digest *trace_root);
struct hash32 game_claim_key(const struct address *claimant, const struct hash32 *segment_hash,
                             uint32_t step, const struct digest *pre_state,
                             const struct digest *post_state);
struct hash32 game_accusation_key(const struct address *claimant, const struct hash32 *segment_hash,
                                  const struct address *attestor);
struct hash32 game_claim_seal(const struct hash32 *claim_key, const struct hash32 *salt);

/* The step of a segment that an attestor must check. steps > 0. */
uint32_t game_sampled_step(const struct hash32 *seed, const struct address *attestor,
                           uint32_t steps);

/* The number of segments; 0 if the terms are malformed. */
uint32_t game_segment_count(const struct game_terms *terms);

/* What the client must escrow, for terms that the game accepts. */
wei game_escrow(const struct game_terms *terms);

#endif /* CHAIN_GAME_GAME_H */
