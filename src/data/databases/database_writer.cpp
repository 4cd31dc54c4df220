#include "data/databases/database_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/temporary.h"

namespace crema {
namespace {

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

void sync_folder(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

// Checks that a new database can be created at `path`; removes what killed runs left there.
std::string free_path(const std::string& path) {
  require(!path.empty(), "the path of a database is empty");
  require(!file_exists(path), path, ": exists already; remove it, or choose another name");
  const std::string name = path.substr(path.rfind('/') + 1);
  remove_leftovers(folder_of(path), TemporaryEntry::Kind::folder, name);
  return path;
}

}  // namespace

DatabaseWriter::DatabaseWriter(const std::string& path) : path_(free_path(without_slash(path))) {
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
  std::string value;
  require(record.SerializeToString(&value), path_, ": record \"", key, "\" is too large");
  add(key, value);
  if (++count_ % 1000 == 0) flush();
}

void DatabaseWriter::complete() {
  if (complete_) return;
  flush();
  close();
  sync_folder(temporary_);
  complete_ = true;
}

void DatabaseWriter::finish() {
  complete();
  require(!file_exists(path_), path_, ": has appeared meanwhile; the new database is left out");
  if (rename(temporary_.c_str(), path_.c_str()) != 0)
    fail(path_, ": cannot be created: ", std::strerror(errno));
  finished_ = true;
  sync_folder(folder_of(path_));
}

std::string numbered_key(int64_t number, int digits) {
  const std::string text = std::to_string(number);
  return std::string(
             static_cast<size_t>(std::max<int64_t>(0, digits - static_cast<int64_t>(text.size()))),
             '0') +
         text;
}

std::unique_ptr<DatabaseWriter> create_database(const std::string& path, Backend backend) {
  return backend == DataParameter::LMDB ? create_lmdb(path) : create_leveldb(path);
}

}  // namespace crema
