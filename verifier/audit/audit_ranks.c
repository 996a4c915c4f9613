/* audit_ranks.c - see audit_ranks.h. */
#include "verifier/audit/audit_ranks.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verifier/audit/audit_wire.h"
#include "verifier/audit/mpi.h"

enum {
    PIECE_SIZE = 65536,
    TROUBLE_MAX = 200,
};

bool audit_ranks_wanted(struct audit_ranks *ranks)
{
    return mpi_wanted(&ranks->rank, &ranks->count);
}

/* Each bundle starts at another rank: bundles of one segment keep all ranks busy. */
static uint32_t share_of(const struct audit_ranks *ranks, uint32_t rank, size_t index)
{
    return (uint32_t)((rank + index) % ranks->count);
}

static uint32_t rank_of(const struct audit_ranks *ranks, uint32_t share, size_t index)
{
    return (uint32_t)((share + ranks->count - index % ranks->count) % ranks->count);
}

/* ---- the child --------------------------------------------------------------- */

static bool write_all(int pipe_end, const struct buffer *bytes)
{
    for (size_t at = 0; at < bytes->size;) {
        ssize_t count = write(pipe_end, bytes->data + at, bytes->size - at);

        if (count < 0 && errno != EINTR) {
            return false;
        }
        at += count > 0 ? (size_t)count : 0;
    }
    return true;
}

/* Writes each bundle's record when it is done. Does not return. */
static void be_child(const struct audit_ranks *ranks, bool with_reports, int pipe_end)
{
    struct audit_result *result = calloc(1, sizeof(*result));
    struct report *report = with_reports ? calloc(1, sizeof(*report)) : NULL;
    struct stop stop = {.descriptor = -1};
    struct error error;
    bool good = result != NULL && (report != NULL || !with_reports);

    error_init(&error);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    good = good && stop_open(&stop, &error) == STATUS_OK;
    for (size_t i = 0; i < ranks->bundle_count && good; i++) {
        struct buffer bytes;

        memset(result, 0, sizeof(*result));
        error_init(&result->reason);
        ranks->audit_one(ranks->context, result, report, i, share_of(ranks, ranks->rank, i),
                         ranks->count, &stop);
        buffer_init(&bytes, MPI_MESSAGE_MAX / 2);
        audit_wire_write(&bytes, result, report);
        good = buffer_check(&bytes, &error, "an audit") == STATUS_OK && write_all(pipe_end, &bytes);
        buffer_release(&bytes);
        audit_result_release(result);
    }
    free(report);
    free(result);
    _exit(good ? 0 : 1);
}

/* ---- its rank ------------------------------------------------------------------ */

struct child {
    pid_t process;
    int pipe_end;
};

static enum status start_child(struct child *child, const struct audit_ranks *ranks,
                               bool with_reports, struct error *error)
{
    int ends[2];

    (void)fflush(NULL); /* or the child would print it again */
    if (pipe(ends) != 0) {
        return error_set_errno(error, "cannot make a pipe");
    }
    child->process = fork();
    if (child->process == 0) {
        (void)close(ends[0]);
        be_child(ranks, with_reports, ends[1]);
    }
    (void)close(ends[1]);
    child->pipe_end = ends[0];
    if (child->process < 0) {
        (void)close(ends[0]);
        return error_set_errno(error, "cannot start a child");
    }
    return STATUS_OK;
}

static void drop_child(const struct child *child)
{
    int code;

    (void)kill(child->process, SIGKILL);
    (void)close(child->pipe_end);
    (void)waitpid(child->process, &code, 0);
}

/* Reads until the child ends; trouble says how it ended: "" when well. */
static void hear_child(struct buffer *bytes, char trouble[TROUBLE_MAX], const struct child *child,
                       struct stop *stop)
{
    static const char *const how = "the replay of a share ";
    uint8_t piece[PIECE_SIZE];
    bool reply = false;
    ssize_t count = 1;
    int code = 0;

    while (count != 0) {
        struct pollfd waits[2] = {{.fd = child->pipe_end, .events = POLLIN},
                                  {.fd = reply ? -1 : stop->descriptor, .events = POLLIN}};

        if (poll(waits, 2, -1) < 0 && errno != EINTR) {
            break;
        }
        if (!reply && stop_requested(stop)) {
            (void)kill(child->process, SIGTERM); /* it reports how far it came */
            reply = true;
        }
        if (waits[0].revents != 0) {
            count = read(child->pipe_end, piece, sizeof(piece));
            if (count < 0 && errno != EINTR) {
                break;
            }
            buffer_add(bytes, piece, count > 0 ? (size_t)count : 0);
        }
    }
    (void)close(child->pipe_end);
    while (waitpid(child->process, &code, 0) < 0 && errno == EINTR) {
    }
    trouble[0] = '\0';
    if (WIFSIGNALED(code)) {
        (void)snprintf(trouble, TROUBLE_MAX, "%swas ended by signal %d", how, WTERMSIG(code));
    } else if (!WIFEXITED(code) || WEXITSTATUS(code) != 0) {
        (void)snprintf(trouble, TROUBLE_MAX, "%sended early", how);
    }
}

/* ---- rank 0 ---------------------------------------------------------------------- */

/* The message of a rank: its trouble, then its records. */
struct heard {
    struct buffer bytes;
    struct reader reader;
    char trouble[TROUBLE_MAX];
};

static void take_trouble(struct heard *heard, enum status status, const struct error *error)
{
    size_t size;
    const uint8_t *text;

    reader_init(&heard->reader, heard->bytes.data, heard->bytes.size);
    size = reader_u16(&heard->reader);
    text = reader_take(&heard->reader, size);
    if (status != STATUS_OK || heard->reader.failed || size >= TROUBLE_MAX) {
        heard->reader.failed = true;
        (void)snprintf(heard->trouble, TROUBLE_MAX, "nothing was heard of it: %.120s", error->text);
    } else if (size > 0 && text != NULL) {
        memcpy(heard->trouble, text, size);
        heard->trouble[size] = '\0';
    } else {
        (void)snprintf(heard->trouble, TROUBLE_MAX, "it sent too little");
    }
}

/* The next record of a rank; a missing one is CANNOT_TELL. */
static void take_record(struct audit_result *result, struct report *report, struct heard *heard,
                        uint32_t rank)
{
    struct error error;

    error_init(&error);
    if (!heard->reader.failed &&
        audit_wire_read(result, report, &heard->reader, &error) == STATUS_OK) {
        return;
    }
    heard->reader.failed = true; /* the rest cannot be read */
    audit_result_release(result);
    memset(result, 0, sizeof(*result));
    error_init(&result->reason);
    if (report != NULL) {
        memset(report, 0, sizeof(*report));
    }
    (void)error_set(&result->reason, STATUS_UNREACHABLE, "rank %u: %s", rank, heard->trouble);
}

static double mean_of(double left, uint64_t left_count, double right, uint64_t right_count)
{
    double count = (double)left_count + (double)right_count;

    return count > 0 ? (left * (double)left_count + right * (double)right_count) / count : 0;
}

static void merge_report(struct report *into, const struct report *part)
{
    if (into->cell_count == 0) {
        *into = *part;
        return;
    }
    for (uint32_t i = 0; i < into->cell_count && i < part->cell_count; i++) {
        struct report_cell *cell = &into->cells[i];
        const struct report_cell *more = &part->cells[i];

        cell->replay_time =
            mean_of(cell->replay_time, cell->checked, more->replay_time, more->checked);
        cell->checked += more->checked;
        cell->wrong |= more->wrong;
    }
    into->seconds = part->seconds > into->seconds ? part->seconds : into->seconds;
}

void audit_ranks_merge(struct audit_result *results, struct report *reports, uint32_t count)
{
    struct checkpoint_audit checkpoints = {0};
    uint64_t checked = 0;
    uint32_t decides = 0;

    for (; decides < count; decides++) {
        checked += results[decides].steps_checked;
        if (decides > 0 && reports != NULL) {
            merge_report(&reports[0], &reports[decides]);
        }
        if (decides + 1 == count || results[decides].answer != AUDIT_PROVEN) {
            break;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        checkpoint_audit_merge(&checkpoints, &results[i].checkpoints);
    }
    if (decides > 0) {
        struct audit_result first = results[0];

        results[0] = results[decides];
        results[decides] = first; /* each is released once */
        if (results[0].steps_of_job ==
            0) { /* its rank is gone: take the bundle's data from another */
            results[0].job_id = first.job_id;
            results[0].steps_of_job = first.steps_of_job;
            results[0].steps_journaled = first.steps_journaled;
            results[0].steps_wanted = first.steps_wanted;
        }
    }
    results[0].steps_due = results[0].steps_wanted;
    results[0].steps_checked = checked;
    results[0].checkpoints = checkpoints;
    audit_conclude(&results[0]);
}

/* All ranks' parts of all bundles. */
static enum status merge_all(struct audit_view *views, struct report *reports,
                             const struct audit_ranks *ranks, struct heard *heard,
                             struct error *error)
{
    struct audit_result *results = calloc(ranks->count, sizeof(*results));
    struct report *pages = reports == NULL ? NULL : calloc(ranks->count, sizeof(*pages));

    if (results == NULL || (reports != NULL && pages == NULL)) {
        free(results);
        free(pages);
        return error_set(error, STATUS_NO_MEMORY, "no memory for what the ranks found");
    }
    for (size_t i = 0; i < ranks->bundle_count; i++) {
        for (uint32_t share = 0; share < ranks->count; share++) {
            uint32_t rank = rank_of(ranks, share, i);

            take_record(&results[share], pages == NULL ? NULL : &pages[share], &heard[rank], rank);
        }
        audit_ranks_merge(results, pages, ranks->count);
        views[i].result = results[0];
        if (pages != NULL) {
            reports[i] = pages[0];
        }
        for (uint32_t share = 1; share < ranks->count; share++) {
            audit_result_release(&results[share]);
        }
    }
    free(pages);
    free(results);
    return STATUS_OK;
}

static enum status witness(struct audit_view *views, struct report *reports,
                           const struct audit_ranks *ranks, struct mpi *mpi, struct buffer *own,
                           struct stop *stop, struct error *error)
{
    struct heard *heard = calloc(ranks->count, sizeof(*heard));
    enum status status = STATUS_OK;

    if (heard == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for what the ranks found");
    }
    for (uint32_t rank = 0; rank < ranks->count; rank++) {
        struct error passed_over;

        error_init(&passed_over);
        buffer_init(&heard[rank].bytes, MPI_MESSAGE_MAX);
        if (rank == 0) {
            struct buffer empty = heard[0].bytes;

            heard[0].bytes = *own;
            *own = empty;
        } else {
            status = mpi_receive(&heard[rank].bytes, mpi, rank, stop, &passed_over);
        }
        take_trouble(&heard[rank], status, &passed_over);
    }
    status = merge_all(views, reports, ranks, heard, error);
    for (uint32_t rank = 0; rank < ranks->count; rank++) {
        buffer_release(&heard[rank].bytes);
    }
    free(heard);
    return status;
}

/* The rank's trouble, then the child's records. */
static void add_words(struct buffer *message, const struct buffer *records, const char *trouble)
{
    buffer_add_u16(message, (uint16_t)strlen(trouble));
    buffer_add_text(message, trouble);
    buffer_add(message, records->data, records->size);
}

enum status audit_ranks_run(struct audit_view *views, struct report *reports,
                            const struct audit_ranks *ranks, struct error *error)
{
    char trouble[TROUBLE_MAX];
    struct stop stop = {.descriptor = -1};
    struct child child = {-1, -1};
    struct mpi *mpi = NULL;
    struct buffer message;
    struct buffer records;
    enum status status = start_child(&child, ranks, reports != NULL, error);

    if (status != STATUS_OK) {
        return status;
    }
    status = stop_open(&stop, error); /* before the library starts threads */
    if (status == STATUS_OK) {
        status = mpi_open(&mpi, ranks->rank, ranks->count, error);
    }
    if (status != STATUS_OK) {
        drop_child(&child);
        stop_close(&stop);
        return status;
    }
    buffer_init(&records, MPI_MESSAGE_MAX);
    buffer_init(&message, MPI_MESSAGE_MAX);
    hear_child(&records, trouble, &child, &stop);
    add_words(&message, &records, trouble);
    buffer_release(&records);
    status = buffer_check(&message, error, "what this rank found");
    if (status == STATUS_OK) {
        status = ranks->rank == 0 ? witness(views, reports, ranks, mpi, &message, &stop, error)
                                  : mpi_send(mpi, message.data, message.size, &stop, error);
    }
    buffer_release(&message);
    mpi_close(mpi, &stop);
    stop_close(&stop);
    return status;
}
