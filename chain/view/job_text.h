/*
 * job_text.h - a job view for a terminal, as a line of a log, as JSON for scripts.
 */
#ifndef CHAIN_VIEW_JOB_TEXT_H
#define CHAIN_VIEW_JOB_TEXT_H

#include <jansson.h>

#include "base/sheet/sheet.h"
#include "chain/view/job_view.h"

#define JOB_TEXT_SIZE_MAX (64u << 10)

/* For sheet_screen_write(), and as JSON. */
void job_text_show(struct sheet *sheet, const struct job_view *view);

/* One line without its end: for a log. */
void job_text_line(struct buffer *text, const struct job_view *view);

/* The caller's; NULL without memory. */
json_t *job_text_json(const struct job_view *view);

/* Points of a curve, at most a hundred: the means of equal parts, each with the step in its
 * middle. */
json_t *job_text_curve(const struct curve *curve);

#endif /* CHAIN_VIEW_JOB_TEXT_H */
