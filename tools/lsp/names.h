// Names that several places of a file have: blobs, layers, parameters that layers share, and variables.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/lsp/document.h"
#include "tools/lsp/typed_tree.h"

namespace crema {

struct Name {
  enum class Kind { none, blob, layer, parameter, variable, file } kind = Kind::none;
  std::string text;
};

struct NamePlace {
  size_t begin = 0, end = 0;  // of the name alone
  bool writes = false;  // a top, an assignment or an argument of an include, a layer's own name
};

// At an offset; a file is one to include.
Name name_at(const SyntaxTree& tree, size_t offset);
// All places of a name, in the order of the file.
std::vector<NamePlace> places_of(const SyntaxTree& tree, const Name& name);

// The word, number or text at an offset, or that ends there; null: none.
const Token* token_at(const SyntaxTree& tree, size_t offset);
size_t end_of(const Token& token);
// The content of a text that may lack its closing quote.
std::string unquoted(std::string_view text);
// visit(begin, end) of the variables' names in a token: $name, "${name}_1".
void each_variable(const Token& token, const std::function<void(size_t begin, size_t end)>& visit);
// The texts of tops and bottoms, in the order of the file.
void each_blob(
    const SyntaxTree& tree,
    const std::function<void(const Token& token, bool writes, const TypedPlace& place)>& visit);

}  // namespace crema
