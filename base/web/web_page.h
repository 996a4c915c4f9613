/*
 * web_page.h - the frame of every page for people: style for light and dark, for wide and narrow,
 * and the script that refreshes it; text and times as pages have them.
 *
 * The page holds all that it needs: a browser requests nothing else. Without scripts it is the same
 * page, and stands still.
 */
#ifndef BASE_WEB_WEB_PAGE_H
#define BASE_WEB_WEB_PAGE_H

#include <stdint.h>

#include "base/buffer.h"

/* Up to and with the beginning of <main>. title is escaped. */
void web_page_begin(struct buffer *page, const char *title);

/* A footer with the moment, the version and a remark, which is HTML; then the rest. now_s 0: a page
 * to keep, without moment and script. */
void web_page_end(struct buffer *page, uint64_t now_s, const char *remark);

/* Text of others: escaped for HTML, and by log_escape(); cut after some thousand bytes. */
void web_page_text(struct buffer *page, const char *text);

/* The first digits of a hash, with all of them as its title. */
void web_page_key(struct buffer *page, const uint8_t *bytes, size_t size);

void web_page_span(struct buffer *page, uint64_t seconds); /* "4 min" */
/* "4 min ago", or "in 4 min"; a dash for 0. */
void web_page_when(struct buffer *page, uint64_t when_s, uint64_t now_s);

#endif /* BASE_WEB_WEB_PAGE_H */
