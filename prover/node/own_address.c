/* own_address.c - see own_address.h. */
#include "prover/node/own_address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/whole_file.h"
#include "proofs/job/job_file.h"
#include "proofs/mirror/mirror_set.h"

enum {
    FIRST_MS = 5000,       /* until a server that begins has what the node has */
    AGAIN_MS = 10 * 60000, /* while it answers */
    TROUBLE_MS = 60000,    /* while it does not */
    TIMEOUT_S = 5,
};

static enum status take_any(void *context, const char *path, struct error *error)
{
    struct job *found = NULL;

    (void)context;
    TRY(job_read(&found, path, error));
    job_free(found);
    return STATUS_OK;
}

/* *why: what the address said; empty: the job file. */
static void fetch_job(char why[OWN_ADDRESS_TEXT], const char *address, const struct job *job)
{
    const struct mirror_wanted wanted = {.kind = MIRROR_JOB,
                                         .root = job->id,
                                         .job = job->id,
                                         .size_max = JOB_FILE_SIZE_MAX,
                                         .check = take_any};
    struct mirror_set *mirrors = calloc(1, sizeof(*mirrors));
    char folder[] = "/tmp/lockstep-XXXXXX";
    char path[FILE_PATH_MAX];
    struct error error;
    enum status status;

    error_init(&error);
    why[0] = '\0';
    if (mirrors == NULL || whole_file_make_part(folder, 0700, true) < 0) {
        free(mirrors);
        return; /* nobody knows */
    }
    mirrors->timeout_s = TIMEOUT_S;
    (void)snprintf(path, sizeof(path), "%s/job", folder);
    status = mirror_set_add(mirrors, address, &error);
    if (status == STATUS_OK) {
        status = mirror_set_get(path, mirrors, &wanted, &error);
    }
    if (status != STATUS_OK) {
        (void)snprintf(why, OWN_ADDRESS_TEXT, "%.160s",
                       mirrors->mirrors[0].note.trouble[0] != '\0'
                           ? mirrors->mirrors[0].note.trouble
                           : error.text);
    }
    (void)unlink(path);
    (void)rmdir(folder);
    free(mirrors);
}

void own_address_ask(struct own_address *own, const char *address, const struct job *job,
                     uint64_t now_ms, const struct log *log)
{
    char why[OWN_ADDRESS_TEXT];
    bool before = own->trouble[0] != '\0';

    if (own->next_ms == 0) {
        own->next_ms = now_ms + FIRST_MS;
    }
    if (now_ms < own->next_ms) {
        return;
    }
    fetch_job(why, address, job);
    own->trouble[0] = '\0';
    own->next_ms = now_ms + AGAIN_MS;
    if (why[0] != '\0') {
        own->next_ms = now_ms + TROUBLE_MS;
        (void)snprintf(own->trouble, sizeof(own->trouble),
                       "%.100s, which the ledger names, does not give what this node serves, asked "
                       "from here: %.160s",
                       address, why);
    }
    if (why[0] != '\0' && !before) {
        log_warn(log, "serve", "%s", own->trouble);
    } else if (why[0] == '\0' && before) {
        log_info(log, "serve", "%s gives what this node serves again", address);
    }
}
