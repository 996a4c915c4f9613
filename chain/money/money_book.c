/* money_book.c - see money_book.h. */
#include "chain/money/money_book.h"

#include <stdlib.h>
#include <string.h>

#define TRIES 5 /* at an answer that no event changes meanwhile */

/* ---- accounts ------------------------------------------------------------------- */

static struct money *find_account(const struct money_book *book, const struct address *account)
{
    for (uint32_t i = 0; i < book->account_count; i++) {
        if (address_equal(&book->accounts[i].account, account)) {
            return &book->accounts[i];
        }
    }
    return NULL;
}

static void add(const struct money_book *book, const struct address *account, enum money_kind kind,
                wei amount, uint64_t time_s)
{
    struct money *money = find_account(book, account);

    if (money != NULL) {
        money_add(money, kind, amount, time_s);
    }
}

static void lock_bond(const struct money_book *book, const struct address *account, wei bond)
{
    struct money *money = find_account(book, account);

    if (money != NULL) {
        money->bonds += bond;
    }
}

static void free_bond(const struct money_book *book, const struct address *account, wei bond)
{
    struct money *money = find_account(book, account);

    if (money != NULL) {
        money->bonds -= bond < money->bonds ? bond : money->bonds;
    }
}

/* ---- claims --------------------------------------------------------------------- */

static struct money_claim *find_claim(const struct money_book *book, const struct hash32 *key)
{
    for (uint32_t i = 0; i < book->claim_count; i++) {
        if (hash32_equal(&book->claims[i].key, key)) {
            return &book->claims[i];
        }
    }
    return NULL;
}

/* Makes room for one more of size bytes each. */
static enum status grow(void **items, uint32_t *room, uint32_t count, size_t size,
                        struct error *error)
{
    uint32_t wanted = *room == 0 ? 4 : 2 * *room;
    void *larger = count < *room ? *items : realloc(*items, wanted * size);

    if (larger == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the money of claims");
    }
    *room = count < *room ? *room : wanted;
    *items = larger;
    return STATUS_OK;
}

static enum status add_claim(struct money_book *book, struct money_claim **claim,
                             const struct job_record *job, const struct game_event *event,
                             struct error *error)
{
    TRY(grow((void **)&book->claims, &book->claim_room, book->claim_count, sizeof(*book->claims),
             error));
    *claim = &book->claims[book->claim_count++];
    **claim = (struct money_claim){.key = event->claim,
                                   .job = job->key,
                                   .generation = job->state.generation,
                                   .solver = job->state.solver};
    return STATUS_OK;
}

/* Claimants stand in the order in which they came. */
static enum status take_claimed(struct money_book *book, const struct job_record *job,
                                const struct game_event *event, struct error *error)
{
    struct money_claim *claim = find_claim(book, &event->claim);

    if (claim == NULL) {
        TRY(add_claim(book, &claim, job, event, error));
    }
    TRY(grow((void **)&claim->claimants, &claim->room, claim->count, sizeof(*claim->claimants),
             error));
    claim->claimants[claim->count++] =
        (struct money_claimant){.owner = event->account, .bond = event->amount};
    lock_bond(book, &event->account, event->amount);
    return STATUS_OK;
}

/* The lead's bond is half the solver's, half burned. */
static void take_defaulted(const struct money_book *book, struct money_claim *claim,
                           uint64_t time_s)
{
    const struct money_claimant lead = claim->claimants[0];
    const wei burned = claim->convicted ? lead.bond : lead.bond / 2;

    free_bond(book, &lead.owner, lead.bond);
    add(book, &lead.owner, MONEY_LOST, lead.bond, time_s);
    add(book, &claim->solver, MONEY_EARNED, lead.bond - burned, time_s);
    memmove(&claim->claimants[0], &claim->claimants[1],
            --claim->count * sizeof(claim->claimants[0]));
}

static void take_queried(const struct money_book *book, struct money_claim *claim, wei fee)
{
    claim->query_fee = fee;
    lock_bond(book, &claim->claimants[0].owner, fee);
}

static void take_replied(const struct money_book *book, struct money_claim *claim, uint64_t time_s)
{
    const struct address *lead = &claim->claimants[0].owner;

    free_bond(book, lead, claim->query_fee);
    add(book, lead, MONEY_PAID, claim->query_fee, time_s);
    add(book, &claim->solver, MONEY_EARNED, claim->query_fee, time_s);
    claim->query_fee = 0;
}

/* Each claimant that is left has its bond back, and the first one the fee of a query without a
 * reply. */
static void take_ruled(struct money_book *book, struct money_claim *claim)
{
    for (uint32_t i = 0; i < claim->count; i++) {
        free_bond(book, &claim->claimants[i].owner,
                  claim->claimants[i].bond + (i == 0 ? claim->query_fee : 0));
    }
    free(claim->claimants);
    *claim = book->claims[--book->claim_count];
}

static void take_of_claim(struct money_book *book, const struct job_record *job,
                          const struct ledger_entry *entry)
{
    struct money_claim *claim = find_claim(book, &entry->event.claim);

    if (claim == NULL) {
        return;
    }
    if (entry->event.kind == GAME_RULED) {
        take_ruled(book, claim);
    } else if (claim->count > 0) {
        switch ((int)entry->event.kind) {
        case GAME_DEFAULTED:
            take_defaulted(book, claim, entry->time_s);
            break;
        case GAME_QUERIED:
            take_queried(book, claim, job->terms.query_fee);
            break;
        case GAME_REPLIED:
            take_replied(book, claim, entry->time_s);
            break;
        default:
            break;
        }
    }
}

/* ---- jobs ------------------------------------------------------------------------ */

static void take_finalized(struct money_book *book, const struct job_record *job,
                           const struct ledger_entry *entry)
{
    const wei reward = entry->event.amount;

    add(book, &job->state.solver, MONEY_EARNED, reward, entry->time_s);
    add(book, &job->client, MONEY_PAID, reward + book->fees, entry->time_s);
    book->fees = 0;
}

/* What seats were paid is a part of the stake. */
static void take_voided(struct money_book *book, const struct job_record *job,
                        const struct ledger_entry *entry)
{
    const struct game_event *event = &entry->event;

    add(book, &event->account, MONEY_LOST, event->amount, entry->time_s);
    add(book, &job->client, MONEY_LOST, event->escrow + event->pool, entry->time_s);
    book->fees = 0;
}

/* The stake goes into a pot: all of it is lost, also where the solver gets a share. */
static void take_convicted(struct money_book *book, const struct job_record *job,
                           const struct ledger_entry *entry)
{
    add(book, &job->state.solver, MONEY_LOST, job->terms.stake, entry->time_s);
    for (uint32_t i = 0; i < book->claim_count; i++) {
        struct money_claim *claim = &book->claims[i];

        claim->convicted = claim->convicted || (claim->generation == job->state.generation &&
                                                hash32_equal(&claim->job, &job->key));
    }
}

static void take_pot(const struct money_book *book, const struct job_record *job,
                     const struct ledger_entry *entry)
{
    add(book, &entry->event.account, MONEY_EARNED, entry->event.amount, entry->time_s);
    add(book, &job->client, MONEY_EARNED, entry->event.amount, entry->time_s);
}

/* Paid back; or the bond of an alarm from now on; or of a right that was disproved. */
static void take_gone(const struct money_book *book, const struct address *mover,
                      const struct job_record *job, const struct ledger_entry *entry)
{
    const wei bond = job->terms.bond;

    free_bond(book, &entry->event.account, bond);
    if (mover != NULL) {
        add(book, &entry->event.account, MONEY_LOST, bond, entry->time_s);
        add(book, mover, MONEY_EARNED, bond - bond / 2, entry->time_s);
    }
}

static enum status take_of_job(struct money_book *book, const struct address *mover,
                               const struct job_record *job, const struct ledger_entry *entry,
                               struct error *error)
{
    const struct game_event *event = &entry->event;

    switch ((int)event->kind) {
    case GAME_ENLISTED:
        lock_bond(book, &event->account, event->count * job->terms.bond);
        break;
    case GAME_GONE:
        take_gone(book, mover, job, entry);
        break;
    case GAME_DISPROVED:
        book->disproved.now = true;
        book->disproved.job = job->key;
        book->disproved.mover = event->account;
        break;
    case GAME_FEE_PAID:
        book->fees += event->amount;
        add(book, &event->account, MONEY_EARNED, event->amount, entry->time_s);
        break;
    case GAME_FINALIZED:
        take_finalized(book, job, entry);
        break;
    case GAME_VOIDED:
        take_voided(book, job, entry);
        break;
    case GAME_RELEASED:
        add(book, &event->account, MONEY_LOST, event->amount, entry->time_s);
        break;
    case GAME_CONVICTED:
        take_convicted(book, job, entry);
        break;
    case GAME_PAID:
        take_pot(book, job, entry);
        break;
    case GAME_CLAIMED:
        return take_claimed(book, job, event, error);
    default:
        break;
    }
    return STATUS_OK;
}

/* ---- the log --------------------------------------------------------------------- */

static void forget_claims(struct money_book *book)
{
    for (uint32_t i = 0; i < book->claim_count; i++) {
        free(book->claims[i].claimants);
    }
    book->claim_count = 0;
}

static void start_over(struct money_book *book)
{
    forget_claims(book);
    for (uint32_t i = 0; i < book->account_count; i++) {
        book->accounts[i] = (struct money){.account = book->accounts[i].account};
    }
    book->fees = 0;
    book->disproved.now = false;
}

static enum status hear(void *context, const struct job_record *job,
                        const struct ledger_entry *entry, struct error *error)
{
    struct money_book *book = context;
    const struct address mover = book->disproved.mover;
    const bool disproved =
        book->disproved.now && job != NULL && hash32_equal(&book->disproved.job, &job->key);

    book->disproved.now = false;
    if (entry->kind == LEDGER_REWIND) {
        start_over(book);
    } else if (job != NULL && job_event_is_of_claim(entry->event.kind)) {
        take_of_claim(book, job, entry);
    } else if (job != NULL) {
        return take_of_job(book, disproved ? &mover : NULL, job, entry, error);
    }
    return STATUS_OK;
}

enum status money_book_open(struct money_book *book, struct board *board,
                            const struct address *accounts, uint32_t count, struct error *error)
{
    *book =
        (struct money_book){.board = board, .accounts = calloc(count + 1, sizeof(struct money))};
    if (book->accounts == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the money of accounts");
    }
    book->account_count = count;
    for (uint32_t i = 0; i < count; i++) {
        book->accounts[i].account = accounts[i];
    }
    board->listener = (struct board_listener){.hear = hear, .context = book};
    return STATUS_OK;
}

void money_book_release(struct money_book *book)
{
    forget_claims(book);
    free(book->claims);
    free(book->accounts);
    memset(book, 0, sizeof(*book));
}

/* ---- looking --------------------------------------------------------------------- */

struct money money_book_look(const struct money_book *book, uint32_t number)
{
    struct money money = book->accounts[number];

    for (uint32_t i = 0; i < book->board->count; i++) {
        const struct job_record *job = &book->board->jobs[i];

        if (job->state.phase == GAME_PHASE_RUNNING &&
            address_equal(&job->state.solver, &money.account)) {
            money.stakes += job->terms.stake;
        }
        if ((job->state.phase == GAME_PHASE_OPEN || job->state.phase == GAME_PHASE_RUNNING) &&
            address_equal(&job->client, &money.account)) {
            money.escrow += (job->state.segments - job->state.finalized) * job->terms.reward -
                            job->state.missing_escrow + job->pool;
        }
    }
    return money;
}

static void take_gas(void *context, wei amount, uint64_t time_s)
{
    money_add(context, MONEY_GAS, amount, time_s);
}

enum status money_book_ask(const struct money_book *book, struct money *money, uint32_t number,
                           struct ledger *ledger, struct error *error)
{
    *money = money_book_look(book, number);
    money->currency = *ledger_get_currency(ledger);
    TRY(ledger_get_account(ledger, &money->free, &money->owed, &money->account, error));
    return ledger_each_gas(ledger, &money->account, take_gas, money, error);
}

/* Purse and debt are those of the newest block: they hold once no event came since. */
enum status money_book_read(const struct money_book *book, struct money *money, struct board *board,
                            struct ledger *ledger, struct error *error)
{
    TRY(ledger_catch_up(ledger, error));
    TRY(board_follow(board, ledger, error));
    for (int tries = 0; tries < TRIES; tries++) {
        const uint64_t read = board->read;

        for (uint32_t i = 0; i < book->account_count; i++) {
            TRY(money_book_ask(book, &money[i], i, ledger, error));
        }
        TRY(ledger_catch_up(ledger, error));
        TRY(board_follow(board, ledger, error));
        if (board->read == read) {
            break;
        }
    }
    return STATUS_OK;
}
