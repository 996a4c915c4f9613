/*
 * stop_rule.h - a rule that ends a run before the last step of its job, by the held-out figures.
 *
 * RUN/stop.rule has the rule. When it ends the run follows from it and from the figures in the
 * journal, so everybody finds the same: after a look at held-out data whose loss is above
 * `above`, or after `patience` looks in a row none of which found less than the least before
 * them; then at the end of that segment. A run on a ledger has no such rule: each segment of it
 * is ordered and paid.
 */
#ifndef PROOFS_BUNDLE_STOP_RULE_H
#define PROOFS_BUNDLE_STOP_RULE_H

#include "proofs/bundle/bundle.h"

/*
 * The file:
 *     OFFSET  SIZE  MEANING
 *     0       8     "LSSTOP" 0x00 0x01
 *     8       4     bits of `above`, a finite binary32 above 0; or of NaN: no such limit
 *     12      4     `patience`; 0: none
 */
#define STOP_RULE_SIZE    16
#define STOP_PATIENCE_MAX 1000000
#define STOP_RULE_TEXT    96

struct stop_rule {
    uint32_t above_bits; /* FLOAT_NAN_BITS: no limit */
    uint32_t patience;   /* 0: none */
};
#define STOP_RULE_NONE ((struct stop_rule){FLOAT_NAN_BITS, 0})

bool stop_rule_is_none(const struct stop_rule *rule);

/* Refuses a rule for a job that looks at no held-out data. The bundle has no rule yet. */
MUST_CHECK enum status stop_rule_write(struct bundle *bundle, const struct stop_rule *rule,
                                       struct error *error);
/* What a rule needs, and where there can be none. */
MUST_CHECK enum status stop_rule_refuse_job(struct error *error);
MUST_CHECK enum status stop_rule_refuse_ledger(struct error *error);
/* STOP_RULE_NONE where the bundle has none. */
MUST_CHECK enum status stop_rule_read(struct stop_rule *rule, const struct bundle *bundle,
                                      struct error *error);
MUST_CHECK enum status stop_rule_parse(struct stop_rule *rule, const uint8_t *bytes, size_t size,
                                       struct error *error);

/* "--stop-above 2.5 --patience 3" */
void stop_rule_text(char text[STOP_RULE_TEXT], const struct stop_rule *rule);

/* What the rule makes of figures that come in the order of steps. */
struct stop_watch {
    struct stop_rule rule;
    bool looked;
    float least;
    uint64_t least_after; /* so many steps */
    uint32_t worse;       /* looks since then */
    uint64_t followed;    /* steps of the journal */
    uint64_t fired_after; /* UINT64_MAX: not yet */
    const char *fired_by; /* "--patience" */
};

void stop_watch_init(struct stop_watch *watch, const struct stop_rule *rule);
void stop_watch_add(struct stop_watch *watch, uint64_t after_steps, uint32_t loss_bits);
/* The figures of the journal's first `steps` steps, as far as they are new. STATUS_REFUSED: the
 * bundle is locked. */
MUST_CHECK enum status stop_watch_follow(struct stop_watch *watch, struct bundle *bundle,
                                         uint64_t steps, struct error *error);
/* After how many steps the run ends; UINT64_MAX: by no rule. */
uint64_t stop_watch_end(const struct stop_watch *watch, const struct job *job);

/* "ended after step 40 by --patience 3: the least figure is 2.1, after step 25"; "" where the
 * bundle has no rule, or the rule has not ended it. */
#define STOP_SENTENCE 256
MUST_CHECK enum status stop_rule_sentence(char text[STOP_SENTENCE], struct bundle *bundle,
                                          struct error *error);

#endif /* PROOFS_BUNDLE_STOP_RULE_H */
