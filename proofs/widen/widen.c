/* widen.c - see widen.h. */
#include "proofs/widen/widen.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/hex.h"
#include "base/io/strict_json.h"
#include "base/text.h"
#include "engine/ops/element.h"
#include "proofs/format/new_folder.h"
#include "proofs/format/weights.h"
#include "proofs/hash/sha256.h"
#include "proofs/model/file_hash.h"
#include "proofs/widen/quantized.h"

#define CONFIG_NAME "config.json"
#define CONFIG_MAX  (1u << 20)
#define STATE_END   ".quant_state.bitsandbytes__nf4"
#define BLOCKS_END  "_blocks"
#define SCALES_END  "_scales"

enum {
    CONFIG_DEPTH = 8,
    PIECE = 65536,   /* numbers at a time */
    READ = 4 << 20,  /* bytes at a time */
    NAME_EXTRA = 40, /* bytes behind the name of a weight */
};

enum widen_kind {
    WIDEN_COPY = 0,
    WIDEN_NF4,
    WIDEN_MXFP4,
};

/* A tensor of the new folder. */
struct widen_item {
    struct safetensors_entry entry; /* as it is written */
    enum widen_kind kind;
    const struct weights_entry *from;
    const struct weights_entry *scales; /* MXFP4 */
    struct nf4_state state;
};

struct widening {
    struct weights base;
    const char *folder;
    enum widen_type type;
    bool mxfp4; /* the folder's method; else NF4 */
    char part[FILE_PATH_MAX];
    struct widen_item *items;
    uint32_t item_count;
    bool *taken; /* entries of the base that are part of another */
    json_t *map; /* of the new index */
    struct widened *widened;
};

/* ---- what the config says ------------------------------------------------- */

/* Where the words of a method that we do not widen lead. */
static enum status refuse_method(const char *method, struct error *error)
{
    (void)error_set(
        error, STATUS_REFUSED,
        "'quantization_config': we widen NF4 of bitsandbytes and MXFP4, and not '%.40s'", method);
    error_advise(error, "take the folder of the weights before they were quantized: the model's "
                        "page names it as its base model");
    return STATUS_REFUSED;
}

static enum status check_bitsandbytes(const json_t *said, struct error *error)
{
    const json_t *four = json_object_get(said, "load_in_4bit");
    const char *type = strict_json_text_or(said, "bnb_4bit_quant_type", "fp4");

    if (!json_is_true(four) || json_is_true(json_object_get(said, "load_in_8bit"))) {
        return refuse_method("bitsandbytes with 8 bits", error);
    }
    return strcmp(type, "nf4") == 0 ? STATUS_OK : refuse_method(type, error);
}

static enum status check_method(struct widening *widening, const json_t *config,
                                struct error *error)
{
    const json_t *said = json_object_get(config, "quantization_config");
    const char *method = strict_json_text_or(said, "quant_method", "");

    if (!json_is_object(said)) {
        return error_set(
            error, STATUS_REFUSED,
            "no 'quantization_config': the folder is wide already, as 'job new --base' "
            "takes it");
    }
    if (strcmp(method, "bitsandbytes") == 0) {
        TRY(check_bitsandbytes(said, error));
    } else if (strcmp(method, "mxfp4") == 0) {
        widening->mxfp4 = true;
    } else {
        return refuse_method(method, error);
    }
    if (widening->mxfp4 && widening->type == WIDEN_F32) {
        return error_set(error, STATUS_USAGE, "--dtype: MXFP4 is widened to bf16, exactly");
    }
    return STATUS_OK;
}

static enum element type_of(const struct widening *widening)
{
    return widening->mxfp4 || widening->type == WIDEN_BF16 ? ELEMENT_BF16 : ELEMENT_F32;
}

/* ---- the tensors ------------------------------------------------------------- */

static const struct weights_entry *find_part(struct widening *widening, const char *name,
                                             size_t length, const char *end)
{
    char whole[SAFETENSORS_NAME_MAX + NAME_EXTRA];
    const struct weights_entry *entry;

    (void)snprintf(whole, sizeof(whole), "%.*s%s", (int)length, name, end);
    entry = weights_find(&widening->base, whole);
    if (entry != NULL) {
        widening->taken[entry - widening->base.entries] = true;
    }
    return entry;
}

/* A part of a weight, of that type and so many elements. */
static enum status need_part(const struct weights_entry **part, struct widening *widening,
                             const struct weights_entry *from, const char *end,
                             enum element element, uint64_t count, struct error *error)
{
    const char *name = from->entry->name;

    *part = find_part(widening, name, strlen(name), end);
    if (*part == NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: '%s' has no '%s'", from->file->path, name,
                         end + 1);
    }
    if ((*part)->entry->element != element ||
        (*part)->entry->size != count * element_size(element)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%s: '%s' is not %" PRIu64 " of %s, as the groups of '%s' want it",
                         (*part)->file->path, (*part)->entry->name, count,
                         element_safetensors_name(element), name);
    }
    return STATUS_OK;
}

static uint64_t groups_of(uint64_t count, uint64_t group)
{
    return (count + group - 1) / group;
}

/* The weight whose state the entry is. */
static enum status take_nf4(struct widening *widening, const struct weights_entry *state,
                            struct error *error)
{
    struct widen_item *item = &widening->items[widening->item_count++];
    const size_t length = strlen(state->entry->name) - strlen(STATE_END);
    uint8_t bytes[NF4_STATE_SIZE_MAX];

    if (state->entry->element != ELEMENT_U8 || state->entry->size > sizeof(bytes)) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: '%s' is no text of at most %d bytes",
                         state->file->path, state->entry->name, NF4_STATE_SIZE_MAX);
    }
    TRY(safetensors_read(state->file, error, bytes, state->entry, (size_t)state->entry->size, 0));
    TRY(nf4_state_parse(&item->state, bytes, (size_t)state->entry->size, state->entry->name,
                        error));
    widening->taken[state - widening->base.entries] = true;
    item->from = find_part(widening, state->entry->name, length, "");
    if (item->from == NULL || item->from->entry->element != ELEMENT_U8 ||
        item->from->entry->size != (item->state.count + 1) / 2) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%s: '%.*s' does not hold %" PRIu64 " numbers of 4 bits",
                         state->file->path, (int)length, state->entry->name, item->state.count);
    }
    item->kind = WIDEN_NF4;
    item->entry =
        (struct safetensors_entry){.element = type_of(widening), .rank = item->state.rank};
    memcpy(item->entry.dims, item->state.dims, sizeof(item->entry.dims));
    (void)snprintf(item->entry.name, sizeof(item->entry.name), "%s", item->from->entry->name);
    return STATUS_OK;
}

/* As transformers has it: the groups of a row are joined; of a list of matrices, as experts have
 * it, each is transposed. */
static enum status take_mxfp4(struct widening *widening, const struct weights_entry *blocks,
                              struct error *error)
{
    const struct safetensors_entry *entry = blocks->entry;
    const size_t length = strlen(entry->name) - strlen(BLOCKS_END);
    struct widen_item *item = &widening->items[widening->item_count++];
    const struct safetensors_entry *scales;
    const uint32_t rank = entry->rank;

    item->from = blocks;
    item->kind = WIDEN_MXFP4;
    item->scales = find_part(widening, entry->name, length, SCALES_END);
    if (item->scales == NULL || item->scales->entry->element != ELEMENT_U8 || rank < 3 ||
        rank > 4 || entry->element != ELEMENT_U8 || entry->dims[rank - 1] != MXFP4_GROUP / 2) {
        return error_set(
            error, STATUS_BAD_FORMAT,
            "%s: '%s' is no list of groups of %d bytes with a scale each in '%.*s" SCALES_END "'",
            blocks->file->path, entry->name, MXFP4_GROUP / 2, (int)length, entry->name);
    }
    scales = item->scales->entry;
    if (scales->rank != rank - 1 ||
        memcmp(scales->dims, entry->dims, (rank - 1) * sizeof(uint64_t)) != 0) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%s: '%s' has not a scale for each group of '%s'",
                         item->scales->file->path, scales->name, entry->name);
    }
    widening->taken[blocks - widening->base.entries] = true;
    item->entry = (struct safetensors_entry){.element = ELEMENT_BF16, .rank = rank - 1};
    item->entry.dims[rank - 2] = rank == 4 ? entry->dims[1] : entry->dims[1] * MXFP4_GROUP;
    item->entry.dims[rank - 3] = rank == 4 ? entry->dims[2] * MXFP4_GROUP : entry->dims[0];
    if (rank == 4) {
        item->entry.dims[0] = entry->dims[0];
    }
    (void)snprintf(item->entry.name, sizeof(item->entry.name), "%.*s", (int)length, entry->name);
    return STATUS_OK;
}

/* What is no part of a weight of four bits stays as it is; its type must be one of a model. */
static enum status take_rest(struct widening *widening, const struct weights_entry *from,
                             struct error *error)
{
    if (!weights_widen(from->entry->element)) {
        return error_set(error, STATUS_REFUSED,
                         "%s: '%s' is %s, and no part of a weight that we widen", from->file->path,
                         from->entry->name, element_safetensors_name(from->entry->element));
    }
    widening->items[widening->item_count++] =
        (struct widen_item){.entry = *from->entry, .kind = WIDEN_COPY, .from = from};
    return STATUS_OK;
}

/* Notes the parts of NF4's weights, so that they are not taken for tensors of the model. */
static enum status check_nf4(struct widening *widening, const struct widen_item *item,
                             struct error *error)
{
    const struct nf4_state *state = &item->state;
    const uint64_t groups = groups_of(state->count, state->group);
    const struct weights_entry *part;

    TRY(need_part(&part, widening, item->from, ".quant_map", ELEMENT_F32, NF4_CODES, error));
    TRY(need_part(&part, widening, item->from, ".absmax", state->nested ? ELEMENT_U8 : ELEMENT_F32,
                  groups, error));
    if (state->nested) {
        TRY(need_part(&part, widening, item->from, ".nested_absmax", ELEMENT_F32,
                      groups_of(groups, state->nested_group), error));
        TRY(need_part(&part, widening, item->from, ".nested_quant_map", ELEMENT_F32,
                      NF4_NESTED_CODES, error));
    }
    return STATUS_OK;
}

static enum status take_items(struct widening *widening, struct error *error)
{
    const struct weights *base = &widening->base;

    for (uint32_t i = 0; i < base->entry_count; i++) {
        const struct weights_entry *entry = &base->entries[i];
        const char *name = entry->entry->name;

        if (!widening->mxfp4 && text_ends_with(name, STATE_END)) {
            TRY(take_nf4(widening, entry, error));
            TRY(check_nf4(widening, &widening->items[widening->item_count - 1], error));
        } else if (widening->mxfp4 && text_ends_with(name, BLOCKS_END)) {
            TRY(take_mxfp4(widening, entry, error));
        }
    }
    widening->widened->tensors = widening->item_count;
    if (widening->item_count == 0) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: no tensor has 4 bits", base->path);
    }
    for (uint32_t i = 0; i < base->entry_count; i++) {
        if (!widening->taken[i]) {
            TRY(take_rest(widening, &base->entries[i], error));
        }
    }
    return STATUS_OK;
}

/* ---- widening one ------------------------------------------------------------ */

/* The parts of a weight of NF4, whole: they are a small share of it. */
struct nf4_parts {
    float *largest;
    uint8_t *bytes;
    float *nested;
};

static void free_parts(struct nf4_parts *parts)
{
    free(parts->largest);
    free(parts->bytes);
    free(parts->nested);
}

static enum status no_memory(const struct widen_item *item, struct error *error)
{
    return error_set(error, STATUS_NO_MEMORY, "no memory for '%s'", item->entry.name);
}

/* The table must be NF4's: the programs that read such a folder use their own. */
static enum status check_table(const struct widening *widening, const struct widen_item *item,
                               struct error *error)
{
    char name[SAFETENSORS_NAME_MAX + NAME_EXTRA];
    const struct weights_entry *table;
    float numbers[NF4_CODES];

    (void)snprintf(name, sizeof(name), "%s.quant_map", item->from->entry->name);
    table = weights_find(&widening->base, name);
    TRY(weights_read(numbers, table, 0, NF4_CODES, error));
    for (uint32_t code = 0; code < NF4_CODES; code++) {
        if (real_to_bits(numbers[code]) != real_to_bits(nf4_number(code))) {
            return error_set(error, STATUS_BAD_FORMAT, "%s: '%s' is not the table of NF4",
                             table->file->path, name);
        }
    }
    return STATUS_OK;
}

static enum status read_nested(struct nf4_parts *parts, const struct widening *widening,
                               const struct widen_item *item, uint64_t groups, struct error *error)
{
    const struct nf4_state *state = &item->state;
    const uint64_t outer = groups_of(groups, state->nested_group);
    const char *const ends[] = {".absmax", ".nested_absmax", ".nested_quant_map"};
    const struct weights_entry *found[3];
    float codes[NF4_NESTED_CODES];

    for (int i = 0; i < 3; i++) {
        char name[SAFETENSORS_NAME_MAX + NAME_EXTRA];

        (void)snprintf(name, sizeof(name), "%s%s", item->from->entry->name, ends[i]);
        found[i] = weights_find(&widening->base, name);
    }
    parts->bytes = malloc((size_t)groups + 1);
    parts->nested = malloc((size_t)outer * sizeof(float) + 1);
    if (parts->bytes == NULL || parts->nested == NULL) {
        return no_memory(item, error);
    }
    TRY(safetensors_read(found[0]->file, error, parts->bytes, found[0]->entry, (size_t)groups, 0));
    TRY(weights_read(parts->nested, found[1], 0, outer, error));
    TRY(weights_read(codes, found[2], 0, NF4_NESTED_CODES, error));
    for (uint64_t i = 0; i < groups; i++) {
        parts->largest[i] =
            nf4_largest(state, parts->bytes[i], codes, parts->nested[i / state->nested_group]);
        if (!isfinite(parts->largest[i])) {
            return error_set(error, STATUS_REFUSED,
                             "%s: the scale of group %" PRIu64 " of '%s' overflows",
                             found[0]->file->path, i, item->entry.name);
        }
    }
    return STATUS_OK;
}

static enum status read_parts(struct nf4_parts *parts, const struct widening *widening,
                              const struct widen_item *item, struct error *error)
{
    const uint64_t groups = groups_of(item->state.count, item->state.group);
    char name[SAFETENSORS_NAME_MAX + NAME_EXTRA];

    TRY(check_table(widening, item, error));
    parts->largest = calloc((size_t)groups + 1, sizeof(float));
    if (parts->largest == NULL) {
        return no_memory(item, error);
    }
    if (item->state.nested) {
        return read_nested(parts, widening, item, groups, error);
    }
    (void)snprintf(name, sizeof(name), "%s.absmax", item->from->entry->name);
    return weights_read(parts->largest, weights_find(&widening->base, name), 0, groups, error);
}

/* The numbers of a piece, as bytes of the new type. Returns false where one overflows. */
static bool widen_piece(uint8_t *out, const uint8_t *packed, uint64_t first, uint64_t count,
                        const struct nf4_parts *parts, const struct widen_item *item)
{
    bool finite = true;

    for (uint64_t i = 0; i < count; i++) {
        const float largest = parts->largest[(first + i) / item->state.group];
        const float value = nf4_number(nf4_code(packed, i)) * largest;

        if (item->entry.element == ELEMENT_F32) {
            endian_store_le32(out + 4 * i, real_to_bits(value));
        } else {
            const uint32_t bits = element_to_bf16(value);

            out[2 * i] = (uint8_t)bits;
            out[2 * i + 1] = (uint8_t)(bits >> 8);
            finite = finite && (bits & 0x7f80u) != 0x7f80u;
        }
    }
    return finite;
}

static enum status write_nf4(struct safetensors_writer *writer, const struct widening *widening,
                             const struct widen_item *item, struct error *error)
{
    const size_t size = element_size(item->entry.element);
    struct nf4_parts parts = {0};
    uint8_t *out = malloc(PIECE * size);
    uint8_t *packed = calloc(1, PIECE / 2);
    enum status status;

    if (out == NULL || packed == NULL) {
        status = no_memory(item, error);
        goto out;
    }
    TRY_OUT(read_parts(&parts, widening, item, error));
    for (uint64_t from = 0; from < item->state.count; from += PIECE) {
        const uint64_t left = item->state.count - from;
        const uint64_t count = left < PIECE ? left : PIECE;

        TRY_OUT(safetensors_read(item->from->file, error, packed, item->from->entry,
                                 (size_t)(count + 1) / 2, from / 2));
        if (!widen_piece(out, packed, from, count, &parts, item)) {
            status = error_set(error, STATUS_REFUSED, "%s: '%s' overflows bf16",
                               item->from->file->path, item->entry.name);
            goto out;
        }
        TRY_OUT(safetensors_writer_add(writer, error, out, (size_t)count * size));
    }
out:
    free_parts(&parts);
    free(out);
    free(packed);
    return status;
}

/* One matrix of rows of groups; transposed where the rows become columns. */
static enum status widen_matrix(uint16_t *out, const uint8_t *blocks, const uint8_t *scales,
                                uint64_t rows, uint64_t groups, bool transposed,
                                const struct widen_item *item, struct error *error)
{
    const uint64_t columns = groups * MXFP4_GROUP;

    for (uint64_t row = 0; row < rows; row++) {
        for (uint64_t column = 0; column < columns; column++) {
            const uint64_t group = row * groups + column / MXFP4_GROUP;
            const uint64_t at = group * (MXFP4_GROUP / 2) + column % MXFP4_GROUP / 2;
            const uint32_t code = column % 2 == 0 ? blocks[at] & 15u : blocks[at] >> 4;
            uint16_t number;

            if (!mxfp4_number(&number, code, scales[group])) {
                return error_set(
                    error, STATUS_REFUSED, "%s: a scale of '%s' is %u, which is NaN or overflows",
                    item->scales->file->path, item->scales->entry->name, scales[group]);
            }
            out[transposed ? column * rows + row : row * columns + column] = number;
        }
    }
    return STATUS_OK;
}

static enum status write_mxfp4(struct safetensors_writer *writer, const struct widen_item *item,
                               struct error *error)
{
    const struct safetensors_entry *from = item->from->entry;
    const bool listed = from->rank == 4;
    const uint64_t matrices = listed ? from->dims[0] : 1;
    const uint64_t rows = from->dims[listed ? 1 : 0];
    const uint64_t groups = from->dims[listed ? 2 : 1];
    const size_t packed = (size_t)(rows * groups * (MXFP4_GROUP / 2));
    const size_t scaled = (size_t)(rows * groups);
    uint16_t *out = malloc(packed * 4 + 1);
    uint8_t *blocks = malloc(packed + 1);
    uint8_t *scales = malloc(scaled + 1);
    enum status status = STATUS_OK;

    if (out == NULL || blocks == NULL || scales == NULL) {
        status = no_memory(item, error);
        goto out;
    }
    for (uint64_t i = 0; i < matrices; i++) {
        TRY_OUT(safetensors_read(item->from->file, error, blocks, from, packed, i * packed));
        TRY_OUT(safetensors_read(item->scales->file, error, scales, item->scales->entry, scaled,
                                 i * scaled));
        TRY_OUT(widen_matrix(out, blocks, scales, rows, groups, listed, item, error));
        TRY_OUT(safetensors_writer_add(writer, error, out, packed * 4));
    }
out:
    free(out);
    free(blocks);
    free(scales);
    return status;
}

static enum status write_copy(struct safetensors_writer *writer, const struct widen_item *item,
                              struct error *error)
{
    uint8_t *bytes = malloc(READ);
    enum status status = STATUS_OK;

    if (bytes == NULL) {
        return no_memory(item, error);
    }
    for (uint64_t from = 0; from < item->from->entry->size; from += READ) {
        const uint64_t left = item->from->entry->size - from;
        const size_t taken = left < READ ? (size_t)left : READ;

        TRY_OUT(safetensors_read(item->from->file, error, bytes, item->from->entry, taken, from));
        TRY_OUT(safetensors_writer_add(writer, error, bytes, taken));
    }
out:
    free(bytes);
    return status;
}

/* ---- files --------------------------------------------------------------------- */

/* Wider types come first, so that each tensor is aligned. */
static int compare_items(const void *a, const void *b)
{
    const struct widen_item *one = a;
    const struct widen_item *two = b;
    const size_t size_one = element_size(one->entry.element);
    const size_t size_two = element_size(two->entry.element);

    return size_one != size_two ? (size_one < size_two ? 1 : -1)
                                : strcmp(one->entry.name, two->entry.name);
}

/* The items whose numbers stand in that file of the base. */
static enum status write_items(const struct widening *widening, uint32_t file, const char *name,
                               struct safetensors_entry *entries, struct error *error)
{
    static const struct safetensors_text pytorch[] = {{"format", "pt"}};
    struct safetensors_writer writer;
    char path[FILE_PATH_MAX];
    uint32_t count = 0;
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < widening->item_count; i++) {
        if (widening->items[i].from->file == &widening->base.files[file]) {
            entries[count++] = widening->items[i].entry;
            (void)json_object_set_new(widening->map, widening->items[i].entry.name,
                                      json_string(name));
        }
    }
    TRY(file_path_join(path, sizeof(path), error, widening->part, name));
    TRY(safetensors_writer_open(&writer, error, path, entries, count, pytorch, 1));
    for (uint32_t i = 0; i < widening->item_count && status == STATUS_OK; i++) {
        const struct widen_item *item = &widening->items[i];

        if (item->from->file != &widening->base.files[file]) {
            continue;
        }
        status = item->kind == WIDEN_NF4     ? write_nf4(&writer, widening, item, error)
                 : item->kind == WIDEN_MXFP4 ? write_mxfp4(&writer, item, error)
                                             : write_copy(&writer, item, error);
    }
    return safetensors_writer_end(&writer, status, error);
}

static enum status write_index(struct widening *widening, struct error *error)
{
    json_t *index = json_pack("{s:{}, s:O}", "metadata", "weight_map", widening->map);

    return new_folder_json(widening->part, WEIGHTS_INDEX_NAME, index, JSON_SORT_KEYS, error);
}

/* A file of one is model.safetensors; of several the names stay, and the index is new. */
static enum status write_weights(struct widening *widening, struct error *error)
{
    const struct weights *base = &widening->base;
    struct safetensors_entry *entries = calloc((size_t)widening->item_count + 1, sizeof(*entries));
    enum status status = STATUS_OK;

    if (entries == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the tensors of %s", base->path);
    }
    qsort(widening->items, widening->item_count, sizeof(*widening->items), compare_items);
    for (uint32_t file = 0; file < base->file_count; file++) {
        TRY_OUT(write_items(widening, file, text_last_part(base->paths[file]), entries, error));
    }
    if (base->file_count > 1) {
        status = write_index(widening, error);
    }
out:
    free(entries);
    return status;
}

/* ---- the note -------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds the SHA-256 of a file to the list and, as a line, to the root. */
static enum status note_file(json_t *files, struct sha256 *root, const char *folder,
                             const char *name, struct error *error)
{
    char hex[HEX_SIZE(DIGEST_SIZE)];
    char path[FILE_PATH_MAX];
    struct digest digest;
    uint64_t size;

    TRY(file_path_join(path, sizeof(path), error, folder, name));
    TRY(file_hash(&digest, &size, path, error));
    hex_encode(hex, digest.bytes, DIGEST_SIZE);
    (void)json_object_set_new(files, name, json_string(hex));
    sha256_add(root, hex, strlen(hex));
    sha256_add(root, "  ", 2);
    sha256_add(root, name, strlen(name));
    sha256_add(root, "\n", 1);
    return STATUS_OK;
}

/* The files of a folder, in the order of their names: config.json and the weights. */
static enum status note_folder(json_t **note, struct digest *root, const struct widening *widening,
                               const char *folder, struct error *error)
{
    const struct weights *base = &widening->base;
    const char **names = calloc((size_t)base->file_count + 1, sizeof(*names));
    json_t *files = json_object();
    char hex[HEX_SIZE(DIGEST_SIZE)];
    struct sha256 hash;
    enum status status = STATUS_OK;

    if (names == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for %s", WIDEN_NOTE);
        goto out;
    }
    names[0] = CONFIG_NAME;
    for (uint32_t i = 0; i < base->file_count; i++) {
        names[i + 1] = text_last_part(base->paths[i]);
    }
    qsort(names, (size_t)base->file_count + 1, sizeof(*names), compare_names);
    sha256_init(&hash, SHA256_ISA_BEST);
    for (uint32_t i = 0; i <= base->file_count; i++) {
        TRY_OUT(note_file(files, &hash, folder, names[i], error));
    }
    sha256_end(&hash, root);
    hex_encode(hex, root->bytes, DIGEST_SIZE);
    *note = json_pack("{s:s, s:O}", "root", hex, "files", files);
out:
    json_decref(files);
    free(names);
    return status;
}

static enum status write_note(struct widening *widening, struct error *error)
{
    json_t *origin = NULL;
    json_t *own = NULL;
    json_t *note;
    enum status status;

    TRY_OUT(note_folder(&origin, &widening->widened->origin, widening, widening->folder, error));
    TRY_OUT(note_folder(&own, &widening->widened->root, widening, widening->part, error));
    note = json_pack("{s:s, s:O, s:O, s:i, s:s}", "method", widening->mxfp4 ? "mxfp4" : "nf4",
                     "origin", origin, "widened", own, "tensors", (int)widening->widened->tensors,
                     "type", element_safetensors_name(type_of(widening)));
    status = new_folder_json(widening->part, WIDEN_NOTE, note, JSON_SORT_KEYS, error);
out:
    json_decref(origin);
    json_decref(own);
    return status;
}

/* ---- the whole -------------------------------------------------------------------- */

static enum status write_folder(struct widening *widening, json_t *config, struct error *error)
{
    const char *type = type_of(widening) == ELEMENT_BF16 ? "bfloat16" : "float32";

    TRY(write_weights(widening, error));
    (void)json_object_del(config, "quantization_config");
    TRY(new_folder_config(widening->part, json_incref(config), type, JSON_SORT_KEYS, error));
    TRY(new_folder_copy_rest(widening->part, widening->folder, error));
    return write_note(widening, error);
}

static enum status widen_opened(struct widening *widening, const char *out, json_t *config,
                                struct error *error)
{
    const size_t room = (size_t)widening->base.entry_count + 1;

    widening->items = calloc(room, sizeof(*widening->items));
    widening->taken = calloc(room, sizeof(*widening->taken));
    widening->map = json_object();
    if (widening->items == NULL || widening->taken == NULL || widening->map == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the tensors of %s",
                         widening->folder);
    }
    TRY(take_items(widening, error));
    TRY(new_folder_begin(widening->part, out, error));
    return new_folder_end(widening->part, out, write_folder(widening, config, error), error);
}

enum status widen_folder(struct widened *widened, const char *out, const char *folder,
                         enum widen_type type, struct error *error)
{
    struct widening widening = {.folder = folder, .type = type, .widened = widened};
    char path[FILE_PATH_MAX];
    json_t *config = NULL;
    enum status status;

    *widened = (struct widened){0};
    TRY(file_path_join(path, sizeof(path), error, folder, CONFIG_NAME));
    TRY(strict_json_read(&config, error, path, CONFIG_MAX, CONFIG_DEPTH));
    status = check_method(&widening, config, error);
    if (status != STATUS_OK) {
        (void)error_wrap(error, "%s", path);
        goto out;
    }
    TRY_OUT(weights_open(&widening.base, folder, error));
    TRY_OUT(widen_opened(&widening, out, config, error));
out:
    weights_close(&widening.base);
    free(widening.items);
    free(widening.taken);
    json_decref(widening.map);
    json_decref(config);
    return status;
}
