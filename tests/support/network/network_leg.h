/*
 * network_leg.h - what becomes of a covered segment in a network: who sits, what they say, who
 * vouches, and when it ends. Nothing is paid here but what a bond loses.
 */
#ifndef TESTS_SUPPORT_NETWORK_NETWORK_LEG_H
#define TESTS_SUPPORT_NETWORK_NETWORK_LEG_H

#include "tests/support/network/network.h"

enum network_side {
    SIDE_HONEST,
    SIDE_ATTACKER,
    SIDES,
};

struct network_leg {
    /* Given: */
    uint32_t first; /* segments */
    uint32_t last;  /* ... the covered one among them */
    uint32_t wanted;
    struct hash32 seed;
    uint64_t drawn_s;
    bool attacks;      /* its solver is the attacker */
    bool is_false;     /* the covered segment */
    bool serves_seats; /* honest ones */
    bool serves_keeper;
    bool watched; /* an honest node that has no seat replays it */
    /* What comes of it: */
    bool is_final;      /* or else void, at end_s */
    uint64_t end_s;     /* of its claim time */
    uint64_t vouched_s; /* NETWORK_NEVER: it is not */
    uint64_t alarm_s;   /* somebody honest saw that it is false */
    uint64_t refuse_s;  /* the keeper has nothing */
    uint32_t rights[SIDES];
    uint32_t late_rights[SIDES]; /* of these, of later rounds */
    uint32_t unseen[SIDES];
};

void network_leg_play(struct network *network, struct network_leg *leg);

void network_move(struct network *network, enum network_account from, enum network_account to,
                  int64_t amount);
bool network_chance(struct network *network, double p);

#endif /* TESTS_SUPPORT_NETWORK_NETWORK_LEG_H */
