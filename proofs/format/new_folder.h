/*
 * new_folder.h - a folder of a model while it is written: it appears whole or not at all.
 */
#ifndef PROOFS_FORMAT_NEW_FOLDER_H
#define PROOFS_FORMAT_NEW_FOLDER_H

#include <jansson.h>

#include "base/error.h"
#include "base/io/file.h"

/* Makes an empty folder beside the new one, which must not be there yet. */
MUST_CHECK enum status new_folder_begin(char part[FILE_PATH_MAX], const char *folder,
                                        struct error *error);

/* status: of what was written into the part. After a failure the part is removed. */
MUST_CHECK enum status new_folder_end(const char *part, const char *folder, enum status status,
                                      struct error *error);

/* Copies the files of a published folder that belong to the model and are no weights: its
 * tokenizer, its licence. */
MUST_CHECK enum status new_folder_copy_rest(const char *part, const char *from,
                                            struct error *error);

/* Writes a file of JSON, indented; flags are jansson's. Takes the reference, also after a failure;
 * NULL: no memory. */
MUST_CHECK enum status new_folder_json(const char *part, const char *name, json_t *json,
                                       size_t flags, struct error *error);

/* config.json, which says the type of the weights now: "float32". Takes the reference. */
MUST_CHECK enum status new_folder_config(const char *part, json_t *config, const char *type,
                                         size_t flags, struct error *error);

/* Makes an empty folder in TMPDIR, or in /tmp, which file_remove_folder() takes away again. */
MUST_CHECK enum status new_folder_scratch(char folder[FILE_PATH_MAX], struct error *error);

#endif /* PROOFS_FORMAT_NEW_FOLDER_H */
