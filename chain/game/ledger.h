/*
 * ledger.h - one interface to every ledger: moves, events and state of the game.
 *
 * The ledger is chosen by URL:
 *     local:PATH          one sqlite3 file on this machine; several processes may share it
 *     http(s)://...       an EVM chain by JSON-RPC; several URLs of one chain, separated by commas
 *
 * The caller names each move. When ledger_submit returns, the move is on disk and happens once,
 * through crashes and reorganizations; the same name again is not a second move. ledger_work does
 * the work and must be called from time to time. Events are numbered: a reader keeps the number of
 * the last one it handled and resumes there.
 *
 * One thread at a time per handle. Nothing here prints.
 */
#ifndef CHAIN_GAME_LEDGER_H
#define CHAIN_GAME_LEDGER_H

#include "base/error.h"
#include "chain/game/game.h"
#include "chain/keys/signer.h"

#define LEDGER_URL_MAX  4096
#define LEDGER_NAME_MAX 200

struct ledger_options {
    const char *url;
    const char *state_dir;          /* EVM: the folder of outbox and index; made when missing */
    const struct signer *signer;    /* borrowed; NULL: reading only */
    struct address registry;        /* EVM: the contract */
    uint64_t first_height;          /* EVM: the block of its deployment; reading starts there */
    uint32_t depth;                 /* EVM: blocks on top until something counts as final */
    uint32_t replace_after_s;       /* EVM: a transaction in the pool that long is replaced */
    uint64_t gas_price_gwei_max;    /* EVM: ceiling */
    bool check_purse;               /* EVM: refuse a new move that the account cannot pay */
    uint32_t timeout_ms;            /* EVM: of one request */
    bool (*stopped)(void *context); /* polled while waiting for endpoints; NULL: never */
    void *context;
};

/* Fills in everything but url, state_dir, signer and registry. */
void ledger_options_init(struct ledger_options *options);

struct ledger;

/* STATUS_USAGE for an unknown kind of URL, STATUS_NOT_FOUND for a local file that does not exist
 * (see ledger_local.h), STATUS_REFUSED when another process uses the state. */
MUST_CHECK enum status ledger_open(struct ledger **ledger, const struct ledger_options *options,
                                   struct error *error);
void ledger_close(struct ledger *ledger); /* NULL is fine */

/* Identifies the game: equal for every handle on it, different for every other game. */
#define LEDGER_CHAIN_MAX 48

struct ledger_place {
    char chain[LEDGER_CHAIN_MAX]; /* "eip155:1", or "local:" and a random number */
    struct address registry;      /* zero: embedded */
};

const struct ledger_place *ledger_get_place(const struct ledger *ledger);
const struct game_place *ledger_get_game(const struct ledger *ledger); /* the same, for keys */
const struct address *ledger_get_own(const struct ledger *ledger);     /* zero without a key */

/* ---- moves -------------------------------------------------------------------- */

enum ledger_move_state {
    LEDGER_MOVE_WAITING = 1, /* not sent yet, or not in a block */
    LEDGER_MOVE_DONE = 2,    /* in a block that may still be reorganized away */
    LEDGER_MOVE_FINAL = 3,
    LEDGER_MOVE_REFUSED = 4, /* against the rules: see refusal. It changed nothing. */
};

struct ledger_outcome {
    enum ledger_move_state state;
    struct game_refusal refusal;
    struct hash32 transaction; /* EVM */
    uint64_t height;
    char trouble[256]; /* why it waits; empty: unknown */
};

/* move->value must be what the rules require. A name that another move has is refused; a move that
 * the rules refused may be submitted again under its name. */
MUST_CHECK enum status ledger_submit(struct ledger *ledger, const char *name,
                                     const struct game_move *move, struct error *error);

/* Can the account pay a move of this kind and value now, with its gas? STATUS_REFUSED has the
 * balance and the need. What cannot be found out counts as a yes: the move will say. */
MUST_CHECK enum status ledger_afford(struct ledger *ledger, enum game_move_kind kind, wei value,
                                     struct error *error);

MUST_CHECK enum status ledger_look(struct ledger *ledger, struct ledger_outcome *outcome,
                                   const char *name, struct error *error);

/* One round: sends moves, follows them, reads new blocks. STATUS_UNREACHABLE: call again later. */
MUST_CHECK enum status ledger_work(struct ledger *ledger, struct error *error);

/* Works until the event log has all blocks that existed at the start. */
MUST_CHECK enum status ledger_catch_up(struct ledger *ledger, struct error *error);

/* Works until the move is done, final or refused, or the time is over (STATUS_UNREACHABLE). */
MUST_CHECK enum status ledger_wait(struct ledger *ledger, struct ledger_outcome *outcome,
                                   const char *name, bool until_final, uint32_t timeout_ms,
                                   struct error *error);

/* ---- events ------------------------------------------------------------------- */

enum ledger_entry_kind {
    LEDGER_EVENT = 1,
    LEDGER_REWIND = 2, /* earlier entries of heights above this one are void */
};

struct ledger_entry {
    enum ledger_entry_kind kind;
    uint64_t number; /* pass it as after to get the next */
    uint64_t height;
    uint64_t time_s; /* of the block */
    struct game_event event;
};

/* The first entry after a number (0: from the beginning) whose block has depth blocks on top.
 * Events of blocks that were reorganized away are left out. STATUS_NOT_FOUND: none yet. What the
 * event borrows is valid until the next call of this function. */
MUST_CHECK enum status ledger_next(struct ledger *ledger, struct ledger_entry *entry,
                                   uint64_t after, uint32_t depth, struct error *error);

/* ---- reading ------------------------------------------------------------------ */

struct ledger_job {
    enum game_phase phase;
    struct address client;
    struct address solver;
    uint32_t generation;
    uint32_t segments;
    uint32_t committed;
    uint32_t finalized;
    uint32_t open_claims;
    uint64_t due_s;
    bool ended;
    struct game_terms terms; /* EVM: the roots and the salt are those of the event OPENED only */
};

struct ledger_claim {
    enum game_claim_phase phase;
    enum game_turn turn;
    struct address claimant;
    struct address attestor; /* zero: the solver is accused */
    struct hash32 job;
    struct hash32 segment;
    uint64_t deadline_s;
    uint32_t generation;
    uint32_t turns;
    struct digest trace_root;
};

struct ledger_clock {
    uint64_t time_s;
    uint64_t height;
};

/* STATUS_NOT_FOUND for a key that nobody opened. */
MUST_CHECK enum status ledger_get_job(struct ledger *ledger, struct ledger_job *job,
                                      const struct hash32 *key, struct error *error);
MUST_CHECK enum status ledger_get_claim(struct ledger *ledger, struct ledger_claim *claim,
                                        const struct hash32 *key, struct error *error);

/* purse: what the account has; owed: what the ledger holds for it. */
MUST_CHECK enum status ledger_get_account(struct ledger *ledger, wei *purse, wei *owed,
                                          const struct address *account, struct error *error);
MUST_CHECK enum status ledger_get_clock(struct ledger *ledger, struct ledger_clock *clock,
                                        struct error *error);

/* ---- the calls, typed ----------------------------------------------------------- */

MUST_CHECK enum status ledger_open_job(struct ledger *ledger, const char *name, struct hash32 *job,
                                       const struct game_terms *terms, struct error *error);
MUST_CHECK enum status ledger_cancel(struct ledger *ledger, const char *name,
                                     const struct hash32 *job, struct error *error);
MUST_CHECK enum status ledger_accept(struct ledger *ledger, const char *name,
                                     const struct hash32 *job, const struct game_terms *terms,
                                     struct error *error);
MUST_CHECK enum status ledger_commit(struct ledger *ledger, const char *name,
                                     const struct hash32 *job, uint32_t index,
                                     const struct digest *root, struct error *error);
/* steps: of the last segment of a training that diverged. */
MUST_CHECK enum status ledger_commit_diverged(struct ledger *ledger, const char *name,
                                              const struct hash32 *job, uint32_t index,
                                              const struct digest *root, uint32_t steps,
                                              struct error *error);
MUST_CHECK enum status ledger_draw(struct ledger *ledger, const char *name,
                                   const struct hash32 *job, const struct game_segment *segment,
                                   struct error *error);
/* Seals trace_root; ledger_reveal shows it later. */
MUST_CHECK enum status ledger_attest(struct ledger *ledger, const char *name,
                                     const struct hash32 *job, const struct game_terms *terms,
                                     const struct game_segment *segment,
                                     const struct digest *trace_root, struct error *error);
MUST_CHECK enum status ledger_reveal(struct ledger *ledger, const char *name,
                                     const struct hash32 *job, const struct game_segment *segment,
                                     const struct digest *trace_root, struct error *error);

/* A claim is two moves: seal it, and a block later file it with the same random salt. *claim is its
 * key. */
struct ledger_whistle {
    struct hash32 job;
    struct game_segment segment;
    uint32_t step; /* counted within the segment */
    struct digest pre_state;
    struct digest post_state;
    struct hash32 salt;
};

MUST_CHECK enum status ledger_seal_claim(struct ledger *ledger, const char *name,
                                         struct hash32 *claim, const struct ledger_whistle *whistle,
                                         struct error *error);
MUST_CHECK enum status ledger_claim(struct ledger *ledger, const char *name,
                                    const struct game_terms *terms,
                                    const struct ledger_whistle *whistle, struct error *error);

/* The same against an attestor that revealed a false trace root; its step is the one it drew. */
struct ledger_accusation {
    struct hash32 job;
    struct game_segment segment;
    struct address attestor;
    struct hash32 salt;
};

MUST_CHECK enum status ledger_seal_accusation(struct ledger *ledger, const char *name,
                                              struct hash32 *claim,
                                              const struct ledger_accusation *accusation,
                                              struct error *error);
MUST_CHECK enum status ledger_accuse(struct ledger *ledger, const char *name,
                                     const struct game_terms *terms,
                                     const struct ledger_accusation *accusation,
                                     struct error *error);
MUST_CHECK enum status ledger_answer(struct ledger *ledger, const char *name,
                                     const struct hash32 *claim, const struct digest *trace_root,
                                     struct error *error);

/*
 * Before the referee, in turns: the claimant queries (proofs/dispute/ledger_query.h) or convicts
 * (proofs/dispute/evidence.h); the accused replies to the event QUERIED with the bytes of
 * proofs/dispute/trace_reply.h. STATUS_OVER_LIMIT: too long for a transaction. STATUS_REFUSED: the
 * registry has no referee.
 */
MUST_CHECK enum status ledger_query(struct ledger *ledger, const char *name,
                                    const struct hash32 *claim, const struct game_case *shown,
                                    const void *query, size_t query_size, struct error *error);
MUST_CHECK enum status ledger_reply(struct ledger *ledger, const char *name,
                                    const struct hash32 *claim, const struct game_bytes *queried,
                                    const void *reply, size_t reply_size, struct error *error);
MUST_CHECK enum status ledger_convict(struct ledger *ledger, const char *name,
                                      const struct hash32 *claim, const struct game_case *shown,
                                      const void *evidence, size_t evidence_size,
                                      struct error *error);
MUST_CHECK enum status ledger_timeout(struct ledger *ledger, const char *name,
                                      const struct hash32 *claim, struct error *error);
MUST_CHECK enum status ledger_lapse(struct ledger *ledger, const char *name,
                                    const struct hash32 *claim, struct error *error);
MUST_CHECK enum status ledger_finalize(struct ledger *ledger, const char *name,
                                       const struct hash32 *job, const struct game_segment *segment,
                                       struct error *error);
MUST_CHECK enum status ledger_renew(struct ledger *ledger, const char *name,
                                    const struct hash32 *job, const struct game_segment *segment,
                                    struct error *error);
MUST_CHECK enum status ledger_settle(struct ledger *ledger, const char *name,
                                     const struct hash32 *job, const struct game_segment *segment,
                                     const struct address *attestor, struct error *error);
MUST_CHECK enum status ledger_release(struct ledger *ledger, const char *name,
                                      const struct hash32 *job, struct error *error);
MUST_CHECK enum status ledger_expire(struct ledger *ledger, const char *name,
                                     const struct hash32 *job, struct error *error);
MUST_CHECK enum status ledger_withdraw(struct ledger *ledger, const char *name,
                                       const struct address *to, struct error *error);

#endif /* CHAIN_GAME_LEDGER_H */
