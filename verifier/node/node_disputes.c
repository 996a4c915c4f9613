/* node_disputes.c - see node_disputes.h. */
#include "verifier/node/node_disputes.h"

#include <stdio.h>
#include <stdlib.h>

#include "verifier/node/node_children.h"
#include "verifier/store/mirrors.h"

#define FIRST_DISPUTE ((int64_t)1 << 62) /* numbers of children; tasks stay far below */

static bool is_running(void *context, const struct hash32 *claim)
{
    const struct node *node = context;

    for (uint32_t i = 0; i < WORKERS_MAX; i++) {
        if (node->running[i].number != 0 && node->running[i].disputing &&
            hash32_equal(&node->running[i].claim, claim)) {
            return true;
        }
    }
    return false;
}

/* The child has no key: it is given an ask about this one step. */
static enum status sign_ask(struct node *node, struct check_request *request,
                            const struct store_segment *segment, struct error *error)
{
    const struct ask ask = {.place = *ledger_get_game(node->ports.ledger),
                            .job = segment->job,
                            .index = segment->committed.index,
                            .step = request->disputed_step,
                            .expiry_s = node->now_ms / 1000 + ASK_LIFE_S};

    return node->ports.signer == NULL ? STATUS_OK
                                      : ask_write(request->ask, &ask, node->ports.signer, error);
}

/* Starts the child that finds the move. STATUS_NOT_FOUND: none is free now, or a segment is
 * missing. */
static enum status run_step(void *context, const struct dispute *dispute,
                            const struct store_segment *segment, struct error *error)
{
    struct node *node = context;
    struct check_request *request = NULL;
    enum status status;

    /* The places beside those of checks are kept for turns that are ours. */
    if (dispute->follows && node->running_count >= node->options.checks_max) {
        return STATUS_NOT_FOUND;
    }
    status = node_request(node, &request, segment, error);
    if (status == STATUS_OK) {
        request->disputed = true;
        request->disputed_step = dispute->step;
        status = sign_ask(node, request, segment, error);
    }
    if (status != STATUS_OK) {
        free(request);
        return status;
    }
    (void)snprintf(request->folder, sizeof(request->folder), "%s", dispute->folder);
    return node_start(node, FIRST_DISPUTE + node->disputes++, &dispute->claim, request, error);
}

static enum status find_fault(void *context, const char *why, struct error *error)
{
    struct node *node = context;

    return node->fault ? STATUS_OK : node_fault(node, why, error);
}

struct dispute_ports node_dispute_ports(struct node *node)
{
    return (struct dispute_ports){.store = node->ports.store,
                                  .ledger = node->ports.ledger,
                                  .log = node->ports.log,
                                  .cache = node->options.cache,
                                  .move_max = node->options.move_max,
                                  .time_s = node->clock.time_s,
                                  .now_ms = node->now_ms,
                                  .context = node,
                                  .is_running = is_running,
                                  .run_step = run_step,
                                  .find_fault = find_fault};
}

enum status node_disputes(struct node *node, bool *busy, struct error *error)
{
    const struct dispute_ports ports = node_dispute_ports(node);

    return node->options.mode == NODE_OBSERVE ? STATUS_OK : dispute_round(&ports, busy, error);
}

enum status node_take_move(struct node *node, const struct node_running *place,
                           const struct check_result *result, struct error *error)
{
    const struct dispute_ports ports = node_dispute_ports(node);

    struct store_dispute claim;

    TRY(mirrors_note(node->ports.store, place->request, result, node->now_ms, node->ports.log,
                     error));
    if (result->has_header &&
        store_dispute(node->ports.store, &claim, &place->claim, error) == STATUS_OK) {
        TRY(store_set_header(node->ports.store, &claim.job, result->header, error));
    }
    return result->outcome == CHECK_FAULT ? node_fault(node, result->reason, error)
                                          : dispute_take(&ports, &place->claim, result, error);
}
