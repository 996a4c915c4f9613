/* verdict.c - see verdict.h. */
#include "verifier/check/verdict.h"

/* A state that has the committed root can still be wrong: finite or not, against what was said. A
 * list may be cut off after a state that is not finite, before anybody says that the run ended
 * there: that is no flaw. */
static enum check_flaw flaw_of(const struct verdict_step *said, const struct verdict_replay *replay)
{
    if (!digest_equal(&replay->root, &said->committed)) {
        return CHECK_FLAW_STATE;
    }
    if (said->diverged) {
        return replay->finite ? CHECK_FLAW_NOT_DIVERGED : CHECK_FLAW_NONE;
    }
    return replay->finite || said->open_end ? CHECK_FLAW_NONE : CHECK_FLAW_WENT_ON;
}

enum check_outcome verdict_of_step(enum check_flaw *flaw, const struct verdict_step *said,
                                   const struct verdict_replay *first,
                                   const struct verdict_replay *second)
{
    *flaw = flaw_of(said, first);
    if (*flaw == CHECK_FLAW_NONE) {
        return CHECK_PROVEN;
    }
    if (second == NULL) {
        return CHECK_CANNOT_TELL;
    }
    return digest_equal(&first->root, &second->root) && flaw_of(said, second) == *flaw
               ? CHECK_REFUTED
               : CHECK_FAULT;
}
