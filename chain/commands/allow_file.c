/* allow_file.c - see allow_file.h. */
#include "chain/commands/allow_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"

enum {
    LINE_MAX_SIZE = 128,
};

/* Enough for the longest list with a comment on each line. */
#define FILE_SIZE_MAX ((size_t)ALLOW_LIST_ACCOUNTS_MAX * LINE_MAX_SIZE)

struct accounts {
    struct address *list;
    uint32_t count;
};

/* One line without its end. False: malformed, or one account too many. */
static bool take_line(struct accounts *accounts, const char *line, size_t length)
{
    char text[LINE_MAX_SIZE];
    const char *comment = memchr(line, '#', length);

    length = comment == NULL ? length : (size_t)(comment - line);
    while (length > 0 && strchr(" \t\r", line[length - 1]) != NULL) {
        length--;
    }
    if (length == 0) {
        return true;
    }
    if (length >= sizeof(text) || accounts->count == ALLOW_LIST_ACCOUNTS_MAX) {
        return false;
    }
    memcpy(text, line, length);
    text[length] = '\0';
    return strlen(text) == length &&
           address_parse(&accounts->list[accounts->count++], text) == STATUS_OK;
}

static enum status parse_accounts(struct accounts *accounts, const struct file_bytes *bytes,
                                  const char *path, struct error *error)
{
    const char *at = (const char *)bytes->data;
    const char *end = at + bytes->size;

    for (unsigned line = 1; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));

        stop = stop == NULL ? end : stop;
        if (!take_line(accounts, at, (size_t)(stop - at))) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "%.200s, line %u: not an address (0x and 40 digits), or more than %u "
                             "of them",
                             path, line, ALLOW_LIST_ACCOUNTS_MAX);
        }
        at = stop + (stop < end);
    }
    return accounts->count > 0
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "%.200s: no address in it", path);
}

static enum status read_accounts(struct accounts *accounts, const char *path, struct error *error)
{
    struct file_bytes bytes = {0};
    enum status status;

    *accounts = (struct accounts){.list = calloc(ALLOW_LIST_ACCOUNTS_MAX, sizeof(struct address))};
    if (accounts->list == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for an allow-list");
    }
    TRY(file_read(&bytes, error, path, FILE_SIZE_MAX));
    status = parse_accounts(accounts, &bytes, path, error);
    file_bytes_release(&bytes);
    return status;
}

enum status allow_file_root(struct hash32 *root, const char *path, struct error *error)
{
    struct accounts accounts;
    enum status status;

    TRY_OUT(read_accounts(&accounts, path, error));
    allow_list_root(root, accounts.list, accounts.count);
out:
    free(accounts.list);
    return status;
}

static enum status find_path(struct digest siblings[GAME_ALLOW_MAX], uint32_t *sibling_count,
                             const struct hash32 *root, const struct address *account,
                             const struct accounts *accounts, const char *path, struct error *error)
{
    struct hash32 found;

    allow_list_root(&found, accounts->list, accounts->count);
    if (!hash32_equal(&found, root)) {
        return error_set(error, STATUS_REFUSED, "%.200s is not the allow-list of this job", path);
    }
    for (uint32_t i = 0; i < accounts->count; i++) {
        if (address_equal(&accounts->list[i], account)) {
            allow_list_path(siblings, sibling_count, accounts->list, accounts->count, i);
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_REFUSED, "this account is not on the allow-list %.200s", path);
}

enum status allow_file_path(struct digest siblings[GAME_ALLOW_MAX], uint32_t *sibling_count,
                            const struct hash32 *root, const struct address *account,
                            const char *path, struct error *error)
{
    struct accounts accounts;
    enum status status;

    *sibling_count = 0;
    if (hash32_is_zero(root)) {
        return STATUS_OK;
    }
    if (path == NULL) {
        (void)error_set(error, STATUS_REFUSED, "the job admits only the accounts of an allow-list");
        error_advise(error, "--allow-list FILE names the list that the client gave you");
        return STATUS_REFUSED;
    }
    TRY_OUT(read_accounts(&accounts, path, error));
    status = find_path(siblings, sibling_count, root, account, &accounts, path, error);
out:
    free(accounts.list);
    return status;
}

static enum status read_line(struct accounts *accounts, const char *text, struct error *error)
{
    *accounts = (struct accounts){.list = calloc(ALLOW_LIST_ACCOUNTS_MAX, sizeof(struct address))};
    if (accounts->list == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of accounts");
    }
    while (*text != '\0') {
        size_t length = strcspn(text, ",");

        if (!take_line(accounts, text, length)) {
            return error_set(error, STATUS_USAGE, "'%.60s' is neither a file nor an address", text);
        }
        text += length + (text[length] == ',');
    }
    return STATUS_OK;
}

enum status allow_file_accounts(struct address **list, uint32_t *count, const char *text,
                                struct error *error)
{
    struct accounts accounts;
    enum status status = file_exists(text) ? read_accounts(&accounts, text, error)
                                           : read_line(&accounts, text, error);

    if (status != STATUS_OK) {
        free(accounts.list);
        accounts = (struct accounts){0};
    }
    *list = accounts.list;
    *count = accounts.count;
    return status;
}
