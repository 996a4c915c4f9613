/*
 * page_frame.h - the frame of every page for people: style for light and dark, for wide and narrow,
 * and the script that refreshes it. Only sheet_page.c and what draws for it include this.
 *
 * The page holds all that it needs: a browser requests nothing else. Without scripts it is the same
 * page, and stands still.
 */
#ifndef BASE_SHEET_PAGE_FRAME_H
#define BASE_SHEET_PAGE_FRAME_H

#include <stdint.h>

#include "base/buffer.h"

/* Up to and with the beginning of <main>. */
void page_frame_begin(struct buffer *page, const char *title);

/* now_s 0: a page to keep, without script. */
void page_frame_end(struct buffer *page, uint64_t now_s);

/* For the footer: the moment, where there is one, and the version. */
void page_frame_moment(struct buffer *page, uint64_t now_s);

/* Text of others: escaped for HTML, between tags and in attributes, and by log_escape(). */
void page_frame_text(struct buffer *page, const char *text);

#endif /* BASE_SHEET_PAGE_FRAME_H */
