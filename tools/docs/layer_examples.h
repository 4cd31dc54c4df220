// A layer of each type to paste, from tools/docs/layer_examples.rows.
#pragma once

#include <string>
#include <string_view>

namespace crema {

// The file, embedded at build time.
std::string_view layer_example_bytes();

struct LayerExample {
  std::string bottoms;  // their shapes, divided by blanks; "-": none; "files": it reads files
  std::string text;     // of a LayerParameter
};

// Error for a type without one.
LayerExample example_of(const std::string& type);

// Its block as people write it, in several lines.
std::string block_of(const LayerExample& example);

}  // namespace crema
