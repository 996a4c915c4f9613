/* memory_link.c - see memory_link.h. */
#include "tests/support/ranks/memory_link.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct message {
    struct message *next;
    uint32_t from;
    uint32_t to;
    uint32_t tag;
    size_t size;
    uint8_t bytes[];
};

struct end {
    struct ranks_link link;
    struct memory_links *links;
};

struct memory_links {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    struct message *first; /* in the order in which they were sent */
    uint64_t sent;
    uint32_t count;
    struct end *ends;
};

static void send_one(struct memory_links *links, uint32_t from, const struct ranks_transfer *sent)
{
    struct message *message = malloc(sizeof(*message) + sent->size);
    struct message **place = &links->first;

    if (message == NULL) {
        abort();
    }
    *message = (struct message){NULL, from, sent->peer, sent->tag, sent->size};
    memcpy(message->bytes, sent->bytes, sent->size);
    while (*place != NULL) {
        place = &(*place)->next;
    }
    *place = message;
    links->sent += sent->size;
    (void)pthread_cond_broadcast(&links->arrived);
}

static struct message *take(struct memory_links *links, uint32_t from, uint32_t to)
{
    for (;;) {
        for (struct message **at = &links->first; *at != NULL; at = &(*at)->next) {
            struct message *found = *at;

            if (found->from == from && found->to == to) {
                *at = found->next;
                return found;
            }
        }
        (void)pthread_cond_wait(&links->arrived, &links->lock);
    }
}

static enum status exchange(void *context, const struct ranks_transfer *transfers, uint32_t count,
                            struct error *error)
{
    struct end *end = context;
    struct memory_links *links = end->links;
    enum status status = STATUS_OK;

    (void)pthread_mutex_lock(&links->lock);
    for (uint32_t i = 0; i < count; i++) {
        if (transfers[i].sends) {
            send_one(links, end->link.rank, &transfers[i]);
        }
    }
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        if (!transfers[i].sends) {
            struct message *message = take(links, transfers[i].peer, end->link.rank);

            if (message->tag != transfers[i].tag || message->size != transfers[i].size) {
                status =
                    error_set(error, STATUS_BAD_FORMAT, "tag %u of %zu bytes, not %u of %zu",
                              message->tag, message->size, transfers[i].tag, transfers[i].size);
            } else {
                memcpy(transfers[i].bytes, message->bytes, message->size);
            }
            free(message);
        }
    }
    (void)pthread_mutex_unlock(&links->lock);
    return status;
}

struct memory_links *memory_links_new(uint32_t ranks)
{
    struct memory_links *links = calloc(1, sizeof(*links));

    if (links == NULL || (links->ends = calloc(ranks, sizeof(*links->ends))) == NULL) {
        abort();
    }
    links->count = ranks;
    (void)pthread_mutex_init(&links->lock, NULL);
    (void)pthread_cond_init(&links->arrived, NULL);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        links->ends[rank] = (struct end){{rank, ranks, exchange, &links->ends[rank]}, links};
    }
    return links;
}

void memory_links_free(struct memory_links *links)
{
    while (links->first != NULL) {
        struct message *next = links->first->next;

        free(links->first);
        links->first = next;
    }
    (void)pthread_cond_destroy(&links->arrived);
    (void)pthread_mutex_destroy(&links->lock);
    free(links->ends);
    free(links);
}

const struct ranks_link *memory_links_of(struct memory_links *links, uint32_t rank)
{
    return &links->ends[rank].link;
}

uint64_t memory_links_sent(struct memory_links *links)
{
    uint64_t sent;

    (void)pthread_mutex_lock(&links->lock);
    sent = links->sent;
    (void)pthread_mutex_unlock(&links->lock);
    return sent;
}
