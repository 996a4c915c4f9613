/* vouch_box.c - see vouch_box.h. */
#include "chain/job/vouch_box.h"

#include <unistd.h>

#include "base/hex.h"
#include "base/io/file.h"

static enum status path_of(char path[FILE_PATH_MAX], const char *folder,
                           const struct hash32 *segment, struct error *error)
{
    char name[HEX_SIZE(HASH32_SIZE)];

    hex_encode(name, segment->bytes, HASH32_SIZE);
    return file_path_join(path, FILE_PATH_MAX, error, folder, name);
}

enum status vouch_box_put(const char *folder, const struct vouch *vouch, struct error *error)
{
    char path[FILE_PATH_MAX];
    uint8_t bytes[VOUCH_SIZE_MAX];

    TRY(path_of(path, folder, &vouch->segment, error));
    TRY(file_make_folder(folder, error, 0755));
    return file_write(path, error, bytes, vouch_write(bytes, vouch), 0644);
}

enum status vouch_box_get(struct vouch *vouch, const char *folder, const struct hash32 *segment,
                          struct error *error)
{
    char path[FILE_PATH_MAX];
    struct file_bytes file;
    struct game_bytes bytes;
    bool read;

    TRY(path_of(path, folder, segment, error));
    TRY(file_read(&file, error, path, VOUCH_SIZE_MAX));
    bytes = (struct game_bytes){file.data, file.size};
    read = vouch_read(vouch, &bytes) && hash32_equal(&vouch->segment, segment);
    file_bytes_release(&file);
    return read ? STATUS_OK : error_set(error, STATUS_BAD_FORMAT, "%s is no vouch", path);
}

void vouch_box_drop(const char *folder, const struct hash32 *segment)
{
    char path[FILE_PATH_MAX];

    if (path_of(path, folder, segment, NULL) == STATUS_OK) {
        (void)unlink(path);
    }
}
