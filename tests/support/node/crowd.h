/*
 * crowd.h - real programs in a scene: verifier's nodes, a solver and a keeper with the policies of
 * their defaults, beside players whom a test moves by hand.
 *
 * A node is verifier/node/node_round.h and the solver prover/post/solver.h. Each node has an
 * account, a ledger handle, a store and a verdict database of its own; solver and keeper are
 * players of the stage. Of the keeper only the plan is real (client/keeper/keep_plan.h). Nothing is
 * computed: states are those of made_states.h, and a node's children are virtual_checks.h, to whom
 * the test says what is served. All of them live by the ledger's clock: crowd_live() passes time
 * and lets each make its rounds in between. CROWD_LOG=1 shows what the nodes log.
 */
#ifndef TESTS_SUPPORT_NODE_CROWD_H
#define TESTS_SUPPORT_NODE_CROWD_H

#include "client/keeper/keep_plan.h"
#include "prover/post/solver.h"
#include "tests/support/game/scene.h"
#include "tests/support/node/virtual_checks.h"
#include "verifier/node/node.h"

enum {
    CROWD_NODES_MAX = 12,
    CROWD_SEGMENTS_MAX = 16, /* that a keeper looks at */
    CROWD_STEP_S = 800,      /* between two rounds of who has nothing to do */
};

/* What nodes get of what the parties of a job should serve. */
struct crowd_serving {
    bool hides_job;      /* nobody shows the job itself */
    uint32_t hides_from; /* nobody shows the states of segments from here on; UINT32_MAX: all are */
    uint32_t takes_s;    /* until a replay has its answer */
    uint32_t step_s;     /* that a step takes in a trial; 0: very little */
    bool gone;           /* the solver is: what others have fetched is all there is */
};

struct crowd;

struct crowd_node {
    struct crowd *crowd;
    struct signer *signer;
    struct ledger *ledger;
    struct store store;
    struct verdict_db *verdicts;
    struct virtual_checks checks;
    struct node_options options;
    struct node node;
    char folder[FILE_PATH_MAX];
    char cache[FILE_PATH_MAX];
    wei before;
};

struct crowd {
    struct scene *scene;
    struct fate never;
    struct log log;
    struct crowd_serving serving;
    struct crowd_node *nodes; /* node_count of them */
    uint32_t node_count;
    struct solver *solver; /* NULL: the test plays it */
    struct solver_view view;
    uint32_t train_s;   /* that a segment takes; 0: all are there at once */
    uint64_t trained_s; /* when the next is there, */
    uint64_t next_step; /* ... and its first step */
    int keeper;         /* a player; 0: there is none */
    struct keep_known kept[CROWD_SEGMENTS_MAX];
    bool busy; /* somebody had something to do */
    /* What the test's players do whenever the others do something; NULL: nothing. The scene's
     * record is read before. */
    void (*play)(struct crowd *crowd);
    /* What a child of a node does before it gives its answer; NULL: nothing. */
    void (*fetch)(const struct check_request *request);
};

/* The terms of the scene become such as the defaults of all roles take: all is covered, one seat,
 * the usual periods. No node enlists before the first crowd_live(). */
void crowd_open(struct crowd *crowd, struct scene *scene, uint32_t nodes);
void crowd_close(struct crowd *crowd);

/* After the job is open: a player of the stage is a solver who has trained all of it. */
void crowd_solve(struct crowd *crowd, int player);

/* A segment is trained each so many seconds from now on, in place of all at once. Before
 * crowd_solve(). */
void crowd_train_slowly(struct crowd *crowd, uint32_t segment_s);

/* The solver makes no move any more and serves nothing. */
void crowd_kill_solver(struct crowd *crowd);

/* Has a node, by a fetch that ended well, or the keeper both states of a segment? */
bool crowd_has_states(struct crowd *crowd, uint32_t index);

/* Before the job is open: a player of the stage is its keeper. */
void crowd_keep(struct crowd *crowd, int player);

void crowd_live(struct crowd *crowd, uint32_t seconds);

/* Lives until it is so; fails when that takes longer than most_s. */
void crowd_until(struct crowd *crowd, bool (*is_so)(const struct job_record *record),
                 uint32_t most_s);
bool crowd_has_panel(const struct job_record *record); /* as many entries as the terms want */
bool crowd_is_open(const struct job_record *record);
bool crowd_is_closed(const struct job_record *record);

/* The job is over: the stage's players and the nodes take back what is theirs. */
void crowd_part(struct crowd *crowd);

/* What a node has more or less than before, as scene_gain(); and all of them together. */
int64_t crowd_gain(struct crowd *crowd, uint32_t node);
int64_t crowd_gains(struct crowd *crowd);

#endif /* TESTS_SUPPORT_NODE_CROWD_H */
