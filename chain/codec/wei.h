/*
 * wei.h - amounts of money: whole wei, below 2^96 each, so that sums of them fit twice over.
 *
 * As text an amount is a number with an optional fraction and a unit: "1.5ether", "3 gwei",
 * "21000wei", and a bare number is wei.
 */
#ifndef CHAIN_CODEC_WEI_H
#define CHAIN_CODEC_WEI_H

#include "base/status.h"
#include "chain/codec/uint256.h"

__extension__ typedef unsigned __int128 wei; /* a scalar, as uint64_t is */

#define WEI_MAX       (((wei)1 << 96) - 1)
#define WEI_PER_GWEI  ((wei)1000000000u)
#define WEI_PER_ETHER (WEI_PER_GWEI * 1000000000u)
#define WEI_TEXT_SIZE 64

struct uint256 wei_to_uint256(wei amount);

/* False, and *amount untouched, for more than 128 bits. */
MUST_CHECK bool wei_from_uint256(wei *amount, const struct uint256 *value);

/* STATUS_BAD_FORMAT for anything else than described above, STATUS_OVER_LIMIT past WEI_MAX. A
 * fraction of a wei is refused. */
MUST_CHECK enum status wei_parse(wei *amount, const char *text);

/* In units of 10^places wei, as short as it can be without rounding: "1.5". */
#define WEI_GWEI_PLACES  9
#define WEI_ETHER_PLACES 18
void wei_print_number(char text[WEI_TEXT_SIZE], wei amount, int places);

/* Digits only. */
void wei_print_plain(char text[WEI_TEXT_SIZE], wei amount);

#endif /* CHAIN_CODEC_WEI_H */
