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

#define GAME_STEPS_MAX     ((UINT64_C(1) << 40) - 1)
#define GAME_SEGMENTS_MAX  ((1u << 24) - 1)
#define GAME_STATES_MAX    256 /* steps of a segment */
#define GAME_PERIOD_MAX    ((1u << 24) - 1)
#define GAME_TIME_MAX      ((UINT64_C(1) << 40) - 1)
#define GAME_PPM           1000000
#define GAME_SEATS_MAX     8
#define GAME_PLACES_MAX    64 /* in the draw of a segment */
#define GAME_PANEL_MAX     65535
#define GAME_PANEL_LEAST   255 /* the most that a job may wait for */
#define GAME_ENLIST_MAX    16
#define GAME_FEES_OF_BOND  4
#define GAME_OPEN_MAX      64 /* segments that are committed and not final */
#define GAME_LEG_MAX       16 /* segments until one is covered with any seed */
#define GAME_LAST_RIGHTS   3  /* that a last segment needs at least */
#define GAME_FULL_ROUND    5  /* from this round on a round has as many seats as all before, */
#define GAME_FULL_SEATS    9  /* ... and at most this many */
#define GAME_WAITS_MAX     4  /* claim times that a segment waits for at most */
#define GAME_VOUCH_SIZE    65 /* a signature of a key; of a contract it may be longer */
#define GAME_VOUCH_MAX     1024
#define GAME_LEAVES        8  /* that a right stands on */
#define GAME_TAG_SIZE      2  /* bytes that it shows of the hash of each */
#define GAME_SEAL_SIZE     16 /* bytes of a verdict's seal that the ledger keeps */
#define GAME_ACTIVE_MAX    4  /* disputes of a job whose clocks run */
#define GAME_OUTSIDERS_MAX 16
#define GAME_QUERIES_MAX   32 /* of one claimant that leads */
#define GAME_SEAL_BLOCKS   32 /* how long the seal of a claim lives */
#define GAME_RANK_OUTSIDER (UINT64_C(1) << 63)
#define GAME_LATE_SHARE    8   /* of the stake, burned where a solver is late */
#define GAME_LATER_SHARE   8   /* of a fee, kept from a right of a later round */
#define GAME_UNSEEN_SHARE  4   /* of the query fee, to a seat that said unseen, where that voids */
#define GAME_POT_SHARE     4   /* of the stake, to the claimant and to the client each */
#define GAME_QUERY_REWARDS 16  /* a reward holds so many query fees at least, */
#define GAME_QUERY_STAKES  128 /* ... and a stake so many */
#define GAME_SEED_SIZE     8   /* bytes */
#define GAME_SEED_BLOCKS   256 /* how far back a seed can be read, and the step to the next */
#define GAME_SEED_DELAY    1   /* from a commit to its seed, embedded (header/seed_delays.h) */
#define GAME_FIX_AFTER_S   (7 * 86400) /* from a commit: then anybody fixes its seed */
#define GAME_CONTACT_MAX   256
#define GAME_HEADER_MAX    1024 /* of a block */
#define GAME_ALLOW_MAX     32   /* siblings in an allow-list */
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

enum game_verdict {
    GAME_VERDICT_NONE,
    GAME_VERDICT_RIGHT,
    GAME_VERDICT_FALSE,
};

enum game_seat_phase {
    GAME_SEAT_NONE,
    GAME_SEAT_SEALED,
    GAME_SEAT_REVEALED, /* right */
    GAME_SEAT_UNSEEN,   /* it says that it could not get the states */
    GAME_SEAT_CLOSED,   /* silent, an alarm, or a right that was disproved */
};

enum game_claim_phase {
    GAME_CLAIM_NONE,
    GAME_CLAIM_WAITING, /* others come first; nobody's clock runs */
    GAME_CLAIM_CALLED,  /* the solver must answer with the trace root of the step */
    GAME_CLAIM_TRIED,
    GAME_CLAIM_CLOSED,
};

enum game_turn {
    GAME_TURN_CLAIMANT,
    GAME_TURN_ACCUSED,
};

enum game_outcome {
    GAME_UPHELD,
    GAME_REFUTED,
    GAME_LAPSED,
};

/* What a right shows: of the hash of each of its leaves the first bytes. */
struct game_leaves {
    uint8_t tags[GAME_LEAVES][GAME_TAG_SIZE];
};

/* In the order of the contract: BAD_TERMS gives the position. */
struct game_terms {
    struct digest job_id;
    struct digest program_root;
    struct digest data_root;
    struct digest first_state_root;
    uint64_t salt;
    uint64_t steps;
    uint32_t segment_steps;
    wei reward; /* of a segment */
    wei fee;    /* of one seat of one segment */
    wei stake;
    wei bond; /* of a seat, and the least of a claim */
    wei query_fee;
    uint32_t seats; /* rights that make a covered segment final */
    uint32_t coverage_ppm;
    uint32_t panel_least;    /* entries that a solver waits for */
    struct hash32 solvers;   /* roots of allow-lists; zero: anybody */
    struct hash32 verifiers; /* ... */
    struct address keeper;   /* says for the client that the states are there; zero: nobody */
    uint32_t segment_period_s;
    uint32_t seal_period_s;
    uint32_t reveal_period_s;
    uint32_t claim_period_s;
    uint32_t clock_s; /* of each party of a dispute, for all of its moves */
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
    uint32_t panel; /* entries at the commit */
    bool diverged;
};

/* Bytes of any length, borrowed. */
struct game_bytes {
    const uint8_t *bytes;
    size_t size;
};

/* Hashes or roots in a row, borrowed. */
struct game_hashes {
    const struct digest *hashes;
    uint32_t count;
};

/*
 * What a claim is about, and the proof that the solver committed to both states. Shown once, when
 * the claim is made. Of the paths only the siblings: their places follow from the rest.
 */
struct game_case {
    struct address client; /* of the job: with its header and the salt, its key */
    uint64_t salt;
    uint8_t job_header[GAME_JOB_HEADER_SIZE];
    struct game_segment segment;
    struct game_segment previous; /* the one before; zero for segment 0 and when step > 0 */
    uint32_t step;                /* within the segment */
    struct digest pre_state;
    struct digest post_state;
    struct merkle_path pre_path;  /* under the root of the segment that the step before is in */
    struct merkle_path post_path; /* of post_state under the segment's root */
};

/* What the claimant's later moves show again: the ledger keeps only hashes of it. */
struct game_subject {
    struct address client;
    uint64_t salt;
    uint8_t job_header[GAME_JOB_HEADER_SIZE];
    uint32_t step;
    struct digest pre_state;
    struct digest post_state;
};

/* The commits of a block have their random of the same later block. So has a round that opens after
 * a settle in that block. */
struct game_commits {
    uint64_t height;
    uint64_t time_s;
};

enum game_move_kind {
    GAME_OPEN,
    GAME_CLOSE,
    GAME_RESUME,
    GAME_STOP,
    GAME_REFUSE,
    GAME_ACCEPT,
    GAME_COMMIT,
    GAME_ENLIST,
    GAME_DEPART,
    GAME_ANNOUNCE,
    GAME_DRAW,
    GAME_SEAL,
    GAME_REVEAL,
    GAME_UNSEEN,
    GAME_SETTLE,
    GAME_RELEASE,
    GAME_WITHDRAW,
    /* Before the referee: on a chain they go to its contract. */
    GAME_SEAL_CLAIM,
    GAME_CLAIM,
    GAME_ALARM,
    GAME_ANSWER,
    GAME_QUERY,
    GAME_REPLY,
    GAME_CONVICT,
    GAME_TIMEOUT,
    GAME_LAPSE,
    GAME_PAY,
    GAME_CHALLENGE,
    /* To the seeds of the registry. */
    GAME_FIX,
    GAME_MOVE_KINDS,
};

/* Which contract of a registry's three takes a move. */
enum game_contract {
    GAME_REGISTRY,
    GAME_REFEREE,
    GAME_SEEDS,
};

/* Which fields count depends on the kind, as the contract's functions say. */
struct game_move {
    enum game_move_kind kind;
    wei value; /* sent along */
    /* Of the job; of the claim for ANSWER, QUERY, REPLY, CONVICT, TIMEOUT, LAPSE. */
    struct hash32 key;
    struct game_terms terms;
    struct game_segment segment; /* FIX: only its height and time */
    struct hash32 about;         /* the hash of a segment: SEAL, REVEAL, UNSEEN */
    uint32_t index;      /* of a segment: COMMIT, SEAL, REVEAL, UNSEEN; which leaf: CHALLENGE */
    uint32_t generation; /* DEPART, PAY */
    uint32_t count;      /* entries of ENLIST */
    uint32_t entry;      /* DEPART */
    uint32_t place;      /* SEAL, REVEAL, UNSEEN, ALARM, CHALLENGE */
    bool diverged;       /* COMMIT */
    struct digest root;  /* the trace root of ANSWER */
    struct hash32 seal;
    struct hash32 salt;
    struct hash32 seal_salt;     /* CHALLENGE: of its own seal */
    struct game_leaves leaves;   /* REVEAL, CHALLENGE */
    struct address account;      /* where WITHDRAW pays to */
    struct game_hashes states;   /* COMMIT */
    struct game_hashes path;     /* in an allow-list: ACCEPT, ENLIST */
    struct game_bytes contact;   /* OPEN, ACCEPT, ENLIST, ANNOUNCE */
    struct game_commits commits; /* DRAW: whose seed is drawn; for the proof, and not sent */
    struct game_bytes proof;     /* of the random: DRAW; a ledger fills it in */
    struct game_bytes vouch;     /* SETTLE: the keeper's signature, or none */
    struct game_case shown;      /* CLAIM, ALARM */
    struct game_subject subject; /* QUERY, CONVICT */
    struct game_bytes queried;   /* REPLY: as in the event QUERIED */
    /* The query of QUERY, the data of REPLY, the evidence of CONVICT, the leaf of CHALLENGE. */
    struct game_bytes payload;
};

enum game_event_kind {
    GAME_OPENED,
    GAME_RESUMED,
    GAME_STOPPED,
    GAME_REFUSED,
    GAME_ACCEPTED,
    GAME_COMMITTED,
    GAME_ENLISTED,
    GAME_MOVED,
    GAME_GONE,
    GAME_ANNOUNCED,
    GAME_DRAWN,
    GAME_ROUND_OVER,
    GAME_ROUND,
    GAME_SEALED_VERDICT,
    GAME_REVEALED,
    GAME_SAID_UNSEEN,
    GAME_VOUCHED,
    GAME_FEE_PAID,
    GAME_DISPROVED,
    GAME_FINALIZED,
    GAME_VOIDED,
    GAME_CONVICTED,
    GAME_RELEASED,
    GAME_CLOSED,
    GAME_WITHDRAWN,
    /* Of the referee. */
    GAME_SEALED,
    GAME_CLAIMED,
    GAME_TURN_PASSED,
    GAME_ANSWERED,
    GAME_DEFAULTED,
    GAME_RULED,
    GAME_PAID,
    GAME_QUERIED,
    GAME_REPLIED,
    /* Of the seeds. */
    GAME_FIXED,
    GAME_EVENT_KINDS,
};

struct game_event {
    enum game_event_kind kind;
    struct hash32 job;
    struct hash32 claim;
    struct game_terms terms;     /* OPENED */
    struct game_segment segment; /* COMMITTED */
    struct game_hashes states;   /* COMMITTED; borrowed */
    /* Of the segment; VOIDED, CONVICTED, RELEASED, CLOSED: the first that is not final. FINALIZED:
     * the last of its leg. */
    uint32_t index;
    uint32_t generation; /* ENLISTED, MOVED, GONE, PAID */
    uint32_t step;       /* CLAIMED */
    uint32_t entry;      /* ENLISTED (the first), GONE, DISPROVED; MOVED: the number before */
    uint32_t count; /* ENLISTED; STOPPED: segments of the job; FINALIZED, VOIDED: of segments */
    uint32_t round;
    uint32_t from;    /* ROUND: its places; MOVED has the number before in entry */
    uint32_t to;      /* ...; MOVED: the number of the entry now */
    uint32_t place;   /* SEALED_VERDICT, REVEALED, SAID_UNSEEN, FEE_PAID, DISPROVED */
    uint32_t verdict; /* enum game_verdict, of REVEALED */
    uint32_t phase;   /* enum game_claim_phase, of TURN_PASSED */
    uint32_t turn;    /* enum game_turn, of TURN_PASSED */
    uint32_t outcome; /* enum game_outcome, of RULED */
    uint64_t rank;    /* CLAIMED */
    /* Client, solver, owner, claimant, mover, lead, payee: who the event is about. */
    struct address account;
    struct address other; /* the target of WITHDRAWN */
    struct digest root;   /* the trace root of ANSWERED */
    struct digest pre_state;
    struct digest post_state;
    /* SEALED_VERDICT, SEALED; the seed of DRAWN and ROUND, the salt of REVEALED, the segment of
     * VOUCHED and DISPROVED. */
    struct hash32 seal;
    struct game_leaves leaves; /* REVEALED */
    uint64_t
        time_s; /* until when the next move must come; the start of ROUND; FIXED: of the block */
    uint64_t height;           /* FIXED: of the block of the commits; ROUND_OVER: of its own */
    uint64_t source;           /* FIXED: the block that their seeds come from now */
    wei amount;                /* a reward, penalty, payment or bond; VOIDED: of the stake, */
    wei escrow;                /* ... of the escrow, and (RESUMED also) */
    wei pool;                  /* ... of the pool: all of them burned */
    bool flag;                 /* DRAWN: covered */
    struct game_bytes contact; /* OPENED, ACCEPTED, ENLISTED, ANNOUNCED; borrowed */
    struct game_bytes payload; /* QUERIED, REPLIED; borrowed */
};

/* The number of WRONG_CASE: which part of the case is not what was committed. */
enum game_case_part {
    GAME_CASE_JOB = 1, /* client, salt and header are not the job of the claim */
    GAME_CASE_SEGMENT,
    GAME_CASE_SUBJECT, /* step and states are not those of the claim */
    GAME_CASE_PREVIOUS,
    GAME_CASE_PRE_STATE, /* not under the root of its segment */
    GAME_CASE_POST_STATE,
};

enum game_refusal_kind {
    GAME_REFUSED_NOT, /* not a refusal of the game */
    GAME_BAD_TERMS,
    GAME_WRONG_VALUE,
    GAME_JOB_EXISTS,
    GAME_WRONG_PHASE,
    GAME_NOT_YOURS,
    GAME_NOT_ALLOWED,
    GAME_WRONG_INDEX,
    GAME_WRONG_SEGMENT,
    GAME_WRONG_STEPS,
    GAME_ZERO_ROOT,
    GAME_ZERO_ADDRESS,
    GAME_TOO_EARLY,
    GAME_TOO_LATE,
    GAME_TOO_LONG,
    GAME_SELF_DEALING,
    GAME_FULL,
    GAME_PANEL_SHORT,
    GAME_WRONG_HEADER,
    GAME_NOT_DRAWN,
    GAME_ALREADY_DRAWN,
    GAME_WRONG_PLACE,
    GAME_ALREADY_SEALED,
    GAME_NOT_SEALED,
    GAME_WRONG_REVEAL,
    GAME_NOT_NEEDED,
    GAME_ENGAGED,
    GAME_CLAIMS_OPEN,
    GAME_BARRED,
    GAME_STANDS_REFUSED,
    GAME_WRONG_VOUCH,
    GAME_WRONG_TOKEN,
    GAME_NOTHING_OWED,
    GAME_WITHDRAW_FAILED,
    /* Of the referee. */
    GAME_WRONG_TURN,
    GAME_WRONG_CASE,
    GAME_SEAL_EXISTS,
    GAME_CLAIM_EXISTS,
    GAME_NOT_LAPSED,
    GAME_NOT_PAID,
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
    struct game_bytes data;    /* at most GAME_LOG_SIZE_MAX */
    struct hash32 transaction; /* which made it; zero: the ledger has none, or none is known */
};

/* ---- bytes ------------------------------------------------------------------ */

/* Does the move fit into GAME_MOVE_SIZE_MAX? Only a move with a payload may not. */
bool game_move_fits(const struct game_move *move);
size_t game_move_size(const struct game_move *move);

/* bytes has game_move_size(); the move fits. */
void game_move_encode(uint8_t *bytes, size_t *size, const struct game_move *move);

enum game_contract game_move_contract(enum game_move_kind kind);

/* The first topic of the logs of an event. */
struct hash32 game_event_topic(enum game_event_kind kind);

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

/* What the keeper of a job signs (EIP-712, domain "Lockstep", version "3", chain, registry):
 * Vouch(bytes32 job,bytes32 segment): "I have start and end of this covered segment, and serve
 * them." */
struct hash32 game_vouch_digest(const struct game_place *place, const struct hash32 *job,
                                const struct hash32 *segment_hash);

/* How many rights make a covered segment final. */
uint32_t game_wanted_rights(const struct game_terms *terms, const struct game_segment *segment,
                            uint32_t segments);

/* The root of a segment that begins with step `first` of the job. */
struct digest game_segment_root(const struct game_hashes *states, uint64_t first);

/* The hash of what a claim is about. */
struct hash32 game_subject_hash(const struct hash32 *segment_hash, uint32_t step,
                                const struct digest *pre_state, const struct digest *post_state);

/* round: how often this subject was refuted. */
struct hash32 game_claim_key(const struct hash32 *subject_hash, uint32_t round);
struct hash32 game_claim_seal(const struct address *claimant, const struct hash32 *subject_hash,
                              const struct hash32 *salt);

/* What the seal of a challenge is about: a tag of the right at a place. */
struct hash32 game_challenge_hash(const struct hash32 *segment_hash, uint32_t place,
                                  uint32_t which);

/* What later moves of the claimant show of a case. */
struct game_subject game_subject_of(const struct game_case *shown);

/* ---- the panel -------------------------------------------------------------- */

/* A number of GAME_SEED_SIZE bytes: nobody can try more than a few, so it need not be longer. */
struct hash32 game_seed(const struct hash32 *random, const struct hash32 *segment_hash);

/* Is a segment covered by its seed alone? docs/PROTOCOL.md has what else covers one. */
bool game_seed_covers(const struct hash32 *seed, uint32_t coverage_ppm);

/* The entry that a place belongs to; panel > 0: entries at the commit. */
uint32_t game_place_entry(const struct hash32 *seed, uint32_t place, uint32_t panel);

/* Which leaf the hash `which` of a right is about: of the state after this step ... */
uint32_t game_right_step(const struct hash32 *seed, uint32_t which, uint32_t steps);
/* ... of this tensor ... */
uint32_t game_right_tensor(const struct hash32 *seed, uint32_t which, uint32_t tensors);
/* ... of that many leaves. */
uint64_t game_right_leaf(const struct hash32 *seed, uint32_t which, uint64_t leaves);

struct game_right {
    uint32_t step;
    uint32_t tensor;
    uint64_t leaf;
    const uint8_t *bytes; /* MERKLE_LEAF_SIZE, with the leaf's zeros */
};

struct hash32 game_right_hash(const struct address *owner, const struct hash32 *seed,
                              const struct hash32 *segment_hash, const struct game_right *right);

void game_leaves_set(struct game_leaves *leaves, uint32_t which, const struct hash32 *hash);
bool game_leaves_have(const struct game_leaves *leaves, uint32_t which, const struct hash32 *hash);

/* step and leaves (NULL: zero) as the verdict has them. */
struct hash32 game_verdict_seal(const struct address *owner, const struct hash32 *segment_hash,
                                enum game_verdict verdict, uint32_t step,
                                const struct game_leaves *leaves, const struct hash32 *salt);

/* ---- amounts ---------------------------------------------------------------- */

/* The number of segments; 0 if the terms are malformed. */
uint32_t game_segment_count(const struct game_terms *terms);

/* The fees of a covered segment at most (three times its seats), and those that the client escrows
 * for that many segments: for half as many again as the coverage tells, and three. */
wei game_segment_fees(const struct game_terms *terms);
wei game_fees(const struct game_terms *terms, uint32_t segments);

/* What burns of the stake when `open` segments are void that are committed and not final: their
 * rewards and one more, up to all of it. The client loses as much, and their fees: leg_void(). */
wei game_void_price(const struct game_terms *terms, uint32_t open);

/* What the client pays for that many segments, and for the whole job: its escrow. */
wei game_price(const struct game_terms *terms, uint32_t segments);
wei game_escrow(const struct game_terms *terms);

/* The largest query fee that a ledger takes. All places of a draw that said unseen get one reward
 * of it at most where they void, so no panel is paid for a void; and all queries of a claimant cost
 * what a conviction brings at most, so no lie is too dear to be proven. */
wei game_query_fee_max(const struct game_terms *terms);

/* The bond of an outsider where that many have a live claim in the job. */
wei game_claim_bond(const struct game_terms *terms, uint32_t outsiders);

#endif /* CHAIN_GAME_GAME_H */
