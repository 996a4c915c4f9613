/*
 * depot.h - a folder in the layout of the published tree (docs/FORMATS.md, section 11) as a source
 * for a server: shows what lies in it, and files elsewhere under names that are given; takes in
 * what is pushed, up to a size.
 *
 * Nobody has to trust a depot, so it judges nothing that it takes in.
 */
#ifndef PROOFS_MIRROR_DEPOT_H
#define PROOFS_MIRROR_DEPOT_H

#include "proofs/mirror/serve.h"

struct depot; /* opaque */

/* Makes the folder if it does not exist. size_max: bytes of files in it; what is there counts. */
MUST_CHECK enum status depot_open(struct depot **depot, const char *folder, uint64_t size_max,
                                  struct error *error);
void depot_close(struct depot *depot); /* NULL is fine */

/* Shows `size` bytes at `offset` of a file that lies elsewhere; size 0: all of it. Borrows path
 * until depot_close(). Before the server is opened. */
MUST_CHECK enum status depot_show(struct depot *depot, const char *name, const char *path,
                                  uint64_t offset, uint64_t size, struct error *error);

/* The same of an open file, all of it. Takes the descriptor, also on failure. */
MUST_CHECK enum status depot_show_open(struct depot *depot, const char *name, int descriptor,
                                       struct error *error);

/* Borrows depot and token; token NULL: nothing is taken in. */
struct serve_source depot_source(struct depot *depot, const char *token);

#endif /* PROOFS_MIRROR_DEPOT_H */
