/*
 * shown.h - a stranger's text as a person may read it: nothing in it drives a terminal.
 */
#ifndef DATA_TEXT_SHOWN_H
#define DATA_TEXT_SHOWN_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* Appends bytes: printable UTF-8 as it is, the rest as \n, \\ and \xNN. Text that turns around or
 * is invisible counts as the rest. */
void shown_add(struct buffer *out, const uint8_t *bytes, size_t size);

#endif /* DATA_TEXT_SHOWN_H */
