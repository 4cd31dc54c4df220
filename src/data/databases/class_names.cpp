#include "data/databases/class_names.h"

#include "base/error.h"
#include "base/files.h"

namespace crema {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;

// The name of a file without its ending.
std::string stem_of(const std::string& path) {
  const size_t slash = path.rfind('/'), dot = path.rfind('.');
  const bool ending =
      dot != std::string::npos && dot > (slash == std::string::npos ? 0 : slash + 1);
  return ending ? path.substr(0, dot) : path;
}

}  // namespace

ClassNames read_class_names(const std::string& path) {
  return class_names_in(path, read_text(path, kMostBytes));
}

ClassNames class_names_in(const std::string& path, const std::string& text) {
  ClassNames found{path, {}};
  for (const std::string& line : split(text, '\n')) found.names.emplace_back(trim(line));
  while (!found.names.empty() && found.names.back().empty()) found.names.pop_back();
  require(!found.names.empty(), path, ": has no name of a class; expected one name a line");
  return found;
}

std::string class_names_file(const std::string& source) {
  if (source.empty()) return "";
  const std::string path = without_slash(source);
  std::vector<std::string> candidates;
  if (folder_exists(path)) {
    candidates = {cat(path, "/", kClassNamesFile), cat(path, ".", kClassNamesFile)};
  } else {
    const std::string stem = stem_of(path);  // the list of HDF5 files has a folder of its name
    if (ends_with(path, "/data.mdb"))
      candidates.push_back(cat(folder_of(path), "/", kClassNamesFile));
    if (ends_with(path, ".txt")) candidates.push_back(cat(stem, "/", kClassNamesFile));
    candidates.push_back(cat(stem, ".", kClassNamesFile));
    candidates.push_back(cat(path, ".", kClassNamesFile));
  }
  for (const std::string& candidate : candidates)
    if (candidate != path && file_exists(candidate)) return candidate;
  return "";
}

ClassNames class_names_of_source(const std::string& source) {
  const std::string path = class_names_file(source);
  return path.empty() ? ClassNames() : read_class_names(path);
}

std::string text_of_class_names(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    require(!trim(names[i]).empty(), "class ", i, " has an empty name");
    require(names[i].find_first_of("\r\n") == std::string::npos, "the name of class ", i,
            " has more than one line");
    text += names[i] + "\n";
  }
  return text;
}

std::string class_text(int64_t label, const ClassNames& names) {
  if (names.empty()) return cat(label);
  const auto count = static_cast<int64_t>(names.names.size());
  require(label < count, names.path, ": names ", count, count == 1 ? " class" : " classes",
          ", but there is a label ", label, "; are these the names of another data set?");
  return label < 0 ? cat(label) : names.names[static_cast<size_t>(label)];
}

void require_count(const ClassNames& names, int64_t classes, const std::string& what) {
  const auto count = static_cast<int64_t>(names.names.size());
  require(count == 0 || count == classes, names.path, ": names ", count,
          count == 1 ? " class" : " classes", ", but ", what, " has ", classes,
          "; expected one name a line, the first for class 0");
}

}  // namespace crema
