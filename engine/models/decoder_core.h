/*
 * decoder_core.h - what the parts of the composer of decoders share: decoder.c and experts.c.
 */
#ifndef ENGINE_MODELS_DECODER_CORE_H
#define ENGINE_MODELS_DECODER_CORE_H

#include "engine/models/layouts.h"
#include "engine/models/model_writer.h"

#define DECODER_DEVIATION 0.02 /* of the weights */

/* A model while it is written. */
struct decoder {
    struct model_writer *writer;
    struct builder *builder;
    const struct model_options *options;
    const struct layout *layout;
    uint64_t heads;
    uint64_t kv_heads;
    uint64_t head_width;
    uint64_t hidden;
    uint64_t turned;       /* elements of a head that a rotation turns */
    uint32_t rotary;       /* the table of angles */
    uint32_t rotary_local; /* of local layers */
};

/* A linear layer from `in` to `out` numbers. Its weight is drawn with the deviation. */
struct linear {
    const char *name;
    uint64_t in;
    uint64_t out;
    double deviation;
    bool bias;
    bool wide; /* 22 bits, also where the others have fewer */
};

/* A matrix, a frozen one where nothing of it is trained; x as binary32; the function between the
 * feed-forward layers. */
uint32_t decoder_matrix(const struct decoder *decoder, const char *name, uint64_t rows,
                        uint64_t columns, double deviation);
uint32_t decoder_real(const struct decoder *decoder, uint32_t x);
uint32_t decoder_activate(const struct decoder *decoder, uint32_t x);

/* Has the module an adapter? The reference of preference pairs has none. linear: as in
 * adapters_have(). */
bool decoder_has_adapter(const struct decoder *decoder, const char *name, bool linear);
uint32_t decoder_linear(const struct decoder *decoder, uint32_t x, const struct linear *linear);

/* What makes logits of what the last norm gives. */
struct decoder_head {
    uint32_t weight;
    uint32_t shift; /* TENSOR_NONE: it has none */
};
uint32_t decoder_logits(const struct decoder *decoder, uint32_t x, const struct decoder_head *head);

/* The step that decides a receipt, from what the last norm gives (receipt.c). */
void decoder_write_receipt(const struct decoder *decoder, uint32_t x,
                           const struct decoder_head *head);

/* Layers that add to the residual stream start smaller in some layouts. */
double decoder_last_deviation(const struct decoder *decoder);

/* The feed-forward layers of a mixture of experts (experts.c). */
void decoder_check_experts(const struct decoder *decoder);
uint32_t decoder_experts(const struct decoder *decoder, uint32_t x);
/* What the balance of experts adds to the loss, over all layers; TENSOR_NONE: nothing. */
uint32_t decoder_balance(const struct decoder *decoder);

#endif /* ENGINE_MODELS_DECODER_CORE_H */
