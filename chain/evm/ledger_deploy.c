/* ledger_deploy.c - puts the contracts on a chain: see ledger_evm.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/io/file.h"
#include "chain/codec/abi.h"
#include "chain/codec/hex_data.h"
#include "chain/contracts/compiled/examiner_code.h"
#include "chain/contracts/compiled/referee_code.h"
#include "chain/contracts/compiled/rules_code.h"
#include "chain/contracts/compiled/seeds_code.h"
#include "chain/evm/evm.h"
#include "chain/evm/evm_open.h"
#include "chain/evm/evm_seeds.h"
#include "chain/evm/evm_token.h"
#include "chain/evm/ledger_evm.h"

#define NUMBER(name, code)  ARGUMENT_##code,
#define RULES(rules, bytes) {.name = "rules of " rules, .code = (bytes)},

/* What the examiner is given. */
enum { RULES_CONTRACTS(NUMBER) ARGUMENTS_MAX };

enum {
    /* Creating costs 200 gas for each byte that stays and 16 for each that is sent. */
    GAS_AT_LEAST = 500000,
    GAS_OF_A_BYTE = 260,
    POLL_MS = 200,
    /* Contracts count what they create from 1. */
    REGISTRY_OF_REFEREE = 1,
};

struct deployment {
    const struct ledger_options *options;
    const char *name;
    const struct address *token;
    uint32_t timeout_s; /* for each contract */
    struct rpc *rpc;
    struct outbox *outbox;
};

struct deployed_contract {
    const char *name;
    const char *code;
    struct address arguments[ARGUMENTS_MAX];
    size_t argument_count;
    uint32_t number; /* in place of addresses; 0: none */
};

/* The contract's code and its arguments. *data is the caller's. */
static enum status make_creation(uint8_t **data, size_t *size,
                                 const struct deployed_contract *contract, struct error *error)
{
    const size_t room = strlen(contract->code) / 2 + ARGUMENTS_MAX * ABI_WORD_SIZE;
    struct byte_writer writer;

    *data = calloc(1, room);
    if (*data == NULL || hex_read(*data, room, size, contract->code) != STATUS_OK) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the contract's code");
    }
    byte_writer_init(&writer, *data + *size, room - *size);
    for (size_t i = 0; i < contract->argument_count; i++) {
        abi_put_address(&writer, &contract->arguments[i]);
    }
    if (contract->number != 0) {
        abi_put_u64(&writer, contract->number);
    }
    *size += writer.used;
    return STATUS_OK;
}

static enum status wait_for_contract(struct deployment *deployment, const char *name,
                                     struct address *address, uint64_t *height, struct error *error)
{
    const struct timespec pause = {0, POLL_MS * 1000000L};
    struct outbox_status found = {0};

    for (uint64_t i = 0; i < (uint64_t)deployment->timeout_s * 1000 / POLL_MS; i++) {
        enum status worked = outbox_work(deployment->outbox, error);
        enum status status = outbox_look(deployment->outbox, &found, name, error);

        if (status != STATUS_OK || (worked != STATUS_OK && worked != STATUS_UNREACHABLE)) {
            return status != STATUS_OK ? status : worked;
        }
        if (found.state == OUTBOX_MINED || found.state == OUTBOX_FINAL) {
            *address =
                address_of_contract(signer_address(deployment->options->signer), found.nonce);
            *height = found.height;
            return found.reverted
                       ? error_set(error, STATUS_REFUSED, "the chain refused the contract")
                       : STATUS_OK;
        }
        (void)nanosleep(&pause, NULL);
    }
    return error_set(error, STATUS_UNREACHABLE, "the contract is still on its way%s%s",
                     found.trouble[0] != '\0' ? ": " : "", found.trouble);
}

/* Each contract has its own name in the outbox, so a crash loses none. */
static void name_of(char name[OUTBOX_NAME_MAX + 1], const struct deployment *deployment,
                    const struct deployed_contract *contract)
{
    (void)snprintf(name, OUTBOX_NAME_MAX + 1, "%.150s, %s", deployment->name, contract->name);
}

/* 0: of a contract that was sent before, and may be paid. */
static uint64_t gas_to_come(struct deployment *deployment, const struct deployed_contract *contract)
{
    char name[OUTBOX_NAME_MAX + 1];
    struct outbox_status found;
    struct error unknown;

    error_init(&unknown);
    name_of(name, deployment, contract);
    if (outbox_look(deployment->outbox, &found, name, &unknown) == STATUS_OK &&
        found.state != OUTBOX_WAITING) {
        return 0;
    }
    return GAS_AT_LEAST + (uint64_t)GAS_OF_A_BYTE * (strlen(contract->code) / 2 +
                                                     contract->argument_count * ABI_WORD_SIZE);
}

static enum status put_up(struct deployment *deployment, const struct deployed_contract *contract,
                          struct address *address, uint64_t *height, struct error *error)
{
    static const struct address nobody;
    char name[OUTBOX_NAME_MAX + 1];
    const uint64_t gas = gas_to_come(deployment, contract);
    uint8_t *data = NULL;
    size_t size = 0;
    enum status status;

    name_of(name, deployment, contract);
    if (gas > 0) {
        TRY_OUT(outbox_check_purse(deployment->outbox, 0, gas, 0, error));
    }
    TRY_OUT(make_creation(&data, &size, contract, error));
    status = outbox_add(deployment->outbox, name, &nobody, 0, data, size,
                        GAS_AT_LEAST + (uint64_t)GAS_OF_A_BYTE * size, error);
out:
    free(data);
    TRY(status);
    return wait_for_contract(deployment, name, address, height, error);
}

/* Rules, examiner, seeds, and the referee, which makes the registry: neither exists without the
 * other. */
static enum status put_up_all(struct deployment *deployment, struct address *registry,
                              uint64_t *height, uint32_t seed_delay, struct error *error)
{
    const struct deployed_contract rules[ARGUMENTS_MAX] = {RULES_CONTRACTS(RULES)};
    struct deployed_contract examiner = {
        .name = "examiner", .code = EXAMINER_CODE, .argument_count = ARGUMENTS_MAX};
    struct deployed_contract referee = {
        .name = "referee", .code = REFEREE_CODE, .argument_count = 3};
    const struct deployed_contract seeds = {
        .name = "seeds", .code = HEADER_SEEDS_CODE, .number = seed_delay};
    struct address address;
    uint64_t gas;

    referee.arguments[2] = *deployment->token;
    gas = gas_to_come(deployment, &examiner) + gas_to_come(deployment, &referee) +
          gas_to_come(deployment, &seeds);

    for (size_t i = 0; i < ARGUMENTS_MAX; i++) {
        gas += gas_to_come(deployment, &rules[i]);
    }
    /* Before the first is paid: the others are of no use without the last. */
    TRY(outbox_check_purse(deployment->outbox, 0, 0, gas, error));
    for (size_t i = 0; i < ARGUMENTS_MAX; i++) {
        TRY(put_up(deployment, &rules[i], &examiner.arguments[i], height, error));
    }
    TRY(put_up(deployment, &examiner, &referee.arguments[0], height, error));
    TRY(put_up(deployment, &seeds, &referee.arguments[1], height, error));
    TRY(put_up(deployment, &referee, &address, height, error));
    *registry = address_of_contract(&address, REGISTRY_OF_REFEREE);
    return STATUS_OK;
}

enum status ledger_evm_deploy(const struct ledger_options *options, const char *name,
                              struct address *registry, uint64_t *height,
                              const struct address *token, uint32_t timeout_s, struct error *error)
{
    struct deployment deployment = {
        .options = options, .name = name, .token = token, .timeout_s = timeout_s};
    uint64_t chain_id = 0;
    uint32_t seed_delay = 0;
    enum status status;

    TRY_OUT(evm_open_rpc(&deployment.rpc, options, error));
    TRY_OUT(evm_chain_id(deployment.rpc, &chain_id, error));
    TRY_OUT(evm_seeds_delay(&seed_delay, chain_id, error));
    if (!address_is_zero(token)) {
        TRY_OUT(evm_token_check(deployment.rpc, token, error));
    }
    TRY_OUT(file_private_folder(options->state_dir, error));
    TRY_OUT(evm_open_outbox(&deployment.outbox, deployment.rpc, options, chain_id, error));
    status = put_up_all(&deployment, registry, height, seed_delay, error);
out:
    outbox_close(deployment.outbox);
    rpc_free(deployment.rpc);
    return status;
}
