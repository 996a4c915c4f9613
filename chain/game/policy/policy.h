/*
 * policy.h - which terms of a job a party of this machine agrees to, and how much it locks for
 * them.
 *
 * The game lets a client write any terms. A policy is what a verifier's node, a solver and a client
 * take of them: each function looks at the terms, at what is locked already and at what a replay
 * takes here, and agrees or names the term, its value, the limit and the option that changes it.
 * Nothing here allocates, reads a clock or touches a ledger. Sums of money saturate.
 */
#ifndef CHAIN_GAME_POLICY_POLICY_H
#define CHAIN_GAME_POLICY_POLICY_H

#include "chain/codec/currency.h"
#include "chain/game/game.h"

#define POLICY_ONE       1000u    /* multiples are in thousandths: 1300 is 1.3 */
#define POLICY_WHOLE_PPM 1000000u /* shares of what an account has */
#define POLICY_TEXT_MAX  512

/* At most so much money: an amount, or a share of what the account has. */
struct policy_cap {
    bool set; /* else there is no limit */
    bool is_share;
    uint32_t share_ppm;
    wei amount;
};

/* The limits of all roles. A limit of zero is no limit: a zero-filled policy agrees to all
 * terms. */
struct policy {
    struct currency currency; /* of the ledger that the terms are on */

    /* What a node's bonds lock, those that it lost lately included. */
    struct policy_cap lock_all;
    struct policy_cap lock_job;
    struct policy_cap lock_party; /* jobs of one client, or of one solver */
    wei fee_least;
    uint32_t bond_fees_max; /* the bond of a seat, in fees */
    uint32_t seal_least_s;
    uint32_t reveal_least_s;
    uint32_t segment_most_s; /* the segment period */

    /* Of nodes and solvers. */
    uint32_t lock_time_max_s; /* how long the terms can hold a bond or a stake */
    uint32_t clock_least_s;
    uint32_t clock_factor; /* in thousandths: a period against the time of a replay */
    uint32_t cost_cover;   /* in thousandths: fee or reward against the cost of the work */
    wei price;             /* of an hour of this machine; 0: nothing */
    wei token_price;       /* of a whole coin, in a registry's token; 0: not known */

    /* Of a solver. */
    struct policy_cap stake_max;
    uint32_t stake_rewards_max; /* in thousandths: the stake against the whole reward */
    wei reward_least;           /* for a segment */
    wei hour_least;             /* what an hour of this machine must earn beyond its price */
    uint32_t time_spare;        /* in thousandths: deadlines against the time of the training */
};

/* The classes of terms: what `job open` opens, and what a node and a solver take. */
#define POLICY_CLASSES "quick|lean|standard|careful"
#define POLICY_QUICK   "quick" /* of the others a policy makes no difference */

/* The limits of a program that nobody has told any. */
struct policy policy_default(void);

/* Of one that was told to take quick terms: for people who try, with money that is worth nothing.
 * A party that is away for a minute loses its bond or stake. */
struct policy policy_quick(void);

/* What an account has, and what its bonds lock already. */
struct policy_locked {
    wei means; /* purse, owed, and what is locked and not lost; nothing of it twice */
    wei all;
    wei job;
    wei client; /* in jobs of this job's client, and */
    wei solver; /* of this segment's solver */
};

/* What the work takes here, in milliseconds (0: nobody knows yet), and on the ledger. */
struct policy_pace {
    uint64_t segment_ms; /* to compute a segment once */
    uint64_t left_ms;    /* of a training that is not done: what is left of it */
    wei gas_price;       /* in coins; 0: the ledger takes nothing for moves */
};

#define POLICY_SEAT_GAS 200000u /* of the moves of a seat */

enum policy_term {
    POLICY_AGREED,
    POLICY_FEE,
    POLICY_BOND,
    POLICY_SEAL_PERIOD,
    POLICY_REVEAL_PERIOD,
    POLICY_CLAIM_PERIOD,
    POLICY_CLOCK,
    POLICY_REWARD,
    POLICY_STAKE,
    POLICY_SEGMENT_PERIOD,
    POLICY_DEADLINE,
    POLICY_PACE, /* no term: nobody has measured what a segment takes here */
    POLICY_TERMS,
};

struct policy_refusal {
    enum policy_term term;
    bool for_now;               /* what is locked stands in the way: that changes */
    char text[POLICY_TEXT_MAX]; /* a sentence */
};

/* How long a bond or a stake that is locked now can be held, where each move is made as soon as it
 * can be: until the deadline, and from there all rounds of a segment, the claim times that it waits
 * for at most, and the clocks of a full queue of claims. */
uint64_t policy_lock_time(const struct game_terms *terms, uint64_t now_s);

/* True: agreed, and *refusal is empty. */

/* A node: to lock the bond of one more entry in the panel. locked NULL: only the terms are looked
 * at. pace NULL: only what holds on every machine; a pace that nobody has measured is refused. */
MUST_CHECK bool policy_enlist(struct policy_refusal *refusal, const struct policy *policy,
                              const struct game_terms *terms, const struct policy_locked *locked,
                              const struct policy_pace *pace, uint64_t now_s);

/* A node: to lock the bond of a claim, which grows with the claims that wait. Its time is not
 * limited: who sees a lie in a job with long clocks still claims. */
MUST_CHECK bool policy_claim(struct policy_refusal *refusal, const struct policy *policy,
                             const struct game_terms *terms, wei bond,
                             const struct policy_locked *locked, const struct policy_pace *pace);

/* A solver: to stake. means: what its account has. */
MUST_CHECK bool policy_solve(struct policy_refusal *refusal, const struct policy *policy,
                             const struct game_terms *terms, wei means,
                             const struct policy_pace *pace, uint64_t now_s);

/* A solver: how many segments that nobody vouched for may be open, so that what a void of them
 * burns is no more than the stake; never less than a leg takes. ahead: the most that it wants. */
uint32_t policy_ahead(const struct game_terms *terms, uint32_t ahead);

/* What an hour of this machine earns with that reward for a segment, its price not taken off;
 * 0: the pace is not known. */
wei policy_hour(wei reward, const struct policy_pace *pace);

/* A client: would a node and a solver with such a policy take these terms? Those who have money
 * enough, that is: what is locked is not looked at. */
MUST_CHECK bool policy_open(struct policy_refusal *refusal, const struct policy *policy,
                            const struct game_terms *terms, uint64_t now_s);

const char *policy_term_word(enum policy_term term); /* "reveal"; at most 8 characters */

/* The option of `job open` that sets the term: "--reveal-period"; "": none does. */
const char *policy_term_option(enum policy_term term);

/* What is in force, for people, in one line each. */
void policy_describe_node(char text[POLICY_TEXT_MAX], const struct policy *policy);
void policy_describe_solver(char text[POLICY_TEXT_MAX], const struct policy *policy);

#endif /* CHAIN_GAME_POLICY_POLICY_H */
