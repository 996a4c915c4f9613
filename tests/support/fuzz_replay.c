/*
 * fuzz_replay.c - turns a fuzz target into a test where there is no libFuzzer: it runs over
 * fixtures/corpus/NAME, then over cut and damaged copies of every file there. A target passes by
 * surviving; it aborts, or a sanitizer does, when it finds something. Prints TAP.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_SIZE_MAX       (1u << 20)
#define REPLAY_CUTS_MAX      64
#define REPLAY_DAMAGES_COUNT 256
#define REPLAY_PATH_MAX      1024

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Memory of exactly the size of the input, so that a sanitizer sees one byte too many. */
static void feed(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size == 0 ? 1 : size);

    if (copy == NULL) {
        abort();
    }
    if (size > 0) {
        memcpy(copy, data, size);
    }
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void feed_damaged(uint8_t *data, size_t size)
{
    uint64_t state = size;

    for (size_t i = 0; i <= REPLAY_CUTS_MAX; i++) {
        feed(data, size * i / REPLAY_CUTS_MAX);
    }
    for (size_t i = 0; size > 0 && i < REPLAY_DAMAGES_COUNT; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);

        size_t at = (size_t)(state >> 33) % size;
        uint8_t kept = data[at];

        data[at] = i % 2 == 0 ? (uint8_t)(kept ^ (1u << (state >> 61))) : (uint8_t)(state >> 24);
        feed(data, size);
        data[at] = kept;
    }
}

static int replay_file(const char *path, uint8_t *data)
{
    FILE *file = fopen(path, "rb");
    size_t size;

    if (file == NULL) {
        return 0;
    }
    size = fread(data, 1, INPUT_SIZE_MAX, file);
    fclose(file);
    feed_damaged(data, size);
    return 1;
}

/* .../tests/fuzz/base/config_fuzz replays fixtures/corpus/config */
static int corpus_path(char *path, size_t size, const char *program)
{
    const char *slash = strrchr(program, '/');
    const char *base = slash == NULL ? program : slash + 1;
    size_t length = strlen(base);
    const char *ending = "_fuzz";

    if (length <= strlen(ending) || strcmp(base + length - strlen(ending), ending) != 0) {
        return -1;
    }
    return snprintf(path, size, "fixtures/corpus/%.*s", (int)(length - strlen(ending)), base);
}

int main(int argc, char **argv)
{
    char folder[REPLAY_PATH_MAX];
    char path[2 * REPLAY_PATH_MAX];
    uint8_t *data = malloc(INPUT_SIZE_MAX);
    struct dirent *entry;
    int files = 0;
    DIR *dir;

    if (data == NULL) {
        return 3;
    }
    if (argc < 1 || corpus_path(folder, sizeof(folder), argv[0]) < 0) {
        free(data);
        return 3;
    }
    dir = opendir(folder);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
            files += replay_file(path, data);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    feed(data, 0);
    printf("%sok 1 - %d inputs of %s are survived\n1..1\n", files == 0 ? "not " : "", files,
           folder);
    free(data);
    return files == 0;
}
