/*
 * page_plot.h - a drawing of numbers on a page: lines or bars over steps or time.
 *
 * What it shows is said in words too, for readers who do not see it. Its own words have the size of
 * the page's in a window of any width. Where there is no value, it says so.
 */
#ifndef BASE_SHEET_PAGE_PLOT_H
#define BASE_SHEET_PAGE_PLOT_H

#include "base/sheet/sheet.h"

void page_plot_write(struct buffer *page, const struct sheet_plot *plot);

#endif /* BASE_SHEET_PAGE_PLOT_H */
