/* adapter_config.c - see adapter_config.h. */
#include "proofs/model/adapter_config.h"

#include <stdio.h>
#include <string.h>

#include "base/io/file.h"
#include "base/io/strict_json.h"

#define RANK_MAX 65535

/* Keys that are read, or say nothing of what adapters compute. */
static const char *const known[] = {
    "peft_type",
    "task_type",
    "base_model_name_or_path",
    "r",
    "lora_alpha",
    "target_modules",
    "lora_dropout",
    "fan_in_fan_out",
    "inference_mode",
    "revision",
    "auto_mapping",
    "init_lora_weights",
    "megatron_core",
    "loftq_config",
    "peft_version",
    "runtime_config",
    "megatron_config",
};

static bool is_known(const char *key)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(key, known[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* null, false, an empty list and "none" ask for nothing. */
static bool asks_for_nothing(const json_t *value)
{
    return json_is_null(value) || json_is_false(value) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0) ||
           (json_is_string(value) && strcmp(json_string_value(value), "none") == 0);
}

static enum status check_keys(const json_t *config, const char *what, struct error *error)
{
    const char *type = json_string_value(json_object_get(config, "peft_type"));
    const char *key;
    json_t *value;

    if (type == NULL || strcmp(type, "LORA") != 0) {
        return error_set(error, STATUS_REFUSED, "%s: 'peft_type' is not \"LORA\"", what);
    }
    json_object_foreach((json_t *)(uintptr_t)config, key, value)
    {
        if (!is_known(key) && !asks_for_nothing(value)) {
            return error_set(error, STATUS_REFUSED,
                             "%s: '%.64s' asks for what adapters here do not compute", what, key);
        }
    }
    return STATUS_OK;
}

/* Appends a name to the list, which commas part. */
static bool add_target(char targets[LORA_TARGETS_MAX], const json_t *name)
{
    const char *text = json_string_value(name);
    const size_t size = strlen(targets);

    return text != NULL && text[0] != '\0' && strpbrk(text, ",.*\\|()[]") == NULL &&
           snprintf(targets + size, LORA_TARGETS_MAX - size, "%s%s", size == 0 ? "" : ",", text) <
               (int)(LORA_TARGETS_MAX - size);
}

static bool read_targets(char targets[LORA_TARGETS_MAX], const json_t *list)
{
    json_t *name;
    size_t i;

    targets[0] = '\0';
    if (json_is_string(list)) { /* a regular expression, or this word */
        return strcmp(json_string_value(list), LORA_ALL) == 0 && add_target(targets, list);
    }
    json_array_foreach(list, i, name)
    {
        if (!add_target(targets, name)) {
            return false;
        }
    }
    return targets[0] != '\0';
}

static enum status take_config(struct lora *lora, const json_t *config, const char *what,
                               struct error *error)
{
    const json_int_t rank = json_integer_value(json_object_get(config, "r"));
    const double alpha = json_number_value(json_object_get(config, "lora_alpha"));

    TRY(check_keys(config, what, error));
    if (rank < 1 || rank > RANK_MAX || !(alpha > 0.0 && alpha <= 1e6)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%s: 'r' must be from 1 to %d, and 'lora_alpha' from above 0 to 1e6", what,
                         RANK_MAX);
    }
    if (!read_targets(lora->targets, json_object_get(config, "target_modules"))) {
        return error_set(error, STATUS_REFUSED,
                         "%s: 'target_modules' is no list of the last parts of names", what);
    }
    lora->rank = (uint32_t)rank;
    lora->alpha = alpha;
    return STATUS_OK;
}

enum status adapter_config_parse(struct lora *lora, const void *bytes, size_t size,
                                 const char *what, struct error *error)
{
    json_t *config = NULL;
    enum status status;

    TRY(strict_json_parse(&config, error, what, bytes, size, ADAPTER_CONFIG_SIZE_MAX,
                          STRICT_JSON_DEPTH_MAX));
    status = json_is_object(config) ? take_config(lora, config, what, error)
                                    : error_set(error, STATUS_BAD_FORMAT, "%s is no object", what);
    json_decref(config);
    return status;
}

enum status adapter_config_read(struct lora *lora, const char *folder, struct error *error)
{
    struct file_bytes bytes = {0};
    char path[FILE_PATH_MAX];
    enum status status;

    TRY(file_path_join(path, sizeof(path), error, folder, ADAPTER_CONFIG_NAME));
    TRY(file_read(&bytes, error, path, ADAPTER_CONFIG_SIZE_MAX));
    status = adapter_config_parse(lora, bytes.data, bytes.size, path, error);
    file_bytes_release(&bytes);
    return status;
}
