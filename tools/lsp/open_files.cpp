#include "tools/lsp/open_files.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "proto/net.pb.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 2000, kMostEntries = 100000, kMostBytesRead = size_t{4} << 20;

bool is_prototxt(const std::string& path) {
  return ends_with(path, ".prototxt") || ends_with(path, ".pbtxt");
}

// The paths in a file's includes.
void add_includes(const Document& document, const Block& block, std::set<std::string>* paths) {
  const SyntaxTree& tree = document.tree();
  for (const Statement& s : block.statements) {
    if (s.kind == Statement::Kind::include && s.value.end - s.value.begin == 1) {
      const std::string_view value = tree.token(s.value.begin).text;
      if (value.size() > 2 && value.find('$') == std::string_view::npos)
        paths->insert(normal_path(included_path(document, unquoted(value))));
    }
    for (const Block& inside : s.blocks) add_includes(document, inside, paths);
  }
}

}  // namespace

std::string normal_path(const std::string& path) {
  return fs::path(path).lexically_normal().string();
}

std::string included_path(const Document& document, const std::string& name) {
  if (starts_with(name, "/")) return name;
  const std::string next_to_it = folder_of(document.path()) + "/" + name;
  std::error_code unknown;
  return !fs::exists(next_to_it, unknown) && fs::exists(name, unknown) ? name : next_to_it;
}

// Finds the files that share a name, and remembers the ones that it has read.
class OpenFiles::Search {
 public:
  Search(const OpenFiles& files, const Name& name) : files_(files), name_(name) {}

  std::vector<std::shared_ptr<const Document>> from(const Document& first) {
    const std::string start = normal_path(first.path());
    find_files_around(first);
    std::vector<std::string> waiting = {start};
    std::set<std::string> seen = {start};
    std::vector<std::shared_ptr<const Document>> found;
    while (!waiting.empty()) {
      const std::string path = waiting.back();
      waiting.pop_back();
      if (const auto document = read(path)) found.push_back(document);
      std::set<std::string> near;
      add_reachable(path, false, &near);
      add_reachable(path, true, &near);
      for (const std::string& other : near) {
        const auto document = read(other);
        if (!document || places_of(document->tree(), name_).empty()) continue;
        if (seen.insert(other).second) waiting.push_back(other);
      }
    }
    return found;
  }

 private:
  std::shared_ptr<const Document> read(const std::string& path) {
    const auto known = documents_.find(path);
    if (known != documents_.end()) return known->second;
    return documents_[path] = files_.at(path);
  }

  const std::set<std::string>& includes_of(const std::string& path) {
    const auto known = includes_.find(path);
    if (known != includes_.end()) return known->second;
    std::set<std::string>& paths = includes_[path];
    if (const auto document = read(path)) add_includes(*document, document->tree().file, &paths);
    for (const std::string& included : paths) includers_[included].insert(path);
    return paths;
  }

  // Files that this one includes, or with `up` that include it, directly or through others.
  void add_reachable(const std::string& path, bool up, std::set<std::string>* found) {
    const std::set<std::string> next = up ? includers_[path] : includes_of(path);
    for (const std::string& other : next) {
      if (found->insert(other).second) add_reachable(other, up, found);
    }
  }

  // Only files with an include can include others.
  void find_files_around(const Document& first) {
    for (const auto& [uri, document] : files_.open_) includes_of(normal_path(document->path()));
    size_t files = 0, entries = 0;
    std::vector<std::string> folders = files_.folders_;
    const auto has_first = [&](const std::string& f) { return starts_with(first.path(), f + "/"); };
    if (std::none_of(folders.begin(), folders.end(), has_first))
      folders.push_back(folder_of(first.path()));
    for (const std::string& folder : folders) {
      std::error_code unknown;
      fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied,
                                          unknown);
      for (; !unknown && at != fs::recursive_directory_iterator(); at.increment(unknown)) {
        if (++entries > kMostEntries || files > kMostFiles) return;
        const std::string path = at->path().string();
        std::error_code gone;
        if (at->is_directory(gone) && starts_with(at->path().filename().string(), "."))
          at.disable_recursion_pending();
        if (!is_prototxt(path) || !at->is_regular_file(gone)) continue;
        ++files;
        try {
          const bool includes =
              files_.unsaved(path) ||
              read_text(path, kMostBytesRead).find("include") != std::string::npos;
          if (includes) includes_of(normal_path(path));
        } catch (const Error&) {  // it cannot be read
        }
      }
    }
  }

  const OpenFiles& files_;
  const Name& name_;
  std::map<std::string, std::shared_ptr<const Document>> documents_;
  std::map<std::string, std::set<std::string>> includes_, includers_;
};

std::shared_ptr<Document> OpenFiles::open(const std::string& uri, std::string text) {
  return open_[uri] = std::make_shared<Document>(uri, std::move(text));
}

void OpenFiles::close(const Document& document) { open_.erase(std::string(document.uri())); }

std::optional<std::string> OpenFiles::unsaved(const std::string& path) const {
  const std::string wanted = normal_path(path);
  for (const auto& [uri, document] : open_) {
    if (!document->path().empty() && normal_path(document->path()) == wanted)
      return document->text();
  }
  return std::nullopt;
}

std::shared_ptr<const Document> OpenFiles::at(const std::string& path) const {
  const std::string wanted = normal_path(path);
  for (const auto& [uri, document] : open_) {
    if (!document->path().empty() && normal_path(document->path()) == wanted) return document;
  }
  try {
    if (!file_exists(path)) return nullptr;
    return std::make_shared<const Document>(uri_of_path(path), read_text(path, kMostBytesRead));
  } catch (const Error&) {
    return nullptr;
  }
}

const google::protobuf::Descriptor* OpenFiles::type_with_includes(
    const Document& document, std::set<std::string>* read) const {
  std::vector<std::string> names = names_in(document.tree());
  if (!names.empty()) return type_with(names);
  add_includes(document, document.tree().file, read);
  if (read->empty()) return nullptr;
  std::vector<std::string> waiting(read->begin(), read->end());
  while (!waiting.empty()) {
    const std::shared_ptr<const Document> included = at(waiting.back());
    waiting.pop_back();
    if (!included) continue;
    const std::vector<std::string> more = names_in(included->tree());
    names.insert(names.end(), more.begin(), more.end());
    std::set<std::string> next;
    add_includes(*included, included->tree().file, &next);
    for (const std::string& path : next) {
      if (read->insert(path).second) waiting.push_back(path);
    }
  }
  return names.empty() ? NetParameter::descriptor() : type_with(names);
}

std::vector<std::shared_ptr<const Document>> OpenFiles::sharing(const Document& document,
                                                                const Name& name) const {
  if (document.path().empty()) {
    for (const auto& [uri, open] : open_) {
      if (open.get() == &document) return {open};
    }
  }
  return Search(*this, name).from(document);
}

}  // namespace crema
