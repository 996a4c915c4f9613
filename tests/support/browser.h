/* browser.h - what chromium makes of a page, where it is installed. */
#ifndef TESTS_SUPPORT_BROWSER_H
#define TESTS_SUPPORT_BROWSER_H

#include "base/buffer.h"

/* The page as it stands after its scripts, and the lines of the console; the caller releases it. */
void browser_print(struct buffer *printed, const char *url);

#endif /* TESTS_SUPPORT_BROWSER_H */
