/* store_endpoints.c - see store_endpoints.h. Each is a fact: "LABEL well", or with what ails it. */
#include "verifier/store/store_endpoints.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ILL " ill since "

enum {
    TEXT_SIZE = LEDGER_LABEL_SIZE + LEDGER_REASON_SIZE + 32,
    NAME_SIZE = 32,
};

static enum status put_one(struct store *store, const struct ledger_endpoint *endpoint, size_t at,
                           struct error *error)
{
    char name[NAME_SIZE];
    char text[TEXT_SIZE];
    int64_t same = 0;

    (void)snprintf(name, sizeof(name), "endpoint %02zu", at);
    if (endpoint->reason[0] == '\0') {
        (void)snprintf(text, sizeof(text), "%s well", endpoint->label);
    } else {
        (void)snprintf(text, sizeof(text), "%s" ILL "%" PRIu64 ": %s", endpoint->label,
                       endpoint->since_s, endpoint->reason);
    }
    TRY(database_number(&store->sql, &same, 0, error,
                        "SELECT count(*) FROM facts WHERE name = ? AND value = ?", "tt", name,
                        text));
    return same > 0 ? STATUS_OK : store_set_text(store, name, text, error);
}

enum status store_put_endpoints(struct store *store, const struct ledger_endpoint *endpoints,
                                size_t count, struct error *error)
{
    char first_unused[NAME_SIZE];

    for (size_t i = 0; i < count; i++) {
        TRY(put_one(store, &endpoints[i], i, error));
    }
    (void)snprintf(first_unused, sizeof(first_unused), "endpoint %02zu", count);
    return database_run(&store->sql, error,
                        "DELETE FROM facts WHERE name >= ? AND name < 'endpoint :'", "t",
                        first_unused);
}

static void read_one(struct ledger_endpoint *endpoint, const char *text)
{
    const size_t label_size = strcspn(text, " "); /* a label has no blanks */
    const char *ill = strstr(text, ILL);
    char *rest = NULL;

    *endpoint = (struct ledger_endpoint){.since_s = 0};
    (void)snprintf(endpoint->label, sizeof(endpoint->label), "%.*s", (int)label_size, text);
    if (ill == text + label_size) {
        endpoint->since_s = strtoull(ill + strlen(ILL), &rest, 10);
        (void)snprintf(endpoint->reason, sizeof(endpoint->reason), "%s",
                       strncmp(rest, ": ", 2) == 0 ? rest + 2 : rest);
    }
}

enum status store_get_endpoints(struct store *store,
                                struct ledger_endpoint list[LEDGER_ENDPOINTS_MAX], uint32_t *count,
                                struct error *error)
{
    sqlite3_stmt *rows =
        database_query(&store->sql, error,
                       "SELECT value FROM facts WHERE name >= 'endpoint ' AND name < 'endpoint :'"
                       " ORDER BY name",
                       "");
    enum status status = rows == NULL ? error->status : STATUS_OK;

    *count = 0;
    while (status == STATUS_OK && *count < LEDGER_ENDPOINTS_MAX) {
        status = database_step(&store->sql, rows, error);
        if (status == STATUS_OK && sqlite3_column_text(rows, 0) != NULL) {
            read_one(&list[(*count)++], (const char *)sqlite3_column_text(rows, 0));
        }
    }
    database_done(&store->sql, rows);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}
