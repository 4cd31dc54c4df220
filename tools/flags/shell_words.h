// Words as shells write them.
#pragma once

#include <string>
#include <vector>

namespace crema {

// The words of a text as a shell splits it: quotes and backslashes count, nothing is expanded.
// Error for a quote that is not closed.
std::vector<std::string> shell_words(const std::string& text);

// The text as one word for a shell.
std::string shell_quoted(const std::string& text);

}  // namespace crema
