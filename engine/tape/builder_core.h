/*
 * builder_core.h - the inside of a builder, for the files that append operations.
 */
#ifndef ENGINE_TAPE_BUILDER_CORE_H
#define ENGINE_TAPE_BUILDER_CORE_H

#include "engine/tape/builder.h"

/* What the builder knows of a tensor, besides the tape's entry. */
struct tensor_note {
    uint32_t producer;      /* operation that makes it, or OP_NONE */
    uint32_t last_quantize; /* newest QUANTIZE that reads it, or OP_NONE */
    bool stopped;           /* no gradient passes: build_stop() */
    bool wide;              /* a product whose gradients have 22 bits: build_linear_wide() */
};

#define OP_NONE UINT32_MAX

struct builder {
    struct tape tape;
    struct tensor_note *notes; /* one per tensor */
    uint32_t *quantize_before; /* one per operation: the QUANTIZE of the same tensor before it */
    uint32_t tensor_room;
    uint32_t op_room;
    uint32_t state_room;
    struct precision precision;
    uint32_t step;  /* the state "step", or TENSOR_NONE */
    uint32_t micro; /* the state "micro" of a tape with a repeat, or TENSOR_NONE */
    uint32_t carry_room;
    bool equilibrates;
    struct product_choice (*choose)(void *context, uint32_t number); /* NULL: nothing is chosen */
    void *choose_context;
    uint32_t product_count; /* of two operands, so far */
    struct error error;     /* the first failure */
    char scope[TENSOR_NAME_MAX + 1];
};

/* Fails the builder with a sentence, unless it has failed already. */
void builder_fail(struct builder *builder, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

bool builder_failed(const struct builder *builder);

/* Makes room for one more entry of size bytes in the table at *table. Without memory the builder
 * fails: false. Then count the room again. */
bool builder_grow(struct builder *builder, void *table, size_t size, uint32_t count, uint32_t room);
uint32_t builder_next_room(uint32_t count, uint32_t room);

/* An operation with inputs and without attributes. */
struct op op_begin(enum op_kind kind, uint32_t input_count, const uint32_t *inputs);

void op_attribute(struct op *op, uint64_t value);
void op_attribute_float(struct op *op, float value);

/* The shape of an existing tensor, as binary32. */
struct output_shape shape_like(const struct builder *builder, uint32_t id);
struct output_shape shape_vector(enum dtype dtype, uint64_t count);
struct output_shape shape_matrix(enum dtype dtype, uint64_t rows, uint64_t columns);

#define PRECISION_WIDE ((struct precision){22, 0})

/* Views of experts' weights (experts, n, k) whose rows are n of each expert, or k of each. */
struct view view_experts(uint64_t experts, uint64_t n, uint64_t k);
struct view view_experts_transposed(uint64_t experts, uint64_t n, uint64_t k);

/* Rows of a, through a (R, k) view, by the expert that index names: (R, n). The rows of b's view
 * are n of each expert. */
uint32_t build_contract_chosen(struct builder *builder, uint32_t a, uint32_t index, uint32_t b,
                               const struct view *b_view, uint32_t rank, const uint64_t *dims);
/* out[e,m,n] = sum over k with index[k] == e of a[m,k] * b[n,k]. */
uint32_t build_contract_chosen_rows(struct builder *builder, uint32_t index, uint32_t a,
                                    const struct view *a_view, uint32_t b,
                                    const struct view *b_view, struct shifts shifts, uint32_t rank,
                                    const uint64_t *dims);

/* The exponents of the newest QUANTIZE of x through the view, or SHIFT_NONE. */
uint32_t find_exponents(const struct builder *builder, uint32_t x, const struct view *view);

#endif /* ENGINE_TAPE_BUILDER_CORE_H */
