/* known_pace.c - see known_pace.h. */
#include "proofs/run/known_pace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/file.h"
#include "base/io/strict_json.h"

#define FILE_SIZE_MAX 4096
#define DEVICE_MAX    100

static enum status path_of(char path[FILE_PATH_MAX], const struct digest *job_id,
                           const char *device, struct error *error)
{
    char name[16 + HEX_SIZE(DIGEST_SIZE) + DEVICE_MAX];
    char id[HEX_SIZE(DIGEST_SIZE)];

    if (strlen(device) >= DEVICE_MAX || strchr(device, '/') != NULL) {
        return error_set(error, STATUS_USAGE, "there is no device '%.40s'", device);
    }
    hex_encode(id, job_id->bytes, DIGEST_SIZE);
    (void)snprintf(name, sizeof(name), "paces/%s.%s", id, device);
    return file_place(path, FILE_PATH_MAX, error, FILE_PLACE_STATE, name);
}

enum status known_pace_note(const struct known_pace *pace, const struct digest *job_id,
                            const char *device, struct error *error)
{
    char path[FILE_PATH_MAX];
    char folder[FILE_PATH_MAX];
    char text[128];

    TRY(path_of(path, job_id, device, error));
    TRY(file_place(folder, sizeof(folder), error, FILE_PLACE_STATE, "paces"));
    TRY(file_make_folder(folder, error, 0700));
    (void)snprintf(text, sizeof(text), "{\"step_ns\": %" PRIu64 ", \"tokens\": %" PRIu64 "}\n",
                   pace->step_ns, pace->tokens);
    return file_write(path, error, text, strlen(text), 0600);
}

enum status known_pace_find(struct known_pace *pace, const struct digest *job_id,
                            const char *device, struct error *error)
{
    char path[FILE_PATH_MAX];
    json_t *root = NULL;
    enum status status;

    *pace = (struct known_pace){0};
    TRY(path_of(path, job_id, device, error));
    TRY(strict_json_read(&root, error, path, FILE_SIZE_MAX, 1));
    TRY_OUT(strict_json_number(root, error, &pace->step_ns, "step_ns", INT64_MAX));
    TRY_OUT(strict_json_number(root, error, &pace->tokens, "tokens", INT64_MAX));
out:
    json_decref(root);
    return status;
}
