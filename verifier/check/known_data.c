/* known_data.c - see known_data.h. */
#include "verifier/check/known_data.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/hex.h"
#include "base/io/file.h"

enum {
    SETTLED_S = 2, /* a file that was changed so lately may change again within one tick */
};

static void look_at_file(struct known_data *known, const char *path)
{
    struct stat about;
    struct timespec now;

    known->text[0] = '\0';
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode) ||
        clock_gettime(CLOCK_REALTIME, &now) != 0 ||
        now.tv_sec - about.st_ctim.tv_sec <= SETTLED_S) {
        return;
    }
    (void)snprintf(known->text, sizeof(known->text),
                   "device %llu inode %llu size %llu changed %lld.%09ld %lld.%09ld\n",
                   (unsigned long long)about.st_dev, (unsigned long long)about.st_ino,
                   (unsigned long long)about.st_size, (long long)about.st_mtim.tv_sec,
                   about.st_mtim.tv_nsec, (long long)about.st_ctim.tv_sec, about.st_ctim.tv_nsec);
}

static bool note_path(char path[FILE_PATH_MAX], const char *cache, const struct digest *root)
{
    char text[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(text, root->bytes, DIGEST_SIZE);
    return snprintf(path, FILE_PATH_MAX, "%s/%s.known", cache, text) < FILE_PATH_MAX;
}

bool known_data_find(struct known_data *known, const char *cache, const struct digest *root,
                     const char *path)
{
    char note[FILE_PATH_MAX];
    struct file_bytes bytes;
    struct error ignored;
    bool same;

    error_init(&ignored);
    look_at_file(known, path);
    if (known->text[0] == '\0' || !note_path(note, cache, root) ||
        file_read(&bytes, &ignored, note, sizeof(known->text)) != STATUS_OK) {
        return false;
    }
    same = strcmp((const char *)bytes.data, known->text) == 0;
    file_bytes_release(&bytes);
    return same;
}

void known_data_note(const struct known_data *known, const char *cache, const struct digest *root,
                     const char *path)
{
    struct known_data now;
    char note[FILE_PATH_MAX];
    struct error ignored;

    error_init(&ignored);
    look_at_file(&now, path);
    if (now.text[0] != '\0' && strcmp(now.text, known->text) == 0 && note_path(note, cache, root)) {
        (void)!file_write(note, &ignored, now.text, strlen(now.text), 0600);
    }
}
