// The wording of a diagnosis: what is wrong with an impossible field or value, and how to fix it.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>
#include <vector>

namespace crema {

// A block that is open at the mistake; the list has the outermost first.
struct OpenBlock {
  const google::protobuf::Descriptor* type = nullptr;
  std::string field;  // the name before its brace; empty for the file itself
  int line = 0;       // where it opens, from 0
  int column = 0;
  std::string layer;  // its "name", when it is a layer and the name has been read already
};

// `word` is in the position of a field of the innermost block. `closed`: blocks that ended right
// before it.
std::string unknown_field(std::string_view word, const std::vector<OpenBlock>& blocks,
                          const std::vector<OpenBlock>& closed);

// The values that a field accepts, for "expects ...": "a whole number", "true or false", "MAX, AVE
// or STOCHASTIC".
std::string wanted(const google::protobuf::FieldDescriptor& field);

// `word` is not a value of the enum of `field`.
std::string unknown_value(std::string_view word, const google::protobuf::FieldDescriptor& field);

}  // namespace crema
