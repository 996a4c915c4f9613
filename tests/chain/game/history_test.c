/*
 * Goal: the embedded ledger and the contracts are the same game.
 * Method: random histories, most moves plausible and some absurd, are played on both: on the
 * contracts by a driver that plays a whole history in one transaction, with a clock and a chance of
 * the test's own. Every event's bytes, every refusal's bytes and every balance must be equal, and
 * the contract must hold exactly what it owes, what is escrowed, staked or bonded, and what was
 * burned. After every event a record in memory and a node's store must say the same of a job,
 * and after every move what the ledger keeps; and what each player has more by then is to the wei
 * what a book of its money says. "make soak" plays 10,000.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "chain/money/money_book.h"
#include "tests/support/chain/views.h"
#include "tests/support/game/history.h"
#include "tests/support/game/promised.h"

enum {
    HISTORIES_FULL = 10000,
    HISTORIES_SHARE = 120,
    HISTORIES_OF_A_COURT = 40,
    HISTORIES_OF_A_CHAIN = 400,
};

struct compared {
    struct history history;
    struct views views;
    struct money_book book;
    wei before[TWINS_PLAYERS]; /* this history: see kept_by() */
};

static void learn(void *context, const struct game_event *event)
{
    struct compared *compared = context;
    const struct twins *twins = &compared->history.twins;

    views_take(&compared->views, event, twins->height, twins->now_s);
    history_learn(&compared->history, event);
}

/* ---- money ---------------------------------------------------------------------- */

/* What a player has in the ledger and took out of it, without what the player put in. */
static wei kept_by(struct twins *twins, uint32_t player)
{
    const struct hash32 key = local_key_of_account(&twins->players[player]);
    struct local_account account;

    assert_int_equal(local_get(&twins->store, &account, LOCAL_ACCOUNT, &key, 0), STATUS_OK);
    return account.owed + twins->paid_out_of[player] - twins->paid_in_by[player];
}

static void begin_books(struct compared *compared)
{
    struct twins *twins = &compared->history.twins;
    struct error error;

    error_init(&error);
    assert_int_equal(money_book_open(&compared->book, &compared->views.board, twins->players,
                                     TWINS_PLAYERS, &error),
                     STATUS_OK);
    for (uint32_t i = 0; i < TWINS_PLAYERS; i++) {
        compared->before[i] = kept_by(twins, i);
    }
}

/* What each has more, wherever it lies, is what it earned less what it paid and lost. */
static void compare_books(struct compared *compared)
{
    struct twins *twins = &compared->history.twins;

    for (uint32_t i = 0; i < TWINS_PLAYERS; i++) {
        const struct money money = money_book_look(&compared->book, i);
        const wei locked = money.stakes + money.bonds + money.escrow;
        const wei more = kept_by(twins, i) - compared->before[i] + locked;

        assert_true(more == money.amounts[MONEY_EARNED] - money.amounts[MONEY_PAID] -
                                money.amounts[MONEY_LOST]);
    }
}

static void play_history(struct compared *compared)
{
    struct history *history = &compared->history;
    struct twins *twins = &history->twins;

    history_begin(history);
    while (twins->outcome_count + HISTORY_MOVES_OF_ONE <= TWINS_MOVES) {
        struct game_move move;
        uint32_t player = history_choose(history, &move);

        (void)twins_play(twins, &move, player);
        for (uint32_t i = 0; i < history->job_count; i++) {
            views_compare(&compared->views, &twins->store, &history->jobs[i]);
        }
        compare_books(compared);
    }
    (void)twins_compare(twins, promised_money(&twins->store));
}

static void show_coverage(const struct twins *twins)
{
    for (int i = 0; i < GAME_MOVE_KINDS; i++) {
        print_message("%8u %s\n", twins->done_of[i], game_move_name((enum game_move_kind)i));
    }
    for (int i = 0; i < GAME_REFUSAL_KINDS; i++) {
        print_message("%8u refused: %s\n", twins->refused_of[i],
                      game_refusal_text((enum game_refusal_kind)i));
    }
}

/* What a made state cannot bring about: tests/chain/game/trial_test.c plays it. */
static bool needs_a_trace(enum game_move_kind kind)
{
    return kind == GAME_QUERY || kind == GAME_REPLY || kind == GAME_CONVICT;
}

static void test_both_ledgers_play_the_same_histories(void **state)
{
    struct compared *compared = (anvil_need(), calloc(1, sizeof(*compared)));
    uint64_t count = test_share(HISTORIES_FULL, HISTORIES_SHARE);
    struct twins *twins = &compared->history.twins;
    char path[600];

    (void)state;
    assert_non_null(compared);
    history_init(&compared->history, history_seed(20260304));
    twins_open(twins);
    twins->learn = learn;
    twins->context = compared;
    for (uint64_t i = 0; i < count; i++) {
        if (i > 0 && i % HISTORIES_OF_A_CHAIN == 0) {
            twins_restart_chain(twins);
        }
        if (i % HISTORIES_OF_A_COURT == 0) {
            twins_new_court(twins);
        }
        twins->now_s = 1000000 + 10000 * i;
        twins->height = 1000 + 1000 * i;
        (void)snprintf(path, sizeof(path), "%s/views-%u", test_temp_dir(), (unsigned)i);
        views_open(&compared->views, path, &twins->players[HISTORY_CLIENTS]);
        begin_books(compared);
        play_history(compared);
        views_close(&compared->views);
        money_book_release(&compared->book);
    }
    show_coverage(twins);
    for (int i = 0; i < GAME_MOVE_KINDS; i++) {
        /* A handful of histories need not meet the rare moves. */
        assert_true(count < HISTORIES_SHARE || twins->done_of[i] > 0 ||
                    needs_a_trace((enum game_move_kind)i));
    }
    twins_close(twins);
    history_release(&compared->history);
    free(compared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ledgers_play_the_same_histories),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
