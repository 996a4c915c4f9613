/*
 * simulation.h - a node in a world that is made of one number.
 *
 * The node is the product's (verifier/node/node.h), over a virtual disk, chain, ledger, clock and
 * children. The seed decides everything else: jobs and their terms, who lies and where, who is
 * silent, what fails and when, where the node dies and what its disk still holds. No clock is read
 * and nothing sleeps, so a seed gives the same transcript wherever it is played.
 *
 * Storms, in which all of that happens, alternate with calm, in which the node must do its work: a
 * promise is held against it only when there was calm for long enough.
 *
 *     simulation.c          the world: time, faults, the node's life
 *     simulation_worlds.c   what only some worlds have: small queues, full folders, bad machines
 *     simulation_view.c     what stands on the chain
 *     simulation_players.c  client, solvers, other attestors and claimants
 *     simulation_judge.c    what must hold
 *     simulation_waiting.c  and of bonds that wait for a solver that has vanished
 */
#ifndef TESTS_SUPPORT_NODE_SIMULATION_H
#define TESTS_SUPPORT_NODE_SIMULATION_H

#include "tests/support/node/virtual_checks.h"
#include "tests/support/node/virtual_disk.h"
#include "tests/support/node/virtual_ledger.h"
#include "verifier/node/node_round.h"

#define SIMULATION_JOBS_MAX       4
#define SIMULATION_SEGMENTS_MAX   128 /* that were ever committed on one branch */
#define SIMULATION_CLAIMS_MAX     128
#define SIMULATION_STATEMENTS_MAX 512
#define SIMULATION_WRONG_MAX      512

/* What a storm did to the node. Each is over when calm begins, and then it must go on. */
enum simulation_trouble {
    TROUBLE_LEDGER_AWAY,
    TROUBLE_LEDGER_BAD, /* some calls fail, */
    TROUBLE_REFUSING,   /* some submits for want of money, */
    TROUBLE_LAGS,       /* the index is behind */
    TROUBLE_REORGANIZED,
    TROUBLE_DEATH,
    TROUBLE_POWER,
    TROUBLE_STORE_LOST,
    TROUBLE_BOOK_LOST,
    TROUBLE_CACHE_LOST,
    TROUBLE_DISK_FULL,
    TROUBLE_FILES_FULL, /* the folders of claims with it */
    TROUBLE_QUEUE_FULL,
    TROUBLE_CLOCK,
    TROUBLE_SLEEP,
    TROUBLE_BARREN,
    TROUBLE_WITHHELD,
    TROUBLE_FAULT, /* of the machine, until somebody looked */
    SIMULATION_TROUBLES,
};

struct simulation_result {
    char wrong[SIMULATION_WRONG_MAX]; /* empty: all held */
    struct hash32 transcript;
    uint64_t steps;
    uint64_t rounds;
    uint64_t attested;
    uint64_t revealed;
    uint64_t claimed;
    uint64_t upheld;
    uint64_t accused; /* attestors, and how many of them were convicted: */
    uint64_t attestors_convicted;
    uint64_t acquitted; /* of what others accused the node of */
    uint64_t queried;   /* moves before the referee */
    uint64_t deaths;
    uint64_t power_failures;
    uint64_t reorganizations;
    uint64_t faults;
    uint64_t promises; /* that were held against the node, and kept */
    uint64_t tended;   /* moves of the node that a solver should have made */
    /* Moves that the node made in the calm after a storm with this trouble in it. */
    uint64_t recovered[SIMULATION_TROUBLES];
};

const char *simulation_trouble_name(enum simulation_trouble trouble);

/* log: where a player tells what happens, or NULL. */
void simulation_run(struct simulation_result *result, uint64_t seed, FILE *log);

/* ---- for simulation*.c ------------------------------------------------------- */

enum simulation_account {
    SIMULATION_NODE,
    SIMULATION_CLIENT,
    SIMULATION_SOLVER,
    SIMULATION_OTHER_SOLVER,
    SIMULATION_ATTESTOR,
    SIMULATION_LYING_ATTESTOR,
    SIMULATION_RIVAL,   /* claims what is false */
    SIMULATION_SLANDER, /* and what is true */
    SIMULATION_ANYBODY, /* makes the moves that only time allows */
    SIMULATION_ACCOUNTS,
};

struct simulation_job {
    struct game_terms terms;
    struct hash32 key;
    uint64_t opens_ms;
    uint64_t lie[4];         /* of each epoch: the step of the job, or VIRTUAL_TRUE */
    uint32_t commits[4];     /* of each epoch: how many segments before the solver vanishes */
    uint32_t answer_percent; /* chance in each step that a solver answers what it must */
    bool answers_lie;        /* the trace root it answers with is false */
    bool poisoned;           /* no check of it ever ends */
    bool unknown;            /* its rules are not known here */
    bool withheld;           /* its checkpoints are on no mirror now */
    uint64_t data_since_s;   /* when its data were to be had again */
};

struct simulation_segment {
    uint32_t job;
    struct game_segment committed;
    struct hash32 hash;
    const struct virtual_segment *truth;
    bool stands;
    bool final;
    uint64_t ended_s;   /* when it became final or void */
    struct hash32 seed; /* zero: not drawn */
    uint64_t round_s;
    uint32_t attested;
    uint32_t revealed;
    uint32_t generation;
    enum store_mine mine;
    uint32_t mine_step; /* that the chain drew for the node */
    struct hash32 mine_seal;
    bool mine_lost; /* its seal is of an earlier round, and can be revealed no more */
};

struct simulation_claim {
    struct hash32 key;
    uint32_t segment; /* in view.segments */
    bool ours;
    bool against_us;
    struct address claimant;
    struct address attestor;
    uint32_t step;
    enum game_claim_phase phase;
    enum game_turn turn;
    uint64_t turned_s; /* or ended */
    uint64_t deadline_s;
    uint8_t queried[4]; /* what the accused is to tell */
    size_t asked_size;
    bool upheld;
};

/* A trace root that somebody revealed. */
struct simulation_reveal {
    uint32_t segment; /* in view.segments */
    struct address attestor;
    bool false_one;
    bool stands;
    uint64_t time_s;
};

/* The chain up to its last block, told from its events. */
struct simulation_view {
    uint64_t height;
    uint64_t forks;
    struct simulation_segment segments[SIMULATION_SEGMENTS_MAX];
    uint32_t segment_count;
    struct simulation_claim claims[SIMULATION_CLAIMS_MAX];
    uint32_t claim_count;
    struct simulation_reveal reveals[SIMULATION_SEGMENTS_MAX];
    uint32_t reveal_count;
    uint32_t generations[SIMULATION_JOBS_MAX];
    wei received; /* what the node withdrew */
};

/* What the node has said, once and for all. */
struct simulation_statement {
    char name[LEDGER_NAME_MAX + 1];
    enum game_move_kind kind;
    struct hash32 about; /* the segment's hash, or the claim's key */
    struct verdict_db_entry entry;
};

/* What only some lives have. */
struct simulation_world {
    uint32_t tasks_max;   /* of the queue; 0: as many as ever */
    bool fills_files;     /* a full disk is full for files beside the databases, too */
    uint32_t loses_cache; /* percent: chances at each death in a storm */
    uint32_t loses_book;
    uint64_t diverges_ms;    /* from then on one replay disagrees with the other, once; 0: never */
    bool fault_is_looked_at; /* by somebody, in each calm */
};

struct simulation {
    uint64_t seed;
    uint64_t random;         /* of the world */
    uint64_t players_random; /* of those who play in it */
    uint64_t disk_random;
    uint64_t worlds_random; /* of what only some lives have */
    FILE *log;
    struct simulation_result *result;

    struct fate fate;
    struct virtual_disk *disk;
    struct virtual_chain *chain;
    struct virtual_ledger ledger;
    struct virtual_checks checks;
    struct address accounts[SIMULATION_ACCOUNTS];
    struct simulation_job jobs[SIMULATION_JOBS_MAX];
    uint32_t job_count;
    struct simulation_view view;

    uint64_t now_ms;
    uint64_t mined_ms;
    int64_t skew_ms; /* of the node's clock */
    bool storm;
    uint64_t calm_since_s;
    bool forsaken; /* nobody but the node makes the moves that only time allows */
    struct simulation_world world;
    bool files_are_full;
    bool troubles[SIMULATION_TROUBLES]; /* of this storm, or of the one before this calm */

    struct node node;
    struct node_options options;
    struct store store;
    struct verdict_db *verdicts;
    bool up;
    uint64_t down_until_ms;
    char folder[FILE_PATH_MAX];
    char cache[FILE_PATH_MAX];
    char verdict_db_path[FILE_PATH_MAX];
    char store_path[FILE_PATH_MAX];

    bool fault_noted;    /* in this round: a child said that the machine is at fault */
    bool fault;          /* and the node has heard it */
    bool fault_in_store; /* since a round that ended well, until that file is lost */
    bool fault_in_book;
    bool forgets_fault; /* when it is opened next */
    bool verdict_db_was_lost;
    uint64_t
        verdict_db_lost_s; /* for the last time: of what was committed before it may be silent */
    struct simulation_statement statements[SIMULATION_STATEMENTS_MAX];
    uint32_t statement_count;
    struct keccak transcript;
};

bool simulation_chance(uint64_t *random, uint32_t percent);
void simulation_wrong(struct simulation *simulation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void simulation_show(struct simulation *simulation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Brings the view up to the last block. */
void simulation_look(struct simulation *simulation);
/* The segment that stands at an index; NULL: none. */
const struct simulation_segment *simulation_standing(const struct simulation *simulation,
                                                     uint32_t job, uint32_t index);

void simulation_invent_world(struct simulation *simulation);
/* Of the node that has just died: its cache and its book may be lost with it. */
void simulation_lose(struct simulation *simulation);
void simulation_lose_book(struct simulation *simulation);
/* Before a round, and after it: are there files that cannot be written? */
void simulation_fill_files(struct simulation *simulation);
void simulation_empty_files(struct simulation *simulation);
/* After a round: did anything find no room? */
void simulation_watch_queue(struct simulation *simulation);
/* Does the machine that makes this check show now that it cannot be believed? */
bool simulation_diverges(struct simulation *simulation);
void simulation_invent_jobs(struct simulation *simulation);
void simulation_play(struct simulation *simulation);

/* Called for each move that the node submits. */
void simulation_submitted(void *context, const char *name, const struct game_move *move,
                          bool again);
void simulation_contradicted(void *context, const char *name);
bool simulation_guilty(void *context, const struct game_case *shown,
                       const struct local_claim *claim);
/* After a restart: everything that was said is still in the book. */
void simulation_judge_book(struct simulation *simulation);
/* And a fault of the machine is remembered, unless all files that tell of it were lost. */
void simulation_judge_fault(struct simulation *simulation);
/* What of the node's waits in a job for who has vanished does not wait for ever. */
void simulation_judge_waiting(struct simulation *simulation, uint32_t job);
/* After each step; in the end. */
void simulation_judge(struct simulation *simulation);
void simulation_judge_end(struct simulation *simulation);

#endif /* TESTS_SUPPORT_NODE_SIMULATION_H */
