/* traced_step.c - see traced_step.h. */
#include "prover/train/traced_step.h"

#include <string.h>

#include "prover/train/fault_injection.h"

enum status traced_step_open(struct traced_step *traced, const char *path,
                             const struct encryption_key *key, uint64_t step, struct error *error)
{
    traced_step_close(traced);
    traced->step = step;
    TRY(bundle_open(&traced->bundle, path, BUNDLE_READ, error));
    return key == NULL ? STATUS_OK : bundle_unlock(traced->bundle, key, error);
}

static enum status open_run(struct traced_step *traced, const char *const *paths, size_t path_count,
                            const struct machine_options *machine, struct error *error)
{
    const struct job *job = bundle_job(traced->bundle);
    struct machine_options here;
    enum status status = run_open(&traced->run, job, paths, path_count, machine, error);

    if (status == STATUS_OK || machine->backend == NULL) {
        return status;
    }
    run_close(&traced->run);
    memset(&traced->run, 0, sizeof(traced->run));
    TRY(machine_options_default(&here, error));
    here.thread_count = machine->thread_count;
    here.memory_max = machine->memory_max;
    return run_open(&traced->run, job, paths, path_count, &here, error);
}

enum status traced_step_run(struct traced_step *traced, const char *const *paths, size_t path_count,
                            const struct machine_options *machine,
                            const struct replay_options *replay, struct error *error)
{
    TRY(open_run(traced, paths, path_count, machine, error));
    TRY(replay_trace_server(&traced->server, &traced->run, traced->bundle, traced->step, replay,
                            error));
    return fault_injection_stand_by(&traced->server, traced->bundle, traced->step, error);
}

void traced_step_close(struct traced_step *traced)
{
    trace_server_close(&traced->server);
    run_close(&traced->run);
    bundle_close(traced->bundle);
    memset(traced, 0, sizeof(*traced));
}
