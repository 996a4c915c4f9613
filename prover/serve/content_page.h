/*
 * content_page.h - the tree's front page: what a browser at the address of a solver's server sees.
 *
 * It says what is served, how a node uses it, and how far each job is. No script, nothing from
 * elsewhere.
 */
#ifndef PROVER_SERVE_CONTENT_PAGE_H
#define PROVER_SERVE_CONTENT_PAGE_H

#include <jansson.h>

#include "base/buffer.h"

#define CONTENT_PAGE_SIZE_MAX (UINT64_C(4) << 20)

/* list: what jobs.json holds. The caller initializes and checks the page. */
void content_page_write(struct buffer *page, const json_t *list);

#endif /* PROVER_SERVE_CONTENT_PAGE_H */
