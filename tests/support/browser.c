/* browser.c - see browser.h. */
#include "tests/support/browser.h"

#include <stdio.h>

#include "tests/support/test.h"

void browser_print(struct buffer *printed, const char *url)
{
    char command[1400];
    char bytes[4096];
    FILE *browser;
    size_t size;

    buffer_init(printed, 64u << 20);
    (void)snprintf(command, sizeof(command),
                   "timeout 100 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-"
                   "usage --no-first-run --enable-logging=stderr --user-data-dir=%s/browser "
                   "--virtual-time-budget=6000 --dump-dom '%s' 2>&1",
                   test_temp_dir(), url);
    browser = popen(command, "r");
    assert_non_null(browser);
    while ((size = fread(bytes, 1, sizeof(bytes), browser)) > 0) {
        buffer_add(printed, bytes, size);
    }
    assert_int_equal(pclose(browser), 0);
}
