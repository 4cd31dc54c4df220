// Guesses the intended number or flag from a form that the text format does not have: 0,01, 10k,
// 10_000, "0.1", 1e4 for an integer, TRUE.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>

namespace crema {

// `written` in the field's form, "0.01", "10000", "true"; empty if that is unclear.
std::string as_accepted(const google::protobuf::FieldDescriptor& field, std::string_view written);

// "; write base_lr: 0.01", or nothing.
std::string write_hint(const google::protobuf::FieldDescriptor& field, std::string_view written);

bool takes_numbers(const google::protobuf::FieldDescriptor& field);

}  // namespace crema
