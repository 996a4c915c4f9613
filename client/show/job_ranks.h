/*
 * job_ranks.h - how a number of ranks would share the steps of a job, and what they would send.
 */
#ifndef CLIENT_SHOW_JOB_RANKS_H
#define CLIENT_SHOW_JOB_RANKS_H

#include "base/sheet/sheet.h"
#include "engine/ranks/rank_step.h"

void job_ranks_show(struct sheet *sheet, const struct rank_wire *wire, uint32_t ranks);

#endif /* CLIENT_SHOW_JOB_RANKS_H */
