/* terms.h - the terms that follow from a job file, their text, and a job on the ledger by its
 * key. */
#ifndef CHAIN_GAME_TERMS_H
#define CHAIN_GAME_TERMS_H

#include "chain/game/ledger.h"
#include "proofs/job/job.h"

/* Fills in id, roots, steps and the length of a segment, and nothing else. STATUS_REFUSED: more
 * steps or segments than a ledger takes. */
MUST_CHECK enum status terms_of_job(struct game_terms *terms, const struct job *job,
                                    struct error *error);

/* Do the terms on the ledger fit the job file? STATUS_REFUSED says what differs. */
MUST_CHECK enum status terms_check(const struct game_terms *terms, const struct job *job,
                                   struct error *error);
/* The same of its id and its roots alone, for who has the header of the job. */
MUST_CHECK enum status terms_check_header(const struct game_terms *terms,
                                          const uint8_t header[GAME_JOB_HEADER_SIZE],
                                          struct error *error);

/* "2h", "7d", "90s", in whole units where it can be. */
#define TERMS_PERIOD_SIZE 24
void terms_period(char text[TERMS_PERIOD_SIZE], uint64_t seconds);

/* "2026-11-28 14:05" (UTC). */
#define TERMS_TIME_SIZE 24
void terms_time(char text[TERMS_TIME_SIZE], uint64_t time_s);

#define TERMS_KEY_LEAST 8 /* digits of a shortened key, at least */

/*
 * Finds the key of a job on the ledger, and its terms unless terms is NULL. text is the key or its
 * first digits; NULL means the only job of that id, preferably an open one. STATUS_REFUSED when
 * several fit.
 */
MUST_CHECK enum status terms_find(struct hash32 *key, struct game_terms *terms,
                                  struct ledger *ledger, const char *text,
                                  const struct digest *job_id, struct error *error);

#endif /* CHAIN_GAME_TERMS_H */
