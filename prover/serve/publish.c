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
#include "proofs/mirror/push_http.h"

#define COPY_SIZE      (1u << 20)
#define PUSH_TIMEOUT_S 30 /* of silence */

struct publisher {
    struct publish_result *result;
    struct content_tree *tree;
    const char *folder;
    void (*progress)(void *context, uint64_t answers); /* or NULL */
    void *progress_context;
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

static enum status copy_content(struct publisher *publisher, const struct serve_content *content,
                                const char *path, struct error *error)
{
    struct whole_file file = {.descriptor = -1};
    enum status status;

    TRY_OUT(whole_file_open(&file, error, path, 0644));
    for (uint64_t at = 0; at < content->size; at += COPY_SIZE) {
        size_t size = content->size - at < COPY_SIZE ? (size_t)(content->size - at) : COPY_SIZE;
        const uint8_t *bytes = publisher->buffer;

        if (content->descriptor >= 0) {
            TRY_OUT(whole_file_read_at(content->descriptor, error, publisher->buffer, size,
                                       content->offset + at, path));
        } else {
            bytes = content->bytes + at;
        }
        TRY_OUT(whole_file_add(&file, error, bytes, size));
    }
    TRY_OUT(whole_file_keep(&file, error));
out:
    whole_file_drop(&file);
    return status;
}

/* Puts the same bytes under a second name: a hard link where the file system can. */
static enum status name_again(struct publisher *publisher, const struct serve_content *content,
                              const char *path, const char *name, struct error *error)
{
    if (is_there(name, content->size)) {
        return STATUS_OK;
    }
    TRY(make_folder_of(name, error));
    if (link(path, name) != 0) {
        TRY(copy_content(publisher, content, name, error));
    }
    return STATUS_OK;
}

static bool is_list_of_pieces(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot != NULL && strcmp(dot, ".pieces") == 0;
}

static enum status put_content(void *context, const char *name, const char *root_name,
                               struct error *error)
{
    struct publisher *publisher = context;
    struct serve_content content;
    char path[FILE_PATH_MAX];
    char root_path[FILE_PATH_MAX];
    enum status status = STATUS_OK;

    TRY(file_path_join(path, sizeof(path), error, publisher->folder, name));
    if (root_name != NULL) {
        TRY(file_path_join(root_path, sizeof(root_path), error, publisher->folder, root_name));
    }
    TRY(make_folder_of(path, error));
    if (is_list_of_pieces(name) &&
        file_exists(path)) { /* to make it costs a checkpoint's reading */
        publisher->result->kept++;
        return STATUS_OK;
    }
    TRY(content_tree_find(publisher->tree, &content, name, NULL, error));
    if (content.fixed && is_there(path, content.size)) {
        publisher->result->kept++;
    } else {
        TRY_OUT(copy_content(publisher, &content, path, error));
        publisher->result->written++;
        publisher->result->bytes += content.size;
    }
    if (root_name != NULL) {
        TRY_OUT(name_again(publisher, &content, path, root_path, error));
    }
out:
    serve_content_release(&content);
    return status;
}

/* Makes the publisher, which the caller frees, and the folder. */
static enum status begin_publish(struct publisher **publisher, struct publish_result *result,
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
    struct content_tree_visitor visitor = {.visit = put_content};
    struct publisher *publisher;
    enum status status;

    TRY_OUT(begin_publish(&publisher, result, tree, folder, error));
    visitor.context = publisher;
    TRY_OUT(content_tree_walk(tree, &visitor, error));
out:
    free(publisher);
    return status;
}

/* ---- mirrors ------------------------------------------------------------- */

struct pusher {
    struct publish_result *result;
    struct content_tree *tree;
    struct push_http *push;
};

static enum status push_one(void *context, const char *name, const char *root_name,
                            struct error *error)
{
    struct pusher *pusher = context;
    struct serve_content content;
    enum status status;

    (void)root_name; /* a reader who has the job knows the other name */
    if (strcmp(name, "v1/jobs.json") == 0) {
        return STATUS_OK;
    }
    TRY(content_tree_find(pusher->tree, &content, name, NULL, error));
    if (push_http_has(pusher->push, name, content.size)) {
        pusher->result->kept++;
        status = STATUS_OK;
    } else {
        status = push_http_put(pusher->push, name, &content, error);
        pusher->result->written += status == STATUS_OK;
        pusher->result->bytes += status == STATUS_OK ? content.size : 0;
    }
    serve_content_release(&content);
    return status;
}

enum status publish_push(struct publish_result *result, struct content_tree *tree, const char *url,
                         const char *token, struct error *error)
{
    struct pusher pusher = {.result = result, .tree = tree};
    const struct content_tree_visitor visitor = {.visit = push_one, .context = &pusher};
    enum status status;

    TRY(push_http_open(&pusher.push, url, token, PUSH_TIMEOUT_S, error));
    status = content_tree_walk(tree, &visitor, error);
    push_http_close(pusher.push);
    return status;
}

/* ---- traces -------------------------------------------------------------- */

static enum status put_answer(void *context, const char *name, const char *root_name,
                              struct error *error)
{
    struct publisher *publisher = context;

    TRY(put_content(publisher, name, root_name, error));
    if (publisher->progress != NULL) {
        publisher->progress(publisher->progress_context, ++publisher->answers);
    }
    return STATUS_OK;
}

enum status publish_trace(struct publish_result *result, struct content_tree *tree, uint64_t step,
                          const char *folder, void (*progress)(void *context, uint64_t answers),
                          void *progress_context, struct error *error)
{
    struct content_tree_visitor visitor = {.visit = put_answer};
    struct publisher *publisher;
    enum status status;

    TRY_OUT(begin_publish(&publisher, result, tree, folder, error));
    visitor.context = publisher;
    publisher->progress = progress;
    publisher->progress_context = progress_context;
    TRY_OUT(content_tree_walk_trace(tree, step, &visitor, error));
out:
    free(publisher);
    return status;
}
