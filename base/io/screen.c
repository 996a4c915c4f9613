/* screen.c - see screen.h. */
#include "base/io/screen.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buffer.h"

#define COLUMNS_MIN 10 /* a terminal that says less does not know */
#define ROWS_MIN    4
#define OUT_MAX     (256u << 10)

static bool says_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);

        if (value != NULL && value[0] != '\0') { /* the first that is set counts */
            return strstr(value, "UTF-8") != NULL || strstr(value, "utf8") != NULL ||
                   strstr(value, "utf-8") != NULL;
        }
    }
    return false;
}

void screen_init(struct screen *screen, FILE *stream)
{
    *screen = (struct screen){.stream = stream,
                              .terminal = stream != NULL && isatty(fileno(stream)) == 1,
                              .columns = SCREEN_COLUMNS,
                              .rows = SCREEN_ROWS};
    screen->utf8 = screen->terminal && says_utf8();
    (void)screen_measure(screen);
}

bool screen_measure(struct screen *screen)
{
    unsigned columns = screen->columns;
    unsigned rows = screen->rows;
    struct winsize window;

    if (screen->terminal && ioctl(fileno(screen->stream), TIOCGWINSZ, &window) == 0) {
        screen->columns = window.ws_col >= COLUMNS_MIN ? window.ws_col : SCREEN_COLUMNS;
        screen->rows = window.ws_row >= ROWS_MIN ? window.ws_row : SCREEN_ROWS;
    }
    return columns != screen->columns || rows != screen->rows;
}

/* How many bytes of the line are at most so many characters. */
static size_t cut_line(const char *line, size_t size, unsigned columns)
{
    size_t at = 0;

    while (at < size) {
        if (((unsigned char)line[at] & 0xc0) != 0x80 && columns-- == 0) {
            break;
        }
        at++;
    }
    return at;
}

/* Every line that fits, over what stands there; returns how many. A full row would wrap. */
static unsigned add_lines(struct buffer *out, const struct screen *screen, const char *text,
                          unsigned most)
{
    unsigned count = 0;

    for (const char *line = text; *line != '\0' && count < most; count++) {
        size_t size = strcspn(line, "\n");

        buffer_add(out, line, cut_line(line, size, screen->columns - 1));
        buffer_add_text(out, "\033[K\n");
        line += size + (line[size] == '\n');
    }
    buffer_add_text(out, "\033[J");
    return count;
}

static void begin_drawing(struct buffer *out, struct screen *screen)
{
    bool is_other = screen_measure(screen);

    buffer_init(out, OUT_MAX);
    /* A window that became narrower has wrapped what was drawn: nobody knows where it stands. */
    buffer_add_text(out, is_other && screen->drawn ? "\033[H\033[2J" : "\r\033[K");
}

/* At once, so that nobody sees half of it. */
static void end_drawing(struct buffer *out, struct screen *screen, bool drawn)
{
    if (buffer_check(out, NULL, "the screen") == STATUS_OK) {
        (void)fwrite(out->data, 1, out->size, screen->stream);
        (void)fflush(screen->stream);
        screen->drawn = drawn;
    }
    buffer_release(out);
}

void screen_draw(struct screen *screen, const char *text)
{
    struct buffer out;

    if (screen->terminal) {
        begin_drawing(&out, screen);
        buffer_add_text(&out, "\n");
        buffer_add_format(&out, "\033[%uA", add_lines(&out, screen, text, screen->rows - 2) + 1);
        end_drawing(&out, screen, true);
    }
}

void screen_finish(struct screen *screen, const char *text)
{
    struct buffer out;

    if (screen->terminal) {
        begin_drawing(&out, screen);
        (void)add_lines(&out, screen, text, screen->rows - 1);
        end_drawing(&out, screen, false);
    }
}
