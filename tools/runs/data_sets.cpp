#include "tools/runs/data_sets.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/tar/tar_shards.h"
#include "data/loader/on_threads.h"
#include "tools/runs/expanded_solver.h"

namespace crema {
namespace {

namespace fs = std::filesystem;
namespace pb = google::protobuf;

constexpr const char* kBlanks = " \t\r,;";
// More files, or more lines of a list, are sampled: opening each would take too long.
constexpr size_t kMostFiles = 65536;

// Fields that are a prefix of the names in the list that the same message names.
const std::set<std::string> kRoots = {"root_folder", "root_dir", "heatmap_dir"};

using Visit = std::function<void(const std::string& name, const std::string& path,
                                 const std::vector<std::string>& roots)>;

void visit_paths(const pb::Message& message, const std::string& prefix, const Visit& visit) {
  const pb::Reflection* reflection = message.GetReflection();
  std::vector<const pb::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  std::vector<std::pair<std::string, std::string>> paths;
  std::vector<std::string> roots;
  for (const pb::FieldDescriptor* field : fields) {
    const std::string name = prefix + field->name();
    if (field->cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE) {
      const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
      for (int i = 0; i < count; ++i)
        visit_paths(field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                         : reflection->GetMessage(message, field),
                    field->is_repeated() ? cat(name, "[", i, "].") : name + ".", visit);
    } else if (field->cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING && !field->is_repeated() &&
               path_fields().count(field->name())) {
      const std::string path = reflection->GetString(message, field);
      if (path.empty()) continue;
      if (kRoots.count(field->name())) {
        roots.push_back(path);
      } else {
        paths.emplace_back(name, path);
      }
    }
  }
  for (const auto& [name, path] : paths) visit(name, path, roots);
}

bool is_number(std::string_view word) {
  return word.find_first_not_of("0123456789+-.eE") == std::string_view::npos;
}

// The files that one line of a list names: one before a label, an image and its label image, several
// fields of CSV. Names that are no file are left out: the list may hold other words.
void add_files_of_line(const DataSet& set, std::string_view line, std::vector<std::string>* files) {
  const auto add = [&](std::string_view word) {
    if (word.empty()) return false;
    const size_t before = files->size();
    const auto add_if_there = [&](const std::string& name, const std::string& folder) {
      const std::string found = find_file(name, folder);
      std::error_code none;
      if (fs::is_regular_file(found, none)) files->push_back(found);
    };
    for (const std::string& root : set.roots) add_if_there(root + std::string(word), set.folder);
    if (set.roots.empty()) add_if_there(std::string(word), set.folder);
    if (files->size() == before) add_if_there(std::string(word), folder_of(set.path));
    return files->size() > before;
  };
  line = trim(line);
  const size_t last = line.find_last_of(kBlanks);
  if (last == std::string_view::npos) {
    add(line);
    return;
  }
  if (add(trim(line.substr(0, last)))) {  // may have blanks
    if (!is_number(line.substr(last + 1))) add(line.substr(last + 1));
    return;
  }
  while (!line.empty()) {
    const size_t end = std::min(line.find_first_of(kBlanks), line.size());
    if (!is_number(line.substr(0, end))) add(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
}

struct Found {
  std::string kind, names;
  std::vector<std::string> files;
  size_t all = 0;  // of which `files` are a sample; 0: they are all
};

// Spreads evenly.
template <typename T>
std::vector<T> sample_of(const std::vector<T>& all) {
  if (all.size() <= kMostFiles) return all;
  std::vector<T> some;
  for (size_t i = 0; i < kMostFiles; ++i) some.push_back(all[i * all.size() / kMostFiles]);
  return some;
}

Found named_files(const std::string& kind, const std::string& folder,
                  const std::vector<std::string>& names) {
  Found found{kind, join(names, "\n"), {}, names.size()};
  for (const std::string& name : sample_of(names)) found.files.push_back(folder + "/" + name);
  return found;
}

Found in_folder(const std::string& path) {
  if (file_exists(path + "/data.mdb")) return {"LMDB", "", {path + "/data.mdb"}};
  const bool leveldb = file_exists(path + "/CURRENT");
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    const std::string name = fs::path(entry.path()).lexically_relative(path).string();
    // LevelDB rewrites its other files whenever it opens a database.
    if (leveldb && !ends_with(name, ".ldb") && !ends_with(name, ".sst") && !ends_with(name, ".log"))
      continue;
    if (!entry.is_directory()) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return named_files(leveldb ? "LevelDB" : "folder", path, names);
}

Found tar(const std::string& path) {
  Found found{"tar", "", {}};
  for (const TarShard& shard : tar_shards(path)) {
    found.names += shard.name + "\n";
    found.files.push_back(shard.path);
  }
  return found;
}

std::string beginning_of(const std::string& path) {
  std::string text(4096, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

Found in_list(const DataSet& set) {
  Found found{"list", read_text(set.path), {set.path}};
  std::vector<std::string_view> lines;
  for (std::string_view rest = found.names; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (const std::string_view line = trim(rest.substr(0, end)); !line.empty())
      lines.push_back(line);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const std::vector<std::string_view> looked_at = sample_of(lines);
  std::vector<std::vector<std::string>> named(looked_at.size());
  constexpr int64_t kAtOnce = 64;
  on_threads(static_cast<int64_t>(named.size()), kAtOnce,
             [&](int64_t i) { add_files_of_line(set, looked_at[i], &named[i]); });
  for (const auto& files : named) found.files.insert(found.files.end(), files.begin(), files.end());
  if (lines.size() > kMostFiles) found.all = lines.size() + 1;
  return found;
}

Found find_files(const DataSet& set) {
  const std::string path = without_slash(set.path);
  if (folder_exists(path)) return looks_like_tar(path) ? tar(path) : in_folder(path);
  std::error_code none;
  const bool regular = fs::is_regular_file(path, none);
  const bool source = ends_with(set.field, "source");
  if (source && (!fs::exists(path, none) || (regular && looks_like_tar(path))) &&
      (regular || path.find('{') != std::string::npos))
    return tar(path);
  if (!regular || !source) return {"file", "", {path}};
  if (ends_with(path, ".mdb")) return {"LMDB", "", {path}};
  const std::string begin = beginning_of(path);
  if (starts_with(begin, "\x89HDF")) return {"HDF5", "", {path}};
  if (begin.find('\0') != std::string::npos) return {"file", "", {path}};
  return in_list(set);
}

}  // namespace

std::vector<DataSet> data_sets_of(const NetParameter& net, const std::string& folder) {
  std::vector<DataSet> sets;
  for (const LayerParameter& layer : net.layer()) {
    visit_paths(layer, "", [&](const auto& field, const auto& path, const auto& roots) {
      DataSet set{layer.name(), field, find_source(path, folder), {}, folder};
      for (const std::string& root : roots) set.roots.push_back(find_file(root, folder));
      sets.push_back(std::move(set));
    });
  }
  return sets;
}

DataSetContent content_of(const DataSet& set) {
  DataSetContent known{"file", 0, {}};
  try {
    const Found found = find_files(set);
    known.kind = found.kind;
    known.files = static_cast<int64_t>(std::max(found.all, found.files.size()));
    known.content = hash_of_files(found.names, found.files);
    if (found.all > found.files.size()) {
      const std::string of = cat(kMostFiles, " of ", found.all, " files");
      std::string& sampled = known.content.sampled;
      sampled = sampled.empty() ? of : of + ", " + sampled;
    }
  } catch (const std::exception& error) {  // also of std::filesystem
    known.content.problem = error.what();
  }
  return known;
}

}  // namespace crema
