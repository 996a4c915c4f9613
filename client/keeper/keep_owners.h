/* keep_owners.h - the owners of seats whose word the user believes (--known). It asks no ledger. */
#ifndef CLIENT_KEEPER_KEEP_OWNERS_H
#define CLIENT_KEEPER_KEEP_OWNERS_H

#include "base/cli/options.h"
#include "chain/codec/address.h"

/* STATUS_USAGE: one is no address, or a keeper that replays nothing has none. */
MUST_CHECK enum status keep_owners_check(const struct options *given, struct error *error);

bool keep_owners_has(const struct options *given, const struct address *owner);

#endif /* CLIENT_KEEPER_KEEP_OWNERS_H */
