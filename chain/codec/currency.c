/* currency.c - see currency.h. */
#include "chain/codec/currency.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

const struct currency currency_coin;

static const struct unit {
    wei least; /* that is told in it */
    wei size;
    int places;
    const char *name;
} units[] = {{WEI_PER_ETHER / 100000, WEI_PER_ETHER, WEI_ETHER_PLACES, "eth"},
             {WEI_PER_GWEI, WEI_PER_GWEI, WEI_GWEI_PLACES, "gwei"},
             {1, 1, 0, "wei"},
             {0, WEI_PER_ETHER, WEI_ETHER_PLACES, "eth"}};

/* A plain word of ASCII, in every locale, that cannot be taken for the coin. */
static bool is_fit(const char *symbol)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  ".-_";
    static const char *const taken[] = {"eth", "ether", "gwei", "wei", "units"};
    size_t length = strlen(symbol);

    if (length == 0 || length >= CURRENCY_NAME_SIZE || strspn(symbol, letters) != length) {
        return false;
    }
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        if (strcasecmp(symbol, taken[i]) == 0) {
            return false;
        }
    }
    return true;
}

struct currency currency_of_token(const char *symbol, uint32_t decimals)
{
    struct currency currency = {.is_token = true};

    if (decimals <= CURRENCY_PLACES_MAX) {
        currency.places = decimals;
    }
    (void)snprintf(currency.name, sizeof(currency.name), "%s",
                   decimals > CURRENCY_PLACES_MAX ? "units"
                   : is_fit(symbol)               ? symbol
                   : currency.places == 0         ? "units"
                                                  : "tokens");
    return currency;
}

const char *currency_name(const struct currency *currency)
{
    return currency->is_token ? currency->name : units[0].name;
}

static int places_of(const struct currency *currency)
{
    return currency->is_token ? (int)currency->places : WEI_ETHER_PLACES;
}

static struct unit unit_of(const struct currency *currency, wei amount)
{
    const struct unit *unit = units;
    struct unit whole = {.size = 1, .places = places_of(currency), .name = currency->name};

    if (currency->is_token) {
        for (int i = 0; i < whole.places; i++) {
            whole.size *= 10;
        }
        return whole;
    }
    while (amount < unit->least) {
        unit++;
    }
    return *unit;
}

void currency_print_number(char text[WEI_TEXT_SIZE], const struct currency *currency, wei amount)
{
    wei_print_number(text, amount, places_of(currency));
}

void currency_print(char text[WEI_TEXT_SIZE], const struct currency *currency, wei amount)
{
    struct unit unit = unit_of(currency, amount);
    char number[WEI_TEXT_SIZE];

    wei_print_number(number, amount, unit.places);
    (void)snprintf(text, WEI_TEXT_SIZE, "%.45s %s", number, unit.name);
}

void currency_print_about(char text[WEI_TEXT_SIZE], const struct currency *currency, wei amount)
{
    struct unit unit = unit_of(currency, amount);

    (void)snprintf(text, WEI_TEXT_SIZE, "%.5g %s", (double)amount / (double)unit.size, unit.name);
}

json_t *currency_json(const struct currency *currency)
{
    return json_pack("{s:s, s:i, s:b}", "name", currency_name(currency), "decimals",
                     places_of(currency), "token", (int)currency->is_token);
}
