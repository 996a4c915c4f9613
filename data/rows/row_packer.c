/* row_packer.c - see row_packer.h. */
#include "data/rows/row_packer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void row_packer_init(struct row_packer *packer, uint32_t length, const struct row_sink *sink)
{
    assert(length > 0 && length <= ROW_LENGTH_MAX);
    *packer = (struct row_packer){.length = length, .sink = *sink};
}

void row_packer_release(struct row_packer *packer)
{
    for (size_t i = 0; i < ROW_OPEN_MAX; i++) {
        free(packer->rows[i].tokens);
        free(packer->rows[i].reach);
        free(packer->rows[i].mask);
    }
    memset(packer, 0, sizeof(*packer));
}

/* Memory for one more open row; zeros, since what is not used is padding. */
static enum status open_row(struct row_packer *packer, struct error *error,
                            struct packed_row **opened)
{
    struct packed_row *row = &packer->rows[packer->open_count];
    const size_t length = packer->length;

    if (row->tokens == NULL) {
        row->tokens = malloc(length * sizeof(*row->tokens));
        row->reach = malloc(length * sizeof(*row->reach));
        row->mask = malloc(length);
    }
    if (row->tokens == NULL || row->reach == NULL || row->mask == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for rows of %u tokens",
                         packer->length);
    }
    memset(row->tokens, 0, length * sizeof(*row->tokens));
    memset(row->reach, 0, length * sizeof(*row->reach));
    memset(row->mask, 0, length);
    row->used = 0;
    row->opened = packer->opened++;
    packer->open_count++;
    *opened = row;
    return STATUS_OK;
}

/* Is one fuller than the other, or as full and older? */
static bool comes_before(const struct packed_row *one, const struct packed_row *two)
{
    return one->used > two->used || (one->used == two->used && one->opened < two->opened);
}

static enum status close_row(struct row_packer *packer, struct error *error, uint32_t index)
{
    struct packed_row closed = packer->rows[index];

    TRY(packer->sink.take(packer->sink.context, error, &closed));
    packer->open_count--;
    packer->rows[index] = packer->rows[packer->open_count];
    packer->rows[packer->open_count] = closed; /* its memory serves the next */
    packer->closed++;
    return STATUS_OK;
}

static enum status close_fullest(struct row_packer *packer, struct error *error)
{
    uint32_t fullest = 0;

    for (uint32_t i = 1; i < packer->open_count; i++) {
        fullest = comes_before(&packer->rows[i], &packer->rows[fullest]) ? i : fullest;
    }
    return close_row(packer, error, fullest);
}

static void put_tokens(struct row_packer *packer, struct packed_row *row, const uint32_t *ids,
                       const uint8_t *learned, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool counts = i > 0 && learned[i] != 0;

        row->tokens[row->used + i] = ids[i];
        row->reach[row->used + i] = (uint32_t)i;
        row->mask[row->used + i] = counts;
        packer->learned += counts;
    }
    row->used += (uint32_t)count;
    packer->tokens += count;
}

enum status row_packer_add(struct row_packer *packer, struct error *error, const uint32_t *ids,
                           const uint8_t *learned, size_t count)
{
    struct packed_row *best = NULL;

    assert(count > 0 && count <= packer->length);
    for (uint32_t i = 0; i < packer->open_count; i++) {
        struct packed_row *row = &packer->rows[i];

        if (packer->length - row->used >= count && (best == NULL || comes_before(row, best))) {
            best = row;
        }
    }
    if (best == NULL && packer->open_count == ROW_OPEN_MAX) {
        TRY(close_fullest(packer, error));
    }
    if (best == NULL) {
        TRY(open_row(packer, error, &best));
    }
    put_tokens(packer, best, ids, learned, count);
    return STATUS_OK;
}

enum status row_packer_add_alone(struct row_packer *packer, struct error *error,
                                 const uint32_t *ids, const uint8_t *learned, size_t count)
{
    struct packed_row *row = NULL;

    assert(count > 0 && count <= packer->length && packer->open_count < ROW_OPEN_MAX);
    TRY(open_row(packer, error, &row));
    put_tokens(packer, row, ids, learned, count);
    return close_row(packer, error, packer->open_count - 1);
}

enum status row_packer_finish(struct row_packer *packer, struct error *error)
{
    while (packer->open_count > 0) {
        TRY(close_fullest(packer, error));
    }
    return STATUS_OK;
}

/* ---- to go on later ---- */

void row_packer_write(const struct row_packer *packer, struct buffer *out)
{
    buffer_add_u32(out, packer->open_count);
    buffer_add_u64(out, packer->opened);
    buffer_add_u64(out, packer->closed);
    buffer_add_u64(out, packer->tokens);
    buffer_add_u64(out, packer->learned);
    for (uint32_t i = 0; i < packer->open_count; i++) {
        const struct packed_row *row = &packer->rows[i];

        buffer_add_u64(out, row->opened);
        buffer_add_u32(out, row->used);
        for (uint32_t at = 0; at < row->used; at++) {
            buffer_add_u32(out, row->tokens[at]);
            buffer_add_u32(out, row->reach[at]);
            buffer_add_u8(out, row->mask[at]);
        }
    }
}

enum status row_packer_read(struct row_packer *packer, struct error *error, struct reader *reader)
{
    uint32_t count = reader_u32(reader);
    uint64_t opened = reader_u64(reader);

    packer->closed = reader_u64(reader);
    packer->tokens = reader_u64(reader);
    packer->learned = reader_u64(reader);
    /* A damaged state may claim any number of rows: no more than a packer ever has open. */
    if (count > ROW_OPEN_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "%u open rows", count);
    }
    for (uint32_t i = 0; i < count && !reader->failed; i++) {
        struct packed_row *row = NULL;
        uint64_t age = reader_u64(reader);
        uint32_t used = reader_u32(reader);

        TRY(open_row(packer, error, &row));
        /* Rows are numbered as they are opened, so the oldest is known; none is as young as the
         * next. */
        if (used > packer->length || age >= opened) {
            return error_set(error, STATUS_BAD_FORMAT, "an open row that cannot be");
        }
        row->opened = age;
        row->used = used;
        for (uint32_t at = 0; at < used; at++) {
            row->tokens[at] = reader_u32(reader);
            row->reach[at] = reader_u32(reader);
            row->mask[at] = reader_u8(reader) != 0;
        }
    }
    packer->opened = opened;
    return STATUS_OK;
}
