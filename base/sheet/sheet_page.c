/*
 * sheet_page.c - a sheet as a page of HTML. Everything of a sheet goes through page_frame_text(),
 * so no words of it can be markup.
 */
#include <stdio.h>
#include <string.h>

#include "base/sheet/page_frame.h"
#include "base/sheet/page_plot.h"
#include "base/sheet/page_squares.h"
#include "base/sheet/sheet.h"

/* What stands around neighbours of one kind. */
enum group {
    GROUP_NONE,
    GROUP_CARDS,
    GROUP_FACTS,
    GROUP_DETAILS,
    GROUP_LIST,
    GROUP_TABLE,
    GROUP_FORM
};

static const struct {
    const char *begin;
    const char *end;
} groups[] = {
    [GROUP_NONE] = {"", ""},
    [GROUP_CARDS] = {"<div class=\"cards\">\n", "</div>\n"},
    [GROUP_FACTS] = {"<table class=\"values\">\n", "</table>\n"},
    [GROUP_DETAILS] = {"<div class=\"facts\">\n", "</div>\n"},
    [GROUP_LIST] = {"<ul>\n", "</ul>\n"},
    [GROUP_TABLE] = {"<table>\n<tr>", "</tr>\n</table>\n"},
    [GROUP_FORM] = {"<form method=\"get\">", "<button>Show</button></form>\n"},
};

/* What stands around a block: before its label, between label and words (or where it has none), and
 * after. Blocks without tags here are written by hand. */
static const struct {
    enum group group;
    const char *begin;
    const char *between;
    const char *end;
} tags[SHEET_KINDS] = {
    [SHEET_TITLE] = {GROUP_NONE, "<h1>", "", "</h1>\n"},
    [SHEET_SUBHEADING] = {GROUP_NONE, "<h3>", "", "</h3>\n"},
    [SHEET_HEADING] = {GROUP_NONE, "<h2", ">", "</h2>\n"},
    [SHEET_SECTION] = {GROUP_NONE, "<section class=\"job\">", "", ""},
    [SHEET_SECTION_END] = {GROUP_NONE, "</section>\n", "", ""},
    [SHEET_LINE] = {GROUP_NONE, "<p", ">", "</p>\n"},
    [SHEET_ITEM] = {GROUP_LIST, "<li>", "", "</li>\n"},
    [SHEET_CARD] = {GROUP_CARDS, "<div class=\"card\"><b>", "", "</b><span>"},
    [SHEET_FACT] = {GROUP_FACTS, "<tr><th scope=\"row\">", "</th><td class=\"own\">",
                    "</td></tr>\n"},
    [SHEET_DETAIL] = {GROUP_DETAILS, "<div><span class=\"dim\">", "</span> ", "</div>\n"},
    [SHEET_COLUMN] = {GROUP_TABLE, "<th scope=\"col\">", "", "</th>"},
    [SHEET_ROW] = {GROUP_TABLE, "</tr>\n<tr>", "", ""},
    [SHEET_NOTE] = {GROUP_TABLE, "</tr>\n<tr class=\"more\">", "<td class=\"own\"", "</td>"},
    [SHEET_CELL] = {GROUP_TABLE, "<td>", "", "</td>"},
    [SHEET_WIDE] = {GROUP_TABLE, "<td class=\"own\">", "", "</td>"},
    [SHEET_FIELD] = {GROUP_FORM, "<label>", "<input type=\"search\" name=\"", "\"></label>"},
    [SHEET_CHOICE] = {GROUP_FORM, "<label>", "<select name=\"", "\">"},
    [SHEET_OPTION] = {GROUP_FORM, "<option value=\"", "", "</option>"},
};

static const char *const styles[][2] = {
    [SHEET_PLAIN] = {"", ""},
    [SHEET_DIM] = {"<span class=\"dim\">", "</span>"},
    [SHEET_STRONG] = {"<b>", "</b>"},
    [SHEET_CODE] = {"<code>", "</code>"},
};

static const char *const line_classes[] = {
    [SHEET_PLAIN] = "",
    [SHEET_DIM] = " class=\"dim\"",
    [SHEET_WELL] = " class=\"word well\"",
    [SHEET_ILL] = " class=\"word ill\"",
    [SHEET_OPEN] = " class=\"word open\"",
};

struct page {
    struct buffer *out;
    const struct sheet *sheet;
    enum group group;
    size_t columns; /* of the table */
    bool chooses;   /* a select is open */
};

static void add_key(struct page *page, const char *key)
{
    buffer_add_text(page->out, "<code title=\"");
    page_frame_text(page->out, key);
    buffer_add_text(page->out, "\">");
    for (int i = 0; i < 14 && key[i] != '\0'; i++) {
        const char letter[2] = {key[i], '\0'};

        page_frame_text(page->out, letter);
    }
    buffer_add_text(page->out, "&#8230;</code>");
}

/* The words that follow the block; returns the place behind them. Neighbours of one style share
 * their tags. */
static size_t add_words(struct page *page, size_t at)
{
    const struct sheet_item *items = page->sheet->items;
    size_t end = at + 1;

    for (; end < page->sheet->count && items[end].kind == SHEET_WORDS; end++) {
        enum sheet_style style = items[end].style;
        bool goes_on = end > at + 1 && items[end - 1].style == style;
        bool ends = end + 1 >= page->sheet->count || items[end + 1].kind != SHEET_WORDS ||
                    items[end + 1].style != style;

        if (style == SHEET_KEY) {
            add_key(page, sheet_words_of(page->sheet, end));
            continue;
        }
        if (style == SHEET_LINK) {
            buffer_add_text(page->out, "<a href=\"");
            page_frame_text(page->out, sheet_label_of(page->sheet, end));
            buffer_add_text(page->out, "\">");
            page_frame_text(page->out, sheet_words_of(page->sheet, end));
            buffer_add_text(page->out, "</a>");
            continue;
        }
        buffer_add_text(page->out, goes_on ? "" : styles[style][0]);
        page_frame_text(page->out, sheet_words_of(page->sheet, end));
        buffer_add_text(page->out, ends ? styles[style][1] : "");
    }
    return end;
}

static void end_choice(struct page *page)
{
    buffer_add_text(page->out, page->chooses ? "</select></label>" : "");
    page->chooses = false;
}

static void enter_group(struct page *page, enum sheet_kind kind)
{
    enum group group = tags[kind].group;

    if (kind != SHEET_OPTION) {
        end_choice(page);
    }
    if (group != page->group) {
        buffer_add_text(page->out, groups[page->group].end);
        buffer_add_text(page->out, groups[group].begin);
        page->columns = 0;
    }
    page->group = group;
    page->columns += kind == SHEET_COLUMN;
}

/* They stand within a tag: text alone. A field's are its name and value. */
static void add_attribute(struct page *page, size_t at)
{
    const char *words = sheet_words_of(page->sheet, at + 1);
    const char *value = strchr(words, '=');
    char name[32];

    if (page->sheet->items[at].kind != SHEET_FIELD) {
        page_frame_text(page->out, words);
        return;
    }
    (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(words, "="), words);
    page_frame_text(page->out, name);
    buffer_add_text(page->out, "\" value=\"");
    page_frame_text(page->out, value == NULL ? "" : value + 1);
}

/* The label, and what belongs to the tag itself. */
static void add_label(struct page *page, size_t at)
{
    const struct sheet_item *item = &page->sheet->items[at];
    const char *label = sheet_label_of(page->sheet, at);

    if (item->kind == SHEET_LINE) {
        buffer_add_text(page->out, line_classes[item->style]);
    } else if (item->kind == SHEET_HEADING && label[0] != '\0') {
        buffer_add_text(page->out, " id=\"");
        page_frame_text(page->out, label);
        buffer_add_text(page->out, "\"");
    } else if (item->kind == SHEET_FACT || item->kind == SHEET_DETAIL ||
               item->kind == SHEET_FIELD || item->kind == SHEET_CHOICE) {
        page_frame_text(page->out, label);
    }
}

static bool is_of_form(enum sheet_kind kind)
{
    return kind == SHEET_FIELD || kind == SHEET_CHOICE || kind == SHEET_OPTION;
}

/* Returns the place behind the block. */
static size_t add_block(struct page *page, size_t at)
{
    const struct sheet_item *item = &page->sheet->items[at];
    struct buffer *out = page->out;
    size_t end;

    enter_group(page, item->kind);
    buffer_add_text(out, tags[item->kind].begin);
    add_label(page, at);
    buffer_add_text(out, tags[item->kind].between);
    if (item->kind == SHEET_NOTE) {
        buffer_add_format(out, " colspan=\"%zu\">", page->columns);
    }
    if (is_of_form(item->kind)) {
        add_attribute(page, at);
        end = at + 2;
    } else {
        end = add_words(page, at);
    }
    if (item->kind == SHEET_OPTION) {
        buffer_add_text(out, item->style == SHEET_CHOSEN ? "\" selected>" : "\">");
        page_frame_text(out, sheet_label_of(page->sheet, at));
    }
    buffer_add_text(out, tags[item->kind].end);
    if (item->kind == SHEET_CARD) {
        page_frame_text(out, sheet_label_of(page->sheet, at));
        buffer_add_text(out, "</span></div>\n");
    }
    page->chooses |= item->kind == SHEET_CHOICE;
    return end;
}

static size_t add_item(struct page *page, size_t at)
{
    const struct sheet_item *item = &page->sheet->items[at];

    if (item->kind == SHEET_SQUARES) {
        enter_group(page, item->kind);
        page_squares_write(page->out, item->squares);
    } else if (item->kind == SHEET_PLOT) {
        enter_group(page, item->kind);
        page_plot_write(page->out, item->plot);
    } else if (tags[item->kind].begin != NULL) {
        return add_block(page, at);
    }
    return at + 1; /* window and footer, with their words, stand elsewhere */
}

/* sheet->count: there is none. */
static size_t find_block(const struct sheet *sheet, enum sheet_kind kind)
{
    size_t at = 0;

    while (at < sheet->count && sheet->items[at].kind != kind) {
        at++;
    }
    return at;
}

static void add_title(struct buffer *out, const struct sheet *sheet)
{
    size_t at = find_block(sheet, SHEET_WINDOW);

    page_frame_begin(out, at + 1 < sheet->count ? sheet_words_of(sheet, at + 1) : "Lockstep");
}

void sheet_page_write(struct buffer *out, const struct sheet *sheet, uint64_t now_s)
{
    struct page page = {.out = out, .sheet = sheet};
    size_t footer = find_block(sheet, SHEET_FOOTER);

    add_title(out, sheet);
    for (size_t at = 0; at < sheet->count;) {
        at = add_item(&page, at);
    }
    end_choice(&page);
    buffer_add_text(out, groups[page.group].end);
    buffer_add_text(out, "<footer>");
    page_frame_moment(out, now_s);
    if (footer < sheet->count) {
        (void)add_words(&page, footer);
    }
    buffer_add_text(out, "</footer>\n");
    page_frame_end(out, now_s);
    if (sheet->words.status != STATUS_OK) {
        out->status = sheet->words.status;
    }
}
