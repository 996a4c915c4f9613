/*
 * jury.h - judges many cases by contracts of rules in one call, through tests/contracts/Jury.sol.
 *
 * Add evidence, then hear it: the answers come back in the same order.
 */
#ifndef TESTS_SUPPORT_GAME_JURY_H
#define TESTS_SUPPORT_GAME_JURY_H

#include "base/buffer.h"
#include "tests/support/dispute/shown_case.h"
#include "tests/support/game/anvil.h"

/* Hear before there are more bytes than this. */
#define JURY_BYTES_MAX (UINT32_C(1) << 19)

struct jury {
    struct anvil *anvil;
    struct rpc *rpc;
    struct address jury;
    struct buffer cases;
    size_t count; /* of cases */
};

struct jury_answer {
    uint64_t gas; /* that the contract of rules used */
    bool refused; /* reverted: value is the selector of the error */
    bool settled; /* of a part: no other can change the element, which is the value */
    bool unfit;   /* of a part: its exponents do not go with the reply's */
    uint64_t value;
};

void jury_open(struct jury *jury); /* skips the test where there is no anvil */
void jury_close(struct jury *jury);

/* code is one of the contracts in chain/contracts/compiled/rules_code.h. */
struct address jury_deploy(struct jury *jury, const char *code);

/* The contracts of rules, as OP_CONTRACTS has them. */
#define JURY_CONTRACT(NAME, file) JURY_##NAME,
enum jury_contract { OP_CONTRACTS(JURY_CONTRACT) JURY_CONTRACTS };
struct jury_rules {
    struct address contracts[JURY_CONTRACTS];
};

void jury_deploy_rules(struct jury *jury, struct jury_rules *rules);

/* The one that has the rules of a kind; of some function codes another one has them. */
enum jury_contract jury_contract_of(enum op_kind kind);
const struct address *jury_rules_of(const struct jury_rules *rules, enum op_kind kind);
const struct address *jury_rules_of_op(const struct jury_rules *rules, const struct op *op);

/* Evidence of an element, or of a part of one. */
void jury_add(struct jury *jury, const uint8_t *evidence, size_t size);
void jury_add_case(struct jury *jury, const struct shown_case *shown,
                   const struct shown_target *target);

/* Answers to all cases added, which are then forgotten. The caller frees them. */
struct jury_answer *jury_hear(struct jury *jury, const struct address *rules);

#endif /* TESTS_SUPPORT_GAME_JURY_H */
