/* stake_ready.c - see stake_ready.h. */
#include "prover/post/stake_ready.h"

#include <stdio.h>
#include <stdlib.h>

#include "chain/commands/allow_file.h"
#include "chain/game/terms.h"

/* An owner of more than a third is among two: each entry supports the one of its owner, or weakens
 * both (Misra and Gries). */
#define CANDIDATES 2

struct candidate {
    struct address owner;
    uint32_t support;
};

static void take_entry(struct candidate candidates[CANDIDATES], const struct address *owner)
{
    struct candidate *free_one = NULL;

    for (int i = 0; i < CANDIDATES; i++) {
        if (candidates[i].support > 0 && address_equal(&candidates[i].owner, owner)) {
            candidates[i].support++;
            return;
        }
        free_one = candidates[i].support == 0 ? &candidates[i] : free_one;
    }
    if (free_one != NULL) {
        *free_one = (struct candidate){.owner = *owner, .support = 1};
        return;
    }
    for (int i = 0; i < CANDIDATES; i++) {
        candidates[i].support--;
    }
}

static uint32_t entries_of(const struct job_record *record, const struct address *owner)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < record->state.entries; i++) {
        count += address_equal(&record->entries[i].owner, owner);
    }
    return count;
}

/* The entries of the owner that has more than a third; 0: nobody has. */
static uint32_t find_large(struct address *owner, const struct job_record *record)
{
    struct candidate candidates[CANDIDATES] = {{.support = 0}};

    for (uint32_t i = 0; i < record->state.entries; i++) {
        take_entry(candidates, &record->entries[i].owner);
    }
    for (int i = 0; i < CANDIDATES; i++) {
        uint32_t count = candidates[i].support == 0 ? 0 : entries_of(record, &candidates[i].owner);

        if ((uint64_t)3 * count > record->state.entries) {
            *owner = candidates[i].owner;
            return count;
        }
    }
    return 0;
}

static bool has_any_of(const struct job_record *record, const struct address *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (entries_of(record, &list[i]) > 0) {
            return true;
        }
    }
    return false;
}

static bool is_mixed(char text[STAKE_READY_TEXT], const struct job_record *record,
                     const char *known)
{
    struct address owner;
    char name[ADDRESS_TEXT_SIZE];
    uint32_t entries = known == NULL ? 0 : find_large(&owner, record);
    struct address *list = NULL;
    uint32_t count = 0;
    struct error error;
    bool will_do;

    if (entries == 0) {
        return true;
    }
    error_init(&error);
    if (allow_file_accounts(&list, &count, known, &error) != STATUS_OK) {
        (void)snprintf(text, STAKE_READY_TEXT, "--known: %.380s", error.text);
        return false;
    }
    will_do = has_any_of(record, list, count);
    free(list);
    if (!will_do) {
        address_print(name, &owner);
        (void)snprintf(text, STAKE_READY_TEXT,
                       "%s has %u of the panel's %u entries, and nobody of --known has any", name,
                       entries, record->state.entries);
    }
    return will_do;
}

bool stake_ready(char text[STAKE_READY_TEXT], const struct job_record *record, uint64_t now_s,
                 const char *known)
{
    const struct game_terms *terms = &record->terms;
    uint32_t least = terms->panel_least > terms->seats ? terms->panel_least : terms->seats;
    uint64_t from_s = record->state.opened_s + terms->seal_period_s;
    char time[TERMS_TIME_SIZE];

    if (record->state.barred) {
        (void)snprintf(text, STAKE_READY_TEXT,
                       "the job waits for its client, who puts back what burned");
        return false;
    }
    if (record->state.entries < least) {
        (void)snprintf(text, STAKE_READY_TEXT, "the panel has %u entries, and the job waits for %u",
                       record->state.entries, least);
        return false;
    }
    if (terms->seats > 0 && hash32_is_zero(&terms->verifiers) && now_s <= from_s) {
        terms_time(time, from_s);
        (void)snprintf(text, STAKE_READY_TEXT, "the panel gathers until %s", time);
        return false;
    }
    return terms->seats == 0 || is_mixed(text, record, known);
}
