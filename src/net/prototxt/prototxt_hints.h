// The sentences of a diagnosis: what a field or a value that cannot be is called, and the way out.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>
#include <vector>

namespace crema {

// A block that is open at the place of the mistake, outermost first.
struct OpenBlock {
  const google::protobuf::Descriptor* type = nullptr;
  std::string field;  // the name before its brace; empty for the file itself
  int line = 0;       // of its opening, from 0
  int column = 0;
  std::string layer;  // its "name", when it is a layer and the name came already
};

// `word` stands where a field of the innermost block should.
std::string unknown_field(std::string_view word, const std::vector<OpenBlock>& blocks);

// What a field takes, for "wants ...": "a whole number", "true or false", "MAX, AVE or STOCHASTIC".
std::string wanted(const google::protobuf::FieldDescriptor& field);

// `word` is no value of the enum of `field`.
std::string unknown_value(std::string_view word, const google::protobuf::FieldDescriptor& field);

}  // namespace crema
