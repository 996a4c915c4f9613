/* rate_file_fuzz.c - any bytes as a file of learning rates: what is read are as many finite rates
 * as there are steps. */
#include <stdlib.h>

#include "client/recipe/rate_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint32_t steps = size == 0 ? 1 : data[0] % 8u + 1u;
    struct error error;
    float *rates = NULL;

    error_init(&error);
    if (rate_file_parse(&rates, size == 0 ? data : data + 1, size == 0 ? 0 : size - 1, "rates",
                        steps, &error) != STATUS_OK) {
        if (error.status == STATUS_OK || error.text[0] == '\0' || rates != NULL) {
            abort();
        }
        return 0;
    }
    for (uint32_t i = 0; i < steps; i++) {
        if (!(rates[i] >= 0.0f && rates[i] <= 1e6f)) {
            abort();
        }
    }
    free(rates);
    return 0;
}
