/*
 * screen.h - several lines of a terminal that are drawn again and again in their place.
 *
 * Nothing of the terminal is changed: no mode, no second screen, no hidden cursor. So there is
 * nothing to restore, however the program ends. Between two drawings the cursor stands in the blank
 * line above the text: what others write goes there, and the next drawing begins below it.
 */
#ifndef BASE_IO_SCREEN_H
#define BASE_IO_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

#define SCREEN_COLUMNS 80 /* where nobody says how many there are */
#define SCREEN_ROWS    24

struct screen {
    FILE *stream;
    bool terminal; /* else the functions below write nothing */
    bool utf8;     /* by the environment: may other characters than ASCII be drawn? */
    unsigned columns;
    unsigned rows;
    bool drawn;
};

void screen_init(struct screen *screen, FILE *stream);

/* Looks at the window again. True: its size is another. */
bool screen_measure(struct screen *screen);

/* Draws text in place of the last one: lines of printable UTF-8 without tabs, whose characters are
 * one column wide. What is wider or higher than the window is cut. */
void screen_draw(struct screen *screen, const char *text);

/* Draws it once more and leaves it there: the cursor stands below. */
void screen_finish(struct screen *screen, const char *text);

#endif /* BASE_IO_SCREEN_H */
