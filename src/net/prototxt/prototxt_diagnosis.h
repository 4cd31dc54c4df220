// Finds what is wrong with a text that protobuf refused, and says it in plain words.
#pragma once

#include <google/protobuf/descriptor.h>

#include <optional>
#include <string>
#include <string_view>

namespace crema {

// Line and column as protobuf counts them (see SourceMap::position).
struct Problem {
  int line = 0;
  int column = 0;
  std::string text;
};

// The first mistake of `text` as a message of type `root`; none when this look finds nothing wrong.
std::optional<Problem> diagnose(std::string_view text, const google::protobuf::Descriptor* root);

}  // namespace crema
