/* first_state.c - see first_state.h. */
#include "proofs/job/first_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/text.h"
#include "engine/models/graph/graph.h"
#include "engine/rules/rule.h"
#include "proofs/commit/commit.h"
#include "proofs/job/job_adapters.h"

static const char tied_head[] = "lm_head.weight";

enum {
    SHAPE_TEXT_MAX = 160,
    COMPARED = 65536, /* elements at a time */
};

/* ---- which tensor is which state ---------------------------------------- */

static bool is_state(const struct tape *tape, const char *name)
{
    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (strcmp(tape->tensors[tape->states[i].before].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_moment(const struct tape *tape, const char *name)
{
    return (name[0] == 'm' || name[0] == 'v') && name[1] == '.' && is_state(tape, name + 2);
}

/* States that a tape for inference computes (engine/models/model_writer.c). */
static bool is_answer(const char *name)
{
    return strcmp(name, "answers") == 0 || strcmp(name, "loss_sum") == 0;
}

/* What a training finds on held-out data (engine/models/held_out.c), and the sums of a job that
 * does nothing else (held_out_job.c); and of its gradients. */
static bool is_figure(const char *name)
{
    static const char *const names[] = {HELD_OUT_LOSS,           HELD_OUT_ACCURACY,
                                        HELD_OUT_LOSS_SO_FAR,    HELD_OUT_RIGHT_SO_FAR,
                                        HELD_OUT_TARGETS_SO_FAR, GRADIENT_NORMS};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* A part of an adapter: beside modules that are trained whole, and come from the file, it is drawn
 * by the tape's rule. */
static bool is_drawn(const struct tape *tape, uint32_t state)
{
    const char *name = tape->tensors[tape->states[state].before].name;

    return job_adapter_is_part(name) && tape->states[state].init.kind != INIT_NONE;
}

/* The seed of the tape's batches. */
static uint64_t seed_of(const struct tape *tape)
{
    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];

        if (op->kind == OP_BATCH_TOKENS || op->kind == OP_BATCH_ROWS) {
            return (uint64_t)op->attributes[BATCH_SEED_LOW] |
                   (uint64_t)op->attributes[BATCH_SEED_HIGH] << 32;
        }
    }
    return 0;
}

/* May the state begin as zeros? */
static bool may_miss(const struct tape *tape, const struct tensor *tensor)
{
    return tensor->dtype != DTYPE_F32 || is_moment(tape, tensor->name) || is_answer(tensor->name) ||
           is_figure(tensor->name);
}

bool first_state_is_of_training(const struct tape *tape, uint32_t state)
{
    const struct tensor *tensor = &tape->tensors[tape->states[state].before];
    bool real =
        tensor->dtype == DTYPE_F32 || tensor->dtype == DTYPE_F16 || tensor->dtype == DTYPE_BF16;

    return !is_answer(tensor->name) &&
           (!real || is_moment(tape, tensor->name) || is_figure(tensor->name));
}

bool first_state_is_parameter(const struct tape *tape, uint32_t state)
{
    const char *name = tape->tensors[tape->states[state].before].name;

    return !first_state_is_of_training(tape, state) && !is_answer(name);
}

/* Tensors that other programs save beside the parameters and that follow from them, and moments of
 * a training. */
static bool is_known_extra(const struct tape *tape, const char *name)
{
    static const char *const ends[] = {".attn.bias", ".attn.masked_bias", ".attention.bias",
                                       ".attention.masked_bias", "rotary_emb.inv_freq"};
    char plain[WEIGHTS_NAME_MAX + 1];

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (text_ends_with(name, ends[i])) {
            return true;
        }
    }
    if (strncmp(name, GRAPH_EXAMPLE, strlen(GRAPH_EXAMPLE)) == 0) {
        return true; /* the example of a graph */
    }
    weights_plain_name(plain, name);
    return is_moment(tape, name) || strcmp(plain, tied_head) == 0;
}

/* "F32 [768,2304]" */
static void describe_tensor(char text[SHAPE_TEXT_MAX], const struct safetensors_entry *entry)
{
    size_t size =
        (size_t)snprintf(text, SHAPE_TEXT_MAX, "%s [", element_safetensors_name(entry->element));

    for (uint32_t i = 0; i < entry->rank && size < SHAPE_TEXT_MAX - 1; i++) {
        size += (size_t)snprintf(text + size, SHAPE_TEXT_MAX - size, "%s%" PRIu64,
                                 i == 0 ? "" : ",", entry->dims[i]);
    }
    if (size < SHAPE_TEXT_MAX - 1) {
        (void)snprintf(text + size, SHAPE_TEXT_MAX - size, "]");
    }
}

static bool is_transpose(const struct safetensors_entry *entry,
                         const struct safetensors_entry *wanted)
{
    return entry->rank == 2 && wanted->rank == 2 && entry->dims[0] == wanted->dims[1] &&
           entry->dims[1] == wanted->dims[0];
}

static enum status check_shape(const struct tensor *tensor, const struct weights_entry *found,
                               struct error *error)
{
    const struct safetensors_entry *entry = found->entry;
    struct safetensors_entry widened = *entry;
    struct safetensors_entry wanted;
    char found_text[SHAPE_TEXT_MAX];
    char wanted_text[SHAPE_TEXT_MAX];
    bool same_shape;

    if (tensor->dtype == DTYPE_F32 && weights_widen(entry->element)) {
        widened.element = ELEMENT_F32;
    }
    if (safetensors_entry_fits(&widened, tensor)) {
        return STATUS_OK;
    }
    safetensors_describe(&wanted, tensor);
    describe_tensor(found_text, entry);
    describe_tensor(wanted_text, &wanted);
    same_shape = entry->rank == wanted.rank &&
                 memcmp(entry->dims, wanted.dims, entry->rank * sizeof(entry->dims[0])) == 0;
    (void)error_set(error, STATUS_BAD_FORMAT, "%s: '%s' is %s, and the model wants %s",
                    found->file->path, entry->name, found_text, wanted_text);
    if (same_shape) {
        error_advise(error, "save the file with this type: in PyTorch, tensor.float() gives F32");
    } else if (is_transpose(entry, &wanted)) {
        error_advise(error, "save the transpose, in PyTorch tensor.t().contiguous(), or give the "
                            "model the sizes of the file");
    } else {
        error_advise(error,
                     "give the model the sizes of the file: by the options of 'job new', or of a "
                     "base in config.json");
    }
    return STATUS_BAD_FORMAT;
}

static enum status say_missing(const char *path, const char *name, struct error *error)
{
    (void)error_set(error, STATUS_BAD_FORMAT, "%s: no tensor '%s'", path, name);
    if (strcmp(name, tied_head) == 0) {
        error_advise(error, "a folder whose head is the embedding says \"tie_word_embeddings\": "
                            "true in config.json");
    }
    return STATUS_BAD_FORMAT;
}

static enum status match_state(struct first_state *first, uint32_t state, bool *taken,
                               const char *path, struct error *error)
{
    const struct tape *tape = first->tape;
    const struct tensor *tensor = &tape->tensors[tape->states[state].before];
    const struct weights_entry *entry = weights_find_plain(&first->weights, tensor->name);

    if (entry == NULL) {
        return may_miss(tape, tensor) || is_drawn(tape, state)
                   ? STATUS_OK
                   : say_missing(path, tensor->name, error);
    }
    first->entries[state] = entry;
    taken[entry - first->weights.entries] = true;
    return check_shape(tensor, entry, error);
}

/* Do two tensors hold the same numbers? */
static enum status compare_tensors(bool *equal, const struct weights_entry *a,
                                   const struct weights_entry *b, struct error *error)
{
    uint64_t count = a->entry->size / element_size(a->entry->element);
    float *pieces = malloc(2 * sizeof(float) * COMPARED);
    enum status status = STATUS_OK;

    *equal = a->entry->rank == b->entry->rank &&
             memcmp(a->entry->dims, b->entry->dims, a->entry->rank * sizeof(uint64_t)) == 0 &&
             weights_widen(a->entry->element) && weights_widen(b->entry->element);
    if (pieces == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to compare '%s'", a->entry->name);
    }
    for (uint64_t at = 0; *equal && at < count; at += COMPARED) {
        uint64_t piece = count - at < COMPARED ? count - at : COMPARED;

        TRY_OUT(weights_read(pieces, a, at, piece, error));
        TRY_OUT(weights_read(pieces + COMPARED, b, at, piece, error));
        *equal = memcmp(pieces, pieces + COMPARED, piece * sizeof(float)) == 0;
    }
out:
    free(pieces);
    return status;
}

/* A head that is saved although the model has none of its own must be the embedding. */
static enum status check_tied_head(const struct weights *weights, struct error *error)
{
    const struct weights_entry *head = weights_find_plain(weights, tied_head);
    const struct weights_entry *embedding = weights_find_plain(weights, "wte.weight");
    bool equal = true;

    embedding =
        embedding == NULL ? weights_find_plain(weights, "model.embed_tokens.weight") : embedding;
    embedding =
        embedding == NULL ? weights_find_plain(weights, "word_embeddings.weight") : embedding;
    if (head == NULL || embedding == NULL) {
        return STATUS_OK;
    }
    TRY(compare_tensors(&equal, head, embedding, error));
    if (equal) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_REFUSED, "%s: '%s' is not '%s', to which the model ties its head",
                    head->file->path, tied_head, embedding->entry->name);
    error_advise(error, "remove it; or, where it is meant, say \"tie_word_embeddings\": false in "
                        "config.json");
    return STATUS_REFUSED;
}

/* Frozen weights may lie in the file of those that are trained. */
static bool is_data(const struct tape *tape, const char *name)
{
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_DATA && strcmp(tape->tensors[id].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* And the reverse. */
static bool is_plain_state(const struct tape *tape, const char *name)
{
    char plain[WEIGHTS_NAME_MAX + 1];

    weights_plain_name(plain, name);
    return is_state(tape, plain);
}

/* frozen: the tensors that were taken are data, and states come from the same files. */
static enum status check_rest(const struct weights *weights, const struct tape *tape,
                              const bool *taken, bool frozen, struct error *error)
{
    for (uint32_t i = 0; i < weights->entry_count; i++) {
        const struct weights_entry *extra = &weights->entries[i];

        if (!taken[i] && !is_known_extra(tape, extra->entry->name) &&
            !weights_is_beside(weights, extra->entry->name) && !is_data(tape, extra->entry->name) &&
            !(frozen && is_plain_state(tape, extra->entry->name))) {
            return error_set(error, STATUS_BAD_FORMAT, "%s: the model has no tensor '%s'",
                             extra->file->path, extra->entry->name);
        }
    }
    return STATUS_OK;
}

static enum status match_all(struct first_state *first, bool *taken, const char *path,
                             struct error *error)
{
    for (uint32_t i = 0; i < first->tape->state_count; i++) {
        TRY(match_state(first, i, taken, path, error));
    }
    TRY(check_rest(&first->weights, first->tape, taken, false, error));
    return is_state(first->tape, tied_head) || is_data(first->tape, tied_head)
               ? STATUS_OK
               : check_tied_head(&first->weights, error);
}

/* A folder of adapters has no model, which nobody may take for one but here. */
static enum status open_weights(struct weights *weights, const char *path, struct error *error)
{
    char model[FILE_PATH_MAX];
    char adapters[FILE_PATH_MAX];

    TRY(file_path_join(model, sizeof(model), error, path, "model.safetensors"));
    TRY(file_path_join(adapters, sizeof(adapters), error, path, WEIGHTS_ADAPTERS_NAME));
    return weights_open(weights, !file_exists(model) && file_exists(adapters) ? adapters : path,
                        error);
}

enum status first_state_open(struct first_state *first, const struct tape *tape, const char *path,
                             struct error *error)
{
    enum status status;
    bool *taken;

    *first = (struct first_state){.tape = tape};
    TRY(open_weights(&first->weights, path, error));
    first->entries = calloc((size_t)tape->state_count + 1, sizeof(void *));
    taken = calloc((size_t)first->weights.entry_count + 1, sizeof(*taken));
    status = first->entries == NULL || taken == NULL
                 ? error_set(error, STATUS_NO_MEMORY, "no memory for the states of %s", path)
                 : match_all(first, taken, path, error);
    free(taken);
    if (status != STATUS_OK) {
        first_state_close(first);
    }
    return status;
}

/* ---- weights under adapters ---------------------------------------------- */

static enum status check_finite(const struct weights_entry *entry, struct error *error)
{
    uint64_t count = entry->entry->size / element_size(entry->entry->element);
    float *piece = malloc(sizeof(*piece) * COMPARED);
    enum status status = STATUS_OK;

    if (piece == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to read '%s'", entry->entry->name);
    }
    for (uint64_t at = 0; at < count; at += COMPARED) {
        uint64_t taken = count - at < COMPARED ? count - at : COMPARED;

        TRY_OUT(weights_read(piece, entry, at, taken, error));
    }
out:
    free(piece);
    return status;
}

static enum status check_frozen(const struct weights *weights, const struct tape *tape,
                                const uint32_t *frozen, uint32_t count, bool *taken,
                                struct error *error)
{
    bool tied = !is_state(tape, tied_head); /* or it is trained whole */

    for (uint32_t i = 0; i < count; i++) {
        const struct tensor *tensor = &tape->tensors[frozen[i]];
        const struct weights_entry *entry = weights_find_plain(weights, tensor->name);

        if (entry == NULL) {
            return say_missing(weights->path, tensor->name, error);
        }
        TRY(check_shape(tensor, entry, error));
        TRY(check_finite(entry, error));
        taken[entry - weights->entries] = true;
        tied = tied && strcmp(tensor->name, tied_head) != 0;
    }
    TRY(check_rest(weights, tape, taken, true, error));
    return tied ? check_tied_head(weights, error) : STATUS_OK;
}

enum status first_state_check_frozen(const struct weights *weights, const struct tape *tape,
                                     const uint32_t *frozen, uint32_t count, struct error *error)
{
    bool *taken;
    enum status status;

    if (count == 0) {
        return STATUS_OK;
    }
    taken = calloc((size_t)weights->entry_count + 1, sizeof(*taken));
    status = taken == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory for the tensors of %s",
                                       weights->path)
                           : check_frozen(weights, tape, frozen, count, taken, error);
    free(taken);
    return status;
}

/* Who wrote the weights of a Llama. */
enum origin {
    ORIGIN_OURS, /* or no Llama */
    ORIGIN_OLD,  /* this program, under other rules */
    ORIGIN_FOREIGN,
};

static enum origin origin_of(const struct weights *weights)
{
    const struct safetensors *file = &weights->files[0];
    const char *rules = safetensors_metadata(file, "lockstep.rules");
    bool queries = false;
    bool gates = false; /* GLM, which pairs neighbours, has a joined layer in their place */

    for (uint32_t i = 0; i < weights->entry_count; i++) {
        const char *name = weights->entries[i].entry->name;

        queries = queries || text_ends_with(name, ".self_attn.q_proj.weight");
        gates = gates || text_ends_with(name, ".mlp.gate_proj.weight");
    }
    if (!queries || !gates) {
        return ORIGIN_OURS;
    }
    if (safetensors_metadata(file, "lockstep.job") == NULL) {
        return ORIGIN_FOREIGN;
    }
    return rules == NULL || strtoul(rules, NULL, 10) != RULES_VERSION ? ORIGIN_OLD : ORIGIN_OURS;
}

enum status first_state_check_origin(const struct tape *tape, const char *path, bool stated,
                                     struct error *error)
{
    struct weights weights;
    bool rotates = false;
    bool halves = true;
    enum origin origin;

    for (uint32_t i = 0; i < tape->op_count; i++) {
        if (tape->ops[i].kind == OP_ROTARY) {
            rotates = true;
            halves = halves && tape->ops[i].attributes[ROTARY_HALVES] != 0;
        }
    }
    if (!rotates || weights_open(&weights, path, NULL) != STATUS_OK) {
        return STATUS_OK; /* first_state_open() says what is wrong with the file */
    }
    origin = origin_of(&weights);
    weights_close(&weights);
    if (origin == ORIGIN_OLD) {
        return error_set(error, STATUS_REFUSED,
                         "%s: a Llama of other rules than version %d: its rotary pairs may be "
                         "others, and it would be another network",
                         path, RULES_VERSION);
    }
    if (origin == ORIGIN_FOREIGN && !halves) {
        return error_set(error, STATUS_REFUSED,
                         "%s: the weights of a Llama from another program: they pair the halves of "
                         "a head where this tape pairs neighbours, and it would be another network",
                         path);
    }
    if (origin == ORIGIN_FOREIGN && !stated) {
        (void)error_set(error, STATUS_REFUSED,
                        "%s: the weights of a Llama from another program: the file does not say "
                        "how it turns and norms, and with other numbers it would be another "
                        "network",
                        path);
        error_advise(error, "name its folder with --base, which reads config.json; or give "
                            "--rotary-base and --norm-epsilon as it has them (rope_theta, "
                            "rms_norm_eps), where it has no rope_scaling");
        return STATUS_REFUSED;
    }
    return STATUS_OK;
}

void first_state_close(struct first_state *first)
{
    weights_close(&first->weights);
    free(first->entries);
    *first = (struct first_state){0};
}

/* ---- reading ------------------------------------------------------------ */

enum status first_state_read(void *bytes, const struct first_state *first, uint32_t state,
                             struct error *error)
{
    const struct tensor *tensor = &first->tape->tensors[first->tape->states[state].before];
    const struct weights_entry *entry = first->entries[state];
    uint64_t size = commit_tensor_size(tensor);

    if (entry == NULL && is_drawn(first->tape, state)) {
        tape_first_value(bytes, first->tape, first->tape->states[state].before,
                         seed_of(first->tape));
        return STATUS_OK;
    }
    if (entry == NULL) {
        memset(bytes, 0, size);
        return STATUS_OK;
    }
    return tensor->dtype == DTYPE_F32
               ? weights_read(bytes, entry, 0, tensor->count, error)
               : safetensors_read(entry->file, error, bytes, entry->entry, size, 0);
}

static bool has_nonzero(const float *values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (values[i] != 0.0f) {
            return true;
        }
    }
    return false;
}

/* *nonzero becomes true where the tensor holds a binary32 other than zero. */
static enum status tensor_root(struct digest *root, bool *nonzero, const struct first_state *first,
                               uint32_t state, struct error *error)
{
    const struct tensor *tensor = &first->tape->tensors[first->tape->states[state].before];
    void *bytes = malloc(commit_tensor_size(tensor));
    enum status status;

    if (bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the state '%s'", tensor->name);
    }
    TRY_OUT(first_state_read(bytes, first, state, error));
    commit_tensor_root(root, COMMIT_TENSOR, tensor, bytes, 0);
    *nonzero = *nonzero || (tensor->dtype == DTYPE_F32 && has_nonzero(bytes, tensor->count));
out:
    free(bytes);
    return status;
}

enum status first_state_root(struct digest *root, const struct first_state *first,
                             struct error *error)
{
    const struct tape *tape = first->tape;
    struct commit_roots roots;
    const char *zero = NULL;
    bool nonzero = false;

    commit_roots_init(&roots, COMMIT_STATE, 0);
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const struct tensor *state = &tape->tensors[tape->states[i].before];
        struct digest item;

        TRY(tensor_root(&item, &nonzero, first, i, error));
        TRY(commit_roots_add(&roots, &item));
        zero = zero == NULL && state->dtype == DTYPE_F32 ? state->name : zero;
    }
    if (zero != NULL && !nonzero && tape->loss != TENSOR_NONE) {
        return error_set(error, STATUS_REFUSED,
                         "%s: every number is zero, from '%s' on: nothing would be trained",
                         first->weights.path, zero);
    }
    commit_roots_end(&roots, root);
    return STATUS_OK;
}
