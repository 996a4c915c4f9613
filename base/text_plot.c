/* text_plot.c - see text_plot.h. */
#include "base/text_plot.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LABEL_COLUMNS 9 /* of a number at the axis, and a blank */
#define DOTS_WIDE     2 /* of a character in braille */
#define DOTS_HIGH     4
#define POINTS_WORDS  "o held-out"
#define POINT         0x100 /* a cell with a point in place of dots */

struct canvas {
    const struct text_plot *plot;
    uint64_t shown; /* steps */
    double low;
    double high;
    unsigned columns; /* of the drawing itself */
    unsigned rows;
    unsigned wide; /* dots of a character */
    unsigned tall;
    uint16_t cells[TEXT_PLOT_ROWS_MAX][TEXT_PLOT_COLUMNS_MAX]; /* a bit for each dot */
};

/* ---- dots ------------------------------------------------------------------------------ */

static void set_dot(struct canvas *canvas, unsigned x, unsigned y)
{
    unsigned bit = x % canvas->wide * canvas->tall + y % canvas->tall;

    canvas->cells[y / canvas->tall][x / canvas->wide] |= (uint16_t)(1u << bit);
}

static unsigned row_of(const struct canvas *canvas, double value)
{
    double rows = canvas->rows * canvas->tall - 1;

    return (unsigned)lround((canvas->high - value) / (canvas->high - canvas->low) * rows);
}

/* From the last dot to this one, without a gap. */
static void join_dots(struct canvas *canvas, unsigned from_x, unsigned from_y, unsigned x,
                      unsigned y)
{
    int high = (int)y - (int)from_y;
    unsigned wide = x - from_x;
    unsigned length = (unsigned)(high < 0 ? -high : high);

    length = length > wide ? length : wide;
    for (unsigned i = 1; i <= length; i++) {
        set_dot(canvas, from_x + (wide * i + length / 2) / length,
                (unsigned)((int)from_y + (int)lround((double)high * i / length)));
    }
}

static void draw_line(struct canvas *canvas)
{
    unsigned dots = canvas->columns * canvas->wide;
    unsigned last_x = dots;
    unsigned last_y = 0;
    double mean;

    for (unsigned x = 0; x < dots; x++) {
        if (!curve_part(&mean, canvas->plot->line, canvas->shown, x, dots)) {
            continue;
        }
        if (last_x == dots) {
            set_dot(canvas, x, row_of(canvas, mean));
        } else {
            join_dots(canvas, last_x, last_y, x, row_of(canvas, mean));
        }
        last_x = x;
        last_y = row_of(canvas, mean);
    }
}

static void draw_points(struct canvas *canvas)
{
    double mean;

    for (unsigned x = 0; x < canvas->columns && canvas->plot->points != NULL; x++) {
        if (curve_part(&mean, canvas->plot->points, canvas->shown, x, canvas->columns)) {
            canvas->cells[row_of(canvas, mean) / canvas->tall][x] = POINT;
        }
    }
}

/* ---- text ------------------------------------------------------------------------------ */

static void add_cell(struct buffer *text, const struct canvas *canvas, uint16_t dots)
{
    /* Braille numbers its dots down the first column, down the second, and the lowest row last. */
    static const uint8_t braille[] = {0x01, 0x02, 0x04, 0x40, 0x08, 0x10, 0x20, 0x80};
    unsigned code = 0;

    if (dots == POINT || dots == 0 || !canvas->plot->braille) {
        buffer_add_text(text, dots == POINT ? "o" : dots == 0 ? " " : "*");
        return;
    }
    for (unsigned i = 0; i < sizeof(braille); i++) {
        code |= (dots >> i & 1) != 0 ? braille[i] : 0;
    }
    buffer_add_u8(text, 0xe2); /* U+2800 and the dots, as UTF-8 */
    buffer_add_u8(text, (uint8_t)(0xa0 | code >> 6));
    buffer_add_u8(text, (uint8_t)(0x80 | (code & 0x3f)));
}

/* What ends a line with blanks would wrap it on a terminal that is narrower than it says. */
static void add_row(struct buffer *text, const struct canvas *canvas, unsigned row)
{
    unsigned end = canvas->columns;
    char label[LABEL_COLUMNS + 8] = "";
    bool labelled = row == 0 || row == canvas->rows - 1 || row == (canvas->rows - 1) / 2;

    if (labelled) {
        (void)snprintf(label, sizeof(label), "%.4g",
                       canvas->high - (canvas->high - canvas->low) * row / (canvas->rows - 1));
    }
    buffer_add_format(text, "%*.*s %s", LABEL_COLUMNS, LABEL_COLUMNS, label,
                      !canvas->plot->braille ? "|"
                      : labelled             ? "\xe2\x94\xa4" /* U+2524 */
                                             : "\xe2\x94\x82");           /* U+2502 */
    while (end > 0 && canvas->cells[row][end - 1] == 0) {
        end--;
    }
    for (unsigned x = 0; x < end; x++) {
        add_cell(text, canvas, canvas->cells[row][x]);
    }
    buffer_add_text(text, "\n");
}

static void add_axis(struct buffer *text, const struct canvas *canvas)
{
    const struct curve *points = canvas->plot->points;
    char last[32];
    int columns = (int)canvas->columns;
    int left;

    buffer_add_format(text, "%*s %s", LABEL_COLUMNS, "",
                      canvas->plot->braille ? "\xe2\x94\x94" : "+"); /* U+2514 */
    for (int x = 0; x < columns; x++) {
        buffer_add_text(text, canvas->plot->braille ? "\xe2\x94\x80" : "-"); /* U+2500 */
    }
    left = columns - 1 - snprintf(last, sizeof(last), "step %" PRIu64, canvas->shown);
    buffer_add_format(text, "\n%*s  0", LABEL_COLUMNS, "");
    if (points != NULL && points->end > 0 && left > (int)sizeof(POINTS_WORDS)) {
        left -= (int)sizeof(POINTS_WORDS) - 1;
        buffer_add_format(text, "%*s" POINTS_WORDS "%*s%s\n", left / 2, "", left - left / 2, "",
                          last);
    } else {
        buffer_add_format(text, "%*s%s\n", left > 0 ? left : 0, "", last);
    }
}

void text_plot_write(struct buffer *text, const struct text_plot *plot)
{
    struct canvas canvas = {.plot = plot, .low = DBL_MAX, .high = -DBL_MAX};
    unsigned columns =
        plot->columns < TEXT_PLOT_COLUMNS_MAX ? plot->columns : TEXT_PLOT_COLUMNS_MAX;
    unsigned rows = plot->rows < TEXT_PLOT_ROWS_MAX ? plot->rows : TEXT_PLOT_ROWS_MAX;

    if (columns < TEXT_PLOT_COLUMNS_MIN || rows < TEXT_PLOT_ROWS_MIN + TEXT_PLOT_ROWS_MORE) {
        return;
    }
    canvas.columns = columns - LABEL_COLUMNS - 2;
    canvas.rows = rows - TEXT_PLOT_ROWS_MORE;
    canvas.wide = plot->braille ? DOTS_WIDE : 1;
    canvas.tall = plot->braille ? DOTS_HIGH : 1;
    canvas.shown = curve_shown(plot->line);
    curve_range(&canvas.low, &canvas.high, plot->line, canvas.shown, canvas.columns * canvas.wide);
    if (plot->points != NULL) {
        curve_range(&canvas.low, &canvas.high, plot->points, canvas.shown, canvas.columns);
    }
    if (canvas.high < canvas.low) {
        return;
    }
    curve_spread(&canvas.low, &canvas.high);
    draw_line(&canvas);
    draw_points(&canvas);
    for (unsigned row = 0; row < canvas.rows; row++) {
        add_row(text, &canvas, row);
    }
    add_axis(text, &canvas);
}
