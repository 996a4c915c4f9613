/*
 * allow_file.h - accounts in a text file, of an allow-list or of owners that are known: one address
 * a line, '#' begins a comment.
 */
#ifndef CHAIN_COMMANDS_ALLOW_FILE_H
#define CHAIN_COMMANDS_ALLOW_FILE_H

#include "base/error.h"
#include "chain/game/allow_list.h"

/* The root of the list, whose order counts. STATUS_BAD_FORMAT names the line. */
MUST_CHECK enum status allow_file_root(struct hash32 *root, const char *path, struct error *error);

/* The siblings of an account in a list of this root. A root of zero needs none: path may then be
 * NULL. STATUS_REFUSED: the list is another, or the account is not on it. */
MUST_CHECK enum status allow_file_path(struct digest siblings[GAME_ALLOW_MAX],
                                       uint32_t *sibling_count, const struct hash32 *root,
                                       const struct address *account, const char *path,
                                       struct error *error);

/* Addresses with commas between them, or a file of one a line. The caller frees *list. */
MUST_CHECK enum status allow_file_accounts(struct address **list, uint32_t *count, const char *text,
                                           struct error *error);

#endif /* CHAIN_COMMANDS_ALLOW_FILE_H */
