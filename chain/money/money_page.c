/* money_page.c - see money_page.h. */
#include "chain/money/money_page.h"

#include "base/web/web_page.h"
#include "base/web/web_parts.h"
#include "chain/money/money_text.h"

static void add_card(struct buffer *page, const struct money *money, wei amount, const char *words)
{
    char text[WEI_TEXT_SIZE];

    currency_print_about(text, &money->currency, amount);
    web_parts_card(page, text, words);
}

void money_page_cards(struct buffer *page, const struct money *money)
{
    add_card(page, money, money_total(money), "in all");
    add_card(page, money, money->free, "in the account");
    add_card(page, money, money->amounts[MONEY_EARNED], "earned");
    add_card(page, money, money->amounts[MONEY_LOST], "lost");
}

static void add_line(struct buffer *page, const char *text)
{
    buffer_add_text(page, "<p>");
    web_page_text(page, text);
    buffer_add_text(page, "</p>\n");
}

void money_page_write(struct buffer *page, const struct money *money)
{
    char text[MONEY_TEXT_SIZE];

    buffer_add_text(page, "<h2>Money</h2>\n");
    money_text_where(text, money);
    add_line(page, text);
    money_text_why(text, money);
    add_line(page, text);
    for (uint32_t i = money->day_count; i-- > 0;) {
        money_text_day(text, money, &money->days[i]);
        add_line(page, text);
    }
}
