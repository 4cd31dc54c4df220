// Blocks of layers and whole solvers that an editor offers to write, with fields to fill in ("${1:conv1}").
#pragma once

#include <string_view>
#include <vector>

namespace crema {

struct Snippet {
  std::string_view label, detail, text;
  bool is_solver = false;
};

// BLOB means the first top of the nearest layer above.
const std::vector<Snippet>& snippets();

}  // namespace crema
