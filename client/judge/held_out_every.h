/*
 * held_out_every.h - after how many steps a new job looks at its held-out data.
 *
 * Only the end of a segment has a checkpoint, so looks stand there: --eval-every is rounded up to a
 * multiple of --segment-steps, and `job new` says so.
 */
#ifndef CLIENT_JUDGE_HELD_OUT_EVERY_H
#define CLIENT_JUDGE_HELD_OUT_EVERY_H

#include "base/cli/options.h"
#include "base/sheet/sheet.h"
#include "proofs/job/job.h"

/* What --eval-every says of a job of so many steps, or a tenth of them; rounded up. */
uint32_t held_out_every(const struct options *options, uint32_t steps);

/* What the job does, and beside it, where options are given, what they said. */
void held_out_every_show(struct sheet *sheet, const struct job *job, const struct options *options);

#endif /* CLIENT_JUDGE_HELD_OUT_EVERY_H */
