/*
 * wei_json.h - an amount in JSON: a text of digits, since numbers are exact up to 2^53 alone.
 */
#ifndef CHAIN_CODEC_WEI_JSON_H
#define CHAIN_CODEC_WEI_JSON_H

#include <jansson.h>

#include "chain/codec/wei.h"

json_t *wei_json(wei amount); /* returns a new reference; NULL: no memory */

#endif /* CHAIN_CODEC_WEI_JSON_H */
