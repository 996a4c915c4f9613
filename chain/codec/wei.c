/* wei.c - see wei.h. */
#include "chain/codec/wei.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    DIGITS_MAX = 40,
};

struct uint256 wei_to_uint256(wei amount)
{
    struct uint256 value = {{(uint64_t)amount, (uint64_t)(amount >> 64), 0, 0}};

    return value;
}

bool wei_from_uint256(wei *amount, const struct uint256 *value)
{
    if (value->limbs[2] != 0 || value->limbs[3] != 0) {
        return false;
    }
    *amount = (wei)value->limbs[1] << 64 | value->limbs[0];
    return true;
}

/* How many decimal places a unit has; -1 for an unknown one. */
static int places_of(const char *unit)
{
    while (*unit == ' ') {
        unit++;
    }
    if (*unit == '\0' || strcasecmp(unit, "wei") == 0) {
        return 0;
    }
    if (strcasecmp(unit, "gwei") == 0) {
        return WEI_GWEI_PLACES;
    }
    if (strcasecmp(unit, "ether") == 0 || strcasecmp(unit, "eth") == 0) {
        return WEI_ETHER_PLACES;
    }
    return -1;
}

enum status wei_parse(wei *amount, const char *text)
{
    size_t number = strspn(text, "0123456789.");
    const char *point = memchr(text, '.', number);
    int places = places_of(text + number);
    int after_point = point == NULL ? 0 : (int)(text + number - point) - 1;
    wei sum = 0;

    if (number == 0 || number > DIGITS_MAX || places < 0 || text[0] == '.' ||
        (point != NULL && (after_point == 0 || memchr(point + 1, '.', (size_t)after_point)))) {
        return STATUS_BAD_FORMAT;
    }
    if (after_point > places) {
        return STATUS_BAD_FORMAT;
    }
    for (size_t i = 0; i < number + (size_t)(places - after_point); i++) {
        char digit = i < number ? text[i] : '0';

        if (digit != '.') {
            sum = 10 * sum + (wei)(digit - '0');
        }
        if (sum > WEI_MAX) {
            return STATUS_OVER_LIMIT;
        }
    }
    *amount = sum;
    return STATUS_OK;
}

void wei_print_number(char text[WEI_TEXT_SIZE], wei amount, int places)
{
    char digits[WEI_TEXT_SIZE];
    size_t length = 0;
    bool begun = false;
    int place = 0;

    /* From the last digit on, without zeros at the end of the fraction. */
    for (; amount > 0 || place <= places; place++) {
        int digit = (int)(amount % 10);

        amount /= 10;
        if (place == places && begun) {
            digits[length++] = '.';
        }
        if (place >= places || begun || digit != 0) {
            digits[length++] = (char)('0' + digit);
            begun = true;
        }
    }
    for (size_t i = 0; i < length; i++) {
        text[i] = digits[length - 1 - i];
    }
    text[length] = '\0';
}

void wei_print_plain(char text[WEI_TEXT_SIZE], wei amount)
{
    wei_print_number(text, amount, 0);
}
