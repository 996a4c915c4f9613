/* first_state.c - see first_state.h. */
#include "proofs/job/first_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/endian.h"
#include "engine/rules/rule.h"
#include "proofs/commit/commit.h"

static const char prefix[] = "transformer.";

enum {
    SHAPE_TEXT_MAX = 160,
    BEGINNING_SIZE = 16, /* of a file, to tell what it is */
};

/* ---- files of other kinds ------------------------------------------------ */

static const struct {
    const char *bytes;
    size_t size;
    const char *what;
    const char *convert; /* a program of Python; NULL: there is no short one */
} kinds[] = {
#define PYTORCH                                                                                    \
    "import sys, torch; from safetensors.torch import save_file; save_file({k: v.float()."         \
    "contiguous().clone() for k, v in torch.load(sys.argv[1], map_location=\"cpu\", "              \
    "weights_only=True).items()}, sys.argv[2])"
    {"PK\003\004", 4, "a zip archive, as PyTorch saves .pt, .pth and .bin", PYTORCH},
    {"\200\002", 2, "a pickle, as old PyTorch saves .pt, .pth and .bin", PYTORCH},
    {"\200\003", 2, "a pickle of Python", PYTORCH},
    {"\200\004", 2, "a pickle of Python", PYTORCH},
    {"\200\005", 2, "a pickle of Python", PYTORCH},
    {"GGUF", 4, "a GGUF file, as llama.cpp has them", NULL},
    {"\211HDF", 4, "an HDF5 file, as Keras has them", NULL},
    {"\223NUMPY", 6, "a .npy file of NumPy: one array without a name", NULL},
    {"version https://", 16, "a Git LFS pointer: the file itself was not fetched", NULL},
    {"{", 1, "a JSON text, such as the index of a model in several files", NULL},
#undef PYTORCH
};

/* In place of what the reader of safetensors makes of the first bytes of such a file. */
static void name_other_kind(const char *path, struct error *error)
{
    char bytes[BEGINNING_SIZE] = "";
    uint64_t size = 0;
    int descriptor = -1;

    if (whole_file_read_open(&descriptor, &size, NULL, path) != STATUS_OK) {
        return;
    }
    if (size >= sizeof(bytes) &&
        whole_file_read_at(descriptor, NULL, bytes, sizeof(bytes), 0, path) != STATUS_OK) {
        size = 0;
    }
    (void)close(descriptor);
    for (size_t i = 0; size >= sizeof(bytes) && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        /* A short mark may also be the length of a header that is there. */
        if (memcmp(bytes, kinds[i].bytes, kinds[i].size) != 0 ||
            (kinds[i].size <= 2 && endian_load_le64((const uint8_t *)bytes) <= size - 8)) {
            continue;
        }
        (void)error_set(error, STATUS_BAD_FORMAT,
                        "%s: this is %s; a first state is one .safetensors file", path,
                        kinds[i].what);
        if (kinds[i].convert == NULL) {
            error_advise(error, "save the weights as one .safetensors file, by their names in the "
                                "model, as F32");
        } else {
            error_advise(error, "python3 -c '%s' %.80s first.safetensors", kinds[i].convert, path);
        }
        return;
    }
}

/* ---- which tensor is which state ---------------------------------------- */

static const struct safetensors_entry *find(const struct safetensors *file, const char *name)
{
    char longer[sizeof(prefix) + TENSOR_NAME_MAX];
    const struct safetensors_entry *entry = safetensors_find(file, name);

    if (entry == NULL) {
        (void)snprintf(longer, sizeof(longer), "%s%s", prefix, name);
        entry = safetensors_find(file, longer);
    }
    return entry;
}

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

/* May the state begin as zeros? */
static bool may_miss(const struct tape *tape, const struct tensor *tensor)
{
    return tensor->dtype != DTYPE_F32 || is_moment(tape, tensor->name) || is_answer(tensor->name);
}

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name);
    size_t end_length = strlen(end);

    return length >= end_length && strcmp(name + length - end_length, end) == 0;
}

/* Tensors that other programs save beside the parameters of GPT-2 and that follow from them, and
 * moments of a training. */
static bool is_known_extra(const struct tape *tape, const char *name)
{
    return is_moment(tape, name) || ends_with(name, ".attn.bias") ||
           ends_with(name, ".attn.masked_bias") || strcmp(name, "lm_head.weight") == 0;
}

/* "F32 [768,2304]" */
static void describe(char text[SHAPE_TEXT_MAX], const struct safetensors_entry *entry)
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

static enum status check_shape(const struct tensor *tensor, const struct safetensors_entry *entry,
                               const char *path, struct error *error)
{
    struct safetensors_entry wanted;
    char found_text[SHAPE_TEXT_MAX];
    char wanted_text[SHAPE_TEXT_MAX];
    bool same_shape;

    if (safetensors_entry_fits(entry, tensor)) {
        return STATUS_OK;
    }
    safetensors_describe(&wanted, tensor);
    describe(found_text, entry);
    describe(wanted_text, &wanted);
    same_shape = entry->rank == wanted.rank &&
                 memcmp(entry->dims, wanted.dims, entry->rank * sizeof(entry->dims[0])) == 0;
    (void)error_set(error, STATUS_BAD_FORMAT, "%s: '%s' is %s, and the model wants %s", path,
                    entry->name, found_text, wanted_text);
    if (same_shape) {
        error_advise(error, "save the file with this type: in PyTorch, tensor.float() gives F32");
    } else if (is_transpose(entry, &wanted)) {
        error_advise(error, "save the transpose, in PyTorch tensor.t().contiguous(), or give the "
                            "model the sizes of the file");
    } else {
        error_advise(error, "give the model the sizes of the file, by the options of 'job new'");
    }
    return STATUS_BAD_FORMAT;
}

static enum status match(struct first_state *first, uint32_t state, bool *taken, const char *path,
                         struct error *error)
{
    const struct tape *tape = first->tape;
    const struct tensor *tensor = &tape->tensors[tape->states[state].before];
    const struct safetensors_entry *entry = find(&first->file, tensor->name);

    if (entry == NULL) {
        return may_miss(tape, tensor)
                   ? STATUS_OK
                   : error_set(error, STATUS_BAD_FORMAT, "%s: no tensor '%s'", path, tensor->name);
    }
    first->entries[state] = entry;
    taken[entry - first->file.entries] = true;
    return check_shape(tensor, entry, path, error);
}

static enum status match_all(struct first_state *first, bool *taken, const char *path,
                             struct error *error)
{
    for (uint32_t i = 0; i < first->tape->state_count; i++) {
        TRY(match(first, i, taken, path, error));
    }
    for (uint32_t i = 0; i < first->file.entry_count; i++) {
        if (!taken[i] && !is_known_extra(first->tape, first->file.entries[i].name)) {
            return error_set(error, STATUS_BAD_FORMAT, "%s: the model has no tensor '%s'", path,
                             first->file.entries[i].name);
        }
    }
    return STATUS_OK;
}

enum status first_state_open(struct first_state *first, const struct tape *tape, const char *path,
                             struct error *error)
{
    enum status status;
    bool *taken;

    *first = (struct first_state){.tape = tape, .file.descriptor = -1};
    status = safetensors_open(&first->file, error, path);
    if (status == STATUS_BAD_FORMAT || status == STATUS_OVER_LIMIT) {
        name_other_kind(path, error);
    }
    TRY(status);
    first->entries = calloc((size_t)tape->state_count + 1, sizeof(void *));
    taken = calloc((size_t)first->file.entry_count + 1, sizeof(*taken));
    status = first->entries == NULL || taken == NULL
                 ? error_set(error, STATUS_NO_MEMORY, "no memory for the states of %s", path)
                 : match_all(first, taken, path, error);
    free(taken);
    if (status != STATUS_OK) {
        first_state_close(first);
    }
    return status;
}

/* Who wrote the weights of a Llama. */
enum origin {
    ORIGIN_OURS, /* or no Llama */
    ORIGIN_OLD,  /* this program, under other rules */
    ORIGIN_FOREIGN,
};

static enum origin origin_of(const struct safetensors *file)
{
    const char *rules = safetensors_metadata(file, "lockstep.rules");
    bool llama = false;

    for (uint32_t i = 0; i < file->entry_count; i++) {
        llama = llama || ends_with(file->entries[i].name, ".self_attn.q_proj.weight");
    }
    if (!llama) {
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
    struct safetensors file;
    bool rotates = false;
    bool halves = true;
    enum origin origin;

    for (uint32_t i = 0; i < tape->op_count; i++) {
        if (tape->ops[i].kind == OP_ROTARY) {
            rotates = true;
            halves = halves && tape->ops[i].attributes[ROTARY_HALVES] != 0;
        }
    }
    if (!rotates || safetensors_open(&file, NULL, path) != STATUS_OK) {
        return STATUS_OK; /* first_state_open() says what is wrong with the file */
    }
    origin = origin_of(&file);
    safetensors_close(&file);
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
        error_advise(error, "give --rotary-base and --norm-epsilon as its config.json has them "
                            "(rope_theta, rms_norm_eps); a model with rope_scaling does not fit");
        return STATUS_REFUSED;
    }
    return STATUS_OK;
}

void first_state_close(struct first_state *first)
{
    if (first->tape != NULL) {
        safetensors_close(&first->file);
    }
    free(first->entries);
    *first = (struct first_state){.file.descriptor = -1};
}

/* ---- reading ------------------------------------------------------------ */

enum status first_state_read(void *bytes, const struct first_state *first, uint32_t state,
                             struct error *error)
{
    const struct tensor *tensor = &first->tape->tensors[first->tape->states[state].before];
    const struct safetensors_entry *entry = first->entries[state];
    uint64_t size = commit_tensor_size(tensor);

    if (entry == NULL) {
        memset(bytes, 0, size);
        return STATUS_OK;
    }
    TRY(safetensors_read(&first->file, error, bytes, entry, size, 0));
    if (tensor->dtype == DTYPE_F32 && !element_all_finite(bytes, tensor->count)) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: '%s' holds a NaN or an infinity",
                         first->file.path, entry->name);
    }
    return STATUS_OK;
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
    if (zero != NULL && !nonzero) {
        return error_set(error, STATUS_REFUSED,
                         "%s: every number is zero, from '%s' on: nothing would be trained",
                         first->file.path, zero);
    }
    commit_roots_end(&roots, root);
    return STATUS_OK;
}
