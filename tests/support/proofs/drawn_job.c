/* drawn_job.c - see drawn_job.h. */
#include "tests/support/proofs/drawn_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "proofs/job/job_make.h"
#include "tests/support/proofs/npy_writer.h"
#include "tests/support/test.h"

enum { VALUES = 8 }; /* of an element: a token, a brightness, a class */

static void insist(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fprintf(stderr, "drawn job: %s\n", error->text);
        exit(1);
    }
}

static void write_data(struct drawn_job *drawn, const struct tensor *tensor, uint64_t *random)
{
    static int files;
    const uint32_t at = drawn->count++;
    struct npy npy = {.element = ELEMENT_U8, .rank = tensor->rank};
    char name[32];
    struct error error;

    error_init(&error);
    drawn->sizes[at] = tensor_size(tensor);
    drawn->bytes[at] = malloc(drawn->sizes[at]);
    for (uint64_t i = 0; i < drawn->sizes[at]; i++) {
        drawn->bytes[at][i] = (uint8_t)test_random_below(random, VALUES);
    }
    (void)snprintf(name, sizeof(name), "data-%d.%s", files++, tensor->rank > 1 ? "npy" : "u8");
    drawn->paths[at] = small_path(name);
    if (tensor->rank > 1) {
        memcpy(npy.dims, tensor->dims, tensor->rank * sizeof(npy.dims[0]));
        insist(npy_write(drawn->paths[at], &error, &npy, drawn->bytes[at]), &error);
    } else {
        insist(file_write(drawn->paths[at], &error, drawn->bytes[at], drawn->sizes[at], 0600),
               &error);
    }
}

void drawn_job_new(struct drawn_job *drawn, const struct small_job_options *wanted)
{
    struct digest roots[DRAWN_JOB_DATA];
    struct job_terms terms = {
        .steps = wanted->steps, .segment_length = wanted->segment_length, .data_roots = roots};
    struct model_options options = wanted->model;
    struct model model;
    struct error error;
    uint64_t random = 11;

    error_init(&error);
    memset(drawn, 0, sizeof(*drawn));
    options.data_dtype = options.held_out.dtype = options.reach_dtype = DTYPE_U8;
    options.held_out.count = options.data_count;
    options.steps = (uint32_t)wanted->steps;
    insist(model_build(&model, &options, &error), &error);
    for (uint32_t id = 0; id < model.tape->tensor_count; id++) {
        if (model.tape->tensors[id].role == ROLE_DATA) {
            write_data(drawn, &model.tape->tensors[id], &random);
            commit_tensor_root(&roots[terms.data_count], COMMIT_DATA, &model.tape->tensors[id],
                               drawn->bytes[terms.data_count], 1);
            terms.data_count++;
        }
    }
    insist(job_from_model(&drawn->job, &model, &terms, &error), &error);
    model_release(&model);
}

void drawn_job_release(struct drawn_job *drawn)
{
    for (uint32_t i = 0; i < drawn->count; i++) {
        free(drawn->bytes[i]);
    }
    job_free(drawn->job);
    memset(drawn, 0, sizeof(*drawn));
}
