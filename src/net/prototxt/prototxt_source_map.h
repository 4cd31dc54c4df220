// SourceMap: where each field of a text file was written.
#pragma once

#include <google/protobuf/text_format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/expand/source_text.h"

namespace crema {

class SourceMap {
 public:
  using Tree = google::protobuf::TextFormat::ParseInfoTree;

  // `root` is the message type that `tree` was recorded for.
  SourceMap(SourceText text, const google::protobuf::Descriptor* root, std::unique_ptr<Tree> tree);

  // "lenet.prototxt:34:3" of a field, named by its path from the root:
  // "layer[3].convolution_param.kernel_size[1]"; a repeated field without an index means its first
  // value, and values of a list in brackets are found at their field. If the text does not contain
  // it, the nearest enclosing block that was written; otherwise "lenet.prototxt". In an expanded
  // file it is the position that a person wrote, and how it came here.
  std::string where(std::string_view path) const;

 private:
  using Location = google::protobuf::TextFormat::ParseLocation;
  std::optional<Location> find(std::string_view path) const;

  SourceText text_;
  const google::protobuf::Descriptor* root_;
  std::unique_ptr<Tree> tree_;
};

}  // namespace crema
