// SourceText: a text to parse, and where in which file each part of it was written.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

// One file, as a person wrote it.
struct WrittenFile {
  WrittenFile(std::string path, std::string text);

  std::string path, text;
  std::vector<size_t> lines;  // the offsets of their beginnings

  // "lenet.prototxt:34:3": both count from 1, as editors do; a tab counts as one column.
  std::string where(size_t offset) const;
};

class SourceText {
 public:
  // A text unchanged from a file.
  SourceText(std::string path, std::string text);
  // A text that is put together by append().
  explicit SourceText(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  const std::string& text() const { return text_; }
  // Whether it differs from the written text.
  bool expanded() const { return expanded_; }

  // Adds a part that was written at `offset` of `file`; null if it is in no file. `context` tells
  // how the part came here, "included at resnet.prototxt:9:5, $stage = 1"; "" if it is there
  // itself.
  void append(std::string_view part, const std::shared_ptr<const WrittenFile>& file, size_t offset,
              const std::shared_ptr<const std::string>& context);

  // "lenet.prototxt:34:3", or "block.prototxt:7:5 (included at resnet.prototxt:9:5)", for a
  // position from protobuf: both from 0, tabs up to the next multiple of 8. Only the path if it is
  // in no file.
  std::string where(int line, int display_column) const;
  // The offset of such a place.
  size_t offset_of(int line, int display_column) const;

 private:
  struct Part {
    size_t begin;  // in text_
    std::shared_ptr<const WrittenFile> file;
    size_t offset;
    std::shared_ptr<const std::string> context;
  };

  std::string path_, text_;
  bool expanded_ = false;
  std::vector<Part> parts_;          // sorted by begin
  std::vector<size_t> lines_ = {0};  // the offsets of their beginnings
};

}  // namespace crema
