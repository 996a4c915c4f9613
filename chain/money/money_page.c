/* money_page.c - see money_page.h. */
#include "chain/money/money_page.h"

#include "chain/money/money_text.h"

static void add_card(struct sheet *sheet, const struct money *money, wei amount, const char *words)
{
    char text[WEI_TEXT_SIZE];

    currency_print_about(text, &money->currency, amount);
    sheet_add(sheet, SHEET_CARD, words, "%s", text);
}

void money_page_cards(struct sheet *sheet, const struct money *money)
{
    add_card(sheet, money, money_total(money), "in all");
    add_card(sheet, money, money->free, "in the account");
    add_card(sheet, money, money->amounts[MONEY_EARNED], "earned");
    add_card(sheet, money, money->amounts[MONEY_LOST], "lost");
}

void money_page_write(struct sheet *sheet, const struct money *money)
{
    char text[MONEY_TEXT_SIZE];

    sheet_add(sheet, SHEET_HEADING, NULL, "Money");
    money_text_where(text, money);
    sheet_line(sheet, SHEET_PLAIN, "%s", text);
    money_text_why(text, money);
    sheet_line(sheet, SHEET_PLAIN, "%s", text);
    for (uint32_t i = money->day_count; i-- > 0;) {
        money_text_day(text, money, &money->days[i]);
        sheet_line(sheet, SHEET_PLAIN, "%s", text);
    }
}
