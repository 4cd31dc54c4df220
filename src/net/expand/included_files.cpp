#include "net/expand/included_files.h"

#include "base/error.h"
#include "base/files.h"

namespace crema {

std::shared_ptr<const WrittenFile> IncludedFiles::find(const std::string& name,
                                                       const WrittenFile& includer,
                                                       const Place& at) {
  constexpr size_t kMaxIncluded = size_t{64} << 20;
  const bool absolute = starts_with(name, "/");
  std::string path = absolute ? name : folder_of(includer.path) + "/" + name;
  if (starts_with(path, "./")) path = path.substr(2);
  const auto known = files_.find(path);
  if (known != files_.end()) return known->second;
  std::optional<std::string> text = hooks_.unsaved ? hooks_.unsaved(path) : std::nullopt;
  if (!text && !file_exists(path)) {
    if (absolute || !file_exists(name))
      fail(at, ": there is no file ", path, " to include", absolute ? "" : cat(", nor ", name));
    path = name;
    if (hooks_.unsaved) text = hooks_.unsaved(path);
  }
  auto& file = files_[path];
  if (!file)
    file = std::make_shared<const WrittenFile>(path, text ? *text : read_text(path, kMaxIncluded));
  return file;
}

}  // namespace crema
