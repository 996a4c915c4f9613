/*
 * accuser.h - who accuses an honest attestor, asks it for its trace, and has nothing to show.
 *
 * It knows the step as whoever ran it does (defendant.h, without a lie, before the step that the
 * attestor drew). Whatever fails here fails the test.
 */
#ifndef TESTS_SUPPORT_DISPUTE_ACCUSER_H
#define TESTS_SUPPORT_DISPUTE_ACCUSER_H

#include "tests/support/dispute/defendant.h"

struct accuser {
    struct defendant *own; /* borrowed */
    struct address attestor;
    struct game_case shown;
    struct hash32 claim;
};

void accuser_open(struct accuser *accuser, struct defendant *own, enum market_player attestor);

/* Seals the accusation and makes it. */
void accuser_accuse(struct accuser *accuser);

/* Asks for the list of the trace, as if it were another than its own. */
void accuser_query(struct accuser *accuser);

#endif /* TESTS_SUPPORT_DISPUTE_ACCUSER_H */
