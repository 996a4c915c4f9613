/* citation.c - see citation.h. */
#include "verifier/audit/citation.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proofs/format/safetensors.h"
#include "proofs/job/held_out.h"
#include "verifier/audit/transactions.h"

enum { STEPS_MAX_DEPTH = 4 };

/* ---- held-out figures ------------------------------------------------------ */

static void add_figure(json_t *figures, const char *name, const struct safetensors *file,
                       const char *tensor)
{
    const struct safetensors_entry *entry = safetensors_find(file, tensor);
    char key[32];
    char text[16];
    uint32_t bits;
    float value;
    struct error none;

    error_init(&none);
    if (entry == NULL || entry->size != sizeof(bits) ||
        safetensors_read(file, &none, &value, entry, sizeof(value), 0) != STATUS_OK) {
        return;
    }
    memcpy(&bits, &value, sizeof(bits));
    (void)snprintf(key, sizeof(key), "%s_bits", name);
    (void)snprintf(text, sizeof(text), "%08x", bits);
    (void)json_object_set_new(figures, key, json_string(text));
    (void)json_object_set_new(figures, name,
                              isfinite(value) ? json_real((double)value) : json_null());
}

json_t *citation_held_out(struct bundle *bundle, uint64_t steps)
{
    struct held_out held_out;
    struct safetensors file;
    uint64_t after = steps;
    json_t *figures;
    struct error none;

    error_init(&none);
    held_out_of(&held_out, bundle_job(bundle));
    while (after > 0 && !held_out_is_due(&held_out, after - 1)) {
        after--;
    }
    if (after == 0 || bundle_checkpoint_open(&file, bundle, steps, &none) != STATUS_OK) {
        return NULL;
    }
    figures = json_object();
    add_figure(figures, "loss", &file, HELD_OUT_LOSS);
    add_figure(figures, "accuracy", &file, HELD_OUT_ACCURACY);
    (void)json_object_set_new(figures, "after_steps", json_integer((json_int_t)after));
    safetensors_close(&file);
    return figures;
}

bool citation_ran(const json_t *figures, const struct audit_result *result, struct bundle *bundle,
                  uint64_t steps)
{
    const json_int_t after = json_integer_value(json_object_get(figures, "after_steps"));

    return after > 0 && audit_ran(result, bundle, (uint64_t)after - 1, steps);
}

/* ---- the solver's notes --------------------------------------------------------- */

static void add_note(json_t *object, const char *key, struct bundle *bundle, const char *note)
{
    char text[FILE_PATH_MAX];
    struct error none;

    error_init(&none);
    if (bundle_note(text, bundle, note, &none) == STATUS_OK && strlen(text) < CITATION_VALUE_MAX) {
        (void)json_object_set_new(object, key, json_string(text));
    }
}

static void add_notes(json_t *entry, struct bundle *bundle)
{
    static const char *const notes[][2] = {{"job", BUNDLE_NOTE_JOB},
                                           {"chain", BUNDLE_NOTE_CHAIN},
                                           {"registry", BUNDLE_NOTE_REGISTRY},
                                           {"solver", BUNDLE_NOTE_ACCOUNT}};
    json_t *ledger = json_object();

    for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
        add_note(ledger, notes[i][0], bundle, notes[i][1]);
    }
    if (json_object_size(ledger) > 0) {
        (void)json_object_set(entry, "ledger", ledger);
    }
    json_decref(ledger);
    add_note(entry, "program", bundle, BUNDLE_NOTE_PROGRAM);
}

void citation_add(json_t *entry, const struct audit_result *result, struct bundle *bundle)
{
    json_t *figures = citation_held_out(bundle, result->steps_journaled);

    if (figures != NULL) {
        const bool ran = citation_ran(figures, result, bundle, result->steps_journaled);

        (void)json_object_set_new(entry, ran ? "held_out" : "held_out_told", figures);
    }
    add_notes(entry, bundle);
}

/* ---- lines ------------------------------------------------------------------------ */

static const struct {
    const char *label;
    const char *place; /* members below each other, with points between them */
} lines[] = {
    {"Title", "job.title"},
    {"Model", "job.model"},
    {"Job", "job.id"},
    {"Parameters", "job.facts.parameters"},
    {"Frozen parameters", "job.facts.frozen_parameters"},
    {"Tokens learned from", "job.facts.tokens"},
    {"Samples learned from", "job.facts.samples"},
    {"Batch", "job.facts.batch"},
    {"Tokens of a sequence", "job.facts.length"},
    {"Micro-batches", "job.facts.micro_batches"},
    {"Optimizer", "job.facts.optimizer"},
    {"Learning rate, first", "job.facts.rate_first"},
    {"Learning rate, highest", "job.facts.rate_most"},
    {"Learning rate, last", "job.facts.rate_last"},
    {"Beta 1", "job.facts.beta1"},
    {"Beta 2", "job.facts.beta2"},
    {"Epsilon", "job.facts.epsilon"},
    {"Momentum", "job.facts.momentum"},
    {"Weight decay", "job.facts.decay"},
    {"Gradient limit", "job.facts.clip"},
    {"Dropout", "job.facts.dropout"},
    {"Bits of products", "job.facts.bits"},
    {"Program root", "job.roots.program"},
    {"Data root", "job.roots.data"},
    {"First state", "job.roots.first_state"},
    {"Final state", "final_state_root"},
    {"Held-out loss", "held_out.loss"},
    {"Held-out share right", "held_out.accuracy"},
    {"Held out after steps", "held_out.after_steps"},
    {"Held-out loss, says the solver", "held_out_told.loss"},
    {"Held-out share right, says the solver", "held_out_told.accuracy"},
    {"Held out after steps, says the solver", "held_out_told.after_steps"},
    {"Job on the ledger, says the solver", "ledger.job"},
    {"Chain, says the solver", "ledger.chain"},
    {"Registry, says the solver", "ledger.registry"},
    {"Account, says the solver", "ledger.solver"},
    {"SHA-256 of the program, says the solver", "program"},
    {"No transactions, because", "no_transactions"},
    {"Transactions that are left out", "transactions_left_out"},
};

static const json_t *find_entry(const json_t *entry, const char *place)
{
    char part[64];

    for (int depth = 0; depth < STEPS_MAX_DEPTH && entry != NULL; depth++) {
        size_t size = strcspn(place, ".");

        (void)snprintf(part, sizeof(part), "%.*s", (int)size, place);
        entry = json_object_get(entry, part);
        if (place[size] == '\0') {
            return entry;
        }
        place += size + 1;
    }
    return NULL;
}

/* False: the value says nothing. */
static bool print_value(char value[CITATION_VALUE_MAX], const json_t *found)
{
    if (json_is_integer(found) && json_integer_value(found) != 0) {
        (void)snprintf(value, CITATION_VALUE_MAX, "%" JSON_INTEGER_FORMAT,
                       json_integer_value(found));
        return true;
    }
    if (json_is_real(found) && json_real_value(found) != 0.0) {
        (void)snprintf(value, CITATION_VALUE_MAX, "%.7g", json_real_value(found));
        return true;
    }
    if (json_is_null(found)) { /* a figure, see add_figure() */
        (void)snprintf(value, CITATION_VALUE_MAX, "no finite number");
        return true;
    }
    if (json_is_string(found)) {
        (void)snprintf(value, CITATION_VALUE_MAX, "%s", json_string_value(found));
    }
    for (char *at = value; json_is_string(found) && *at != '\0'; at++) {
        *at = *at < ' ' || *at > '~' ? '?' : *at;
    }
    return json_is_string(found);
}

static bool print_transaction(char value[CITATION_VALUE_MAX], const json_t *transaction)
{
    char line[TRANSACTIONS_LINE_MAX];

    if (!transactions_line(line, transaction)) {
        return false;
    }
    for (char *at = line; *at != '\0'; at++) {
        *at = *at < ' ' || *at > '~' ? '?' : *at;
    }
    (void)snprintf(value, CITATION_VALUE_MAX, "%s", line);
    return true;
}

bool citation_line(const char **label, char value[CITATION_VALUE_MAX], const json_t *entry,
                   size_t index)
{
    const size_t count = sizeof(lines) / sizeof(lines[0]);
    const json_t *transactions = json_object_get(entry, "transactions");

    if (index >= count) {
        *label = "On the ledger";
        return index - count < json_array_size(transactions) &&
               print_transaction(value, json_array_get(transactions, index - count));
    }
    *label = print_value(value, find_entry(entry, lines[index].place)) ? lines[index].label : NULL;
    return true;
}
