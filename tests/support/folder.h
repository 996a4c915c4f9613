/*
 * folder.h - folders that tests make and remove. Without cmocka, so that fuzz targets share it;
 * where no folder can be made the program ends.
 */
#ifndef TESTS_SUPPORT_FOLDER_H
#define TESTS_SUPPORT_FOLDER_H

#define FOLDER_PATH_MAX 64

/* A fresh empty one, in memory where there is such a place: a disk would be worn for nothing. */
void folder_make(char path[FOLDER_PATH_MAX]);

/* The same one at every call, removed with all that is in it when the program exits normally. */
const char *folder_of_program(void);

void folder_remove(const char *path); /* with all that is in it */
void folder_empty(const char *path);  /* and leaves the folder itself */

#endif /* TESTS_SUPPORT_FOLDER_H */
