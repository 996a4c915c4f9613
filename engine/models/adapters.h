/*
 * adapters.h - what is trained beside frozen weights: low-rank adapters of single modules, and
 * modules that are trained whole. Modules are named by the last parts of their names, as PEFT
 * does. Inside engine/models/ only.
 */
#ifndef ENGINE_MODELS_ADAPTERS_H
#define ENGINE_MODELS_ADAPTERS_H

#include "engine/models/layouts.h"
#include "engine/models/model_writer.h"

/* A module from `in` to `out` numbers. */
struct adapted {
    const char *name;
    uint64_t in;
    uint64_t out;
    bool wide; /* its products have 22 bits, also where the others have fewer */
};

/* Fails the builder where a list names no module of the layout, one twice, or one of a tied
 * pair. */
void adapters_check(struct model_writer *writer, const struct layout *layout);

/* Has the module an adapter? linear: LORA_ALL means it too. */
bool adapters_have(const struct model_options *options, const char *name, bool linear);

/* Is the module trained whole? */
bool adapters_leave(const struct model_options *options, const char *name);

/* The two parameters of an adapter, A and B, and what their product counts. */
void adapters_parts(struct model_writer *writer, uint32_t parts[2], const struct adapted *adapted);
float adapters_scale(const struct lora *lora);

/* What the adapter adds to the module's output: alpha / rank * B A x. */
uint32_t write_adapter(struct model_writer *writer, uint32_t x, const struct adapted *adapted);

/* The same beside the embedding: the rows of A's transpose that the tokens choose, times B. As PEFT
 * has it, A begins as zeros, and its columns are tokens. */
uint32_t write_token_adapter(struct model_writer *writer, const struct layout *layout,
                             uint32_t tokens);

#endif /* ENGINE_MODELS_ADAPTERS_H */
