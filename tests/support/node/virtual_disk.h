/*
 * virtual_disk.h - a disk in memory for sqlite3: one that fills up, is cut off in the middle of a
 * write, and forgets what was not synced when the power fails.
 *
 * While it is there it is sqlite3's default VFS, so every database that the product opens by a path
 * lies on it. What a killed process had written stays; after a loss of power each write that was
 * not synced is there or is not, or half of it is. One connection for each database at a time;
 * nothing else of the file system is virtual.
 */
#ifndef TESTS_SUPPORT_NODE_VIRTUAL_DISK_H
#define TESTS_SUPPORT_NODE_VIRTUAL_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/node/fate.h"

struct virtual_disk;

/* fate and random are borrowed. One at a time. */
struct virtual_disk *virtual_disk_new(struct fate *fate, uint64_t *random);
void virtual_disk_free(struct virtual_disk *disk); /* all databases on it are closed */

/* From now on writes fail for want of room, after `room` more of them; UINT64_MAX: they do not. */
void virtual_disk_fill(struct virtual_disk *disk, uint64_t room);
bool virtual_disk_is_full(const struct virtual_disk *disk);

/* To be called when the process that used the files below folder is gone, and has closed what it
 * had open. */
void virtual_disk_restart(struct virtual_disk *disk, const char *folder, bool power_failed);

/* The database and its journal are gone. */
void virtual_disk_lose(struct virtual_disk *disk, const char *path);

#endif /* TESTS_SUPPORT_NODE_VIRTUAL_DISK_H */
