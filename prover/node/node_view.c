/* node_view.c - see node_view.h. */
#include "prover/node/node_view.h"

#include <string.h>

#include "base/io/strict_json.h"
#include "chain/codec/hex_data.h"
#include "chain/codec/wei_json.h"
#include "chain/game/terms.h"
#include "chain/money/money_text.h"
#include "chain/view/job_text.h"

#define SILENT_S 120

/* ---- writing ------------------------------------------------------------------------ */

static json_t *slots_json(const struct solver_node *node)
{
    static const char *const words[] = {[SLOT_IDLE] = "idle",
                                        [SLOT_MEASURING] = "measuring",
                                        [SLOT_TAKING] = "taking",
                                        [SLOT_TRAINING] = "training"};
    json_t *list = json_array();

    for (uint32_t i = 0; i < node->options.slot_count; i++) {
        const struct node_slot *slot = &node->slots[i];

        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:o, s:s, s:b}", "device", node->options.devices[i], "does",
                            words[slot->task], "job",
                            slot->task == SLOT_IDLE ? json_null() : strict_json_key(&slot->job),
                            "why", slot->why, "holds_up", (int)slot->holds_up));
    }
    return list;
}

/* A digit for the mark of each square. */
static json_t *squares_json(const struct job_standing *standing)
{
    char digits[JOB_VIEW_CELLS_MAX + 1];
    uint32_t count = standing->read ? standing->cell_count : 0;

    for (uint32_t i = 0; i < count; i++) {
        digits[i] = (char)('0' + standing->cells[i]);
    }
    return json_stringn(digits, count);
}

static json_t *held_json(const struct held_job *job)
{
    const struct solver_view *view = &job->session.view;
    const struct job *file = bundle_job(job->bundle);
    const struct curve *loss = &job->curve.loss;
    char words[JOB_CARD_WORDS_MAX];
    struct job_card card;

    job_card_of(&card, file);
    job_card_words(words, &card);
    return json_pack(
        "{s:s, s:s, s:o, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:i, s:i, s:i, s:I, "
        "s:o, "
        "s:o, s:s, s:s}",
        "title", card.title, "about", words, "job", strict_json_key(&job->key), "state",
        held_state_word(job->state), "trained", (json_int_t)job->steps, "steps",
        (json_int_t)file->steps, "loss", loss->end > 0 ? json_real(loss->newest) : json_null(),
        "losses", job_text_curve(loss), "held_out_losses", job_text_curve(&job->curve.held_out),
        "squares", squares_json(&job->standing), "segments", (int)view->segments, "committed",
        (int)view->committed, "final", (int)view->finalized, "open_claims", (int)view->disputed,
        "unseen_segments", (int)view->unseen, "refused_segments", (int)view->held, "refused_until",
        (json_int_t)view->refused_until_s, "segment_reward_wei", wei_json(view->reward),
        "stake_wei", wei_json(view->stake), "trouble", job->trouble, "bundle", job->run);
}

/* Of the open jobs: what an hour of each would earn, or why it is not taken. */
static json_t *offers_json(const struct solver_node *node)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < node->board.count && i < node->offer_room &&
                         json_array_size(list) < NODE_VIEW_REFUSED_MAX;
         i++) {
        const struct job_record *job = &node->board.jobs[i];
        const struct offer *offer = &node->offers[i];

        if (job->state.phase == GAME_PHASE_OPEN && node->clock.time_s <= job->terms.deadline_s) {
            (void)json_array_append_new(
                list, json_pack("{s:o, s:b, s:o, s:s}", "job", strict_json_key(&job->key),
                                "refused", (int)offer->refused, "hour_wei",
                                offer->measured == 0 ? json_null() : wei_json(offer->hour), "why",
                                offer->why));
        }
    }
    return list;
}

enum status node_view_write(const struct solver_node *node, const char *path, uint64_t started_s,
                            uint64_t now_s, struct error *error)
{
    json_t *held = json_array();
    const char *contact = node->options.terms.contact;
    const char *nobody = node->options.nobody_fetches;
    char account[ADDRESS_TEXT_SIZE];
    char endpoints[LEDGER_REASON_SIZE];
    struct buffer text;
    json_t *view;
    enum status status;

    for (uint32_t i = 0; i < node->held_count; i++) {
        (void)json_array_append_new(held, held_json(node->held[i]));
    }
    address_print(account, ledger_get_own(node->ledger));
    ledger_ill_endpoints(node->ledger, endpoints, sizeof(endpoints));
    view = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:s, s:s, s:o, s:i, s:i, s:o, s:o, s:o}",
                     "account", account, "contact", contact == NULL ? "" : contact,
                     "nobody_fetches", nobody == NULL ? "" : nobody, "contact_trouble",
                     node->own.trouble, "started", (json_int_t)started_s, "alive",
                     (json_int_t)now_s, "trouble", node->trouble, "endpoints", endpoints, "money",
                     money_json(&node->money), "paid", (int)node->paid, "lost", (int)node->lost,
                     "slots", slots_json(node), "jobs", held, "offers", offers_json(node));
    buffer_init(&text, NODE_VIEW_SIZE_MAX);
    TRY_OUT(view == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory for the node's view")
                         : strict_json_write(&text, error, view, JSON_COMPACT));
    TRY_OUT(file_write(path, error, text.data, text.size, 0600));
out:
    buffer_release(&text);
    json_decref(view);
    return status;
}

/* ---- reading --------------------------------------------------------------------------- */

enum status node_view_read(json_t **view, const char *path, struct error *error)
{
    return strict_json_read(view, error, path, NODE_VIEW_SIZE_MAX, STRICT_JSON_DEPTH_MAX);
}

void node_view_amount(char text[NODE_VIEW_AMOUNT_SIZE], const struct currency *currency,
                      const json_t *object, const char *name)
{
    char plain[WEI_TEXT_SIZE + 4];
    wei amount = 0;

    (void)snprintf(plain, sizeof(plain), "%.60swei", strict_json_text_or(object, name, ""));
    (void)snprintf(text, WEI_TEXT_SIZE, "-");
    if (wei_parse(&amount, plain) == STATUS_OK) {
        currency_print_about(text, currency, amount);
    }
}

bool node_view_money(struct money *money, const json_t *view)
{
    struct error unknown;

    error_init(&unknown);
    return money_from_json(money, json_object_get(view, "money"), &unknown) == STATUS_OK;
}

struct currency node_view_currency(const json_t *view)
{
    struct money money;

    return node_view_money(&money, view) ? money.currency : currency_coin;
}

/* Why a job that is begun stands still; NULL: none does. */
static const char *holds_up(const json_t *view)
{
    const json_t *slot;
    size_t at;

    json_array_foreach(json_object_get(view, "slots"), at, slot)
    {
        if (json_is_true(json_object_get(slot, "holds_up"))) {
            return strict_json_text_or(slot, "why", "");
        }
    }
    return NULL;
}

/* What a client or a keeper refuses, or verifiers cannot see; NULL: nothing. */
static const char *job_trouble(const json_t *view)
{
    const json_t *job;
    size_t at;

    json_array_foreach(json_object_get(view, "jobs"), at, job)
    {
        if (strict_json_number_or_0(job, "refused_until") != 0 ||
            strict_json_number_or_0(job, "unseen_segments") != 0) {
            return strict_json_text_or(job, "trouble", "");
        }
    }
    return NULL;
}

const char *node_view_trouble(const json_t *view, uint64_t now_s)
{
    const char *refused = job_trouble(view);

    return (uint64_t)strict_json_number_or_0(view, "alive") + SILENT_S < now_s
               ? "the node is silent"
           : strict_json_text_or(view, "trouble", "")[0] != '\0' ? "the ledger cannot be read"
           : refused != NULL                                     ? refused
                                                                 : holds_up(view);
}
