/*
 * forgery.h - what a liar tells who is asked for the parts of an element that is false: values that
 * put together give that element all the same, so that a ledger takes them.
 */
#ifndef TESTS_SUPPORT_DISPUTE_FORGERY_H
#define TESTS_SUPPORT_DISPUTE_FORGERY_H

#include "tests/support/dispute/exhibit.h"

/* Makes of the parts of the right element those of the one that is asked about; the two functions
 * below say more. */
bool forgery_bend(struct buffer *reply, uint32_t *part, const struct partial_sums_target *queried,
                  uint64_t *random);

/*
 * Fills a fresh buffer; *part is one that is false then. Where it can be, one value alone is false;
 * else the exponent is, and with it every part. False: nothing gives the element, such as a NaN
 * that rules do not make.
 */
struct forgery_case {
    const struct tape *tape;
    const struct evidence_source *source; /* of the accused's trees */
    const struct evidence_target *target;
    uint32_t bits; /* the false element */
};
bool forgery_make(struct buffer *reply, uint32_t *part, const struct forgery_case *made,
                  uint64_t *random);

/* The same of an exhibit's element. */
bool forgery_of(struct buffer *reply, uint32_t *part, const struct exhibit *exhibit,
                const struct evidence_target *target, uint64_t *random);

#endif /* TESTS_SUPPORT_DISPUTE_FORGERY_H */
