// SourceMap: where each field of a text file was written.
#pragma once

#include <google/protobuf/text_format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace crema {

// Both count from 1, as editors do; a tab counts as one column.
struct Position {
  int line = 0;
  int column = 0;
};

class SourceMap {
 public:
  using Tree = google::protobuf::TextFormat::ParseInfoTree;

  // `root` is the message type that `tree` was recorded for.
  SourceMap(std::string file, std::string text, const google::protobuf::Descriptor* root,
            std::unique_ptr<Tree> tree);

  // `path` names a field from the root: "layer[3].convolution_param.kernel_size[1]". A repeated
  // field without an index means its first value. None when the file does not contain it. Values of
  // a list in brackets are found at its field.
  std::optional<Position> find(std::string_view path) const;

  // "lenet.prototxt:34:3": the field itself, else the nearest enclosing block that was written;
  // "lenet.prototxt" when there is none.
  std::string where(std::string_view path) const;

  const std::string& file() const { return file_; }

  // Converts a position that protobuf reports: both from 0, tabs up to the next multiple of 8.
  Position position(int line, int display_column) const;
  static Position position(std::string_view text, int line, int display_column);

 private:
  std::string file_, text_;
  const google::protobuf::Descriptor* root_;
  std::unique_ptr<Tree> tree_;
};

}  // namespace crema
