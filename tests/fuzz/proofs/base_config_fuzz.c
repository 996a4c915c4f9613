/* base_config_fuzz.c - any bytes as config.json: what is read is a decoder with sound sizes, and
 * the model of it is built or refused. */
#include <stdlib.h>

#include "proofs/format/base_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Small enough to build in no time. */
static bool is_small(const struct model_options *model)
{
    return model->layers <= 2 && model->vocabulary <= 64 && model->width <= 64 &&
           model->hidden <= 64 && model->heads <= 8 && model->head_width <= 64;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct base_config config;
    struct error error;
    struct model model;

    error_init(&error);
    if (base_config_parse(&config, data, size, "config.json", &error) != STATUS_OK) {
        if (error.status == STATUS_OK || error.text[0] == '\0') {
            abort(); /* refused without a word */
        }
        return 0;
    }
    if (config.model.vocabulary == 0 || config.model.layers == 0 || config.model.heads == 0 ||
        config.model.width == 0 || config.positions == 0 || !(config.model.norm_epsilon > 0.0)) {
        abort();
    }
    config.model.length = 4;
    config.model.data_count = 16;
    if (base_config_check_length(&config, 4, &error) == STATUS_OK && is_small(&config.model) &&
        model_build(&model, &config.model, &error) == STATUS_OK) {
        model_release(&model);
    }
    return 0;
}
