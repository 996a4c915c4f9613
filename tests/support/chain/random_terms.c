/* random_terms.c - see random_terms.h. */
#include "tests/support/chain/random_terms.h"

#include <string.h>

#include "chain/game/allow_list.h"
#include "tests/support/test.h"

static uint32_t below(uint64_t *random, uint32_t limit)
{
    return (uint32_t)test_random_below(random, limit);
}

static bool chance(uint64_t *random, uint32_t percent)
{
    return below(random, 100) < percent;
}

static wei small_amount(uint64_t *random)
{
    return (wei)below(random, 1000) + 1;
}

struct game_terms random_terms(uint64_t *random, const struct address *members,
                               uint32_t member_count, uint64_t now_s)
{
    struct game_terms terms = {0};

    memset(terms.data_root.bytes, 0x22, DIGEST_SIZE);
    terms.reward = small_amount(random);
    terms.seats = chance(random, 15) ? 0 : 1 + below(random, 3);
    terms.fee = terms.seats == 0 && chance(random, 60) ? 0 : small_amount(random);
    terms.bond = 4 * terms.fee + small_amount(random);
    terms.stake = terms.bond + small_amount(random);
    terms.query_fee = below(random, (uint32_t)game_query_fee_max(&terms) + 1);
    terms.coverage_ppm = terms.seats == 0     ? 0
                         : chance(random, 40) ? GAME_PPM
                                              : below(random, GAME_PPM + 1);
    terms.panel_least = terms.seats + below(random, 3);
    if (chance(random, 20)) {
        allow_list_root(&terms.verifiers, members, member_count);
    }
    if (chance(random, 10)) {
        allow_list_root(&terms.solvers, members, member_count);
    }
    if (chance(random, 3)) {
        terms.verifiers.bytes[0] ^= 1; /* admits nobody */
        terms.panel_least = terms.seats;
    }
    terms.segment_period_s = 10 + below(random, 100);
    terms.seal_period_s = 5 + below(random, 20);
    terms.reveal_period_s = 5 + below(random, 20);
    terms.claim_period_s = 5 + below(random, 40);
    terms.clock_s = 5 + below(random, 20);
    terms.deadline_s = now_s + 300 + below(random, 3000);
    return terms;
}

void random_terms_spoil(struct game_terms *terms, uint64_t *random, uint64_t now_s)
{
    uint32_t *const periods[] = {&terms->segment_period_s, &terms->seal_period_s,
                                 &terms->reveal_period_s, &terms->claim_period_s, &terms->clock_s};

    switch (below(random, 14)) {
    case 0:
        memset(&terms->job_id, 0, sizeof(terms->job_id));
        break;
    case 1:
        terms->steps = chance(random, 50) ? 0 : (UINT64_C(1) << 40) - below(random, 2);
        break;
    case 2:
        terms->segment_steps = chance(random, 50) ? 0 : 256 + below(random, 2);
        break;
    case 3:
        terms->reward = chance(random, 50) ? 0 : WEI_MAX + below(random, 2);
        break;
    case 4:
        terms->fee = 0;
        break;
    case 5:
        terms->fee = chance(random, 50) ? WEI_MAX + below(random, 2) : terms->bond;
        break;
    case 6:
        terms->stake = chance(random, 50) ? 0 : WEI_MAX + 1;
        break;
    case 7:
        terms->bond = chance(random, 50) ? terms->stake + below(random, 2) : 4 * terms->fee;
        break;
    case 8:
        terms->query_fee = game_query_fee_max(terms) + below(random, 2);
        break;
    case 9:
        terms->seats = 8 + below(random, 2);
        break;
    case 10:
        terms->coverage_ppm = GAME_PPM + below(random, 2);
        break;
    case 11:
        terms->panel_least = chance(random, 50) ? 255 + below(random, 2) : terms->seats - 1;
        break;
    case 12:
        terms->deadline_s = chance(random, 50) ? now_s : (UINT64_C(1) << 39);
        break;
    default:
        *periods[below(random, 5)] = chance(random, 50) ? 0 : (1u << 24) - below(random, 2);
        break;
    }
}
