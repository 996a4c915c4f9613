/* transactions.c - see transactions.h. */
#include "verifier/audit/transactions.h"

#include <stdio.h>
#include <string.h>

#include "chain/codec/hex_data.h"

/* NULL: it is not worth a line. */
static const char *word_of(const struct game_event *event)
{
    static const char *const verdicts[] = {
        [GAME_VERDICT_RIGHT] = "verdict: right",
        [GAME_VERDICT_FALSE] = "verdict: false",
    };

    switch ((int)event->kind) {
    case GAME_OPENED:
        return "opened";
    case GAME_ACCEPTED:
        return "accepted";
    case GAME_COMMITTED:
        return "committed";
    case GAME_REVEALED:
        return event->verdict >= GAME_VERDICT_RIGHT && event->verdict <= GAME_VERDICT_FALSE
                   ? verdicts[event->verdict]
                   : NULL;
    case GAME_CLAIMED:
        return "claimed false";
    case GAME_FINALIZED:
        return "final";
    case GAME_CONVICTED:
        return "convicted";
    case GAME_SAID_UNSEEN:
        return "verdict: unseen";
    case GAME_VOUCHED:
        return "vouched";
    case GAME_VOIDED:
        return "void";
    case GAME_CLOSED:
        return "closed";
    default:
        return NULL;
    }
}

/* The segment that an event is about. False: it is about none. */
static bool segment_of(uint32_t *segment, const struct game_event *event)
{
    *segment = event->kind == GAME_COMMITTED ? event->segment.index : event->index;
    return event->kind == GAME_COMMITTED || event->kind == GAME_REVEALED ||
           event->kind == GAME_CLAIMED || event->kind == GAME_FINALIZED ||
           event->kind == GAME_SAID_UNSEEN || event->kind == GAME_VOUCHED;
}

static void add_one(json_t *list, const struct ledger_entry *entry, struct bundle *bundle)
{
    const struct game_event *event = &entry->event;
    const char *word = word_of(event);
    char hash[HEX_DATA_SIZE(HASH32_SIZE)];
    struct digest root;
    uint32_t segment;
    struct error none;
    json_t *one;

    if (word == NULL) {
        return;
    }
    one = json_pack("{s:s, s:I, s:I, s:I}", "what", word, "event", (json_int_t)entry->number,
                    "height", (json_int_t)entry->height, "time", (json_int_t)entry->time_s);
    if (segment_of(&segment, event)) {
        (void)json_object_set_new(one, "segment", json_integer((json_int_t)segment));
    }
    error_init(&none);
    if (event->kind == GAME_COMMITTED &&
        bundle_segment_root(&root, bundle, segment, &none) == STATUS_OK) {
        (void)json_object_set_new(one, "as_journaled",
                                  json_boolean(digest_equal(&root, &event->segment.root)));
    }
    if (!hash32_is_zero(&entry->transaction)) {
        hex_write(hash, entry->transaction.bytes, HASH32_SIZE, true);
        (void)json_object_set_new(one, "transaction", json_string(hash));
    }
    (void)json_array_append_new(list, one);
}

static enum status read_key(struct hash32 *key, struct bundle *bundle, struct error *error)
{
    char text[FILE_PATH_MAX];
    enum status status = bundle_note(text, bundle, BUNDLE_NOTE_JOB, error);

    if (status == STATUS_OK && hex_data_read_exactly(key->bytes, HASH32_SIZE, text) == STATUS_OK) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_NOT_FOUND, "the bundle notes no job on a ledger");
}

/* One that was reorganized away takes its place in the list with it. */
static enum status read_all(json_t *list, size_t *left_out, struct ledger *ledger,
                            const struct hash32 *key, struct bundle *bundle, struct error *error)
{
    struct ledger_entry entry = {0};
    enum status status;

    while ((status = ledger_next(ledger, &entry, entry.number, 0, error)) == STATUS_OK) {
        if (entry.kind == LEDGER_REWIND) {
            for (size_t i = json_array_size(list); i-- > 0;) {
                const json_t *one = json_array_get(list, i);

                if (json_integer_value(json_object_get(one, "height")) > (json_int_t)entry.height) {
                    (void)json_array_remove(list, i);
                }
            }
            continue;
        }
        if (!hash32_equal(&entry.event.job, key)) {
            continue;
        }
        if (entry.event.kind == GAME_OPENED &&
            !digest_equal(&entry.event.terms.job_id, &bundle_job(bundle)->id)) {
            return error_set(error, STATUS_REFUSED, "on the ledger that key is of another job");
        }
        add_one(list, &entry, bundle);
        if (json_array_size(list) > TRANSACTIONS_MAX) {
            (void)json_array_remove(list, 0);
            (*left_out)++;
        }
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status transactions_add(json_t *entry, struct ledger *ledger, struct bundle *bundle,
                             struct error *error)
{
    json_t *list = json_array();
    size_t left_out = 0;
    struct hash32 key;
    enum status status;

    TRY_OUT(read_key(&key, bundle, error));
    TRY_OUT(ledger_catch_up(ledger, error));
    TRY_OUT(read_all(list, &left_out, ledger, &key, bundle, error));
    if (json_array_size(list) == 0) {
        TRY_OUT(error_set(error, STATUS_NOT_FOUND, "the ledger does not know the bundle's job"));
    }
    (void)json_object_set(entry, "transactions", list);
    (void)json_object_set_new(entry, "transactions_left_out", json_integer((json_int_t)left_out));
out:
    json_decref(list);
    return status;
}

enum status transactions_differ(bool *differ, struct ledger *ledger, struct bundle *bundle,
                                uint64_t segment, const struct digest *root, struct error *error)
{
    struct ledger_entry entry = {0};
    struct hash32 key;
    bool same = false;
    enum status status;

    *differ = false;
    TRY(read_key(&key, bundle, error));
    TRY(ledger_catch_up(ledger, error));
    while ((status = ledger_next(ledger, &entry, entry.number, 0, error)) == STATUS_OK) {
        if (entry.kind != LEDGER_REWIND && entry.event.kind == GAME_COMMITTED &&
            hash32_equal(&entry.event.job, &key) && entry.event.segment.index == segment) {
            *differ = true;
            same = same || digest_equal(&entry.event.segment.root, root);
        }
    }
    *differ = *differ && !same;
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

bool transactions_line(char line[TRANSACTIONS_LINE_MAX], const json_t *transaction)
{
    const char *what = json_string_value(json_object_get(transaction, "what"));
    const char *hash = json_string_value(json_object_get(transaction, "transaction"));
    const json_t *segment = json_object_get(transaction, "segment");
    char about[40] = "";
    char named[100];

    if (what == NULL) {
        return false;
    }
    if (json_is_integer(segment)) {
        (void)snprintf(about, sizeof(about), ", segment %" JSON_INTEGER_FORMAT,
                       json_integer_value(segment));
    }
    if (hash != NULL) {
        (void)snprintf(named, sizeof(named), "%.70s", hash);
    } else {
        (void)snprintf(named, sizeof(named), "event %" JSON_INTEGER_FORMAT,
                       json_integer_value(json_object_get(transaction, "event")));
    }
    (void)snprintf(line, TRANSACTIONS_LINE_MAX, "%.40s%s%s: %s", what, about,
                   json_is_false(json_object_get(transaction, "as_journaled"))
                       ? ", NOT the root of the journal"
                       : "",
                   named);
    return true;
}
