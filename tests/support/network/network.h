/*
 * network.h - jobs of docs/PROTOCOL.md, played many times with one kind of attacker: legs, places,
 * rounds, verdicts, vouches, refusals, voids, convictions, in simulated time.
 *
 * What decides is in chain/game/leg.h and chain/game/game.h: the rules that the ledgers play by.
 * Here are only the players, and a clock. Parties are accounts: the attacker (solver or verifiers
 * or client, or several of these as one), the honest solvers, the honest verifiers, the client, and
 * what the ledger holds or has burned. Money only moves from account to account.
 * docs/ECONOMICS.md lists the simplifications.
 */
#ifndef TESTS_SUPPORT_NETWORK_NETWORK_H
#define TESTS_SUPPORT_NETWORK_NETWORK_H

#include "chain/game/leg.h"

#define NETWORK_UNIT         1000000 /* of money: the cost of computing a segment */
#define NETWORK_NEVER        UINT64_MAX
#define NETWORK_SEGMENTS_MAX 4096
#define NETWORK_PANEL_MAX    128
#define NETWORK_FARMS        32768
#define NETWORK_FARMS_NEAR   8

/* What the attacker does as the solver, if it is. */
enum network_solver {
    SOLVER_HONEST,      /* the attacker is not the solver */
    SOLVER_FALSE,       /* some of its segments are false; it serves everybody */
    SOLVER_WITHHOLDING, /* the same, and it serves the attacker's verifiers alone */
    SOLVER_SELECTIVE,   /* the same, and it serves the keeper too */
    SOLVER_SILENT,      /* computes rightly, and serves nobody */
    SOLVER_LAST,        /* computes rightly, and serves nobody from the last leg */
    SOLVER_SLEEPING,    /* accepts, and commits nothing */
    SOLVER_LEAVING,     /* commits all but the last segment */
};

/* What the attacker's share of the panel does. */
enum network_panel {
    PANEL_HONEST,      /* replays and says what is true */
    PANEL_PARTNER,     /* says right of what its solver made false, without a replay */
    PANEL_TRUSTING,    /* says right without a replay, as if each solver handed out its leaves */
    PANEL_GUESSING,    /* says right without a replay, with leaves that it makes up */
    PANEL_CHALLENGING, /* the same, and challenges itself when somebody else could */
    PANEL_ABSENT,      /* enlists and never shows */
    PANEL_DENYING,     /* says unseen in every case */
    PANEL_ALARMING,    /* says false in every case */
    PANEL_FARMING,     /* says unseen or nothing where it may expect more fees by that */
    PANEL_READING,     /* the same, and it plays all rounds to come as well as can be */
};

/* What the client does. Only the honest one is not the attacker. */
enum network_client {
    CLIENT_HONEST,
    CLIENT_DENYING,  /* its friends in the panel make what it gets void */
    CLIENT_REFUSING, /* refuses when as much is open as will be */
    CLIENT_STOPPING, /* the same, and stops the job first */
};

struct network_terms {
    struct game_terms game; /* in NETWORK_UNIT */
    uint32_t panel;         /* entries */
    uint32_t attackers;     /* of these */
    uint32_t segment_s;     /* to compute one */
    uint32_t draw_s;        /* from a commit to its draw */
    uint32_t fetch_s;       /* from the draw until seats and keeper have the states */
    uint32_t ahead;         /* unvouched segments that a solver has open at most */
    int64_t replay;         /* cost of a check */
    int64_t gas;            /* of a verdict */
    enum network_solver solver;
    enum network_panel panel_plays;
    enum network_client client;
    bool keeper;
    double false_share; /* of the attacker's segments */
    double late;        /* of honest seats: their replays miss the seal */
    double blocks;      /* of all, the attacker makes: it leaves one out that would cover */
    uint32_t swarm;     /* false claims of outsiders, all the attacker's, for each segment */
    double watched;     /* of its segments, by honest nodes in secret */
    uint64_t killed_s;  /* the first solver vanishes then; NETWORK_NEVER: it does not */
};

enum network_account {
    ACCOUNT_ATTACKER,
    ACCOUNT_SOLVERS, /* honest */
    ACCOUNT_PANEL,   /* honest verifiers in their seats */
    ACCOUNT_WATCHERS,
    ACCOUNT_CLIENT,
    ACCOUNT_ESCROW,
    ACCOUNT_POOL,
    ACCOUNT_STAKE,
    ACCOUNT_BURNED,
    ACCOUNTS,
};

/* What a farmer may expect from a state of the draw. */
struct network_farm {
    uint64_t key; /* zero: not known yet */
    double value;
};

struct network {
    struct network_terms terms;
    uint64_t random;
    uint64_t now_s;
    int64_t money[ACCOUNTS];
    int64_t work[ACCOUNTS];       /* computing and gas */
    int64_t honest;               /* what the attacker would have had in its seats and segments */
    int64_t value;                /* of segments that the attacking client got without paying */
    int64_t client_burned;        /* of escrow and pool */
    bool gone[NETWORK_PANEL_MAX]; /* entries of this tenure whose bond is lost */
    bool is_short;                /* the ledger paid what it did not hold: never */
    uint64_t jobs;
    uint64_t honest_segments; /* final, of honest solvers */
    uint64_t honest_seats;
    uint64_t falses;    /* false segments that were committed, */
    uint64_t passed;    /* ... and final */
    uint64_t convicted; /* solvers */
    uint64_t voids;
    uint64_t voided;     /* honest solvers */
    uint64_t void_open;  /* segments that were open then */
    uint64_t unfinished; /* jobs of which nobody would have the rest */
    uint64_t most_open;
    uint64_t worked_s;  /* by solvers, */
    uint64_t stalled_s; /* ... and waited until they could commit */
    struct network_farm farms[NETWORK_FARMS];
};

/* A seed that nobody knows before. */
struct hash32 network_seed(struct network *network);

/* SplitMix64. */
uint64_t network_random(uint64_t *random);

void network_init(struct network *network, const struct network_terms *terms, uint64_t seed);

/* Plays one job to its end: the first solver is the attacker where it attacks as one. Each time
 * that a leg is void, the client puts back what burned, five times at most. */
void network_play(struct network *network);

/* What the attacker had more than honest conduct in the same seats and segments, for a job, in
 * costs of a segment. */
double network_advantage(const struct network *network);

/* What an honest solver earns with a final segment, an honest verifier with a seat; NAN: none. */
double network_solver_net(const struct network *network);
double network_seat_net(const struct network *network);

/* Is what the ledger holds never short, nothing left over, and no honest solver convicted? */
bool network_is_sound(const struct network *network);

#endif /* TESTS_SUPPORT_NETWORK_NETWORK_H */
