// The schema with its comments, as protoc compiled it: where help on fields comes from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace crema {

// A FileDescriptorSet with source information, embedded at build time.
std::string_view schema_bytes();

struct FieldHelp {
  std::string name, type, comment;
};

struct MessageHelp {
  std::string field;    // of LayerParameter: "convolution_param"
  std::string message;  // "ConvolutionParameter"
  std::string comment;
  std::vector<FieldHelp> fields;
};

// The messages inside LayerParameter that concern a layer: the one that is named after its type,
// and those whose field names stand in `text` (its documentation). types: all that there are.
std::vector<MessageHelp> help_on_parameters(const std::string& type,
                                            const std::vector<std::string>& types,
                                            const std::string& text);

}  // namespace crema
