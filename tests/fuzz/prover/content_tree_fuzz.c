/*
 * content_tree_fuzz.c - a byte that chooses, then any bytes as the name that a stranger asks a
 * solver's server for (0), or the Range header of his request (1). A bundle stands behind the
 * names: what is found is inside it, and a part lies inside the whole.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/models/model.h"
#include "proofs/job/job_make.h"
#include "proofs/mirror/serve.h"
#include "prover/serve/content_tree.h"
#include "tests/support/folder.h"

#define CONTENT_MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void insist(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "site fuzz: %s\n", what);
        abort();
    }
}

static void make_bundle(const char *path)
{
    const struct digest roots[2] = {{{0}}};
    struct job_terms terms = {
        .steps = 8, .segment_length = 4, .data_roots = roots, .data_count = 2};
    struct model_options options;
    struct model model;
    struct bundle *bundle = NULL;
    struct job *job = NULL;
    const struct digest root = {{7}};

    model_options_default(&options, MODEL_MLP);
    options.hidden = 8;
    options.data_count = 100;
    insist(model_build(&model, &options, NULL) == STATUS_OK, "a model");
    insist(job_from_model(&job, &model, &terms, NULL) == STATUS_OK, "a job");
    model_release(&model);
    insist(bundle_create(&bundle, path, job, NULL) == STATUS_OK, "a bundle");
    for (uint64_t i = 0; i < 6; i++) {
        const struct bundle_step step = {.step = i, .root = root};

        insist(bundle_record(bundle, &step, NULL) == STATUS_OK, "a step");
    }
    bundle_close(bundle);
}

static struct content_tree *the_site(void)
{
    static struct content_tree *tree;
    static char path[96];
    static const char *const bundles[] = {path};
    const struct content_tree_options options = {.bundles = bundles, .bundle_count = 1};
    struct error error;

    if (tree == NULL) {
        (void)snprintf(path, sizeof(path), "%s/a.run", folder_of_program());
        make_bundle(path);
        error_init(&error);
        insist(content_tree_open(&tree, &options, &error) == STATUS_OK, "a site");
    }
    return tree;
}

/* Where the name says "JOB", the id of the job that is there: no fuzzer would find it. */
static void name_of(char name[SERVE_PATH_MAX], struct content_tree *tree, const char *text)
{
    struct serve_content list;
    struct error error;
    const char *mark = strstr(text, "JOB");
    const char *id;

    error_init(&error);
    insist(content_tree_find(tree, &list, "v1/jobs.json", NULL, &error) == STATUS_OK, "no list");
    id = strstr((const char *)list.bytes, "\"job\": \"");
    insist(id != NULL, "no job in the list");
    (void)snprintf(name, SERVE_PATH_MAX, "%.*s%.64s%s", mark == NULL ? 0 : (int)(mark - text), text,
                   mark == NULL ? "" : id + 8, mark == NULL ? text : mark + 3);
    serve_content_release(&list);
}

static void find(const char *text)
{
    struct content_tree *tree = the_site();
    struct serve_content content;
    char name[SERVE_PATH_MAX];
    struct error error;
    enum status status;

    error_init(&error);
    name_of(name, tree, text);
    status = content_tree_find(tree, &content, name, NULL, &error);
    insist(status == STATUS_OK || status == STATUS_NOT_FOUND, "neither found nor not");
    if (status == STATUS_OK) {
        insist((content.bytes == NULL) == (content.descriptor >= 0) && content.size < CONTENT_MAX,
               "content that is none");
        serve_content_release(&content);
    }
}

static void range(const char *text, uint64_t size)
{
    uint64_t first = 0;
    uint64_t count = 0;

    if (serve_read_range(&first, &count, text, size) == SERVE_PART) {
        insist(first < size && count > 0 && count <= size - first, "a part outside the whole");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;

    if (size == 0) {
        return 0;
    }
    text = malloc(size);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] % 2 == 0) {
        find(text);
    } else {
        range(text, data[0]);
        range(text, 0);
        range(text, UINT64_MAX);
    }
    free(text);
    return 0;
}
