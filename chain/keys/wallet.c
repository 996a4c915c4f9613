/* wallet.c - see wallet.h. */
#include "chain/keys/wallet.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "chain/codec/hex_data.h"

/* The name that other wallets give such a file: its time and its address. */
static enum status make_path(struct wallet_entry *entry, const char *folder, struct error *error)
{
    char address[2 * ADDRESS_SIZE + 1];
    char name[128];
    char when[64];
    time_t now = time(NULL);
    struct tm parts;

    hex_write(address, entry->address.bytes, ADDRESS_SIZE, false);
    if (gmtime_r(&now, &parts) == NULL ||
        strftime(when, sizeof(when), "%Y-%m-%dT%H-%M-%S.000000000Z", &parts) == 0) {
        return error_set(error, STATUS_IO, "the system's clock is out of range");
    }
    (void)snprintf(name, sizeof(name), "UTC--%s--%s", when, address);
    return file_path_join(entry->path, sizeof(entry->path), error, folder, name);
}

static enum status unlock_key(struct secret_key *key, const char *path,
                              const struct passphrase *passphrase, struct error *error)
{
    struct file_bytes bytes = {0};
    enum status status;

    TRY_OUT(file_read(&bytes, error, path, KEYSTORE_SIZE_MAX));
    status = keystore_open(key, (const char *)bytes.data, bytes.size, passphrase, error);
    if (status != STATUS_OK) {
        status = error_wrap(error, "%s", path);
    }
out:
    file_bytes_release(&bytes);
    return status;
}

/* A key counts only if it can be read back from the disk. */
static enum status check_written(const struct wallet_entry *entry, const struct secret_key *key,
                                 const struct passphrase *passphrase, struct error *error)
{
    struct secret_key *back = secret_alloc(sizeof(*back), error);
    enum status status;

    if (back == NULL) {
        return STATUS_NO_MEMORY;
    }
    status = unlock_key(back, entry->path, passphrase, error);
    if (status == STATUS_OK && !secret_equal(back->bytes, key->bytes, SECRET_KEY_SIZE)) {
        status = error_set(error, STATUS_IO, "%s: read back, it holds another key", entry->path);
    }
    secret_free(back, sizeof(*back));
    return status;
}

enum status wallet_add(struct wallet_entry *entry, const char *folder, const struct secret_key *key,
                       const struct passphrase *passphrase, uint32_t cost, struct error *error)
{
    struct signer *signer = signer_new(key, error);
    char *text = malloc(KEYSTORE_SIZE_MAX);
    size_t size = 0;
    enum status status;

    if (signer == NULL || text == NULL) {
        status = signer == NULL ? STATUS_BAD_FORMAT
                                : error_set(error, STATUS_NO_MEMORY, "no memory for a key file");
        goto out;
    }
    memset(entry, 0, sizeof(*entry));
    entry->address = *signer_address(signer);
    entry->named = true;
    TRY_OUT(make_path(entry, folder, error));
    TRY_OUT(file_make_folder(folder, error, 0700));
    TRY_OUT(keystore_seal(text, &size, key, passphrase, cost, error));
    TRY_OUT(file_write_new(entry->path, error, text, size, 0600));
    status = check_written(entry, key, passphrase, error);
    if (status != STATUS_OK) {
        (void)unlink(entry->path);
    }
out:
    signer_free(signer);
    free(text);
    return status;
}

enum status wallet_new(struct wallet_entry *entry, const char *folder,
                       const struct passphrase *passphrase, uint32_t cost, struct error *error)
{
    struct secret_key *key = secret_alloc(sizeof(*key), error);
    enum status status;

    if (key == NULL) {
        return STATUS_NO_MEMORY;
    }
    do { /* all but one of 2^128 random values are keys */
        status = secret_random(key->bytes, SECRET_KEY_SIZE, error);
    } while (status == STATUS_OK && !secret_key_is_valid(key));
    TRY_OUT(status);
    TRY_OUT(wallet_add(entry, folder, key, passphrase, cost, error));
out:
    secret_free(key, sizeof(*key));
    return status;
}

/* ---- finding ------------------------------------------------------------------ */

static enum status read_entry(struct wallet_entry *entry, struct error *error)
{
    struct file_bytes bytes = {0};
    enum status status;

    TRY_OUT(file_read(&bytes, error, entry->path, KEYSTORE_SIZE_MAX));
    status = keystore_address(&entry->address, (const char *)bytes.data, bytes.size, error);
    entry->named = status == STATUS_OK;
    if (status == STATUS_NOT_FOUND) {
        memset(&entry->address, 0, sizeof(entry->address));
        status = STATUS_OK;
    }
out:
    file_bytes_release(&bytes);
    return status;
}

static int by_path(const void *left, const void *right)
{
    return strcmp(((const struct wallet_entry *)left)->path,
                  ((const struct wallet_entry *)right)->path);
}

static enum status read_folder(DIR *directory, const char *folder, struct wallet_entry *entries,
                               size_t *count, struct error *error)
{
    const struct dirent *item;

    while ((item = readdir(directory)) != NULL) {
        struct error ignored;

        if (item->d_name[0] == '.') {
            continue;
        }
        if (*count >= WALLET_KEYS_MAX) {
            return error_set(error, STATUS_OVER_LIMIT, "%s has more than %d files", folder,
                             WALLET_KEYS_MAX);
        }
        error_init(&ignored);
        if (file_path_join(entries[*count].path, FILE_PATH_MAX, &ignored, folder, item->d_name) ==
                STATUS_OK &&
            read_entry(&entries[*count], &ignored) == STATUS_OK) {
            (*count)++;
        }
    }
    return STATUS_OK;
}

enum status wallet_list(struct wallet_entry **entries, size_t *count, const char *folder,
                        struct error *error)
{
    DIR *directory = opendir(folder);
    enum status status;

    *count = 0;
    *entries = calloc(WALLET_KEYS_MAX, sizeof(**entries));
    if (*entries == NULL) {
        (void)error_set(error, STATUS_NO_MEMORY, "no memory for a list of keys");
        status = STATUS_NO_MEMORY;
    } else if (directory == NULL) {
        status = errno == ENOENT ? STATUS_OK : error_set_errno(error, "cannot read %s", folder);
    } else {
        status = read_folder(directory, folder, *entries, count, error);
    }
    if (directory != NULL) {
        (void)closedir(directory);
    }
    if (status != STATUS_OK) {
        free(*entries);
        *entries = NULL;
        return status;
    }
    if (*count > 1) {
        qsort(*entries, *count, sizeof(**entries), by_path);
    }
    return STATUS_OK;
}

/* Which of the three it is: no file, no such address, or files that do not say whose they are. */
static enum status no_key(const char *folder, const struct address *wanted, size_t count,
                          size_t unnamed, struct error *error)
{
    char text[ADDRESS_TEXT_SIZE];

    if (count == 0 || wanted == NULL) {
        (void)error_set(error, STATUS_NOT_FOUND, "there is no key in %s", folder);
        error_advise(error, "lockstep wallet new makes one");
        return STATUS_NOT_FOUND;
    }
    address_print(text, wanted);
    if (unnamed > 0) {
        (void)error_set(error, STATUS_NOT_FOUND,
                        "no key file in %s names %s, and %zu of %zu name no address", folder, text,
                        unnamed, count);
        error_advise(error, "say the file: --account FILE");
        return STATUS_NOT_FOUND;
    }
    (void)error_set(error, STATUS_NOT_FOUND, "none of the keys in %s is that of %s", folder, text);
    error_advise(error, "lockstep wallet list shows them");
    return STATUS_NOT_FOUND;
}

static enum status find_in_folder(struct wallet_entry *entry, const char *folder,
                                  const struct address *wanted, struct error *error)
{
    struct wallet_entry *entries;
    size_t count;
    size_t found = 0;
    size_t unnamed = 0;

    TRY(wallet_list(&entries, &count, folder, error));
    for (size_t i = 0; i < count; i++) {
        unnamed += entries[i].named ? 0 : 1;
        if (wanted == NULL || (entries[i].named && address_equal(&entries[i].address, wanted))) {
            *entry = entries[i];
            found++;
        }
    }
    free(entries);
    if (found == 0) {
        return no_key(folder, wanted, count, unnamed, error);
    }
    if (found > 1 && wanted == NULL) {
        (void)error_set(error, STATUS_USAGE, "%s has %zu keys", folder, found);
        error_advise(error, "say which: --account ADDRESS%s", unnamed > 0 ? " or FILE" : "");
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

enum status wallet_find(struct wallet_entry *entry, const char *folder, const char *name,
                        struct error *error)
{
    struct address wanted;

    if (name == NULL || name[0] == '\0') {
        return find_in_folder(entry, folder, NULL, error);
    }
    if (address_parse(&wanted, name) == STATUS_OK) {
        return find_in_folder(entry, folder, &wanted, error);
    }
    if (strlen(name) >= FILE_PATH_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "the path of the key file is too long");
    }
    memset(entry, 0, sizeof(*entry));
    memcpy(entry->path, name, strlen(name) + 1);
    if (!file_exists(name)) {
        return error_set(error, STATUS_NOT_FOUND,
                         "'%s' is neither an address with a right checksum nor a key file", name);
    }
    return read_entry(entry, error);
}

enum status wallet_unlock(struct signer **signer, const struct wallet_entry *entry,
                          const struct passphrase *passphrase, struct error *error)
{
    struct secret_key *key = secret_alloc(sizeof(*key), error);
    enum status status;

    *signer = NULL;
    if (key == NULL) {
        return STATUS_NO_MEMORY;
    }
    TRY_OUT(unlock_key(key, entry->path, passphrase, error));
    *signer = signer_new(key, error);
    status = *signer == NULL ? STATUS_BAD_FORMAT : STATUS_OK;
out:
    secret_free(key, sizeof(*key));
    return status;
}
