/* money_page.h - the money of an account on a page. */
#ifndef CHAIN_MONEY_MONEY_PAGE_H
#define CHAIN_MONEY_MONEY_PAGE_H

#include "base/buffer.h"
#include "chain/money/money.h"

/* Into a row of cards (base/web/web_parts.h): all that it has, what it earned and lost. */
void money_page_cards(struct buffer *page, const struct money *money);

/* A heading, both lines, and the days, the newest first. */
void money_page_write(struct buffer *page, const struct money *money);

#endif /* CHAIN_MONEY_MONEY_PAGE_H */
