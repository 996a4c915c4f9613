/* ranks_machine.c - see ranks_machine.h. */
#include "prover/ranks/ranks_machine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/steady.h"
#include "engine/ranks/rank_step.h"
#include "proofs/commit/element.h"
#include "proofs/hash/merkle.h"
#include "prover/ranks/ranks_agree.h"
#include "prover/ranks/ranks_cross.h"

/* Tags beside those of the sums. */
enum {
    TAG_WORD = 0x10,
    TAG_LIST,
    TAG_STATE,
    TAG_ROOTS,
};

enum word_kind {
    WORD_STEP = 1,
    WORD_STATES, /* so many states follow, behind the list of their ids */
    WORD_ROOTS,  /* so many tensors are hashed: their list follows */
    WORD_END,
};

struct word {
    uint32_t kind;
    uint32_t count;
    struct ranks_drawn drawn; /* of a step */
};

struct ranks_machine {
    struct machine machine;
    struct ranks_team *team;
    struct machine_options own;
    uint64_t cross_check; /* as in the plan */
    struct rank_step step;
    const void **data;       /* per tensor: what is bound */
    bool *written;           /* per state: other ranks do not have it yet */
    struct digest *known;    /* per state that no step changes: the root of its leaves */
    bool *is_known;          /* per state */
    uint32_t *owners;        /* per tensor that is hashed */
    uint64_t *sizes;         /* likewise */
    struct digest *findings; /* a rank's roots, and at the end whether its states are finite */
    bool finite;             /* as the last hash found */
    bool finite_known;       /* of the states as they are now */
    bool lost;               /* the ranks are not at one place any more */
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

/* ---- its life ---------------------------------------------------------------------------- */

static enum status say_word(struct ranks_machine *ranks, enum word_kind kind, uint32_t count,
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
    free(ranks->data);
    free(ranks->written);
    free(ranks->known);
    free(ranks->is_known);
    free(ranks->owners);
    free(ranks->sizes);
    free(ranks->findings);
    free(ranks);
}

static enum status open_all(struct ranks_machine *ranks, const struct tape *tape,
                            struct error *error)
{
    const size_t states = (size_t)tape->state_count + 1;

    ranks->data = calloc((size_t)tape->tensor_count + 1, sizeof(*ranks->data));
    ranks->written = calloc(states, sizeof(*ranks->written));
    ranks->known = calloc(states, sizeof(*ranks->known));
    ranks->is_known = calloc(states, sizeof(*ranks->is_known));
    ranks->owners = calloc(states, sizeof(*ranks->owners));
    ranks->sizes = calloc(states, sizeof(*ranks->sizes));
    ranks->findings = calloc(states, sizeof(*ranks->findings));
    if (ranks->data == NULL || ranks->written == NULL || ranks->known == NULL ||
        ranks->is_known == NULL || ranks->owners == NULL || ranks->sizes == NULL ||
        ranks->findings == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a machine");
    }
    return rank_step_open(&ranks->step, tape, &ranks->own, &ranks->team->link, error);
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
    ranks->cross_check = plan->cross_check;
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

/* ---- what is said ------------------------------------------------------------------------ */

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

static enum status say_word(struct ranks_machine *ranks, enum word_kind kind, uint32_t count,
                            struct error *error)
{
    const struct word word = {.kind = (uint32_t)kind, .count = count};

    return say_all(ranks, TAG_WORD, &word, sizeof(word), error);
}

static enum status hear_first(struct ranks_machine *ranks, uint32_t tag, void *bytes, size_t size,
                              struct error *error)
{
    const struct ranks_transfer heard = {
        .peer = 0, .tag = tag, .idle = tag == TAG_WORD, .bytes = bytes, .size = size};

    return move_all(ranks, &heard, 1, error);
}

/* ---- tensors ----------------------------------------------------------------------------- */

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
            ranks->written[i] = true;
            ranks->is_known[i] = false;
        }
    }
}

static enum status ranks_write(struct machine *machine, uint32_t tensor, const void *bytes,
                               struct error *error)
{
    struct ranks_machine *ranks = ranks_of(machine);
    struct machine *inner = inner_of(ranks);

    if (tensor >= machine->tape->tensor_count ||
        role_is_made(machine->tape->tensors[tensor].role)) {
        return error_set(error, STATUS_USAGE, "tensor %u cannot be written", tensor);
    }
    note_write(ranks, tensor);
    return inner->backend->write(inner, ranks->step.own.ids[tensor], bytes, error);
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
    struct machine *inner = inner_of(ranks);

    if (!can_be_read(machine, tensor)) {
        return error_set(error, STATUS_USAGE, "tensor %u cannot be read", tensor);
    }
    return inner->backend->read(inner, ranks->step.own.ids[tensor], bytes, error);
}

static const void *ranks_peek(struct machine *machine, uint32_t tensor)
{
    struct ranks_machine *ranks = ranks_of(machine);
    struct machine *inner = inner_of(ranks);

    return can_be_read(machine, tensor) ? inner->backend->peek(inner, ranks->step.own.ids[tensor])
                                        : NULL;
}

/* ---- states that rank 0 wrote ------------------------------------------------------------ */

/* Sends the states of the list, or takes them, each through the host. */
static enum status move_states(struct ranks_machine *ranks, const uint32_t *list, uint32_t count,
                               struct error *error)
{
    const struct tape *tape = ranks->machine.tape;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t id = tape->states[list[i]].before;
        const size_t size = tensor_size(&tape->tensors[id]);
        void *bytes = malloc(size + 1);
        enum status status;

        if (bytes == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for the state '%s'",
                             tape->tensors[id].name);
        }
        if (ranks->team->link.rank == 0) {
            status = ranks_read(&ranks->machine, id, bytes, error);
            status = status == STATUS_OK ? say_all(ranks, TAG_STATE, bytes, size, error) : status;
        } else {
            status = hear_first(ranks, TAG_STATE, bytes, size, error);
            status = status == STATUS_OK ? ranks_write(&ranks->machine, id, bytes, error) : status;
        }
        free(bytes);
        TRY(status);
    }
    return STATUS_OK;
}

static enum status send_written(struct ranks_machine *ranks, struct error *error)
{
    const uint32_t states = ranks->machine.tape->state_count;
    uint32_t *list = malloc(((size_t)states + 1) * sizeof(*list));
    uint32_t count = 0;
    enum status status = STATUS_OK;

    if (list == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of %u states", states);
    }
    for (uint32_t i = 0; i < states; i++) {
        if (ranks->written[i]) {
            list[count++] = i;
        }
    }
    if (count > 0) {
        TRY_OUT(say_word(ranks, WORD_STATES, count, error));
        TRY_OUT(say_all(ranks, TAG_LIST, list, count * sizeof(*list), error));
        TRY_OUT(move_states(ranks, list, count, error));
        memset(ranks->written, 0, states * sizeof(*ranks->written));
    }
out:
    free(list);
    return status;
}

/* ---- a step ------------------------------------------------------------------------------ */

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
    TRY(send_written(ranks, error));
    TRY(ranks_cross_draw(&word.drawn, ranks->team, &ranks->step.plan, ranks->cross_check, error));
    TRY(say_all(ranks, TAG_WORD, &word, sizeof(word), error));
    return run_step(ranks, &word.drawn, error);
}

/* ---- roots ------------------------------------------------------------------------------- */

/* Hashes the tensors of the list that this rank owns, into its findings. */
static enum status hash_own(struct ranks_machine *ranks, const uint32_t *list, uint32_t count,
                            struct error *error)
{
    struct machine *inner = inner_of(ranks);
    const struct tape *tape = ranks->machine.tape;
    bool finite = true;
    uint32_t found = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct tensor *tensor = &tape->tensors[list[i]];
        const uint32_t id = ranks->step.own.ids[list[i]];
        struct merkle_leaves leaves;
        const void *bytes;

        if (ranks->owners[i] != ranks->team->link.rank) {
            continue;
        }
        if (inner->backend->leaves_roots != NULL) {
            TRY(inner->backend->leaves_roots(inner, &ranks->findings[found++], &id, 1, error));
            continue;
        }
        bytes = inner->backend->peek(inner, id);
        merkle_leaves_init_bytes(&leaves, bytes, tensor_size(tensor));
        leaves.threads = ranks->own.thread_count;
        merkle_root(&ranks->findings[found++], &leaves);
        finite = finite && (tensor->dtype != DTYPE_F32 || element_all_finite(bytes, tensor->count));
    }
    if (inner->backend->leaves_roots != NULL) {
        bool diverged = true;

        TRY(inner->backend->diverged(inner, &diverged, error));
        finite = !diverged;
    }
    memset(&ranks->findings[found], finite ? 1 : 0, sizeof(ranks->findings[found]));
    return STATUS_OK;
}

static enum status deal_list(struct ranks_machine *ranks, const uint32_t *list, uint32_t count,
                             struct error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        ranks->sizes[i] = tensor_size(&ranks->machine.tape->tensors[list[i]]);
    }
    return ranks_deal(ranks->owners, ranks->sizes, count, rank_count(ranks), error);
}

static uint32_t owned_by(const struct ranks_machine *ranks, uint32_t count, uint32_t rank)
{
    uint32_t owned = 0;

    for (uint32_t i = 0; i < count; i++) {
        owned += ranks->owners[i] == rank;
    }
    return owned;
}

/* Rank 0 gathers what each has found: roots in the order of the list. */
static enum status gather_roots(struct ranks_machine *ranks, struct digest *roots, uint32_t count,
                                struct error *error)
{
    ranks->finite = true;
    for (uint32_t rank = 0; rank < rank_count(ranks); rank++) {
        const uint32_t owned = owned_by(ranks, count, rank);
        const struct ranks_transfer heard = {.peer = rank,
                                             .tag = TAG_ROOTS,
                                             .bytes = ranks->findings,
                                             .size = (owned + (size_t)1) * sizeof(struct digest)};
        uint32_t next = 0;

        if (rank > 0) {
            TRY(move_all(ranks, &heard, 1, error));
        }
        for (uint32_t i = 0; i < count; i++) {
            if (ranks->owners[i] == rank) {
                roots[i] = ranks->findings[next++];
            }
        }
        ranks->finite = ranks->finite && ranks->findings[owned].bytes[0] == 1;
    }
    ranks->finite_known = true;
    return STATUS_OK;
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
    TRY_OUT(send_written(ranks, error));
    TRY_OUT(say_word(ranks, WORD_ROOTS, listed, error));
    TRY_OUT(say_all(ranks, TAG_LIST, list, listed * sizeof(*list), error));
    TRY_OUT(deal_list(ranks, list, listed, error));
    TRY_OUT(hash_own(ranks, list, listed, error));
    TRY_OUT(gather_roots(ranks, found, listed, error));
    note_roots(ranks, roots, tensors, count, found, list);
out:
    free(list);
    free(found);
    return status;
}

static enum status ranks_diverged(struct machine *machine, bool *diverged, struct error *error)
{
    struct ranks_machine *ranks = ranks_of(machine);
    struct machine *inner = inner_of(ranks);

    if (ranks->finite_known) {
        *diverged = !ranks->finite;
        return STATUS_OK;
    }
    return inner->backend->diverged(inner, diverged, error);
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
    .diverged = ranks_diverged,
    .leaves_roots = ranks_leaves_roots,
};

/* ---- the other ranks --------------------------------------------------------------------- */

static enum status follow_list(struct ranks_machine *ranks, const struct word *word,
                               struct error *error)
{
    const struct tape *tape = ranks->machine.tape;
    const bool states = word->kind == WORD_STATES;
    const uint32_t below = states ? tape->state_count : tape->tensor_count;
    const struct ranks_transfer said = {.peer = 0, .tag = TAG_ROOTS, .sends = true};
    struct ranks_transfer roots = said;
    uint32_t *list;
    enum status status;

    if (word->count > tape->state_count) {
        return error_set(error, STATUS_RANK_LOST, "rank 0 speaks of %u states of %u", word->count,
                         tape->state_count);
    }
    list = malloc(((size_t)word->count + 1) * sizeof(*list));
    if (list == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a list of %u states", word->count);
    }
    TRY_OUT(hear_first(ranks, TAG_LIST, list, word->count * sizeof(*list), error));
    for (uint32_t i = 0; i < word->count; i++) {
        if (list[i] >= below || (!states && role_is_made(tape->tensors[list[i]].role))) {
            TRY_OUT(error_set(error, STATUS_RANK_LOST, "rank 0 speaks of a state that is none"));
        }
    }
    if (states) {
        TRY_OUT(move_states(ranks, list, word->count, error));
    } else {
        TRY_OUT(deal_list(ranks, list, word->count, error));
        TRY_OUT(hash_own(ranks, list, word->count, error));
        roots.bytes = ranks->findings;
        roots.size = (owned_by(ranks, word->count, ranks->team->link.rank) + (size_t)1) *
                     sizeof(struct digest);
        TRY_OUT(move_all(ranks, &roots, 1, error));
    }
out:
    free(list);
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
        } else if (word.kind == WORD_STATES || word.kind == WORD_ROOTS) {
            TRY(follow_list(ranks, &word, error));
        } else {
            return error_set(error, STATUS_RANK_LOST, "rank 0 says what this rank does not know");
        }
    }
}
