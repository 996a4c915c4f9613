/* contract.c - see contract.h. */
#include "tests/support/game/contract.h"

#include <string.h>

#include "tests/support/game/anvil.h"

void contract_make(const struct scene *scene, int player)
{
    static const char code[] = "0x60043560643514631626ba7e0260e01b60005260206000f3";
    char address[ADDRESS_TEXT_SIZE];

    address_print(address, signer_address(scene->stage.signers[player]));
    json_decref(anvil_call(scene->stage.rpc, "anvil_setCode", json_pack("[s, s]", address, code)));
}

struct vouch contract_vouch(struct scene *scene, uint32_t index, size_t size)
{
    struct game_segment segment = scene_segment(scene, index);
    struct vouch vouch = {.segment = game_segment_hash(&scene->job, &segment), .size = size};
    struct hash32 digest = game_vouch_digest(ledger_get_game(scene->stage.ledgers[STAGE_CLIENT]),
                                             &scene->job, &vouch.segment);

    memcpy(vouch.signature, digest.bytes, HASH32_SIZE);
    return vouch;
}
