/* job_modules.h - the modules of a job's program, for `job show`: weights, and shares of a step. */
#ifndef CLIENT_SHOW_JOB_MODULES_H
#define CLIENT_SHOW_JOB_MODULES_H

#include "base/sheet/sheet.h"
#include "proofs/job/job.h"

/* all: each module with its tensors; else modules are joined to a few. */
MUST_CHECK enum status job_modules_show(struct sheet *sheet, const struct job *job, bool all,
                                        struct error *error);

#endif /* CLIENT_SHOW_JOB_MODULES_H */
