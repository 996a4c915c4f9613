/* ranks_machine.c - see ranks_machine.h. */
#include "prover/ranks/ranks_machine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/whole_file.h"
#include "base/steady.h"
#include "engine/ranks/rank_step.h"
#include "prover/ranks/ranks_agree.h"
#include "prover/ranks/ranks_cross.h"
#include "prover/ranks/ranks_roots.h"

/* Tags beside those of the sums. */
enum {
    TAG_WORD = 0x10,
    TAG_LIST,
    TAG_STATE,
    TAG_ROOTS,
};

enum word_kind {
    WORD_STEP = 1,
    WORD_WRITE, /* a state follows: to each rank what it holds of it */
    WORD_READ,  /* each rank sends its part of a state */
    WORD_ROOTS, /* so many tensors are hashed: their list follows */
    WORD_SAVE,  /* so many tensors go into a checkpoint that all write */
    WORD_END,
};

struct word {
    uint32_t kind;
    uint32_t number;          /* a tensor of the job's tape, or how many */
    struct ranks_drawn drawn; /* of a step */
};

struct ranks_machine {
    struct machine machine;
    struct ranks_team *team;
    struct machine_options own;
    const struct ranks_machine_plan *plan;
    struct rank_step step;
    struct ranks_roots roots;
    const void **data;    /* per tensor: what is bound */
    struct digest *known; /* per state that no step changes: the root of its leaves */
    bool *is_known;       /* per state */
    bool finite;          /* as the last hash found */
    bool finite_known;    /* of the states as they are now */
    bool told;            /* that one of them does not see where checkpoints lie */
    bool lost;            /* the ranks are not at one place any more */
};

static struct ranks_machine *ranks_of(struct machine *machine)
{
    return (struct ranks_machine *)machine;
}

static struct machine *inner_of(struct ranks_machine *ranks)
{
    return ranks->step.machine;
}

static uint32_t rank_count(const struct ranks_machine *ranks)
{
    return ranks->team->link.rank_count;
}

/* ---- its life --------------------------------------------------------------------------- */

static enum status say_word(struct ranks_machine *ranks, enum word_kind kind, uint32_t number,
                            struct error *error);

static void ranks_close(struct machine *machine)
{
    struct ranks_machine *ranks = ranks_of(machine);
    struct error error;

    if (ranks == NULL) {
        return;
    }
    error_init(&error);
    if (ranks->team->link.rank == 0 && !ranks->lost) {
        (void)!say_word(ranks, WORD_END, 0, &error);
    }
    rank_step_close(&ranks->step);
    ranks_roots_close(&ranks->roots);
    free(ranks->data);
    free(ranks->known);
    free(ranks->is_known);
    free(ranks);
}

static enum status open_all(struct ranks_machine *ranks, const struct tape *tape,
                            struct error *error)
{
    const size_t states = (size_t)tape->state_count + 1;

    ranks->data = calloc((size_t)tape->tensor_count + 1, sizeof(*ranks->data));
    ranks->known = calloc(states, sizeof(*ranks->known));
    ranks->is_known = calloc(states, sizeof(*ranks->is_known));
    if (ranks->data == NULL || ranks->known == NULL || ranks->is_known == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a machine");
    }
    TRY(ranks_roots_open(&ranks->roots, &ranks->step, tape->state_count, ranks->own.thread_count,
                         error));
    TRY(rank_step_open(&ranks->step, tape, &ranks->own, &ranks->team->link, error));
    return ranks_cross_check(&ranks->step.plan, ranks->plan->cross_check, error);
}

static enum status ranks_open(struct machine **machine, const struct tape *tape,
                              const struct machine_options *options, struct error *error)
{
    const struct ranks_machine_plan *plan = options->backend_plan;
    struct ranks_machine *ranks = calloc(1, sizeof(*ranks));
    enum status status;

    if (ranks == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a machine");
    }
    ranks->machine = (struct machine){.backend = &backend_ranks, .tape = tape};
    ranks->team = plan->team;
    ranks->own = plan->own;
    ranks->plan = plan;
    ranks->own.spare = options->spare;
    ranks->own.spare_context = options->spare_context;
    ranks->lost = true;
    status = ranks_agree(ranks->team, &plan->job, open_all(ranks, tape, error), error);
    if (status != STATUS_OK) {
        ranks_close(&ranks->machine);
        return status;
    }
    ranks->lost = false;
    *machine = &ranks->machine;
    return STATUS_OK;
}

static enum status ranks_size(uint64_t *size, const struct tape *tape,
                              const struct machine_options *options, struct error *error)
{
    const struct ranks_machine_plan *plan = options->backend_plan;

    TRY(rank_step_size(size, tape, &plan->own, plan->team->link.rank_count, error));
    *size *= plan->cross_check > 0 ? 2 : 1; /* the machine that makes another rank's sums too */
    return STATUS_OK;
}

struct machine_options ranks_machine_options(const struct ranks_machine_plan *plan)
{
    return (struct machine_options){.backend = &backend_ranks,
                                    .backend_plan = plan,
                                    .isa = plan->own.isa,
                                    .thread_count = plan->own.thread_count};
}

/* ---- what is said ----------------------------------------------------------------------- */

/* A failure leaves the ranks at several places. */
static enum status move_all(struct ranks_machine *ranks, const struct ranks_transfer *transfers,
                            uint32_t count, struct error *error)
{
    enum status status;

    if (ranks->lost) {
        return error_set(error, STATUS_RANK_LOST, "the ranks of this run are at several places");
    }
    status = ranks->team->link.exchange(ranks->team->link.context, transfers, count, error);
    ranks->lost = status != STATUS_OK;
    return status;
}

/* Rank 0 sends the same bytes to all others. */
static enum status say_all(struct ranks_machine *ranks, uint32_t tag, const void *bytes,
                           size_t size, struct error *error)
{
    struct ranks_transfer *transfers = calloc(rank_count(ranks), sizeof(*transfers));
    enum status status;

    if (transfers == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u ranks", rank_count(ranks));
    }
    for (uint32_t rank = 1; rank < rank_count(ranks); rank++) {
        transfers[rank - 1] = (struct ranks_transfer){.peer = rank,
                                                      .tag = tag,
                                                      .sends = true,
                                                      .idle = tag == TAG_WORD,
                                                      .bytes = (void *)(uintptr_t)bytes,
                                                      .size = size};
    }
    status = move_all(ranks, transfers, rank_count(ranks) - 1, error);
    free(transfers);
    return status;
}

static enum status say_word(struct ranks_machine *ranks, enum word_kind kind, uint32_t number,
                            struct error *error)
{
    const struct word word = {.kind = (uint32_t)kind, .number = number};

    return say_all(ranks, TAG_WORD, &word, sizeof(word), error);
}

static enum status hear_first(struct ranks_machine *ranks, uint32_t tag, void *bytes, size_t size,
                              struct error *error)
{
    const struct ranks_transfer heard = {
        .peer = 0, .tag = tag, .idle = tag == TAG_WORD, .bytes = bytes, .size = size};

    return move_all(ranks, &heard, 1, error);
}

/* ---- tensors ---------------------------------------------------------------------------- */

static bool can_be_read(const struct machine *machine, uint32_t tensor)
{
    const struct tape *tape = machine->tape;

    return tensor < tape->tensor_count &&
           (tape->tensors[tensor].role != ROLE_TEMPORARY || tensor == tape->loss);
}

static void note_write(struct ranks_machine *ranks, uint32_t tensor)
{
    const struct tape *tape = ranks->machine.tape;

    ranks->finite_known = false;
    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (tape->states[i].before == tensor) {
            ranks->is_known[i] = false;
        }
    }
}

/* What a rank holds of a tensor, of the tensor's bytes. */
struct held_range {
    uint64_t first;
    uint64_t size;
};

static struct held_range range_of(const struct ranks_machine *ranks, uint32_t tensor, uint32_t rank)
{
    struct rank_holding holding;
    uint64_t first;

    rank_step_holding(&holding, &ranks->step, tensor);
    if (!holding.in_parts) {
        return (struct held_range){0, tensor_size(&ranks->machine.tape->tensors[tensor])};
    }
    first = rank_step_first(&ranks->step, tensor, rank);
    return (struct held_range){first, rank_step_first(&ranks->step, tensor, rank + 1) - first};
}

/* Where this rank holds something of a tensor: *id, and its place in the tensor's bytes. */
static bool find_own(uint32_t *id, uint64_t *first, const struct ranks_machine *ranks,
                     uint32_t tensor)
{
    struct rank_holding holding;

    rank_step_holding(&holding, &ranks->step, tensor);
    *id = holding.id;
    *first = range_of(ranks, tensor, ranks->team->link.rank).first;
    return holding.id != TENSOR_NONE;
}

/* Writes what this rank holds of a tensor, or reads it: bytes begin with the tensor's. */
static enum status write_own(struct ranks_machine *ranks, uint32_t tensor, const uint8_t *bytes,
                             struct error *error)
{
    struct machine *inner = inner_of(ranks);
    uint64_t first;
    uint32_t id;

    return find_own(&id, &first, ranks, tensor)
               ? inner->backend->write(inner, id, bytes + first, error)
               : STATUS_OK;
}

static enum status read_own(struct ranks_machine *ranks, uint32_t tensor, uint8_t *bytes,
                            struct error *error)
{
    struct machine *inner = inner_of(ranks);
    uint64_t first;
    uint32_t id;

    return find_own(&id, &first, ranks, tensor)
               ? inner->backend->read(inner, id, bytes + first, error)
               : STATUS_OK;
}

/* Rank 0 sends all others what they hold of a tensor, or takes it: bytes are the whole one's. */
static enum status move_parts(struct ranks_machine *ranks, uint32_t tensor, uint8_t *bytes,
                              bool sends, struct error *error)
{
    struct ranks_transfer *transfers = calloc(rank_count(ranks), sizeof(*transfers));
    uint32_t count = 0;
    enum status status;

    if (transfers == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u ranks", rank_count(ranks));
    }
    for (uint32_t rank = 1; rank < rank_count(ranks); rank++) {
        const struct held_range held = range_of(ranks, tensor, rank);

        if (held.size > 0) {
            transfers[count++] = (struct ranks_transfer){.peer = rank,
                                                         .tag = TAG_STATE,
                                                         .sends = sends,
                                                         .bytes = bytes + held.first,
                                                         .size = held.size};
        }
    }
    status = move_all(ranks, transfers, count, error);
    free(transfers);
    return status;
}

static bool is_state(const struct machine *machine, uint32_t tensor)
{
    return tensor < machine->tape->tensor_count &&
           machine->tape->tensors[tensor].role == ROLE_STATE;
}

static enum status ranks_write(struct machine *machine, uint32_t tensor, const void *bytes,
                               struct error *error)
{
    struct ranks_machine *ranks = ranks_of(machine);

    if (tensor >= machine->tape->tensor_count ||
        role_is_made(machine->tape->tensors[tensor].role)) {
        return error_set(error, STATUS_USAGE, "tensor %u cannot be written", tensor);
    }
    note_write(ranks, tensor);
    if (ranks->team->link.rank == 0 && is_state(machine, tensor)) {
        TRY(say_word(ranks, WORD_WRITE, tensor, error));
        TRY(move_parts(ranks, tensor, (uint8_t *)(uintptr_t)bytes, true, error));
    }
    return write_own(ranks, tensor, bytes, error);
}

static enum status ranks_bind(struct machine *machine, uint32_t tensor, const void *bytes,
                              struct error *error)
{
    struct ranks_machine *ranks = ranks_of(machine);
    struct machine *inner = inner_of(ranks);

    if (tensor >= machine->tape->tensor_count || machine->tape->tensors[tensor].role != ROLE_DATA) {
        return error_set(error, STATUS_USAGE, "tensor %u is no data", tensor);
    }
    ranks->data[tensor] = bytes;
    return inner->backend->bind(inner, ranks->step.own.ids[tensor], bytes, error);
}

static enum status ranks_read(struct machine *machine, uint32_t tensor, void *bytes,
                              struct error *error)
{
    struct ranks_machine *ranks = ranks_of(machine);
    struct rank_holding holding;

    if (!can_be_read(machine, tensor)) {
        return error_set(error, STATUS_USAGE, "tensor %u cannot be read", tensor);
    }
    rank_step_holding(&holding, &ranks->step, tensor);
    if (holding.in_parts) {
        TRY(say_word(ranks, WORD_READ, tensor, error));
        TRY(move_parts(ranks, tensor, bytes, false, error));
    }
    return read_own(ranks, tensor, bytes, error);
}

static const void *ranks_peek(struct machine *machine, uint32_t tensor)
{
    struct ranks_machine *ranks = ranks_of(machine);
    struct machine *inner = inner_of(ranks);
    struct rank_holding holding;

    if (!can_be_read(machine, tensor)) {
        return NULL;
    }
    rank_step_holding(&holding, &ranks->step, tensor);
    return holding.in_parts ? NULL : inner->backend->peek(inner, holding.id);
}

/* ---- a step ----------------------------------------------------------------------------- */

/* A rank that fails here leaves the others waiting: nobody goes on. */
static enum status run_step(struct ranks_machine *ranks, const struct ranks_drawn *drawn,
                            struct error *error)
{
    const uint64_t start = steady_ns();
    struct digest again = {{0}};
    enum status status =
        ranks_cross_before(&again, drawn, &ranks->step, ranks->data, &ranks->own, error);

    status = status == STATUS_OK ? rank_step_run(&ranks->step, error) : status;
    ranks->finite_known = false;
    if (status != STATUS_OK) {
        ranks->lost = true;
        if (status != STATUS_RANK_LOST) {
            (void)error_wrap(error, "rank %u (this one) cannot make its step",
                             ranks->team->link.rank);
            error->status = STATUS_RANK_LOST;
        }
        return STATUS_RANK_LOST;
    }
    status = ranks_cross_after(ranks->team, drawn, &ranks->step, &again, error);
    ranks->lost = status == STATUS_RANK_LOST;
    ranks_team_stepped(ranks->team, steady_ns() - start);
    return status;
}

static enum status ranks_step(struct machine *machine, const struct observer *observer,
                              struct error *error)
{
    struct ranks_machine *ranks = ranks_of(machine);
    struct word word = {.kind = WORD_STEP};

    assert(observer == NULL); /* a trace is one machine's */
    TRY(ranks_cross_draw(&word.drawn, ranks->team, &ranks->step.plan, ranks->plan->cross_check,
                         error));
    TRY(say_all(ranks, TAG_WORD, &word, sizeof(word), error));
    return run_step(ranks, &word.drawn, error);
}

/* ---- roots ------------------------------------------------------------------------------ */

/* Rank 0 gathers what each has found: roots in the order of the list. */
static enum status gather_roots(struct ranks_machine *ranks, struct digest *found,
                                const uint32_t *list, uint32_t count, struct error *error)
{
    struct digest **findings = calloc(rank_count(ranks), sizeof(void *));
    enum status status = STATUS_OK;

    if (findings == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u ranks", rank_count(ranks));
    }
    for (uint32_t rank = 0; rank < rank_count(ranks); rank++) {
        const size_t digests = ranks_roots_count(&ranks->roots, list, count, rank);
        struct ranks_transfer heard = {
            .peer = rank, .tag = TAG_ROOTS, .size = digests * sizeof(struct digest)};

        heard.bytes = findings[rank] = malloc(heard.size);
        if (heard.bytes == NULL) {
            TRY_OUT(error_set(error, STATUS_NO_MEMORY, "no memory for %zu roots", digests));
        }
        TRY_OUT(rank == 0 ? ranks_roots_find(findings[0], &ranks->roots, list, count, error)
                          : move_all(ranks, &heard, 1, error));
    }
    TRY_OUT(ranks_roots_join(found, &ranks->finite, &ranks->roots, list, count, findings, error));
    ranks->finite_known = true;
out:
    for (uint32_t rank = 0; rank < rank_count(ranks); rank++) {
        free(findings[rank]);
    }
    free(findings);
    return status;
}

/* The tensors whose roots must be found: not those that no step changes and that are known. */
static uint32_t list_unknown(uint32_t *list, const struct ranks_machine *ranks,
                             const uint32_t *tensors, uint32_t count)
{
    const struct tape *tape = ranks->machine.tape;
    uint32_t listed = 0;

    for (uint32_t i = 0; i < count; i++) {
        bool known = false;

        for (uint32_t s = 0; s < tape->state_count; s++) {
            known = known || (tape->states[s].before == tensors[i] && ranks->is_known[s]);
        }
        if (!known) {
            list[listed++] = tensors[i];
        }
    }
    return listed;
}

/* Notes the roots of states that no step changes, and fills in those that are known. */
static void note_roots(struct ranks_machine *ranks, struct digest *roots, const uint32_t *tensors,
                       uint32_t count, const struct digest *found, const uint32_t *list)
{
    const struct tape *tape = ranks->machine.tape;
    uint32_t next = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t state = 0;

        while (state < tape->state_count && tape->states[state].before != tensors[i]) {
            state++;
        }
        if (state < tape->state_count && ranks->is_known[state]) {
            roots[i] = ranks->known[state];
            continue;
        }
        assert(list[next] == tensors[i]);
        roots[i] = found[next++];
        if (state < tape->state_count && tape->states[state].after == tensors[i] && ranks->finite) {
            ranks->known[state] = roots[i];
            ranks->is_known[state] = true;
        }
    }
}

static enum status ranks_leaves_roots(struct machine *machine, struct digest *roots,
                                      const uint32_t *tensors, uint32_t count, struct error *error)
{
    struct ranks_machine *ranks = ranks_of(machine);
    uint32_t *list = malloc(((size_t)count + 1) * sizeof(*list));
    struct digest *found = malloc(((size_t)count + 1) * sizeof(*found));
    uint32_t listed;
    enum status status;

    assert(count <= machine->tape->state_count);
    if (list == NULL || found == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory to hash %u tensors", count);
        goto out;
    }
    listed = list_unknown(list, ranks, tensors, count);
    TRY_OUT(say_word(ranks, WORD_ROOTS, listed, error));
    TRY_OUT(say_all(ranks, TAG_LIST, list, listed * sizeof(*list), error));
    TRY_OUT(ranks_roots_deal(&ranks->roots, list, listed, error));
    TRY_OUT(gather_roots(ranks, found, list, listed, error));
    note_roots(ranks, roots, tensors, count, found, list);
out:
    free(list);
    free(found);
    return status;
}

/* All have looked at what they hold when they hash. */
static enum status ranks_diverged(struct machine *machine, bool *diverged, struct error *error)
{
    struct ranks_machine *ranks = ranks_of(machine);
    const struct tape *tape = machine->tape;
    uint32_t *ids = malloc(((size_t)tape->state_count + 1) * sizeof(*ids));
    struct digest *roots = malloc(((size_t)tape->state_count + 1) * sizeof(*roots));
    enum status status = STATUS_OK;

    if (ids == NULL || roots == NULL) {
        TRY_OUT(error_set(error, STATUS_NO_MEMORY, "no memory to look at %u states",
                          tape->state_count));
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        ids[i] = tape->states[i].before;
    }
    if (!ranks->finite_known) {
        TRY_OUT(ranks_leaves_roots(machine, roots, ids, tape->state_count, error));
    }
    *diverged = !ranks->finite;
out:
    free(ids);
    free(roots);
    return status;
}

/* ---- a checkpoint ----------------------------------------------------------------------- */

/* Rank 0 alone: what it does not hold comes to it, and it writes all. */
static enum status save_alone(struct machine *machine, const struct machine_save *save,
                              struct error *error)
{
    const struct tensor *tensors = machine->tape->tensors;
    uint64_t largest = 1;
    int file = -1;
    uint8_t *bytes;
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < save->count; i++) {
        const uint64_t size = tensor_size(&tensors[save->tensors[i]]);

        largest = size > largest ? size : largest;
    }
    bytes = malloc(largest);
    if (bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a state of %llu bytes",
                         (unsigned long long)largest);
    }
    TRY_OUT(ranks_save_open(&file, save->path, save->size, error));
    for (uint32_t i = 0; i < save->count; i++) {
        const uint32_t tensor = save->tensors[i];

        TRY_OUT(ranks_read(machine, tensor, bytes, error));
        TRY_OUT(whole_file_write_at(file, error, bytes, tensor_size(&tensors[tensor]),
                                    save->places[i], save->path));
    }
out:
    if (file >= 0 && close(file) != 0 && status == STATUS_OK) {
        status = error_set_errno(error, "cannot write '%s'", save->path);
    }
    free(bytes);
    return status;
}

static enum status ranks_save(struct machine *machine, const struct machine_save *save,
                              struct error *error)
{
    struct ranks_machine *ranks = ranks_of(machine);
    bool seen = false;
    enum status status;

    TRY(say_word(ranks, WORD_SAVE, save->count, error));
    status = ranks_save_lead(&seen, ranks->team, &ranks->roots, save, error);
    ranks->lost = status == STATUS_RANK_LOST;
    if (status != STATUS_OK || seen) {
        return status;
    }
    if (ranks->plan->tell != NULL && !ranks->told) {
        ranks->plan->tell(ranks->plan->context, error->text);
    }
    ranks->told = true;
    error_init(error);
    return save_alone(machine, save, error);
}

const struct backend backend_ranks = {
    .name = "ranks",
    .open = ranks_open,
    .close = ranks_close,
    .size = ranks_size,
    .write = ranks_write,
    .read = ranks_read,
    .bind = ranks_bind,
    .step = ranks_step,
    .peek = ranks_peek,
    .save = ranks_save,
    .diverged = ranks_diverged,
    .leaves_roots = ranks_leaves_roots,
};

/* ---- the other ranks -------------------------------------------------------------------- */

static enum status follow_roots(struct ranks_machine *ranks, uint32_t count, struct error *error)
{
    const struct tape *tape = ranks->machine.tape;
    struct ranks_transfer found = {.peer = 0, .tag = TAG_ROOTS, .sends = true};
    size_t digests;
    uint32_t *list;
    enum status status;

    if (count > tape->state_count) {
        return error_set(error, STATUS_RANK_LOST, "rank 0 speaks of %u states of %u", count,
                         tape->state_count);
    }
    list = malloc(((size_t)count + 1) * sizeof(*list));
    if (list == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of %u states", count);
    }
    TRY_OUT(hear_first(ranks, TAG_LIST, list, count * sizeof(*list), error));
    for (uint32_t i = 0; i < count; i++) {
        if (!is_state(&ranks->machine, list[i])) {
            TRY_OUT(error_set(error, STATUS_RANK_LOST, "rank 0 speaks of a state that is none"));
        }
    }
    TRY_OUT(ranks_roots_deal(&ranks->roots, list, count, error));
    digests = ranks_roots_count(&ranks->roots, list, count, ranks->team->link.rank);
    found.size = digests * sizeof(struct digest);
    found.bytes = malloc(found.size);
    if (found.bytes == NULL) {
        TRY_OUT(error_set(error, STATUS_NO_MEMORY, "no memory for %zu roots", digests));
    }
    TRY_OUT(ranks_roots_find(found.bytes, &ranks->roots, list, count, error));
    TRY_OUT(move_all(ranks, &found, 1, error));
out:
    free(found.bytes);
    free(list);
    return status;
}

/* Takes from rank 0 what this rank holds of a state, or sends it. */
static enum status follow_state(struct ranks_machine *ranks, const struct word *word,
                                struct error *error)
{
    const bool reads = word->kind == WORD_READ;
    struct held_range held;
    uint8_t *bytes;
    enum status status = STATUS_OK;

    if (!is_state(&ranks->machine, word->number)) {
        return error_set(error, STATUS_RANK_LOST, "rank 0 speaks of a state that is none");
    }
    held = range_of(ranks, word->number, ranks->team->link.rank);
    if (held.size == 0) {
        return STATUS_OK;
    }
    bytes = malloc(tensor_size(&ranks->machine.tape->tensors[word->number]));
    if (bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the state '%s'",
                         ranks->machine.tape->tensors[word->number].name);
    }
    if (reads) {
        TRY_OUT(read_own(ranks, word->number, bytes, error));
        TRY_OUT(move_all(ranks,
                         &(struct ranks_transfer){.peer = 0,
                                                  .tag = TAG_STATE,
                                                  .sends = true,
                                                  .bytes = bytes + held.first,
                                                  .size = held.size},
                         1, error));
    } else {
        TRY_OUT(hear_first(ranks, TAG_STATE, bytes + held.first, held.size, error));
        TRY_OUT(ranks_write(&ranks->machine, word->number, bytes, error));
    }
out:
    free(bytes);
    return status;
}

enum status ranks_machine_follow(struct machine *machine, struct error *error)
{
    struct ranks_machine *ranks = ranks_of(machine);
    struct word word = {0};

    for (;;) {
        TRY(hear_first(ranks, TAG_WORD, &word, sizeof(word), error));
        if (word.kind == WORD_END) {
            return STATUS_OK;
        }
        if (word.kind == WORD_STEP && ranks_cross_is_sound(&word.drawn, &ranks->step.plan)) {
            TRY(run_step(ranks, &word.drawn, error));
        } else if (word.kind == WORD_WRITE || word.kind == WORD_READ) {
            TRY(follow_state(ranks, &word, error));
        } else if (word.kind == WORD_ROOTS) {
            TRY(follow_roots(ranks, word.number, error));
        } else if (word.kind == WORD_SAVE) {
            TRY(ranks_save_follow(ranks->team, &ranks->roots, ranks->plan->folder, word.number,
                                  error));
        } else {
            return error_set(error, STATUS_RANK_LOST, "rank 0 says what this rank does not know");
        }
    }
}
