// Text as HTML and as Markdown.
#pragma once

#include <string>
#include <string_view>

namespace crema {

std::string html_of(std::string_view text);

// Plain text that Markdown leaves as it is, also in a cell of a table. What is in backquotes
// becomes code.
std::string markdown_of(std::string_view text);

// In backquotes, for a cell of a table, too.
std::string code_of_text(std::string_view text);

std::string fenced(std::string_view text, const std::string& language);

// Begins a page whose rank in searches is multiplied by `factor`.
std::string boosted(double factor);

}  // namespace crema
