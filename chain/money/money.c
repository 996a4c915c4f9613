/* money.c - see money.h. */
#include "chain/money/money.h"

#include <string.h>

#define DAY_S 86400

static const char *const names[MONEY_KINDS] = {"earned", "paid", "lost", "gas"};

const char *money_kind_name(enum money_kind kind)
{
    return names[kind];
}

/* NULL: the day is before those that are kept. */
static struct money_day *day_of(struct money *money, uint64_t day)
{
    uint32_t at = money->day_count;

    while (at > 0 && money->days[at - 1].day > day) {
        at--;
    }
    if (at > 0 && money->days[at - 1].day == day) {
        return &money->days[at - 1];
    }
    if (money->day_count == MONEY_DAYS_MAX) { /* the first goes */
        if (at == 0) {
            return NULL;
        }
        at--;
        memmove(&money->days[0], &money->days[1], at * sizeof(money->days[0]));
    } else {
        memmove(&money->days[at + 1], &money->days[at],
                (money->day_count - at) * sizeof(money->days[0]));
        money->day_count++;
    }
    money->days[at] = (struct money_day){.day = day};
    return &money->days[at];
}

void money_add(struct money *money, enum money_kind kind, wei amount, uint64_t time_s)
{
    struct money_day *day = amount == 0 ? NULL : day_of(money, time_s / DAY_S);

    money->amounts[kind] += amount;
    if (day != NULL) {
        day->amounts[kind] += amount;
    }
}

wei money_total(const struct money *money)
{
    return money->free + money->stakes + money->bonds + money->escrow + money->owed;
}

bool money_brought(const struct money *money, wei *amount)
{
    wei gone = money->amounts[MONEY_PAID] + money->amounts[MONEY_LOST] +
               (money->currency.is_token ? 0 : money->amounts[MONEY_GAS]);
    wei left = money_total(money) + gone;
    wei earned = money->amounts[MONEY_EARNED];

    *amount = left >= earned ? left - earned : earned - left;
    return left >= earned;
}
