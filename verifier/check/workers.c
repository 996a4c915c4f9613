/* workers.c - see workers.h. */
#include "verifier/check/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/host.h"
#include "base/io/spawn.h"
#include "base/sandbox/leave.h"
#include "base/sandbox/sandbox.h"
#include "base/steady.h"
#include "base/version.h"
#include "engine/cuda/device/loader.h"
#include "engine/cuda/selftest/variants.h"
#include "engine/plan/backend.h"
#include "verifier/check/confine.h"

#define WORKER_WORD "--lockstep-check-worker"

enum {
    READ_SIZE = 65536,
    FILES_MAX = 256,
    LAUNCH_WORDS_MAX = 64,
    LAUNCHES_MAX = 3, /* of one check, where children are launched */
    GOODBYE_MS = 10,  /* how long to wait for the exit of a child that closed its pipe */
};

struct worker {
    bool used;
    uint64_t number;
    pid_t process;
    int request; /* -1: all of it is written */
    int result;
    uint32_t launches;
    char *sent;
    size_t sent_size;
    size_t sent_done;
    struct buffer received;
    bool silent; /* it has closed its end */
    uint64_t deadline_ms;
};

struct workers {
    uint32_t count_max;
    uint32_t time_max_s;
    bool launched;              /* by a program that was named, maybe on another machine */
    char launch[FILE_PATH_MAX]; /* words, with a zero behind each */
    const char *words[LAUNCH_WORDS_MAX + 3]; /* in there; and behind them the child's own */
    struct worker workers[WORKERS_MAX];
};

/* False: there is no word, or there are too many. */
static bool cut_words(struct workers *workers)
{
    size_t count = 0;
    char *rest = NULL;

    for (char *word = strtok_r(workers->launch, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        if (count == LAUNCH_WORDS_MAX) {
            return false;
        }
        workers->words[count++] = word;
    }
    workers->words[count++] = WORKER_WORD;
    workers->words[count++] = LOCKSTEP_VERSION;
    return count > 2;
}

static enum status take_launch(struct workers *workers, const char *launch, struct error *error)
{
    workers->launched = launch != NULL;
    launch = workers->launched ? launch : "lockstep";
    if (strlen(launch) < sizeof(workers->launch)) {
        memcpy(workers->launch, launch, strlen(launch) + 1);
        if (cut_words(workers)) {
            return STATUS_OK;
        }
    }
    (void)error_set(error, STATUS_USAGE, "'%.60s' are not the words of a command", launch);
    error_advise(error, "at most %d words with blanks between them, such as \"srun lockstep\"",
                 LAUNCH_WORDS_MAX);
    return error->status;
}

enum status workers_open(struct workers **workers, uint32_t count_max, uint32_t time_max_s,
                         const char *launch, struct error *error)
{
    struct workers *made = calloc(1, sizeof(*made));
    enum status status;

    *workers = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for workers");
    }
    made->count_max = count_max < WORKERS_MAX ? count_max : WORKERS_MAX;
    made->time_max_s = time_max_s;
    status = take_launch(made, launch, error);
    if (status != STATUS_OK) {
        free(made);
        return status;
    }
    *workers = made;
    return STATUS_OK;
}

/* ---- the life of a child ------------------------------------------------ */

static void forget_child(struct worker *worker)
{
    if (worker->request >= 0) {
        (void)close(worker->request);
    }
    if (worker->result >= 0) {
        (void)close(worker->result);
    }
    free(worker->sent);
    buffer_release(&worker->received);
    memset(worker, 0, sizeof(*worker));
}

/* Nothing of a child's is trusted to end by itself, and none may outlive its place in the table. */
static int end_child(struct worker *worker)
{
    return spawn_end(&worker->process, SIGKILL, SPAWN_FOR_EVER);
}

void workers_close(struct workers *workers)
{
    if (workers == NULL) {
        return;
    }
    for (uint32_t i = 0; i < WORKERS_MAX; i++) {
        if (workers->workers[i].used) {
            (void)end_child(&workers->workers[i]);
            forget_child(&workers->workers[i]);
        }
    }
    free(workers);
}

static enum status launch_child(struct worker *worker, const struct workers *workers,
                                struct error *error)
{
    const char *program = workers->launched ? workers->words[0] : SPAWN_SELF;
    int down[2] = {-1, -1};
    int up[2] = {-1, -1};
    enum status status;

    /* A socket, not a pipe: writing to a child that is gone must not raise a signal. */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, down) != 0 ||
        pipe2(up, O_CLOEXEC) != 0) {
        status = error_set_errno(error, "cannot start %s", program);
    } else {
        const struct spawn_files files = {.input = down[0], .output = up[1], .further = -1};

        status = spawn_program(&worker->process, program, workers->words, &files, error);
    }
    /* The parent's copies of the child's ends: while one is open here, the end of the child's words
     * would never be seen. */
    (void)close(down[0]);
    (void)close(up[1]);
    if (status != STATUS_OK) {
        (void)close(down[1]);
        (void)close(up[0]);
        return status;
    }
    worker->request = down[1];
    worker->result = up[0];
    /* A child that hangs must not hang the node with it. */
    (void)fcntl(worker->request, F_SETFL, O_NONBLOCK);
    (void)fcntl(worker->result, F_SETFL, O_NONBLOCK);
    worker->launches++;
    return STATUS_OK;
}

static void write_more(struct worker *worker)
{
    while (worker->request >= 0) {
        ssize_t written = send(worker->request, worker->sent + worker->sent_done,
                               worker->sent_size - worker->sent_done, MSG_NOSIGNAL);

        if (written < 0 && errno == EAGAIN) {
            return;
        }
        worker->sent_done += written > 0 ? (size_t)written : 0;
        if (written <= 0 || worker->sent_done == worker->sent_size) {
            (void)close(worker->request); /* a child that does not read will not answer either */
            worker->request = -1;
        }
    }
}

static enum status start_check(void *context, uint64_t number, const struct check_request *request,
                               struct error *error)
{
    struct workers *workers = context;
    struct worker *worker = NULL;
    json_t *object;
    enum status status;

    for (uint32_t i = 0; i < workers->count_max && worker == NULL; i++) {
        worker = workers->workers[i].used ? NULL : &workers->workers[i];
    }
    if (worker == NULL) {
        return error_set(error, STATUS_OVER_LIMIT, "all workers are busy");
    }
    memset(worker, 0, sizeof(*worker));
    worker->request = worker->result = -1;
    object = check_request_json(request);
    worker->sent = object == NULL ? NULL : json_dumps(object, JSON_COMPACT);
    json_decref(object);
    if (worker->sent == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a request");
    }
    worker->sent_size = strlen(worker->sent);
    buffer_init(&worker->received, CHECK_WIRE_MAX);
    status = launch_child(worker, workers, error);
    if (status != STATUS_OK) {
        forget_child(worker);
        return status;
    }
    worker->used = true;
    worker->number = number;
    worker->deadline_ms = steady_ms() + (uint64_t)workers->time_max_s * 1000;
    /* What does not fit into the socket now is written when the results are looked for. */
    write_more(worker);
    return STATUS_OK;
}

/* True at the end of what the child says. */
static bool read_more(struct worker *worker)
{
    uint8_t bytes[READ_SIZE];

    for (;;) {
        ssize_t size = read(worker->result, bytes, sizeof(bytes));

        if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
            return false;
        }
        if (size <= 0) {
            return true;
        }
        buffer_add(&worker->received, bytes, (size_t)size);
        if (worker->received.status != STATUS_OK) {
            return true; /* no result is that long */
        }
    }
}

static void explain_death(struct check_result *result, int how, bool late)
{
    if (late) {
        (void)snprintf(result->reason, sizeof(result->reason), "the check took too long");
    } else if (WIFSIGNALED(how) && WTERMSIG(how) == SIGSYS) {
        (void)snprintf(result->reason, sizeof(result->reason),
                       "the check was ended: it asked the system for what no check needs, such as "
                       "a program or a socket; the maker of its job may attack this machine");
    } else if (WIFSIGNALED(how)) {
        (void)snprintf(result->reason, sizeof(result->reason), "the check died of signal %d (%s)",
                       WTERMSIG(how), strsignal(WTERMSIG(how)));
    } else {
        (void)snprintf(result->reason, sizeof(result->reason),
                       "the check ended with code %d and no answer", WEXITSTATUS(how));
    }
}

/* A child that closed its pipe exits soon; its exit code is part of the answer. */
static bool has_ended(struct worker *worker, int *how)
{
    const struct timespec pause = {0, 1000000};

    for (int i = 0; i < GOODBYE_MS; i++) {
        if (spawn_ended(&worker->process, how)) {
            return true;
        }
        (void)nanosleep(&pause, NULL);
    }
    return false;
}

static void finish_check(struct worker *worker, struct check_result *result, int how, bool late)
{
    struct error error;

    error_init(&error);
    memset(result, 0, sizeof(*result));
    /* A result counts only of a child that ended well. */
    if (late || !WIFEXITED(how) || WEXITSTATUS(how) != 0 || worker->received.status != STATUS_OK) {
        explain_death(result, how, late);
    } else if (check_result_parse(result, worker->received.data, worker->received.size, &error) !=
               STATUS_OK) {
        (void)snprintf(result->reason, sizeof(result->reason), "%s", error.text);
    }
    forget_child(worker);
}

/* A launched child that ended by itself without an answer: with its machine, or its line to it. */
static bool was_lost(const struct workers *workers, const struct worker *worker, int how, bool late)
{
    return workers->launched && !late && worker->launches < LAUNCHES_MAX &&
           worker->received.status == STATUS_OK && !(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

/* The same check once more; its time runs on. */
static bool launch_again(struct workers *workers, struct worker *worker)
{
    struct error error;

    error_init(&error);
    if (worker->request >= 0) {
        (void)close(worker->request);
    }
    (void)close(worker->result);
    worker->request = worker->result = -1;
    worker->sent_done = 0;
    worker->silent = false;
    buffer_release(&worker->received);
    buffer_init(&worker->received, CHECK_WIRE_MAX);
    if (launch_child(worker, workers, &error) != STATUS_OK) {
        return false;
    }
    write_more(worker);
    return true;
}

static enum status take_result(void *context, uint64_t *number, struct check_result *result,
                               struct error *error)
{
    struct workers *workers = context;
    uint64_t now = steady_ms();

    (void)error;
    for (uint32_t i = 0; i < workers->count_max; i++) {
        struct worker *worker = &workers->workers[i];
        bool ended;
        bool late;
        int how = 0;

        if (!worker->used) {
            continue;
        }
        write_more(worker);
        worker->silent = worker->silent || read_more(worker);
        ended = worker->silent && has_ended(worker, &how);
        late = !ended && now >= worker->deadline_ms;
        if (late || (worker->received.status != STATUS_OK && !ended)) {
            how = end_child(worker);
            ended = true;
        }
        if (ended && was_lost(workers, worker, how, late) && launch_again(workers, worker)) {
            continue;
        }
        if (ended) {
            *number = worker->number;
            finish_check(worker, result, how, late);
            return STATUS_OK;
        }
    }
    return STATUS_NOT_FOUND;
}

struct check_port workers_port(struct workers *workers)
{
    return (struct check_port){.context = workers, .start = start_check, .take = take_result};
}

uint32_t workers_descriptors(const struct workers *workers, int *descriptors, uint32_t count_max)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < workers->count_max && count < count_max; i++) {
        if (workers->workers[i].used) {
            descriptors[count++] = workers->workers[i].result;
        }
    }
    return count;
}

/* ---- the child ---------------------------------------------------------- */

bool workers_asked(int argc, char *const *argv)
{
    return argc == 3 && strcmp(argv[1], WORKER_WORD) == 0;
}

static void limit_resource(int what, uint64_t value)
{
    struct rlimit bound = {value, value};
    struct rlimit now;

    /* A limit that the system has set lower stays; it cannot be raised anyway. */
    if (getrlimit((__rlimit_resource_t)what, &now) == 0 && now.rlim_max < value) {
        bound.rlim_cur = bound.rlim_max = now.rlim_max;
    }
    (void)setrlimit((__rlimit_resource_t)what, &bound);
}

/* ---- memory, and the drivers of devices ----
 *
 * RLIMIT_AS would stop CUDA at once: its driver reserves hundreds of gigabytes of addresses that it
 * never touches. RLIMIT_DATA counts private writable memory, touched or not. How much of it a
 * driver takes differs from driver to driver and is not charged to the job: the device starts and
 * its kernels pass their self-test before the limit is set, and the limit is what the process has
 * then and the job's memory. Nothing of a stranger's is read before. DRIVER_LATER is for code and
 * copies that the driver loads later.
 */

#define DRIVER_LATER ((uint64_t)512 << 20)

/* Bytes of what RLIMIT_DATA counts; 0: unknown. */
static uint64_t data_now(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    unsigned long long kib = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "VmData:", 7) == 0) {
            kib = strtoull(line + 7, NULL, 10);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return (uint64_t)kib << 10;
}

/* A failure is no matter here: the check opens the device again and reports it. */
static void start_device(uint32_t device)
{
    const struct device_calls *calls = NULL;
    struct variants variants;
    struct error ignored;

    error_init(&ignored);
    if (loader_open(&calls, &ignored) != STATUS_OK ||
        variants_of_device(&variants, calls, (int)device, &ignored) != STATUS_OK) {
        return;
    }
}

/* The memory limit of a check, with what the drivers of its devices took. */
static uint64_t data_max(bool *on_device, const struct check_request *request)
{
    struct machine_options options;
    struct error ignored;

    error_init(&ignored);
    if (check_machine(&options, request, request->other, &ignored) != STATUS_OK ||
        options.backend != &backend_cuda) {
        return request->memory_max;
    }
    *on_device = true;
    for (uint32_t i = 0; i < options.device_count; i++) {
        start_device(options.devices[i]);
    }
    return data_now() + request->memory_max + DRIVER_LATER;
}

/* True: the process is confined, too. The drivers of a device would not work then. */
static bool limit_all(const struct check_request *request)
{
    bool on_device = false;
    const uint64_t data = data_max(&on_device, request);

#ifndef __SANITIZE_ADDRESS__ /* its shadow alone is larger than any limit */
    limit_resource(RLIMIT_DATA, data);
#else
    (void)data;
#endif
    limit_resource(RLIMIT_CORE, 0);
    limit_resource(RLIMIT_NOFILE, FILES_MAX);
    limit_resource(RLIMIT_FSIZE, request->file_max);
    limit_resource(RLIMIT_CPU, request->processor_s);
    host_step_back();
    /* A file at its limit is then an error with a sentence, not the end of the process. */
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)signal(SIGPIPE, SIG_DFL);
    if (!on_device) {
        confine_begin(request);
    }
    return !on_device;
}

static bool read_request(struct buffer *bytes)
{
    uint8_t piece[READ_SIZE];
    ssize_t size;

    while ((size = read(STDIN_FILENO, piece, sizeof(piece))) > 0) {
        buffer_add(bytes, piece, (size_t)size);
    }
    return size == 0 && bytes->status == STATUS_OK;
}

static bool write_result(const struct check_result *result)
{
    json_t *object = check_result_json(result);
    char *text = object == NULL ? NULL : json_dumps(object, JSON_COMPACT);
    size_t size = text == NULL ? 0 : strlen(text);
    size_t done = 0;

    while (done < size) {
        ssize_t written = write(STDOUT_FILENO, text + done, size - done);

        if (written <= 0) {
            break;
        }
        done += (size_t)written;
    }
    free(text);
    json_decref(object);
    return size > 0 && done == size;
}

/* Where children are launched elsewhere, another program may be there. */
static enum status know_version(const char *version, struct error *error)
{
    if (strcmp(version, LOCKSTEP_VERSION) == 0) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_REFUSED, "lockstep %.20s launched a check, and here is %s",
                    version, LOCKSTEP_VERSION);
    error_advise(error, "install the same version on all machines");
    return error->status;
}

int workers_serve(char *const *argv, const struct check_visitor *visitor)
{
    struct check_request *request = calloc(1, sizeof(*request));
    struct check_result *result = calloc(1, sizeof(*result));
    struct buffer bytes;
    struct error error;
    bool confined;
    int code = 1;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    leave_unheard(STDOUT_FILENO);
    error_init(&error);
    buffer_init(&bytes, CHECK_WIRE_MAX);
    if (request == NULL || result == NULL || !read_request(&bytes)) {
        /* there is nobody to answer */
    } else if (know_version(argv[2], &error) != STATUS_OK ||
               check_request_parse(request, bytes.data, bytes.size, &error) != STATUS_OK) {
        (void)snprintf(result->reason, sizeof(result->reason), "%s", error.text);
        (void)snprintf(result->advice, sizeof(result->advice), "%s", error.advice);
        code = write_result(result) ? 0 : 1;
    } else {
        if (request->threads == 0) { /* those of this machine, or what its launcher gave */
            request->threads = (uint32_t)omp_get_max_threads();
        }
        omp_set_num_threads((int)request->threads); /* for hashes and first states too */
        confined = limit_all(request);
        check_run(result, request, visitor, confined ? sandbox_network : NULL);
        code = write_result(result) ? 0 : 1;
    }
    buffer_release(&bytes);
    free(request);
    free(result);
    return code;
}
