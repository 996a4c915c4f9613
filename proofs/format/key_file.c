/* key_file.c - see key_file.h. */
#include "proofs/format/key_file.h"

#include <string.h>
#include <sys/stat.h>

#include "base/io/file.h"
#include "base/secret.h"

#define DIGITS (2 * ENCRYPTION_KEY_SIZE)

/* Not base/hex.h: its tables would leave traces of the key in the cache. */
static int digit_value(uint8_t digit)
{
    int number = digit - '0';
    int letter = (digit | 0x20) - 'a';

    if (number >= 0 && number <= 9) {
        return number;
    }
    return letter >= 0 && letter <= 5 ? letter + 10 : -1;
}

static bool read_digits(struct encryption_key *key, const struct file_bytes *text)
{
    bool good = text->size == DIGITS || (text->size == DIGITS + 1 && text->data[DIGITS] == '\n');

    for (size_t i = 0; good && i < ENCRYPTION_KEY_SIZE; i++) {
        int high = digit_value(text->data[2 * i]);
        int low = digit_value(text->data[2 * i + 1]);

        good = high >= 0 && low >= 0;
        key->bytes[i] = (uint8_t)((unsigned)high << 4 | (unsigned)low);
    }
    return good;
}

enum status key_file_read(struct encryption_key *key, const char *path, struct error *error)
{
    struct file_bytes text;
    struct stat about;
    enum status status = file_read(&text, error, path, DIGITS + 1);

    if (status == STATUS_OVER_LIMIT) {
        return error_set(error, STATUS_BAD_FORMAT, "%s is not the key of a bundle", path);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (stat(path, &about) != 0 || (about.st_mode & 077) != 0) {
        status = error_set(error, STATUS_REFUSED, "others may read the key %s", path);
        error_advise(error, "chmod 600 %s", path);
    } else if (!read_digits(key, &text)) {
        status = error_set(error, STATUS_BAD_FORMAT, "%s is not the key of a bundle", path);
    }
    secret_wipe(text.data, text.size);
    file_bytes_release(&text);
    if (status != STATUS_OK) {
        encryption_key_wipe(key);
    }
    return status;
}

enum status key_file_write(const char *path, const struct encryption_key *key, struct error *error)
{
    char text[DIGITS + 1];
    enum status status;

    for (size_t i = 0; i < ENCRYPTION_KEY_SIZE; i++) {
        for (int half = 0; half < 2; half++) {
            unsigned nibble = half == 0 ? key->bytes[i] >> 4 : key->bytes[i] & 15u;

            text[2 * i + (size_t)half] = (char)(nibble < 10 ? '0' + nibble : 'a' + nibble - 10);
        }
    }
    text[DIGITS] = '\n';
    status = file_write_new(path, error, text, sizeof(text), 0600);
    secret_wipe(text, sizeof(text));
    return status;
}
