/* module_shares.c - see module_shares.h. */
#include "proofs/run/module_shares.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/job/first_state.h"
#include "proofs/run/step_time.h"

#define NONE         UINT32_MAX
#define LOOKED_MOST  64    /* operations that touch a tensor, of which one is looked for */
#define SLOTS        16384 /* of names: more than there can be */
#define MODULES_MOST 4096  /* beside those in brackets */

/* What an operation is for. */
enum part {
    PART_BACK = 0, /* the reverse pass, and what else nothing is known of */
    PART_FORWARD,
    PART_UPDATE,
    PART_HELD_OUT,
};

struct share_finder {
    const struct job *job;
    const struct tape *tape; /* as it was written: one micro-batch */
    struct module_shares *shares;
    uint32_t room;
    uint32_t *slots;    /* the modules by a hash of their names */
    uint32_t *noted;    /* the module that notes give each tensor */
    uint32_t *maker;    /* the operation that makes each tensor */
    uint8_t *part;      /* of each operation */
    uint32_t *module;   /* likewise */
    uint32_t *touching; /* for each tensor, the forward operations that read or make it, rising */
    uint32_t *first;    /* where those of a tensor begin; one more than tensors */
    uint8_t *marks;     /* of each tensor, while marks are handed on */
};

/* ---- names ------------------------------------------------------------------ */

static uint32_t hash_name(const char *name)
{
    uint32_t hash = 2166136261U;

    for (; *name != '\0'; name++) {
        hash = (hash ^ (uint8_t)*name) * 16777619U;
    }
    return hash;
}

/* The module of that name, which is added where it is new. More than any program has, or no
 * memory: NONE. */
static uint32_t find_module(struct share_finder *finder, const char *name)
{
    struct module_shares *shares = finder->shares;
    uint32_t slot = hash_name(name) % SLOTS;

    while (finder->slots[slot] != NONE) {
        if (strcmp(shares->modules[finder->slots[slot]].name, name) == 0) {
            return finder->slots[slot];
        }
        slot = (slot + 1) % SLOTS;
    }
    if (shares->count >= MODULES_MOST && name[0] != '(') {
        return NONE;
    }
    if (shares->count == finder->room) {
        const uint32_t room = 2 * finder->room + 64;
        void *larger = realloc(shares->modules, room * sizeof(*shares->modules));

        if (larger == NULL) {
            return NONE;
        }
        shares->modules = larger;
        finder->room = room;
    }
    shares->modules[shares->count] = (struct module_share){.work = 0.0};
    (void)snprintf(shares->modules[shares->count].name, sizeof(shares->modules[0].name), "%s",
                   name);
    finder->slots[slot] = shares->count;
    return shares->count++;
}

/* All of the name before its last dot; a name without one is a module of its own. */
static uint32_t module_of_name(struct share_finder *finder, const char *name)
{
    const char *dot = strrchr(name, '.');
    char module[TENSOR_NAME_MAX + 1];

    (void)snprintf(module, sizeof(module), "%.*s",
                   dot == NULL || dot == name ? (int)strlen(name) : (int)(dot - name), name);
    return find_module(finder, module);
}

/* ---- weights ---------------------------------------------------------------- */

static bool is_real(enum dtype dtype)
{
    return dtype == DTYPE_F32 || dtype == DTYPE_F16 || dtype == DTYPE_BF16;
}

static bool is_batch_kind(enum op_kind kind)
{
    return kind == OP_BATCH_TOKENS || kind == OP_BATCH_SAMPLES || kind == OP_BATCH_ROWS;
}

/* Marks the tensors that batches are drawn from. */
static void mark_drawn(struct share_finder *finder)
{
    for (uint32_t at = 0; at < finder->tape->op_count; at++) {
        if (is_batch_kind(finder->tape->ops[at].kind)) {
            finder->marks[finder->tape->ops[at].inputs[0]] = 1;
        }
    }
}

static void take_weights(struct share_finder *finder)
{
    const struct tape *tape = finder->tape;
    uint32_t *of_tensor = finder->shares->of_tensor;

    mark_drawn(finder);
    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (first_state_is_parameter(tape, i)) {
            finder->marks[tape->states[i].before] = 2;
        }
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct tensor *tensor = &tape->tensors[id];
        const bool frozen =
            tensor->role == ROLE_DATA && is_real(tensor->dtype) && finder->marks[id] == 0;

        if (!frozen && finder->marks[id] != 2) {
            continue;
        }
        of_tensor[id] = module_of_name(finder, tensor->name);
        if (of_tensor[id] != NONE) {
            struct module_share *module = &finder->shares->modules[of_tensor[id]];

            module->frozen += frozen ? tensor->count : 0;
            module->parameters += frozen ? 0 : tensor->count;
        }
    }
}

/* ---- parts ------------------------------------------------------------------- */

/* Hands the marks of tensors on to what is made of them, as the tape goes. */
static void hand_on(struct share_finder *finder, enum part part)
{
    const struct tape *tape = finder->tape;

    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];
        bool marked =
            part == PART_UPDATE && (op->kind == OP_SCHEDULE || op->kind == OP_CLIP_FACTOR ||
                                    op->kind == OP_ADAMW || op->kind == OP_SGD);

        for (uint32_t i = 0; i < op->input_count; i++) {
            marked = marked || finder->marks[op->inputs[i]] != 0;
        }
        if (!marked) {
            continue;
        }
        finder->part[at] = (uint8_t)part;
        for (uint32_t i = 0; i < op->output_count; i++) {
            finder->marks[op->outputs[i]] = 1;
        }
    }
}

/* What the loss is made of. */
static void mark_forward(struct share_finder *finder)
{
    const struct tape *tape = finder->tape;

    memset(finder->marks, 0, tape->tensor_count);
    finder->marks[tape->loss] = 1;
    for (uint32_t at = tape->op_count; at > 0; at--) {
        const struct op *op = &tape->ops[at - 1];
        bool needed = false;

        for (uint32_t i = 0; i < op->output_count; i++) {
            needed = needed || finder->marks[op->outputs[i]] != 0;
        }
        for (uint32_t i = 0; needed && i < op->input_count; i++) {
            finder->marks[op->inputs[i]] = 1;
        }
        finder->part[at - 1] = needed ? PART_FORWARD : PART_BACK;
    }
}

static void mark_parts(struct share_finder *finder)
{
    const struct tape *tape = finder->tape;

    if (tape->loss == TENSOR_NONE) {
        memset(finder->part, PART_FORWARD, tape->op_count);
        return;
    }
    mark_forward(finder);
    memset(finder->marks, 0, tape->tensor_count);
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const uint32_t before = tape->states[i].before;

        finder->marks[before] =
            first_state_is_of_training(tape, i) && tape->tensors[before].dtype == DTYPE_F32;
    }
    hand_on(finder, PART_UPDATE);
    memset(finder->marks, 0, tape->tensor_count);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        finder->marks[id] = tape->tensors[id].role == ROLE_DATA &&
                            strncmp(tape->tensors[id].name, "held_out.", 9) == 0;
    }
    hand_on(finder, PART_HELD_OUT);
}

/* ---- forward ------------------------------------------------------------------- */

/* The module whose weights an operation reads, itself or quantized. */
static uint32_t module_read(const struct share_finder *finder, const struct op *op)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint32_t input = op->inputs[i];
        const uint32_t maker = finder->maker[input];

        if (finder->shares->of_tensor[input] != NONE) {
            return finder->shares->of_tensor[input];
        }
        if (maker != NONE && finder->tape->ops[maker].kind == OP_QUANTIZE &&
            finder->shares->of_tensor[finder->tape->ops[maker].inputs[0]] != NONE) {
            return finder->shares->of_tensor[finder->tape->ops[maker].inputs[0]];
        }
    }
    return NONE;
}

/* What reads the weights of a module is of it, with what is quantized for that alone; the rest is
 * of the module before. */
static void take_forward(struct share_finder *finder)
{
    uint32_t last = NONE;

    for (uint32_t at = 0; at < finder->tape->op_count; at++) {
        if (finder->part[at] == PART_FORWARD) {
            const uint32_t read = module_read(finder, &finder->tape->ops[at]);

            last = read == NONE ? last : read;
            finder->module[at] = last;
        }
    }
}

/* The notes say it of the tensors that operations make. These do not rise from operation to
 * operation: what a step begins with once stands before its micro-batches. */
static void take_notes(struct share_finder *finder)
{
    const char *notes = finder->job->notes;
    struct job_note note;
    uint32_t id = 0;
    uint32_t module = NONE;
    bool more;

    do {
        more = job_notes_next(&note, &notes);
        const uint32_t count = finder->tape->tensor_count;
        const uint32_t end = more && note.tensor < count ? note.tensor : count;

        for (; id < end; id++) {
            finder->noted[id] = module;
        }
        if (!more || note.kind == JOB_NOTE_AT || note.kind == JOB_NOTE_END) {
            module = more && note.kind == JOB_NOTE_AT ? find_module(finder, note.module) : NONE;
        }
    } while (more);
    for (uint32_t at = 0; at < finder->tape->op_count; at++) {
        module = finder->noted[finder->tape->ops[at].outputs[0]];
        if (module != NONE && finder->part[at] != PART_HELD_OUT) {
            finder->module[at] = module;
            finder->part[at] = PART_FORWARD;
        }
    }
}

/* ---- back ------------------------------------------------------------------------ */

/* Calls count or note for each tensor that a forward operation reads or makes. What is quantized
 * for it alone counts as read by it. */
static void visit_op(struct share_finder *finder, uint32_t at, uint32_t *fill)
{
    const struct op *op = &finder->tape->ops[at];

    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        uint32_t id = i < op->input_count ? op->inputs[i] : op->outputs[i - op->input_count];

        for (int deep = 0; deep < 2; deep++) {
            const uint32_t maker = finder->maker[id];

            if (fill == NULL) {
                finder->first[id + 1]++;
            } else if (fill[id] < finder->first[id + 1]) {
                finder->touching[fill[id]++] = at;
            }
            if (i >= op->input_count || maker == NONE ||
                finder->tape->ops[maker].kind != OP_QUANTIZE) {
                break;
            }
            id = finder->tape->ops[maker].inputs[0];
        }
    }
}

static enum status list_touching(struct share_finder *finder, struct error *error)
{
    const struct tape *tape = finder->tape;
    uint32_t *fill;

    for (int pass = 0; pass < 2; pass++) {
        fill = NULL;
        if (pass == 1) {
            for (uint32_t id = 0; id < tape->tensor_count; id++) {
                finder->first[id + 1] += finder->first[id];
            }
            finder->touching =
                calloc((size_t)finder->first[tape->tensor_count] + 1, sizeof(*finder->touching));
            fill = malloc(((size_t)tape->tensor_count + 1) * sizeof(*fill));
            if (finder->touching == NULL || fill == NULL) {
                free(fill);
                return error_set(error, STATUS_NO_MEMORY, "no memory for the modules of a job");
            }
            memcpy(fill, finder->first, ((size_t)tape->tensor_count + 1) * sizeof(*fill));
        }
        for (uint32_t at = 0; at < tape->op_count; at++) {
            if (finder->part[at] == PART_FORWARD && tape->ops[at].kind != OP_QUANTIZE) {
                visit_op(finder, at, fill);
            }
        }
        free(fill);
    }
    return STATUS_OK;
}

static bool op_touches(const struct share_finder *finder, uint32_t at, uint32_t id)
{
    const uint32_t first = finder->first[id];
    const uint32_t end = finder->first[id + 1];

    for (uint32_t i = end; i > first && end - i < LOOKED_MOST; i--) {
        if (finder->touching[i - 1] == at) {
            return true;
        }
    }
    return false;
}

/* The last forward operation up to `from` that touches all that is touched of the inputs. */
static uint32_t find_touching(const struct share_finder *finder, const struct op *op, uint32_t from)
{
    uint32_t found = NONE;
    uint32_t rarest = NONE;

    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint32_t id = op->inputs[i];
        const uint32_t count = finder->first[id + 1] - finder->first[id];

        if (count > 0 &&
            (rarest == NONE || count < finder->first[rarest + 1] - finder->first[rarest])) {
            rarest = id;
        }
    }
    if (rarest == NONE) {
        return from;
    }
    const uint32_t end = finder->first[rarest + 1];

    for (uint32_t i = end; i > finder->first[rarest] && end - i < LOOKED_MOST; i--) {
        const uint32_t at = finder->touching[i - 1];
        bool all = at <= from;

        for (uint32_t input = 0; all && input < op->input_count; input++) {
            const uint32_t id = op->inputs[input];

            all = finder->first[id] == finder->first[id + 1] || op_touches(finder, at, id);
        }
        if (all) {
            return at;
        }
        found = found == NONE ? at : found;
    }
    return found;
}

/* The reverse pass goes back through the forward one: an operation of it is of the one that it
 * reads something of, or of the one before. */
static void take_back(struct share_finder *finder)
{
    const struct tape *tape = finder->tape;
    uint32_t current = NONE;

    for (uint32_t at = 0; at < tape->op_count; at++) {
        current = finder->part[at] == PART_FORWARD ? at : current;
    }
    for (uint32_t at = 0; at < tape->op_count && current != NONE; at++) {
        if (finder->part[at] == PART_BACK) {
            current = find_touching(finder, &tape->ops[at], current);
            finder->module[at] = finder->module[current];
        }
    }
}

/* ---- the sums -------------------------------------------------------------------- */

static double work_of(const struct tape *tape, uint32_t at)
{
    const struct op *op = &tape->ops[at];
    double work = step_time_op_products(op);
    const struct repeat *repeat = &tape->repeat;

    if (work == 0.0) {
        for (uint32_t i = 0; i < op->output_count; i++) {
            work += (double)tape->tensors[op->outputs[i]].count;
        }
        for (uint32_t i = 0; i < op->input_count; i++) {
            const double read = (double)tape->tensors[op->inputs[i]].count;

            work = op->kind == OP_ROW_SUM || op->kind == OP_REDUCE ? work + read : work;
        }
    }
    return at >= repeat->first && at - repeat->first < repeat->op_count
               ? work * (double)repeat->times
               : work;
}

static void add_work(struct share_finder *finder)
{
    static const char *const names[] = {
        [PART_BACK] = MODULE_NONE,
        [PART_FORWARD] = MODULE_NONE,
        [PART_UPDATE] = MODULE_UPDATE,
        [PART_HELD_OUT] = MODULE_HELD_OUT,
    };

    for (uint32_t at = 0; at < finder->tape->op_count; at++) {
        const enum part part = (enum part)finder->part[at];
        uint32_t module = finder->module[at];
        const double work = work_of(finder->tape, at);

        if (part == PART_UPDATE || part == PART_HELD_OUT || module == NONE) {
            module = find_module(finder, names[part]);
        }
        finder->shares->work += work;
        if (module != NONE) {
            finder->shares->modules[module].work += work;
        }
    }
}

/* ---- the whole --------------------------------------------------------------------- */

static enum status begin_finder(struct share_finder *finder, struct error *error)
{
    const size_t tensors = (size_t)finder->tape->tensor_count + 2;
    const size_t ops = (size_t)finder->tape->op_count + 1;

    finder->shares->of_tensor = malloc(tensors * sizeof(uint32_t));
    finder->slots = malloc(SLOTS * sizeof(uint32_t));
    finder->maker = malloc(tensors * sizeof(uint32_t));
    finder->noted = malloc(tensors * sizeof(uint32_t));
    finder->first = calloc(tensors, sizeof(uint32_t));
    finder->marks = calloc(tensors, 1);
    finder->part = calloc(ops, 1);
    finder->module = malloc(ops * sizeof(uint32_t));
    if (finder->shares->of_tensor == NULL || finder->slots == NULL || finder->maker == NULL ||
        finder->noted == NULL || finder->first == NULL || finder->marks == NULL ||
        finder->part == NULL || finder->module == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the modules of a job");
    }
    memset(finder->shares->of_tensor, 0xff, tensors * sizeof(uint32_t));
    memset(finder->slots, 0xff, SLOTS * sizeof(uint32_t));
    memset(finder->maker, 0xff, tensors * sizeof(uint32_t));
    memset(finder->module, 0xff, ops * sizeof(uint32_t));
    for (uint32_t at = 0; at < finder->tape->op_count; at++) {
        for (uint32_t i = 0; i < finder->tape->ops[at].output_count; i++) {
            finder->maker[finder->tape->ops[at].outputs[i]] = at;
        }
    }
    return STATUS_OK;
}

static void end_finder(struct share_finder *finder)
{
    free(finder->slots);
    free(finder->maker);
    free(finder->noted);
    free(finder->first);
    free(finder->marks);
    free(finder->part);
    free(finder->module);
    free(finder->touching);
}

enum status module_shares_find(struct module_shares *shares, const struct job *job,
                               struct error *error)
{
    struct share_finder finder = {.job = job,
                                  .tape = job->tape->brief != NULL ? job->tape->brief : job->tape,
                                  .shares = shares};
    enum status status;

    *shares = (struct module_shares){.count = 0};
    TRY_OUT(begin_finder(&finder, error));
    take_weights(&finder);
    mark_parts(&finder);
    take_forward(&finder);
    take_notes(&finder);
    TRY_OUT(list_touching(&finder, error));
    take_back(&finder);
    add_work(&finder);
out:
    end_finder(&finder);
    if (status != STATUS_OK) {
        module_shares_release(shares);
    }
    return status;
}

void module_shares_release(struct module_shares *shares)
{
    free(shares->modules);
    free(shares->of_tensor);
    *shares = (struct module_shares){.count = 0};
}

/* ---- fewer ---------------------------------------------------------------------------- */

/* The letters of a name's first parts. */
static size_t cut_length(const char *name, uint32_t parts)
{
    const char *at = name;

    for (uint32_t i = 0; i < parts; i++) {
        at = strchr(at + (i > 0), '.');
        if (at == NULL) {
            return strlen(name);
        }
    }
    return (size_t)(at - name);
}

/* Modules with the same first parts stand together or apart; either way they are joined. */
static uint32_t join_modules(struct module_shares *shares, uint32_t parts, bool change)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < shares->count; i++) {
        const struct module_share *module = &shares->modules[i];
        const size_t length = cut_length(module->name, parts);
        uint32_t before = 0;

        while (before < (change ? count : i) &&
               (cut_length(shares->modules[before].name, parts) != length ||
                strncmp(shares->modules[before].name, module->name, length) != 0)) {
            before++;
        }
        if (!change) {
            count += before == i;
            continue;
        }
        if (before < count) {
            shares->modules[before].parameters += module->parameters;
            shares->modules[before].frozen += module->frozen;
            shares->modules[before].work += module->work;
        } else {
            shares->modules[count] = *module;
            shares->modules[count++].name[length] = '\0';
        }
    }
    return count;
}

void module_shares_fold(struct module_shares *shares, uint32_t most)
{
    uint32_t parts = 8;

    free(shares->of_tensor);
    shares->of_tensor = NULL;
    if (shares->count <= most) {
        return;
    }
    while (parts > 1 && join_modules(shares, parts, false) > most) {
        parts--;
    }
    shares->count = join_modules(shares, parts, true);
}
