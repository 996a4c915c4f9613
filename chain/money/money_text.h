/*
 * money_text.h - the money of an account for people, and as JSON.
 *
 * All figures of a line are in whole coins and exact: they add up to the total.
 */
#ifndef CHAIN_MONEY_MONEY_TEXT_H
#define CHAIN_MONEY_MONEY_TEXT_H

#include <jansson.h>
#include <stdio.h>

#include "base/error.h"
#include "base/sheet/sheet.h"
#include "chain/money/money.h"

#define MONEY_TEXT_SIZE (8 * WEI_TEXT_SIZE)

/* "98.5 eth = 96 free + 0 in stakes + 2 in bonds + 0 in escrow + 0.5 owed" */
void money_text_where(char text[MONEY_TEXT_SIZE], const struct money *money);

/* "98.5 eth = 100 brought in + 1 earned - 2 paid - 0.25 lost - 0.25 gas" */
void money_text_why(char text[MONEY_TEXT_SIZE], const struct money *money);

/* "2026-11-29: 1 earned, 2 paid, 0 lost, 0.25 gas" */
void money_text_day(char text[MONEY_TEXT_SIZE], const struct money *money,
                    const struct money_day *day);

/* Both lines and the newest days, each after the indent. */
#define MONEY_TEXT_DAYS 7
void money_text_show(struct sheet *view, const struct money *money, const char *indent);

/* NULL: no memory. Amounts are whole wei, as texts. */
json_t *money_json(const struct money *money);
MUST_CHECK enum status money_from_json(struct money *money, const json_t *object,
                                       struct error *error);

#endif /* CHAIN_MONEY_MONEY_TEXT_H */
