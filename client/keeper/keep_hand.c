/* keep_hand.c - see keep_hand.h. */
#include "client/keeper/keep_hand.h"

#include <stdio.h>

#include "base/hex.h"
#include "proofs/mirror/push_http.h"

enum {
    TIMEOUT_S = 10,
    NAME_SIZE = 120,
};

enum status keep_hand_put(const char *contact, enum http_reach reach, const struct vouch *vouch,
                          struct error *error)
{
    uint8_t bytes[VOUCH_SIZE_MAX];
    const struct serve_content content = {
        .descriptor = -1, .size = vouch_write(bytes, vouch), .bytes = bytes};
    struct push_http *push = NULL;
    char segment[HEX_SIZE(HASH32_SIZE)];
    char name[NAME_SIZE];
    enum status status;

    hex_encode(segment, vouch->segment.bytes, HASH32_SIZE);
    (void)snprintf(name, sizeof(name), "vouch/%s", segment);
    TRY(push_http_open(&push, contact, NULL, TIMEOUT_S, error));
    push_http_set_reach(push, reach);
    status = push_http_put(push, name, &content, error);
    push_http_close(push);
    return status;
}

bool keep_hand_answers(const char *contact, const struct digest *job, uint64_t size)
{
    struct push_http *push = NULL;
    char id[HEX_SIZE(DIGEST_SIZE)];
    char name[NAME_SIZE];
    struct error none;
    bool answers;

    error_init(&none);
    hex_encode(id, job->bytes, DIGEST_SIZE);
    (void)snprintf(name, sizeof(name), "v1/jobs/%s/job", id);
    if (push_http_open(&push, contact, NULL, TIMEOUT_S, &none) != STATUS_OK) {
        return false;
    }
    answers = push_http_has(push, name, size);
    push_http_close(push);
    return answers;
}
