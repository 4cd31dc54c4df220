#include "tools/docs/manual/markup.h"

#include "base/strings.h"

namespace crema {

std::string html_of(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string code_of_text(std::string_view text) {
  std::string html;
  for (const char c : html_of(text)) html += c == '|' ? "&#124;" : std::string(1, c);
  return "<code>" + html + "</code>";
}

std::string markdown_of(std::string_view text) {
  std::string marked;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '`') {
      const size_t end = text.find('`', at + 1);
      if (end != std::string_view::npos) {
        marked += code_of_text(text.substr(at + 1, end - at - 1));
        at = end;
        continue;
      }
    }
    // Signs of Markdown, as numbers.
    if (std::string_view("&<>*_[]`|\\#{}~^").find(text[at]) != std::string_view::npos) {
      marked += cat("&#", static_cast<int>(text[at]), ";");
    } else {
      marked += text[at];
    }
  }
  return marked;
}

std::string fenced(std::string_view text, const std::string& language) {
  return cat("```", language, "\n", text, ends_with(text, "\n") ? "" : "\n", "```\n");
}

std::string boosted(double factor) { return cat("---\nsearch:\n  boost: ", factor, "\n---\n\n"); }

}  // namespace crema
