/*
 * nfc.h - Normalization Form C of Unicode 14.0.
 */
#ifndef DATA_TEXT_NFC_H
#define DATA_TEXT_NFC_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

/* Appends the normal form of valid UTF-8 to out. STATUS_OVER_LIMIT: more than 1,024 combining marks
 * in a row. A failure of out shows in buffer_check(). */
MUST_CHECK enum status nfc_add(struct buffer *out, const uint8_t *text, size_t size);

#endif /* DATA_TEXT_NFC_H */
