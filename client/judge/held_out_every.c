/* held_out_every.c - see held_out_every.h. */
#include "client/judge/held_out_every.h"

#include <inttypes.h>

#include "proofs/job/held_out.h"

static uint64_t asked_of(const struct options *options, uint32_t steps)
{
    return options_given(options, "eval-every") ? options_number(options, "eval-every")
                                                : ((uint64_t)steps + 9) / 10;
}

uint32_t held_out_every(const struct options *options, uint32_t steps)
{
    const uint64_t segment = options_number(options, "segment-steps");
    uint64_t every = asked_of(options, steps);

    every = (every + segment - 1) / segment * segment;
    return every < steps ? (uint32_t)every : steps;
}

/* The steps after which the first look stands; 0: there is none. */
static uint64_t first_look(const struct job *job)
{
    struct held_out held_out;
    uint64_t step = 0;

    held_out_of(&held_out, job);
    while (step < job->steps && !held_out_is_due(&held_out, step)) {
        step++;
    }
    return step < job->steps ? step + 1 : 0;
}

void held_out_every_show(struct sheet *sheet, const struct job *job, const struct options *options)
{
    const uint64_t every = first_look(job);

    if (every == 0) {
        return;
    }
    sheet_set(sheet, "eval_every", json_integer((json_int_t)every));
    if (every == job->steps) {
        sheet_print(sheet, "held out     a look after the last step");
    } else {
        sheet_print(sheet, "held out     a look after every %" PRIu64 " steps, and after the last",
                    every);
    }
    if (options != NULL && options_given(options, "eval-every") &&
        options_number(options, "eval-every") < every) {
        sheet_print(sheet, "; --eval-every %" PRIu64 " is rounded up to whole segments",
                    options_number(options, "eval-every"));
    }
    sheet_print(sheet, "\n");
}
