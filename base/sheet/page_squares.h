/* page_squares.h - squares on a page, the marks that occur in words, and how many units a square
 * is. */
#ifndef BASE_SHEET_PAGE_SQUARES_H
#define BASE_SHEET_PAGE_SQUARES_H

#include "base/sheet/sheet.h"

void page_squares_write(struct buffer *page, const struct sheet_squares *squares);

#endif /* BASE_SHEET_PAGE_SQUARES_H */
