/*
 * Goal: where a reorganization takes back what was final, a node loses no move of its own: what the
 * ledger then refuses is sent again, also by a node that was not running.
 * Method: a node has sealed all its verdicts, and they are final. Then its ledger counts a move
 * that is open again, and refuses one seal, since the draw comes after it now.
 */
#include "tests/support/test.h"

#include <string.h>

#include "chain/game/ledger_backend.h"
#include "tests/support/dispute/cheat.h"
#include "tests/support/game/market.h"

enum {
    STEPS = 12,
    SEGMENT = 4,
    SEGMENTS = 3,
};

/* The seal that is undone until it is sent again. */
static struct {
    const struct ledger_backend *real;
    struct ledger_backend backend;
    char name[LEDGER_NAME_MAX + 1];
    bool undone;
    uint32_t sent;       /* again */
    uint32_t other_sent; /* moves of other names */
} fake;

static enum status look(void *self, struct ledger_outcome *outcome, const char *name,
                        struct error *error)
{
    enum status status = fake.real->look(self, outcome, name, error);

    if (fake.undone && strcmp(name, fake.name) == 0) {
        outcome->state = LEDGER_MOVE_REFUSED;
        outcome->refusal = (struct game_refusal){.kind = GAME_NOT_DRAWN};
    }
    return status;
}

static enum status submit(void *self, const char *name, const struct game_move *move,
                          struct error *error)
{
    bool is_undone = strcmp(name, fake.name) == 0;

    fake.sent += is_undone;
    fake.other_sent += !is_undone;
    fake.undone = fake.undone && !is_undone;
    return fake.real->submit(self, name, move, error);
}

static enum status count_reopened(void *self, uint64_t *count, struct error *error)
{
    (void)self;
    (void)error;
    *count = 1;
    return STATUS_OK;
}

static void undo_a_seal(struct ledger *ledger, struct market_node *node)
{
    struct action seals[QUEUE_ACTIONS_MAX];
    uint32_t count = 0;
    struct error error;

    error_init(&error);
    memset(&fake, 0, sizeof(fake));
    assert_int_equal(action_list_done(&node->store, seals, &count, "", &error), STATUS_OK);
    for (uint32_t i = 0; i < count; i++) {
        if (seals[i].kind == ACTION_SEAL) {
            memcpy(fake.name, seals[i].name, sizeof(fake.name));
        }
    }
    assert_true(fake.name[0] != '\0');
    fake.real = ledger->backend;
    fake.backend = *fake.real;
    fake.backend.look = look;
    fake.backend.submit = submit;
    fake.backend.reopened = count_reopened;
    fake.undone = true;
    ledger->backend = &fake.backend;
}

static void play(const char *name, bool stops_meanwhile)
{
    const char *mirror = small_path(name);
    struct small_job_options options;
    struct market_node node;
    struct ledger *ledger;
    struct market market;
    uint64_t random = 1;

    small_job_of_kind(&options, MODEL_MLP);
    options.steps = STEPS;
    options.segment_length = SEGMENT;
    market_open(&market, true, name);
    cheat_bundle_new(mirror, small_job_new(&options), CHEAT_NOT, 0, &random);
    (void)market_commit(&market, mirror);
    market_node_defaults(&node, &market, mirror);
    market_node_open(&node);
    market_node_settle(&node);
    assert_int_equal(market_count(&market, GAME_SEALED_VERDICT, NULL), SEGMENTS);
    ledger = market.ledgers[MARKET_VERIFIER];
    undo_a_seal(ledger, &node);
    if (stops_meanwhile) {
        market_node_close(&node);
        market_node_open(&node);
    }
    market_node_settle(&node);
    assert_int_equal(fake.sent, 1);
    assert_int_equal(fake.other_sent, 0);
    market_pass_time(&market, MARKET_SEAL_S + 1);
    market_node_settle(&node);
    assert_int_equal(market_count(&market, GAME_REVEALED, NULL), SEGMENTS);
    assert_int_equal(fake.sent, 1);
    ledger->backend = fake.real;
    market_node_close(&node);
    market_close(&market);
}

static void test_what_a_deep_reorganization_undid_is_sent_again(void **state)
{
    (void)state;
    play("undone", false);
}

static void test_also_by_a_node_that_did_not_run_then(void **state)
{
    (void)state;
    play("undone-and-stopped", true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_deep_reorganization_undid_is_sent_again),
        cmocka_unit_test(test_also_by_a_node_that_did_not_run_then),
    };

    if (workers_asked(argc, argv)) {
        return workers_serve(argv, &dispute_child);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
