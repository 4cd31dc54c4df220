#include "tools/pages/page.h"

#include "base/strings.h"
#include "base/visible.h"
#include "solver/events/checksum.h"
#include "solver/events/run_identity.h"
#include "tools/pages/charts/chart.h"

namespace crema {

namespace {

// A page that loads nothing from elsewhere, whatever may have got into it.
constexpr const char* closed =
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n";

std::string page_with(const std::string& title, const std::string& head, const std::string& main,
                      const std::string& body) {
  return cat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta "
      "name=\"referrer\" content=\"no-referrer\">\n<title>",
      html_text(title), "</title>\n", head, "</head>\n<body>\n", main, body,
      "</main>\n</body>\n</html>\n");
}

}  // namespace

std::string whole_page(const std::string& title, const std::string& body) {
  return page_with(
      title,
      cat(closed, "<style>", page_style(), "</style>\n<script>", page_script(), "</script>\n"),
      "<main>\n", body);
}

std::string served_page(const std::string& title, const std::string& body,
                        const std::string& poll) {
  return page_with(title,
                   "<link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" "
                   "href=\"/crema.css\">\n<script src=\"/crema.js\" defer></script>\n",
                   cat("<p class=\"lost\">The server does not answer. Does `crema watch` still "
                       "run?</p>\n<main data-poll=\"",
                       html_text(poll), "\">\n"),
                   body);
}

std::string version_of(const PagePart& part) {
  Checksum sum;
  sum.add(part.html.data(), part.html.size());
  return hex_of(sum.value());
}

std::string placed(const std::vector<PagePart>& parts) {
  std::string body;
  for (const PagePart& part : parts) {
    body += cat("<div data-part=\"", html_text(part.name), "\" data-version=\"", version_of(part),
                "\">", part.html, "</div>\n");
  }
  return body;
}

std::string section(const std::string& title, const std::string& note, const std::string& body) {
  return cat("<section><h2>", html_text(title), "</h2>",
             note.empty() ? "" : cat("<p class=\"note\">", html_text(note), "</p>"), body,
             "</section>\n");
}

std::string folded_text(const std::string& title, const std::string& text) {
  if (text.empty()) return "";
  std::string lines;
  for (const std::string& line : split(text, '\n')) lines += html_text(line) + "\n";
  return cat("<section><details><summary>", html_text(title), "</summary><pre>", lines,
             "</pre></details></section>\n");
}

}  // namespace crema
