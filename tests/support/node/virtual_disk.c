/* virtual_disk.c - see virtual_disk.h. */
#include "tests/support/node/virtual_disk.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

enum {
    FILES_MAX = 64,
    PATH_SIZE = 512,
    SHARED_MAX = 32, /* regions of a write-ahead log's index */
    SECTOR = 4096,
};

struct bytes {
    uint8_t *data;
    uint64_t size;
    uint64_t room;
};

/* Something that was done to a file and not synced. */
struct change {
    bool truncates;
    uint64_t at; /* the new size, where it truncates */
    uint64_t size;
    uint8_t *data;
};

struct held {
    char path[PATH_SIZE];
    struct bytes now;
    struct bytes synced;
    struct change *changes;
    size_t change_count;
    size_t change_room;
    void *shared[SHARED_MAX];
};

struct virtual_disk {
    sqlite3_vfs vfs;
    struct fate *fate;
    uint64_t *random;
    uint64_t room; /* writes until it is full */
    struct held *files[FILES_MAX];
};

struct open_file {
    sqlite3_file base;
    struct virtual_disk *disk;
    struct held *held;
};

/* ---- bytes ----------------------------------------------------------------- */

static void resize(struct bytes *bytes, uint64_t size)
{
    if (size > bytes->room) {
        bytes->room = size * 2;
        bytes->data = realloc(bytes->data, bytes->room);
        assert(bytes->data != NULL);
    }
    if (size > bytes->size) {
        memset(bytes->data + bytes->size, 0, size - bytes->size);
    }
    bytes->size = size;
}

static void put(struct bytes *bytes, uint64_t at, const void *data, uint64_t size)
{
    if (size > 0) {
        if (at + size > bytes->size) {
            resize(bytes, at + size);
        }
        memcpy(bytes->data + at, data, size);
    }
}

static void copy(struct bytes *to, const struct bytes *from)
{
    resize(to, 0);
    put(to, 0, from->data, from->size);
}

static void forget_changes(struct held *held)
{
    for (size_t i = 0; i < held->change_count; i++) {
        free(held->changes[i].data);
    }
    held->change_count = 0;
}

static void note(struct held *held, const struct change *change)
{
    if (held->change_count == held->change_room) {
        held->change_room = held->change_room * 2 + 16;
        held->changes = realloc(held->changes, held->change_room * sizeof(*held->changes));
        assert(held->changes != NULL);
    }
    held->changes[held->change_count++] = *change;
}

static void forget_shared(struct held *held)
{
    for (int i = 0; i < SHARED_MAX; i++) {
        free(held->shared[i]);
        held->shared[i] = NULL;
    }
}

static void drop(struct virtual_disk *disk, int place)
{
    struct held *held = disk->files[place];

    forget_changes(held);
    forget_shared(held);
    free(held->changes);
    free(held->now.data);
    free(held->synced.data);
    free(held);
    disk->files[place] = NULL;
}

static int find(const struct virtual_disk *disk, const char *path)
{
    for (int i = 0; i < FILES_MAX; i++) {
        if (disk->files[i] != NULL && strcmp(disk->files[i]->path, path) == 0) {
            return i;
        }
    }
    return -1;
}

/* ---- an open file ------------------------------------------------------------ */

static struct held *held_by(sqlite3_file *file)
{
    return ((struct open_file *)file)->held;
}

static int close_file(sqlite3_file *file)
{
    (void)file;
    return SQLITE_OK;
}

static int read_file(sqlite3_file *file, void *bytes, int size, sqlite3_int64 at)
{
    struct open_file *open = (struct open_file *)file;
    const struct bytes *now = &open->held->now;
    uint64_t have = (uint64_t)at < now->size ? now->size - (uint64_t)at : 0;
    uint64_t taken = have < (uint64_t)size ? have : (uint64_t)size;

    if (open->disk->fate->dead) {
        return SQLITE_IOERR_READ;
    }
    if (taken > 0) {
        memcpy(bytes, now->data + at, taken);
    }
    memset((uint8_t *)bytes + taken, 0, (uint64_t)size - taken);
    return taken == (uint64_t)size ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int write_file(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 at)
{
    struct open_file *open = (struct open_file *)file;
    struct change change = {.at = (uint64_t)at, .size = (uint64_t)size};
    enum fate_says says = fate_ask(open->disk->fate);

    if (says == FATE_DEAD) {
        return SQLITE_IOERR_WRITE;
    }
    if (open->disk->room == 0) {
        return SQLITE_FULL;
    }
    if (open->disk->room != UINT64_MAX) {
        open->disk->room--;
    }
    change.data = malloc((size_t)size);
    assert(change.data != NULL);
    memcpy(change.data, bytes, (size_t)size);
    note(open->held, &change);
    put(&open->held->now, change.at, bytes, change.size);
    return says == FATE_LAST ? SQLITE_IOERR_WRITE : SQLITE_OK;
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size)
{
    struct open_file *open = (struct open_file *)file;
    struct change change = {.truncates = true, .at = (uint64_t)size};

    if (fate_ask(open->disk->fate) != FATE_LIVES) {
        return SQLITE_IOERR_TRUNCATE;
    }
    note(open->held, &change);
    resize(&open->held->now, change.at);
    return SQLITE_OK;
}

static int sync_file(sqlite3_file *file, int flags)
{
    struct open_file *open = (struct open_file *)file;
    enum fate_says says = fate_ask(open->disk->fate);

    (void)flags;
    if (says == FATE_DEAD) {
        return SQLITE_IOERR_FSYNC;
    }
    copy(&open->held->synced, &open->held->now);
    forget_changes(open->held);
    return says == FATE_LAST ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    *size = (sqlite3_int64)held_by(file)->now.size;
    return SQLITE_OK;
}

static int lock_file(sqlite3_file *file, int lock)
{
    (void)file;
    (void)lock;
    return SQLITE_OK;
}

static int is_reserved(sqlite3_file *file, int *reserved)
{
    (void)file;
    *reserved = 0;
    return SQLITE_OK;
}

static int control(sqlite3_file *file, int operation, void *value)
{
    (void)file;
    (void)operation;
    (void)value;
    return SQLITE_NOTFOUND;
}

static int sector_size(sqlite3_file *file)
{
    (void)file;
    return SECTOR;
}

static int characteristics(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int map_shared(sqlite3_file *file, int region, int size, int extend, void volatile **memory)
{
    struct held *held = held_by(file);

    assert(region < SHARED_MAX);
    if (held->shared[region] == NULL && extend != 0) {
        held->shared[region] = calloc(1, (size_t)size);
        assert(held->shared[region] != NULL);
    }
    *memory = held->shared[region];
    return SQLITE_OK;
}

static int lock_shared(sqlite3_file *file, int offset, int count, int flags)
{
    (void)file;
    (void)offset;
    (void)count;
    (void)flags;
    return SQLITE_OK;
}

static void barrier(sqlite3_file *file)
{
    (void)file;
}

static int unmap_shared(sqlite3_file *file, int forget)
{
    if (forget != 0) {
        forget_shared(held_by(file));
    }
    return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = close_file,
    .xRead = read_file,
    .xWrite = write_file,
    .xTruncate = truncate_file,
    .xSync = sync_file,
    .xFileSize = file_size,
    .xLock = lock_file,
    .xUnlock = lock_file,
    .xCheckReservedLock = is_reserved,
    .xFileControl = control,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = characteristics,
    .xShmMap = map_shared,
    .xShmLock = lock_shared,
    .xShmBarrier = barrier,
    .xShmUnmap = unmap_shared,
};

/* ---- the file system ----------------------------------------------------------- */

static struct virtual_disk *disk_of(sqlite3_vfs *vfs)
{
    return vfs->pAppData;
}

static int make(struct virtual_disk *disk, const char *path)
{
    for (int i = 0; i < FILES_MAX; i++) {
        if (disk->files[i] == NULL) {
            disk->files[i] = calloc(1, sizeof(*disk->files[i]));
            assert(disk->files[i] != NULL);
            (void)snprintf(disk->files[i]->path, PATH_SIZE, "%s", path);
            return i;
        }
    }
    return -1;
}

static int open_path(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags,
                     int *flags_out)
{
    struct open_file *open = (struct open_file *)file;
    struct virtual_disk *disk = disk_of(vfs);
    char name[32];
    int place;

    memset(open, 0, sizeof(*open));
    if (disk->fate->dead) {
        return SQLITE_CANTOPEN;
    }
    if (path == NULL) { /* a temporary file */
        (void)snprintf(name, sizeof(name), "temporary");
        path = name;
    }
    place = find(disk, path);
    if (place < 0 && (flags & SQLITE_OPEN_CREATE) != 0) {
        place = make(disk, path);
    }
    if (place < 0) {
        return SQLITE_CANTOPEN;
    }
    open->base.pMethods = &methods;
    open->disk = disk;
    open->held = disk->files[place];
    if (flags_out != NULL) {
        *flags_out = flags;
    }
    return SQLITE_OK;
}

static int delete_path(sqlite3_vfs *vfs, const char *path, int sync_folder)
{
    struct virtual_disk *disk = disk_of(vfs);
    int place = find(disk, path);

    (void)sync_folder;
    if (fate_ask(disk->fate) != FATE_LIVES) {
        return SQLITE_IOERR_DELETE;
    }
    if (place < 0) {
        return SQLITE_IOERR_DELETE_NOENT;
    }
    drop(disk, place);
    return SQLITE_OK;
}

static int is_there(sqlite3_vfs *vfs, const char *path, int flags, int *there)
{
    (void)flags;
    *there = find(disk_of(vfs), path) >= 0;
    return SQLITE_OK;
}

static int full_path(sqlite3_vfs *vfs, const char *path, int size, char *full)
{
    (void)vfs;
    (void)snprintf(full, (size_t)size, "%s", path);
    return SQLITE_OK;
}

static int draw(sqlite3_vfs *vfs, int size, char *bytes)
{
    test_random_fill(disk_of(vfs)->random, bytes, (size_t)size);
    return size;
}

static int wait(sqlite3_vfs *vfs, int microseconds)
{
    (void)vfs;
    return microseconds;
}

static int tell_time(sqlite3_vfs *vfs, double *days)
{
    (void)vfs;
    *days = 2451545.0;
    return SQLITE_OK;
}

struct virtual_disk *virtual_disk_new(struct fate *fate, uint64_t *random)
{
    struct virtual_disk *disk = calloc(1, sizeof(*disk));

    assert(disk != NULL);
    disk->fate = fate;
    disk->random = random;
    disk->room = UINT64_MAX;
    disk->vfs = (sqlite3_vfs){.iVersion = 1,
                              .szOsFile = sizeof(struct open_file),
                              .mxPathname = PATH_SIZE,
                              .zName = "virtual",
                              .pAppData = disk,
                              .xOpen = open_path,
                              .xDelete = delete_path,
                              .xAccess = is_there,
                              .xFullPathname = full_path,
                              .xRandomness = draw,
                              .xSleep = wait,
                              .xCurrentTime = tell_time};
    if (sqlite3_vfs_register(&disk->vfs, 1) != SQLITE_OK) {
        abort();
    }
    (void)sqlite3_randomness(0, NULL); /* the next draws come from this disk */
    return disk;
}

void virtual_disk_free(struct virtual_disk *disk)
{
    (void)sqlite3_vfs_unregister(&disk->vfs);
    for (int i = 0; i < FILES_MAX; i++) {
        if (disk->files[i] != NULL) {
            drop(disk, i);
        }
    }
    free(disk);
}

void virtual_disk_fill(struct virtual_disk *disk, uint64_t room)
{
    disk->room = room;
}

bool virtual_disk_is_full(const struct virtual_disk *disk)
{
    return disk->room == 0;
}

static void fail_power(struct virtual_disk *disk, struct held *held)
{
    copy(&held->now, &held->synced);
    for (size_t i = 0; i < held->change_count; i++) {
        const struct change *change = &held->changes[i];
        uint64_t luck = test_random_below(disk->random, 5);

        if (luck >= 3) {
            continue;
        }
        if (change->truncates) {
            resize(&held->now, change->at);
        } else {
            put(&held->now, change->at, change->data, luck == 0 ? change->size / 2 : change->size);
        }
    }
    copy(&held->synced, &held->now);
    forget_changes(held);
}

void virtual_disk_restart(struct virtual_disk *disk, const char *folder, bool power_failed)
{
    for (int i = 0; i < FILES_MAX; i++) {
        if (disk->files[i] != NULL && strncmp(disk->files[i]->path, folder, strlen(folder)) == 0) {
            forget_shared(disk->files[i]);
            if (power_failed) {
                fail_power(disk, disk->files[i]);
            }
        }
    }
    disk->room = UINT64_MAX;
}

void virtual_disk_lose(struct virtual_disk *disk, const char *path)
{
    static const char *const ends[] = {"", "-wal", "-journal"};

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        char name[PATH_SIZE];
        int place;

        (void)snprintf(name, sizeof(name), "%.490s%s", path, ends[i]);
        place = find(disk, name);
        if (place >= 0) {
            drop(disk, place);
        }
    }
}
