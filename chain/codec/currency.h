/*
 * currency.h - what the amounts of a ledger are in, and how they read for people: the chain's coin,
 * or a token that names itself and says how many decimals it has.
 *
 * A zero-filled currency is the coin. A token's name is a stranger's word: one that is no plain
 * word, or is a name of the coin, is not repeated.
 */
#ifndef CHAIN_CODEC_CURRENCY_H
#define CHAIN_CODEC_CURRENCY_H

#include <jansson.h>
#include <stdbool.h>

#include "chain/codec/wei.h"

#define CURRENCY_NAME_SIZE  13
#define CURRENCY_PLACES_MAX 27 /* of an amount below 2^96 some digit is before the point */

struct currency {
    bool is_token;
    uint32_t places; /* of a token: its decimals; 0: amounts are in its smallest units */
    char name[CURRENCY_NAME_SIZE]; /* of a token */
};

extern const struct currency currency_coin;

/* symbol may be empty, and decimals 0: the token told none. */
struct currency currency_of_token(const char *symbol, uint32_t decimals);

const char *currency_name(const struct currency *currency); /* "eth", "USDC", "units" */

/* In whole coins, exact and without the name, so that figures stand in line: "0.25". */
void currency_print_number(char text[WEI_TEXT_SIZE], const struct currency *currency, wei amount);

/* Exact, with the name, small amounts of the coin in gwei or wei: "0.25 eth". */
void currency_print(char text[WEI_TEXT_SIZE], const struct currency *currency, wei amount);
/* The first five digits, for people who compare. */
void currency_print_about(char text[WEI_TEXT_SIZE], const struct currency *currency, wei amount);

/* {"name": "eth", "decimals": 18, "token": false}; NULL: no memory. */
json_t *currency_json(const struct currency *currency);

#endif /* CHAIN_CODEC_CURRENCY_H */
