/* evm_open.c - see evm_open.h. */
#include "chain/evm/evm_open.h"

#include <stdio.h>
#include <string.h>

enum status evm_open_rpc(struct rpc **opened, const struct ledger_options *options,
                         struct error *error)
{
    char urls[LEDGER_URL_MAX + 1];
    const char *list[RPC_ENDPOINTS_MAX + 1];
    struct rpc_options rpc;
    char *rest = urls;
    size_t count = 0;

    (void)snprintf(urls, sizeof(urls), "%s", options->url);
    for (char *url = strtok_r(urls, ",", &rest); url != NULL && count <= RPC_ENDPOINTS_MAX;
         url = strtok_r(NULL, ",", &rest)) {
        list[count++] = url;
    }
    rpc_options_init(&rpc);
    rpc.urls = list;
    rpc.url_count = count;
    rpc.timeout_ms = options->timeout_ms;
    rpc.rounds_max = 3; /* for a lost request: ledger_work tries again anyway */
    rpc.wait_ms_first = 25;
    rpc.stopped = options->stopped;
    rpc.context = options->context;
    rpc.log = options->log;
    *opened = rpc_new(&rpc, error);
    return *opened != NULL ? STATUS_OK : STATUS_USAGE;
}

enum status evm_open_path(char path[FILE_PATH_MAX], const char *state_dir, uint64_t chain_id,
                          const struct address *account, struct error *error)
{
    char text[ADDRESS_TEXT_SIZE];

    address_print(text, account);
    return snprintf(path, FILE_PATH_MAX, "%s/outbox-%llu-%s.db", state_dir,
                    (unsigned long long)chain_id, text) < FILE_PATH_MAX
               ? STATUS_OK
               : error_set(error, STATUS_OVER_LIMIT, "the state folder's path is too long");
}

enum status evm_open_outbox(struct outbox **opened, struct rpc *rpc,
                            const struct ledger_options *options, uint64_t chain_id,
                            struct error *error)
{
    char path[FILE_PATH_MAX];
    struct outbox_options outbox = {.path = path,
                                    .chain_id = chain_id,
                                    .depth = options->depth,
                                    .replace_after_s = options->replace_after_s,
                                    .fee_most = uint256_of(0),
                                    .log = options->log};
    struct uint256 gwei = uint256_of(1000000000);

    if (options->signer == NULL) {
        return STATUS_OK;
    }
    if (uint256_multiply(&outbox.fee_most, &gwei, options->gas_price_gwei_max) != STATUS_OK) {
        return error_set(error, STATUS_USAGE, "the ceiling of the gas price is absurd");
    }
    TRY(evm_open_path(path, options->state_dir, chain_id, signer_address(options->signer), error));
    return outbox_open(opened, &outbox, options->signer, rpc, error);
}
