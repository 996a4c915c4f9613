/*
 * job_card.h - what a job's opening says about it to people: title, model and sizes.
 *
 * The contact of an opening is an address, as URLs have it, and behind "#" the card. So a board
 * needs the ledger alone, and programs that fetch from the address leave the card out. The card
 * binds nobody: the client wrote it. The job file binds title and model under the job's id, and the
 * sizes follow from it (proofs/job/job_facts.h).
 *
 *     http://host:8000#title=A+model+of+villages&model=gpt2&parameters=118784&tokens=...
 */
#ifndef CHAIN_JOB_JOB_CARD_H
#define CHAIN_JOB_JOB_CARD_H

#include "chain/game/game.h"

#define JOB_CARD_TEXT_MAX 80 /* JOB_TITLE_MAX */

struct job;

/* Texts are "" and numbers 0 where the opening does not say them. Texts are printable ASCII. */
struct job_card {
    char title[JOB_CARD_TEXT_MAX + 1];
    char model[JOB_CARD_TEXT_MAX + 1];
    uint64_t parameters;
    uint64_t tokens;  /* of all steps; 0: samples */
    uint64_t samples; /* likewise */
    uint64_t data_bytes;
    uint64_t checkpoint_bytes;
};

void job_card_of(struct job_card *card, const struct job *job);

/* The address, which may be NULL, and the card; a title that does not fit is cut. False: the
 * address alone is too long, or holds a "#". */
bool job_card_write(char contact[GAME_CONTACT_MAX + 1], const char *address,
                    const struct job_card *card);

/* Reads foreign bytes: what is not well said is left out. */
void job_card_read(struct job_card *card, const struct game_bytes *contact);

/* The contact without the card. */
void job_card_address(char address[GAME_CONTACT_MAX + 1], const struct game_bytes *contact);

/* False of a job whose steps make states of states: it has checkpoints, and no parameters. */
bool job_card_trains(const struct job_card *card);

/* "gpt2, 3 layers; 170560 parameters; learns from 204800 tokens; 0.21 MiB of data, checkpoints of
 * 1.95 MiB", without the title; "" where the card says nothing. */
#define JOB_CARD_WORDS_MAX 320
void job_card_words(char words[JOB_CARD_WORDS_MAX], const struct job_card *card);

#endif /* CHAIN_JOB_JOB_CARD_H */
