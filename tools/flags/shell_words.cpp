#include "tools/flags/shell_words.h"

#include "base/error.h"

namespace crema {

std::vector<std::string> shell_words(const std::string& text) {
  std::vector<std::string> words;
  bool in_word = false;  // an empty pair of quotes is a word, too
  const auto add = [&](char c) { words.back() += c; };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (c == '\\' && i + 1 < text.size()) {
      if (text[++i] != '\n') add(text[i]);
    } else if (c == '\'' || c == '"') {
      const size_t begin = i;
      for (++i; i < text.size() && text[i] != c; ++i) {
        // Within double quotes a backslash is literal, unless it precedes a character that it can
        // escape.
        const bool protects = c == '"' && text[i] == '\\' && i + 1 < text.size() &&
                              std::string("\"\\$`").find(text[i + 1]) != std::string::npos;
        if (protects) ++i;
        add(text[i]);
      }
      if (i >= text.size())
        fail("the quote before `", text.substr(begin + 1), "` is not closed; add ", c);
    } else {
      add(c);
    }
  }
  return words;
}

std::string shell_quoted(const std::string& text) {
  const bool plain = text.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789_-+=./,:@") == std::string::npos;
  if (plain && !text.empty()) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace crema
