// A file that is open in an editor, as it is there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/syntax/syntax.h"
#include "tools/lsp/rpc.h"

namespace crema {

class Document {
 public:
  // uri: "file:///home/a/net.prototxt"; others have no folder, so what they include is not found.
  Document(std::string uri, std::string text);

  const std::string& uri() const { return uri_; }
  const std::string& path() const { return path_; }
  const SyntaxTree& tree() const { return *tree_; }
  const std::string& text() const { return tree_->text; }

  struct Edit {
    size_t begin = 0, end = 0;  // offsets in the text before
    size_t inserted = 0;        // bytes
  };
  // A change of the protocol: a range and its new text, or the whole text. Error for what is neither.
  Edit change(const Json& change);

  // Lines count from 0, and columns in units of UTF-16, as in the protocol. Beyond its end a line or a text ends.
  Json position(size_t offset) const;
  Json range(size_t begin, size_t end) const;
  size_t offset_of(const Json& position) const;
  size_t offset_of(size_t line, size_t column) const;
  // Of line and column as messages have them: from 1, in bytes.
  size_t offset_at(size_t line, size_t column) const;

 private:
  void set_text(std::string text);

  std::string uri_, path_;
  std::unique_ptr<const SyntaxTree> tree_;
};

// The path of a file's URI, with its %20 and others decoded; "" for another URI.
std::string path_of_uri(const std::string& uri);
std::string uri_of_path(const std::string& path);

}  // namespace crema
