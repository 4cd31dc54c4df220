// Places in a file that messages name.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tools/lsp/document.h"

namespace crema {

// The first place in this file that a text names, "net.prototxt:12:3"; `end`: where that ends in the text.
std::optional<size_t> place_in(const Document& document, const std::string& text, size_t* end);

// Of the token at an offset, or of the next one.
size_t token_index(const SyntaxTree& tree, size_t offset);

}  // namespace crema
