/* base_rotation.c - what config.json says of rotary positions; see base_rotation.h. */
#include "proofs/format/base_rotation.h"

#include <math.h>
#include <string.h>

/* What YaRN takes where nobody says: pairs of fewer turns are stretched, those of more are not. */
#define YARN_LOW  1.0
#define YARN_HIGH 32.0

static bool is_key(const char *name, const char *other)
{
    return strcmp(name, other) == 0;
}

/* A factor for each pair. */
static enum status take_list(double *list, uint32_t *count, const char *name, const json_t *value,
                             struct error *error)
{
    size_t size = json_array_size(value);

    if (size == 0 || size > ROTARY_PAIRS_LISTED_MAX || (*count != 0 && *count != size)) {
        return config_refuse(error, name, value,
                             "it must be a list of a number for each pair that turns", NULL);
    }
    *count = (uint32_t)size;
    for (size_t i = 0; i < size; i++) {
        TRY(config_real(&list[i], name, json_array_get(value, i), error));
    }
    return STATUS_OK;
}

static enum status take_truncate(bool *whole, const char *name, const json_t *value,
                                 struct error *error)
{
    if (!json_is_boolean(value)) {
        return config_refuse(error, name, value, "it must be true or false", NULL);
    }
    *whole = json_is_true(value);
    return STATUS_OK;
}

/* A key that only stretched rotations have. *taken: it was one. */
static enum status take_scaling_key(struct reading *reading, bool *taken, const char *name,
                                    const json_t *value, struct error *error)
{
    struct rotary_scaling *scaling = &reading->config.model.rotary_scaling;
    const bool yarn = scaling->kind == ROTARY_YARN;
    const bool longrope = scaling->kind == ROTARY_LONGROPE;

    *taken = true;
    if (is_key(name, "factor") && scaling->kind != ROTARY_PLAIN) {
        return config_real(&scaling->factor, name, value, error);
    }
    if (is_key(name, "original_max_position_embeddings") && scaling->kind >= ROTARY_LLAMA3) {
        return config_count(&scaling->positions, name, value, error);
    }
    if (is_key(name, "attention_factor") && (yarn || longrope)) {
        return json_is_null(value) ? STATUS_OK
                                   : config_real(&reading->amplitude, name, value, error);
    }
    if (is_key(name, scaling->kind == ROTARY_LLAMA3 ? "low_freq_factor" : "beta_slow") &&
        (scaling->kind == ROTARY_LLAMA3 || yarn)) {
        return config_real(&scaling->low, name, value, error);
    }
    if (is_key(name, scaling->kind == ROTARY_LLAMA3 ? "high_freq_factor" : "beta_fast") &&
        (scaling->kind == ROTARY_LLAMA3 || yarn)) {
        return config_real(&scaling->high, name, value, error);
    }
    if (is_key(name, "truncate") && yarn) {
        return take_truncate(&scaling->whole_pairs, name, value, error);
    }
    if (is_key(name, "short_factor") && longrope) {
        return take_list(scaling->short_factors, &scaling->pair_count, name, value, error);
    }
    if (is_key(name, "long_factor") && longrope) {
        return take_list(scaling->long_factors, &scaling->pair_count, name, value, error);
    }
    *taken = false;
    return STATUS_OK;
}

/* A key of the description of the rotation. */
static enum status take_key(struct reading *reading, const char *name, const json_t *value,
                            struct error *error)
{
    double unused;
    bool taken = false;

    if (is_key(name, "rope_type") || is_key(name, "type")) {
        return STATUS_OK; /* read first */
    }
    if (is_key(name, "rope_theta")) {
        return config_real(&reading->rotary_base, name, value, error);
    }
    if (strncmp(name, "mrope_", 6) == 0 && family_key(reading->row->keys, name) != NULL) {
        return STATUS_OK;
    }
    if (is_key(name, "partial_rotary_factor")) {
        const struct key *key = family_key(reading->row->keys, name);

        return key != NULL && key->use == USE_REAL
                   ? config_real(&reading->rotary_share, name, value, error)
                   : config_must(name, "1.0", value, error);
    }
    if (is_key(name, "factor") && reading->dynamic) {
        return config_real(&unused, name, value, error);
    }
    TRY(take_scaling_key(reading, &taken, name, value, error));
    return taken
               ? STATUS_OK
               : config_refuse(error, name, value, "it is unknown for this type of rotation", NULL);
}

static enum status check_lists(const struct rotary_scaling *scaling, struct error *error)
{
    if (scaling->short_factors[0] == 0.0 || scaling->long_factors[0] == 0.0) {
        return error_set(error, STATUS_REFUSED, "'short_factor' or 'long_factor' is missing");
    }
    return STATUS_OK;
}

static enum status check_scaling(const struct rotary_scaling *scaling, struct error *error)
{
    if (scaling->kind == ROTARY_LONGROPE) {
        return check_lists(scaling, error);
    }
    if (scaling->kind != ROTARY_PLAIN && scaling->factor < 1.0) {
        return error_set(error, STATUS_REFUSED, "'factor' is missing or below 1");
    }
    if (scaling->kind == ROTARY_LLAMA3 &&
        (scaling->low <= 0.0 || scaling->high <= scaling->low || scaling->positions == 0)) {
        return error_set(error, STATUS_REFUSED,
                         "'low_freq_factor', 'high_freq_factor' or "
                         "'original_max_position_embeddings' is missing, or the first is not below "
                         "the second");
    }
    if (scaling->kind == ROTARY_YARN && scaling->high <= scaling->low) {
        return error_set(error, STATUS_REFUSED, "'beta_slow' is %g; it must be below 'beta_fast'",
                         scaling->low);
    }
    return STATUS_OK;
}

/* The kind of the rotation; ROTARY_COUNT: none of ours. */
static enum rotary_kind kind_of(struct reading *reading, const json_t *value)
{
    static const char *const kinds[ROTARY_COUNT] = {"default", "linear", "llama3", "yarn",
                                                    "longrope"};
    const json_t *old = json_object_get(value, "type");
    const json_t *type = json_object_get(value, "rope_type");
    const char *text = json_string_value(type == NULL ? old : type);
    uint32_t kind = 0;

    if (!json_is_object(value) || text == NULL ||
        (type != NULL && old != NULL && !json_equal(type, old))) {
        return ROTARY_COUNT;
    }
    reading->dynamic = is_key(text, "dynamic");
    if (is_key(text, "su")) { /* longrope, in the first folders of Phi-3 */
        return ROTARY_LONGROPE;
    }
    while (kind < ROTARY_COUNT && !reading->dynamic && !is_key(text, kinds[kind])) {
        kind++;
    }
    return (enum rotary_kind)kind;
}

static enum status take_one(struct reading *reading, const char *name, json_t *value,
                            struct error *error)
{
    static const char why[] =
        "we compute one rotation, of the type default, linear, dynamic, llama3, yarn or longrope";
    struct rotary_scaling *scaling = &reading->config.model.rotary_scaling;
    enum rotary_kind kind = kind_of(reading, value);
    const char *key;
    json_t *part;

    if (kind == ROTARY_COUNT || reading->scaled) {
        return config_refuse(error, name, value, why,
                             "choose a base that turns by one of these, or one from before its "
                             "context was extended");
    }
    reading->scaled = true;
    *scaling = (struct rotary_scaling){.kind = kind, .whole_pairs = true};
    if (kind == ROTARY_YARN) {
        scaling->low = YARN_LOW;
        scaling->high = YARN_HIGH;
    }
    json_object_foreach(value, key, part)
    {
        TRY(take_key(reading, key, part, error));
    }
    return check_scaling(scaling, error);
}

/* Newer configs describe the rotations of local layers and of the others one beside the other. */
static enum status take_both(struct reading *reading, json_t *value, struct error *error)
{
    json_t *local = json_object_get(value, "sliding_attention");
    double *base = &reading->config.model.rotary_local_base;
    const char *key;
    json_t *part;

    json_object_foreach(value, key, part)
    {
        if (!is_key(key, "full_attention") && !is_key(key, "sliding_attention")) {
            return config_refuse(error, key, part, "no layer is of this type", NULL);
        }
    }
    json_object_foreach(local, key, part)
    {
        if (is_key(key, "rope_theta")) {
            TRY(config_real(base, key, part, error));
        } else {
            TRY(config_must(key, is_key(key, "rope_type") ? "\"default\"" : "null", part, error));
        }
    }
    return take_one(reading, "full_attention", json_object_get(value, "full_attention"), error);
}

enum status rotation_take(struct reading *reading, const char *name, json_t *value,
                          struct error *error)
{
    bool both =
        reading->row->rotary_local_base != 0.0 && json_object_get(value, "full_attention") != NULL;
    enum status status;

    if (json_is_null(value)) {
        return STATUS_OK;
    }
    status = both ? take_both(reading, value, error) : take_one(reading, name, value, error);
    return status == STATUS_OK ? STATUS_OK : error_wrap(error, "'%s'", name);
}

/* ---- what follows -------------------------------------------------------- */

/* Newer configs hold the base of the rotation where they describe it, older ones beside. */
static enum status settle_base(struct reading *reading, struct error *error)
{
    double *base = &reading->config.model.rotary_base;

    if (reading->rotary_base == 0.0) {
        return STATUS_OK;
    }
    if (json_object_get(reading->root, "rope_theta") != NULL && *base != reading->rotary_base) {
        (void)error_set(error, STATUS_REFUSED,
                        "'rope_theta' is %g, and %g where the rotation is described", *base,
                        reading->rotary_base);
        error_advise(error, "remove the one that is not meant");
        return STATUS_REFUSED;
    }
    *base = reading->rotary_base;
    return STATUS_OK;
}

/* How often the turned numbers count: as the papers have it where the config does not say. */
static enum status settle_amplitude(struct reading *reading, struct error *error)
{
    struct base_config *config = &reading->config;
    struct rotary_scaling *scaling = &config->model.rotary_scaling;

    if (scaling->kind < ROTARY_YARN) {
        return STATUS_OK;
    }
    if (scaling->positions == 0) {
        scaling->positions =
            reading->positions_before == 0 ? config->positions : reading->positions_before;
    }
    if (scaling->kind == ROTARY_YARN) {
        scaling->amplitude = 0.1 * model_log(scaling->factor) + 1.0;
    } else {
        double factor = reading->positions_before == 0 && scaling->factor != 0.0
                            ? scaling->factor
                            : (double)config->positions / scaling->positions;

        if (scaling->positions < 2) {
            return error_set(error, STATUS_REFUSED,
                             "'original_max_position_embeddings' is %u; it must be from 2",
                             scaling->positions);
        }
        scaling->amplitude =
            factor <= 1.0 ? 1.0 : sqrt(1.0 + model_log(factor) / model_log(scaling->positions));
    }
    scaling->amplitude = reading->amplitude == 0.0 ? scaling->amplitude : reading->amplitude;
    return STATUS_OK;
}

/* How much of a head turns. */
static enum status settle_share(struct reading *reading, struct error *error)
{
    struct model_options *model = &reading->config.model;
    uint32_t width = model->head_width == 0 ? model->width / model->heads : model->head_width;
    uint32_t turned;

    if (reading->rotary_share == 0.0) {
        return STATUS_OK;
    }
    if (reading->rotary_share > 1.0) {
        return error_set(error, STATUS_REFUSED, "a share of %g of each head turns; at most 1",
                         reading->rotary_share);
    }
    turned = (uint32_t)(width * reading->rotary_share);
    if (turned == 0 || turned % 2 != 0) {
        return error_set(error, STATUS_REFUSED,
                         "of %u numbers of a head %u turn; there must be pairs", width, turned);
    }
    model->rotary_width = turned == width ? 0 : turned;
    return STATUS_OK;
}

static enum status check_pairs(const struct model_options *model, struct error *error)
{
    uint32_t width = model->head_width == 0 ? model->width / model->heads : model->head_width;
    uint32_t turned = model->rotary_width == 0 ? width : model->rotary_width;

    if (model->rotary_scaling.kind == ROTARY_LONGROPE &&
        2 * model->rotary_scaling.pair_count != turned) {
        return error_set(error, STATUS_REFUSED,
                         "'short_factor' has %u numbers; %u numbers of a head turn, in pairs",
                         model->rotary_scaling.pair_count, turned);
    }
    return STATUS_OK;
}

enum status rotation_settle(struct reading *reading, struct error *error)
{
    TRY(settle_base(reading, error));
    TRY(settle_amplitude(reading, error));
    TRY(settle_share(reading, error));
    return check_pairs(&reading->config.model, error);
}
