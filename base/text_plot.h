/*
 * text_plot.h - curves as lines of text: the loss as a line, held-out values as points.
 *
 *      4.852 |*
 *            | **
 *      3.106 |   *****   o
 *            |        ******o***
 *      1.361 |                  ****
 *            +----------------------
 *             0               step 96
 *
 * With braille the line has two dots by four in each character, and the axes are drawn.
 */
#ifndef BASE_TEXT_PLOT_H
#define BASE_TEXT_PLOT_H

#include "base/buffer.h"
#include "base/curve.h"

#define TEXT_PLOT_COLUMNS_MIN 24 /* less is not drawn */
#define TEXT_PLOT_COLUMNS_MAX 400
#define TEXT_PLOT_ROWS_MIN    3 /* of the drawing itself */
#define TEXT_PLOT_ROWS_MAX    60
#define TEXT_PLOT_ROWS_MORE   2 /* below it: the axis and its numbers */

struct text_plot {
    const struct curve *line;
    const struct curve *points; /* of as many steps; NULL: there are none */
    unsigned columns;           /* of the whole, with the numbers at the axes */
    unsigned rows;              /* TEXT_PLOT_ROWS_MORE of them below the drawing */
    bool braille;               /* else only ASCII */
};

/* Adds the lines, each with its end. Nothing where there is no value yet, or no room. */
void text_plot_write(struct buffer *text, const struct text_plot *plot);

#endif /* BASE_TEXT_PLOT_H */
