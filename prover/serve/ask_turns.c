/* ask_turns.c - see ask_turns.h. */
#include "prover/serve/ask_turns.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

struct ask_turns_party {
    struct address account;
    bool waits;     /* or it is its turn */
    uint64_t last;  /* the number of its last turn; 0: it had none */
    double share;   /* turns that it may have now, */
    time_t share_s; /* as of this second */
};

struct ask_turns {
    pthread_mutex_t lock;
    pthread_cond_t turned;
    struct ask_turns_party parties[ASK_TURNS_PARTIES_MAX];
    uint32_t party_count;
    uint64_t turns;
    bool running;
};

enum status ask_turns_open(struct ask_turns **turns, struct error *error)
{
    struct ask_turns *made = calloc(1, sizeof(*made));

    *turns = NULL;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to take turns");
    }
    (void)pthread_mutex_init(&made->lock, NULL); /* neither can fail here */
    (void)pthread_cond_init(&made->turned, NULL);
    *turns = made;
    return STATUS_OK;
}

void ask_turns_close(struct ask_turns *turns)
{
    if (turns != NULL) {
        (void)pthread_cond_destroy(&turns->turned);
        (void)pthread_mutex_destroy(&turns->lock);
        free(turns);
    }
}

/* Where nobody is remembered any more, the one that was idle for longest is forgotten. */
static struct ask_turns_party *place_of(struct ask_turns *turns, const struct address *account)
{
    struct ask_turns_party *oldest = NULL;

    for (uint32_t i = 0; i < turns->party_count; i++) {
        struct ask_turns_party *party = &turns->parties[i];

        if (address_equal(&party->account, account)) {
            return party;
        }
        if (!party->waits && (oldest == NULL || party->last < oldest->last)) {
            oldest = party;
        }
    }
    if (turns->party_count < ASK_TURNS_PARTIES_MAX) {
        oldest = &turns->parties[turns->party_count++];
    }
    if (oldest != NULL) {
        *oldest = (struct ask_turns_party){.account = *account, .share = ASK_TURNS_SHARE};
    }
    return oldest;
}

static bool has_share(struct ask_turns_party *party, time_t now_s)
{
    if (now_s > party->share_s && party->share_s != 0) {
        party->share += ASK_TURNS_SHARE_S * (double)(now_s - party->share_s);
    }
    party->share = party->share < ASK_TURNS_SHARE ? party->share : ASK_TURNS_SHARE;
    party->share_s = now_s;
    return party->share >= 1;
}

static bool is_next(const struct ask_turns *turns, const struct ask_turns_party *party)
{
    for (uint32_t i = 0; i < turns->party_count; i++) {
        if (turns->parties[i].waits && turns->parties[i].last < party->last) {
            return false;
        }
    }
    return !turns->running;
}

static enum status enter_party(struct ask_turns *turns, struct ask_turns_party **party,
                               const struct address *account, struct error *error)
{
    *party = place_of(turns, account);
    if (*party == NULL || (*party)->waits) {
        return error_set(error, STATUS_OVER_LIMIT, "busy with another trace query");
    }
    if (!address_is_zero(account) && !has_share(*party, time(NULL))) {
        return error_set(error, STATUS_OVER_LIMIT,
                         "this party has had its share of replies: %d, and %d more each second",
                         ASK_TURNS_SHARE, ASK_TURNS_SHARE_S);
    }
    (*party)->waits = true;
    return STATUS_OK;
}

enum status ask_turns_enter(struct ask_turns *turns, struct ask_turns_party **party,
                            const struct address *account, struct error *error)
{
    enum status status;

    (void)pthread_mutex_lock(&turns->lock);
    status = enter_party(turns, party, account, error);
    (void)pthread_mutex_unlock(&turns->lock);
    return status;
}

enum status ask_turns_wait(struct ask_turns *turns, struct ask_turns_party *party, uint32_t seconds,
                           struct error *error)
{
    struct timespec end;
    int waited = 0;
    bool is_its;

    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += seconds;
    (void)pthread_mutex_lock(&turns->lock);
    while (!is_next(turns, party) && waited == 0) {
        waited = pthread_cond_timedwait(&turns->turned, &turns->lock, &end);
    }
    is_its = is_next(turns, party);
    turns->running |= is_its;
    party->waits = is_its;
    if (is_its) {
        party->last = ++turns->turns;
        party->share -= 1;
    }
    (void)pthread_mutex_unlock(&turns->lock);
    return is_its ? STATUS_OK
                  : error_set(error, STATUS_OVER_LIMIT, "busy with the trace queries of others");
}

void ask_turns_leave(struct ask_turns *turns, struct ask_turns_party *party)
{
    (void)pthread_mutex_lock(&turns->lock);
    turns->running = false;
    party->waits = false;
    (void)pthread_cond_broadcast(&turns->turned);
    (void)pthread_mutex_unlock(&turns->lock);
}
