/* money_page.h - the money of an account in a view. */
#ifndef CHAIN_MONEY_MONEY_PAGE_H
#define CHAIN_MONEY_MONEY_PAGE_H

#include "base/sheet/sheet.h"
#include "chain/money/money.h"

/* Cards: all that it has, what it earned and lost. */
void money_page_cards(struct sheet *view, const struct money *money);

/* A heading, both lines, and the days, the newest first. */
void money_page_write(struct sheet *view, const struct money *money);

#endif /* CHAIN_MONEY_MONEY_PAGE_H */
