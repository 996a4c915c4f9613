/* evm_seeds.c - see evm_seeds.h. */
#include "chain/evm/evm_seeds.h"

#include <inttypes.h>
#include <string.h>

#include "chain/codec/abi.h"
#include "chain/codec/hex_data.h"
#include "chain/contracts/compiled/seeds_code.h"
#include "chain/evm/evm_blocks.h"
#include "chain/evm/evm_registry.h"
#include "chain/evm/header/seed_delays.h"

enum {
    CODE_SIZE = (sizeof(HEADER_SEEDS_STANDING) - 1) / 2,
};

/* ---- which chains ------------------------------------------------------------- */

enum status evm_seeds_delay(uint32_t *delay, uint64_t chain_id, struct error *error)
{
    static const struct {
        uint64_t chain_id;
        uint32_t delay;
    } rows[] = {
#define SEED_DELAY_ROW(id, blocks, name) {(id), (blocks)},
        SEED_DELAYS(SEED_DELAY_ROW)
#undef SEED_DELAY_ROW
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].chain_id == chain_id) {
            *delay = rows[i].delay;
            return STATUS_OK;
        }
    }
    (void)error_set(error, STATUS_REFUSED,
                    "no seeds are known for chain %" PRIu64
                    ": who checks a segment would be chosen "
                    "by those who make its blocks",
                    chain_id);
    error_advise(error,
                 "use Ethereum, Gnosis, Sepolia, Hoodi, or a development chain of the number "
                 "1337 or 31337; rollups come with a later version");
    return STATUS_REFUSED;
}

/* ---- which contract ----------------------------------------------------------- */

/* Is it what HeaderSeeds.sol leaves on a chain, with that delay? */
static bool is_known(uint8_t *code, size_t size, uint32_t delay)
{
    static const size_t places[] = HEADER_SEEDS_STANDING_PLACES;
    uint8_t standing[CODE_SIZE];
    uint8_t word[ABI_WORD_SIZE];
    struct byte_writer writer;
    size_t standing_size;

    if (hex_read(standing, sizeof(standing), &standing_size, HEADER_SEEDS_STANDING) != STATUS_OK ||
        size != standing_size) {
        return false;
    }
    byte_writer_init(&writer, word, sizeof(word));
    abi_put_u64(&writer, delay);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        memcpy(standing + places[i], word, sizeof(word));
    }
    return memcmp(code, standing, size) == 0;
}

enum status evm_seeds_find(struct evm_seeds *seeds, struct rpc *rpc, const struct address *registry,
                           uint64_t chain_id, struct error *error)
{
    uint8_t code[CODE_SIZE];
    size_t size = 0;
    enum status status;

    TRY(evm_seeds_delay(&seeds->delay, chain_id, error));
    TRY(evm_registry_part(rpc, &seeds->contract, registry, "SEEDS()", error));
    status = evm_code_at(rpc, code, sizeof(code), &size, &seeds->contract, error);
    if (status != STATUS_OK && status != STATUS_OVER_LIMIT && status != STATUS_BAD_FORMAT) {
        return status;
    }
    return status == STATUS_OK && is_known(code, size, seeds->delay)
               ? STATUS_OK
               : evm_registry_refuse(
                     registry, "draws its seeds from a contract that this program does not know",
                     error);
}

/* ---- what shows a seed -------------------------------------------------------- */

enum status evm_seeds_fixed(const struct evm_seeds *seeds, struct rpc *rpc, uint64_t *source,
                            uint64_t height, uint64_t time_s, struct error *error)
{
    uint8_t data[ABI_SELECTOR_SIZE + 2 * ABI_WORD_SIZE];
    struct byte_writer call;
    struct abi_reader reader;
    struct hash32 word;

    byte_writer_init(&call, data, sizeof(data));
    abi_put_selector(&call, "fixedAt(uint256,uint256)");
    abi_put_u64(&call, height);
    abi_put_u64(&call, time_s);
    TRY(evm_word(rpc, &word, &seeds->contract, data, call.used, error));
    abi_reader_init(&reader, word.bytes, sizeof(word.bytes));
    return abi_get_u64(&reader, source) == STATUS_OK
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "a seed of no block");
}

enum status evm_seeds_prove(const struct evm_seeds *seeds, struct rpc *rpc,
                            uint8_t proof[GAME_HEADER_MAX], size_t *size,
                            const struct game_commits *commits, struct error *error)
{
    uint64_t head;
    uint64_t fixed;
    uint64_t at;

    TRY(evm_head(rpc, &head, error));
    TRY(evm_seeds_fixed(seeds, rpc, &fixed, commits->height, commits->time_s, error));
    at = fixed != 0 ? fixed : commits->height + seeds->delay;
    if (head <= at) { /* endpoints try a move as if it were in the newest block */
        return error_set(error, STATUS_UNREACHABLE,
                         "the block that the seats are drawn from is not there yet");
    }
    if (fixed != 0) {
        *size = 0;
        return STATUS_OK;
    }
    if (head + 1 > at + GAME_SEED_BLOCKS) {
        at += (head - at) / GAME_SEED_BLOCKS * GAME_SEED_BLOCKS;
    }
    return evm_header_at(rpc, proof, size, at, error);
}
