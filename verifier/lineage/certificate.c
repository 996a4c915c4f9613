/* certificate.c - see certificate.h. */
#include "verifier/lineage/certificate.h"

#include "base/hex.h"
#include "base/io/file.h"
#include "base/io/strict_json.h"
#include "base/version.h"
#include "verifier/lineage/lineage_parts.h"

#define PAGE_SIZE_MAX (UINT64_C(64) << 20)

static const char *const kind_names[] = {"unknown",     "model", "adapters", "state",
                                         "packed-rows", "run",   "receipt",  "tokens"};

static const struct {
    enum lineage_role role;
    const char *name;
} roles[] = {{LINEAGE_BASE, "base"},         {LINEAGE_DATA, "data"},
             {LINEAGE_TRAINING, "training"}, {LINEAGE_PRODUCT, "product"},
             {LINEAGE_ANSWER, "answer"},     {LINEAGE_ASKED, "asked"}};

/* ---- for programs --------------------------------------------------------------- */

static json_t *item_json(const struct lineage_item *item)
{
    json_t *names = json_array();
    json_t *json;

    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        if ((item->roles & roles[i].role) != 0) {
            (void)json_array_append_new(names, json_string(roles[i].name));
        }
    }
    json = json_pack("{s:o, s:s, s:o, s:O}", "path", findings_text(item->path), "kind",
                     kind_names[item->kind], "roles", names, "files", item->files);
    if (item->root_tag != NULL) {
        char hex[HEX_SIZE(DIGEST_SIZE)];

        hex_encode(hex, item->root.bytes, DIGEST_SIZE);
        (void)json_object_set_new(json, "root", json_pack("{s:s}", item->root_tag, hex));
    }
    return json;
}

json_t *certificate_facts(const struct lineage *lineage)
{
    json_t *items = json_array();
    json_t *facts = json_pack("{s:i, s:s, s:s, s:O, s:o}", "certificate", CERTIFICATE_FORMAT,
                              "version", LOCKSTEP_VERSION, "answer",
                              audit_answer_name(findings_answer(&lineage->findings)), "held_out",
                              lineage->figures, "given", items);

    for (size_t i = 0; i < lineage->count; i++) {
        (void)json_array_append_new(items, item_json(&lineage->items[i]));
    }
    findings_facts(facts, &lineage->findings);
    return facts;
}

/* ---- for people --------------------------------------------------------------------- */

static void add_answer(struct sheet *sheet, const struct lineage *lineage)
{
    static const enum sheet_style tones[] = {
        [AUDIT_PROVEN] = SHEET_WELL, [AUDIT_REFUTED] = SHEET_ILL, [AUDIT_CANNOT_TELL] = SHEET_OPEN};
    static const char *const words[] = {
        [AUDIT_PROVEN] = "Proven: each file that was given is held to the others by its bytes.",
        [AUDIT_REFUTED] = "Refuted: not all of it is what it should be.",
        [AUDIT_CANNOT_TELL] = "Cannot tell: not all of it could be checked."};
    const enum audit_answer answer = findings_answer(&lineage->findings);

    sheet_line(sheet, tones[answer], "%s", words[answer]);
}

static void add_figures(struct sheet *sheet, const struct lineage *lineage)
{
    const json_t *figures;
    size_t i;

    if (json_array_size(lineage->figures) == 0) {
        return;
    }
    sheet_add(sheet, SHEET_HEADING, NULL, "Held-out figures");
    json_array_foreach(lineage->figures, i, figures)
    {
        char loss[LINEAGE_LOSS_MAX];
        const json_t *accuracy = json_object_get(figures, "accuracy");

        sheet_add(sheet, SHEET_ITEM, NULL, "%s, the state after %lld steps: loss %s",
                  strict_json_text_or(figures, "run", ""),
                  (long long)strict_json_number_or_0(figures, "state_after"),
                  lineage_parts_loss(loss, figures));
        if (json_is_real(accuracy)) {
            sheet_words(sheet, SHEET_PLAIN, ", %.2f %% right", 100.0 * json_real_value(accuracy));
        }
        sheet_words(sheet, SHEET_PLAIN, ", found after %lld steps",
                    (long long)strict_json_number_or_0(figures, "after_steps"));
    }
}

static void add_given(struct sheet *sheet, const struct lineage *lineage)
{
    sheet_add(sheet, SHEET_HEADING, NULL, "What was given");
    for (size_t i = 0; i < lineage->count; i++) {
        const struct lineage_item *item = &lineage->items[i];
        const json_t *file;
        size_t at;

        sheet_add(sheet, SHEET_FACT, item->path, "%s", kind_names[item->kind]);
        if (item->root_tag != NULL) {
            char hex[HEX_SIZE(DIGEST_SIZE)];

            hex_encode(hex, item->root.bytes, DIGEST_SIZE);
            sheet_words(sheet, SHEET_PLAIN, ", root ");
            sheet_words(sheet, SHEET_CODE, "%s", hex);
        }
        json_array_foreach(item->files, at, file)
        {
            sheet_begin(sheet, SHEET_DETAIL, strict_json_text_or(file, "name", ""));
            sheet_words(sheet, SHEET_CODE, "%s", strict_json_text_or(file, "sha256", ""));
        }
    }
}

void certificate_sheet(struct sheet *sheet, const struct lineage *lineage)
{
    sheet_merge(sheet, certificate_facts(lineage));
    sheet_add(sheet, SHEET_WINDOW, NULL, "Lockstep lineage");
    sheet_add(sheet, SHEET_TITLE, NULL, "Lineage");
    add_answer(sheet, lineage);
    findings_show(sheet, &lineage->findings, FINDING_REFUTED);
    findings_show(sheet, &lineage->findings, FINDING_NOT_TOLD);
    findings_show(sheet, &lineage->findings, FINDING_PROVEN);
    add_figures(sheet, lineage);
    findings_show(sheet, &lineage->findings, FINDING_TRUSTED);
    findings_show(sheet, &lineage->findings, FINDING_MISSING);
    add_given(sheet, lineage);
}

enum status certificate_page(const char *path, const struct lineage *lineage, struct error *error)
{
    struct buffer page;
    struct sheet sheet;
    enum status status;

    buffer_init(&page, PAGE_SIZE_MAX);
    sheet_init(&sheet);
    certificate_sheet(&sheet, lineage);
    TRY_OUT(sheet_check(&sheet, error));
    sheet_page_write(&page, &sheet, 0);
    TRY_OUT(buffer_check(&page, error, "the page of a certificate"));
    status = file_write(path, error, page.data, page.size, 0644);
out:
    sheet_release(&sheet);
    buffer_release(&page);
    return status;
}
