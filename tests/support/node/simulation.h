/*
 * simulation.h - a world of nodes, solvers and cheats that is made of one number.
 *
 * The nodes are the product's (verifier/node/node.h), each over a disk, a ledger, a clock and
 * children of its own, all of them virtual. They and scripted players play whole jobs over the
 * rules of the embedded ledger. The seed decides everything else: the terms, who lies and where,
 * who is silent, what fails and when, which node dies and what its disk still holds. No clock is
 * read and nothing sleeps, so a seed gives the same life wherever it is lived.
 *
 * Storms, in which all of that happens, alternate with calm. A storm is shorter than the periods of
 * the game, so a player that goes on when it is over is online.
 *
 *     simulation.c          the world: time, weather, the lives of nodes
 *     simulation_players.c  client, solvers, lying seats, slanderers, anybody
 *     simulation_judge.c    the promises: what must hold after each step, and in the end
 */
#ifndef TESTS_SUPPORT_NODE_SIMULATION_H
#define TESTS_SUPPORT_NODE_SIMULATION_H

#include <stdio.h>

#include "chain/job/job_record.h"
#include "tests/support/node/virtual_checks.h"
#include "tests/support/node/virtual_disk.h"
#include "tests/support/node/virtual_ledger.h"
#include "verifier/node/node_round.h"

enum {
    SIMULATION_NODES = 4,
    SIMULATION_JOBS = 2,
    SIMULATION_SEGMENTS = 3, /* of a job */
    SIMULATION_STEPS = 4,    /* of a segment, at most */
    SIMULATION_LISTS = 64,   /* of states that were committed */
    SIMULATION_WRONG_MAX = 512,
};

struct simulation_result {
    char wrong[SIMULATION_WRONG_MAX]; /* empty: all promises were kept */
    struct hash32 transcript;
    uint64_t steps;
    uint64_t rounds;
    uint64_t deaths;
    uint64_t power_failures;
    uint64_t stores_lost;
    uint64_t reorganizations;
    uint64_t moves; /* in blocks at the end */
    uint64_t rights;
    uint64_t alarms;
    uint64_t unseen; /* said by nodes */
    uint64_t claims; /* by nodes, as outsiders */
    uint64_t slanders;
    uint64_t convictions;
    uint64_t disproved; /* rights that were made up */
    uint64_t voided;
    uint64_t finals;
    uint64_t diverged;  /* the last of a job that ended so */
    uint64_t pretended; /* claims about states that are right, but finite or not as was said */
    uint64_t lies;      /* that became final */
    uint64_t closed;
};

/* log: where the life is told, or NULL. */
void simulation_run(struct simulation_result *result, uint64_t seed, FILE *log);

/* ---- for simulation*.c ------------------------------------------------------------ */

/* Scripted players; their accounts come behind the nodes'. */
enum simulation_player {
    PLAYER_CLIENT,
    PLAYER_HONEST, /* a solver */
    PLAYER_CHEAT,
    PLAYER_SEAT, /* a panel's liar; makes the moves of anybody too */
    PLAYER_SLANDERER,
    SIMULATION_PLAYERS,
};

/* What a lying seat says. */
enum simulation_manner {
    MANNER_ABSENT,
    MANNER_MADE_UP, /* right, with leaves that it has not seen */
    MANNER_UNSEEN,
    MANNER_FALSE_ALARM,
    SIMULATION_MANNERS,
};

/* What a cheat's lie is about. */
enum simulation_fraud {
    FRAUD_STATE,
    FRAUD_DIVERGED, /* it says that the training diverged, to be done with it */
    FRAUD_WENT_ON,  /* it goes on where it did */
    SIMULATION_FRAUDS,
};

struct simulation_list {
    struct digest root;
    struct digest states[SIMULATION_STEPS];
    uint32_t steps;
    uint32_t numbers[SIMULATION_STEPS]; /* of made states */
    uint32_t before;
};

struct simulation_job {
    struct game_terms terms;
    struct hash32 key;
    uint64_t opens_ms;
    uint32_t first;  /* the number of its first state: which decides whether it diverges */
    bool is_cheated; /* its first solver is the cheat, who lies in this step */
    uint32_t lie;    /* of the job */
    enum simulation_fraud fraud;
    uint32_t vanishes; /* the cheat commits so many segments at most */
    bool answers;      /* the cheat answers claims */
    bool withholds;    /* and shows nobody what it has */
    bool stops;        /* the client, after a segment */
    bool closes;       /* it does, when its first solver is gone */
    bool refuses;      /* it refuses what the first solver committed, as a bad client would */
    enum simulation_manner manner;
    bool slandered;
    bool queries; /* who claims what is false plays on */
    struct job_record record;
    struct game_segment judged[SIMULATION_SEGMENTS]; /* the last commit of each, as it was judged */
};

struct simulation_node {
    struct simulation *simulation;
    uint32_t number;
    struct address account;
    struct virtual_ledger ledger;
    struct virtual_checks checks;
    struct node node;
    struct node_options options;
    struct store store;
    struct verdict_db *verdicts;
    bool up;
    uint64_t down_until_ms;
    char folder[FILE_PATH_MAX];
    char cache[FILE_PATH_MAX];
    char verdicts_path[FILE_PATH_MAX];
    char store_path[FILE_PATH_MAX];
    wei lost; /* at most: fees of queries that were paid */
    wei earned;
};

struct simulation {
    uint64_t seed;
    uint64_t random; /* of the world */
    uint64_t players_random;
    uint64_t disk_random;
    FILE *log;
    struct log nodes_log;
    struct simulation_result *result;
    struct fate fate;  /* of the node that runs now */
    struct fate never; /* of who is no node */
    struct virtual_disk *disk;
    struct virtual_chain *chain;
    uint64_t depth;
    struct simulation_node nodes[SIMULATION_NODES];
    struct virtual_ledger players[SIMULATION_PLAYERS];
    struct address accounts[SIMULATION_PLAYERS];
    struct simulation_job jobs[SIMULATION_JOBS];
    uint32_t job_count;
    struct simulation_list lists[SIMULATION_LISTS];
    uint32_t list_count;
    uint64_t now_ms;
    uint64_t mined_ms;
    bool storm;
    bool fair; /* a life without storms */
    bool data_is_away;
    bool hidden;    /* a life whose cheat shows nothing to anybody; its panel is large */
    bool withheld;  /* the cheat's turn it is in such a life */
    bool captured;  /* a life whose first cheat has a panel of friends alone */
    bool forsaken;  /* nobody but the nodes makes the moves that time allows */
    uint64_t heard; /* the last event that was judged */
    wei paid_in;
};

bool simulation_chance(uint64_t *random, uint32_t percent);
void simulation_wrong(struct simulation *simulation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void simulation_show(struct simulation *simulation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void simulation_invent_jobs(struct simulation *simulation);
void simulation_play(struct simulation *simulation);
/* The list of states with this root; NULL: nobody committed to it. */
const struct simulation_list *simulation_find_list(const struct simulation *simulation,
                                                   const struct digest *root);
/* Is there anything that must still end? */
#define SIMULATION_WAIT_MAX 64
bool simulation_waits_for(char what[SIMULATION_WAIT_MAX], const struct simulation *simulation);

/* What the ledger holds, and has not burned. */
wei simulation_held(const struct simulation *simulation);
void simulation_judge(struct simulation *simulation);
void simulation_judge_end(struct simulation *simulation);

#endif /* TESTS_SUPPORT_NODE_SIMULATION_H */
