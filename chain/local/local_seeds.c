/* local_seeds.c - where the chance of a segment comes from: the twin of HeaderSeeds.sol. */
#include "chain/local/local_rules.h"

/*
 * The block itself, or every 256th from there when it is late. Exactly one of these can be read at
 * any time, so nobody chooses among them.
 */
static enum status find_readable(struct local_game *game, uint64_t *source, bool *late,
                                 uint64_t first)
{
    *source = first;
    if (game->height <= first) {
        return local_refuse(game, GAME_TOO_EARLY, (wei)first + 1);
    }
    *late = game->height > first + GAME_SEED_BLOCKS;
    if (*late) {
        *source += (game->height - first - 1) / GAME_SEED_BLOCKS * GAME_SEED_BLOCKS;
    }
    return STATUS_OK;
}

enum status local_random_of(struct local_game *game, struct hash32 *random, bool *late,
                            uint64_t height, uint64_t time_s)
{
    const struct hash32 key = local_key_of_commits(height, time_s);
    uint64_t fixed;
    uint64_t source = 0;

    TRY(local_get(game->store, &fixed, LOCAL_FIXED, &key, 0));
    TRY(find_readable(game, &source, late, fixed != 0 ? fixed : height + GAME_SEED_DELAY));
    *late = *late || fixed != 0;
    return game->random(game->context, random, source);
}

enum status local_fix(struct local_game *game, const struct game_move *move)
{
    const struct game_segment *commits = &move->segment;
    const struct hash32 key = local_key_of_commits(commits->height, commits->time_s);
    const wei until_s = (wei)commits->time_s + GAME_FIX_AFTER_S;
    const uint64_t source = game->height + 1;
    struct game_event *event;
    uint64_t fixed;

    TRY(local_get(game->store, &fixed, LOCAL_FIXED, &key, 0));
    if (fixed != 0) {
        return local_refuse(game, GAME_NOT_NEEDED, 0);
    }
    if (game->now_s <= until_s) {
        return local_refuse(game, GAME_TOO_EARLY, until_s);
    }

    event = local_event(game, GAME_FIXED, NULL);
    event->height = commits->height;
    event->time_s = commits->time_s;
    event->source = source;
    return local_put(game->store, &source, LOCAL_FIXED, &key, 0);
}
