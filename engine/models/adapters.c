/* adapters.c - see adapters.h. */
#include "engine/models/adapters.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/tape/builder_core.h"

/* Linear layers; with tables and norms. */
#define LINEARS_MAX 10
#define MODULES_MAX (LINEARS_MAX + 10)

/* Modules by the last parts of their names. */
struct modules {
    uint32_t count;
    const char *names[MODULES_MAX];
};

static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot == NULL ? name : dot + 1;
}

/* NULL stands for no module. */
static void add_module(struct modules *modules, const char *name)
{
    for (uint32_t i = 0; name != NULL && i < modules->count; i++) {
        name = strcmp(modules->names[i], last_part(name)) == 0 ? NULL : name;
    }
    if (name != NULL) {
        modules->names[modules->count++] = last_part(name);
    }
}

static struct modules linear_modules(const struct layout *layout)
{
    const char *const whole[LINEARS_MAX] = {
        layout->joined, layout->query,   layout->key, layout->value, layout->out,
        layout->gate,   layout->gate_up, layout->up,  layout->down,  layout->router};
    struct modules modules = {0};

    for (uint32_t i = 0; i < LINEARS_MAX; i++) {
        add_module(&modules, whole[i]);
    }
    return modules;
}

/* What may be trained whole. */
static void add_norms(struct modules *modules, const struct layout *layout)
{
    const char *const norms[] = {
        layout->norm,     layout->second_norm,     layout->query_norm,
        layout->key_norm, layout->after_attention, layout->after_feed_forward,
        layout->last_norm};

    for (size_t i = 0; i < sizeof(norms) / sizeof(norms[0]); i++) {
        add_module(modules, norms[i]);
    }
    add_module(modules, layout->positions);
}

static bool is_in(const struct modules *modules, const char *word, size_t length)
{
    for (uint32_t i = 0; i < modules->count; i++) {
        if (length != 0 && strlen(modules->names[i]) == length &&
            strncmp(modules->names[i], word, length) == 0) {
            return true;
        }
    }
    return false;
}

/* Is the word one of the list, which commas part? */
static bool is_listed(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* ---- checks ------------------------------------------------------------- */

static void refuse_word(struct builder *builder, const struct modules *modules, const char *what,
                        const char *word)
{
    char list[LORA_TARGETS_MAX] = "";
    size_t size = 0;

    for (uint32_t i = 0; i < modules->count && size < sizeof(list); i++) {
        size += (size_t)snprintf(list + size, sizeof(list) - size, "%s%s", i == 0 ? "" : ", ",
                                 modules->names[i]);
    }
    builder_fail(builder, STATUS_USAGE, "no %s is called '%.*s'; there are %s", what,
                 (int)strcspn(word, ","), word, list);
}

/* Each word must be a module; the first that is none is named. */
static void check_words(struct builder *builder, const char *list, const struct modules *modules,
                        const char *what)
{
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (!is_in(modules, at, strcspn(at, ","))) {
            refuse_word(builder, modules, what, at);
            return;
        }
    }
}

/* PEFT would change one of a tied pair and leave the other. */
static void check_tied(struct model_writer *writer, const char *name, const char *list)
{
    if (writer->options->tied_head && name != NULL && is_listed(list, last_part(name))) {
        builder_fail(writer->builder, STATUS_REFUSED,
                     "'%s': the head of this model is its embedding, and a folder of adapters "
                     "would change one of them alone; leave it out, or train all weights",
                     last_part(name));
    }
}

void adapters_check(struct model_writer *writer, const struct layout *layout)
{
    const struct lora *lora = &writer->options->lora;
    const bool all = strcmp(lora->targets, LORA_ALL) == 0;
    struct modules modules = linear_modules(layout);

    for (uint32_t i = 0; i < modules.count; i++) {
        if (is_listed(lora->whole, modules.names[i]) &&
            (all || is_listed(lora->targets, modules.names[i]))) {
            builder_fail(writer->builder, STATUS_USAGE,
                         "'%s' is trained whole, so it gets no adapter", modules.names[i]);
        }
    }
    add_module(&modules, layout->embedding);
    add_module(&modules, layout->head);
    if (!all) {
        check_words(writer->builder, lora->targets, &modules, "linear layer or table");
        check_tied(writer, layout->embedding, lora->targets);
        check_tied(writer, layout->head, lora->targets);
    }
    if (lora->whole[0] != '\0') {
        add_norms(&modules, layout);
        check_words(writer->builder, lora->whole, &modules, "module");
        check_tied(writer, layout->embedding, lora->whole);
        check_tied(writer, layout->head, lora->whole);
    }
}

bool adapters_have(const struct model_options *options, const char *name, bool linear)
{
    const struct lora *lora = &options->lora;

    return lora->rank != 0 && ((linear && strcmp(lora->targets, LORA_ALL) == 0) ||
                               is_listed(lora->targets, last_part(name)));
}

bool adapters_leave(const struct model_options *options, const char *name)
{
    return is_listed(options->lora.whole, last_part(name));
}

/* ---- adapters ----------------------------------------------------------- */

float adapters_scale(const struct lora *lora)
{
    return (float)(lora->alpha / (lora->stabilized ? sqrt((double)lora->rank) : lora->rank));
}

void adapters_parts(struct model_writer *writer, uint32_t parts[2], const struct adapted *adapted)
{
    const uint32_t rank = writer->options->lora.rank;
    struct init uniform = init_normal(init_fan_in(adapted->in));
    char name[TENSOR_NAME_MAX + 1];

    uniform.kind = INIT_UNIFORM;
    (void)snprintf(name, sizeof(name), "%s" LORA_A, adapted->name);
    parts[0] = write_parameter(writer, name, rank, adapted->in, uniform);
    (void)snprintf(name, sizeof(name), "%s" LORA_B, adapted->name);
    parts[1] = write_parameter(writer, name, adapted->out, rank, INIT_AT_ZERO);
}

uint32_t write_adapter(struct model_writer *writer, uint32_t x, const struct adapted *adapted)
{
    const struct lora *lora = &writer->options->lora;
    uint32_t parts[2];

    adapters_parts(writer, parts, adapted);
    if (lora->dropout > 0.0) {
        x = build_dropout(writer->builder, x, lora->dropout, writer->stream++,
                          writer->options->seed);
    }
    for (int i = 0; i < 2; i++) {
        x = adapted->wide ? build_linear_wide(writer->builder, x, parts[i])
                          : build_linear(writer->builder, x, parts[i]);
    }
    return build_scale(writer->builder, x, adapters_scale(lora));
}

uint32_t write_token_adapter(struct model_writer *writer, const struct layout *layout,
                             uint32_t tokens)
{
    static const uint32_t order[2] = {1, 0};
    const struct model_options *options = writer->options;
    const struct lora *lora = &options->lora;
    char name[TENSOR_NAME_MAX + 1];

    (void)snprintf(name, sizeof(name), "%s" LORA_TOKENS_A, layout->embedding);
    uint32_t a = write_parameter(writer, name, lora->rank, options->vocabulary, INIT_AT_ZERO);
    (void)snprintf(name, sizeof(name), "%s" LORA_TOKENS_B, layout->embedding);
    uint32_t b = write_parameter(writer, name, options->width, lora->rank, init_normal(1.0));

    if (builder_failed(writer->builder)) {
        return 0;
    }
    a = write_token_rows(writer, build_permute(writer->builder, a, order), tokens);
    return build_scale(writer->builder, build_linear(writer->builder, a, b), adapters_scale(lora));
}
