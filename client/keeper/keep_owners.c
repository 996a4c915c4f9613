/* keep_owners.c - see keep_owners.h. */
#include "client/keeper/keep_owners.h"

enum status keep_owners_check(const struct options *given, struct error *error)
{
    struct address known;

    for (size_t i = 0; i < options_list_count(given, "known"); i++) {
        if (address_parse(&known, options_list_item(given, "known", i)) != STATUS_OK) {
            return error_set(error, STATUS_USAGE, "--known: '%.60s' is not an address",
                             options_list_item(given, "known", i));
        }
    }
    return options_flag(given, "no-replay") && options_list_count(given, "known") == 0
               ? error_set(error, STATUS_USAGE,
                           "--no-replay vouches by the word of --known alone: name an owner")
               : STATUS_OK;
}

bool keep_owners_has(const struct options *given, const struct address *owner)
{
    struct address known;

    for (size_t i = 0; i < options_list_count(given, "known"); i++) {
        if (address_parse(&known, options_list_item(given, "known", i)) == STATUS_OK &&
            address_equal(&known, owner)) {
            return true;
        }
    }
    return false;
}
