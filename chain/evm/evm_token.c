/* evm_token.c - see evm_token.h. */
#include "chain/evm/evm_token.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "chain/codec/abi.h"
#include "chain/evm/evm_registry.h"

enum {
    TEXT_WORDS = 3,    /* of a symbol: where it is, its length, and itself */
    DECIMALS_MAX = 77, /* digits of 256 bits */
    APPROVE_GAS = 150000,
    APPROVALS_MAX = 1000, /* of one account, one after the other */
};

/* ---- asking -------------------------------------------------------------------- */

/* A getter of a number, of no or up to two accounts. */
static enum status ask(struct rpc *rpc, struct uint256 *number, const struct address *token,
                       const char *signature, const struct address *const accounts[2],
                       struct error *error)
{
    uint8_t call[ABI_SELECTOR_SIZE + 2 * ABI_WORD_SIZE];
    struct byte_writer writer;
    struct hash32 word;

    byte_writer_init(&writer, call, sizeof(call));
    abi_put_selector(&writer, signature);
    for (size_t i = 0; i < 2 && accounts[i] != NULL; i++) {
        abi_put_address(&writer, accounts[i]);
    }
    TRY(evm_word(rpc, &word, token, call, writer.used, error));
    *number = uint256_from_bytes(word.bytes);
    return STATUS_OK;
}

static wei bounded(const struct uint256 *number)
{
    wei amount;

    return wei_from_uint256(&amount, number) && amount < WEI_MAX ? amount : WEI_MAX;
}

enum status evm_token_balance(struct rpc *rpc, wei *balance, const struct address *token,
                              const struct address *account, struct error *error)
{
    struct uint256 number;

    TRY(ask(rpc, &number, token, "balanceOf(address)", (const struct address *[]){account, NULL},
            error));
    *balance = bounded(&number);
    return STATUS_OK;
}

/* ---- what it is ------------------------------------------------------------------ */

/* Reverting and nonsense are answers too: no. */
static enum status may_answer(bool *answers, enum status status)
{
    *answers = status == STATUS_OK;
    return status == STATUS_REFUSED || status == STATUS_BAD_FORMAT || status == STATUS_OVER_LIMIT
               ? STATUS_OK
               : status;
}

/* Getters that only tokens have whose balances change by themselves: Lido's, Ampleforth's and
 * Aave's, Origin's. */
static enum status look_if_rebasing(struct rpc *rpc, bool *rebasing, const struct address *token,
                                    struct error *error)
{
    static const struct {
        const char *signature;
        bool of_account;
    } getters[] = {
        {"sharesOf(address)", true},
        {"scaledBalanceOf(address)", true},
        {"rebasingCreditsPerToken()", false},
    };

    *rebasing = false;
    for (size_t i = 0; i < sizeof(getters) / sizeof(getters[0]) && !*rebasing; i++) {
        const struct address *accounts[2] = {getters[i].of_account ? token : NULL, NULL};
        struct uint256 number;

        TRY(may_answer(rebasing, ask(rpc, &number, token, getters[i].signature, accounts, error)));
    }
    return STATUS_OK;
}

/* A string, or 32 bytes as old tokens have it. What cannot be printed ends it. */
static void take_symbol(char symbol[EVM_TOKEN_SYMBOL_SIZE], const uint8_t *answer, size_t size)
{
    const uint8_t *bytes = answer;
    size_t count = size;
    struct abi_reader reader;

    abi_reader_init(&reader, answer, size);
    if (size != ABI_WORD_SIZE && abi_get_blob(&reader, &bytes, &count) != STATUS_OK) {
        count = 0;
    }
    for (size_t i = 0; i < count && i + 1 < EVM_TOKEN_SYMBOL_SIZE && isgraph(bytes[i]); i++) {
        symbol[i] = (char)bytes[i];
    }
}

static enum status read_symbol(struct rpc *rpc, char symbol[EVM_TOKEN_SYMBOL_SIZE],
                               const struct address *token, struct error *error)
{
    static const struct address nobody;
    uint8_t call[ABI_SELECTOR_SIZE];
    uint8_t answer[TEXT_WORDS * ABI_WORD_SIZE];
    struct byte_writer writer;
    size_t size = 0;
    bool answers;

    memset(symbol, 0, EVM_TOKEN_SYMBOL_SIZE);
    byte_writer_init(&writer, call, sizeof(call));
    abi_put_selector(&writer, "symbol()");
    TRY(may_answer(&answers, evm_call(rpc, answer, sizeof(answer), &size, &nobody, token, 0, call,
                                      sizeof(call), error)));
    if (answers) {
        take_symbol(symbol, answer, size);
    }
    return STATUS_OK;
}

enum status evm_token_name(struct rpc *rpc, struct evm_token *about, const struct address *token,
                           struct error *error)
{
    const struct address *const no_accounts[2] = {NULL, NULL};
    struct uint256 decimals;
    uint64_t number;
    bool answers;

    memset(about, 0, sizeof(*about));
    TRY(read_symbol(rpc, about->symbol, token, error));
    TRY(may_answer(&answers, ask(rpc, &decimals, token, "decimals()", no_accounts, error)));
    if (answers && uint256_to_u64(&number, &decimals) && number <= DECIMALS_MAX) {
        about->decimals = (uint32_t)number;
    }
    return STATUS_OK;
}

enum status evm_token_look(struct rpc *rpc, struct evm_token *about, const struct address *token,
                           struct error *error)
{
    char address[ADDRESS_TEXT_SIZE];
    wei balance;
    bool answers;

    memset(about, 0, sizeof(*about));
    TRY(may_answer(&answers, evm_token_balance(rpc, &balance, token, token, error)));
    if (!answers) {
        address_print(address, token);
        return error_set(error, STATUS_REFUSED, "%s is no token", address);
    }
    TRY(evm_token_name(rpc, about, token, error));
    return look_if_rebasing(rpc, &about->rebasing, token, error);
}

enum status evm_token_check(struct rpc *rpc, const struct address *token, struct error *error)
{
    char address[ADDRESS_TEXT_SIZE];
    struct evm_token about;

    TRY(evm_token_look(rpc, &about, token, error));
    if (!about.rebasing) {
        return STATUS_OK;
    }
    address_print(address, token);
    (void)error_set(error, STATUS_REFUSED,
                    "the token %s %s is unfit: its balances change by themselves (rebasing), and a "
                    "registry of it would owe what it has not",
                    address, about.symbol);
    error_advise(error, "take one whose balances only transfers change, such as its wrapped form");
    return STATUS_REFUSED;
}

/* ---- approving ------------------------------------------------------------------- */

/* As much as it likes: the registry takes only what a move of this account costs. */
static enum status add_approval(struct outbox *outbox, const char *name,
                                const struct address *token, const struct address *registry,
                                struct error *error)
{
    uint8_t call[ABI_SELECTOR_SIZE + 2 * ABI_WORD_SIZE];
    struct hash32 most;
    struct byte_writer writer;

    memset(most.bytes, 0xff, sizeof(most.bytes));
    byte_writer_init(&writer, call, sizeof(call));
    abi_put_selector(&writer, "approve(address,uint256)");
    abi_put_address(&writer, registry);
    abi_put_hash(&writer, &most);
    return outbox_add(outbox, name, token, 0, call, writer.used, APPROVE_GAS, error);
}

/* Approvals of one account have numbers: one that is final and used up is followed by another. */
enum status evm_token_approve(struct outbox *outbox, struct rpc *rpc, const struct address *token,
                              const struct address *account, const struct address *registry,
                              wei amount, struct error *error)
{
    char registry_text[ADDRESS_TEXT_SIZE];
    char name[OUTBOX_NAME_MAX + 1];
    struct uint256 allowed;

    TRY(ask(rpc, &allowed, token, "allowance(address,address)",
            (const struct address *[]){account, registry}, error));
    if (bounded(&allowed) >= amount) {
        return STATUS_OK;
    }
    address_print(registry_text, registry);
    for (uint32_t i = 1; i <= APPROVALS_MAX; i++) {
        struct outbox_status found;
        struct error unknown;
        enum status status;

        error_init(&unknown);
        (void)snprintf(name, sizeof(name), "%s approve its token, %u", registry_text, i);
        status = outbox_look(outbox, &found, name, &unknown);
        if (status == STATUS_OK && found.state != OUTBOX_FINAL && found.state != OUTBOX_REFUSED) {
            return STATUS_OK; /* on its way */
        }
        if (status == STATUS_NOT_FOUND || found.state == OUTBOX_REFUSED || found.reverted) {
            return add_approval(outbox, name, token, registry, error);
        }
    }
    return error_set(error, STATUS_REFUSED, "the token uses up what its owner approves");
}
