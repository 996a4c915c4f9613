/*
 * flipped_judge.c - in place of verifier/check/verdict.c a judge who says the opposite: what is
 * true he calls false, and what is false he calls true. Linked with the whole program as
 * build/tests/flipped_judge; nothing of it is in the program itself.
 */
#include "verifier/check/verdict.h"

enum check_outcome __real_verdict_of_step(enum check_flaw *flaw, const struct verdict_step *said,
                                          const struct verdict_replay *first,
                                          const struct verdict_replay *second);
enum check_outcome __wrap_verdict_of_step(enum check_flaw *flaw, const struct verdict_step *said,
                                          const struct verdict_replay *first,
                                          const struct verdict_replay *second);

enum check_outcome __wrap_verdict_of_step(enum check_flaw *flaw, const struct verdict_step *said,
                                          const struct verdict_replay *first,
                                          const struct verdict_replay *second)
{
    bool is_true = __real_verdict_of_step(flaw, said, first, second) == CHECK_PROVEN;

    *flaw = is_true ? CHECK_FLAW_STATE : CHECK_FLAW_NONE;
    if (!is_true) {
        return CHECK_PROVEN;
    }
    return second == NULL ? CHECK_CANNOT_TELL : CHECK_REFUTED;
}
