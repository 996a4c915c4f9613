/* publish.c - see publish.h. */
#include "prover/serve/publish.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/io/whole_file.h"

#define COPY_SIZE (1u << 20)

struct publisher {
    struct publish_result *result;
    struct content_tree *tree;
    const char *folder;
    void (*tell)(void *context, uint64_t answers); /* or NULL */
    void *tell_context;
    uint64_t answers;
    uint8_t buffer[COPY_SIZE];
};

static bool is_there(const char *path, uint64_t size)
{
    struct stat facts;

    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode) && (uint64_t)facts.st_size == size;
}

static enum status make_folder_of(const char *path, struct error *error)
{
    char folder[FILE_PATH_MAX];
    char *slash;

    (void)snprintf(folder, sizeof(folder), "%s", path);
    slash = strrchr(folder, '/');
    if (slash == NULL || slash == folder) {
        return STATUS_OK;
    }
    *slash = '\0';
    return file_make_folder(folder, error, 0755);
}

static enum status copy(struct publisher *publisher, const struct content_tree_content *content,
                        const char *path, struct error *error)
{
    struct whole_file file = {.descriptor = -1};
    uint64_t at = 0;
    enum status status = whole_file_open(&file, error, path, 0644);

    while (status == STATUS_OK && at < content->size) {
        size_t size = content->size - at < COPY_SIZE ? (size_t)(content->size - at) : COPY_SIZE;
        const uint8_t *bytes = publisher->buffer;

        if (content->descriptor >= 0) {
            status =
                whole_file_read_at(content->descriptor, error, publisher->buffer, size, at, path);
        } else {
            bytes = content->bytes + at;
        }
        if (status == STATUS_OK) {
            status = whole_file_add(&file, error, bytes, size);
        }
        at += size;
    }
    if (status == STATUS_OK) {
        status = whole_file_keep(&file, error);
    }
    whole_file_drop(&file);
    return status;
}

/* The same bytes under another name: one file with two names where the file system can. */
static enum status name_again(struct publisher *publisher,
                              const struct content_tree_content *content, const char *path,
                              const char *name, struct error *error)
{
    enum status status;

    if (is_there(name, content->size)) {
        return STATUS_OK;
    }
    status = make_folder_of(name, error);
    if (status == STATUS_OK && link(path, name) != 0) {
        status = copy(publisher, content, name, error);
    }
    return status;
}

static enum status put(void *context, const char *name, const char *root_name, struct error *error)
{
    struct publisher *publisher = context;
    struct content_tree_content content;
    char path[FILE_PATH_MAX];
    char root_path[FILE_PATH_MAX];
    enum status status = file_path_join(path, sizeof(path), error, publisher->folder, name);

    if (status == STATUS_OK && root_name != NULL) {
        status = file_path_join(root_path, sizeof(root_path), error, publisher->folder, root_name);
    }
    if (status == STATUS_OK) {
        status = make_folder_of(path, error);
    }
    if (status == STATUS_OK) {
        status = content_tree_find(publisher->tree, &content, name, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (content.fixed && is_there(path, content.size)) {
        publisher->result->kept++;
    } else {
        status = copy(publisher, &content, path, error);
        publisher->result->written += status == STATUS_OK;
        publisher->result->bytes += status == STATUS_OK ? content.size : 0;
    }
    if (status == STATUS_OK && root_name != NULL) {
        status = name_again(publisher, &content, path, root_path, error);
    }
    content_tree_content_release(&content);
    return status;
}

/* The publisher, and the folder made; the caller frees it. */
static enum status begin(struct publisher **publisher, struct publish_result *result,
                         struct content_tree *tree, const char *folder, struct error *error)
{
    struct publisher *made = calloc(1, sizeof(*made));

    *publisher = made;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to publish");
    }
    made->result = result;
    made->tree = tree;
    made->folder = folder;
    return file_make_folder(folder, error, 0755);
}

enum status publish(struct publish_result *result, struct content_tree *tree, const char *folder,
                    struct error *error)
{
    struct publisher *publisher;
    enum status status = begin(&publisher, result, tree, folder, error);
    const struct content_tree_visitor visitor = {put, publisher};

    if (status == STATUS_OK) {
        status = content_tree_walk(tree, &visitor, error);
    }
    free(publisher);
    return status;
}

/* ---- traces -------------------------------------------------------------- */

static enum status put_answer(void *context, const char *name, const char *root_name,
                              struct error *error)
{
    struct publisher *publisher = context;
    enum status status = put(publisher, name, root_name, error);

    if (status == STATUS_OK && publisher->tell != NULL) {
        publisher->tell(publisher->tell_context, ++publisher->answers);
    }
    return status;
}

enum status publish_trace(struct publish_result *result, struct content_tree *tree, uint64_t step,
                          const char *folder, void (*tell)(void *context, uint64_t answers),
                          void *tell_context, struct error *error)
{
    struct publisher *publisher;
    enum status status = begin(&publisher, result, tree, folder, error);
    const struct content_tree_visitor visitor = {put_answer, publisher};

    if (status == STATUS_OK) {
        publisher->tell = tell;
        publisher->tell_context = tell_context;
        status = content_tree_walk_trace(tree, step, &visitor, error);
    }
    free(publisher);
    return status;
}
