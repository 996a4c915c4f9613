/* keep_owners.c - see keep_owners.h. */
#include "client/keeper/keep_owners.h"

#include <stdlib.h>

#include "chain/commands/allow_file.h"

enum status keep_owners_check(const struct options *given, struct error *error)
{
    const size_t count = options_list_count(given, "known");

    for (size_t i = 0; i < count; i++) {
        struct address *list = NULL;
        uint32_t owners;
        enum status status =
            allow_file_accounts(&list, &owners, options_list_item(given, "known", i), error);

        free(list);
        if (status != STATUS_OK) {
            (void)error_wrap(error, "--known");
            return status;
        }
    }
    return options_flag(given, "no-replay") && count == 0
               ? error_set(error, STATUS_USAGE,
                           "--no-replay vouches by the word of --known alone: name an owner")
               : STATUS_OK;
}

bool keep_owners_has(const struct options *given, const struct address *owner)
{
    bool has = false;

    for (size_t i = 0; i < options_list_count(given, "known") && !has; i++) {
        struct address *list = NULL;
        uint32_t count = 0;

        if (allow_file_accounts(&list, &count, options_list_item(given, "known", i), NULL) ==
            STATUS_OK) {
            for (uint32_t j = 0; j < count && !has; j++) {
                has = address_equal(&list[j], owner);
            }
        }
        free(list);
    }
    return has;
}
