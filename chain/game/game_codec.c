/* game_codec.c - moves and events of game.h as the bytes of a contract call and its logs. */
#include <assert.h>
#include <string.h>

#include "chain/codec/abi.h"
#include "chain/game/game.h"
#include "chain/game/game_tables.h"

/* ---- moves ------------------------------------------------------------------ */

size_t game_move_size(const struct game_move *move)
{
    const struct codec *codec = &game_move_codecs[move->kind];

    return ABI_SELECTOR_SIZE + fields_size(move, &codec->fields);
}

bool game_move_fits(const struct game_move *move)
{
    return move->payload.size <= GAME_PAYLOAD_MAX && move->queried.size <= GAME_QUERIED_MAX &&
           game_move_size(move) <= GAME_MOVE_SIZE_MAX;
}

void game_move_encode(uint8_t *bytes, size_t *size, const struct game_move *move)
{
    const struct codec *codec = &game_move_codecs[move->kind];
    struct byte_writer writer;

    assert(game_move_fits(move));
    byte_writer_init(&writer, bytes, game_move_size(move));
    abi_put_selector(&writer, codec->signature);
    fields_encode(&writer, move, &codec->fields);
    assert(!writer.overflowed);
    *size = writer.used;
}

const char *game_move_name(enum game_move_kind kind)
{
    return game_move_codecs[kind].name;
}

enum game_contract game_move_contract(enum game_move_kind kind)
{
    return kind < GAME_SEAL_CLAIM ? GAME_REGISTRY : kind == GAME_FIX ? GAME_SEEDS : GAME_REFEREE;
}

/* ---- events ----------------------------------------------------------------- */

/* The topics are the first fields of a table, the data are the others. */
static struct fields topics_of(const struct codec *codec)
{
    struct fields topics = {codec->fields.fields, 0};

    while (topics.count < codec->fields.count && topics.fields[topics.count].indexed != 0) {
        topics.count++;
    }
    return topics;
}

static struct fields data_of(const struct codec *codec)
{
    const struct fields topics = topics_of(codec);

    return (struct fields){topics.fields + topics.count, codec->fields.count - topics.count};
}

struct hash32 game_event_topic(enum game_event_kind kind)
{
    const char *signature = game_event_codecs[kind].signature;

    return keccak256(signature, strlen(signature));
}

void game_event_encode(struct game_log *log, uint8_t *bytes, const struct game_event *event)
{
    const struct codec *codec = &game_event_codecs[event->kind];
    const struct fields topics = topics_of(codec);
    const struct fields data = data_of(codec);
    struct byte_writer writer;

    assert(topics.count < GAME_TOPICS_MAX);
    memset(log, 0, sizeof(*log));
    log->topics[0] = game_event_topic(event->kind);
    for (size_t i = 0; i < topics.count; i++) {
        byte_writer_init(&writer, log->topics[1 + i].bytes, HASH32_SIZE);
        fields_encode(&writer, event, &(struct fields){&topics.fields[i], 1});
    }
    log->topic_count = 1 + (uint32_t)topics.count;
    byte_writer_init(&writer, bytes, GAME_LOG_SIZE_MAX);
    fields_encode(&writer, event, &data);
    assert(!writer.overflowed);
    log->data = (struct game_bytes){bytes, writer.used};
}

static enum status decode_event(struct game_event *event, const struct codec *codec,
                                const struct game_log *log)
{
    const struct fields topics = topics_of(codec);
    const struct fields data = data_of(codec);
    struct abi_reader reader;

    if (log->topic_count != 1 + topics.count) {
        return STATUS_BAD_FORMAT;
    }
    for (size_t i = 0; i < topics.count; i++) {
        abi_reader_init(&reader, log->topics[1 + i].bytes, HASH32_SIZE);
        if (fields_decode(&reader, event, &(struct fields){&topics.fields[i], 1}) != STATUS_OK) {
            return STATUS_BAD_FORMAT;
        }
    }
    abi_reader_init(&reader, log->data.bytes, log->data.size);
    if (fields_decode(&reader, event, &data) != STATUS_OK || reader.at != reader.size) {
        return STATUS_BAD_FORMAT;
    }
    return event->payload.size <=
                       (event->kind == GAME_QUERIED ? GAME_QUERIED_MAX : GAME_REPLY_MAX) &&
                   event->contact.size <= GAME_CONTACT_MAX &&
                   event->states.count <= GAME_STATES_MAX &&
                   event->states.count == event->segment.steps
               ? STATUS_OK
               : STATUS_BAD_FORMAT;
}

enum status game_event_decode(struct game_event *event, const struct game_log *log)
{
    if (log->topic_count < 1 || log->topic_count > GAME_TOPICS_MAX ||
        log->data.size > GAME_LOG_SIZE_MAX) {
        return STATUS_NOT_FOUND;
    }
    for (int kind = 0; kind < GAME_EVENT_KINDS; kind++) {
        const struct codec *codec = &game_event_codecs[kind];
        struct hash32 hash = keccak256(codec->signature, strlen(codec->signature));

        if (hash32_equal(&hash, &log->topics[0])) {
            enum status status;

            memset(event, 0, sizeof(*event));
            event->kind = (enum game_event_kind)kind;
            status = decode_event(event, codec, log);
            if (event->kind == GAME_COMMITTED) {
                event->index = event->segment.index;
            }
            return status;
        }
    }
    return STATUS_NOT_FOUND;
}

const char *game_event_name(enum game_event_kind kind)
{
    return game_event_codecs[kind].name;
}
