/* content_pieces.c - see content_pieces.h. */
#include "prover/serve/content_pieces.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/bundle/checkpoint_file.h"
#include "proofs/commit/piece.h"

struct list {
    struct list *next;
    struct digest root; /* of the state: it fixes the list */
    uint64_t count;
    struct digest hashes[];
};

struct content_pieces {
    pthread_mutex_t lock; /* of the lists */
    pthread_mutex_t work; /* held while a list is made */
    struct list *lists;   /* only ever added to */
};

enum status content_pieces_open(struct content_pieces **pieces, struct error *error)
{
    struct content_pieces *made = calloc(1, sizeof(*made));

    *pieces = NULL;
    if (made == NULL || pthread_mutex_init(&made->lock, NULL) != 0) {
        free(made);
        return error_set(error, STATUS_NO_MEMORY, "no memory for the hashes of pieces");
    }
    if (pthread_mutex_init(&made->work, NULL) != 0) {
        (void)pthread_mutex_destroy(&made->lock);
        free(made);
        return error_set(error, STATUS_NO_MEMORY, "no memory for the hashes of pieces");
    }
    *pieces = made;
    return STATUS_OK;
}

void content_pieces_close(struct content_pieces *pieces)
{
    if (pieces == NULL) {
        return;
    }
    while (pieces->lists != NULL) {
        struct list *list = pieces->lists;

        pieces->lists = list->next;
        free(list);
    }
    (void)pthread_mutex_destroy(&pieces->work);
    (void)pthread_mutex_destroy(&pieces->lock);
    free(pieces);
}

static const struct list *find_list(struct content_pieces *pieces, const struct digest *root)
{
    const struct list *list;

    (void)pthread_mutex_lock(&pieces->lock);
    list = pieces->lists;
    while (list != NULL && !digest_equal(&list->root, root)) {
        list = list->next;
    }
    (void)pthread_mutex_unlock(&pieces->lock);
    return list;
}

/* Reads the checkpoint. */
static enum status make_list(struct list *list, const struct content_pieces_request *request,
                             struct error *error)
{
    const struct tape *tape = request->job->tape;
    struct safetensors file;
    struct digest root;
    enum status status;

    TRY(safetensors_open(&file, error, request->path));
    TRY_OUT(checkpoint_file_is(&file, request->job, request->step, &request->root)
                ? STATUS_OK
                : STATUS_BAD_FORMAT);
    TRY_OUT(checkpoint_file_pieces(list->hashes, &file, tape, error));
    TRY_OUT(piece_state_root(&root, tape, list->hashes));
    status = digest_equal(&root, &request->root) ? STATUS_OK : STATUS_BAD_FORMAT;
out:
    safetensors_close(&file);
    return status == STATUS_BAD_FORMAT
               ? error_set(error, STATUS_NOT_FOUND,
                           "whole checkpoint before step %" PRIu64 ": the file is damaged",
                           request->step)
               : status;
}

static enum status add_list(struct content_pieces *pieces,
                            const struct content_pieces_request *request, struct error *error)
{
    uint64_t count = piece_count_of_state(request->job->tape);
    struct list *list = malloc(sizeof(*list) + count * DIGEST_SIZE);
    enum status status;

    if (list == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the hashes of pieces");
    }
    list->count = count;
    list->root = request->root;
    status = make_list(list, request, error);
    if (status != STATUS_OK) {
        free(list);
        return status;
    }
    (void)pthread_mutex_lock(&pieces->lock);
    list->next = pieces->lists;
    pieces->lists = list;
    (void)pthread_mutex_unlock(&pieces->lock);
    return STATUS_OK;
}

enum status content_pieces_answer(struct content_pieces *pieces, uint8_t **bytes, uint64_t *size,
                                  const struct content_pieces_request *request, struct error *error)
{
    const struct list *list = find_list(pieces, &request->root);

    if (list == NULL) {
        enum status status;

        if (pthread_mutex_trylock(&pieces->work) != 0) {
            return error_set(error, STATUS_OVER_LIMIT, "busy with another list: try again");
        }
        status = add_list(pieces, request, error);
        (void)pthread_mutex_unlock(&pieces->work);
        TRY(status);
        list = find_list(pieces, &request->root);
    }
    *size = list->count * DIGEST_SIZE;
    *bytes = malloc(*size + 1);
    if (*bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the hashes of pieces");
    }
    memcpy(*bytes, list->hashes, *size);
    return STATUS_OK;
}
