// What an editor shows behind the words of a file: shapes of tops, sizes of layers, values of variables.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "net/syntax/syntax.h"

namespace crema {

class Document;
struct ComputedValue;
struct MadeNet;

// A text behind an offset.
struct Hint {
  size_t offset = 0;
  std::string text;
};

// In a repeat and in a list, several are of the same token: the first one counts.
struct TokenHint {
  size_t token = 0;
  Hint hint;
};

// What stands behind the tops and layers in this file.
std::vector<TokenHint> hints_of(const Document& document, const MadeNet& made);

// Where the text does not say the value itself.
std::vector<Hint> value_hints(const SyntaxTree& tree, const std::vector<ComputedValue>& values);

}  // namespace crema
