/* wei_json.c - see wei_json.h. */
#include "chain/codec/wei_json.h"

json_t *wei_json(wei amount)
{
    char text[WEI_TEXT_SIZE];

    wei_print_plain(text, amount);
    return json_string(text);
}
