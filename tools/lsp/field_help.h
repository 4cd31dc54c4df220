// What the schema says of the fields of a block, and which of them come first in a list.
#pragma once

#include <string>

#include "tools/docs/schema.h"
#include "tools/lsp/typed_tree.h"

namespace crema {

// The fields of the block at this place with their comments.
MessageHelp help_on_block(const TypedPlace& place);

// The order of fields in a list, as a sort key of an editor: those that most files have, then others,
// then those of other layer types and of forks, then those of old files. layer_type: "" if it is
// unknown or the block is no layer.
class FieldOrder {
 public:
  FieldOrder(const google::protobuf::Descriptor& type, const std::string& layer_type);
  std::string key_of(const google::protobuf::FieldDescriptor& field) const;

 private:
  const google::protobuf::Descriptor& type_;
  bool has_type_;
  std::vector<std::string> first_;
};

}  // namespace crema
