/*
 * check_wire_fuzz.c - a byte that chooses, then any bytes as a request to a child that checks (0),
 * or as what a child says (1), which has read a stranger's bytes. What is read is within its
 * limits, and reads the same after we have written it.
 */
#include <stdlib.h>
#include <string.h>

#include "verifier/check/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *text_of(json_t *object)
{
    char *text = json_dumps(object, JSON_SORT_KEYS | JSON_COMPACT);

    json_decref(object);
    if (text == NULL) {
        abort();
    }
    return text;
}

static void must_be_equal(char *one, char *other)
{
    if (strcmp(one, other) != 0) {
        abort();
    }
    free(one);
    free(other);
}

static void read_request(const uint8_t *data, size_t size)
{
    struct check_request *request = malloc(sizeof(*request));
    char *text;

    if (request != NULL && check_request_parse(request, data, size, NULL) == STATUS_OK) {
        if (request->segment_count > CHECK_REACH_MAX + 1 ||
            request->mirror_count > CHECK_MIRRORS_MAX || request->data_count > CHECK_DATA_MAX) {
            abort();
        }
        text = text_of(check_request_json(request));
        if (check_request_parse(request, text, strlen(text), NULL) != STATUS_OK) {
            abort();
        }
        must_be_equal(text, text_of(check_request_json(request)));
    }
    free(request);
}

static void read_result(const uint8_t *data, size_t size)
{
    struct check_result *result = malloc(sizeof(*result));
    char *text;

    if (result != NULL && check_result_parse(result, data, size, NULL) == STATUS_OK) {
        if (result->mirror_count > CHECK_MIRRORS_MAX ||
            (result->outcome == CHECK_REFUTED) != (result->flaw != CHECK_FLAW_NONE)) {
            abort();
        }
        text = text_of(check_result_json(result));
        if (check_result_parse(result, text, strlen(text), NULL) != STATUS_OK) {
            abort();
        }
        must_be_equal(text, text_of(check_result_json(result)));
    }
    free(result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    if (data[0] % 2 == 0) {
        read_request(data + 1, size - 1);
    } else {
        read_result(data + 1, size - 1);
    }
    return 0;
}
