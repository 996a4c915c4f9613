/* depot.c - see depot.h. */
#include "proofs/mirror/depot.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/io/whole_file.h"

enum {
    DEPTH_MAX = 8, /* folders in folders */
};

struct depot_shown {
    char name[SERVE_PATH_MAX];
    const char *path; /* NULL: descriptor's file */
    int descriptor;
    uint64_t offset;
    uint64_t size; /* 0: the whole file */
};

struct depot {
    char folder[FILE_PATH_MAX];
    struct depot_shown *shown;
    uint32_t shown_count;
    uint64_t size_max;
    pthread_mutex_t lock; /* of size */
    uint64_t size;        /* of all files, and of what is being taken in */
};

/* ---- names --------------------------------------------------------------- */

/* "v1/", then parts of lower-case letters, digits, dots and hyphens that begin with no dot. So no
 * name leaves the folder. */
static bool is_name(const char *name)
{
    bool begins = true; /* a part */

    if (strncmp(name, "v1/", 3) != 0 || strlen(name) >= SERVE_PATH_MAX) {
        return false;
    }
    for (const char *at = name; *at != '\0'; at++) {
        bool plain = (*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9');

        if (*at == '/' ? begins : !plain && (begins || (*at != '.' && *at != '-'))) {
            return false;
        }
        begins = *at == '/';
    }
    return !begins;
}

static const struct depot_shown *find_shown(const struct depot *depot, const char *name)
{
    for (uint32_t i = 0; i < depot->shown_count; i++) {
        if (strcmp(depot->shown[i].name, name) == 0) {
            return &depot->shown[i];
        }
    }
    return NULL;
}

/* ---- what is there ------------------------------------------------------- */

/* Bytes of the files in a folder and below it; what cannot be read counts nothing. */
static uint64_t size_of(const char *folder, int depth)
{
    DIR *list = depth == 0 ? NULL : opendir(folder);
    struct dirent *entry;
    uint64_t size = 0;

    while (list != NULL && (entry = readdir(list)) != NULL) {
        char path[FILE_PATH_MAX];
        struct stat about;

        if (entry->d_name[0] == '.' ||
            file_path_join(path, sizeof(path), NULL, folder, entry->d_name) != STATUS_OK ||
            lstat(path, &about) != 0) {
            continue;
        }
        size += S_ISDIR(about.st_mode)   ? size_of(path, depth - 1)
                : S_ISREG(about.st_mode) ? (uint64_t)about.st_size
                                         : 0;
    }
    if (list != NULL) {
        (void)closedir(list);
    }
    return size;
}

enum status depot_open(struct depot **depot, const char *folder, uint64_t size_max,
                       struct error *error)
{
    struct depot *made = calloc(1, sizeof(*made));
    enum status status = STATUS_OK;

    *depot = NULL;
    if (made == NULL || pthread_mutex_init(&made->lock, NULL) != 0) {
        free(made);
        return error_set(error, STATUS_NO_MEMORY, "no memory for a depot");
    }
    if (snprintf(made->folder, sizeof(made->folder), "%s", folder) >= FILE_PATH_MAX - 512) {
        status = error_set(error, STATUS_USAGE, "the path %.80s... is too long", folder);
    }
    if (status == STATUS_OK) {
        status = file_make_folder(folder, error, 0755);
    }
    if (status != STATUS_OK) {
        depot_close(made);
        return status;
    }
    made->size_max = size_max;
    made->size = size_of(folder, DEPTH_MAX);
    *depot = made;
    return STATUS_OK;
}

void depot_close(struct depot *depot)
{
    if (depot != NULL) {
        for (uint32_t i = 0; i < depot->shown_count; i++) {
            if (depot->shown[i].path == NULL) {
                (void)close(depot->shown[i].descriptor);
            }
        }
        (void)pthread_mutex_destroy(&depot->lock);
        free(depot->shown);
        free(depot);
    }
}

static enum status add_shown(struct depot *depot, const char *name, const struct depot_shown *shown,
                             struct error *error)
{
    struct depot_shown *more =
        realloc(depot->shown, ((size_t)depot->shown_count + 1) * sizeof(*more));

    if (more == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the names of files");
    }
    depot->shown = more;
    more[depot->shown_count] = *shown;
    (void)snprintf(more[depot->shown_count].name, SERVE_PATH_MAX, "%s", name);
    depot->shown_count++;
    return STATUS_OK;
}

enum status depot_show(struct depot *depot, const char *name, const char *path, uint64_t offset,
                       uint64_t size, struct error *error)
{
    const struct depot_shown shown = {
        .path = path, .descriptor = -1, .offset = offset, .size = size};

    return add_shown(depot, name, &shown, error);
}

enum status depot_show_open(struct depot *depot, const char *name, int descriptor,
                            struct error *error)
{
    const struct depot_shown shown = {.descriptor = descriptor};
    enum status status = add_shown(depot, name, &shown, error);

    if (status != STATUS_OK) {
        (void)close(descriptor);
    }
    return status;
}

/* -1: there is no such file. */
static int open_content(const struct depot *depot, const struct depot_shown *shown,
                        const char *name)
{
    char file[FILE_PATH_MAX];
    const char *path = file;

    if (shown != NULL && shown->path == NULL) {
        return fcntl(shown->descriptor, F_DUPFD_CLOEXEC, 0);
    }
    if (shown != NULL) {
        path = shown->path;
    } else if (!is_name(name) ||
               file_path_join(file, sizeof(file), NULL, depot->folder, name) != STATUS_OK) {
        return -1;
    }
    return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

static enum status find_content(void *context, struct serve_content *content, const char *path,
                                const char *header, struct error *error)
{
    const struct depot *depot = context;
    const struct depot_shown *shown = find_shown(depot, path);
    const int descriptor = open_content(depot, shown, path);
    struct stat about;

    (void)header;
    if (descriptor < 0 || fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode) ||
        (shown != NULL && shown->offset + shown->size > (uint64_t)about.st_size)) {
        if (descriptor >= 0) {
            (void)close(descriptor);
        }
        return error_set(error, STATUS_NOT_FOUND, "there is no %.200s", path);
    }
    *content = (struct serve_content){.descriptor = descriptor,
                                      .size = (uint64_t)about.st_size,
                                      .type = "application/octet-stream"};
    if (shown != NULL && shown->size > 0) {
        content->offset = shown->offset;
        content->size = shown->size;
    }
    return STATUS_OK;
}

/* ---- what is taken in ---------------------------------------------------- */

struct depot_intake {
    struct depot *depot;
    struct whole_file file;
    uint64_t size;
};

static bool reserve_room(struct depot *depot, uint64_t size)
{
    bool fits;

    (void)pthread_mutex_lock(&depot->lock);
    fits = size <= depot->size_max && depot->size <= depot->size_max - size;
    depot->size += fits ? size : 0;
    (void)pthread_mutex_unlock(&depot->lock);
    return fits;
}

static void give_back(struct depot *depot, uint64_t size)
{
    (void)pthread_mutex_lock(&depot->lock);
    depot->size -= size < depot->size ? size : depot->size;
    (void)pthread_mutex_unlock(&depot->lock);
}

static enum status take_begin(void *context, void **intake, const char *path, struct error *error)
{
    struct depot *depot = context;
    char file[FILE_PATH_MAX];
    char folder[FILE_PATH_MAX];
    struct depot_intake *made;
    enum status status;

    if (!is_name(path)) {
        return error_set(error, STATUS_REFUSED, "the tree has no such name");
    }
    TRY(file_path_join(file, sizeof(file), error, depot->folder, path));
    (void)snprintf(folder, sizeof(folder), "%s", file);
    *strrchr(folder, '/') = '\0';
    TRY(file_make_folder(folder, error, 0755));
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to take a file in");
    }
    made->depot = depot;
    status = whole_file_open(&made->file, error, file, 0644);
    if (status != STATUS_OK) {
        free(made);
        return status;
    }
    *intake = made;
    return STATUS_OK;
}

static enum status take_bytes(void *intake, const void *bytes, size_t size, struct error *error)
{
    struct depot_intake *taking = intake;

    if (!reserve_room(taking->depot, size)) {
        return error_set(error, STATUS_OVER_LIMIT, "there is no room left");
    }
    taking->size += size;
    return whole_file_add(&taking->file, error, bytes, size);
}

/* What it replaces frees its room. */
static enum status take_end(void *intake, bool keep, struct error *error)
{
    struct depot_intake *taking = intake;
    struct stat before;
    uint64_t replaced = stat(taking->file.path, &before) == 0 ? (uint64_t)before.st_size : 0;
    enum status status = STATUS_OK;

    if (keep) {
        status = whole_file_keep(&taking->file, error);
    } else {
        whole_file_drop(&taking->file);
    }
    give_back(taking->depot, keep && status == STATUS_OK ? replaced : taking->size);
    free(taking);
    return status;
}

struct serve_source depot_source(struct depot *depot, const char *token)
{
    struct serve_source source = {.context = depot, .find = find_content};

    if (token != NULL) {
        source.take_begin = take_begin;
        source.take = take_bytes;
        source.take_end = take_end;
        source.token = token;
    }
    return source;
}
