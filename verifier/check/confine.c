/* confine.c - see confine.h. */
#include "verifier/check/confine.h"

#include <stdio.h>

#include "base/http/http_reach.h"
#include "base/sandbox/sandbox.h"

bool confine_describe(char text[CONFINE_TEXT_MAX], bool on_device)
{
    const struct sandbox_means means = sandbox_means();
    const char *words = "on the CPU they are kept from programs, from sockets that fetch nothing, "
                        "and from files that are not theirs; on a GPU its drivers need them";

    if (on_device) {
        words = "checks on a GPU are not kept from files, sockets and programs: its drivers need "
                "them";
    } else if (!means.calls) {
        words = "this system has no seccomp filters: checks can do what the node can";
    } else if (!means.files) {
        words = "checks are kept from programs and sockets; this kernel has no landlock, so they "
                "can read what the node can";
    }
    (void)snprintf(text, CONFINE_TEXT_MAX, "%s", words);
    return !on_device && means.calls && means.files;
}

/* A bundle says itself where its data lies, so beside one any file may be read; and its database
 * wants to be shared with its writer. */
static void add_mirror(struct sandbox_plan *plan, const char *mirror)
{
    char journal[FILE_PATH_MAX];
    struct error ignored;

    error_init(&ignored);
    if (http_reach_is_url(mirror)) {
        plan->network = true;
        return;
    }
    sandbox_add_read(plan, mirror);
    if (file_path_join(journal, sizeof(journal), &ignored, mirror, "journal.db") == STATUS_OK &&
        file_exists(journal)) {
        sandbox_add_write(plan, mirror);
        sandbox_add_read(plan, "/");
    }
}

void confine_begin(const struct check_request *request)
{
    struct sandbox_plan plan = {.network = false};
    struct error ignored;

    error_init(&ignored);
    for (uint32_t i = 0; i < request->data_count; i++) {
        sandbox_add_read(&plan, request->data[i]);
    }
    for (uint32_t i = 0; i < request->mirror_count; i++) {
        if (request->journal) { /* its checkpoints alone are wanted, and its data are named */
            sandbox_add_read(&plan, request->mirrors[i]);
        } else {
            add_mirror(&plan, request->mirrors[i]);
        }
    }
    /* Where this fails the check cannot use the folder either, and says so. */
    (void)!file_make_folder(request->cache, &ignored, 0700);
    sandbox_add_write(&plan, request->cache);
    sandbox_add_write(&plan, request->folder);
    sandbox_begin(&plan);
}
