/*
 * job_text.h - a job view as text: the lines of a terminal, a line of a log, JSON for scripts.
 */
#ifndef CHAIN_VIEW_JOB_TEXT_H
#define CHAIN_VIEW_JOB_TEXT_H

#include <jansson.h>

#include "base/buffer.h"
#include "chain/view/job_view.h"

#define JOB_TEXT_SIZE_MAX (64u << 10)

/* Lines for a window of that size, each with its end; the curve is as high as the others leave
 * room for. utf8: other characters than ASCII too. */
void job_text_write(struct buffer *text, const struct job_view *view, unsigned columns,
                    unsigned rows, bool utf8);

/* One line without its end: for a log. */
void job_text_line(struct buffer *text, const struct job_view *view);

/* The caller's; NULL without memory. */
json_t *job_text_json(const struct job_view *view);

/* Points of a curve, at most a hundred: the means of equal parts, each with the step in its
 * middle. */
json_t *job_text_curve(const struct curve *curve);

#endif /* CHAIN_VIEW_JOB_TEXT_H */
