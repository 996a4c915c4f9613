/*
 * crash_images.h - the files of a program as a crash would leave them, at each instant that
 * matters.
 *
 * While images are taken, every transaction of any database in this process that is about to be
 * committed with a change in it, and every call of crash_images_take(), first copies the files that
 * were named. Going on from a copy is going on after a kill -9 at that instant: what was written
 * before is there, and nothing else. One at a time in a process. Any failure here fails the test.
 */
#ifndef TESTS_SUPPORT_NODE_CRASH_IMAGES_H
#define TESTS_SUPPORT_NODE_CRASH_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

/* The files are those in folder whose names begin with prefix, and folders with all in them.
 * Databases that are opened from here on are watched. */
void crash_images_begin(const char *folder, const char *prefix);
void crash_images_end(void); /* the images are removed */

void crash_images_watch(bool watching);
void crash_images_take(void); /* does nothing while nobody watches */

uint32_t crash_images_count(void);

/* Puts the files of an image in the place of those that are there: none of them may be open. */
void crash_images_restore(uint32_t image);

#endif /* TESTS_SUPPORT_NODE_CRASH_IMAGES_H */
