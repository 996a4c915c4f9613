/* game_tables.h - the layout of every move and event of the game, as data, for game_codec.c. */
#ifndef CHAIN_GAME_GAME_TABLES_H
#define CHAIN_GAME_GAME_TABLES_H

#include <stddef.h>

#include "chain/game/fields.h"
#include "chain/game/game.h"

struct codec {
    const char *name;      /* for people */
    const char *signature; /* of the function or event in the contract */
    struct fields fields;
};

extern const struct fields game_terms_fields;
extern const struct codec game_move_codecs[GAME_MOVE_KINDS];
extern const struct codec game_event_codecs[GAME_EVENT_KINDS];

#endif /* CHAIN_GAME_GAME_TABLES_H */
