/*
 * money_test.c
 *
 * Goal: what an account has and what became of it add up to the wei, for each day that is kept, in
 * the text, and after a way through JSON; a query that nobody replied to is a bond, and one that
 * was replied to is paid.
 * Method: amounts by hand, more days than are kept in all orders, each field of the JSON damaged,
 * and events of a claim. tests/chain/game/history_test.c plays thousands of games against the book.
 */
#include "tests/support/test.h"

#include <string.h>

#include "chain/money/money_book.h"
#include "chain/money/money_text.h"

#define DAY_S    UINT64_C(86400)
#define OK(call) assert_int_equal((call), STATUS_OK)

enum { SEGMENTS = 4, STEPS = 10 };

static struct address address_of(uint8_t number)
{
    struct address address = {{0}};

    address.bytes[19] = number;
    return address;
}

/* ---- days ------------------------------------------------------------------------- */

static wei sum_of_days(const struct money *money, enum money_kind kind)
{
    wei sum = 0;

    for (uint32_t i = 0; i < money->day_count; i++) {
        assert_true(i == 0 || money->days[i - 1].day < money->days[i].day);
        sum += money->days[i].amounts[kind];
    }
    return sum;
}

static void test_days_are_in_order_and_the_first_go(void **state)
{
    struct money money = {.day_count = 0};

    (void)state;
    for (uint64_t i = 0; i < 3 * MONEY_DAYS_MAX; i++) {
        const uint64_t day = 1000 + i * 7 % (MONEY_DAYS_MAX + 9); /* in no order */

        money_add(&money, MONEY_EARNED, 5, day * DAY_S + i);
    }
    assert_true(money.amounts[MONEY_EARNED] == 15 * MONEY_DAYS_MAX);
    assert_int_equal(money.day_count, MONEY_DAYS_MAX);
    assert_int_equal(money.days[0].day, 1009);
    assert_int_equal(money.days[MONEY_DAYS_MAX - 1].day, 1000 + MONEY_DAYS_MAX + 8);
    /* What is before the days that are kept counts, and has no day. */
    money_add(&money, MONEY_LOST, 3, 4 * DAY_S);
    assert_true(money.amounts[MONEY_LOST] == 3 && sum_of_days(&money, MONEY_LOST) == 0);
    money_add(&money, MONEY_LOST, 0, 5000 * DAY_S); /* nothing has no day either */
    assert_int_equal(money.days[MONEY_DAYS_MAX - 1].day, 1000 + MONEY_DAYS_MAX + 8);
}

static void test_both_lines_add_up(void **state)
{
    struct money money = {.free = 96 * WEI_PER_ETHER,
                          .stakes = 1,
                          .bonds = 2 * WEI_PER_ETHER,
                          .owed = WEI_PER_ETHER / 2};
    char text[MONEY_TEXT_SIZE];
    wei brought;

    (void)state;
    money_add(&money, MONEY_EARNED, WEI_PER_ETHER, DAY_S);
    money_add(&money, MONEY_GAS, WEI_PER_ETHER / 4, DAY_S);
    money_text_where(text, &money);
    assert_string_equal(text, "98.500000000000000001 eth = 96 free + 0.000000000000000001 in stakes"
                              " + 2 in bonds + 0 in escrow + 0.5 owed");
    money_text_why(text, &money);
    assert_string_equal(text, "98.500000000000000001 eth = 97.750000000000000001 brought in"
                              " + 1 earned - 0 paid - 0 lost - 0.25 gas");
    /* Gas of a game for a token is paid from another purse. */
    money.currency = currency_of_token("USDC", 18);
    assert_true(money_brought(&money, &brought) && brought == money_total(&money) - WEI_PER_ETHER);
    money_text_why(text, &money);
    assert_string_equal(text, "98.500000000000000001 USDC = 97.500000000000000001 brought in"
                              " + 1 earned - 0 paid - 0 lost; 0.25 eth of gas");
    money_text_day(text, &money, &money.days[0]);
    assert_string_equal(text, "1970-01-02: 1 earned, 0 paid, 0 lost; 0.25 eth of gas");
    /* More went out than ever came in. */
    money.amounts[MONEY_EARNED] = 100 * WEI_PER_ETHER;
    assert_false(money_brought(&money, &brought));
    money_text_why(text, &money);
    assert_non_null(strstr(text, "100 earned - 1.499999999999999999 taken out"));
}

/* ---- JSON ---------------------------------------------------------------------------- */

static struct money some_money(void)
{
    struct money money = {.account = address_of(7),
                          .currency = currency_of_token("USDC", 6),
                          .free = WEI_MAX,
                          .stakes = 2,
                          .bonds = 3,
                          .escrow = 4,
                          .owed = 5};

    for (int i = 0; i < MONEY_KINDS; i++) {
        money_add(&money, (enum money_kind)i, 10 + i, DAY_S * (20000 + 3 * i));
    }
    return money;
}

static void test_json_gives_the_same_money_back(void **state)
{
    const struct money money = some_money();
    json_t *object = money_json(&money);
    struct money back;
    struct error error;

    (void)state;
    error_init(&error);
    memset(&back, 0xff, sizeof(back));
    OK(money_from_json(&back, object, &error));
    assert_true(address_equal(&back.account, &money.account));
    assert_string_equal(currency_name(&back.currency), "USDC");
    assert_int_equal(back.currency.places, 6);
    assert_true(money_total(&back) == money_total(&money) && back.owed == 5 && back.bonds == 3);
    assert_int_equal(back.day_count, MONEY_KINDS);
    for (uint32_t i = 0; i < MONEY_KINDS; i++) {
        assert_true(back.amounts[i] == money.amounts[i]);
        assert_int_equal(back.days[i].day, money.days[i].day);
        assert_true(sum_of_days(&back, (enum money_kind)i) == 10 + i);
    }
    json_decref(object);
}

static void test_json_without_a_field_is_refused(void **state)
{
    static const char *const derived[] = {"total_wei", "brought_in_wei", "days"};
    const struct money money = some_money();
    json_t *whole = money_json(&money);
    const char *name;
    json_t *value;

    (void)state;
    json_object_foreach(whole, name, value)
    {
        json_t *object = json_deep_copy(whole);
        struct money back;
        struct error error;
        bool needed = true;

        for (size_t i = 0; i < sizeof(derived) / sizeof(derived[0]); i++) {
            needed = needed && strcmp(name, derived[i]) != 0;
        }
        error_init(&error);
        (void)json_object_del(object, name);
        assert_int_equal(money_from_json(&back, object, &error) != STATUS_OK, needed);
        json_decref(object);
    }
    json_decref(whole);
}

static void test_json_of_too_many_days_is_refused(void **state)
{
    const struct money money = some_money();
    json_t *object = money_json(&money);
    json_t *days = json_object_get(object, "days");
    struct money back;
    struct error error;

    (void)state;
    error_init(&error);
    while (json_array_size(days) < MONEY_DAYS_MAX) {
        (void)json_array_append_new(days, json_deep_copy(json_array_get(days, 0)));
    }
    OK(money_from_json(&back, object, &error));
    (void)json_array_append_new(days, json_deep_copy(json_array_get(days, 0)));
    assert_int_equal(money_from_json(&back, object, &error), STATUS_BAD_FORMAT);
    json_decref(object);
}

/* ---- a query ------------------------------------------------------------------------- */

enum { SOLVER, CLAIMANT, PARTIES };

struct told {
    struct board board;
    struct money_book book;
    uint64_t number;
};

static void tell(struct told *told, struct game_event event)
{
    struct ledger_entry entry = {.kind = LEDGER_EVENT,
                                 .number = ++told->number,
                                 .height = told->number,
                                 .time_s = 20000 * DAY_S,
                                 .event = event};
    struct error error;

    error_init(&error);
    entry.event.job.bytes[0] = 1;
    entry.event.claim.bytes[0] = 2;
    OK(board_take(&told->board, &entry, &error));
}

static const struct game_terms terms = {.steps = SEGMENTS * STEPS,
                                        .segment_steps = STEPS,
                                        .reward = 100,
                                        .stake = 1000,
                                        .bond = 30,
                                        .query_fee = 7,
                                        .segment_period_s = 1,
                                        .seal_period_s = 1,
                                        .reveal_period_s = 1,
                                        .claim_period_s = 1,
                                        .clock_s = 1,
                                        .deadline_s = 2000000000};

/* A job, its solver, and a claim with an open query. */
static void begin(struct told *told)
{
    const struct address parties[PARTIES] = {[SOLVER] = address_of(2), [CLAIMANT] = address_of(3)};
    struct error error;

    error_init(&error);
    *told = (struct told){.number = 0};
    OK(money_book_open(&told->book, &told->board, parties, PARTIES, &error));
    tell(told, (struct game_event){.kind = GAME_OPENED, .account = address_of(1), .terms = terms});
    tell(told, (struct game_event){.kind = GAME_ACCEPTED, .account = parties[SOLVER]});
    tell(told, (struct game_event){
                   .kind = GAME_CLAIMED, .account = parties[CLAIMANT], .amount = terms.bond});
    tell(told, (struct game_event){.kind = GAME_QUERIED});
}

static void end(struct told *told)
{
    board_release(&told->board);
    money_book_release(&told->book);
}

static struct money look(const struct told *told, uint32_t party)
{
    return money_book_look(&told->book, party);
}

static void test_the_fee_of_a_query_is_a_bond_until_the_reply(void **state)
{
    struct told told;

    (void)state;
    begin(&told);
    assert_true(look(&told, CLAIMANT).bonds == 37 && look(&told, SOLVER).stakes == 1000);
    assert_true(look(&told, CLAIMANT).amounts[MONEY_PAID] == 0);
    tell(&told, (struct game_event){.kind = GAME_REPLIED});
    assert_true(look(&told, CLAIMANT).bonds == 30);
    assert_true(look(&told, CLAIMANT).amounts[MONEY_PAID] == 7);
    assert_true(look(&told, SOLVER).amounts[MONEY_EARNED] == 7);
    tell(&told, (struct game_event){.kind = GAME_QUERIED}); /* and another */
    assert_true(look(&told, CLAIMANT).bonds == 37);
    tell(&told, (struct game_event){.kind = GAME_REPLIED});
    tell(&told, (struct game_event){.kind = GAME_RULED});
    assert_true(look(&told, CLAIMANT).bonds == 0);
    assert_true(look(&told, CLAIMANT).amounts[MONEY_PAID] == 14);
    assert_true(look(&told, CLAIMANT).amounts[MONEY_LOST] == 0);
    assert_true(look(&told, CLAIMANT).days[0].amounts[MONEY_PAID] == 14);
    end(&told);
}

static void test_a_query_without_a_reply_comes_back(void **state)
{
    struct told told;

    (void)state;
    begin(&told);
    tell(&told, (struct game_event){.kind = GAME_RULED});
    assert_true(look(&told, CLAIMANT).bonds == 0);
    assert_true(look(&told, CLAIMANT).amounts[MONEY_PAID] == 0);
    assert_true(look(&told, SOLVER).amounts[MONEY_EARNED] == 0);
    end(&told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_days_are_in_order_and_the_first_go),
        cmocka_unit_test(test_both_lines_add_up),
        cmocka_unit_test(test_json_gives_the_same_money_back),
        cmocka_unit_test(test_json_without_a_field_is_refused),
        cmocka_unit_test(test_json_of_too_many_days_is_refused),
        cmocka_unit_test(test_the_fee_of_a_query_is_a_bond_until_the_reply),
        cmocka_unit_test(test_a_query_without_a_reply_comes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
