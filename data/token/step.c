/* step.c - see step.h. */
#include "data/token/step.h"

#include <string.h>

#include "data/text/nfc.h"

size_t step_find(const struct step *step, const uint8_t *text, size_t size, size_t at)
{
    const uint8_t *found;

    if (step->from_size == 1) {
        found = memchr(text + at, step->from[0], size - at);
    } else {
        found = memmem(text + at, size - at, step->from, step->from_size);
    }
    return found == NULL ? size : (size_t)(found - text);
}

void step_replace(const struct step *step, struct buffer *out, const uint8_t *text, size_t size)
{
    size_t at = 0;

    while (at < size) {
        size_t found = step_find(step, text, size, at);

        buffer_add(out, text + at, found - at);
        if (found == size) {
            break;
        }
        buffer_add(out, step->to, step->to_size);
        at = found + step->from_size;
    }
}

static enum status run_step(const struct step *step, struct buffer *out,
                            const struct step_text *text, bool continued, struct error *error)
{
    if (step->kind == STEP_NFC) {
        if (nfc_add(out, text->bytes, text->size) == STATUS_OVER_LIMIT) {
            return error_set(error, STATUS_OVER_LIMIT, "more than 1024 combining marks in a row");
        }
    } else if (step->kind == STEP_REPLACE) {
        step_replace(step, out, text->bytes, text->size);
    } else {
        if (text->size > 0 && !continued) {
            buffer_add(out, step->to, step->to_size);
        }
        buffer_add(out, text->bytes, text->size);
    }
    return buffer_check(out, error, "normalized text");
}

enum status step_normalize(const struct step *steps, size_t count, struct buffer buffers[2],
                           struct step_text *text, bool continued, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        struct buffer *out = &buffers[i % 2];

        buffer_clear(out);
        TRY(run_step(&steps[i], out, text, continued, error));
        *text = (struct step_text){out->data, out->size};
    }
    return STATUS_OK;
}
