#include "data/databases/database_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/temporary.h"
#include "data/databases/class_names.h"

namespace crema {
namespace {

void sync_folder(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

bool belongs_to_database(const std::string& name) {
  static const std::set<std::string> names = {"data.mdb", "lock.mdb", "CURRENT",
                                              "LOCK",     "LOG",      "LOG.old"};
  static const std::set<std::string> endings = {".ldb", ".sst", ".log", ".dbtmp", ".h5"};
  const auto number = [](const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  };
  const std::string manifest = "MANIFEST-";
  if (starts_with(name, manifest)) return number(name.substr(manifest.size()));
  const size_t dot = std::min(name.rfind('.'), name.size());
  return names.count(name) > 0 ||
         (number(name.substr(0, dot)) && endings.count(name.substr(dot)) > 0);
}

// Whether a folder has only the files of a database of some kind and its class names.
bool is_database(const std::string& path) {
  if (!folder_exists(path)) return false;
  bool any = false;
  for (const std::string& name : list_folder(path)) {
    if (name == kClassNamesFile) continue;
    any = true;
    if (!std::filesystem::is_regular_file(path + "/" + name) || !belongs_to_database(name))
      return false;
  }
  return any;
}

// If a process was killed while `path` was replaced: puts the old database back, or removes it if
// the new one is in place.
void finish_replacing(const std::string& path) {
  const std::string old = path + kReplacedEnding;
  if (!is_database(old)) return;
  if (file_exists(path)) {
    std::filesystem::remove_all(old);
  } else if (rename(old.c_str(), path.c_str()) != 0) {
    fail(old, ": cannot be renamed to ", path, ": ", std::strerror(errno));
  }
}

// Checks that a new database can be created at `path`; removes what killed runs left there.
std::string free_path(const std::string& path, bool overwrite) {
  require(!path.empty(), "the path of a database is empty");
  finish_replacing(path);
  if (overwrite) {
    require(!file_exists(path) || is_database(path), path,
            ": is no database, so it is not replaced; remove it, or choose another name");
  } else {
    require(!file_exists(path), path, ": exists already; remove it, or choose another name");
  }
  const std::string name = path.substr(path.rfind('/') + 1);
  remove_leftovers(folder_of(path), TemporaryEntry::Kind::folder, name);
  return path;
}

}  // namespace

DatabaseWriter::DatabaseWriter(const std::string& path, const DatabaseFormat& format)
    : path_(free_path(without_slash(path), format.overwrite)),
      classes_(text_of_class_names(format.classes)),
      overwrite_(format.overwrite) {
  TemporaryEntry entry = make_temporary(path_, TemporaryEntry::Kind::folder);
  temporary_ = std::move(entry.path);
  lock_ = entry.descriptor;
}

DatabaseWriter::~DatabaseWriter() {
  std::error_code ignored;
  if (!finished_) std::filesystem::remove_all(temporary_, ignored);
  ::close(lock_);
}

void DatabaseWriter::put(const std::string& key, const google::protobuf::Message& record) {
  add(key, record);
  if (++count_ % 1000 == 0) flush();
}

std::string DatabaseWriter::serialized(const std::string& key,
                                       const google::protobuf::Message& record) const {
  std::string value;
  require(record.SerializeToString(&value), path_, ": record \"", key, "\" is too large");
  return value;
}

void DatabaseWriter::complete() {
  if (complete_) return;
  flush();
  close();
  if (!classes_.empty()) write_file_atomically(cat(temporary_, "/", kClassNamesFile), classes_);
  sync_folder(temporary_);
  complete_ = true;
}

void DatabaseWriter::finish() {
  complete();
  put_in_place();
  finished_ = true;
  named();
  sync_folder(folder_of(path_));
}

void DatabaseWriter::put_in_place() {
  const bool replace = overwrite_ && is_database(path_);
  require(replace || !file_exists(path_), path_,
          ": has appeared meanwhile; the new database is left out");
  if (!replace) {
    if (rename(temporary_.c_str(), path_.c_str()) != 0)
      fail(path_, ": cannot be created: ", std::strerror(errno));
    return;
  }
  std::string old = temporary_;
  if (renameat2(AT_FDCWD, old.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) != 0) {
    // Not every file system exchanges names. Under the name that the old one has for a moment
    // nothing removes it, and the next writer puts it back.
    old = path_ + kReplacedEnding;
    if (rename(path_.c_str(), old.c_str()) != 0)
      fail(path_, ": cannot be replaced: ", std::strerror(errno));
    if (rename(temporary_.c_str(), path_.c_str()) != 0) {
      const int reason = errno;
      const bool back = rename(old.c_str(), path_.c_str()) == 0;
      fail(path_, ": cannot be replaced: ", std::strerror(reason), "; the old one is ",
           back ? "still there" : old);
    }
  }
  std::error_code ignored;
  std::filesystem::remove_all(old, ignored);
}

std::string missing_database_hint(const std::string& path) {
  const std::string old = without_slash(path) + kReplacedEnding;
  if (is_database(old))
    return cat("; ", old,
               " is the old one, from a conversion that was killed: convert again, or rename it");
  const std::string folder = folder_of(without_slash(path));
  std::vector<std::string> others;
  std::error_code unknown;
  for (std::filesystem::directory_iterator at(folder.empty() ? "." : folder, unknown);
       !unknown && at != std::filesystem::directory_iterator(); at.increment(unknown)) {
    std::error_code gone;
    if (at->is_directory(gone) && is_database(at->path().string()))
      others.push_back(at->path().filename().string());
  }
  if (others.empty()) return "";
  std::sort(others.begin(), others.end());
  constexpr size_t kListed = 4;
  const size_t more = others.size() > kListed ? others.size() - kListed : 0;
  others.resize(others.size() - more);
  return cat("; its folder has ", join(others, ", "), more > 0 ? cat(" and ", more, " more") : "");
}

std::string numbered_key(int64_t number, int digits) {
  const std::string text = std::to_string(number);
  return std::string(
             static_cast<size_t>(std::max<int64_t>(0, digits - static_cast<int64_t>(text.size()))),
             '0') +
         text;
}

std::unique_ptr<DatabaseWriter> create_database(const std::string& path,
                                                const DatabaseFormat& format) {
  if (format.backend == DataParameter::HDF5) return create_hdf5(path, format);
  return format.backend == DataParameter::LMDB ? create_lmdb(path, format)
                                               : create_leveldb(path, format);
}

}  // namespace crema
