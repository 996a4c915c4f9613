/* ranks_team.c - see ranks_team.h. */
#include "prover/ranks/ranks_team.h"

#include <stdio.h>
#include <stdlib.h>

#define SLOWER_BY 10 /* than the longest of the last steps: that slow a rank is gone */

/* ---- its life ---------------------------------------------------------------------------- */

enum status ranks_team_open(struct ranks_team *team, uint32_t rank, uint32_t rank_count,
                            struct error *error)
{
    *team = (struct ranks_team){.link = {rank, rank_count, NULL, team},
                                .peers = calloc(rank_count, sizeof(*team->peers)),
                                .wait_least = RANKS_WAIT_LEAST};
    if (team->peers == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u ranks", rank_count);
    }
    for (uint32_t i = 0; i < rank_count; i++) {
        team->peers[i].socket = -1;
    }
    return STATUS_OK;
}

void ranks_team_close(struct ranks_team *team)
{
    if (team->close != NULL) {
        team->close(team);
    }
    free(team->peers);
    secret_wipe(&team->key, sizeof(team->key));
    team->peers = NULL;
    team->close = NULL;
}

/* ---- limits ------------------------------------------------------------------------------ */

bool ranks_team_is_idle(const struct ranks_transfer *transfers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (transfers[i].idle) {
            return true;
        }
    }
    return false;
}

uint64_t ranks_team_limit(const struct ranks_team *team, const struct ranks_transfer *transfers,
                          uint32_t count)
{
    uint64_t longest = 0;

    if (ranks_team_is_idle(transfers, count)) {
        return RANKS_WAIT_IDLE;
    }
    for (uint32_t i = 0; i < RANKS_STEPS_SEEN; i++) {
        longest = team->step_ns[i] > longest ? team->step_ns[i] : longest;
    }
    if (team->step == 0) { /* it takes in files and kernels that later ones find */
        return team->wait_least * SLOWER_BY;
    }
    longest = longest * SLOWER_BY / 1000000000u;
    return longest > team->wait_least ? longest : team->wait_least;
}

void ranks_team_stepped(struct ranks_team *team, uint64_t step_ns)
{
    team->step_ns[team->step++ % RANKS_STEPS_SEEN] = step_ns;
}

enum status ranks_team_lost(struct ranks_team *team, uint32_t rank, struct error *error,
                            const char *how)
{
    team->lost = true;
    (void)error_set(error, STATUS_RANK_LOST, "rank %u (%s) %s", rank, team->peers[rank].host, how);
    error_advise(error,
                 "'lockstep prover resume' goes on from the last checkpoint, with any number "
                 "of ranks");
    return STATUS_RANK_LOST;
}

enum status ranks_team_late(struct ranks_team *team, uint32_t rank, uint64_t limit,
                            struct error *error)
{
    char how[64];

    (void)snprintf(how, sizeof(how), "moved nothing for %llu s", (unsigned long long)limit);
    return ranks_team_lost(team, rank, error, how);
}

/* ---- messages ---------------------------------------------------------------------------- */

void ranks_team_write_head(uint8_t *head, const struct ranks_team *team,
                           const struct ranks_transfer *transfer, uint64_t number)
{
    const struct ranks_frame frame = {.from = team->link.rank,
                                      .to = transfer->peer,
                                      .tag = transfer->tag,
                                      .step = team->step,
                                      .number = number,
                                      .size = transfer->size,
                                      .job = team->job};

    ranks_frame_write(head, &frame, team->sealed ? &team->key : NULL, transfer->bytes);
}

enum status ranks_team_check_head(struct ranks_team *team, const uint8_t *head,
                                  const struct ranks_transfer *transfer, struct error *error)
{
    struct ranks_frame frame;

    return ranks_frame_read(&frame, head) && frame.size == transfer->size
               ? STATUS_OK
               : ranks_team_lost(team, transfer->peer, error,
                                 "sent what is no message of this place of this run");
}

enum status ranks_team_check(struct ranks_team *team, const uint8_t *head,
                             const struct ranks_transfer *transfer, uint64_t number,
                             struct error *error)
{
    const uint32_t rank = transfer->peer;
    struct ranks_frame frame;

    (void)!ranks_frame_read(&frame, head); /* ranks_team_check_head() has looked */
    if (!ranks_frame_is_whole(head, transfer->bytes, transfer->size)) {
        return ranks_team_lost(team, rank, error, "sent a message whose checksum is wrong");
    }
    return frame.from == rank && frame.to == team->link.rank && frame.tag == transfer->tag &&
                   frame.step == team->step && frame.number == number &&
                   digest_equal(&frame.job, &team->job)
               ? STATUS_OK
               : ranks_team_lost(team, rank, error, "is at another place of the run");
}
