/*
 * check_resume.h - what a check that is killed hands on: the last state that it found right, in the
 * cache, for the next try of the same check.
 *
 * The state is believed by its root alone, which is the committed one, and the leaves beside it by
 * their hash: what is damaged, or of another check, is dropped, and the replay begins where it
 * would have. A lie is still shown by replays that begin there. Checks of a ledger's segment do
 * this; disputes, trials and journals do not.
 */
#ifndef VERIFIER_CHECK_CHECK_RESUME_H
#define VERIFIER_CHECK_CHECK_RESUME_H

#include "verifier/check/check_inputs.h"

/* Sets checker->resume: the step that the replay begins with. Puts the machine of checker->run into
 * the state before it, which a failure of this call leaves undefined. */
MUST_CHECK enum status check_resume_begin(struct checker *checker, struct error *error);

/* The machine holds the state after a step, which is the committed one. Leaves it behind, where the
 * last one was left long enough ago. A failure is none of the check. */
void check_resume_note(struct checker *checker, uint32_t place, uint32_t step);

/* The check has its answer: nothing is left behind. */
void check_resume_end(struct checker *checker);

#endif /* VERIFIER_CHECK_CHECK_RESUME_H */
