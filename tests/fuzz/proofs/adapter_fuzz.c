/* adapter_fuzz.c - any bytes as adapter_config.json: what is taken are sound adapters, and what is
 * refused is refused with a word. */
#include <stdlib.h>
#include <string.h>

#include "proofs/model/adapter_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lora lora = {0};
    struct error error;

    error_init(&error);
    if (adapter_config_parse(&lora, data, size, "adapter_config.json", &error) != STATUS_OK) {
        if (error.status == STATUS_OK || error.text[0] == '\0') {
            abort();
        }
        return 0;
    }
    if (lora.rank == 0 || lora.rank > 65535 || !(lora.alpha > 0.0) || lora.targets[0] == '\0' ||
        memchr(lora.targets, '\0', sizeof(lora.targets)) == NULL) {
        abort();
    }
    return 0;
}
