/*
 * event_file.h - the event log of a ledger that is not there: a file that those who look at a node
 * read.
 */
#ifndef TESTS_SUPPORT_CHAIN_EVENT_FILE_H
#define TESTS_SUPPORT_CHAIN_EVENT_FILE_H

#include "base/io/database.h"
#include "chain/game/game.h"

void event_file_open(struct database *log, const char *path);

/* Of a job whose periods are a second each, with one seat in every segment. */
struct game_terms event_file_terms(uint32_t segments, uint32_t segment_steps);

/* In a block of its own, whose height and time are its number. */
void event_file_add(struct database *log, const struct game_event *event, uint64_t number);

#endif /* TESTS_SUPPORT_CHAIN_EVENT_FILE_H */
