/* jury.c - see jury.h. */
#include "tests/support/game/jury.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "chain/contracts/compiled/rules_code.h"
#include "tests/contracts/jury_code.h"
#include "tests/support/gas/contract_call.h"

enum {
    WORD_SIZE = 32,
};

void jury_open(struct jury *jury)
{
    memset(jury, 0, sizeof(*jury));
    jury->anvil = anvil_start(NULL);
    jury->rpc = anvil_rpc(jury->anvil);
    jury->jury = jury_deploy(jury, JURY_CODE);
    buffer_init(&jury->cases, 8 * (size_t)JURY_BYTES_MAX);
}

void jury_close(struct jury *jury)
{
    buffer_release(&jury->cases);
    rpc_free(jury->rpc);
    anvil_stop(jury->anvil);
}

struct address jury_deploy(struct jury *jury, const char *code)
{
    return anvil_deploy(jury->rpc, 0, code, NULL, "0x0");
}

#define RULES_CODE(name, code) (code),

void jury_deploy_rules(struct jury *jury, struct jury_rules *rules)
{
    static const char *const codes[JURY_CONTRACTS] = {RULES_CONTRACTS(RULES_CODE)};

    for (uint32_t i = 0; i < JURY_CONTRACTS; i++) {
        rules->contracts[i] = jury_deploy(jury, codes[i]);
    }
}

#define OP_LEDGER(reads, contract)                                JURY_##contract
#define CONTRACT(NAME, text, spec, rules, gradient, plan, ledger) [OP_##NAME] = (ledger),

enum jury_contract jury_contract_of(enum op_kind kind)
{
    static const enum jury_contract contracts[OP_KIND_COUNT] = {OP_LIST(CONTRACT)};

    return contracts[kind];
}

const struct address *jury_rules_of(const struct jury_rules *rules, enum op_kind kind)
{
    return &rules->contracts[jury_contract_of(kind)];
}

#define CODE_CONTRACT(NAME, text, contract) JURY_##contract,

const struct address *jury_rules_of_op(const struct jury_rules *rules, const struct op *op)
{
    static const enum jury_contract maps[] = {OP_MAP_CODES(CODE_CONTRACT)};
    static const enum jury_contract binaries[] = {OP_BINARY_CODES(CODE_CONTRACT)};

    if (op->kind == OP_MAP) {
        return &rules->contracts[maps[op->attributes[MAP_FUNCTION]]];
    }
    if (op->kind == OP_BINARY) {
        return &rules->contracts[binaries[op->attributes[BINARY_FUNCTION]]];
    }
    return jury_rules_of(rules, op->kind);
}

void jury_add(struct jury *jury, const uint8_t *evidence, size_t size)
{
    buffer_add_u32(&jury->cases, (uint32_t)size);
    buffer_add(&jury->cases, evidence, size);
    assert(jury->cases.status == STATUS_OK);
    jury->count++;
}

void jury_add_case(struct jury *jury, const struct shown_case *shown,
                   const struct shown_target *target)
{
    struct buffer evidence;

    buffer_init(&evidence, 4 * (size_t)JURY_BYTES_MAX);
    shown_case_write(&evidence, shown, target, false, 0);
    jury_add(jury, evidence.data, evidence.size);
    buffer_release(&evidence);
}

/* The contract packs what it says into one word: gas (16 bytes), flags (8), value (8). */
static struct jury_answer answer_of(const uint8_t word[WORD_SIZE])
{
    struct jury_answer answer = {
        .refused = (word[23] & 1) != 0,
        .settled = (word[23] & 2) != 0,
        .unfit = (word[23] & 4) != 0,
        .value = contract_call_u64(word),
    };

    for (int i = 8; i < 16; i++) {
        answer.gas = answer.gas << 8 | word[i];
    }
    return answer;
}

struct jury_answer *jury_hear(struct jury *jury, const struct address *rules)
{
    struct jury_answer *answers = calloc(jury->count + 1, sizeof(*answers));
    struct contract_call call;
    uint8_t address[WORD_SIZE] = {0};
    uint8_t *result;
    size_t size;

    assert(answers != NULL);
    memcpy(address + WORD_SIZE - sizeof(rules->bytes), rules->bytes, sizeof(rules->bytes));
    contract_call_init(&call, "hear(address,bytes)");
    contract_call_word(&call, 0);
    memcpy(call.data + call.size - WORD_SIZE, address, WORD_SIZE);
    contract_call_word(&call, 2 * WORD_SIZE);
    contract_call_bytes(&call, jury->cases.data, jury->cases.size);
    result = contract_call_make(jury->rpc, &size, &jury->jury, &call);
    contract_call_release(&call);
    assert(size == (2 + jury->count) * WORD_SIZE);
    for (size_t i = 0; i < jury->count; i++) {
        answers[i] = answer_of(result + (2 + i) * WORD_SIZE);
    }
    free(result);
    buffer_clear(&jury->cases);
    jury->count = 0;
    return answers;
}
