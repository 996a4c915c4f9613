/* money_text.c - see money_text.h. */
#include "chain/money/money_text.h"

#include <string.h>
#include <time.h>

#include "base/io/strict_json.h"

#define DAY_S     86400
#define DAY_SIZE  24
#define NAME_SIZE 24

/* ---- lines ----------------------------------------------------------------------- */

static void add_in(char text[MONEY_TEXT_SIZE], const struct currency *currency, const char *before,
                   wei amount, const char *after)
{
    size_t used = strlen(text);
    char number[WEI_TEXT_SIZE];

    currency_print_number(number, currency, amount);
    (void)snprintf(text + used, MONEY_TEXT_SIZE - used, "%s%.40s%s", before, number, after);
}

static void add(char text[MONEY_TEXT_SIZE], const struct money *money, const char *before,
                wei amount, const char *after)
{
    add_in(text, &money->currency, before, amount, after);
}

/* "98.5 eth" */
static void begin_line(char text[MONEY_TEXT_SIZE], const struct money *money)
{
    char name[2 + CURRENCY_NAME_SIZE];

    (void)snprintf(name, sizeof(name), " %s", currency_name(&money->currency));
    text[0] = '\0';
    add(text, money, "", money_total(money), name);
}

void money_text_where(char text[MONEY_TEXT_SIZE], const struct money *money)
{
    begin_line(text, money);
    add(text, money, " = ", money->free, " free");
    add(text, money, " + ", money->stakes, " in stakes");
    add(text, money, " + ", money->bonds, " in bonds");
    add(text, money, " + ", money->escrow, " in escrow");
    add(text, money, " + ", money->owed, " owed");
}

/* Gas is always paid in the coin. */
static void add_gas(char text[MONEY_TEXT_SIZE], const struct money *money, const char *before,
                    wei amount)
{
    if (money->currency.is_token) {
        add_in(text, &currency_coin, "; ", amount, " eth of gas");
    } else {
        add(text, money, before, amount, " gas");
    }
}

void money_text_why(char text[MONEY_TEXT_SIZE], const struct money *money)
{
    wei brought;
    bool more = money_brought(money, &brought);

    begin_line(text, money);
    if (more) {
        add(text, money, " = ", brought, " brought in");
        add(text, money, " + ", money->amounts[MONEY_EARNED], " earned");
    } else {
        add(text, money, " = ", money->amounts[MONEY_EARNED], " earned");
        add(text, money, " - ", brought, " taken out");
    }
    add(text, money, " - ", money->amounts[MONEY_PAID], " paid");
    add(text, money, " - ", money->amounts[MONEY_LOST], " lost");
    add_gas(text, money, " - ", money->amounts[MONEY_GAS]);
}

static void name_day(char text[DAY_SIZE], uint64_t day)
{
    time_t time = (time_t)(day * DAY_S);
    struct tm parts;

    (void)snprintf(text, DAY_SIZE, "?");
    if (gmtime_r(&time, &parts) != NULL) {
        (void)strftime(text, DAY_SIZE, "%Y-%m-%d", &parts);
    }
}

void money_text_day(char text[MONEY_TEXT_SIZE], const struct money *money,
                    const struct money_day *day)
{
    name_day(text, day->day);
    add(text, money, ": ", day->amounts[MONEY_EARNED], " earned");
    add(text, money, ", ", day->amounts[MONEY_PAID], " paid");
    add(text, money, ", ", day->amounts[MONEY_LOST], " lost");
    add_gas(text, money, ", ", day->amounts[MONEY_GAS]);
}

void money_text_show(struct sheet *view, const struct money *money, const char *indent)
{
    const uint32_t first =
        money->day_count > MONEY_TEXT_DAYS ? money->day_count - MONEY_TEXT_DAYS : 0;
    char text[MONEY_TEXT_SIZE];

    money_text_where(text, money);
    sheet_line(view, SHEET_PLAIN, "%s%s", indent, text);
    money_text_why(text, money);
    sheet_line(view, SHEET_PLAIN, "%s%s", indent, text);
    for (uint32_t i = first; i < money->day_count; i++) {
        money_text_day(text, money, &money->days[i]);
        sheet_line(view, SHEET_PLAIN, "%s%s", indent, text);
    }
}

/* ---- JSON ------------------------------------------------------------------------ */

static const struct {
    const char *name;
    size_t offset;
} places[] = {{"free_wei", offsetof(struct money, free)},
              {"stakes_wei", offsetof(struct money, stakes)},
              {"bonds_wei", offsetof(struct money, bonds)},
              {"escrow_wei", offsetof(struct money, escrow)},
              {"owed_wei", offsetof(struct money, owed)}};

#define PLACES (sizeof(places) / sizeof(places[0]))

static void set_amount(json_t *object, const char *name, const char *sign, wei amount)
{
    char number[WEI_TEXT_SIZE];
    char text[WEI_TEXT_SIZE + 1];

    wei_print_plain(number, amount);
    (void)snprintf(text, sizeof(text), "%s%s", sign, number);
    (void)json_object_set_new(object, name, json_string(text));
}

static void set_amounts(json_t *object, const wei amounts[MONEY_KINDS])
{
    for (int i = 0; i < MONEY_KINDS; i++) {
        char name[NAME_SIZE];

        (void)snprintf(name, sizeof(name), "%s_wei", money_kind_name((enum money_kind)i));
        set_amount(object, name, "", amounts[i]);
    }
}

static json_t *day_json(const struct money_day *day)
{
    json_t *object = json_object();
    char name[DAY_SIZE];

    name_day(name, day->day);
    (void)json_object_set_new(object, "day", json_string(name));
    (void)json_object_set_new(object, "time", json_integer((json_int_t)day->day * DAY_S));
    set_amounts(object, day->amounts);
    return object;
}

json_t *money_json(const struct money *money)
{
    json_t *object = json_object();
    json_t *days = json_array();
    char address[ADDRESS_TEXT_SIZE];
    wei brought;
    bool more = money_brought(money, &brought);

    address_print(address, &money->account);
    (void)json_object_set_new(object, "account", json_string(address));
    (void)json_object_set_new(object, "currency", currency_json(&money->currency));
    for (size_t i = 0; i < PLACES; i++) {
        wei amount;

        memcpy(&amount, (const uint8_t *)money + places[i].offset, sizeof(amount));
        set_amount(object, places[i].name, "", amount);
    }
    set_amount(object, "total_wei", "", money_total(money));
    set_amount(object, "brought_in_wei", more ? "" : "-", brought);
    set_amounts(object, money->amounts);
    for (uint32_t i = 0; i < money->day_count; i++) {
        (void)json_array_append_new(days, day_json(&money->days[i]));
    }
    (void)json_object_set_new(object, "days", days);
    return object;
}

static enum status read_amount(wei *amount, const json_t *object, const char *name,
                               struct error *error)
{
    const char *text;

    TRY(strict_json_text(object, error, &text, name));
    return wei_parse(amount, text) == STATUS_OK
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "'%s' is no amount", name);
}

static enum status read_amounts(wei amounts[MONEY_KINDS], const json_t *object, struct error *error)
{
    for (int i = 0; i < MONEY_KINDS; i++) {
        char name[NAME_SIZE];

        (void)snprintf(name, sizeof(name), "%s_wei", money_kind_name((enum money_kind)i));
        TRY(read_amount(&amounts[i], object, name, error));
    }
    return STATUS_OK;
}

static enum status read_days(struct money *money, const json_t *object, struct error *error)
{
    const json_t *days = json_object_get(object, "days");
    const json_t *day;
    size_t at;

    if (json_array_size(days) > MONEY_DAYS_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "more than %d days", MONEY_DAYS_MAX);
    }
    json_array_foreach(days, at, day)
    {
        TRY(strict_json_number(day, error, &money->days[at].day, "time", INT64_MAX));
        money->days[at].day /= DAY_S;
        TRY(read_amounts(money->days[at].amounts, day, error));
        money->day_count++;
    }
    return STATUS_OK;
}

/* Of a coin nothing but that is kept; a name is checked as a token's own word is. */
static enum status read_currency(struct currency *currency, const json_t *object,
                                 struct error *error)
{
    const json_t *is = json_object_get(object, "currency");
    const char *name;
    uint64_t decimals;
    bool is_token;

    TRY(strict_json_flag(is, error, &is_token, "token"));
    TRY(strict_json_text(is, error, &name, "name"));
    TRY(strict_json_number(is, error, &decimals, "decimals", CURRENCY_PLACES_MAX));
    *currency = is_token ? currency_of_token(name, (uint32_t)decimals) : currency_coin;
    return STATUS_OK;
}

enum status money_from_json(struct money *money, const json_t *object, struct error *error)
{
    const char *account;

    *money = (struct money){.day_count = 0};
    TRY(strict_json_text(object, error, &account, "account"));
    if (address_parse(&money->account, account) != STATUS_OK) {
        return error_set(error, STATUS_BAD_FORMAT, "'account' is no address");
    }
    TRY(read_currency(&money->currency, object, error));
    for (size_t i = 0; i < PLACES; i++) {
        wei amount = 0;

        TRY(read_amount(&amount, object, places[i].name, error));
        memcpy((uint8_t *)money + places[i].offset, &amount, sizeof(amount));
    }
    TRY(read_amounts(money->amounts, object, error));
    return read_days(money, object, error);
}
