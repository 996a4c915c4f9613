/* new_folder.c - see new_folder.h. */
#include "proofs/format/new_folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/io/strict_json.h"
#include "base/io/whole_file.h"
#include "proofs/format/base_config.h"

#define COPY_SIZE_MAX ((size_t)256 << 20) /* of a tokenizer's file */

enum status new_folder_begin(char part[FILE_PATH_MAX], const char *folder, struct error *error)
{
    if (file_exists(folder)) {
        return error_set(error, STATUS_REFUSED, "%s is there already", folder);
    }
    if (snprintf(part, FILE_PATH_MAX, "%s.part-XXXXXX", folder) >= FILE_PATH_MAX ||
        whole_file_make_part(part, 0755, true) < 0) {
        return error_set_errno(error, "cannot make %s", part);
    }
    return STATUS_OK;
}

static void remove_part(const char *folder)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;

    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        char path[FILE_PATH_MAX];

        if (entry->d_name[0] != '.' &&
            file_path_join(path, sizeof(path), NULL, folder, entry->d_name) == STATUS_OK) {
            (void)unlink(path);
        }
    }
    if (entries != NULL) {
        (void)closedir(entries);
    }
    (void)rmdir(folder);
}

enum status new_folder_end(const char *part, const char *folder, enum status status,
                           struct error *error)
{
    if (status == STATUS_OK && rename(part, folder) != 0) {
        status = error_set_errno(error, "cannot make %s", folder);
    }
    if (status != STATUS_OK) {
        remove_part(part);
        return status;
    }
    return whole_file_sync_folder(folder, error);
}

enum status new_folder_copy_rest(const char *part, const char *from, struct error *error)
{
    static const char *const names[] = {
        "tokenizer.json",
        "tokenizer_config.json",
        "tokenizer.model",
        "special_tokens_map.json",
        "added_tokens.json",
        "vocab.json",
        "vocab.txt",
        "merges.txt",
        "chat_template.jinja",
        "chat_template.json",
        "LICENSE",
        "LICENSE.txt",
        "generation_config.json",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct file_bytes bytes = {0};
        char source[FILE_PATH_MAX];
        char copy[FILE_PATH_MAX];
        enum status status;

        TRY(file_path_join(source, sizeof(source), error, from, names[i]));
        TRY(file_path_join(copy, sizeof(copy), error, part, names[i]));
        if (!file_exists(source)) {
            continue;
        }
        TRY(file_read(&bytes, error, source, COPY_SIZE_MAX));
        status = file_write_new(copy, error, bytes.data, bytes.size, 0644);
        file_bytes_release(&bytes);
        TRY(status);
    }
    return STATUS_OK;
}

enum status new_folder_json(const char *part, const char *name, json_t *json, size_t flags,
                            struct error *error)
{
    char path[FILE_PATH_MAX];
    enum status status = file_path_join(path, sizeof(path), error, part, name);

    if (status != STATUS_OK) {
        json_decref(json);
        return status;
    }
    return strict_json_save(path, json, JSON_INDENT(2) | flags, error);
}

enum status new_folder_config(const char *part, json_t *config, const char *type, size_t flags,
                              struct error *error)
{
    const char *key = json_object_get(config, "dtype") != NULL ? "dtype" : "torch_dtype";

    (void)json_object_set_new(config, key, json_string(type));
    return new_folder_json(part, BASE_CONFIG_NAME, config, flags, error);
}

enum status new_folder_scratch(char folder[FILE_PATH_MAX], struct error *error)
{
    const char *above = getenv("TMPDIR");

    if (snprintf(folder, FILE_PATH_MAX, "%s/lockstep-model-XXXXXX",
                 above == NULL || above[0] == '\0' ? "/tmp" : above) >= FILE_PATH_MAX) {
        return error_set(error, STATUS_USAGE, "TMPDIR is too long a path");
    }
    return mkdtemp(folder) == NULL ? error_set_errno(error, "cannot make %s", folder) : STATUS_OK;
}
