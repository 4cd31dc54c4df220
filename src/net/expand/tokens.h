// The words of a prototxt file with `include`, variables and `repeat`, before they are expanded.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "net/expand/source_text.h"

namespace crema {

struct Token {
  enum class Kind { end, word, variable, number, text, symbol };

  Kind kind = Kind::end;
  std::string_view text;  // as written: "$name", "\"a text\""
  size_t begin = 0;       // its offset in the file
  std::string_view gap;   // blanks and comments before it

  bool is(std::string_view symbol) const { return kind == Kind::symbol && text == symbol; }
  bool is_word(std::string_view word) const { return kind == Kind::word && text == word; }
};

// The last one is the end. Anything that is not a word of the language becomes a symbol of one
// character: protobuf's parser reports it.
std::vector<Token> tokens_of(std::string_view text);

// Whether a file has something to expand: a variable outside quotes, an include of a file, a
// repeat, an if or a fraction.
bool has_expansions(const std::vector<Token>& tokens);

// Whether the token at `at` starts a statement of the expansion rather than a field: a layer has a
// field `include`, and other messages may have fields of the other names.
bool starts_include(const std::vector<Token>& tokens, size_t at);
bool starts_repeat(const std::vector<Token>& tokens, size_t at);
bool starts_if(const std::vector<Token>& tokens, size_t at);
bool starts_error(const std::vector<Token>& tokens, size_t at);

}  // namespace crema
