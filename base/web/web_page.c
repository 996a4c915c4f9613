/* web_page.c - see web_page.h. */
#include "base/web/web_page.h"

#include <inttypes.h>
#include <time.h>

#include "base/hex.h"
#include "base/version.h"

#define KEY_SIZE_MAX 64

/* ---- text ------------------------------------------------------------------------- */

void web_page_text(struct buffer *page, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;

        if (byte == '<' || byte == '>' || byte == '&' || byte == '"' || byte == '\'') {
            buffer_add_format(page, "&#%u;", byte);
        } else if (byte < ' ' || byte >= 0x7f) {
            buffer_add_text(page, "?");
        } else {
            buffer_add_u8(page, byte);
        }
    }
}

void web_page_key(struct buffer *page, const uint8_t *bytes, size_t size)
{
    char text[HEX_SIZE(KEY_SIZE_MAX)];

    hex_encode(text, bytes, size < KEY_SIZE_MAX ? size : KEY_SIZE_MAX);
    buffer_add_format(page, "<code title=\"%s\">%.16s&#8230;</code>", text, text);
}

void web_page_span(struct buffer *page, uint64_t seconds)
{
    if (seconds < 120) {
        buffer_add_format(page, "%" PRIu64 " s", seconds);
    } else if (seconds < 7200) {
        buffer_add_format(page, "%" PRIu64 " min", seconds / 60);
    } else if (seconds < 172800) {
        buffer_add_format(page, "%" PRIu64 " h", seconds / 3600);
    } else {
        buffer_add_format(page, "%" PRIu64 " days", seconds / 86400);
    }
}

void web_page_when(struct buffer *page, uint64_t when_s, uint64_t now_s)
{
    if (when_s == 0) {
        buffer_add_text(page, "&#8212;");
    } else if (when_s >= now_s) {
        buffer_add_text(page, "in ");
        web_page_span(page, when_s - now_s);
    } else {
        web_page_span(page, now_s - when_s);
        buffer_add_text(page, " ago");
    }
}

/* ---- the frame --------------------------------------------------------------------- */

static void add_style(struct buffer *page)
{
    buffer_add_text(
        page,
        "<style>\n"
        ":root{color-scheme:light dark;--ink:#1c2024;--dim:#667079;--line:#d9dee3;--ground:#fff;"
        "--card:#f6f8fa;--good:#1a7f4b;--bad:#c0271d;--open:#b7791f;--loss:#2f6fd6}\n"
        "@media(prefers-color-scheme:dark){:root{--ink:#e6e9ec;--dim:#97a1aa;--line:#363d44;"
        "--ground:#15181b;--card:#1d2125;--good:#4cc38a;--bad:#ff6369;--open:#f0b455;"
        "--loss:#7aa7f5}}\n"
        "*{box-sizing:border-box}body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);"
        "background:var(--ground);max-width:52rem;margin:1.5rem auto;padding:0 1rem;"
        "overflow-wrap:anywhere}\n"
        "h1{font-size:1.5rem;margin:0}h2{font-size:1.15rem;margin:2.2rem 0 .6rem}"
        "h3{font-size:.95rem;margin:0}\n"
        "code{font:.85em ui-monospace,monospace;}.dim{color:var(--dim)}\n"
        ".word{border-left:6px solid;padding:.4rem 1rem;margin:1rem 0;background:var(--card)}"
        ".well{border-color:var(--good)}.ill{border-color:var(--bad)}\n"
        ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(10.5rem,1fr));gap:.6rem}"
        ".card{background:var(--card);border-radius:.4rem;padding:.5rem .8rem}"
        ".card b{display:block;font-size:1.35rem;font-weight:600;"
        "font-variant-numeric:tabular-nums}.card span{color:var(--dim);font-size:.85rem}\n"
        ".job{border:1px solid var(--line);border-radius:.4rem;padding:.7rem .9rem;"
        "margin:0 0 .8rem}.job p{margin:.2rem 0 .5rem}.job svg+p{margin-top:.8rem}\n"
        "table{border-collapse:collapse;width:100%;font-size:.9rem}td,th{border-bottom:1px solid "
        "var(--line);padding:.25rem .5rem .25rem 0;vertical-align:top;text-align:left}"
        "th{color:var(--dim);font-weight:500}\n"
        /* A column is as wide as its words; names and sentences have a row of their own. */
        "td,th{overflow-wrap:normal}.own{overflow-wrap:anywhere}"
        ".more "
        "td{border-bottom:0;padding-bottom:0}svg{display:block;width:100%;height:auto;overflow:"
        "visible}"
        "svg path{vector-effect:non-scaling-stroke}svg text{font:11px system-ui,sans-serif;"
        "fill:var(--dim)}.axis{stroke:var(--line)}.loss{stroke:var(--loss)}"
        ".held{stroke:var(--open)}.bar{fill:var(--loss)}\n"
        ".m0{fill:var(--line);opacity:.45}.m1{fill:var(--dim);opacity:.55}.m2{fill:var(--good)}"
        ".m3{fill:var(--loss)}.m4{fill:var(--open)}.m5{fill:var(--bad)}.key{display:inline-block;"
        "width:.8em;height:.8em;"
        "margin:0 .35em 0 0;border-radius:2px}.mark{display:inline-block;margin-right:1em}"
        ".k0{background:var(--line);opacity:.45}.k1{background:var(--dim);opacity:.55}"
        ".k2{background:var(--good)}.k3{background:var(--loss)}.k4{background:var(--open)}"
        ".k5{background:var(--bad)}\n"
        "h1+.cards{margin-top:1rem}.facts{display:grid;grid-template-columns:repeat(auto-fit,"
        "minmax(15rem,1fr));gap:0 1rem;"
        "font-size:.9rem;margin:.3rem 0 .5rem}"
        ".ask{display:flex;flex-wrap:wrap;gap:.5rem;margin:1.5rem 0 .6rem}.ask input{flex:1 1 "
        "12rem}"
        ".ask input,.ask select,.ask button{font:inherit;color:inherit;background:var(--card);"
        "border:1px solid var(--line);border-radius:.3rem;padding:.3rem .5rem;max-width:100%}\n"
        "footer{color:var(--dim);margin:2.5rem 0 1rem;font-size:.85rem}\n"
        /* Small screens: plots keep the size of their words. */
        "@media(max-width:36rem){svg text{font-size:20px}svg circle{display:none}}\n"
        "</style>\n");
}

/* Fetches the page every five seconds, unless somebody fills in its form; the title says when that
 * fails. */
static void add_script(struct buffer *page)
{
    buffer_add_text(page, "<script>\n"
                          "setInterval(async()=>{if(document.activeElement.form)return;try{const "
                          "r=await fetch(location.pathname+"
                          "location.search,{cache:'no-store'});if(!r.ok)throw r;const d=new "
                          "DOMParser().parseFromString("
                          "await r.text(),'text/html');document.querySelector('main').replaceWith("
                          "d.querySelector('main'));document.title=d.title}catch(e){document.title="
                          "'no answer - Lockstep';document.querySelector('main').style.opacity="
                          "'.5'}},5000)\n"
                          "</script>\n");
}

void web_page_begin(struct buffer *page, const char *title)
{
    buffer_add_text(page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                          "<meta name=\"viewport\" content=\"width=device-width\">\n"
                          "<link rel=\"icon\" href=\"data:,\">\n<title>");
    web_page_text(page, title);
    buffer_add_text(page, "</title>\n");
    add_style(page);
    buffer_add_text(page, "</head>\n<body>\n<main>\n");
}

void web_page_end(struct buffer *page, uint64_t now_s, const char *words)
{
    time_t now = (time_t)now_s;
    struct tm parts = {0};
    char moment[40];

    (void)gmtime_r(&now, &parts);
    (void)strftime(moment, sizeof(moment), "%Y-%m-%d %H:%M:%S UTC", &parts);
    buffer_add_format(page, "<footer>%s, lockstep " LOCKSTEP_VERSION ". %s</footer>\n</main>\n",
                      moment, words);
    add_script(page);
    buffer_add_text(page, "</body>\n</html>\n");
}
