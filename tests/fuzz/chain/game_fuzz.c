/* Any bytes as a move, an event or a refusal: what decodes writes back to the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "chain/game/game.h"
#include "tests/support/chain/move_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_move(const uint8_t *data, size_t size)
{
    uint8_t again[GAME_MOVE_SIZE_MAX];
    struct game_move move;
    size_t again_size;

    if (game_move_decode(&move, data, size) == STATUS_OK) {
        game_move_encode(again, &again_size, &move);
        if (again_size != size || memcmp(again, data, size) != 0) {
            abort();
        }
    }
}

/* Byte 0: how many topics; then the topics, then the data. */
static void try_event(const uint8_t *data, size_t size)
{
    uint8_t bytes[GAME_LOG_SIZE_MAX];
    struct game_event event;
    struct game_log log;
    struct game_log again;

    memset(&log, 0, sizeof(log));
    if (size < 1 || data[0] > GAME_TOPICS_MAX || size - 1 < data[0] * (size_t)HASH32_SIZE ||
        size - 1 - data[0] * (size_t)HASH32_SIZE > GAME_LOG_SIZE_MAX) {
        return;
    }
    log.topic_count = data[0];
    memcpy(log.topics, data + 1, log.topic_count * (size_t)HASH32_SIZE);
    log.data.size = size - 1 - log.topic_count * (size_t)HASH32_SIZE;
    log.data.bytes = data + size - log.data.size;
    if (game_event_decode(&event, &log) == STATUS_OK) {
        game_event_encode(&again, bytes, &event);
        if (again.topic_count != log.topic_count || again.data.size != log.data.size ||
            memcmp(again.topics, log.topics, sizeof(log.topics)) != 0 ||
            memcmp(again.data.bytes, log.data.bytes, log.data.size) != 0) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct game_refusal refusal;
    uint8_t again[GAME_REVERT_SIZE];
    size_t again_size;

    try_move(data, size);
    try_event(data, size);
    game_refusal_decode(&refusal, data, size);
    if (refusal.kind != GAME_REFUSED_NOT) {
        game_refusal_encode(again, &again_size, &refusal);
        if (again_size != size || memcmp(again, data, size) != 0) {
            abort();
        }
    }
    return 0;
}
