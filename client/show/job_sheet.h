/*
 * job_sheet.h - a job file for people: what it trains, how, on what, and what that takes.
 */
#ifndef CLIENT_SHOW_JOB_SHEET_H
#define CLIENT_SHOW_JOB_SHEET_H

#include "base/sheet/sheet.h"
#include "proofs/job/job.h"
#include "proofs/run/step_memory.h"

void job_sheet_print(struct sheet *sheet, const struct job *job, const struct step_memory *memory);

#endif /* CLIENT_SHOW_JOB_SHEET_H */
