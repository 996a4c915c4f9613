/* signed_report.c - see signed_report.h. */
#include "verifier/audit/signed_report.h"

#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/strict_json.h"
#include "base/version.h"
#include "chain/codec/hex_data.h"
#include "proofs/commit/commit.h"
#include "proofs/job/job_facts.h"
#include "verifier/audit/citation.h"
#include "verifier/audit/transactions.h"

enum {
    FORMAT = 1,
    DEPTH_MAX = 16,
    LAYOUT = JSON_INDENT(2) | JSON_SORT_KEYS | JSON_ENSURE_ASCII,
};

static const char purpose[] = "lockstep report 1\n"; /* no other text of ours is signed with it */
static const char *const known[] = {"audits", "date", "report", "signer", "signature", "version"};

/* ---- one audit ----------------------------------------------------------- */

/* The end of what the journal has. */
static void add_end(json_t *entry, const struct audit_result *result, struct bundle *bundle)
{
    struct digest root;
    struct error none;

    error_init(&none);
    (void)json_object_set_new(entry, "job", job_json(bundle_job(bundle)));
    (void)json_object_set_new(entry, "job_header",
                              strict_json_bytes(bundle_job(bundle)->header, JOB_HEADER_SIZE));
    if (bundle_state_root(&root, bundle, result->steps_journaled, &none) == STATUS_OK) {
        (void)json_object_set_new(entry, "final_state_root", strict_json_digest(root.bytes));
    }
    if (result->final_loss_known) {
        char text[16];

        (void)snprintf(text, sizeof(text), "%08x", result->final_loss_bits);
        (void)json_object_set_new(entry, "final_loss_bits", json_string(text));
    }
}

/* A report after hours of work is not lost for want of a ledger: it says why. */
static void add_transactions(json_t *entry, struct bundle *bundle, struct ledger *ledger)
{
    struct error why;

    error_init(&why);
    if (transactions_add(entry, ledger, bundle, &why) != STATUS_OK) {
        (void)json_object_set_new(entry, "no_transactions", json_string(why.text));
    }
}

json_t *signed_report_entry(struct audit_view *view, struct bundle *bundle, struct ledger *ledger)
{
    const struct audit_result *result = &view->result;
    json_t *entry = json_pack("{s:o}", "result", audit_view_json(view));
    /* A report says what it did not look at: else a reader takes silence for an answer. */
    json_t *unchecked = json_array();

    if (entry == NULL || unchecked == NULL) {
        json_decref(entry);
        json_decref(unchecked);
        return NULL;
    }
    if (bundle != NULL) {
        add_end(entry, result, bundle);
        citation_add(entry, result, bundle);
    }
    if (bundle != NULL && ledger != NULL) {
        add_transactions(entry, bundle, ledger);
    }
    if (json_object_get(entry, "transactions") != NULL) {
        (void)json_array_append_new(
            unchecked, json_string("whether the endpoints of the ledger told the truth about it"));
    } else if (json_object_get(entry, "ledger") != NULL) {
        (void)json_array_append_new(
            unchecked,
            json_string("what the solver notes about the ledger: nobody asked the ledger"));
    }
    if (json_object_get(entry, "held_out_told") != NULL) {
        (void)json_array_append_new(
            unchecked, json_string("the held-out figures: not all of the steps that give them were "
                                   "run again"));
    } else if (json_object_get(entry, "held_out") == NULL) {
        (void)json_array_append_new(
            unchecked, json_string("whether the model is good on data that it never saw"));
    }
    if (result->steps_checked < result->steps_of_job) {
        (void)json_array_append_new(
            unchecked,
            json_sprintf("%llu of %llu steps were not run again",
                         (unsigned long long)(result->steps_of_job - result->steps_checked),
                         (unsigned long long)result->steps_of_job));
    }
    (void)json_array_append_new(
        unchecked, json_string("whether the data are what their names say, or may be used"));
    (void)json_object_set_new(entry, "not_checked", unchecked);
    return entry;
}

/* ---- text ---------------------------------------------------------------- */

/* What is signed: the purpose and the canonical text without the signature. */
static enum status hash_of(struct hash32 *hash, const json_t *report, struct error *error)
{
    json_t *bare = json_copy((json_t *)report);
    struct buffer text;
    enum status status;

    buffer_init(&text, SIGNED_REPORT_SIZE_MAX);
    (void)json_object_del(bare, "signature");
    buffer_add_text(&text, purpose);
    TRY_OUT(strict_json_write(&text, error, bare, LAYOUT));
    *hash = keccak256(text.data, text.size);
out:
    buffer_release(&text);
    json_decref(bare);
    return status;
}

static enum status sign_report(json_t *report, const struct signer *signer, struct error *error)
{
    struct signature signature;
    uint8_t bytes[SIGNATURE_SIZE];
    char text[HEX_DATA_SIZE(SIGNATURE_SIZE)];
    char address[ADDRESS_TEXT_SIZE];
    struct hash32 hash;

    address_print(address, signer_address(signer));
    (void)json_object_set_new(report, "signer", json_string(address));
    TRY(hash_of(&hash, report, error));
    TRY(signer_sign(signer, &signature, &hash, error));
    signature_to_bytes(bytes, &signature);
    hex_write(text, bytes, sizeof(bytes), true);
    (void)json_object_set_new(report, "signature", json_string(text));
    return STATUS_OK;
}

enum status signed_report_write(struct buffer *text, json_t *audits, const char *date,
                                const struct signer *signer, struct error *error)
{
    json_t *report = json_pack("{s:i, s:s, s:s, s:O}", "report", FORMAT, "version",
                               LOCKSTEP_VERSION, "date", date, "audits", audits);
    enum status status;

    if (report == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a report");
    }
    TRY_OUT(signer == NULL ? STATUS_OK : sign_report(report, signer, error));
    TRY_OUT(strict_json_write(text, error, report, LAYOUT));
    buffer_add_text(text, "\n");
    TRY_OUT(buffer_check(text, error, "a report"));
out:
    json_decref(report);
    return status;
}

/* ---- reading ------------------------------------------------------------- */

static enum status check_signature(struct address *signer, const json_t *report,
                                   struct error *error)
{
    uint8_t bytes[SIGNATURE_SIZE];
    char text[HEX_DATA_SIZE(SIGNATURE_SIZE)];
    const char *shown;
    struct signature signature;
    struct address found;
    struct hash32 hash;

    TRY(strict_json_hex(report, error, signer->bytes, sizeof(signer->bytes), "signer"));
    TRY(strict_json_hex(report, error, bytes, sizeof(bytes), "signature"));
    TRY(strict_json_text(report, error, &shown, "signature"));
    hex_write(text, bytes, sizeof(bytes), true);
    if (strcmp(shown, text) != 0) { /* the signature itself is not signed: it has one form */
        return error_set(error, STATUS_BAD_FORMAT, "the signature is not as one is written");
    }
    memcpy(signature.r, bytes, sizeof(signature.r));
    memcpy(signature.s, bytes + sizeof(signature.r), sizeof(signature.s));
    signature.recovery = (uint8_t)(bytes[SIGNATURE_SIZE - 1] - 27);
    TRY(hash_of(&hash, report, error));
    return signature_recover(&signature, &found, &hash) == VERDICT_VALID &&
                   address_equal(&found, signer)
               ? STATUS_OK
               : error_set(error, STATUS_REFUSED,
                           "the report is not what its signer signed: it was changed");
}

/* Does the job's header, which holds its roots, give the id that the report names? */
static enum status check_roots(const json_t *audits, struct error *error)
{
    const json_t *audit;
    size_t i;

    json_array_foreach(audits, i, audit)
    {
        uint8_t header[JOB_HEADER_SIZE];
        struct digest named;
        struct digest id;

        if (json_object_get(audit, "job_header") == NULL) {
            continue; /* the bundle could not be opened */
        }
        TRY(strict_json_hex(audit, error, header, sizeof(header), "job_header"));
        TRY(strict_json_hex(json_object_get(audit, "job"), error, named.bytes, DIGEST_SIZE, "id"));
        commit_job_id(&id, header, sizeof(header));
        if (!digest_equal(&id, &named)) {
            return error_set(error, STATUS_REFUSED, "audit %zu: the roots are not the job's", i);
        }
    }
    return STATUS_OK;
}

/* Is the text what we would write? */
static enum status check_text(const json_t *report, const void *text, size_t size,
                              struct error *error)
{
    struct buffer canonical;
    enum status status;

    buffer_init(&canonical, SIGNED_REPORT_SIZE_MAX + 1);
    TRY_OUT(strict_json_write(&canonical, error, report, LAYOUT));
    buffer_add_text(&canonical, "\n");
    TRY_OUT(buffer_check(&canonical, error, "a report"));
    TRY_OUT(canonical.size == size && memcmp(canonical.data, text, size) == 0
                ? STATUS_OK
                : error_set(error, STATUS_BAD_FORMAT,
                            "the text is not as a report is written: it was changed"));
out:
    buffer_release(&canonical);
    return status;
}

enum status signed_report_read(json_t **report, struct address *signer, const void *text,
                               size_t size, struct error *error)
{
    static const struct address nobody;
    const json_t *audits;
    const char *words;
    uint64_t format;
    json_t *read = NULL;
    enum status status;

    *report = NULL;
    *signer = nobody;
    TRY_OUT(strict_json_parse(&read, error, "the report", text, size, SIGNED_REPORT_SIZE_MAX,
                              DEPTH_MAX));
    TRY_OUT(strict_json_only(read, error, known, sizeof(known) / sizeof(known[0])));
    TRY_OUT(strict_json_number(read, error, &format, "report", FORMAT));
    TRY_OUT(strict_json_text(read, error, &words, "date"));
    TRY_OUT(strict_json_text(read, error, &words, "version"));
    TRY_OUT(strict_json_array(read, error, &audits, "audits", SIGNED_REPORT_SIZE_MAX));
    TRY_OUT(check_text(read, text, size, error));
    TRY_OUT(check_roots(audits, error));
    if (json_object_get(read, "signer") != NULL || json_object_get(read, "signature") != NULL) {
        TRY_OUT(check_signature(signer, read, error));
    }
    *report = read;
    return STATUS_OK;
out:
    json_decref(read);
    return status;
}
