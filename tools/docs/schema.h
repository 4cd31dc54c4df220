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
  int number = 0;  // below 5000: Caffe's or of its forks; 5000 to 5999: ours; above: of forks
  std::string message{};  // the message of a block of fields, such as "ParamSpec"; else ""
};

struct MessageHelp {
  std::string field;    // of LayerParameter: "convolution_param"
  std::string message;  // "ConvolutionParameter"
  std::string comment;
  std::vector<FieldHelp> fields;
  std::string file{};  // "proto/params/convolution.proto"
  int number = 0;      // of `field`
};

// The messages in LayerParameter that concern a layer: the one named after its type, and those
// whose field names occur in `text` (its documentation). types: all layer types.
std::vector<MessageHelp> help_on_parameters(const std::string& type,
                                            const std::vector<std::string>& types,
                                            const std::string& text);

// The fields of a message: "solver", "net", or the path of a block in a solver or a net as -set
// writes it, such as layer[conv1].convolution_param. Error for one that does not exist.
MessageHelp help_on_fields(const std::string& path);

// Every message of a solver or net, by files and in their order. `field` is that of LayerParameter,
// or "".
std::vector<MessageHelp> help_on_all_messages();

}  // namespace crema
