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
#include "base/io/log.h"
#include "chain/codec/currency.h"
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
    const struct log *log; /* EVM: learns of endpoints that are ill, and of moves that a
                            * reorganization took back; borrowed; NULL: nobody does */
};

/* Fills in everything but url, state_dir, signer and registry. */
void ledger_options_init(struct ledger_options *options);

/* Is it the URL of an embedded ledger? NULL is none. */
bool ledger_is_embedded(const char *url);

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
/* What all amounts are in; zero: the chain's coin. Gas is always paid in the coin. */
const struct address *ledger_get_token(const struct ledger *ledger);
const struct currency *ledger_get_currency(const struct ledger *ledger); /* the same, by name */
/* The file that other processes may read events from (event_log.h); NULL: there is none. */
const char *ledger_get_event_log(const struct ledger *ledger);

/* ---- endpoints ------------------------------------------------------------------ */

#define LEDGER_ENDPOINTS_MAX 16
#define LEDGER_LABEL_SIZE    300
#define LEDGER_REASON_SIZE   400

struct ledger_endpoint {
    char label[LEDGER_LABEL_SIZE];   /* "https://host:port" */
    char reason[LEDGER_REASON_SIZE]; /* what ails it; empty: nothing */
    uint64_t since_s;                /* ... since when, in seconds since 1970 */
};

/* How many endpoints a chain has, and how they are. An embedded ledger has none. */
size_t ledger_endpoints(const struct ledger *ledger,
                        struct ledger_endpoint list[LEDGER_ENDPOINTS_MAX]);

/* "https://b is ill since 2026-03-01T12:00:00Z: HTTP status 429"; those that are well are left out.
 * Empty: all are well. */
void ledger_ill_endpoints(const struct ledger *ledger, char *text, size_t text_size);

/* How many moves of this account counted as final and were taken back by a reorganization deeper
 * than the depth. They were sent again. */
MUST_CHECK enum status ledger_reopened(struct ledger *ledger, uint64_t *count, struct error *error);

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

/* move->value must be what the rules require. A name that another move has is refused; but where
 * the rules refused a move, its name is free for another try, also of another move. */
MUST_CHECK enum status ledger_submit(struct ledger *ledger, const char *name,
                                     const struct game_move *move, struct error *error);

/* Can the account pay a move of this kind and value now, with its gas? STATUS_REFUSED has the
 * balance and the need. What cannot be found out counts as a yes: the move will say. */
MUST_CHECK enum status ledger_afford(struct ledger *ledger, enum game_move_kind kind, wei value,
                                     struct error *error);

/* What a unit of gas costs now, in the chain's coin; 0: moves cost nothing. */
MUST_CHECK enum status ledger_get_gas_price(struct ledger *ledger, wei *price, struct error *error);

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
    uint64_t time_s;           /* of the block */
    struct hash32 transaction; /* zero: the ledger has none, or it is not known */
    struct game_event event;
};

/* The first entry after a number (0: from the beginning) whose block has depth blocks on top.
 * Events of blocks that were reorganized away are left out. STATUS_NOT_FOUND: none yet. What the
 * event borrows is valid until the next call of this function. */
MUST_CHECK enum status ledger_next(struct ledger *ledger, struct ledger_entry *entry,
                                   uint64_t after, uint32_t depth, struct error *error);

/* The same for events of one kind alone, however many others there are; no rewinds. */
MUST_CHECK enum status ledger_next_of(struct ledger *ledger, struct ledger_entry *entry,
                                      uint64_t after, enum game_event_kind kind,
                                      struct error *error);

/* ---- reading ------------------------------------------------------------------ */

/* What moves have changed in a job. Its terms are in the event OPENED. */
struct ledger_job {
    enum game_phase phase;
    struct address client;
    struct address solver;
    uint32_t generation;
    uint32_t segments;
    uint32_t committed;
    uint32_t finalized;
    uint32_t open_claims;
    uint32_t drawn;           /* segments are drawn in order: so many were */
    uint32_t leg_start;       /* the first segment behind the last covered one */
    uint32_t panel;           /* entries of this generation */
    uint64_t opened_at_s;     /* and of each return to OPEN */
    uint64_t due_s;           /* 0: no time runs */
    uint64_t refused_until_s; /* 0: nobody refused */
    wei pool;
    wei missing_escrow; /* what a void burned: the client puts it back to go on */
    wei missing_pool;   /* ... */
    bool ended;         /* the last committed segment says that the training diverged */
    bool barred;        /* until the client resumes */
};

struct ledger_claim {
    enum game_claim_phase phase;
    enum game_turn turn;
    enum game_outcome outcome; /* of CLOSED */
    struct hash32 job;
    struct hash32 segment; /* its hash */
    struct hash32 subject;
    uint32_t generation;
    uint64_t rank;
    struct address solver;
    struct address lead; /* zero: none is left */
    uint32_t claimants;  /* that are left */
    uint64_t since_s;
    uint32_t solver_left_s; /* of their clocks */
    uint32_t lead_left_s;
    uint64_t deadline_s; /* of the turn; 0: nobody's clock runs */
    struct digest trace_root;
};

struct ledger_clock {
    uint64_t time_s;
    uint64_t height;
    uint32_t seed_delay; /* from a commit to the block that a draw can follow */
};

/* STATUS_NOT_FOUND for a key that nobody opened. */
MUST_CHECK enum status ledger_get_job(struct ledger *ledger, struct ledger_job *job,
                                      const struct hash32 *key, struct error *error);
MUST_CHECK enum status ledger_get_claim(struct ledger *ledger, struct ledger_claim *claim,
                                        const struct hash32 *key, struct error *error);

/* purse: what the account has, in the ledger's currency; owed: what the ledger holds for it. */
MUST_CHECK enum status ledger_get_account(struct ledger *ledger, wei *purse, wei *owed,
                                          const struct address *account, struct error *error);

/* What transactions of an account have cost it in gas, in the chain's coin: of those that programs
 * of this machine sent, each in turn, with the time when it was sent. */
MUST_CHECK enum status ledger_each_gas(struct ledger *ledger, const struct address *account,
                                       void (*take)(void *context, wei amount, uint64_t time_s),
                                       void *context, struct error *error);

/* How old the newest block is, by the clock of this machine; older than a quarter of an hour: the
 * endpoint is behind, or the chain stands. */
uint64_t ledger_age_s(const struct ledger_clock *clock);
bool ledger_is_stale(const struct ledger_clock *clock);

/* For something that the ledger should have and has not: STATUS_NOT_FOUND as it is, but
 * STATUS_UNREACHABLE where a chain is stale: it may come. */
enum status ledger_missing(struct ledger *ledger, struct error *error);

MUST_CHECK enum status ledger_get_clock(struct ledger *ledger, struct ledger_clock *clock,
                                        struct error *error);
/* The block from which the seeds of commits of that block come; 0: they were not fixed. */
MUST_CHECK enum status ledger_get_fixed(struct ledger *ledger, uint64_t *source, uint64_t height,
                                        uint64_t time_s, struct error *error);

/* Does a contract say that it has signed the hash (ERC-1271)? STATUS_REFUSED: no. */
MUST_CHECK enum status ledger_get_signed(struct ledger *ledger, const struct address *contract,
                                         const struct hash32 *hash,
                                         const struct game_bytes *signature, struct error *error);

/* A vouch of a keeper, a key or a contract, as settle would bring it. */
struct ledger_vouch {
    struct hash32 job;
    struct hash32 segment;
    struct address keeper;
    struct game_bytes signature;
};

/* Would the registry of a chain take it? STATUS_REFUSED: no. *asked: false where the ledger is
 * embedded, which has no contracts: what a key has signed needs no question. */
MUST_CHECK enum status ledger_ask_vouch(struct ledger *ledger, bool *asked,
                                        const struct ledger_vouch *vouch, struct error *error);

/* ---- the calls, typed ----------------------------------------------------------- */

/* What borrowed bytes and hashes a move has is read before the call returns. */

MUST_CHECK enum status ledger_open_job(struct ledger *ledger, const char *name, struct hash32 *job,
                                       const struct game_terms *terms,
                                       const struct game_bytes *contact, struct error *error);

/* Closes a job that no solver has: the client, and after the deadline anybody. */
MUST_CHECK enum status ledger_close_job(struct ledger *ledger, const char *name,
                                        const struct hash32 *job, struct error *error);
/* amount: missing_escrow + missing_pool of the job now. */
MUST_CHECK enum status ledger_resume(struct ledger *ledger, const char *name,
                                     const struct hash32 *job, wei amount, struct error *error);
MUST_CHECK enum status ledger_stop(struct ledger *ledger, const char *name,
                                   const struct hash32 *job, struct error *error);
/* Of the client or the keeper. */
MUST_CHECK enum status ledger_refuse(struct ledger *ledger, const char *name,
                                     const struct hash32 *job, struct error *error);

/* path: siblings of this account in the allow-list of solvers; of none, without one. */
MUST_CHECK enum status ledger_accept(struct ledger *ledger, const char *name,
                                     const struct hash32 *job, const struct game_terms *terms,
                                     const struct game_hashes *path,
                                     const struct game_bytes *contact, struct error *error);
MUST_CHECK enum status ledger_commit(struct ledger *ledger, const char *name,
                                     const struct hash32 *job, uint32_t index,
                                     const struct game_hashes *states, bool diverged,
                                     struct error *error);

MUST_CHECK enum status ledger_enlist(struct ledger *ledger, const char *name,
                                     const struct hash32 *job, const struct game_terms *terms,
                                     uint32_t count, const struct game_hashes *path,
                                     const struct game_bytes *contact, struct error *error);
MUST_CHECK enum status ledger_depart(struct ledger *ledger, const char *name,
                                     const struct hash32 *job, uint32_t generation, uint32_t entry,
                                     struct error *error);
MUST_CHECK enum status ledger_announce(struct ledger *ledger, const char *name,
                                       const struct hash32 *job, const struct game_bytes *contact,
                                       struct error *error);
/* commits: the segment's own, or the end of the round that another one follows. The ledger finds
 * what shows the seed; without a panel it asks for none, since only a job without
 * seats has none. Seven days after the commit it fixes another one first, by
 * a move of its own: on some chains nobody can ever show the first. STATUS_UNREACHABLE: the block
 * that the seed comes from is not there yet. */
MUST_CHECK enum status ledger_draw(struct ledger *ledger, const char *name,
                                   const struct hash32 *job, const struct game_segment *segment,
                                   const struct game_commits *commits, struct error *error);

/* Lets the seeds of commits of that block come from another: ledger_draw does it where it must. */
MUST_CHECK enum status ledger_fix(struct ledger *ledger, const char *name, uint64_t height,
                                  uint64_t time_s, struct error *error);

/* Of a seat: a verdict is sealed, and later revealed: right by ledger_reveal, false by
 * ledger_alarm. Who could not get the states says ledger_unseen instead. */
struct ledger_verdict {
    struct hash32 job;
    struct game_segment segment;
    uint32_t place;
    enum game_verdict verdict;
    uint32_t step;             /* of FALSE, within the segment */
    struct game_leaves leaves; /* of RIGHT */
    struct hash32 salt;        /* random, and kept until the verdict is revealed */
};

MUST_CHECK enum status ledger_seal(struct ledger *ledger, const char *name,
                                   const struct ledger_verdict *verdict, struct error *error);
MUST_CHECK enum status ledger_reveal(struct ledger *ledger, const char *name,
                                     const struct ledger_verdict *verdict, struct error *error);
MUST_CHECK enum status ledger_alarm(struct ledger *ledger, const char *name,
                                    const struct ledger_verdict *verdict,
                                    const struct game_case *shown, struct error *error);

/* An outsider's claim is two moves: seal it, and a block later make it with the same random salt.
 * bond: game_claim_bond(). This one, and that of ledger_enlist, comes from what the account is owed
 * where its purse is too short and that is enough. */
MUST_CHECK enum status ledger_seal_claim(struct ledger *ledger, const char *name,
                                         const struct hash32 *subject, const struct hash32 *salt,
                                         struct error *error);
MUST_CHECK enum status ledger_claim(struct ledger *ledger, const char *name,
                                    const struct hash32 *job, const struct game_case *shown,
                                    const struct hash32 *salt, wei bond, struct error *error);
MUST_CHECK enum status ledger_answer(struct ledger *ledger, const char *name,
                                     const struct hash32 *claim, const struct digest *trace_root,
                                     struct error *error);

/*
 * Before the referee, in turns: the claimant queries (proofs/dispute/ledger_query.h), which costs
 * query_fee, or convicts (proofs/dispute/evidence.h); the solver replies to the event QUERIED with
 * the bytes of proofs/dispute/trace_reply.h. STATUS_OVER_LIMIT: too long for a transaction.
 */
MUST_CHECK enum status ledger_query(struct ledger *ledger, const char *name,
                                    const struct hash32 *claim, const struct game_subject *subject,
                                    const void *query, size_t query_size, wei query_fee,
                                    struct error *error);
MUST_CHECK enum status ledger_reply(struct ledger *ledger, const char *name,
                                    const struct hash32 *claim, const struct game_bytes *queried,
                                    const void *reply, size_t reply_size, struct error *error);
MUST_CHECK enum status ledger_convict(struct ledger *ledger, const char *name,
                                      const struct hash32 *claim,
                                      const struct game_subject *subject, const void *evidence,
                                      size_t evidence_size, struct error *error);

MUST_CHECK enum status ledger_timeout(struct ledger *ledger, const char *name,
                                      const struct hash32 *claim, struct error *error);
MUST_CHECK enum status ledger_lapse(struct ledger *ledger, const char *name,
                                    const struct hash32 *claim, struct error *error);
MUST_CHECK enum status ledger_pay(struct ledger *ledger, const char *name, const struct hash32 *job,
                                  uint32_t generation, struct error *error);

/* Against a right that was revealed: which of its leaves, and that leaf under the segment's root
 * (docs/FORMATS.md, section 9). */
struct ledger_challenge {
    struct hash32 job;
    struct game_segment segment;
    uint32_t place;
    struct game_leaves leaves; /* as they were revealed, */
    struct hash32 salt;        /* ... and the salt */
    uint32_t which;
    struct hash32 seal_salt; /* random: of the challenge's own seal */
};

/* Two moves, as a claim is: seal it, and 1 to 32 blocks later make it. */
MUST_CHECK enum status ledger_seal_challenge(struct ledger *ledger, const char *name,
                                             const struct ledger_challenge *challenge,
                                             struct error *error);
MUST_CHECK enum status ledger_challenge(struct ledger *ledger, const char *name,
                                        const struct ledger_challenge *challenge, const void *shown,
                                        size_t shown_size, struct error *error);

MUST_CHECK enum status ledger_unseen(struct ledger *ledger, const char *name,
                                     const struct hash32 *job, const struct game_segment *segment,
                                     uint32_t place, struct error *error);
/* All that may be done about a covered segment: its round ends, its leg is final or void. vouch:
 * the keeper's signature; NULL: none. */
MUST_CHECK enum status ledger_settle(struct ledger *ledger, const char *name,
                                     const struct hash32 *job, const struct game_segment *segment,
                                     const struct game_bytes *vouch, struct error *error);
MUST_CHECK enum status ledger_release(struct ledger *ledger, const char *name,
                                      const struct hash32 *job, struct error *error);
MUST_CHECK enum status ledger_withdraw(struct ledger *ledger, const char *name,
                                       const struct address *to, struct error *error);

#endif /* CHAIN_GAME_LEDGER_H */
