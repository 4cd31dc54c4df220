// The files around those in an editor: what is open there, saved or not, and the rest as it is on disk.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/lsp/names.h"

namespace crema {

class OpenFiles {
 public:
  // The editor's folders; without them the folder of each file is searched for files that include it.
  void set_folders(std::vector<std::string> folders) { folders_ = std::move(folders); }

  std::shared_ptr<Document> open(const std::string& uri, std::string text);
  void close(const Document& document);

  // The text of a file that is open; none: it is as on disk.
  std::optional<std::string> unsaved(const std::string& path) const;
  // An open file, or one from disk; null if there is none that can be read.
  std::shared_ptr<const Document> at(const std::string& path) const;

  // As type_of(), but a file that only includes others is what they are, and a net if none of them can be read.
  // `read` gets the paths of those.
  const google::protobuf::Descriptor* type_with_includes(const Document& document,
                                                         std::set<std::string>* read) const;

  // The files that have this name and must change with this one if the name does: those it includes, those that include
  // it, and so on, as long as they have the name. This one comes first.
  std::vector<std::shared_ptr<const Document>> sharing(const Document& document,
                                                       const Name& name) const;

 private:
  class Search;

  std::map<std::string, std::shared_ptr<Document>> open_;  // by URI
  std::vector<std::string> folders_;
};

// Without "." and ".." in it.
std::string normal_path(const std::string& path);
// The file that an include of `document` names: next to it, or else in the working directory.
std::string included_path(const Document& document, const std::string& name);

}  // namespace crema
