#include "report/page.h"

#include "report/escape.h"

static const char style[] =
    "body{font:14px/1.45 system-ui,sans-serif;color:#111;background:#fff;max-width:1240px;"
    "margin:2em auto;padding:0 1em}\n"
    "h1{font-size:1.6em}h2{border-bottom:2px solid #111;margin-top:2em}h3{margin:1.4em 0 .4em}\n"
    "table{border-collapse:collapse;font-size:12.5px;display:block;overflow-x:auto}\n"
    "th,td{border:1px solid #999;padding:2px 7px;text-align:left;vertical-align:top}\n"
    "th{background:#eee}.r{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\n"
    "tbody tr:nth-child(even){background:#f6f6f6}\n"
    "figure{margin:1.2em 0}figure svg{width:100%;height:auto}\n"
    "figcaption{font-weight:600}.note{font-weight:400;font-size:12.5px}\n"
    "@media print{body{max-width:none;margin:0}figure,tr{break-inside:avoid}}\n";

void page_open(struct text *out, const char *title)
{
    text_add(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                  "<link rel=\"icon\" href=\"data:,\">\n<title>");
    escape_xml(out, title);
    text_addf(out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<h1>", style);
    escape_xml(out, title);
    text_add(out, "</h1>\n");
}

void page_close(struct text *out)
{
    text_add(out, "</body>\n</html>\n");
}

void page_section(struct text *out, const char *title)
{
    text_add(out, "<h2>");
    escape_xml(out, title);
    text_add(out, "</h2>\n");
}

void page_figure_open(struct text *out, const char *caption)
{
    text_add(out, "<figure>\n<figcaption>");
    escape_xml(out, caption);
    text_add(out, "</figcaption>\n");
}

void page_figure_close(struct text *out, const char *note)
{
    text_add(out, "<div class=\"note\">");
    escape_xml(out, note);
    text_add(out, "</div>\n</figure>\n");
}
