// The schema with its comments, as compiled by protoc: the source of the help on fields.
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

// The messages in LayerParameter that concern a layer: the one named after its type, and those
// whose field names occur in `text` (its documentation). types: all layer types.
std::vector<MessageHelp> help_on_parameters(const std::string& type,
                                            const std::vector<std::string>& types,
                                            const std::string& text);

// The fields of a message: "solver", "net", or the path of a block in a solver or a net as -set
// writes it, such as layer[conv1].convolution_param. Error for one that does not exist.
MessageHelp help_on_fields(const std::string& path);

}  // namespace crema
