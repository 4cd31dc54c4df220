// The words of a command, as shells write them and as execve() takes them.
#pragma once

#include <string>
#include <vector>

namespace crema {

// The words of a text as a shell splits it: quotes and backslashes count, nothing is expanded.
// Error for a quote that is not closed.
std::vector<std::string> shell_words(const std::string& text);

// The text as one word for a shell.
std::string shell_quoted(const std::string& text);

// Pointers to the words, as execve() takes them, and a null behind them; `words` must outlive them.
inline std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace crema
