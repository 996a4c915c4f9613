/*
 * job_states.h - what the events say of the states of a job: which roots were committed, and who
 * serves the states.
 *
 * Each call reads the event log from the beginning: job_record keeps no roots of single steps. The
 * record must have followed the log.
 */
#ifndef CHAIN_JOB_JOB_STATES_H
#define CHAIN_JOB_JOB_STATES_H

#include "chain/job/job_record.h"

#define JOB_STATES_HOSTS_MAX 16

/* Where the parties of a job say that they are found: its solver first, then its keeper, its
 * client, those who last found a segment right, and members of the panel. The text is as they wrote
 * it: it may be no address at all. */
struct job_states_hosts {
    uint32_t count;
    struct job_states_host {
        struct address owner;
        char text[GAME_CONTACT_MAX + 1];
    } hosts[JOB_STATES_HOSTS_MAX];
};

MUST_CHECK enum status job_states_find_hosts(struct job_states_hosts *hosts, struct ledger *ledger,
                                             const struct job_record *record, struct error *error);

/* A state that stands: the one before `step` of the job. */
struct job_states_place {
    struct digest root;
    uint64_t step;
    uint32_t segment;
    bool end; /* of the segment */
};

/* The state at the end of a segment. STATUS_NOT_FOUND: nobody has committed it. */
MUST_CHECK enum status job_states_end(struct job_states_place *place, struct ledger *ledger,
                                      const struct job_record *record, uint32_t segment,
                                      struct error *error);

/* The ends of the last segments that stand, the latest first: places[i] is of segment
 * record->committed - 1 - i. A place of step 0 was not found. */
MUST_CHECK enum status job_states_last_ends(struct job_states_place *places, uint32_t count,
                                            struct ledger *ledger, const struct job_record *record,
                                            struct error *error);

/* The last state of that root. STATUS_NOT_FOUND: no such state stands. */
MUST_CHECK enum status job_states_find(struct job_states_place *place, struct ledger *ledger,
                                       const struct job_record *record, const struct digest *root,
                                       struct error *error);

#endif /* CHAIN_JOB_JOB_STATES_H */
