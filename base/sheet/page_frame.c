/* page_frame.c - see page_frame.h. */
#include "base/sheet/page_frame.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/io/log.h"
#include "base/version.h"

/* ---- text ------------------------------------------------------------------------- */

void page_frame_text(struct buffer *page, const char *text)
{
    size_t size = 6 * strlen(text) + 1; /* of the longest escape */
    char *safe = malloc(size);

    if (safe == NULL) {
        page->status = STATUS_NO_MEMORY;
        return;
    }
    (void)log_escape(safe, size, text, 0);
    for (const char *at = safe; *at != '\0'; at++) {
        if (strchr("<>&\"'", *at) != NULL) {
            buffer_add_format(page, "&#%d;", *at);
        } else {
            buffer_add_u8(page, (uint8_t)*at);
        }
    }
    free(safe);
}

/* ---- the frame --------------------------------------------------------------------- */

/* Text has a contrast of 4.5 and more, drawings of 3: tests/support/browser.py holds all pages to
 * it. */
static const char colours[] =
    ":root{color-scheme:light dark;--ink:#1c2024;--dim:#56606a;--line:#c9d0d6;--ground:#fff;"
    "--card:#f3f5f7;--good:#1a7f4b;--bad:#c0271d;--open:#96600f;--loss:#2464c8}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6e9ec;--dim:#a3adb6;--line:#3d454d;"
    "--ground:#15181b;--card:#1f2428;--good:#4cc38a;--bad:#ff6f74;--open:#f0b455;"
    "--loss:#7aa7f5}}\n";

static const char words[] =
    "*{box-sizing:border-box}html{-webkit-text-size-adjust:100%}"
    "body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground);"
    "max-width:54rem;margin:1.5rem auto;padding:0 1rem;overflow-wrap:anywhere}\n"
    "h1{font-size:1.5rem;margin:0}h2{font-size:1.15rem;margin:2.2rem 0 .6rem}"
    "h3{font-size:.95rem;margin:1.4rem 0 .3rem}p{margin:.4rem 0}ul{padding-left:1.2rem}"
    "a{color:inherit}code{font:.8rem/1.5 ui-monospace,monospace}.dim,figcaption{color:var(--dim)}\n"
    ".word{border-left:6px solid;padding:.4rem 1rem;margin:1rem 0;background:var(--card)}"
    ".well{border-color:var(--good)}.ill{border-color:var(--bad)}.open{border-color:var(--open)}\n"
    ".cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.5rem,1fr));gap:.6rem;"
    "margin:1rem 0}.card{background:var(--card);border-radius:.4rem;padding:.5rem .8rem}"
    ".card b{display:block;font-size:1.3rem;font-weight:600;font-variant-numeric:tabular-nums}"
    ".card span{color:var(--dim);font-size:.87rem}\n"
    ".job{border:1px solid var(--line);border-radius:.4rem;padding:.7rem .9rem;margin:0 0 .8rem}"
    ".job h3:first-child{margin:0}"
    ".facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(15rem,1fr));gap:0 1rem;"
    "font-size:.93rem;margin:.3rem 0 .5rem}\n"
    /* A column is as wide as its words; names and sentences have a row of their own. */
    "table{border-collapse:collapse;width:100%;font-size:.93rem}td,th{border-bottom:1px solid "
    "var(--line);padding:.25rem .7rem .25rem 0;vertical-align:top;text-align:left;"
    "overflow-wrap:normal;font-variant-numeric:tabular-nums}th{color:var(--dim);font-weight:500}"
    ".own{overflow-wrap:anywhere}.more td{border-bottom:0;padding-bottom:0}"
    ".values th{width:13rem}\n"
    "form{display:flex;flex-wrap:wrap;gap:.5rem;margin:1.5rem 0 .6rem}form label{display:flex;"
    "flex-direction:column;font-size:.87rem;color:var(--dim);flex:1 1 8rem}form label:first-child{"
    "flex:2 1 14rem}input,select,button{font:inherit;font-size:1rem;color:var(--ink);"
    "background:var(--card);border:1px solid var(--dim);border-radius:.3rem;padding:.3rem .5rem;"
    "width:100%}button{width:auto;align-self:end}\n"
    ":focus-visible{outline:2px solid var(--loss);outline-offset:2px}"
    "footer{color:var(--dim);margin:2.5rem 0 1rem;font-size:.87rem}\n"
    /* Small screens: values below their names. */
    "@media(max-width:36rem){.values th,.values td{display:block;padding:.1rem 0 .3rem}"
    ".values th{width:auto;border:0;padding:.4rem 0 0}td,th{padding-right:.4rem}}\n";

/* Squares differ by their signs and plots by their lines, not by colours alone. A plot's drawing is
 * stretched: its words stand beside it, and a stroke is as wide as it says. */
static const char drawings[] =
    ".squares{display:flex;flex-wrap:wrap;gap:3px;margin:.5rem 0}.squares i,.mark i{width:15px;"
    "height:15px;border-radius:2px;flex:none;print-color-adjust:exact;forced-color-adjust:none}"
    ".m0,.m1{border:1px solid var(--dim)}"
    ".m1{background:radial-gradient(circle,var(--dim) 2px,#0000 2.6px)}"
    ".m2{background:var(--good)}.m3{background:linear-gradient(135deg,#0000 42%,var(--ground) 42% "
    "58%,#0000 58%) var(--loss)}.m4{background:linear-gradient(#0000 42%,var(--ground) 42% 58%,"
    "#0000 58%) var(--open)}.m5{background:linear-gradient(45deg,#0000 43%,var(--ground) 43% 57%,"
    "#0000 57%),linear-gradient(135deg,#0000 43%,var(--ground) 43% 57%,#0000 57%) var(--bad)}\n"
    ".mark{display:inline-flex;align-items:center;gap:.4em;margin-right:1em}"
    ".plot{display:grid;grid-template-columns:auto 1fr;gap:.3rem .6rem;margin:1rem 0;"
    "font-size:.8rem;color:var(--dim);font-variant-numeric:tabular-nums}"
    ".plot figcaption{grid-column:1/-1;font-size:.87rem;margin-bottom:.3rem}"
    ".plot>svg{display:block;width:100%;height:12rem;overflow:visible}.low>svg{height:6rem}"
    ".y{display:flex;flex-direction:column-reverse;justify-content:space-between;"
    "text-align:right;line-height:1rem;margin:-.5rem 0;white-space:nowrap}.x{grid-column:2;"
    "display:flex;justify-content:space-between}"
    ".plot path{fill:none;stroke-width:1.6;stroke-linecap:round;stroke-linejoin:round;"
    "vector-effect:non-scaling-stroke}.plot .axis{stroke:var(--line);stroke-width:1}"
    ".plot .l0{stroke:var(--loss)}.plot .l1{stroke:var(--open);stroke-dasharray:5 4}"
    ".plot .d0{stroke:var(--loss);stroke-width:5}.plot .d1{stroke:var(--open);stroke-width:5}"
    ".plot .bar{fill:var(--loss)}\n";

/*
 * Fetches the page every five seconds, unless somebody fills in its form, marks text or stands on
 * one of its links, or nobody looks at it. When that fails, the page says so and since when.
 */
static const char script[] =
    "<script>\n"
    "setInterval(async()=>{const a=document.activeElement;if(document.hidden||a&&"
    "a!=document.body||getSelection().type=='Range')return;const m=document.querySelector('main');"
    "try{const r=await fetch(location.pathname+location.search,{cache:'no-store'});if(!r.ok)throw "
    "r;"
    "const d=new DOMParser().parseFromString(await r.text(),'text/html');"
    "m.replaceWith(d.querySelector('main'));document.title=d.title}catch(e){"
    "if(!document.getElementById('away')){document.title='No answer - Lockstep';"
    "const p=document.createElement('p');p.id='away';p.className='word ill';p.setAttribute('role',"
    "'status');p.textContent='No answer since '+new Date().toLocaleTimeString()+"
    "': what you see is as old as that.';m.prepend(p)}}},5000)\n"
    "</script>\n";

void page_frame_begin(struct buffer *page, const char *title)
{
    buffer_add_text(page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                          "<meta name=\"viewport\" content=\"width=device-width\">\n"
                          "<link rel=\"icon\" href=\"data:,\">\n<title>");
    page_frame_text(page, title);
    buffer_add_text(page, "</title>\n<style>\n");
    buffer_add_text(page, colours);
    buffer_add_text(page, words);
    buffer_add_text(page, drawings);
    buffer_add_text(page, "</style>\n</head>\n<body>\n<main>\n");
}

void page_frame_end(struct buffer *page, uint64_t now_s)
{
    buffer_add_text(page, "</main>\n");
    buffer_add_text(page, now_s != 0 ? script : "");
    buffer_add_text(page, "</body>\n</html>\n");
}

void page_frame_moment(struct buffer *page, uint64_t now_s)
{
    time_t now = (time_t)now_s;
    struct tm parts = {0};
    char moment[40] = "";

    if (now_s != 0) {
        (void)gmtime_r(&now, &parts);
        (void)strftime(moment, sizeof(moment), "%Y-%m-%d %H:%M:%S UTC, ", &parts);
    }
    buffer_add_format(page, "%slockstep " LOCKSTEP_VERSION ". ", moment);
}
