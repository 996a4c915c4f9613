/* moved_sources.h - the sources of packed rows in another folder, by the last part of their
 * names. */
#ifndef DATA_ROWS_MOVED_SOURCES_H
#define DATA_ROWS_MOVED_SOURCES_H

#include "data/rows/packing.h"

struct moved_sources {
    const char **paths;
    char *texts; /* of FILE_PATH_MAX bytes each */
};

/* Points the options at FOLDER/NAME for each source. They borrow from moved, which the caller
 * releases, also after a failure. */
MUST_CHECK enum status moved_sources_set(struct moved_sources *moved, struct pack_options *options,
                                         const char *folder, struct error *error);
void moved_sources_release(struct moved_sources *moved); /* a zero-filled one is allowed */

#endif /* DATA_ROWS_MOVED_SOURCES_H */
